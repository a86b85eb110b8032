"""The step that encodes one shard. It writes the file and a note; for a bad shard, only a note of
what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa

from pipelines.encoding.encoded_directory import (
    CHANGED,
    COLUMN,
    FILE,
    EncodedDirectory,
    ShardError,
    ShardResult,
    source_of,
)
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.shard_encoder import ShardEncoder, text_columns
from pipelines.files import inputs, outputs, storage
from pipelines.files.inputs import InputFile
from pipelines.running.progress import report
from pipelines.running.threads import ahead
from wordpiece_core.errors import ChangedError, ColumnError, InputError, one_line


@dataclass
class EncodeShard(beam.DoFn):
    """Encodes one shard and writes a note of the result, also if the shard cannot be read."""

    directory: EncodedDirectory
    options: ShardOptions
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
        shard = inputs.open_shard(file, text_columns(options), options.kept)
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
    """The note of a shard that could not be encoded."""
    cause = FILE
    if isinstance(error, ColumnError | ChangedError):
        cause = COLUMN if isinstance(error, ColumnError) else CHANGED
    message = str(error).replace(file.path, file.name)
    return ShardError(name, file.name, source_of(file), error.row_group, message, cause)
