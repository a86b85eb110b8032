"""The file of `--token-counts`: the number of occurrences of each id in a dataset."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.io import outputs
from wordpiece_core import storage
from wordpiece_core.errors import InputError, OutputError, opt
from wordpiece_core.measures import RARE
from wordpiece_core.storage import StoredFile

KEY = b"wordpiece.token_counts"
"""The key of the metadata that marks the file. Its value is the digest of the tokenizer."""


@dataclass(frozen=True)
class TokenCounts:
    """A file of counts.

    Attributes:
        place: Path of the file.
        vocab_size: Number of tokens.
        unused: Number of tokens that do not occur.
        rare: Number of tokens that occur, but fewer than `RARE` times.
    """

    place: str
    vocab_size: int
    unused: int
    rare: int


def check_place(place: str) -> None:
    """Raise OutputError if the file would replace a file of another program."""
    entry = storage.info(place)
    if entry is not None and (entry.kind != "file" or not _is_ours(place)):
        raise OutputError(
            f"{place}: was not written by wordpiece encode {opt.token_counts}; choose another file,"
            " or move it"
        )


def write_counts(place: str, tokens: list[str], counts: pa.Array, digest: str) -> TokenCounts:
    """Write `id: int32`, `token: string` and `count: int64` in id order. `digest`: digest of the
    tokenizer."""
    columns = {
        "id": pa.array(range(len(tokens)), pa.int32()),
        "token": pa.array(tokens, pa.string()),
        "count": counts,
    }
    table = pa.table(columns).replace_schema_metadata({KEY: digest.encode()})
    outputs.write_parquet(place, table)
    found = counts.to_pylist()
    unused, below = found.count(0), sum(count < RARE for count in found)
    return TokenCounts(place, len(tokens), unused, below - unused)


def read_counts(place: str, tokens: list[str]) -> dict[int, int]:
    """Read the number of occurrences of each id that occurs. Raises InputError for another file,
    and for counts of other tokens."""
    if not _is_ours(place):
        raise InputError(f"{place}: was not written by wordpiece encode {opt.token_counts}")
    table = outputs.read_parquet(place)
    if table["token"].to_pylist() != tokens:
        raise InputError(
            f"{place}: has the counts of another vocabulary; pass the tokenizer of the dataset"
        )
    return {i: count for i, count in enumerate(table["count"].to_pylist()) if count}


def _is_ours(place: str) -> bool:
    try:
        with StoredFile(place) as file:
            return KEY in (pq.read_metadata(file.arrow()).metadata or {})
    except pa.ArrowException:
        return False
