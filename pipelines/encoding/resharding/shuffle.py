"""A random order of all rows: the order of their hashes. It depends only on the seed, the names of
the inputs and the numbers of the rows there.

The range of hashes of each split is divided into *buckets*. Inputs are read, some MB at a time;
their rows are grouped by bucket and written as a *sorted run*. The rows of a bucket, from all runs,
are few enough to be sorted in memory.

A file of buckets has, for each run, the segments of all buckets, as streams of Arrow's IPC format;
then for each run the offsets of its segments and the end of the last one; then the weights of all
buckets, and the bytes that their rows take in memory; and last the numbers of runs and buckets.
Numbers have 8 bytes, the lowest first.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.directory.status import WeightedResult
from pipelines.encoding.row_weights import SPLIT, WEIGHT
from pipelines.io.batches import from_bytes, one_batch, to_bytes
from pipelines.io.outputs import NewFile
from wordpiece_core import _kernel, storage
from wordpiece_core.storage import StoredFile

ORDER = "__wordpiece_order"
BUCKET_BYTES = 12 << 20  # of a bucket, by the weights of its rows
LARGE_BUCKETS = 4  # times that, at most, if there are more rows: fewer segments
USUAL_BUCKETS, MOST_BUCKETS = 256, 4096  # with more, buckets are larger
RUN_SHARE = 8  # of the memory of a worker: a run, which is copied once when it is sorted
COPIES = 2  # of the rows that are sorted, in memory at the same time
GROUP_BUCKETS, MOST_GROUPS = 3, 128  # the least size of a group, in buckets; about the most groups
BOUNDS = (BUCKET_BYTES, LARGE_BUCKETS, USUAL_BUCKETS, MOST_BUCKETS, GROUP_BUCKETS, MOST_GROUPS)
"""What the files of buckets depend on, besides the rows. (Not on how long runs are.)"""
_TAIL = struct.Struct("<QQ")
_HALF = pa.scalar(32, pa.uint64())  # bits of a hash


def order_key(seed: int, name: str) -> bytes:
    """The key of the hashes of the rows of an input."""
    return hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=32).digest()


@dataclass(frozen=True)
class Buckets:
    """The number of buckets of each split, and about how large they are by the weights of their
    rows. When they are written: the weights of all, and the bytes that their rows take in
    memory."""

    numbers: Sequence[int]
    size: int
    weights: Sequence[int] = ()
    bytes: Sequence[int] = ()

    @classmethod
    def of(cls, weights: Sequence[int]) -> Buckets:
        """From the weights of the splits."""
        total = sum(weights)
        size = min(max(BUCKET_BYTES, total // USUAL_BUCKETS), LARGE_BUCKETS * BUCKET_BYTES)
        size = max(size, total // MOST_BUCKETS)
        return cls([max(-(-weight // size), 1) for weight in weights], size)

    def first(self, split: int) -> int:
        """The number of the first bucket of a split."""
        return sum(self.numbers[:split])

    def place(self, order: pa.Array, split: pa.Array) -> pa.Array:
        """The bucket of each row, from its hash and its split."""
        firsts = pa.array([self.first(n) for n in range(len(self.numbers))], pa.uint64())
        numbers = pa.array(self.numbers, pa.uint64())
        scaled = pc.multiply(pc.shift_right(order, _HALF), numbers.take(split))
        return pc.add(pc.shift_right(scaled, _HALF), firsts.take(split))

    def written(self, files: Iterable[str]) -> Buckets:
        """These buckets, with what the files of runs say about them."""
        read = storage.in_parallel(_read_sums, files)
        sums = [sum(each) for each in zip(*read, strict=True)]
        total = sum(self.numbers)
        return replace(self, weights=sums[:total], bytes=sums[total:])

    def parts(self, bucket: int, memory: int) -> int:
        """In how many parts a bucket is sorted, so that one takes half of the memory of a
        worker."""
        return max(-(-2 * COPIES * self.bytes[bucket] // memory), 1)


def part_of(order: pa.ChunkedArray, buckets: int, parts: int) -> pa.ChunkedArray:
    """The part of their bucket that rows are in, by their hashes. `buckets`: of their split."""
    scaled = pc.multiply(pc.shift_right(order, _HALF), pa.scalar(buckets, pa.uint64()))
    inside = pc.bit_wise_and(scaled, pa.scalar((1 << 32) - 1, pa.uint64()))
    return pc.shift_right(pc.multiply(inside, pa.scalar(parts, pa.uint64())), _HALF)


@dataclass(frozen=True, slots=True)
class ShuffleGroup:
    """Inputs whose rows go into one file of runs: their numbers and names. `rows`: how many."""

    number: int
    inputs: Sequence[tuple[int, str]]
    rows: int


def shuffle_groups(sources: Sequence[WeightedResult], buckets: Buckets) -> list[ShuffleGroup]:
    """Groups of consecutive inputs, of `GROUP_BUCKETS` buckets or more, or of one input."""
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
    """Writes a file of runs. `memory`: bytes for a worker."""

    stream: NewFile
    buckets: Buckets
    memory: int
    held: list[pa.Table] = field(default_factory=list)
    size: int = 0
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    runs: int = 0

    def __post_init__(self) -> None:
        total = sum(self.buckets.numbers)
        self.weights, self.bytes = (array("Q", bytes(8 * total)) for _ in range(2))

    def add(self, table: pa.Table, first: int, key: bytes) -> None:
        """Adds rows of an input, from the row `first` on."""
        order = pa.array(_kernel.hash_numbers(first, table.num_rows, key))
        self.held.append(table.append_column(ORDER, order))
        self.size += table.nbytes
        if self.size >= self.memory // RUN_SHARE:
            self._write()

    def _write(self) -> None:
        """Writes the rows that are held as a run."""
        table = pa.concat_tables(self.held).combine_chunks()
        self.held, self.size, self.runs = [], 0, self.runs + 1
        split = table.column(SPLIT).combine_chunks()
        place = self.buckets.place(table.column(ORDER).combine_chunks(), split)
        table = table.drop_columns([SPLIT])
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
        """Writes what is left, and where the segments are."""
        if self.held:
            self._write()
        tail = self.offsets + self.weights + self.bytes
        self.stream.write(struct.pack(f"<{len(tail)}Q", *tail))
        self.stream.write(_TAIL.pack(self.runs, sum(self.buckets.numbers)))


def _tail(file: StoredFile) -> tuple[int, int, int]:
    """How many runs and buckets a file has, and where its offsets begin."""
    file.seek(file.length - _TAIL.size)
    runs, buckets = _TAIL.unpack(file.read(_TAIL.size))
    return runs, buckets, file.length - _TAIL.size - 8 * (runs * (buckets + 1) + 2 * buckets)


def _numbers(file: StoredFile, start: int, many: int) -> tuple[int, ...]:
    file.seek(start)
    return struct.unpack(f"<{many}Q", file.read(8 * many))


def _read_sums(path: str) -> tuple[int, ...]:
    """The weights of all buckets in a file of runs, then their bytes."""
    with StoredFile(path) as file:
        runs, buckets, start = _tail(file)
        return _numbers(file, start + 8 * runs * (buckets + 1), 2 * buckets)


def read_segments(path: str, number: int) -> Iterator[pa.Table]:
    """The rows of a bucket in a file of runs, as they were read."""
    with StoredFile(path) as file:
        runs, buckets, tail = _tail(file)
        for run in range(runs):
            start, end = _numbers(file, tail + 8 * (run * (buckets + 1) + number), 2)
            if end > start:
                file.seek(start)
                yield pa.Table.from_batches([from_bytes(file.read(end - start))])
