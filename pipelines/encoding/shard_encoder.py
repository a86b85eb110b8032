"""Encoding the rows of one shard. Reading, encoding and writing run at the same time.

Batches of rows are encoded in pieces, on threads that all shards of a process share.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.encoding import pieces, shard_writer
from pipelines.encoding.directory.status import (
    SUMS,
    ShardResult,
    WeightedResult,
    source_of,
)
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.pieces import Part, piece_ends
from pipelines.encoding.row_weights import RowWeights
from pipelines.encoding.shard_writer import IDS
from pipelines.io.inputs import InputFile, Shard, TextBatch, TextColumns
from pipelines.io.outputs import empty_parquet
from pipelines.io.schemas import taken
from pipelines.progress import add_metrics
from pipelines.threads import ahead, in_threads
from wordpiece_core import EncodedBatch, EncodingOptions, Packer, Tokenizer
from wordpiece_core._kernel import Chunks, IdPages, Pages
from wordpiece_core.errors import ColumnError, InputError, OptionError, SpecialTokenError, opt

METADATA_KEY = b"wordpiece.tokenizer"
SCHEMAS = 64  # of inputs, whose columns are remembered
SOURCE_ROWS = "overflow_to_sample_mapping"


@dataclass
class Piece:
    """Rows of a batch that one thread encodes: the kept columns, the texts, the number of the first
    row in the shard, whether the first row begins a row group, and what of that can be copied."""

    table: pa.Table
    texts: pa.Array
    pairs: pa.Array | None
    first_row: int
    bytes: int  # the first piece has the bytes of the whole batch
    begins: bool
    chunks: Chunks | None = None


@dataclass(frozen=True)
class EncodedPiece:
    """What a piece has become: a batch of ids; or pages of them, and a batch without columns."""

    piece: Piece
    batch: EncodedBatch
    pages: Pages | None = None


@dataclass
class ShardEncoder:
    """Makes tables with ids from a shard, and adds up rows, tokens and the like in `sums`. With a
    `maker` it makes pages of the ids where nothing else needs them. `weights`: how rows are
    weighted that will be resharded; `split_weights`: the sums of their weights, by split."""

    file: InputFile
    shard: Shard
    tokenizer: Tokenizer
    options: ShardOptions
    maker: IdPages | None
    threads: int
    weights: RowWeights | None = None
    schema: pa.Schema = field(init=False)
    sums: dict[str, int] = field(init=False)
    split_weights: list[int] = field(init=False)

    def __post_init__(self) -> None:
        encoding: EncodingOptions = self.options
        self.packer = Packer(self.tokenizer, encoding) if self.options.pack else None
        if self.packer is not None:  # it truncates rows itself
            encoding = encoding.of_documents
        self.encoding = encoding
        if self.packer or self.weights or encoding.stride is not None or encoding.columns:
            self.maker = None
        self.schema = self._schema()
        self.sums = {name: 0 for name in SUMS if name != "output_bytes"}
        self.split_weights = [0] * len(self.weights.bounds if self.weights else ())

    def _schema(self) -> pa.Schema:
        """The schema of the output: the kept columns, the ids, and the other columns added."""
        kept, added = self.shard.schema, added_schema(self.tokenizer, self.options)
        if self.weights:
            added = pa.schema([*added, *self.weights.fields])
        for name in added.names:
            if name in kept.names:
                others = ",".join(other for other in kept.names if other not in added.names)
                raise ColumnError(
                    f"{self.file.path}: already has a column {name!r}; exclude it with"
                    f" {opt.keep_columns} '{others}'"
                )
        metadata = {METADATA_KEY: self.tokenizer.digest.encode()}
        return pa.schema([*kept, *added], metadata=metadata)

    def parquet_options(self) -> dict[str, Any]:
        """How pyarrow stores the columns that it writes."""
        texts = text_columns(self.options).names
        kept = [name for name in self.shard.schema.names if name not in texts]
        return storing(self.options, self.shard.schema, kept)

    def result(self, name: str, size: int) -> ShardResult:
        """The status of the shard, which has this size, when all its rows are encoded."""
        sums: dict[str, Any] = self.sums | {"output_bytes": size}
        source = source_of(self.file)
        if self.weights is None:
            columns = hashlib.sha256(str(self.schema.remove_metadata()).encode()).hexdigest()[:16]
            return ShardResult(name, self.file.name, source, columns=columns, **sums)
        sums["schema"] = base64.b64encode(self.schema.serialize().to_pybytes()).decode()
        return WeightedResult(name, self.file.name, source, weights=self.split_weights, **sums)

    def parts(self) -> Iterator[Part]:
        """The encoded rows of the shard, in parts of which none is empty."""
        batches = ahead(self.shard.batches, self.threads)
        encoded = in_threads(self._encode, self._pieces(batches), self.threads)
        begins = False
        for part in self._packed(encoded) if self.packer else self._encoded(encoded):
            begins = begins or part.begins
            if part.table.num_rows:
                yield replace(part, begins=begins)
                begins = False

    def _encoded(self, encoded: Iterator[EncodedPiece]) -> Iterator[Part]:
        for done in encoded:
            self._count(done)
            piece = done.piece
            first = Part(piece.begins, piece.table, piece.chunks, pages=done.pages)
            tables = [piece.table] if done.pages else self._tables(piece, done.batch)
            for number, table in enumerate(tables):
                yield Part(False, table) if number else replace(first, table=table)

    def _packed(self, encoded: Iterator[EncodedPiece]) -> Iterator[Part]:
        """Packed sequences. The last one goes into the row group of those before it."""
        assert self.packer is not None
        rows = 0
        for done in encoded:
            self._count(done)
            table = self.packer.add(done.batch.table.column(IDS), done.piece.first_row)
            rows += table.num_rows
            yield Part(done.piece.begins, table)
        last = self.packer.finish()
        self.sums["rows"] = rows + last.num_rows
        self.sums["dropped_tokens"] = self.packer.dropped
        yield Part(False, last)

    def _pieces(self, batches: Iterator[TextBatch]) -> Iterator[Piece]:
        """The batches of the shard, split into pieces of about `PIECE_SIZE`."""
        row = 0
        for batch in batches:
            self.sums["input_rows"] += len(batch.texts)
            self.sums["replaced"] += batch.replaced
            self.sums["invalid"] += batch.invalid
            ends = piece_ends(batch, self.encoding)
            for start, end in pairwise([0, *ends]):
                yield Piece(
                    batch.table.slice(start, end - start),
                    batch.texts.slice(start, end - start),
                    None if batch.pairs is None else batch.pairs.slice(start, end - start),
                    row + start,
                    batch.bytes if start == 0 else 0,
                    begins=batch.begins and start == 0,
                    chunks=batch.chunks if start == 0 else None,
                )
            row += len(batch.texts)

    def _encode(self, piece: Piece) -> EncodedPiece:
        texts, pairs, options = piece.texts, piece.pairs, self.encoding
        try:
            if self.maker is None:
                batch = self.tokenizer.encode_batch(texts, pairs, options=options)
                if self.weights:
                    table = self.weights.add(batch.table, piece.table, IDS, texts)
                    batch = replace(batch, table=table)
                return EncodedPiece(piece, batch)
            least_ids = shard_writer.LEAST_IDS
            batch, pages = self.tokenizer.encode_pages(
                texts, pairs, options=options, maker=self.maker, least_ids=least_ids
            )
            return EncodedPiece(piece, batch, pages)
        except SpecialTokenError as error:
            message = str(error).removeprefix(f"text {error.text} ")
            row = piece.first_row + error.text
            raise InputError(f"{self.file.path} row {row}: {message}") from error
        except InputError as error:
            place = f"{self.file.path}, counted from row {piece.first_row}"
            raise InputError(f"{place}: {error.template}") from error

    def _count(self, done: EncodedPiece) -> None:
        batch, pages = done.batch, done.pages
        shown = {
            "bytes": done.piece.bytes,
            "rows": pages.rows if pages else batch.table.num_rows,
            "tokens": batch.tokens,
            "truncated_rows": batch.truncated_rows,
            "truncated_tokens": batch.truncated_tokens,
        }
        amounts = shown | {
            "nulls": pages.nulls if pages else batch.table.column(IDS).null_count,
            "unknown_tokens": batch.unknown,
            "words": batch.words,
            "word_tokens": batch.word_tokens,
            "special_tokens": batch.special_tokens,
        }
        for name, amount in amounts.items():
            self.sums[name] += amount
        if self.weights:
            sums = self.weights.sums(batch.table)
            self.split_weights = [a + b for a, b in zip(self.split_weights, sums, strict=True)]
        own = 0 if self.file.compression else done.piece.bytes
        add_metrics(**shown, input=own, unknown=batch.unknown)

    def _tables(self, piece: Piece, batch: EncodedBatch) -> Iterator[pa.Table]:
        """Tables of the kept and the added columns. With a stride, rows repeat what is kept. Then
        there are several tables, so that none is too large even if each row repeated the whole
        piece."""
        kept, added, sources = piece.table, batch.table, batch.source_rows
        if sources is None:
            yield pa.table([*kept.columns, *added.columns], schema=self.schema)
            return
        rows = max(1, pieces.ROW_GROUP_BYTES // max(kept.nbytes, 1))
        first = pa.scalar(piece.first_row, pa.int64())
        for start in range(0, len(sources), rows):
            some = sources.slice(start, rows)
            repeated = [self._take(kept, name, some) for name in kept.column_names]
            columns = added.slice(start, rows).columns
            yield pa.table([*repeated, *columns, pc.add(some, first)], schema=self.schema)

    def _take(self, kept: pa.Table, name: str, rows: pa.ChunkedArray) -> pa.ChunkedArray:
        """Rows of a column. ColumnError for a type that Arrow cannot repeat."""
        try:
            return taken(kept[name], rows)
        except pa.ArrowNotImplementedError as error:
            raise ColumnError(
                f"{self.file.path}: column {name!r} of {kept[name].type} cannot be repeated in"
                f" several rows; exclude it with {opt.keep_columns}"
            ) from error


@lru_cache(SCHEMAS)
def added_schema(tokenizer: Tokenizer, options: ShardOptions) -> pa.Schema:
    """The columns that are made: the ids, and what else is asked for."""
    if options.pack:
        return Packer(tokenizer, options).finish().schema

    pairs: list[str] | None = [] if options.text_pair_column else None
    added = tokenizer.encode_batch([], pairs, options=options).table.schema
    if options.stride is not None:
        added = added.append(pa.field(SOURCE_ROWS, pa.int64()))
    return added


def text_columns(options: ShardOptions) -> TextColumns:
    """The columns that hold text."""
    keeps_texts = options.stride is None
    return TextColumns(options.text_column, pair=options.text_pair_column, keeps_texts=keeps_texts)


def check_fit(options: ShardOptions, tokenizer: Tokenizer) -> None:
    """OptionError if the options do not fit the vocabulary."""
    if options.pack:
        Packer(tokenizer, options)
        return
    if options.add_special_tokens and not tokenizer.adds_special_tokens:
        raise OptionError(
            f"the vocabulary lacks [CLS] or [SEP]; set {opt['add_special_tokens=False']}"
        )
    tokenizer.check_options(options, bool(options.text_pair_column))


def storing(options: ShardOptions, schema: pa.Schema, kept: Sequence[str]) -> dict[str, Any]:
    """How pyarrow stores columns: those that are `kept` of the input with dictionaries where that
    helps and with statistics, ids and texts plain."""
    paths, codec = _leaf_paths(schema, tuple(kept)), options.compression
    return {"compression": codec, "use_dictionary": paths, "write_statistics": paths}


@lru_cache(SCHEMAS)
def _leaf_paths(schema: pa.Schema, names: tuple[str, ...]) -> list[str]:
    """Parquet's names for the stored columns. A nested column has several."""
    stored = pq.read_metadata(pa.BufferReader(empty_parquet(schema))).schema
    paths = (stored.column(i).path for i in range(len(stored)))
    return [path for path in paths if path in names or path.split(".")[0] in names]
