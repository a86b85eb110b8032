"""The generated word table is one, of exactly the words asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import generate
from pipelines.counting.word_table import SCHEMA


@pytest.mark.parametrize("size", [1, 2, 3000, 20_000])
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


def test_the_table_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        generate.write_table(2000, tmp_path / name)
    parts = [(tmp_path / name / "part-00000.parquet").read_bytes() for name in ("a", "b")]
    assert parts[0] == parts[1]


def test_a_hash_of_parts_is_that_of_the_whole() -> None:
    words = next(generate.distinct_words(500)).to_pylist()
    assert len({generate.string_hash(word) for word in words}) == len(words)
    power = pow(int(generate.FACTOR), len("ness"), 1 << 64)
    whole = generate.string_hash("kind") * power + generate.string_hash("ness")
    assert generate.string_hash("kindness") == whole % (1 << 64)
