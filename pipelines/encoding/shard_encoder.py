"""Encode the rows of a shard, and count them.

Batches of rows are encoded in pieces, on threads that all shards of a process share.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.columns import added_schema, columns_digest, storing, text_columns
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.pieces import Part, packed_pieces, piece_ends
from pipelines.encoding.row_weights import RowWeights
from pipelines.encoding.shard_writer import IDS
from pipelines.encoding.shards import SUMS, ShardResult, WeightedResult, source_of
from pipelines.io.inputs import InputFile, Shard, TextBatch
from pipelines.io.schemas import taken
from pipelines.progress import add_metrics
from pipelines.threads import ahead, in_threads
from wordpiece_core import EncodedTable, EncodingOptions, Packer, Tokenizer
from wordpiece_core._kernel import IdPages
from wordpiece_core.errors import ColumnError, InputError, SpecialTokenError, opt

METADATA_KEY = b"wordpiece.tokenizer"


@dataclass
class ShardEncoder:
    """Encode the rows of a shard, and count them.

    Attributes:
        maker: The writer of pages of ids.
        weights: How rows are weighted that will be resharded.
        schema: Schema of the shard: kept columns, ids, other added columns.
        sums: Counts of the record.
        longest_text: Number of tokens of the longest text.
        split_weights: Sums of the weights by split.
    """

    file: InputFile
    shard: Shard
    tokenizer: Tokenizer
    options: ShardOptions
    maker: IdPages | None
    threads: int
    weights: RowWeights | None = None
    schema: pa.Schema = field(init=False)
    sums: Counter[str] = field(init=False)
    longest_text: int = field(init=False)
    split_weights: list[int] = field(init=False)

    def __post_init__(self) -> None:
        encoding: EncodingOptions = self.options
        self.packer = None
        if self.options.pack:  # the packer truncates rows itself
            self.packer = Packer(self.tokenizer, encoding, best_fit=self.options.is_best_fit)
            encoding = encoding.of_documents
        self.encoding = encoding
        if self.packer or self.weights or encoding.stride is not None or encoding.columns:
            self.maker = None
        self.schema = self._schema()
        self.sums = Counter(dict.fromkeys(SUMS, 0))
        self.longest_text = 0
        self.split_weights = [0] * len(self.weights.bounds if self.weights else ())

    def _schema(self) -> pa.Schema:
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
        """Return how pyarrow stores the columns that it writes."""
        texts = text_columns(self.options).encoded
        kept = [name for name in self.shard.schema.names if name not in texts]
        return storing(self.options, self.shard.schema, kept)

    def result(self, name: str) -> ShardResult:
        """Return the record of the shard, without its size, once all rows are encoded."""
        sums: dict[str, Any] = dict(self.sums) | {"longest_text": self.longest_text}
        source = source_of(self.file)
        if self.weights is None:
            columns = columns_digest(self.schema)
            return ShardResult(name, self.file.name, source, columns=columns, **sums)
        sums["schema"] = base64.b64encode(self.schema.serialize().to_pybytes()).decode()
        return WeightedResult(name, self.file.name, source, weights=self.split_weights, **sums)

    def parts(self) -> Iterator[Part]:
        """Yield the encoded rows in parts that are not empty."""
        batches = ahead(self.shard.batches, self.threads)
        rows = self._pieces(batches)
        encoded = in_threads(lambda piece: (piece, self._encode(piece)), rows, self.threads)
        begins = False
        for part in self._packed(encoded) if self.packer else self._encoded(encoded):
            begins = begins or part.begins
            if part.table.num_rows:
                yield replace(part, begins=begins)
                begins = False

    def _pieces(self, batches: Iterator[TextBatch]) -> Iterator[TextBatch]:
        """Split the batches into pieces of about `piece_bytes`."""
        row = 0
        for batch in batches:
            self.sums["input_rows"] += len(batch.texts)
            self.sums["replaced"] += batch.replaced
            self.sums["invalid"] += batch.invalid
            for start, end in pairwise([0, *piece_ends(batch, self.encoding)]):
                yield batch.rows(start, end, first_row=row + start)
            row += len(batch.texts)

    def _encode(self, piece: TextBatch) -> EncodedTable:
        texts, pairs, options = piece.texts, piece.pairs, self.encoding
        try:
            if self.maker is not None:
                return self.tokenizer.encode_pages(
                    *(texts, pairs),
                    options=options,
                    maker=self.maker,
                    least_ids=options.limits.dictionary_ids,
                )
            batch = self.tokenizer.encode_table(texts, pairs, options=options)
            if self.weights:
                table = self.weights.add(batch.table, piece.table, IDS, texts, piece.groups)
                batch = replace(batch, table=table)
            return batch
        except SpecialTokenError as error:
            message = str(error).removeprefix(f"text {error.text} ")
            row = piece.first_row + error.text
            raise InputError(f"{self.file.path} row {row}: {message}") from error
        except InputError as error:
            place = f"{self.file.path}, counted from row {piece.first_row}"
            raise InputError(f"{place}: {error.template}") from error

    def _encoded(self, encoded: Iterator[tuple[TextBatch, EncodedTable]]) -> Iterator[Part]:
        for piece, batch in encoded:
            self._count(piece, batch)
            first = Part(piece.begins, piece.table, piece.chunks, pages=batch.pages)
            tables = [piece.table] if batch.pages else self._tables(piece, batch)
            for number, table in enumerate(tables):
                yield Part(False, table) if number else replace(first, table=table)

    def _packed(self, encoded: Iterator[tuple[TextBatch, EncodedTable]]) -> Iterator[Part]:
        """Pack the ids. The last sequence goes into the row group before it."""
        assert self.packer is not None
        rows = 0
        for piece, batch in encoded:
            self._count(piece, batch)
            table = self.packer.add(batch.table.column(IDS), piece.first_row)
            rows += table.num_rows
            for number, some in enumerate(packed_pieces(table, self.options)):
                yield Part(piece.begins and not number, some)
        last = self.packer.finish()
        self.sums["rows"] = rows + last.num_rows
        self.sums["dropped_tokens"] = self.packer.dropped
        self.sums["padding_tokens"] = self.packer.padding
        yield from (Part(False, some) for some in packed_pieces(last, self.options))

    def _count(self, piece: TextBatch, batch: EncodedTable) -> None:
        shown = {
            "bytes": piece.bytes,
            "rows": batch.rows,
            "tokens": batch.tokens,
            "truncated_rows": batch.truncated_rows,
            "truncated_tokens": batch.truncated_tokens,
        }
        self.sums.update(shown)
        self.sums.update(
            nulls=batch.nulls,
            unknown_tokens=batch.unknown,
            words=batch.words,
            word_tokens=batch.word_tokens,
            special_tokens=batch.special_tokens,
        )
        self.longest_text = max(self.longest_text, batch.longest_text)
        if self.encoding.padding:
            ids = (batch.rows - batch.nulls) * (self.encoding.max_length or 0)
            self.sums["padding_tokens"] += ids - batch.tokens
        if self.weights:
            sums = self.weights.sums(batch.table)
            self.split_weights = [a + b for a, b in zip(self.split_weights, sums, strict=True)]
        own = 0 if self.file.compression else piece.bytes
        add_metrics(**shown, input=own, unknown=batch.unknown)

    def _tables(self, piece: TextBatch, batch: EncodedTable) -> Iterator[pa.Table]:
        """Yield tables of the kept and the added columns. With a stride, rows repeat the kept
        columns. Then there are several tables, so that none is too large even if each row repeated
        the complete piece."""
        kept, added, sources = piece.table, batch.table, batch.source_rows
        if sources is None:
            yield pa.table([*kept.columns, *added.columns], schema=self.schema)
            return
        rows = max(1, self.options.limits.row_group_bytes // max(kept.nbytes, 1))
        first = pa.scalar(piece.first_row, pa.int64())
        for start in range(0, len(sources), rows):
            some = sources.slice(start, rows)
            repeated = [self._take(kept, name, some) for name in kept.column_names]
            columns = added.slice(start, rows).columns
            yield pa.table([*repeated, *columns, pc.add(some, first)], schema=self.schema)

    def _take(self, kept: pa.Table, name: str, rows: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return rows of a column. Raises ColumnError for a type that Arrow cannot repeat."""
        try:
            return taken(kept[name], rows)
        except pa.ArrowNotImplementedError as error:
            raise ColumnError(
                f"{self.file.path}: column {name!r} of {kept[name].type} cannot be repeated in"
                f" several rows; exclude it with {opt.keep_columns}"
            ) from error
