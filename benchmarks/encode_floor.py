"""`wordpiece encode` with its kernel taken out: pages made before are copied instead. All else is
the same process: reading, decompressing, checking, writing. No encoder can be faster.

Arguments: directory of shards made before, arguments of `wordpiece`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Arrow is loaded after its allocator is chosen.
if TYPE_CHECKING:
    from pipelines.encoding.pieces import Part
    from pipelines.encoding.shard_encoder import EncodedPiece, Piece, ShardEncoder
    from pipelines.encoding.shard_writer import ShardWriter
    from pipelines.files.outputs import NewFile

IDS = "input_ids"


def take_kernel_out(made: str) -> None:
    """From here on shards are written by copying the column chunks of those in `made`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pipelines.encoding.pieces import row_groups
    from pipelines.encoding.shard_encoder import EncodedPiece, ShardEncoder
    from pipelines.encoding.shard_writer import ShardWriter
    from pipelines.files import parquet_input
    from pipelines.files.outputs import empty_parquet
    from pipelines.running.threads import ahead
    from wordpiece_core import EncodedBatch
    from wordpiece_core._kernel import ChunkSource, ShardFile

    def encode(encoder: ShardEncoder, piece: Piece) -> EncodedPiece:
        ids = pa.table({IDS: pa.nulls(len(piece.texts), pa.list_(pa.int32()))})
        return EncodedPiece(piece, EncodedBatch(ids, None, 0, 0, 0, 0, 0, 0))

    def write(writer: ShardWriter, stream: NewFile, parts: Iterator[Part]) -> None:
        empty = empty_parquet(writer.schema)
        with (Path(made) / Path(stream.path).name).open("rb") as shard:
            footer = io.BytesIO()
            pq.read_metadata(shard).write_metadata_file(footer)
            codec = writer.options["compression"]
            source = ChunkSource(footer.getvalue(), empty, compression=codec)
            file = ShardFile(empty, IDS, None)
            for group, _ in enumerate(ahead(lambda: row_groups(parts), 1)):
                data = []
                for start, length in source.ranges(group):
                    shard.seek(start)
                    data.append(shard.read(length))
                stream.write(file.add_row_group(None, source.chunks(group, data), []))
            stream.write(file.finish())

    parquet_input.MAX_COPIED_BYTES = -1  # the chunks come from the other shards
    setattr(ShardEncoder, "_encode", encode)  # noqa: B010
    setattr(ShardWriter, "write", write)  # noqa: B010


def main() -> None:
    """Runs the command, with its allocator and its way out."""
    from pipelines.commands import cli, program

    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", program.ARROW_MEMORY)
    take_kernel_out(sys.argv.pop(1))
    cli.main()


if __name__ == "__main__":
    main()
