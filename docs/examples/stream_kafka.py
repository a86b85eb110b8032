"""Encode Kafka messages, and write their token ids to another topic.

    python stream_kafka.py localhost:9092 texts my-tokenizer ids \
      --runner=PortableRunner --job_endpoint=localhost:8099 --checkpointing_interval=10000

A message is a JSON object with a `text`. A message that is not, or whose text cannot be encoded,
goes to the topic of ids with `-bad` after its name. Beam's transforms for Kafka are in Java: Beam
starts an expansion service, or is given the address of one. After a failure the topic may get some
messages twice. All arguments that are not listed here go to Beam.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import apache_beam as beam
from apache_beam.io.kafka import ReadFromKafka, WriteToKafka
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines import EncodeTexts


def main() -> None:
    """Run the stream."""
    parser = argparse.ArgumentParser()
    parser.add_argument("servers", help="addresses of Kafka")
    parser.add_argument("topic", help="topic of messages to encode")
    parser.add_argument("tokenizer")
    parser.add_argument("ids", help="topic of ids")
    parser.add_argument("--expansion-service", help="address of Beam's transforms for Kafka")
    given, beam_args = parser.parse_known_args()
    service = {"expansion_service": given.expansion_service} if given.expansion_service else {}

    def topic(name: str) -> beam.PTransform:
        return WriteToKafka({"bootstrap.servers": given.servers}, name, **service)

    read = ReadFromKafka(
        {"bootstrap.servers": given.servers, "auto.offset.reset": "earliest"},
        [given.topic],
        **service,
    )
    encode = EncodeTexts(given.tokenizer, max_delay=0.1)
    with beam.Pipeline(options=PipelineOptions(beam_args, streaming=True)) as pipeline:
        messages = pipeline | read | beam.Values()
        rows, not_json = messages | "parse" >> beam.Map(parse).with_exception_handling()
        encoded, not_text = rows | encode.with_exception_handling()
        encoded | "serialize" >> message(serialize) | "write ids" >> topic(given.ids)
        bad = (not_json, not_text) | beam.Flatten() | "explain" >> message(explain)
        bad | "write bad" >> topic(f"{given.ids}-bad")


def parse(message: bytes) -> dict[str, Any]:
    """Return the JSON object in a message. ValueError for another JSON value."""
    found = json.loads(message)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def message(value: Callable[[Any], bytes]) -> beam.PTransform:
    """Make Kafka messages without a key, with a value that a function makes."""
    made = beam.Map(lambda element: (b"", value(element)))
    return made.with_output_types(tuple[bytes, bytes])


def serialize(row: dict[str, Any]) -> bytes:
    """Return a row as JSON."""
    return json.dumps(row).encode()


def explain(failure: tuple[Any, tuple[type, str, list[str]]]) -> bytes:
    """Return a failed element and the error, as JSON."""
    element, (_, reason, _) = failure
    shown = element.decode(errors="replace") if isinstance(element, bytes) else element
    return json.dumps({"message": shown, "error": reason}).encode()


if __name__ == "__main__":
    main()
