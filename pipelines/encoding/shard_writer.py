"""The Parquet file of a shard, put together from row groups.

The kernel makes the pages of `input_ids`, part by part. Column chunks of the input are copied if a
row group has the same rows. All other columns are written by pyarrow, one row group at a time,
while the next row group is filled and the one before is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow as pa

from pipelines.encoding.pieces import Part, row_groups
from pipelines.io.outputs import NewFile, empty_parquet, parquet_bytes
from pipelines.threads import ahead, in_threads
from wordpiece_core._kernel import Chunks, IdPages, Pages, ShardFile
from wordpiece_core.limits import Limits

IDS = "input_ids"
KERNEL_COMPRESSIONS = ("zstd", "lz4", "snappy", "none")


@cache
def id_pages(tokens: int, compression: str) -> IdPages | None:
    """Return the writer of pages of ids of a vocabulary, or None if the kernel lacks the codec. All
    shards of a process share it, because it compresses the dictionary once."""
    known = compression in KERNEL_COMPRESSIONS
    return IdPages(tokens=tokens, compression=compression) if known else None


@dataclass(frozen=True)
class ShardWriter:
    """Write one shard.

    Attributes:
        options: How pyarrow stores columns.
        maker: The writer of pages of ids.
    """

    schema: pa.Schema
    options: dict[str, Any]
    maker: IdPages | None
    threads: int
    limits: Limits

    def write(self, file: NewFile, parts: Iterator[Part]) -> ShardFile:
        """Write parts in order. Returns the shard, whose footer is to be written."""
        shard = ShardFile(empty_parquet(self.schema), IDS, self.maker)
        compressed = in_threads(self._compressed, parts, self.threads)
        most_bytes = self.limits.row_group_bytes
        joined = ahead(lambda: row_groups(compressed, most_bytes), self.threads)
        for others, copied, pages in ahead(lambda: map(self._row_group, joined), self.threads):
            file.write(shard.add_row_group(others, copied, pages))
        return shard

    def _compressed(self, part: Part) -> Part:
        """Add the size of a part and, unless there are few ids, their pages."""
        part = replace(part, size=self._size(part))
        if part.pages or not self._has_pages([part]):
            return part
        return replace(part, table=part.table.drop_columns([IDS]), pages=self._pages(part))

    def _size(self, part: Part) -> int:
        """Return the bytes of a part in memory, as Arrow counts them."""
        size: int = part.table.nbytes
        if pages := part.pages:
            id_bytes = self.schema.field(IDS).type.value_type.bit_width // 8
            nulls = -(-pages.rows // 8) if pages.nulls else 0
            size += id_bytes * pages.ids + 4 * pages.rows + nulls
        return size

    def _row_group(self, parts: Sequence[Part]) -> tuple[bytes | None, Chunks | None, list[Pages]]:
        """Return a row group as a Parquet file with the columns that are in neither of the others,
        chunks of the input, and pages of ids."""
        copied = _copied_chunks(parts)
        done = {IDS} if self._has_pages(parts) else set()
        pages = [self._pages(part) for part in parts] if done else []
        done.update(copied.names if copied else ())
        names = [name for name in self.schema.names if name not in done]
        if not names:
            return None, copied, pages
        table = pa.concat_tables(part.table.select(names) for part in parts)
        return parquet_bytes(table, store_schema=False, **self.options), copied, pages

    def _has_pages(self, parts: Sequence[Part]) -> bool:
        """Return True if the kernel makes the pages of ids. pyarrow does if there are few."""
        if any(part.pages for part in parts):
            return True
        ids = sum(number_of_ids(part.table) for part in parts)
        return self.maker is not None and ids >= self.limits.dictionary_ids

    def _pages(self, part: Part) -> Pages:
        assert self.maker is not None
        return part.pages or self.maker.pages(part.table.column(IDS).chunks)


def _copied_chunks(parts: Sequence[Part]) -> Chunks | None:
    """Return the chunks to copy, if the row group has all rows of the one in the input."""
    chunks = parts[0].chunks
    if chunks is None or chunks.rows != sum(part.table.num_rows for part in parts):
        return None
    return chunks


def number_of_ids(table: pa.Table) -> int:
    """Return the number of ids in the lists of a table."""
    chunks = table.column(IDS).chunks
    return sum(chunk.offsets[-1].as_py() - chunk.offsets[0].as_py() for chunk in chunks)
