"""`wordpiece encode` with its kernel taken out: ids made before are copied instead. All else is
the same process: reading, decompressing, compressing, writing. No encoder can be faster.

Arguments: directory of ids (from `write_ids`), arguments of `wordpiece`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

# Arrow is loaded after its allocator is chosen.
if TYPE_CHECKING:
    from pipelines.encoding.shard_encoder import Piece

IDS = "input_ids"


def write_ids(encoded: Path, ids: Path) -> None:
    """The ids of encoded shards as files to be mapped into memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids.mkdir(exist_ok=True)
    for path in encoded.glob("*.parquet"):
        column = pq.read_table(path, columns=[IDS])[IDS].combine_chunks()
        batch = pa.record_batch([column], [IDS])
        with pa.ipc.new_file(str(ids / f"{path.stem}.arrow"), batch.schema) as writer:
            writer.write_batch(batch)


def take_kernel_out(ids: str) -> None:
    """From here on shards are encoded by copying."""
    import pyarrow as pa

    from pipelines.encoding.shard_encoder import ShardEncoder
    from wordpiece_core import EncodedBatch

    def copied(encoder: ShardEncoder, piece: Piece) -> tuple[Piece, EncodedBatch]:
        path = Path(ids) / f"{Path(encoder.file.name).stem}.arrow"
        with pa.memory_map(str(path)) as file:
            made = pa.ipc.open_file(file).get_batch(0).column(0)
        rows = pa.concat_arrays([made.slice(piece.first_row, len(piece.texts))])  # copies
        table = pa.table([rows], schema=pa.schema([(IDS, rows.type)]))
        return piece, EncodedBatch(table, None, len(rows.values), 0, 0, 0)

    setattr(ShardEncoder, "_encode", copied)  # noqa: B010


def main() -> None:
    """Runs the command, with its allocator and its way out."""
    from pipelines.commands import cli

    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", cli.ARROW_MEMORY)
    take_kernel_out(sys.argv.pop(1))
    cli.main()


if __name__ == "__main__":
    main()
