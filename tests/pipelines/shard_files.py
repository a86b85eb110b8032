"""Files to read in tests, and what reading gives."""

import gzip
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

import pipelines.encoding.options  # noqa: F401 - errors name its options
from pipelines.io.inputs import (
    InputFile,
    Range,
    TextColumns,
    open_shard,
    plan,
    read_texts,
    resolve,
)
from wordpiece_core.errors import InputError
from wordpiece_core.limits import LIMITS, Limits

sizes = st.integers(1, 50)
characters = st.text(st.sampled_from('aé😀 "\\\n\r{},\x00'), max_size=6)


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd}


def write(path: Path, data: bytes | str = b"x\n") -> InputFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return resolve([str(path)])[0]


def write_raw(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x\n")


def write_parquet(
    path: Path, table: pa.Table, rows: int | None = None, **options: Any
) -> InputFile:
    pq.write_table(table, path, row_group_size=rows, **options)
    return resolve([str(path)])[0]


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2, **options)
    return sink.getvalue()


def ipc(table: pa.Table, stream: bool, rows: int = 2, **options: Any) -> bytes:
    sink = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


@contextmanager
def new_file(ending: str, data: bytes) -> Iterator[InputFile]:
    with tempfile.TemporaryDirectory() as directory:
        yield write(Path(directory) / f"shard{ending}", data)


def texts_of(
    ranges: list[Range], column: str = "text", limits: Limits = LIMITS
) -> list[str | None]:
    return [
        text
        for part in ranges
        for batch in read_texts(part, column, limits=limits)
        for text in batch.texts.to_pylist()
    ]


def texts(
    file: InputFile, column: str = "text", range_bytes: int = 1 << 20, limits: Limits = LIMITS
) -> list[str | None]:
    return texts_of(plan([file], column, range_bytes, limits=limits), column, limits)


def rows_of(
    file: InputFile, columns: list[str] | None = None, limits: Limits = LIMITS
) -> list[dict[str, object]]:
    batches = open_shard(file, TextColumns(), columns, limits=limits).batches()
    return [row for batch in batches for row in batch.table.to_pylist()]


def fault(call: Callable[[], object]) -> str:
    """The one line of the InputError that a call must raise."""
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


def json_lines(rows: list[dict[str, object] | None], end: str = "\n") -> bytes:
    return "".join(
        ("" if row is None else json.dumps(row, ensure_ascii=False)) + end for row in rows
    ).encode()
