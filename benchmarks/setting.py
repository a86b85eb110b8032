"""The setting of the benchmarks: text by language, vocabularies, and the number of runs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import WORDPIECE, run_process
from wordpiece_core import Tokenizer

COLUMN = "text"
STRIDES = (1, 3, 5, 7, 9, 11, 15, 17, 19, 21, 23, 25)  # coprime to 26
ROWS_PER_GROUP = 20_000
COPIES = 8  # of the 4 MB that come with Python: start-up decides on less text


@dataclass
class Setting:
    """`groups`: Parquet files by language, or by the beginning of their names. `runs`: number of
    runs of each contender. `cores`: for whole processes. `work`: directory for their output."""

    groups: dict[str, list[Path]]
    runs: int
    cores: int
    work: Path

    @property
    def main_group(self) -> str:
        """Return the text for whole jobs: English, else the largest group."""
        sizes = {
            name: sum(path.stat().st_size for path in paths) for name, paths in self.groups.items()
        }
        return "en" if "en" in sizes else max(sizes, key=sizes.__getitem__)

    @cached_property
    def vocab(self) -> Path:
        """Train a vocabulary like BERT's on the text for whole jobs."""
        return self.train("trained", "--vocab-size", "30522") / "vocab.txt"

    def tokenizers(self, vocab_size: int) -> dict[str, Path]:
        """Return tokenizer directories: BPE like Llama 3's with `vocab_size` tokens, trained on the
        text for whole jobs, and BERT's WordPiece."""
        llm = self.train("llm", "--config", "llm-bpe", "--vocab-size", str(vocab_size))
        return {"Llama 3": llm, "BERT": self.bert()}

    def bert(self) -> Path:
        """Return the directory of a tokenizer like BERT's."""
        Tokenizer.load(self.vocab, lowercase=True).save(self.work / "bert")
        return self.work / "bert"

    def train(self, name: str, *options: str, all_groups: bool = False) -> Path:
        """Train on the text for whole jobs, or on all text, into a directory of this name."""
        output = self.work / name
        groups = self.groups if all_groups else [self.main_group]
        paths = [str(path) for group in groups for path in self.groups[group]]
        command = [WORDPIECE, "train", *paths, "--output", str(output), *options]
        run_process(command, self.cores, os.environ)
        return output


def find_groups(given: Sequence[str], work: Path) -> dict[str, list[Path]]:
    """Files and directories of Parquet files, grouped by name up to the first digit (`en-0`,
    `en-1`: `en`). Without any: copies of the documentation of Python's library.

    Raises ValueError if there is nothing to read.
    """
    roots = [Path(path) for path in given]
    if not roots:
        from pipelines.commands.demo import collect_text

        collect_text(str(work / "text"))
        texts = read_texts(sorted((work / "text").glob("*.parquet")))
        return {"python": [write_copy(texts, k, work / f"{k}.parquet") for k in range(COPIES)]}
    groups: dict[str, list[Path]] = {}
    for root in roots:
        paths = sorted(root.glob("**/*.parquet")) if root.is_dir() else [root]
        if not paths:
            raise ValueError(f"{root}: no .parquet file in it")
        for path in paths:
            check_file(path)
            groups.setdefault(re.split(r"[-_.]?\d", path.stem)[0] or path.stem, []).append(path)
    return groups


def check_file(path: Path) -> None:
    """Raise ValueError if a file is not a Parquet file with a column of texts."""
    try:
        names = pq.read_schema(path).names
    except (OSError, pa.ArrowInvalid):
        names = []
    if COLUMN not in names:
        raise ValueError(f"{path}: not a Parquet file with the column {COLUMN!r}")


def read_texts(paths: Sequence[Path]) -> pa.ChunkedArray:
    """Read the texts of Parquet files, without nulls."""
    tables = [pq.read_table(path, columns=[COLUMN]) for path in paths]
    return pa.concat_tables(tables)[COLUMN].cast(pa.string()).drop_null()


def megabytes(texts: pa.ChunkedArray) -> float:
    """Return the size of texts, in millions of bytes of UTF-8."""
    return float(pc.sum(pc.binary_length(texts)).as_py() or 0) / 1e6


def first_bytes(texts: pa.Array, most: int) -> pa.Array:
    """Return the first texts, up to `most` bytes in total, but at least one text."""
    ends = np.cumsum(pc.binary_length(texts).to_numpy(), dtype=np.int64)
    return texts.slice(0, max(1, int(np.searchsorted(ends, most, side="right"))))


def write_copy(texts: pa.ChunkedArray, k: int, path: Path) -> Path:
    """Write the texts with each Latin letter replaced by another one, so that copies share no
    words. Copy `k` shifts letters by `k`; from 26 on, strides differ too."""
    stride, shift = STRIDES[k // 26], k % 26
    letters = ascii_lowercase + ascii_uppercase
    moved = [(stride * place + shift) % 26 for place in range(26)]
    replaced = (abc[place] for abc in (ascii_lowercase, ascii_uppercase) for place in moved)
    table = str.maketrans(letters, "".join(replaced))
    with pq.ParquetWriter(path, pa.schema([(COLUMN, pa.string())]), compression="zstd") as writer:
        for start in range(0, len(texts), ROWS_PER_GROUP):
            rows = texts.slice(start, ROWS_PER_GROUP).to_pylist()
            copied = pa.array([row.translate(table) for row in rows], pa.string())
            writer.write_table(pa.table({COLUMN: copied}))
    return path
