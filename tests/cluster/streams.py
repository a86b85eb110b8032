"""The streams of `docs/examples` on Flink: each input has one output, even if all TaskManagers are
killed and Flink resumes from a checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Set
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Consumer, Producer

from . import servers
from .servers import Servers, boot_command, worker_environment

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PATIENCE = 120.0  # seconds in which what is awaited must happen
ROWS = 20  # in a file


class StreamError(Exception):
    """A stream went otherwise than it must."""


class Stream:
    """A pipeline of the examples that runs on Flink, with the log of its driver. (A bundle that is
    open when Flink 1.19 with Beam 2.62 makes a checkpoint may never give its elements: so each has
    one element.)"""

    def __init__(self, directory: Path, example: str, *args: str) -> None:
        self.log = directory / "stream.log"
        config = json.dumps({"command": boot_command(directory)})
        beam_args = [
            *("--runner=PortableRunner", f"--job_endpoint=127.0.0.1:{servers.JOB_SERVER}"),
            *("--parallelism=2", "--checkpointing_interval=2000", "--max_bundle_size=1"),
            *("--environment_type=PROCESS", f"--environment_config={config}"),
        ]
        with self.log.open("w") as log:
            self.driver = subprocess.Popen(
                [sys.executable, str(EXAMPLES / example), *args, *beam_args],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=worker_environment(),
            )

    def wait_for(self, what: str, is_so: Callable[[], bool]) -> None:
        """Waits until something is so. StreamError if it takes too long, or the driver ends."""
        end = time.monotonic() + PATIENCE
        while not is_so():
            if time.monotonic() > end or self.driver.poll() is not None:
                raise StreamError(f"{what}: not so; {self.log.read_text()[-1500:]}")
            time.sleep(0.2)

    def checkpoints(self) -> int:
        """Return the number of completed checkpoints of the job."""
        return sum(
            servers.rest(f"jobs/{job}/checkpoints")["counts"]["completed"] for job in self._jobs()
        )

    def cancel(self) -> None:
        """Ends the job by Flink's REST interface, and the driver."""
        for job in self._jobs():
            url = f"http://127.0.0.1:{servers.REST}/jobs/{job}"
            urllib.request.urlopen(urllib.request.Request(url, method="PATCH"), timeout=10).close()
        self.driver.terminate()
        self.driver.wait()

    def _jobs(self) -> list[str]:
        return [job["id"] for job in servers.rest("jobs")["jobs"] if job["status"] == "RUNNING"]


def files_as_they_come(directory: Path, tokenizer: Path, cluster: Servers) -> None:
    """Write files, kill all TaskManagers, and write more files. StreamError unless each row is
    written once."""
    arriving, output = directory / "arriving", directory / "shards"
    arriving.mkdir(parents=True)
    how = ("--window=2", "--interval=0.5")
    args = (f"{arriving}/*.jsonl", str(tokenizer), str(output), *how)
    stream = Stream(directory, "stream_files.py", *args)
    numbers = iter(range(1000))

    def put(files: int) -> None:
        for number in (next(numbers) for _ in range(files)):
            lines = (json.dumps({"text": f"text {number} {i}"}) for i in range(ROWS))
            part = arriving / f".{number}"
            part.write_text("".join(f"{line}\n" for line in lines))
            part.rename(arriving / f"{number:03}.jsonl")
            time.sleep(0.3)

    def rows() -> list[str]:
        written = output.glob("*.parquet")
        return [text for path in written for text in pq.read_table(path)["text"].to_pylist()]

    try:
        put(4)
        stream.wait_for("the first files are written", lambda: len(rows()) >= 4 * ROWS)
        before = stream.checkpoints()
        stream.wait_for("a checkpoint after them", lambda: stream.checkpoints() > before)
        put(3)
        cluster.replace_task_managers()
        put(3)
        stream.wait_for("all files are written", lambda: len(set(rows())) == 10 * ROWS)
        time.sleep(6)  # in which nothing more may come
        if len(rows()) != 10 * ROWS:
            raise StreamError(f"{len(rows())} rows, not {10 * ROWS}")
    finally:
        stream.cancel()


def messages_of_kafka(directory: Path, tokenizer: Path, cluster: Servers) -> None:
    """Send messages, two of them bad, kill all TaskManagers, and send more messages. StreamError
    unless the ids of all are in their topic, and the bad messages in theirs. Prints the time from a
    message to its ids."""
    directory.mkdir()
    if "kafka" not in cluster.running:
        cluster.start_kafka()
    server = f"127.0.0.1:{servers.KAFKA}"
    producer = Producer({"bootstrap.servers": server})
    topics = Topics(server, ["ids", "ids-bad"])
    for topic in ("texts", "ids", "ids-bad"):
        producer.produce(topic, b"{}" if topic == "texts" else b"null")  # makes it
    producer.flush()
    service = f"--expansion-service=127.0.0.1:{servers.EXPANSION}"
    args = (server, "texts", str(tokenizer), "ids", service)
    stream = Stream(directory, "stream_kafka.py", *args)
    sent: dict[str, float] = {}

    def put(messages: int) -> None:
        for _ in range(messages):
            text = f"text {len(sent)}"
            sent[text] = time.time()
            producer.produce("texts", json.dumps({"text": text}).encode(), partition=len(sent) % 2)
            producer.flush()
            time.sleep(0.02)

    try:
        put(20)
        producer.produce("texts", b"no JSON")
        stream.wait_for("the first ids", lambda: topics.texts() >= sent.keys())
        began = len(sent)
        put(300)
        stream.wait_for("further ids", lambda: topics.texts() >= sent.keys())
        steady = sorted(topics.found[text] - sent[text] for text in list(sent)[began:])
        middle, late = steady[len(steady) // 2], steady[len(steady) * 99 // 100]
        print(f"    from a message to its ids: p50 {middle:.2f} s, p99 {late:.2f} s", flush=True)
        cluster.replace_task_managers()
        put(50)
        stream.wait_for("ids after the restart", lambda: topics.texts() >= sent.keys())
        bad = [message["message"] for message in topics.messages["ids-bad"] if message]
        if {*map(str, bad)} != {"{}", "no JSON"}:
            raise StreamError(f"bad messages: {bad}")
    finally:
        stream.cancel()


class Topics:
    """Messages of topics. `found`: by text, the time at which its ids were first written."""

    def __init__(self, server: str, names: list[str]) -> None:
        self.consumer = Consumer(
            {"bootstrap.servers": server, "group.id": "suite", "auto.offset.reset": "earliest"}
        )
        self.consumer.subscribe(names)
        self.messages: dict[str, list[Any]] = {name: [] for name in names}
        self.found: dict[str, float] = {}

    def texts(self) -> Set[str]:
        """The texts whose ids are there."""
        while (message := self.consumer.poll(0.2)) is not None:
            if message.error():
                continue
            value = json.loads(message.value())
            self.messages[message.topic()].append(value)
            if value and "text" in value:
                self.found.setdefault(value["text"], message.timestamp()[1] / 1000)
        return self.found.keys()
