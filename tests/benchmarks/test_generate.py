"""The generated word table is one, of exactly the words asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import generate
from pipelines.counting.word_table import SCHEMA


@pytest.mark.parametrize("size", [1, 3000])
def test_the_table_has_distinct_words_in_the_order_of_word_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(generate, "PART_ROWS", 700)
    monkeypatch.setattr(generate, "DRAWS", 5000)
    generate.write_table(size, tmp_path / "words")
    table = pa.concat_tables(
        pq.read_table(path, partitioning=None) for path in sorted((tmp_path / "words").iterdir())
    )
    assert table.schema.equals(SCHEMA)
    words, counts = table["word"].to_pylist(), table["count"].to_pylist()
    assert len(words) == len(set(words)) == size
    assert "" not in words
    assert counts == [(size + 3) // (rank + 3) for rank in range(1, size + 1)]
    rows = list(zip(words, counts, strict=True))
    assert rows == sorted(rows, key=lambda row: (-row[1], row[0]))
