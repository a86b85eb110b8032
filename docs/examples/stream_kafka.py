"""Encodes messages of Kafka: to a topic at once, and to a Parquet shard for each window of time.

    python stream_kafka.py localhost:9092 texts my-tokenizer ids shards --window 60 \
      --runner=PortableRunner --job_endpoint=localhost:8099 --checkpointing_interval=10000

A message is a JSON object with a `text`. One that is not, and one whose text cannot be encoded,
goes to the topic of ids with `-bad` after its name. Beam's transforms for Kafka are in Java: Beam
starts what it needs, or is given the address of an expansion service.

The window of a message is that of the time at which it was produced. So after a failure the shards
of a window are written again with the same rows; the topic may get some messages twice. A window is
written when each partition has messages that are later. All arguments that are not listed here go
to Beam.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.kafka import ReadFromKafka, WriteToKafka
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows

from pipelines import EncodeTexts, WriteShards

SCHEMA = pa.schema({"text": pa.string(), "input_ids": pa.list_(pa.int32())})


def main() -> None:
    """Runs the stream."""
    parser = argparse.ArgumentParser()
    parser.add_argument("servers", help="addresses of Kafka")
    parser.add_argument("topic", help="of the messages to encode")
    parser.add_argument("tokenizer")
    parser.add_argument("ids", help="topic of the ids")
    parser.add_argument("output", help="directory of the shards")
    parser.add_argument("--window", type=float, default=60, help="seconds in one shard")
    parser.add_argument("--expansion-service", help="of Beam's transforms for Kafka")
    given, beam_args = parser.parse_known_args()
    service = {"expansion_service": given.expansion_service} if given.expansion_service else {}

    def topic(name: str) -> beam.PTransform:
        return WriteToKafka({"bootstrap.servers": given.servers}, name, **service)

    read = ReadFromKafka(
        {"bootstrap.servers": given.servers, "auto.offset.reset": "earliest"},
        [given.topic],
        timestamp_policy=ReadFromKafka.create_time_policy,
        **service,
    )
    encode = EncodeTexts(given.tokenizer, max_delay=0.1)
    with beam.Pipeline(options=PipelineOptions(beam_args, streaming=True)) as pipeline:
        messages = pipeline | read | beam.Values()
        rows, no_json = messages | "parse" >> beam.Map(parsed).with_exception_handling()
        encoded, no_text = rows | encode.with_exception_handling()
        encoded | "to bytes" >> message(to_bytes) | "write ids" >> topic(given.ids)
        bad = (no_json, no_text) | beam.Flatten() | "name" >> message(named)
        bad | "write bad" >> topic(f"{given.ids}-bad")
        windows = encoded | beam.WindowInto(FixedWindows(given.window)) | beam.BatchElements()
        windows | "to tables" >> beam.Map(table) | WriteShards(given.output)


def parsed(message: bytes) -> dict[str, Any]:
    """The JSON object in a message. ValueError if it is none."""
    found = json.loads(message)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def message(value: Any) -> beam.PTransform:
    """Makes elements messages without a key, with a value that a function makes."""
    made = beam.Map(lambda element: (b"", value(element)))
    return made.with_output_types(tuple[bytes, bytes])


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table."""
    return pa.Table.from_pylist(rows, SCHEMA)


def to_bytes(row: dict[str, Any]) -> bytes:
    """A row as JSON."""
    return json.dumps(row).encode()


def named(failure: tuple[Any, tuple[type, str, list[str]]]) -> bytes:
    """What could not be encoded, and why, as JSON."""
    element, (_, reason, _) = failure
    shown = element.decode(errors="replace") if isinstance(element, bytes) else element
    return json.dumps({"message": shown, "error": reason}).encode()


if __name__ == "__main__":
    main()
