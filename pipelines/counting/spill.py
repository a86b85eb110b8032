"""Tables that the steps of `count` pass to each other: as bytes, or spilled to files.

Beam's local runner holds in memory all that steps pass to each other. So in a local run that writes
to a local directory, tables are written to files in staging, and elements say where they are. These
files are deleted with the staging directory. On other runners, the elements are the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
"""A record batch as bytes; or the name of a file in staging, the first byte there, and how many."""

SHUFFLED = "zstd"  # ordered words shrink to a third, and a runner may hold several copies of them
TABLE_BYTES = 64 << 20  # 280,000 words; a larger table is not faster: it does not fit the CPU cache
IN_FILES = "lz4"  # of a local disk, which is quick


@dataclass(frozen=True)
class Spill:
    """Passes tables from step to step. `publication`: in whose staging directory their files are;
    None to pass them as bytes."""

    publication: Publication | None = None

    @classmethod
    def in_run(cls, publication: Publication, *, is_local: bool) -> Spill:
        """By name, where all workers are on this machine and the output is on its disk."""
        return cls(publication if is_local and not is_uri(publication.output) else None)

    def most_bytes(self, worker_memory: int) -> int:
        """How large the table of a worker grows until it is passed on. That costs little by name,
        so by name no more is taken than makes counting quicker."""
        return worker_memory if self.publication is None else min(worker_memory, TABLE_BYTES)

    def give(self, tables: Iterable[tuple[Key, object]]) -> Iterator[tuple[Key, Table]]:
        """Tables of pyarrow or of the kernel as elements, each with its key."""
        if self.publication is None:
            for key, table in tables:
                yield key, to_bytes(table, SHUFFLED)
            return
        encoded = [(key, to_bytes(table, IN_FILES)) for key, table in tables]
        if encoded:
            yield from self._write(self.publication, encoded)

    def _write(
        self, publication: Publication, encoded: Sequence[tuple[Key, bytes]]
    ) -> Iterator[tuple[Key, Table]]:
        name = f"spill-{new_id()}.arrow"

        def write(stream: pa.NativeFile) -> None:
            for _, table in encoded:
                stream.write(table)

        publication.write_passing(name, write)
        start = 0
        for key, table in encoded:
            yield key, (name, start, len(table))
            start += len(table)

    def take(self, table: Table) -> pa.RecordBatch:
        """The record batch of an element."""
        if isinstance(table, bytes):
            return from_bytes(table)
        assert self.publication is not None
        name, start, length = table
        path = self.publication.place(name)
        with StoredFile(path) as file, bad_data(path, fix="; run the job again"):
            file.seek(start)
            return from_bytes(file.read(length))
