"""The step that makes a shard of the rows that were dealt to it, with its note."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.logs import Log
from pipelines.encoding.directory.new_shards import NewShard, commit, write_shard
from pipelines.encoding.directory.notes import ShardResult
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.pieces import Part
from pipelines.encoding.shard_encoder import added_schema, leaf_paths, text_columns
from pipelines.encoding.shard_writer import IDS, ShardWriter, id_pages
from pipelines.files import storage
from pipelines.files.outputs import NewFile
from pipelines.layout.deal import LaidShard
from pipelines.layout.formats import ENDING_BESIDE, IdFiles, id_type
from pipelines.layout.packed import PackedRows, packed_schema
from pipelines.layout.rows import Rows, conformed
from pipelines.running.figure_files import FigureFiles
from pipelines.running.figures import report
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError, one_line


@dataclass(frozen=True)
class Layout:
    """How shards are made. `options`: as they were asked for; `format`: of the files; `digest`: of
    the inputs and options, which the notes of shards hold."""

    dataset: EncodedDirectory
    options: ShardOptions
    format: str
    digest: str
    rows: Rows

    @property
    def ending(self) -> str:
        """What the names of the files with ids end with."""
        return ".parquet" if self.format == "parquet" else ".bin"

    def source(self) -> dict[str, Any]:
        """What the notes of shards have as their source."""
        return {"layout": self.digest}


@dataclass
class ShardRows:
    """The rows of a shard on their way, and their sums."""

    layout: Layout
    tokenizer: Tokenizer
    sums: dict[str, int] = field(default_factory=dict)

    def tables(self, rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The rows of a shard in its schema."""
        options = self.layout.options
        self.sums = dict.fromkeys(("input_rows", "nulls", "tokens", "unknown_tokens", "rows"), 0)
        counted = map(self._counted, rows)
        if not options.pack:
            for table in counted:
                self.sums["rows"] += table.num_rows
                yield conformed(table, self.schema)
            return
        packed = PackedRows(self.tokenizer, options.encoding)
        for table in packed.tables(counted):
            self.sums["rows"] += table.num_rows
            yield table.cast(self.schema)
        self.sums["dropped_tokens"] = packed.dropped

    @property
    def schema(self) -> pa.Schema:
        """The schema of the shard."""
        schema, options = self.layout.rows.schema, self.layout.options
        if options.pack:
            packed = packed_schema(self.tokenizer, options.encoding)
            return packed.with_metadata(schema.metadata)
        return schema

    def _counted(self, table: pa.Table) -> pa.Table:
        ids = table.column(IDS)
        unknown = pa.scalar(self.tokenizer.unk_id, ids.type.value_type)
        values = pa.chunked_array([chunk.flatten() for chunk in ids.chunks], ids.type.value_type)
        found = {
            "input_rows": table.num_rows,
            "nulls": ids.null_count,
            "tokens": len(values),
            "unknown_tokens": pc.sum(pc.equal(values, unknown)).as_py() or 0,
        }
        for name, amount in found.items():
            self.sums[name] += amount
        report(rows=table.num_rows)
        return table


def write_parquet(
    stream: NewFile, rows: ShardRows, tables: Iterator[pa.Table], threads: int
) -> None:
    """Writes rows as a Parquet file, as encoded shards are written."""
    options = rows.layout.options
    schema = rows.schema
    added = schema.names if options.pack else added_schema(rows.tokenizer, options).names
    others = {*added, *text_columns(options).names}
    stored = leaf_paths(schema, tuple(name for name in schema.names if name not in others))
    storing = {
        "compression": options.compression,
        "use_dictionary": stored,
        "write_statistics": stored,
    }
    maker = id_pages(rows.tokenizer, options.compression)
    parts = (Part(False, table) for table in tables if table.num_rows)
    ShardWriter(schema, storing, maker, threads).write(stream, parts)


@contextmanager
def laid_out(name: str) -> Iterator[None]:
    """Turns what Arrow cannot do with some column into an InputError. `name`: of what is made."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"{name}: cannot be laid out ({one_line(error)}); leave columns that are neither text"
            " nor numbers out with --keep-columns"
        ) from error


@dataclass
class MakeShard(beam.DoFn):
    """Makes shards, and notes them. `figures`: where they are left while the pipeline runs."""

    layout: Layout
    threads: int
    figures: FigureFiles

    def setup(self) -> None:
        self.tokenizer = self.layout.dataset.tokenizer()

    def start_bundle(self) -> None:
        self.figures.leave()

    def process(self, shard: LaidShard) -> None:
        with laid_out(shard.name):
            storage.again(lambda: self._make(shard))
        report(shards=1)

    def _make(self, shard: LaidShard) -> None:
        layout = self.layout
        rows = ShardRows(layout, self.tokenizer)
        name = shard.name + layout.ending
        dataset = layout.dataset
        dataset.notes.check_lease()

        def result(size: int) -> ShardResult:
            return ShardResult(name, name, layout.source(), output_bytes=size, **rows.sums)

        files = IdFiles(layout.format, id_type(layout.format, len(self.tokenizer.vocab)))

        def write(stream: NewFile) -> None:
            tables = rows.tables(layout.rows.of(shard))
            if layout.format == "parquet":
                write_parquet(stream, rows, tables, self.threads)
            else:
                files.write_ids(stream, tables)
                rows.sums["rows"] = files.rows

        with ExitStack() as open_files:
            written = [write_shard(dataset, name, write, result)]
            open_files.enter_context(written[0].file)
            if layout.format != "parquet":
                beside = shard.name + ENDING_BESIDE[layout.format]
                written.append(self._beside(beside, files))
                open_files.enter_context(written[1].file)
            commit(dataset, written, (), Log())

    def _beside(self, name: str, files: IdFiles) -> NewShard:
        """The file that says where the rows are."""
        source = self.layout.source()
        return write_shard(
            self.layout.dataset,
            name,
            files.write_places,
            lambda size: ShardResult(name, name, source, output_bytes=size),
        )
