"""A random order of all rows: the order of their hashes, which depend only on the seed, the names
of the inputs and the numbers of the rows.

The range of hashes of each split is divided into *buckets*. Inputs are read some MB at a time, and
their rows are grouped by bucket and written as a *sorted run*. The rows of a bucket, from all runs,
are few enough to be sorted in memory.

A file of buckets has the segments of all buckets for each run, as streams of Arrow's IPC format;
then for each run the offsets of its segments and the end of the last one; then the weights of all
buckets and the bytes of their rows in memory; and last the numbers of runs and buckets. Numbers are
little-endian and have 8 bytes.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.row_weights import SOURCE, SPLIT, WEIGHT
from pipelines.encoding.shards import WeightedResult
from pipelines.io.batches import from_bytes, one_batch, to_bytes
from pipelines.io.outputs import NewFile
from wordpiece_core import _kernel, storage
from wordpiece_core.limits import Limits
from wordpiece_core.storage import StoredFile

ORDER = "__wordpiece_order"
USUAL_BUCKETS, MOST_BUCKETS = 256, 4096  # numbers from which on buckets grow
GROUP_BUCKETS, MOST_GROUPS = 3, 128  # minimum size of a group in buckets; maximum number, about
BOUNDS = (USUAL_BUCKETS, MOST_BUCKETS, GROUP_BUCKETS, MOST_GROUPS)
"""Constants that the files of buckets depend on."""
_TAIL = struct.Struct("<QQ")
_HALF = pa.scalar(32, pa.uint64())  # half the bits of a hash


def order_key(seed: int, name: str) -> bytes:
    """Return the key of the hashes of the rows of an input."""
    return hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=32).digest()


def order_of(seed: int, name: str, first: int, rows: int) -> pa.Array:
    """Return the hashes of rows of an input, from row `first` on."""
    return pa.array(_kernel.hash_numbers(first, rows, order_key(seed, name)))


@dataclass(frozen=True)
class Buckets:
    """The buckets of all splits.

    Attributes:
        numbers: Number of buckets of each split.
        size: Approximate weight of the rows of a bucket.
        weights: Weight of each bucket, once it is written.
        bytes: Bytes of the rows of each bucket in memory, once it is written.
    """

    numbers: Sequence[int]
    size: int
    weights: Sequence[int] = ()
    bytes: Sequence[int] = ()

    @classmethod
    def of(cls, weights: Sequence[int], limits: Limits) -> Buckets:
        """Choose buckets for splits of these weights."""
        total, least = sum(weights), limits.bucket_bytes
        size = min(max(least, total // USUAL_BUCKETS), limits.large_buckets * least)
        size = max(size, total // MOST_BUCKETS)
        return cls([max(-(-weight // size), 1) for weight in weights], size)

    def first(self, split: int) -> int:
        """Return the number of the first bucket of a split."""
        return sum(self.numbers[:split])

    def place(self, order: pa.Array, split: pa.Array) -> pa.Array:
        """Return the bucket of each row, from its hash and its split."""
        firsts = pa.array([self.first(n) for n in range(len(self.numbers))], pa.uint64())
        numbers = pa.array(self.numbers, pa.uint64())
        scaled = pc.multiply(pc.shift_right(order, _HALF), numbers.take(split))
        return pc.add(pc.shift_right(scaled, _HALF), firsts.take(split))

    def written(self, files: Iterable[str]) -> Buckets:
        """Return the buckets with the weights and bytes in the files of runs."""
        read = storage.in_parallel(_read_sums, files)
        sums = [sum(each) for each in zip(*read, strict=True)]
        total = sum(self.numbers)
        return replace(self, weights=sums[:total], bytes=sums[total:])

    def parts(self, bucket: int, memory: int, copies: int) -> int:
        """Return the number of parts in which a bucket is sorted, so that each takes half of the
        memory of a worker. `copies`: copies of its rows in memory."""
        return max(-(-2 * copies * self.bytes[bucket] // memory), 1)


def part_of(order: pa.ChunkedArray, buckets: int, parts: int) -> pa.ChunkedArray:
    """Return the part of their bucket that rows belong to. `buckets`: their number in the split."""
    scaled = pc.multiply(pc.shift_right(order, _HALF), pa.scalar(buckets, pa.uint64()))
    inside = pc.bit_wise_and(scaled, pa.scalar((1 << 32) - 1, pa.uint64()))
    return pc.shift_right(pc.multiply(inside, pa.scalar(parts, pa.uint64())), _HALF)


@dataclass(frozen=True, slots=True)
class ShuffleGroup:
    """Inputs, by number and name, whose rows go into one file of runs."""

    number: int
    inputs: Sequence[tuple[int, str]]
    rows: int


def shuffle_groups(sources: Sequence[WeightedResult], buckets: Buckets) -> list[ShuffleGroup]:
    """Group consecutive inputs to groups of `GROUP_BUCKETS` buckets or more."""
    total = sum(sum(source.weights) for source in sources)
    least = max(GROUP_BUCKETS * buckets.size, total // MOST_GROUPS)
    groups: list[ShuffleGroup] = []
    held: list[tuple[int, str]] = []
    weight = rows = 0
    for number, source in enumerate(sources):
        held.append((number, source.name))
        weight += sum(source.weights)
        rows += source.input_rows
        if weight >= least or number + 1 == len(sources):
            groups.append(ShuffleGroup(len(groups), held, rows))
            held, weight, rows = [], 0, 0
    return groups


@dataclass
class RunWriter:
    """Write a file of runs. `run_bytes`: size of a run in memory."""

    stream: NewFile
    buckets: Buckets
    run_bytes: int
    held: list[pa.Table] = field(default_factory=list)
    size: int = 0
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    runs: int = 0

    def __post_init__(self) -> None:
        total = sum(self.buckets.numbers)
        self.weights, self.bytes = (array("Q", bytes(8 * total)) for _ in range(2))

    def add(self, table: pa.Table, order: pa.Array) -> None:
        """Add rows. `order`: their hashes."""
        self.held.append(table.append_column(ORDER, order))
        self.size += table.nbytes
        if self.size >= self.run_bytes:
            self._write()

    def _write(self) -> None:
        """Write the rows in memory as a run."""
        table = pa.concat_tables(self.held).combine_chunks()
        self.held, self.size, self.runs = [], 0, self.runs + 1
        split = table.column(SPLIT).combine_chunks()
        place = self.buckets.place(table.column(ORDER).combine_chunks(), split)
        table = table.drop_columns([name for name in (SPLIT, SOURCE) if name in table.column_names])
        indices = pc.array_sort_indices(place)
        ends = pc.run_end_encode(place.take(indices))
        segments = dict(zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True))
        first = 0
        for number in range(sum(self.buckets.numbers)):
            self.offsets.append(self.stream.size)
            if end := segments.get(number):
                some = table.take(indices.slice(first, end - first))
                self.weights[number] += pc.sum(some.column(WEIGHT)).as_py()
                self.bytes[number] += some.nbytes
                self.stream.write(to_bytes(one_batch(some), "lz4"))
                first = end
        self.offsets.append(self.stream.size)

    def finish(self) -> None:
        """Write the rest, and the offsets of the segments."""
        if self.held:
            self._write()
        tail = self.offsets + self.weights + self.bytes
        self.stream.write(struct.pack(f"<{len(tail)}Q", *tail))
        self.stream.write(_TAIL.pack(self.runs, sum(self.buckets.numbers)))


def _tail(file: StoredFile) -> tuple[int, int, int]:
    """Return the numbers of runs and buckets of a file, and the place of its offsets."""
    file.seek(file.length - _TAIL.size)
    runs, buckets = _TAIL.unpack(file.read(_TAIL.size))
    return runs, buckets, file.length - _TAIL.size - 8 * (runs * (buckets + 1) + 2 * buckets)


def _numbers(file: StoredFile, start: int, many: int) -> tuple[int, ...]:
    file.seek(start)
    return struct.unpack(f"<{many}Q", file.read(8 * many))


def _read_sums(path: str) -> tuple[int, ...]:
    """Read the weights of all buckets in a file of runs, followed by their bytes."""
    with StoredFile(path) as file:
        runs, buckets, start = _tail(file)
        return _numbers(file, start + 8 * runs * (buckets + 1), 2 * buckets)


def read_segments(path: str, number: int) -> Iterator[pa.Table]:
    """Read the rows of a bucket in a file of runs."""
    with StoredFile(path) as file:
        runs, buckets, tail = _tail(file)
        for run in range(runs):
            start, end = _numbers(file, tail + 8 * (run * (buckets + 1) + number), 2)
            if end > start:
                file.seek(start)
                yield pa.Table.from_batches([from_bytes(file.read(end - start))])
