"""Storage of shards: copied columns, pages of the kernel, and readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wordpiece_core.limits import LIMITS, Limits

from ...quick import parametrize
from ..corpora import done, english, files_below, multilingual, train_tokenizer, write_shard

TEXTS: list[str | None] = [None, "", *multilingual(200), None, None, ""]
IDS = "input_ids.list.element"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = [text for text in TEXTS if text]
    return train_tokenizer(tmp_path_factory.mktemp("t"), texts, "--vocab-size", "500")


@pytest.fixture(params=[0, 3000])
def small(request: pytest.FixtureRequest) -> Limits:
    """The kernel writes ids of small row groups too, by single pieces or by row groups."""
    return Limits(piece_bytes=2000, dictionary_ids=request.param)


def encode(
    tokenizer: str, output: Path, shard: Path | str, *args: str, limits: Limits = LIMITS
) -> Path:
    command = ["encode", shard, "--tokenizer", tokenizer, "--output", output]
    done(*command, *args, limits=limits)
    (path,) = output.glob("*.parquet")
    return path


def source(path: Path, **options: Any) -> Path:
    """A Parquet file with columns of several kinds."""
    columns = {
        "id": range(len(TEXTS)),
        "text": TEXTS,
        "tags": [["a", None], None, []] * (len(TEXTS) // 3) + [["z"]] * (len(TEXTS) % 3),
        "weight": pa.array([i / 7 for i in range(len(TEXTS))]),
    }
    pq.write_table(pa.table(columns), path, row_group_size=90, **options)
    return path


def chunks(path: Path) -> list[dict[str, bytes]]:
    """The bytes of the column chunks, by row group and path."""
    data, metadata = path.read_bytes(), pq.read_metadata(path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    found = []
    for group in groups:
        columns = [group.column(i) for i in range(group.num_columns)]
        starts = [c.dictionary_page_offset or c.data_page_offset for c in columns]
        found.append(
            {
                c.path_in_schema: data[start : start + c.total_compressed_size]
                for c, start in zip(columns, starts, strict=True)
            }
        )
    return found


def test_kept_columns_are_copied_as_they_are(tmp_path: Path, tokenizer: str, small: Limits) -> None:
    shard = source(tmp_path / "shard.parquet", compression="zstd", compression_level=9)
    path = encode(tokenizer, tmp_path / "out", shard, limits=small)
    before, after = chunks(shard), chunks(path)
    assert [{k: v for k, v in group.items() if k != IDS} for group in after] == before
    table = pq.read_table(path)
    assert table.drop_columns("input_ids") == pq.read_table(shard)


def test_kept_columns_are_written_anew_where_rows_or_compression_differ(
    tmp_path: Path, tokenizer: str, small: Limits
) -> None:
    shard = source(tmp_path / "shard.parquet", compression="zstd", compression_level=9)
    whole = pq.read_table(encode(tokenizer, tmp_path / "out", shard, limits=small))
    before = chunks(shard)
    lz4 = encode(tokenizer, tmp_path / "lz4", shard, "--compression", "lz4", limits=small)
    assert [group["text"] for group in chunks(lz4)] != [group["text"] for group in before]
    limits = replace(small, row_group_bytes=10_000)
    cut = encode(tokenizer, tmp_path / "cut", shard, limits=limits)
    assert len(chunks(cut)) > len(before)
    # Estimates from footers do not increase the bounded memory.
    anew = encode(tokenizer, tmp_path / "anew", shard, limits=Limits(copied_bytes=100))
    assert chunks(anew)[0]["text"] != before[0]["text"]
    for path in (lz4, cut, anew):
        assert pq.read_table(path) == whole


def test_files_of_other_writers_are_written_anew_where_they_are_stored_otherwise(
    tmp_path: Path, tokenizer: str, small: Limits
) -> None:
    when = pa.array(range(len(TEXTS)), pa.timestamp("us"))
    options = {"use_deprecated_int96_timestamps": True, "use_compliant_nested_type": False}
    tags = [["a"]] * len(TEXTS)
    table = pa.table({"text": TEXTS, "when": when, "tags": tags})
    pq.write_table(table, tmp_path / "shard.parquet", compression="zstd", **options)
    path = encode(tokenizer, tmp_path / "out", tmp_path / "shard.parquet", limits=small)
    assert pq.read_table(path).drop_columns("input_ids").equals(table)
    (before,), (after,) = chunks(tmp_path / "shard.parquet"), chunks(path)
    assert after["text"] == before["text"]
    assert after["when"] != before["when"]


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
@parametrize("threads", [1, 5], quick=1)
def test_rows_do_not_depend_on_threads_or_on_the_writer_of_ids(
    tmp_path: Path,
    tokenizer: str,
    ending: str,
    threads: int,
    small: Limits,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shard = write_shard(tmp_path / f"shard{ending}", english(300), rows_per_group=120)
    options = ["--columns", "attention_mask,num_tokens", "--max-length", "60"]
    usual = encode(tokenizer, tmp_path / "usual", shard, *options, limits=small)
    assert pq.read_metadata(usual).row_group(0).column(0).compression == "ZSTD"
    monkeypatch.setattr("pipelines.encoding.pipeline.local_cores", lambda: threads)
    encode(tokenizer, tmp_path / "out", shard, *options, limits=small)
    assert files_below(tmp_path / "out") == files_below(tmp_path / "usual")
    limits = replace(small, dictionary_ids=1 << 40)
    by_pyarrow = encode(tokenizer, tmp_path / "by-pyarrow", shard, *options, limits=limits)
    read, by_kernel = pq.read_table(by_pyarrow), pq.read_table(usual)
    assert read == by_kernel
    assert read.schema.equals(by_kernel.schema, check_metadata=True)


def read_duckdb(path: Path) -> list[Any]:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    rows = duckdb.connect().execute("SELECT input_ids FROM read_parquet(?)", [str(path)])
    return [row[0] for row in rows.fetchall()]


def read_polars(path: Path) -> list[Any]:
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    ids: list[Any] = polars.read_parquet(path)["input_ids"].to_list()
    return ids


def read_fastparquet(path: Path) -> list[Any]:
    fastparquet = pytest.importorskip("fastparquet", reason="fastparquet is not installed")
    rows = fastparquet.ParquetFile(str(path)).to_pandas()["input_ids"]
    return [None if row is None else list(row) for row in rows]


def read_datasets(path: Path) -> list[Any]:
    datasets = pytest.importorskip("datasets")
    files = {"data_files": str(path), "cache_dir": str(path.parent / "cache")}
    return [*datasets.load_dataset("parquet", split="train", **files)["input_ids"]]


READERS = [read_duckdb, read_polars, read_fastparquet, read_datasets]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__[5:])
@pytest.mark.parametrize("options", [[], ["--id-type", "uint16", "--compression", "lz4"]])
def test_other_readers_read_the_ids(
    tmp_path: Path,
    tokenizer: str,
    read: Callable[[Path], list[Any]],
    options: list[str],
) -> None:
    shard = source(tmp_path / "shard.parquet", compression="zstd")
    path = encode(tokenizer, tmp_path / "out", shard, *options, limits=Limits(dictionary_ids=0))
    assert pq.read_metadata(path).row_group(0).column(4).has_dictionary_page
    assert read(path) == pq.read_table(path)["input_ids"].to_pylist()
