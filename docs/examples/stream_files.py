"""Encode JSON Lines files as they appear, and write a Parquet file for each window of time.

    python stream_files.py 'arriving/*.jsonl' my-tokenizer shards --window 60 \
      --runner=PortableRunner --job_endpoint=localhost:8099 --checkpointing_interval=10000

Each file is encoded once, in the window in which it was found. A file must appear under its name
when it is complete, as objects in a store do and renamed files do. The stream runs until it is
cancelled. All arguments that are not listed here go to Beam.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, BinaryIO

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io import ReadAllFromText
from apache_beam.io.fileio import (
    FileSink,
    MatchContinuously,
    WriteToFiles,
    destination_prefix_naming,
)
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows

from pipelines import EncodeTexts

SCHEMA = pa.schema({"text": pa.string(), "input_ids": pa.list_(pa.int32())})


class ParquetSink(FileSink):
    """Writes the rows of a window to a Parquet file. (`WriteToParquet` of Beam 2.77 fails on Flink
    when a window of a stream ends.)"""

    def open(self, fh: BinaryIO) -> None:
        """Start a file."""
        self.file, self.rows = fh, list[dict[str, Any]]()

    def write(self, record: dict[str, Any]) -> None:
        """Add a row."""
        self.rows.append(record)

    def flush(self) -> None:
        """Finish the file."""
        pq.write_table(pa.Table.from_pylist(self.rows, SCHEMA), self.file)


def main() -> None:
    """Run the stream."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pattern", help="files to read, a glob; local or in a store")
    parser.add_argument("tokenizer")
    parser.add_argument("output", help="directory of the Parquet files")
    parser.add_argument("--window", type=float, default=60, help="seconds in one file")
    parser.add_argument("--interval", type=float, default=5, help="seconds between two listings")
    given, beam_args = parser.parse_known_args()
    with beam.Pipeline(options=PipelineOptions(beam_args, streaming=True)) as pipeline:
        files = pipeline | MatchContinuously(given.pattern, interval=given.interval)
        lines = files | beam.Map(lambda file: file.path) | ReadAllFromText()
        texts = lines | "parse" >> beam.Map(text_of) | beam.WindowInto(FixedWindows(given.window))
        rows = texts | EncodeTexts(given.tokenizer)
        naming = destination_prefix_naming(".parquet")
        rows | WriteToFiles(
            given.output, sink=lambda _: ParquetSink(), shards=1, file_naming=naming
        )


def text_of(line: str) -> dict[str, str]:
    """Return the text of a JSON object."""
    return {"text": json.loads(line)["text"]}


if __name__ == "__main__":
    main()
