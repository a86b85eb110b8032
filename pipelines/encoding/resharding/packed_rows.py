"""Rows of one length, filled with the ids of texts of any inputs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.options import ShardOptions
from pipelines.encoding.shard_writer import IDS
from wordpiece_core import Packer, Tokenizer

INPUT, ROW = "__wordpiece_input", "__wordpiece_row"  # number of the input of a text, and its row
DOCUMENT_ROWS, DOCUMENT_INPUTS = "document_rows", "document_inputs"


class PackedRows:
    """Pack the texts of a shard."""

    def __init__(self, tokenizer: Tokenizer, options: ShardOptions) -> None:
        self.packer = Packer(tokenizer, options, best_fit=options.is_best_fit)
        self.places = pa.table({INPUT: pa.array([], pa.int32()), ROW: pa.array([], pa.int64())})
        self.first = self.next = 0  # numbers of the first text in `places`, and of the next

    @property
    def dropped(self) -> int:
        """Number of tokens that are dropped at the end."""
        return self.packer.dropped

    @property
    def padding(self) -> int:
        """Number of padding tokens of all rows so far."""
        return self.packer.padding

    def add(self, table: pa.Table) -> pa.Table:
        """Add texts, and return full rows."""
        self.places = pa.concat_tables([self.places, table.select([INPUT, ROW])])
        packed = self.packer.add(table.column(IDS), self.next)
        self.next += table.num_rows
        return self._with_places(packed)

    def finish(self) -> pa.Table:
        """Return the last rows. A row that is not full is padded, or its tokens are dropped."""
        return self._with_places(self.packer.finish())

    def _with_places(self, packed: pa.Table) -> pa.Table:
        numbers = packed.column(DOCUMENT_ROWS).combine_chunks()
        places = self.places.combine_chunks()
        at = pc.subtract(numbers.flatten(), self.first)
        found = {name: places.column(name).take(at).combine_chunks() for name in (INPUT, ROW)}
        if len(at):  # later rows begin with the last text, or after it
            done = pc.max(at).as_py()
            self.places = places.slice(done)
            self.first += done
        kind = packed.schema.field(DOCUMENT_ROWS).type
        offsets = pc.subtract(numbers.offsets, numbers.offsets[0])
        lists = {n: pa.ListArray.from_arrays(offsets, values) for n, values in found.items()}
        rows = lists[ROW].cast(kind)
        position = packed.schema.get_field_index(DOCUMENT_ROWS)
        packed = packed.set_column(position, DOCUMENT_ROWS, rows)
        return packed.append_column(DOCUMENT_INPUTS, lists[INPUT])


def packed_schema(tokenizer: Tokenizer, options: ShardOptions) -> pa.Schema:
    """Return the schema of packed rows."""
    return PackedRows(tokenizer, options).finish().schema
