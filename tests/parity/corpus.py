"""The text and the vocabularies that whole-corpus checks run on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

SHARED = Path(__file__).parents[3] / "shared"
VOCABULARIES = SHARED / "vocab"


def texts_by_language(given: Sequence[str]) -> dict[str, list[str]]:
    """The column `text` of Parquet files and of directories of them, nulls left out. Files whose
    names are the same up to the first digit are one language. Default: the shared corpus.

    Raises FileNotFoundError if there is no file.
    """
    roots = [Path(path) for path in given] or [SHARED / "corpus"]
    texts: dict[str, list[str]] = {}
    for path in (path for root in roots for path in sorted(root.glob("**/*.parquet")) or [root]):
        name = re.split(r"[-_.]?\d", path.stem)[0] or path.stem
        column = pq.read_table(path, columns=["text"])["text"].drop_null()
        texts.setdefault(name, []).extend(column.to_pylist())
    return texts
