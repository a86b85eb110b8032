"""The files of a shard of ids.

    megatron   NAME.bin and NAME.idx, the IndexedDataset of Megatron-LM: a document of one sequence
               for each row
    ds         NAME.ds, NAME.ds.index and NAME.ds.metadata, as datatrove writes and reads them
    npy        NAME.npy without a header and NAME.csv.gz, as OLMo-core reads them, and
               document_offsets/NAME.npy, an array of NumPy

All numbers are little-endian. Rows without ids, for example of null texts, are left out.
`docs/guides/layouts.md` describes the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from gzip import GzipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import WriteOptions, write_csv

from pipelines.encoding.shard_names import DS, MEGATRON, NPY
from pipelines.encoding.shard_writer import IDS
from pipelines.io.outputs import NewFile

ROW_BYTES = {MEGATRON: 4 + 8 + 8, DS: 8, NPY: 6 + 8}  # bytes of a row in addition to its ids
MEGATRON_MAGIC = b"MMIDIDX\0\0"
MEGATRON_HEADER = struct.Struct("<9sQBQQ")
MEGATRON_CODES = {pa.int32(): 4, pa.uint16(): 8}
MEGATRON_UINT16 = 65_500  # Megatron stores ids of smaller vocabularies in 16 bits
UINT16 = 1 << 16
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def id_type(format: str, tokens: int, option: str) -> pa.DataType:
    """Return the type of ids in a format, for a vocabulary of this size. `option`: the value of the
    option `id_type`, which only the format npy has."""
    if format == MEGATRON:
        return pa.uint16() if tokens < MEGATRON_UINT16 else pa.int32()
    if format == NPY and option == "uint32":
        return pa.uint32()
    return pa.uint16() if tokens <= UINT16 else pa.uint32()


@dataclass
class IdFiles:
    """Write the files of a shard.

    Attributes:
        kind: Type of the ids.
        tokenizer: Name of the tokenizer in the metadata.
        left_out: Number of rows without ids so far.
        lengths: Number of ids of each row.
    """

    format: str
    kind: pa.DataType
    tokenizer: str
    left_out: int = 0
    lengths: list[pa.Array] = field(default_factory=list)

    def write(self, files: Sequence[NewFile], tables: Iterator[pa.Table]) -> None:
        """Write all files of the shard."""
        self._write_ids(files[0], tables)
        lengths = pa.concat_arrays(self.lengths) if self.lengths else pa.array([], pa.int32())
        ends = pc.cumulative_sum(lengths.cast(pa.int64()))
        tokens = ends[-1].as_py() if len(ends) else 0
        if self.format == MEGATRON:
            self._write_megatron(files[1], lengths, pc.subtract(ends, lengths))
        elif self.format == NPY:
            self._write_npy(files[1], files[2], ends)
        else:
            _write(files[1], ends)
            size, name = self.kind.bit_width // 8, self.tokenizer
            files[2].write(f"{name}|{size}\n{tokens}\n{shown_tokens(tokens)}".encode())

    def _write_ids(self, stream: NewFile, tables: Iterator[pa.Table]) -> None:
        """Write the ids of all rows, one after the other."""
        for table in tables:
            for ids in table.column(IDS).chunks:
                lengths = _lengths(ids)
                self.lengths.append(lengths)
                self.left_out += len(ids) - len(lengths)
                _write(stream, ids.flatten().cast(self.kind))

    def _write_npy(self, bounds: NewFile, offsets: NewFile, ends: pa.Array) -> None:
        """Write the first index and the end of each row, as text and as an array."""
        starts = pa.concat_arrays([pa.array([0], pa.int64()), ends])
        columns = pa.table({"start": starts[:-1], "end": ends})
        with GzipFile("", "wb", fileobj=bounds, mtime=0) as lines:
            write_csv(columns, lines, WriteOptions(include_header=False))
        np.save(offsets, starts.to_numpy(), allow_pickle=False)

    def _write_megatron(self, stream: NewFile, lengths: pa.Array, starts: pa.Array) -> None:
        """Write the index of the rows."""
        size, code = self.kind.bit_width // 8, MEGATRON_CODES[self.kind]
        documents = pa.array(range(len(lengths) + 1), pa.int64())
        header = MEGATRON_HEADER.pack(MEGATRON_MAGIC, 1, code, len(lengths), len(documents))
        stream.write(header)
        _write(stream, lengths, pc.multiply(starts, size), documents)


def shown_tokens(tokens: int) -> str:
    """Return a number of tokens as datatrove shows it.

    >>> shown_tokens(950), shown_tokens(1_234_567), shown_tokens(999_900)
    ('950 T', '1.23 MT', '1.00 MT')
    """
    exponent = len(str(tokens)) - 1
    while True:
        power, place = divmod(exponent, 3)
        shown = f"{tokens / 1000**power:.{2 - place}f}"
        if float(shown) < 10 ** (place + 1):
            return f"{shown} {_PREFIXES[power]}T"
        exponent += 1  # it is rounded up to the next power of ten


def _lengths(lists: pa.Array) -> pa.Array:
    """Return the lengths of the lists that are not empty."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    return lengths.filter(pc.greater(lengths, 0)).cast(pa.int32())


def _write(stream: NewFile, *arrays: pa.Array) -> None:
    """Write the numbers of arrays without nulls."""
    for numbers in arrays:
        size = numbers.type.bit_width // 8
        if len(numbers):
            buffer = numbers.buffers()[1]
            stream.write(buffer.slice(numbers.offset * size, len(numbers) * size))
