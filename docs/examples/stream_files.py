"""Encodes files as they come, and writes a Parquet shard for each window of time; and, if asked,
the counts of its words.

    python stream_files.py 'arriving/*.jsonl' my-tokenizer shards --window 60 \
      --runner=PortableRunner --job_endpoint=localhost:8099 --checkpointing_interval=10000

Each file is encoded once, in the window in which it was found. A file must appear under its name
when it is complete, as objects in a store do, and as a file does that is renamed. The stream runs
until it is cancelled. After a failure the runner continues from its last checkpoint, and may write
some shards again: with the same rows. All arguments that are not listed here go to Beam.
"""

from __future__ import annotations

import argparse

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.fileio import MatchContinuously
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows

from pipelines import CountWords, EncodeTexts, ReadTexts, WriteShards


def main() -> None:
    """Runs the stream."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pattern", help="files to read, a glob; local or in a store")
    parser.add_argument("tokenizer")
    parser.add_argument("output", help="directory of the shards")
    parser.add_argument("--words", help="directory of the shards of word counts")
    parser.add_argument("--window", type=float, default=60, help="seconds in one shard")
    parser.add_argument("--interval", type=float, default=5, help="seconds between two listings")
    given, beam_args = parser.parse_known_args()
    with beam.Pipeline(options=PipelineOptions(beam_args, streaming=True)) as pipeline:
        files = pipeline | MatchContinuously(given.pattern, interval=given.interval)
        tables = files | beam.WindowInto(FixedWindows(given.window)) | ReadTexts()
        tables | EncodeTexts(given.tokenizer) | WriteShards(given.output)
        if given.words:
            counts = tables | CountWords() | beam.BatchElements(max_batch_size=100_000)
            counts | beam.Map(_table) | "write words" >> WriteShards(given.words)


def _table(counts: list[tuple[str, int]]) -> pa.Table:
    words, numbers = zip(*counts, strict=True)
    return pa.table({"word": words, "count": pa.array(numbers, pa.int64())})


if __name__ == "__main__":
    main()
