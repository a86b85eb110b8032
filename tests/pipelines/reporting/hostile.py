"""A report on words, groups and files that try to be more than text."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import pipelines
from pipelines.reporting.report import Report

WORDS = [
    "</script><img/onerror=alert(1)/src=x>",
    "<svg/onload=alert(2)>",
    "</style><!--",
    "]]></title>",
    "&lt;b&gt;&quot;",
    "{{7*7}}${7*7}",
    "'\"`-->",
    "\u202eabc\u2066",
    "a\u200bb\u200f",
    "\u0301x",
    "שלום",
    "مرحبا",
    "\u0007bell\x7f",
]
GROUPS = ["<script>alert(3)</script>", "עברית\u202e", "a&b\n\u2028"]
NAME = "<img src=x onerror=alert(4)>.parquet"


def hostile_report(folder: Path) -> Report:
    """A report on the words, by a tokenizer that has learned them, compared with another."""
    table = pa.table({"word": WORDS, "count": pa.array(range(len(WORDS), 0, -1), pa.int64())})
    words = folder / "words"
    words.mkdir()
    pq.write_table(table, words / "part.parquet")
    options = {"pre_tokenizer": "whitespace", "clean_text": False, "min_pair_count": 1}
    for name, size in (("</title><b>", 400), ("other", 130)):
        place = folder / name.replace("/", "\u2044")
        pipelines.train(
            word_counts=str(words), output=str(place), vocab_size=size, quiet=True, **options
        )
    texts = folder / "<i>texts"
    texts.mkdir()
    rows = [
        {"text": f"{word} {word}x plain", "group": GROUPS[i % 3]} for i, word in enumerate(WORDS)
    ]
    pq.write_table(pa.Table.from_pylist(rows), texts / NAME)
    return pipelines.report(
        str(folder / "<\u2044title><b>"),
        on=[str(texts / NAME)],
        group_column="group",
        compare_with=str(folder / "other"),
        output=str(folder / "report.html"),
        quiet=True,
    )
