"""The status of a shard of an output directory: it is finished, or could not be encoded."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from pipelines.io import outputs
from pipelines.io.input_files import InputFile
from wordpiece_core.errors import ChangedError, ColumnError, InputError

SUMS = (
    *("rows", "input_rows", "nulls", "bytes", "tokens", "unknown_tokens", "words", "word_tokens"),
    *("replaced", "dropped_tokens", "invalid", "output_bytes"),
    *("truncated_rows", "truncated_tokens", "special_tokens"),
)
OF_SHARDS = {"rows", "dropped_tokens", "output_bytes"}
"""The sums of a resharded dataset that are those of its shards. All others are those of its inputs:
which shard has which share of them is not known."""
FILE, COLUMN, CHANGED = "file", "column", "changed"


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A finished shard. `input`: the relative name of the file it was made from. `source`: the size
    of that file and the time of its last change. `rows`: the rows of the shard. `bytes`: the size
    of the texts. `replaced`: the invalid UTF-8 sequences in the texts. `invalid`: those in the kept
    columns, where they stay. `columns`: a digest of the names and types of its columns. The others
    are as in `wordpiece_core.EncodedBatch`."""

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
    columns: str = ""


@dataclass(frozen=True, slots=True)
class WeightedResult(ShardResult):
    """An encoded input whose rows will be assigned to shards. `weights`: the weight of its rows in
    each split. `schema`: its schema as Arrow serializes it, in base64."""

    weights: list[int] = field(default_factory=list)
    schema: str = ""


@dataclass(frozen=True, slots=True)
class ShardError:
    """A shard that could not be encoded. `input`, `source`: see `ShardResult`. `message`: what is
    wrong, with the relative name. `cause`: `FILE` if the file is bad, `COLUMN` if the options do
    not fit it, `CHANGED` if it has changed since the job began."""

    name: str
    input: str
    source: dict[str, Any]
    row_group: int | None
    message: str
    cause: str


ShardStatus = ShardResult | ShardError
Status = TypeVar("Status", bound=ShardStatus)


def source_of(file: InputFile) -> dict[str, Any]:
    """The values that identify the version of a file."""
    return {"bytes": file.size, "modified": file.modified}


def shard_error(file: InputFile, name: str, error: InputError) -> ShardError:
    """The status of a shard that could not be encoded."""
    cause = FILE
    if isinstance(error, ColumnError | ChangedError):
        cause = COLUMN if isinstance(error, ColumnError) else CHANGED
    message = str(error).replace(file.path, file.name)
    return ShardError(name, file.name, source_of(file), error.row_group, message, cause)


def is_of(status: ShardStatus, file: InputFile) -> bool:
    """Whether a status is that of a file as it is now."""
    return (status.input, status.source) == (file.name, source_of(file))


def plain(status: ShardStatus, kind: type[ShardStatus] | None = None) -> dict[str, Any]:
    """A status as JSON can hold it; with `kind`, only what this class has."""
    return {field.name: getattr(status, field.name) for field in fields(kind or status)}


_KINDS = {
    frozenset(field.name for field in fields(kind)): kind
    for kind in (ShardResult, WeightedResult, ShardError)
}
_TYPES = {"str": str, "int": int, "dict[str, Any]": dict, "list[int]": list}


def of_object(value: dict[str, Any]) -> Any:
    """A status, if a JSON object is one; otherwise the object. (A status takes far less memory.)"""
    kind = _KINDS.get(frozenset(value))
    if kind is None:
        return value
    types = ((field.name, _TYPES.get(str(field.type), object)) for field in fields(kind))
    return kind(**value) if all(isinstance(value[name], of) for name, of in types) else value


def checked(values: Any, path: str, kind: type[Status] | tuple[type[Status], ...]) -> list[Status]:
    """The values, which must be statuses. InputError otherwise."""
    if not isinstance(values, list) or not all(isinstance(v, kind) for v in values):
        raise outputs.damaged(path)
    return values


def read_object(path: str) -> dict[str, Any] | None:
    """The object of a JSON file that contains statuses; None if there is no such file. InputError
    if it is damaged."""
    value = outputs.read_json(path, of_object)
    if value is not None and not isinstance(value, dict):
        raise outputs.damaged(path)
    return value
