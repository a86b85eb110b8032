"""The text of whole-corpus checks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq


def texts_by_language(given: Sequence[str]) -> dict[str, list[str]]:
    """Read the column `text` of Parquet files and directories, without nulls. Files whose names are
    equal up to the first digit are one language.

    Raises FileNotFoundError if there is no file.
    """
    roots = [Path(path) for path in given]
    texts: dict[str, list[str]] = {}
    for path in (path for root in roots for path in sorted(root.glob("**/*.parquet")) or [root]):
        name = re.split(r"[-_.]?\d", path.stem)[0] or path.stem
        column = pq.read_table(path, columns=["text"])["text"].drop_null()
        texts.setdefault(name, []).extend(column.to_pylist())
    return texts
