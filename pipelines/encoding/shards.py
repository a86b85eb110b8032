"""The record of a shard: how it was made, and what it counts.

A finished shard has its record in the metadata of its Parquet footer, and the manifest lists the
records of all shards. An input that cannot be encoded has a `ShardError` instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.io import outputs
from pipelines.io.input_files import InputFile
from pipelines.io.reading import bad_data
from wordpiece_core.errors import ChangedError, ColumnError, InputError, unspelled
from wordpiece_core.storage import StoredFile

SUMS = (
    *("rows", "input_rows", "nulls", "bytes", "tokens", "unknown_tokens", "words", "word_tokens"),
    *("replaced", "dropped_tokens", "invalid", "output_bytes"),
    *("truncated_rows", "truncated_tokens", "special_tokens", "padding_tokens"),
    "changed_texts",
)
MEASURES = ("longest_text", "tokens_per_byte", "padding_share")
SHARD_SUMS = {"rows", "dropped_tokens", "output_bytes"}
"""The sums of a resharded dataset over its shards. All others are over its inputs, because their
division among the shards is not known."""
FILE, COLUMN, CHANGED = "file", "column", "changed"
RECORD_KEY = "wordpiece.shard"
"""The key of the record in the metadata of a footer."""
TAIL_BYTES = 64 << 10  # of a shard that are read together; usually they contain the footer
MAGIC = b"PAR1"
TAIL = 8  # bytes after the footer: its size, and the magic number


# --- Records --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A finished shard. Counts without a description are as in `wordpiece_core.EncodedTable`.

    Attributes:
        name: Name of the shard, relative to the dataset.
        input: Relative name of the input.
        source: Size and modification time of the input.
        rows: Rows of the shard.
        bytes: Bytes of the texts.
        replaced: Invalid UTF-8 sequences in the texts.
        padding_tokens: Padding tokens of all rows. Padding of packed rows is counted in the shards
            of a resharded dataset, and other padding in its inputs.
        invalid: Invalid UTF-8 sequences in the kept columns, where they stay.
        changed_texts: Rows of ids that did not survive decoding.
        columns: Digest of the names and types of the columns.
    """

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
    special_tokens: int = 0
    padding_tokens: int = 0
    longest_text: int = 0
    changed_texts: int = 0
    columns: str = ""


@dataclass(frozen=True, slots=True)
class WeightedResult(ShardResult):
    """An encoded input whose rows will be assigned to shards.

    Attributes:
        weights: Weight of the rows in each split.
        schema: Schema of the encoded input, serialized by Arrow, in base64.
    """

    weights: list[int] = field(default_factory=list)
    schema: str = ""


@dataclass(frozen=True, slots=True)
class ShardError:
    """An input that cannot be encoded.

    Attributes:
        name: Name of its shard.
        input: Relative name of the input.
        source: Size and modification time of the input.
        message: Error message with the relative name.
        cause: `FILE` if the file is bad, `COLUMN` if the options do not fit it, `CHANGED` if it has
            changed since the job began.
    """

    name: str
    input: str
    source: dict[str, Any]
    row_group: int | None
    message: str
    cause: str


ShardRecord = ShardResult | ShardError
Record = TypeVar("Record", bound=ShardRecord)


def source_of(file: InputFile) -> dict[str, Any]:
    """Return the values that identify the version of a file."""
    return {"bytes": file.size, "modified": file.modified}


def is_of(record: ShardRecord, file: InputFile) -> bool:
    """Return True if a record is of the current version of a file."""
    return (record.input, record.source) == (file.name, source_of(file))


def shard_error(file: InputFile, name: str, error: InputError) -> ShardError:
    """Return the record of an input that cannot be encoded."""
    cause = FILE
    if isinstance(error, ColumnError | ChangedError):
        cause = COLUMN if isinstance(error, ColumnError) else CHANGED
    message = str(error).replace(file.path, file.name)
    return ShardError(name, file.name, source_of(file), error.row_group, message, cause)


# --- JSON -----------------------------------------------------------------------------------------


def to_dict(record: ShardRecord, kind: type[ShardRecord] | None = None) -> dict[str, Any]:
    """Return a record as values that JSON can hold; with `kind`, only the fields of this class."""
    return {field.name: getattr(record, field.name) for field in fields(kind or record)}


_KINDS = {
    kind: {field.name for field in fields(kind)}
    for kind in (ShardResult, WeightedResult, ShardError)
}
LATER = {"padding_tokens", "longest_text", "changed_texts"}
"""Counts that records of earlier versions do not have. They are `UNKNOWN` then."""
UNKNOWN = -1
_TYPES = {"str": str, "int": int, "dict[str, Any]": dict, "list[int]": list}


def from_dict(value: dict[str, Any]) -> Any:
    """Return a record, if a JSON object is one, else the object. (Records take less memory.)"""
    kinds = (kind for kind, names in _KINDS.items() if names - value.keys() <= LATER)
    kind = next((kind for kind in kinds if value.keys() <= _KINDS[kind]), None)
    if kind is None:
        return value
    value = dict.fromkeys(LATER & _KINDS[kind], UNKNOWN) | value
    types = ((field.name, _TYPES.get(str(field.type), object)) for field in fields(kind))
    return kind(**value) if all(isinstance(value[name], of) for name, of in types) else value


def checked(values: Any, path: str, kind: type[Record] | tuple[type[Record], ...]) -> list[Record]:
    """Return values of a file that must be records. Raises InputError for others."""
    if not isinstance(values, list) or not all(isinstance(v, kind) for v in values):
        raise outputs.damaged(path)
    return values


# --- Footers --------------------------------------------------------------------------------------


def footer_metadata(job: Mapping[str, Any], result: ShardResult, data_bytes: int) -> dict[str, str]:
    """Return the metadata of the footer of a shard: the job, the record, and the offset of the
    footer, which differs in a copy that another program has made."""
    record = to_dict(result)
    del record["name"], record["output_bytes"]
    value = {**job, "data_bytes": max(data_bytes, len(MAGIC)), "record": record}
    return {RECORD_KEY: json.dumps(value, ensure_ascii=False)}


def read_footer(path: str, name: str) -> tuple[dict[str, Any], ShardResult] | None:
    """Read the job and the record of a shard; None for a file that is not a shard."""
    with StoredFile(path) as file:
        file.hold_end(TAIL_BYTES)
        try:
            metadata = pq.read_metadata(file.arrow())
            value = (metadata.metadata or {}).get(RECORD_KEY.encode())
            if value is None:
                return None
            job = json.loads(value)
            is_ours = job.pop("data_bytes") == file.length - metadata.serialized_size - TAIL
            fields = job.pop("record") | {"name": name, "output_bytes": file.length}
        except (OSError, pa.ArrowException, ValueError, LookupError, TypeError):
            return None
    record = from_dict(fields)
    return (job, record) if is_ours and isinstance(record, ShardResult) else None


def shard_schema(path: str) -> pa.Schema:
    """Read the schema of a shard."""
    with StoredFile(path) as file, bad_data(path, fix=outputs.FIX):
        return pq.read_schema(file.arrow())


# --- Errors ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BadInput:
    """An input that cannot be encoded."""

    file: InputFile
    error: ShardError

    @property
    def message(self) -> str:
        """The error message with the path of the file."""
        return self.file.path + unspelled(self.error.message.removeprefix(self.file.name))


class ShardsError(InputError):
    """Some inputs cannot be encoded. `errors`: these inputs."""

    def __init__(self, errors: Sequence[BadInput], shards: int) -> None:
        self.errors = list(errors)
        message = errors[0].message
        if len(errors) > 1:
            self.details = [error.message for error in errors]
            names = ", ".join(error.file.path for error in errors[:10])
            more = ", ..." if len(errors) > 10 else ""
            message = (
                f"{len(errors):,} of {shards:,} shards cannot be encoded: {names}{more}; a rerun"
                " keeps the others"
            )
        elif shards > 1:
            message += f" (1 of {shards:,} shards; a rerun keeps the others)"
        super().__init__(message)
