"""What holds for every format."""

import gzip
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.files import inputs
from pipelines.files.inputs import Range, TextColumns, open_shard, plan, resolve

from ..shard_files import (
    COMPRESS,
    fault,
    json_lines,
    rows_of,
    texts,
    texts_of,
    write,
    write_parquet,
    write_raw,
)


def test_an_empty_text_file_has_no_rows(tmp_path: Path) -> None:
    for ending in (".txt", ".jsonl"):
        file = write(tmp_path / f"a{ending}", b"")
        assert plan([file], "text") == []
        assert rows_of(file) == []
        assert open_shard(file, TextColumns()).schema == pa.schema([("text", pa.string())])


@pytest.mark.parametrize("ending", [".txt.gz", ".txt.zst", ".jsonl.gz", ".jsonl.zst"])
def test_a_truncated_compressed_file_is_named(tmp_path: Path, ending: str) -> None:
    packed = COMPRESS["." + ending.split(".")[2]](b'{"text": "a"}\n' * 1000)
    for size in (0, 3, len(packed) - 1):
        file = write(tmp_path / f"a{ending}", packed[:size])
        assert fault(lambda file=file: texts(file)).startswith(f"{file.path}: ")
        assert fault(lambda file=file: rows_of(file)).startswith(f"{file.path}: ")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    for ending in inputs.ENDINGS:
        file = write(tmp_path / f"a{ending}", b"x")
        (tmp_path / f"a{ending}").unlink()
        message = fault(lambda file=file: texts_of([Range(file, 0, 1, 1)]))
        assert message.startswith(f"{file.path}: ")
        assert message.endswith(": it is gone since the job began; run the job again")


def test_a_file_that_changed_after_it_was_resolved_is_refused(tmp_path: Path) -> None:
    for ending, pack in [(".txt", bytes), (".jsonl.gz", gzip.compress), (".parquet", bytes)]:
        file = write(tmp_path / f"a{ending}", pack(b'{"text": "a"}\n'))
        write(tmp_path / f"a{ending}", pack(b'{"text": "a"}\n{"text": "b"}\n'))
        message = fault(lambda file=file: texts(file))
        assert message == f"{file.path}: it has changed since the job began; run the job again"


def test_kept_columns_are_in_the_order_of_the_file_and_text_is_read_anyway(tmp_path: Path) -> None:
    nested = [{"a": 1, "b": [1, 2]}, None]
    table = pa.table({"id": [1, 2], "text": ["x", "y"], "text.n": [3, 4], "meta": nested})
    parquet = write_parquet(tmp_path / "a.parquet", table)
    jsonl = write(tmp_path / "a.jsonl", json_lines(table.to_pylist()))
    for file in (parquet, jsonl):
        for columns in (None, [], ["meta", "id"], ["text"], ["meta"], ["text.n", "text"]):
            kept = [name for name in table.column_names if columns is None or name in columns]
            shard = open_shard(file, TextColumns(), columns)
            (batch,) = shard.batches()
            assert shard.schema.names == batch.table.column_names == kept
            assert batch.table.schema.equals(shard.schema)
            assert batch.table.num_rows == 2
            assert batch.table.to_pylist() == table.select(kept).to_pylist()
            assert batch.texts.to_pylist() == ["x", "y"]


def test_absent_columns_to_keep_are_named(tmp_path: Path) -> None:
    rows = [{"text": "a", "id": 1}]
    files = [
        write_parquet(tmp_path / "a.parquet", pa.Table.from_pylist(rows)),
        write(tmp_path / "a.jsonl", json_lines(rows)),
        write(tmp_path / "a.txt", "a\n"),
    ]
    for file in files:
        message = fault(lambda file=file: open_shard(file, TextColumns(), ["text", "url"]))
        assert message.startswith(f"{file.path}: no column 'url' to keep; it has 'text'")


def test_the_first_bad_file_of_many_is_named(tmp_path: Path) -> None:
    for i in range(40):
        write_raw(tmp_path / f"{i:02}.parquet")
    assert fault(lambda: plan(resolve([str(tmp_path)]), "text")).startswith(f"{tmp_path}/00.par")


SMALL = {
    "a.parquet": pa.table({"text": ["a", None]}),
    "b.jsonl": b'{"text": "b"}\n',
    "c.parquet": pa.table({"text": ["c"]}),
    "d.jsonl.gz": gzip.compress(b'{"text": "d"}\n'),
    "e.txt": b"e\n",
    "f.parquet": pa.table({"text": pa.array([], pa.string())}),
    "g.jsonl": b"",
}


def small_files(folder: Path) -> list[inputs.InputFile]:
    for name, content in SMALL.items():
        path = folder / name
        if isinstance(content, pa.Table):
            write_parquet(path, content)
        else:
            write(path, content)
    return resolve([str(folder)])


@pytest.mark.parametrize("looked_into", [1, 2, 3])
def test_of_very_many_files_some_are_looked_into_and_the_ranges_have_all_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked_into: int
) -> None:
    files = small_files(tmp_path)
    all_of_them = plan(files, "text")
    monkeypatch.setattr(inputs, "LOOKED_INTO", looked_into)
    some = plan(files, "text")
    assert sum(part.end is None for part in some) >= len(files) - 1 - looked_into
    assert texts_of(some) == texts_of(all_of_them) == ["a", None, "b", "c", "d", "e"]


def test_what_is_wrong_with_a_file_that_was_not_looked_into_is_said_by_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "LOOKED_INTO", 1)
    write_parquet(tmp_path / "a.parquet", pa.table({"text": ["a"]}))
    others = [
        write_parquet(tmp_path / "b.parquet", pa.table({"other": ["b"]})),
        write(tmp_path / "c.jsonl", '{"other": "c"}\n'),
        write(tmp_path / "d.parquet", "x\n"),
    ]
    _, *ranges = plan(resolve([str(tmp_path)]), "text")
    for file, part in zip(others, ranges, strict=True):
        found = fault(lambda part=part: texts_of([part]))
        alone = fault(lambda file=file: texts(file))
        assert found == alone
        assert found.startswith(f"{file.path}: ")


def test_ranges_can_be_sent_to_another_process(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "b.txt", "x\ny\n"),
        write_parquet(tmp_path / "a.parquet", pa.table({"text": ["a"]})),
    ]
    ranges = plan(files, "text", 1)
    assert pickle.loads(pickle.dumps(ranges)) == ranges
    assert [part.file for part in ranges] == [files[0]] * 4 + [files[1]]
    assert len(set(ranges)) == 5
