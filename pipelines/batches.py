"""Arrow batches as the elements of PCollections: bytes of Arrow's IPC stream format."""

from __future__ import annotations

import pyarrow as pa


def to_bytes(data: object) -> bytes:
    """A record batch, of pyarrow or of the kernel, as bytes."""
    batch = pa.record_batch(data)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def from_bytes(data: bytes) -> pa.RecordBatch:
    """The record batch of `to_bytes`, without a copy."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()
