"""The files of a shard that holds ids alone.

    megatron   NAME.bin and NAME.idx, the IndexedDataset of Megatron-LM: a document for each row
    bin        NAME.bin, ids one after the other, and NAME.offsets, where each row begins

All numbers have their lowest byte first. Rows without ids, as those of null texts, are left out.
`docs/datasets.md` describes the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.shard_writer import IDS
from pipelines.files.outputs import NewFile

MEGATRON, BIN = "megatron", "bin"
SECOND_ENDING = {MEGATRON: ".idx", BIN: ".offsets"}
ROW_BYTES = {MEGATRON: 4 + 8 + 8, BIN: 8}  # of a row in the second file
MEGATRON_MAGIC = b"MMIDIDX\0\0"
MEGATRON_HEADER = struct.Struct("<9sQBQQ")
MEGATRON_CODES = {pa.int32(): 4, pa.uint16(): 8}
MEGATRON_UINT16 = 65_500  # vocabularies below have ids of 16 bits, by Megatron's own rule
BIN_UINT16 = 1 << 16


def id_type(name: str, tokens: int) -> pa.DataType:
    """The type of ids in a format, for a vocabulary of so many tokens."""
    if name == MEGATRON:
        return pa.uint16() if tokens < MEGATRON_UINT16 else pa.int32()
    return pa.uint16() if tokens <= BIN_UINT16 else pa.uint32()


@dataclass
class IdFiles:
    """Writes the two files of a shard. `left_out`: how many rows had no ids so far."""

    format: str
    kind: pa.DataType
    left_out: int = 0
    lengths: list[pa.Array] = field(default_factory=list)

    def write_ids(self, stream: NewFile, tables: Iterator[pa.Table]) -> None:
        """Writes the ids of rows, one after the other."""
        for table in tables:
            for ids in table.column(IDS).chunks:
                lengths = pc.fill_null(pc.list_value_length(ids), 0)
                self.lengths.append(lengths.filter(pc.greater(lengths, 0)).cast(pa.int32()))
                self.left_out += len(ids) - len(self.lengths[-1])
                values = ids.flatten().cast(self.kind)
                size = self.kind.bit_width // 8
                buffer = values.buffers()[1]
                if len(values):
                    stream.write(buffer.slice(values.offset * size, len(values) * size))

    def write_places(self, stream: NewFile) -> None:
        """Writes where the rows are."""
        lengths = pa.concat_arrays(self.lengths) if self.lengths else pa.array([], pa.int32())
        ends = pc.cumulative_sum(lengths.cast(pa.int64()))
        starts = pc.subtract(ends, lengths)
        if self.format == BIN:
            last = pa.array([ends[-1].as_py() if len(ends) else 0], pa.int64())
            _write(stream, starts, last)
            return
        rows, size = len(lengths), self.kind.bit_width // 8
        code = MEGATRON_CODES[self.kind]
        stream.write(MEGATRON_HEADER.pack(MEGATRON_MAGIC, 1, code, rows, rows + 1))
        documents = pa.array(range(rows + 1), pa.int64())
        _write(stream, lengths, pc.multiply(starts, size), documents)


def _write(stream: NewFile, *arrays: pa.Array) -> None:
    """Writes the numbers of arrays without nulls."""
    for numbers in arrays:
        size = numbers.type.bit_width // 8
        if len(numbers):
            buffer = numbers.buffers()[1]
            stream.write(buffer.slice(numbers.offset * size, len(numbers) * size))
