"""Properties of all formats."""

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.io import inputs
from pipelines.io.input_files import ENDINGS
from pipelines.io.inputs import TextColumns, open_shard, plan, read_texts, resolve
from wordpiece_core.limits import Limits

from ..shard_files import (
    COMPRESS,
    fault,
    ipc,
    json_lines,
    parquet,
    rows_of,
    texts,
    texts_of,
    write,
    write_parquet,
)

# --- What every format does -----------------------------------------------------------------------


UNCHECKED = pa.array([b"n\xc3\xa9", b"\xffa\xe2\x82"]).view(pa.string())
FILES = {
    ".parquet": parquet(pa.table({"text": UNCHECKED})),
    ".arrow": ipc(pa.table({"text": UNCHECKED}), False),
    ".txt": b"n\xc3\xa9\n\xffa\xe2\x82",
    ".jsonl": b'\xef\xbb\xbf{"text": "n\xc3\xa9"}\n\n{"text": "\xffa\xe2\x82"}',
    ".csv": b"text\nn\xc3\xa9\n\xffa\xe2\x82",
    ".tsv": b"text\nn\xc3\xa9\n\xffa\xe2\x82",
}
FILES |= {f"{e}.gz": gzip.compress(FILES[e]) for e in (".txt", ".jsonl", ".csv")}
FILES |= {f"{e}.zst": COMPRESS[".zst"](FILES[e]) for e in (".txt", ".jsonl", ".csv")}
every_format = pytest.mark.parametrize("ending", FILES)


def test_every_format_has_a_reader_and_is_tested() -> None:
    assert {name for name, _ in ENDINGS.values()} == inputs.READERS.keys()
    assert {ENDINGS[ending][0] for ending in FILES} == inputs.READERS.keys()


@every_format
def test_invalid_utf8_is_replaced_and_counted(tmp_path: Path, ending: str) -> None:
    file = write(tmp_path / f"a{ending}", FILES[ending])
    (part,) = plan([file], "text")
    for batches in (
        list(read_texts(part, "text")),
        list(open_shard(file, TextColumns()).batches()),
    ):
        assert [text for b in batches for text in b.texts.to_pylist()] == ["né", "�a�"]
        assert sum(b.replaced for b in batches) == 2
        assert sum(b.bytes for b in batches) == 3 + 7
    if ending in (".parquet", ".arrow"):
        column = batches[0].table["text"].cast(pa.binary())
        assert column.to_pylist() == [b"n\xc3\xa9", b"\xffa\xe2\x82"]  # as it was


@every_format
def test_a_truncated_file_is_named(tmp_path: Path, ending: str) -> None:
    data = FILES[ending]
    if ending not in (".txt", ".csv", ".tsv", ".jsonl"):
        for size in (0, 3, len(data) // 2, len(data) - 1):
            file = write(tmp_path / f"a{ending}", data[:size])
            for call in (texts, rows_of):
                assert fault(lambda call=call, file=file: call(file)).startswith(f"{file.path}: ")


@every_format
def test_a_file_that_has_changed_or_is_gone_is_not_called_bad(tmp_path: Path, ending: str) -> None:
    file = write(tmp_path / f"a{ending}", FILES[ending])
    ranges = plan([file], "text")
    write(tmp_path / f"a{ending}", FILES[ending][:-3])
    calls = (lambda: texts_of(ranges), lambda: rows_of(file))
    for call in calls:
        assert fault(call).startswith(
            f"{file.path}: the file has changed since the job started; run"
        )
    Path(file.path).unlink()
    for call in calls:
        assert fault(call).startswith(
            f"{file.path}: the file was removed since the job started; run"
        )


@every_format
def test_absent_columns_are_named(tmp_path: Path, ending: str) -> None:
    file = write(tmp_path / f"a{ending}", FILES[ending])
    message = fault(lambda: open_shard(file, TextColumns(), ["text", "url"]))
    assert message.startswith(f"{file.path}: no column 'url' to keep; it has 'text'")
    if ".txt" not in ending:
        for name in ("body", "text.no", "no.body", "text."):
            columns = TextColumns(name)
            for call in (lambda n=name: texts(file, n), lambda c=columns: open_shard(file, c)):
                found = fault(call)
                assert re.match(f"{file.path}: no (column|key) '{name}'.*; it has 'text' ", found)
                assert "text_column" in found


def test_kept_columns_are_in_the_order_of_the_file_and_text_is_read_anyway(tmp_path: Path) -> None:
    nested = [{"a": 1, "b": [1, 2]}, None]
    table = pa.table({"id": [1, 2], "text": ["x", "y"], "text.n": [3, 4], "meta": nested})
    stored = write_parquet(tmp_path / "a.parquet", table)
    jsonl = write(tmp_path / "a.jsonl", json_lines(table.to_pylist()))
    for file in (stored, jsonl):
        for columns in (None, [], ["meta", "id"], ["text"], ["meta"], ["text.n", "text"]):
            kept = [name for name in table.column_names if columns is None or name in columns]
            shard = open_shard(file, TextColumns(), columns)
            (batch,) = shard.batches()
            assert shard.schema.names == batch.table.column_names == kept
            assert batch.table.schema.equals(shard.schema)
            assert batch.table.num_rows == 2
            assert batch.table.to_pylist() == table.select(kept).to_pylist()
            assert batch.texts.to_pylist() == ["x", "y"]


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


@pytest.mark.parametrize("opened", [1, 2, 3])
def test_only_some_of_many_files_are_opened_for_ranges(tmp_path: Path, opened: int) -> None:
    files = small_files(tmp_path)
    all_of_them = plan(files, "text")
    some = plan(files, "text", limits=Limits(opened_files=opened))
    assert sum(part.end is None for part in some) >= len(files) - 1 - opened
    assert texts_of(some) == texts_of(all_of_them) == ["a", None, "b", "c", "d", "e"]


def test_files_not_opened_for_ranges_have_the_same_errors(
    tmp_path: Path,
) -> None:
    write_parquet(tmp_path / "a.parquet", pa.table({"text": ["a"]}))
    others = [
        write_parquet(tmp_path / "b.parquet", pa.table({"other": ["b"]})),
        write(tmp_path / "c.jsonl", '{"other": "c"}\n'),
        write(tmp_path / "d.parquet", "x\n"),
    ]
    _, *ranges = plan(resolve([str(tmp_path)]), "text", limits=Limits(opened_files=1))
    for file, part in zip(others, ranges, strict=True):
        found = fault(lambda part=part: texts_of([part]))
        alone = fault(lambda file=file: texts(file))
        assert found == alone
        assert found.startswith(f"{file.path}: ")
