"""Partial tables on their way from step to step: as bytes, or spilled to files.

Beam's local runner holds in memory what steps pass to each other. So a local run with a local
output writes tables to files in staging, and elements are references to them. The files are
deleted with the staging directory. On other runners, the elements are the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from pipelines.io.batches import from_bytes, to_bytes
from pipelines.io.owned import new_id
from pipelines.io.publishing import Publication
from pipelines.io.reading import bad_data
from wordpiece_core.storage import StoredFile
from wordpiece_core.uri import is_uri

Key = TypeVar("Key")
Table = bytes | tuple[str, int, int]
"""A record batch as bytes, or a reference: the name of a file in staging, the offset of the batch
there, and its size."""

SHUFFLED = "zstd"  # sorted words shrink to a third, and a runner may hold several copies
SPILLED = "lz4"  # faster, for local disks
TABLE_BYTES = 64 << 20  # 280,000 words; a larger table does not fit the CPU cache


@dataclass(frozen=True)
class Spill:
    """Pass tables from step to step.

    Attributes:
        publication: The publication whose staging directory has the files; None to pass bytes.
    """

    publication: Publication | None = None

    @classmethod
    def for_run(cls, publication: Publication, *, is_local: bool) -> Spill:
        """Spill to files if all workers and the output are on this machine."""
        return cls(publication if is_local and not is_uri(publication.output) else None)

    def table_bytes(self, worker_memory: int) -> int:
        """Return the size at which a worker emits its table. Files make small tables cheap."""
        return worker_memory if self.publication is None else min(worker_memory, TABLE_BYTES)

    def emit(self, tables: Iterable[tuple[Key, object]]) -> Iterator[tuple[Key, Table]]:
        """Make elements of tables of pyarrow or of the kernel, each with its key."""
        if self.publication is None:
            for key, table in tables:
                yield key, to_bytes(table, SHUFFLED)
            return
        encoded = [(key, to_bytes(table, SPILLED)) for key, table in tables]
        if not encoded:
            return
        name, start = f"spill-{new_id()}.arrow", 0
        self.publication.write_passing(
            name, lambda stream: stream.writelines(table for _, table in encoded)
        )
        for key, table in encoded:
            yield key, (name, start, len(table))
            start += len(table)

    def read(self, table: Table) -> pa.RecordBatch:
        """Read the record batch of an element."""
        if isinstance(table, bytes):
            return from_bytes(table)
        assert self.publication is not None
        name, start, length = table
        path = self.publication.place(name)
        with StoredFile(path) as file, bad_data(path, fix="; run the job again"):
            file.seek(start)
            return from_bytes(file.read(length))
