"""Encoding one shard: reading, encoding and writing go on at the same time.

Batches of rows are encoded in pieces, on threads that all shards of a process share; a row group is
written while the next is encoded. Where pieces begin depends on the rows alone, never on the number
of threads: so the bytes written do not either.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines import inputs, outputs, storage
from pipelines.encoded_directory import (
    CHANGED,
    COLUMN,
    FILE,
    SUMS,
    EncodedDirectory,
    ShardError,
    ShardResult,
    source_of,
)
from pipelines.inputs import Columns, InputFile, Shard, ShardBatch
from pipelines.progress import report
from wordpiece_core import EncodedBatch, EncodingOptions, Packer, Tokenizer
from wordpiece_core.errors import ChangedError, ColumnError, InputError, OptionError, one_line

METADATA_KEY = b"wordpiece.tokenizer"
PIECE_SIZE = 2 << 20  # bytes of text, or ids where they may be more, for one thread at once
ROW_GROUP_BYTES = 64 << 20  # of a row group in memory
BYTES_PER_ROW = 16  # what a row without text counts for
IDS = "input_ids"
SOURCE_ROWS = "overflow_to_sample_mapping"


@dataclass(frozen=True)
class EncodeOptions:
    """What an encoded shard holds. `keep_columns`: of the input; None for all, for all but the
    texts with a stride (each row would repeat its whole text), or for none with `pack`; `pack`:
    sequences of exactly `encoding.max_length`; `compression`: one of Parquet's."""

    text_column: str = "text"
    text_pair_column: str | None = None
    keep_columns: tuple[str, ...] | None = None
    pack: bool = False
    compression: str = "zstd"
    encoding: EncodingOptions = field(default_factory=EncodingOptions)

    def __post_init__(self) -> None:
        for option, name in {
            "--text-column": self.text_column,
            "--text-pair-column": self.text_pair_column,
        }.items():
            if name == "":
                raise OptionError(f"{option}: give the name of a column")
        if not self.pack:
            return
        encoding = self.encoding
        if encoding.max_length is None:
            raise OptionError("--pack: give --max-length, the length of a sequence")
        for option, given in {
            "--keep-columns": self.keep_columns,
            "--text-pair-column": self.text_pair_column,
            "--stride": encoding.stride is not None,
            "--no-special-tokens": not encoding.add_special_tokens,
        }.items():
            if given:
                raise OptionError(f"{option}: does not go with --pack, whose rows are no texts")

    def check(self, tokenizer: Tokenizer) -> None:
        """OptionError if they do not fit a vocabulary."""
        if self.encoding.add_special_tokens and not tokenizer.adds_special_tokens:
            raise OptionError("the vocabulary has no [CLS] or no [SEP]; give --no-special-tokens")
        if self.pack:
            Packer(tokenizer, self.encoding)
        else:
            tokenizer.check_options(self.encoding, bool(self.text_pair_column))

    def plain(self) -> dict[str, Any]:
        """The options as JSON has them, those of encoding among them."""
        own = asdict(self)
        options = own | own.pop("encoding")
        return {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}

    @property
    def columns(self) -> Columns:
        """Those that hold text."""
        keeps_texts = self.encoding.stride is None
        return Columns(self.text_column, pair=self.text_pair_column, keeps_texts=keeps_texts)

    @property
    def kept(self) -> list[str] | None:
        """The columns to keep; None for the usual ones."""
        kept = () if self.pack else self.keep_columns
        return None if kept is None else list(kept)


@dataclass
class EncodeShard(beam.DoFn):
    """Encodes one shard and notes its result; one that cannot be read is noted as failed."""

    directory: EncodedDirectory
    options: EncodeOptions
    threads: int

    def setup(self) -> None:
        self.tokenizer = self.directory.tokenizer()

    def process(self, element: tuple[InputFile, str]) -> None:
        file, name = element
        try:
            storage.again(lambda: self._encode(file, name))
        except InputError as error:
            self.directory.note(shard_error(file, name, error))
            report(failed=1)
        else:
            report(shards=1)

    def _encode(self, file: InputFile, name: str) -> ShardResult:
        options = self.options
        shard = inputs.open_shard(file, options.columns, options.kept)
        encoder = ShardEncoder(file, shard, self.tokenizer, options, self.threads)

        def write(stream: pa.NativeFile) -> None:
            tables = ahead(encoder.tables)
            outputs.write_tables(stream, tables, encoder.schema, **encoder.parquet_options())

        def result(size: int) -> ShardResult:
            sums = encoder.sums | {"output_bytes": size}
            return ShardResult(name, file.name, source_of(file), **sums)

        try:
            return self.directory.write_shard(name, write, result)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"{file.path}: cannot be encoded ({one_line(error)})") from error


def shard_error(file: InputFile, name: str, error: InputError) -> ShardError:
    """What there is to note of a shard that could not be made."""
    cause = FILE
    if isinstance(error, ColumnError | ChangedError):
        cause = COLUMN if isinstance(error, ColumnError) else CHANGED
    message = str(error).replace(file.path, file.name)
    return ShardError(name, file.name, source_of(file), error.row_group, message, cause)


@dataclass
class Piece:
    """Rows of a batch that one thread encodes: the kept columns, the texts, the number of the
    first row in the shard, and whether that begins a row group."""

    table: pa.Table
    texts: pa.Array
    pairs: pa.Array | None
    first_row: int
    bytes: int  # those of the whole batch with its first piece
    begins: bool


@dataclass
class ShardEncoder:
    """Tables with ids, from a shard; and sums of what was there to count."""

    file: InputFile
    shard: Shard
    tokenizer: Tokenizer
    options: EncodeOptions
    threads: int
    schema: pa.Schema = field(init=False)
    sums: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        encoding = self.options.encoding
        self.packer = Packer(self.tokenizer, encoding) if self.options.pack else None
        if self.packer is not None:  # it cuts the stream of ids itself
            encoding = EncodingOptions(
                add_special_tokens=False,
                split_special_tokens=encoding.split_special_tokens,
                id_type=encoding.id_type,
            )
        self.encoding = encoding
        self.schema = self._schema()
        self.sums = {name: 0 for name in SUMS if name != "output_bytes"}

    def _schema(self) -> pa.Schema:
        """The kept columns, the ids, and what goes with them."""
        if self.packer is not None:
            added = self.packer.finish().schema
        else:
            pairs: list[str] | None = [] if self.options.text_pair_column else None
            added = self.tokenizer.encode_batch([], pairs, options=self.encoding).table.schema
            if self.encoding.stride is not None:
                added = added.append(pa.field(SOURCE_ROWS, pa.int64()))
        kept = self.shard.schema
        for name in added.names:
            if name in kept.names:
                others = ",".join(other for other in kept.names if other not in added.names)
                raise ColumnError(
                    f"{self.file.path}: has a column {name!r} already; leave it out with"
                    f" --keep-columns '{others}'"
                )
        metadata = {METADATA_KEY: self.tokenizer.digest.encode()}
        return pa.schema([*kept, *added], metadata=metadata)

    def parquet_options(self) -> dict[str, Any]:
        """How Parquet stores the columns: ids and texts plain (docs/ids-encoding.md), others as
        dictionaries where that helps; with statistics of the kept columns only."""
        names = [name for name in self.shard.schema.names if name not in self.options.columns.names]
        kept = leaf_paths(self.shard.schema, names)
        return {
            "compression": self.options.compression,
            "use_dictionary": kept,
            "write_statistics": kept,
        }

    def tables(self) -> Iterator[pa.Table]:
        """The shard's rows, encoded: a table for each row group to be."""
        encoded = in_threads(self._encode, ahead(self._pieces), self.threads)
        tables = self._packed(encoded) if self.packer else self._encoded(encoded)
        return row_groups(tables)

    def _encoded(
        self, encoded: Iterator[tuple[Piece, EncodedBatch]]
    ) -> Iterator[tuple[bool, pa.Table]]:
        for piece, batch in encoded:
            self._count(piece, batch)
            begins = piece.begins
            for table in self._tables(piece, batch):
                yield begins, table
                begins = False

    def _packed(
        self, encoded: Iterator[tuple[Piece, EncodedBatch]]
    ) -> Iterator[tuple[bool, pa.Table]]:
        """What the last sequence holds goes with the last full ones."""
        assert self.packer is not None
        rows = 0
        for piece, batch in encoded:
            self._count(piece, batch)
            table = self.packer.add(batch.table.column(IDS), piece.first_row)
            rows += table.num_rows
            yield piece.begins, table
        last = self.packer.finish()
        self.sums["rows"] = rows + last.num_rows
        self.sums["dropped_tokens"] = self.packer.dropped
        yield False, last

    def _pieces(self) -> Iterator[Piece]:
        """Batches, cut into pieces of about `PIECE_SIZE`."""
        row = 0
        for batch in self.shard.batches():
            self.sums["input_rows"] += len(batch.texts)
            self.sums["replaced"] += batch.replaced
            self.sums["invalid"] += batch.invalid
            ends = pieces_of(most_ids(batch, self.encoding))
            for start, end in pairwise([0, *ends]):
                yield Piece(
                    batch.table.slice(start, end - start),
                    batch.texts.slice(start, end - start),
                    None if batch.pairs is None else batch.pairs.slice(start, end - start),
                    row + start,
                    batch.bytes if start == 0 else 0,
                    begins=batch.begins and start == 0,
                )
            row += len(batch.texts)

    def _encode(self, piece: Piece) -> tuple[Piece, EncodedBatch]:
        try:
            batch = self.tokenizer.encode_batch(piece.texts, piece.pairs, options=self.encoding)
        except InputError as error:
            place = f"{self.file.path}, counted from row {piece.first_row}"
            raise InputError(f"{place}: {error}") from error
        return piece, batch

    def _count(self, piece: Piece, batch: EncodedBatch) -> None:
        amounts = {"bytes": piece.bytes, "rows": batch.table.num_rows, "tokens": batch.tokens}
        ids = batch.table.column(IDS)
        for name, amount in amounts.items():
            self.sums[name] += amount
        self.sums["nulls"] += ids.null_count
        self.sums["unknown_tokens"] += batch.unknown
        report(**amounts)

    def _tables(self, piece: Piece, batch: EncodedBatch) -> Iterator[pa.Table]:
        """The kept columns and the added ones. Where rows repeat what is kept, in parts that are
        not too large even if all repeat as much as the whole piece holds."""
        kept, added, sources = piece.table, batch.table, batch.source_rows
        if sources is None:
            yield pa.table([*kept.columns, *added.columns], schema=self.schema)
            return
        rows = max(1, ROW_GROUP_BYTES // max(kept.nbytes, 1))
        first = pa.scalar(piece.first_row, pa.int64())
        for start in range(0, len(sources), rows):
            some = sources.slice(start, rows)
            repeated = [self._take(kept, name, some) for name in kept.column_names]
            columns = added.slice(start, rows).columns
            yield pa.table([*repeated, *columns, pc.add(some, first)], schema=self.schema)

    def _take(self, kept: pa.Table, name: str, rows: pa.ChunkedArray) -> pa.ChunkedArray:
        """Rows of a column. Arrow cannot take those of views."""
        kind = kept.schema.field(name).type
        plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
        try:
            return kept[name].cast(plain.get(kind, kind)).combine_chunks().take(rows).cast(kind)
        except pa.ArrowNotImplementedError as error:
            raise ColumnError(
                f"{self.file.path}: column {name!r} of {kind} cannot be repeated in several rows;"
                " leave it out with --keep-columns"
            ) from error


def leaf_paths(schema: pa.Schema, names: Collection[str]) -> list[str]:
    """Parquet's names for what is stored of columns: of nested ones, several."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    stored = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    paths = (stored.column(i).path for i in range(len(stored)))
    return [path for path in paths if path in names or path.split(".")[0] in names]


def row_groups(tables: Iterator[tuple[bool, pa.Table]]) -> Iterator[pa.Table]:
    """Tables put together to row groups. Each comes with whether it begins one; so does one that
    would make its row group larger than `ROW_GROUP_BYTES`."""
    held: list[pa.Table] = []
    size = 0
    for begins, table in tables:
        if held and (begins or size + table.nbytes > ROW_GROUP_BYTES):
            yield pa.concat_tables(held)
            held, size = [], 0
        if table.num_rows:
            held.append(table)
            size += table.nbytes
    if held:
        yield pa.concat_tables(held)


def most_ids(batch: ShardBatch, encoding: EncodingOptions) -> pa.Array:
    """For each row of a batch the bytes of its texts, or the ids it may become if these are more:
    a token has a byte at least, a stride puts it into several rows, and rows are padded."""
    texts = [batch.texts] if batch.pairs is None else [batch.texts, batch.pairs]
    lengths = [pc.fill_null(pc.binary_length(text), 0).cast(pa.float64()) for text in texts]
    size = lengths[0] if len(lengths) == 1 else pc.add(*lengths)
    if encoding.max_length is not None and encoding.stride is not None:
        room = float(encoding.max_length - 1 - len(texts))
        size = pc.multiply(most_windows(lengths, room, encoding), float(encoding.max_length))
    elif encoding.max_length is not None and encoding.padding:
        size = pc.max_element_wise(size, float(encoding.max_length))
    return pc.add(size, float(BYTES_PER_ROW))


def most_windows(lengths: list[pa.Array], room: float, encoding: EncodingOptions) -> pa.Array:
    """For each text, or pair, a bound on the rows it becomes with a stride, by lengths in bytes."""

    def windows(length: pa.Array, left: pa.Array | float) -> pa.Array:
        """`left`: tokens that a row has of the text at least."""
        step = pc.max_element_wise(pc.subtract(left, float(encoding.stride or 0)), 1.0)
        return pc.if_else(pc.less_equal(length, left), 1.0, pc.add(pc.divide(length, step), 1.0))

    if len(lengths) == 1:
        return windows(lengths[0], room)
    if encoding.truncation == "longest_first":
        return pc.multiply(*(windows(length, room // 2) for length in lengths))
    cut, other = lengths if encoding.truncation == "only_first" else reversed(lengths)
    return windows(cut, pc.max_element_wise(pc.subtract(room, other), 1.0))


def pieces_of(sizes: pa.Array) -> list[int]:
    """Where pieces of about `PIECE_SIZE` end, one row at least in each, by the sizes of rows."""
    starts = pc.subtract(pc.cumulative_sum(sizes), sizes)
    numbers = pc.floor(pc.divide(starts, float(PIECE_SIZE)))
    ends: list[int] = pc.run_end_encode(numbers).run_ends.to_pylist()
    return ends


T = TypeVar("T")
R = TypeVar("R")


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """The threads that all shards of this process share."""
    return ThreadPoolExecutor(count, thread_name_prefix="encode")


def in_threads(work: Callable[[T], R], items: Iterator[T], threads: int) -> Iterator[R]:
    """`map`, on shared threads, in order, one item ahead of each thread."""
    pool = _threads(threads)
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def ahead(source: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The items of an iterator that runs in a thread of its own, one item ahead."""
    items: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(1)
    stopped = threading.Event()

    def put(item: T | None, error: BaseException | None = None) -> None:
        while not stopped.is_set():
            try:
                return items.put((item, error), timeout=0.1)
            except queue.Full:
                continue

    def fill() -> None:
        try:
            for item in source():
                put(item)
                if stopped.is_set():
                    return
            put(None, StopIteration())
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    try:
        while True:
            item, error = items.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()
