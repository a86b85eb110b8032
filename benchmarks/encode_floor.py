"""`wordpiece encode` with its kernel taken out: ids made before are copied instead. All else is
the same process: reading, decompressing, compressing, writing. No encoder can be faster.

Arguments: directory of ids (from `write_ids`), arguments of `wordpiece`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

IDS = "input_ids"


def write_ids(encoded: Path, ids: Path) -> None:
    """The ids of encoded shards as files to be mapped into memory."""
    ids.mkdir(exist_ok=True)
    for path in encoded.glob("*.parquet"):
        column = pq.read_table(path, columns=[IDS])[IDS].combine_chunks()
        batch = pa.record_batch([column], [IDS])
        with pa.ipc.new_file(str(ids / f"{path.stem}.arrow"), batch.schema) as writer:
            writer.write_batch(batch)


def main(ids: str, args: list[str]) -> None:
    """Runs the command."""
    from pipelines import encode_shard
    from pipelines.cli import main as wordpiece
    from wordpiece_core import EncodedBatch

    def copied(
        encoder: encode_shard.ShardEncoder, piece: encode_shard.Piece
    ) -> tuple[encode_shard.Piece, EncodedBatch]:
        path = Path(ids) / f"{Path(encoder.file.name).stem}.arrow"
        with pa.memory_map(str(path)) as file:
            made = pa.ipc.open_file(file).get_batch(0).column(0)
        rows = pa.concat_arrays([made.slice(piece.first_row, len(piece.texts))])  # copies
        table = pa.table([rows], schema=pa.schema([(IDS, rows.type)]))
        return piece, EncodedBatch(table, None, len(rows.values), 0)

    setattr(encode_shard.ShardEncoder, "_encode", copied)  # noqa: B010
    wordpiece(args)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
