"""The commits of a job, `.commits.jsonl`: an object for each, in order. Readers that want more than
the present state find here when it grew, and by what.

The file is replaced in one step, so that no kill can leave a part of a line. It is no
Parquet file, and its name begins with a dot: readers of the data pass it over.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from pipelines.files import outputs
from wordpiece_core.errors import InputError

COMMITS = ".commits.jsonl"
_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string()}


def schema(more: Mapping[str, type]) -> pa.Schema:
    """The fields of a commit: its number, its time, how many files it has, and those of the job,
    which are int or float. A float may be null."""
    fields = {"commit": int, "time": str, "files": int, **more}
    return pa.schema([pa.field(n, _TYPES[kind], kind is float) for n, kind in fields.items()])


def read(path: str, fields: pa.Schema) -> pa.Table:
    """The commits at a path; none if there is no file. InputError if it cannot be read."""
    try:
        return outputs.read_lines(path, fields)
    except InputError as error:
        what = str(error).removesuffix(outputs.FIX)
        raise InputError(f"{what}; restore it, or delete it, and it begins anew") from error


def last(commits: pa.Table) -> int:
    """The number of the last commit; 0 if there is none."""
    return int(commits["commit"][-1].as_py()) if len(commits) else 0


def with_row(commits: pa.Table, row: Mapping[str, Any]) -> pa.Table:
    """The commits and one more, of which only the fields are kept."""
    added = pa.Table.from_pylist([dict(row)], commits.schema)
    return pa.concat_tables([commits, added]).combine_chunks()


def last_row(commits: pa.Table) -> dict[str, Any]:
    """The last commit."""
    row: dict[str, Any] = commits.slice(len(commits) - 1).to_pylist()[0]
    return row


def line(row: Mapping[str, Any]) -> str:
    """A commit for people, on one line."""
    known = {name.replace("_", " "): value for name, value in row.items() if value is not None}
    return ", ".join(f"{name} {_shown(value)}" for name, value in known.items())


def _shown(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def now() -> str:
    """The time of a commit, in UTC, as ISO 8601 writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
