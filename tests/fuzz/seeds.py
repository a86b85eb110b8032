"""Writes the inputs that fuzzing begins with, made here from small files.

    python -m tests.fuzz.seeds DIRECTORY

DIRECTORY gets a directory for each target of `wordpiece_core/kernel/fuzz`.
"""

from __future__ import annotations

import io
import random
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.wordpiece_core.encrypted_files import write_encrypted
from tests.wordpiece_core.sentencepiece_models import charsmap_of
from tests.wordpiece_core.tokenizer.peers import train_sentencepiece

RULES = {
    "small": [("41", "61"), ("1", ""), ("A0", "20"), ("FF1C", "3C"), ("61 301", "E1")],
    "long": [("FDFA", "635 644 649 20 627"), ("3000", "20"), ("2581", "5F"), ("85", "20")],
    "shared": [(f"{code:X}", "20" if code % 2 else "") for code in range(0x2000, 0x2040)],
}
"""Rules of normalization, as sentencepiece reads them: characters, and what they become."""

TEXTS = (
    "A b\u00a0 \u3000c",
    "＜/s＞ \x01a\u0301 ",
    "  ▁ a▁b  \r\n",
    "ﷺ 👩‍👩‍👧 e\u0301\u0301 \u0085",
)


def charsmaps() -> Iterator[bytes]:
    """A byte for the way, one for the prefix, one for the length of the text, the text, the map."""
    for number, rules in enumerate(RULES.values()):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write("".join(f"{key}\t{value}\n" for key, value in rules))
            file.flush()
            texts = ["the quick brown fox jumps over the lazy dog"] * 20
            model = train_sentencepiece(texts, 40, normalization_rule_tsv=file.name, minloglevel=3)
        charsmap = charsmap_of(model)
        for way, text in enumerate((*TEXTS, "")):
            data = text.encode()
            yield bytes([way, number, len(data)]) + data + charsmap
    yield bytes([0, 0, 5]) + b"a b c"


def parquet_files() -> Iterator[bytes]:
    """Small files of several kinds, and the ends of others, from their footers on."""
    table = pa.table(
        {
            "text": ["a", None, "ccc"],
            "input_ids": pa.array([[1, 2], [], None], pa.list_(pa.int32())),
            "when": pa.array([1, 2, 3], pa.timestamp("us")),
            "score": [0.5, None, 1.5],
        }
    )
    for compression in ("none", "snappy"):
        for version in ("1.0", "2.0"):
            file = io.BytesIO()
            pq.write_table(
                table,
                file,
                compression=compression,
                data_page_version=version,
                row_group_size=2,
                store_schema=False,
                use_dictionary=version == "1.0",
            )
            yield file.getvalue()
    file = io.BytesIO()
    pq.write_table(table.slice(0, 0), file)
    yield file.getvalue()
    with tempfile.TemporaryDirectory() as directory:
        for plain in (True, False):
            path = Path(directory) / f"{plain}.parquet"
            written = write_encrypted(
                path, table, ["text"], plain_footer=plain, algorithm="AES_GCM_V1"
            ).read_bytes()
            (length,) = struct.unpack("<I", written[-8:-4])
            yield written[-8 - length :]


def any_bytes() -> Iterator[bytes]:
    """Bytes that inputs are made of: without them, fuzzing is long at inputs of few bytes."""
    numbers = random.Random(1)
    common = b"ab AB1'\n.s"
    for _ in range(16):
        yield bytes(
            numbers.choice((numbers.choice(common), numbers.randrange(256))) for _ in range(512)
        )


TARGETS = {
    "charsmap": charsmaps,
    "composed": any_bytes,
    "parquet_footer": parquet_files,
    "tokenizer_model": any_bytes,
}
"""The other target makes its inputs of any bytes, and begins with none."""


def main(directory: str) -> None:
    for target, seeds in TARGETS.items():
        place = Path(directory) / target
        place.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(seeds()):
            (place / f"seed-{number}").write_bytes(seed)


if __name__ == "__main__":
    main(sys.argv[1])
