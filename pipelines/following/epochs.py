"""The table of a job's commits, `_epochs.parquet`: a row for each, in order. Readers that want more
than the present state find here when it grew, and by what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from pipelines.files import outputs
from wordpiece_core.errors import InputError

EPOCHS = "_epochs.parquet"
_TYPES = {int: pa.int64(), float: pa.float64(), datetime: pa.timestamp("us", "UTC")}


def schema(more: Mapping[str, type]) -> pa.Schema:
    """The schema of a table of epochs. `more`: the columns of the job, int or float, after the
    number of the epoch, the time of its commit, and the number of its files."""
    columns = {"epoch": int, "committed": datetime, "files": int, **more}
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()])


def read(path: str, columns: pa.Schema) -> pa.Table:
    """The table at a path; without rows if there is none. InputError if it cannot be read."""
    try:
        return outputs.read_rows(path, columns)
    except InputError as error:
        what = str(error).removesuffix(outputs.MEND)
        raise InputError(f"{what}; restore it, or delete it, and it begins anew") from error


def last(epochs: pa.Table) -> int:
    """The number of the last epoch; 0 if there is none."""
    return int(epochs["epoch"][-1].as_py()) if len(epochs) else 0


def with_row(epochs: pa.Table, row: Mapping[str, Any]) -> pa.Table:
    """The table and one row more. Columns that the row lacks are null."""
    added = pa.Table.from_pylist([dict(row)], epochs.schema)
    return pa.concat_tables([epochs, added]).combine_chunks()


def last_row(epochs: pa.Table) -> dict[str, Any]:
    """The row of the last epoch."""
    row: dict[str, Any] = epochs.slice(len(epochs) - 1).to_pylist()[0]
    return row


def line(row: Mapping[str, Any]) -> str:
    """A row for people, on one line."""
    known = {name.replace("_", " "): value for name, value in row.items() if value is not None}
    return ", ".join(f"{name} {shown(value)}" for name, value in known.items())


def shown(value: Any) -> str:
    """A value of a row for people. Times are in the form that JSON has too."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def now() -> datetime:
    """The time of a commit."""
    return datetime.now(UTC)
