"""Partial tables on their way from step to step: as bytes, or spilled to files.

Beam's local runner holds in memory what steps pass to each other. So a local run writes tables to
files of a directory on this machine, and elements are references to them. The files are deleted
with the directory. On other runners, the elements are the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from pipelines.io import outputs
from pipelines.io.batches import from_bytes, to_bytes
from pipelines.io.owned import new_id
from pipelines.io.reading import bad_data
from wordpiece_core.storage import StoredFile
from wordpiece_core.uri import is_uri, join

Key = TypeVar("Key")
Table = bytes | tuple[str, int, int]
"""A record batch as bytes, or a reference: the name of a file, the offset of the batch there, and
its size."""

SHUFFLED = "zstd"  # sorted words shrink to a third, and a runner may hold several copies
SPILLED = "lz4"  # faster, for local disks
TABLE_BYTES = 64 << 20  # 280,000 words; a larger table does not fit the CPU cache


@dataclass(frozen=True)
class Spill:
    """Pass tables from step to step.

    Attributes:
        directory: The directory of the files; None to pass bytes.
        least_bytes: Tables that are smaller together are passed as bytes.
    """

    directory: str | None = None
    least_bytes: int = 0

    @classmethod
    def for_run(cls, directory: str, *, is_local: bool, least_bytes: int = 0) -> Spill:
        """Spill to files if all workers and the directory are on this machine."""
        return cls(directory if is_local and not is_uri(directory) else None, least_bytes)

    def table_bytes(self, worker_memory: int) -> int:
        """Return the size at which a worker emits its table. Files make small tables cheap."""
        return worker_memory if self.directory is None else min(worker_memory, TABLE_BYTES)

    def emit(self, tables: Iterable[tuple[Key, object]]) -> Iterator[tuple[Key, Table]]:
        """Make elements of tables of pyarrow or of the kernel, each with its key."""
        if self.directory is None:
            for key, table in tables:
                yield key, to_bytes(table, SHUFFLED)
            return
        encoded = [(key, to_bytes(table, SPILLED)) for key, table in tables]
        if sum(len(table) for _, table in encoded) < max(self.least_bytes, 1):
            yield from encoded
            return
        name, start = f"spill-{new_id()}.arrow", 0
        with outputs.passing_writer(join(self.directory, name)) as stream:
            stream.writelines(table for _, table in encoded)
        for key, table in encoded:
            yield key, (name, start, len(table))
            start += len(table)

    def read(self, table: Table) -> pa.RecordBatch:
        """Read the record batch of an element."""
        if isinstance(table, bytes):
            return from_bytes(table)
        assert self.directory is not None
        name, start, length = table
        path = join(self.directory, name)
        with StoredFile(path) as file, bad_data(path, fix="; run the job again"):
            file.seek(start)
            return from_bytes(file.read(length))
