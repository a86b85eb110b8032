"""Notes of the shards of an output directory: which are finished, and which could not be read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any

import pyarrow as pa

from pipelines.files import outputs
from pipelines.files.input_files import InputFile
from wordpiece_core.errors import ChangedError, ColumnError, InputError

SUMS = (
    *("rows", "input_rows", "nulls", "bytes", "tokens", "unknown_tokens", "words", "word_tokens"),
    *("replaced", "dropped_tokens", "invalid", "output_bytes"),
    *("truncated_rows", "truncated_tokens"),
)
OF_SHARDS = {"rows", "dropped_tokens", "output_bytes"}
"""The sums of a dataset that is laid out which are those of its shards. All others are those of its
inputs: which shard has which share of them is not known."""


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A finished shard. `input`: the relative name of the file it was made from. `source`: the size
    of that file and the time of its last change. `rows`: the rows of the shard. `bytes`: the size
    of the texts. `words`, `word_tokens`: as in `wordpiece_core.EncodedBatch`. `replaced`: the
    invalid UTF-8 sequences in the texts. `invalid`: those in the kept columns, where they stay.
    `truncated_rows`, `truncated_tokens`: as in `wordpiece_core.EncodedBatch`."""

    name: str
    input: str
    source: dict[str, Any]
    rows: int = 0
    input_rows: int = 0
    nulls: int = 0
    bytes: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    words: int = 0
    word_tokens: int = 0
    replaced: int = 0
    dropped_tokens: int = 0
    invalid: int = 0
    output_bytes: int = 0
    truncated_rows: int = 0
    truncated_tokens: int = 0


@dataclass(frozen=True, slots=True)
class MarkedResult(ShardResult):
    """A shard whose rows will be laid out anew. `weights`: the weight of its rows in each split.
    `schema`: its schema as Arrow serializes it, in base64."""

    weights: list[int] = field(default_factory=list)
    schema: str = ""


def marked(note: ShardResult, weights: list[int], schema: pa.Schema) -> MarkedResult:
    """The note of a shard whose rows will be laid out anew."""
    serialized = base64.b64encode(schema.serialize().to_pybytes()).decode()
    return MarkedResult(**plain(note), weights=weights, schema=serialized)


def unmarked(note: ShardResult) -> ShardResult:
    """The note without what laying out needed."""
    return ShardResult(**{field.name: getattr(note, field.name) for field in fields(ShardResult)})


FILE, COLUMN, CHANGED, AGAIN = "file", "column", "changed", "again"


@dataclass(frozen=True, slots=True)
class ShardError:
    """A shard that could not be encoded. `input`: the relative name of its file. `source`: see
    `ShardResult`. `message`: what is wrong, with the relative name. `cause`: `FILE` if the file is
    bad, `COLUMN` if the options do not fit it, `CHANGED` if it has changed since the job began,
    `AGAIN` if there is a shard of this name, made from other bytes, which stays."""

    name: str
    input: str
    source: dict[str, Any]
    row_group: int | None
    message: str
    cause: str


Note = ShardResult | ShardError


def source_of(file: InputFile) -> dict[str, Any]:
    """The values that tell whether a file is unchanged."""
    return {"bytes": file.size, "modified": file.modified}


def shard_error(file: InputFile, name: str, error: InputError) -> ShardError:
    """The note of a shard that could not be encoded."""
    cause = FILE
    if isinstance(error, ColumnError | ChangedError):
        cause = COLUMN if isinstance(error, ColumnError) else CHANGED
    message = str(error).replace(file.path, file.name)
    return ShardError(name, file.name, source_of(file), error.row_group, message, cause)


def is_of(note: Note, file: InputFile) -> bool:
    """Whether a note is of a file as it is now."""
    return (note.input, note.source) == (file.name, source_of(file))


def plain(note: Note) -> dict[str, Any]:
    """A note as JSON can hold it."""
    return {field.name: getattr(note, field.name) for field in fields(note)}


_KINDS = {
    frozenset(field.name for field in fields(kind)): kind
    for kind in (ShardResult, MarkedResult, ShardError)
}
_TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "dict[str, Any]": dict,
    "int | None": (int, NoneType),
    "list[int]": list,
}
_VALUES = {
    kind: [(field.name, _TYPES[str(field.type)]) for field in fields(kind)]
    for kind in (ShardResult, MarkedResult, ShardError)
}


def of_object(value: dict[str, Any]) -> Any:
    """A note, if a JSON object is one; otherwise the object. A note needs far less memory."""
    kind = _KINDS.get(frozenset(value))
    if kind is None or not all(isinstance(value.get(name), of) for name, of in _VALUES[kind]):
        return value
    return kind(**value)


def to_lines(notes: Iterable[Note]) -> bytes:
    """Notes as JSON lines."""
    return "".join(json.dumps(plain(note), ensure_ascii=False) + "\n" for note in notes).encode()


def from_lines(data: bytes, path: str) -> list[Note]:
    """The notes that `to_lines` wrote. `path`: their file, for messages."""
    try:
        notes = [json.loads(line, object_hook=of_object) for line in data.splitlines()]
    except (ValueError, RecursionError) as error:
        raise outputs.damaged(path) from error
    return all_notes(notes, path)


def all_notes(values: Any, path: str) -> list[Note]:
    """The values, which must be notes. InputError otherwise."""
    if not isinstance(values, list) or not all(isinstance(value, Note) for value in values):
        raise outputs.damaged(path)
    return values


def read_object(path: str) -> dict[str, Any] | None:
    """The object of a JSON file in which there are notes; None if there is no such file. InputError
    if it is damaged."""
    value = outputs.read_json(path, of_object)
    if value is not None and not isinstance(value, dict):
        raise outputs.damaged(path)
    return value
