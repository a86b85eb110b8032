"""Write record batches as bytes and to files, in Arrow's IPC stream format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from pipelines.io import outputs
from pipelines.io.reading import bad_data
from wordpiece_core.storage import StoredFile


def to_bytes(data: object, compression: str | None = None) -> bytes:
    """Return a record batch of pyarrow or the kernel as bytes. `compression`: "lz4" or "zstd"."""
    batch = pa.record_batch(data)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def from_bytes(data: bytes) -> pa.RecordBatch:
    """Return the record batch from `to_bytes`, without a copy if it was not compressed."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table as one batch."""
    return pa.record_batch([c.combine_chunks() for c in table.columns], names=table.column_names)


def write_batches(path: str, batches: Iterable[object], compression: str | None = None) -> None:
    """Write batches of one schema to a file, which is empty without batches. `compression`: "lz4"
    or "zstd"."""
    all_batches = list(map(pa.record_batch, batches))
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with outputs.atomic_writer(path) as stream:
        if all_batches:
            with pa.ipc.new_stream(stream, all_batches[0].schema, options=options) as writer:
                for batch in all_batches:
                    writer.write_batch(batch)


def read_batches(path: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches in a file that `write_batches` wrote."""
    with StoredFile(path) as source, bad_data(path):
        if source.size():
            with pa.ipc.open_stream(source.arrow()) as reader:
                yield from reader
