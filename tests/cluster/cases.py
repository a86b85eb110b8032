"""Cases of the suite: the command on a cluster, with files here or in a store, and with faults.

Each run must write the bytes of a local run, except for the identity of inputs in the footers of
shards, which includes the times of files.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.encoding.shards import RECORD_KEY, TAIL
from tests.pipelines import stopping
from tests.pipelines.corpora import english, files_below, write_shards

from . import pauses, servers, streams
from .fetch import go_program
from .servers import (
    EMBEDDED_FLINK,
    FLINK,
    LOCAL_BEAM,
    PRISM,
    SPARK,
    ServerError,
    Servers,
    worker_environment,
)
from .stores import AZURE, GOOGLE, HUB, S3, S3_QUERY, STORES
from .streams import StreamError

HANGS = 300.0  # timeout of a command in seconds
STARTS = 60.0  # timeout of the start of a command in seconds
INTERRUPTED, FAILED = 130, 1  # exit statuses
LEAST_KILLS = 4  # minimum number of kills of a case
MANIFESTS = {"_manifest.json", ".manifest.json"}
OF_THE_RUN = {"run.json", ".run.json"}  # the files that differ between runs

LAYOUT, BPE, UNIGRAM = "encode, resharded", "train BPE in rounds", "train Unigram in rounds"
MIXED = "encode, mixed"
SUPERWORDS = "train superwords in rounds"
JOBS: dict[str, tuple[str, ...]] = {
    "count": ("count", "text", "--merge", "words"),
    "train": ("train", "text", "--vocab-size=300"),
    "train in rounds": ("train", "text", "--vocab-size=200", "--round-budget=0.5"),
    "train on words": ("train", "--word-counts", "words", "--vocab-size=300"),
    "encode": ("encode", "text", "--tokenizer", "tokenizer"),
    LAYOUT: (
        *("encode", "text", "--tokenizer", "tokenizer", "--shuffle=1", "--pack", "--max-length=32"),
        *("--splits=train=0.9,test=0.1", "--shard-size=16KiB"),
    ),
    MIXED: (
        *("encode", "groups", "--tokenizer", "tokenizer", "--group-column=lang", "--shuffle=1"),
        *("--mix=mix.yaml", "--tokens=20k", "--pack=best-fit", "--max-length=32"),
        "--shard-size=16KiB",
    ),
    BPE: ("train", "text", "--model=bpe", "--vocab-size=200", "--round-budget=0.5"),
    UNIGRAM: ("train", "text", "--model=unigram", "--vocab-size=300", "--round-budget=0.5"),
    SUPERWORDS: (
        *("train", "text", "--model=bpe", "--word-boundary=bytes", "--pre-tokenizer=gpt2"),
        *("--vocab-size=400", "--superwords=60", "--min-pair-count=2", "--round-budget=0.5"),
    ),
}
"""Arguments of the jobs, without their outputs. Names in `PLACES` are places."""
PLACES = ("text", "words", "tokenizer", "groups")
STREAMS = {
    "stream of files": streams.files_as_they_come,
    "stream of Kafka": streams.messages_of_kafka,
}
"""Pipelines of the examples, with what happens to them."""

LOOPBACK, PROCESS, EXTERNAL, THREADS = "LOOPBACK", "PROCESS", "EXTERNAL", "threads"
LOCAL, RELATIVE = "local", "relative"

NO_FAULT = "none"
TASK_MANAGER, ALL_TASK_MANAGERS = "TaskManager killed", "all TaskManagers killed"
WORKER, DRIVER, TERMINATE = "worker killed", "driver killed", "driver terminated"
JOB_MANAGER, JOB_SERVER = "JobManager killed", "job server killed"
EXECUTOR = "executor killed"  # with its worker, like a failing machine
AGAIN_AND_AGAIN = "killed again and again"

PAUSE_BEFORE = {
    "count": (2, r"written .*/part-"),
    "train in rounds": (3, r"written .*/splits/00002/"),
    "encode": (2, r"written .*/001\.parquet"),
    BPE: (3, r"written .*/splits/00002/"),
    UNIGRAM: (1, r"written .*/exchange/.*/expected"),
    SUPERWORDS: (3, r"written .*/superwords/splits/00002/"),
    LAYOUT: (2, r"written .*/train-\d+-of-\d+\.parquet"),
}
"""The change of the disk before which a worker waits for the fault: a file gets its final name.
The first change that matches creates the file under a temporary name. (A store has no temporary
names, so the number is 1 there.)"""


@dataclass(frozen=True)
class Case:
    """A command, its cluster and its fault."""

    job: str
    cluster: str
    workers: str
    files: str = LOCAL
    fault: str = NO_FAULT

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the cells of its row in the table."""
        return self.job, f"{self.cluster}, {self.workers}", self.files, self.fault

    @property
    def name(self) -> str:
        """Its columns on one line."""
        return " | ".join(self.columns)


SMOKE = [Case("count", PRISM, LOOPBACK), Case("encode", EMBEDDED_FLINK, PROCESS)]
"""The cases of every change."""


def all_cases() -> list[Case]:
    """Return the cases, ordered by cluster. On embedded Flink each kind of files and workers is
    combined with several jobs."""
    cases = []
    for store in (GOOGLE, AZURE, HUB):
        for job in ("count", "train in rounds", "encode", LAYOUT):
            cases.append(Case(job, LOCAL_BEAM, THREADS, store))
        cases.append(Case("encode", LOCAL_BEAM, THREADS, store, AGAIN_AND_AGAIN))
    cases += [Case(job, PRISM, LOOPBACK) for job in JOBS]
    kinds = itertools.cycle((S3, RELATIVE, S3_QUERY, LOCAL))
    workers = itertools.cycle((PROCESS, EXTERNAL, LOOPBACK))
    cases += [Case(job, EMBEDDED_FLINK, next(workers), next(kinds)) for job in JOBS]
    for job in PAUSE_BEFORE:
        faults = {BPE: [WORKER], UNIGRAM: [DRIVER], SUPERWORDS: [DRIVER]}.get(job, [WORKER, DRIVER])
        cases += [Case(job, EMBEDDED_FLINK, PROCESS, fault=fault) for fault in faults]
    for job, faults in (
        ("count", [TASK_MANAGER, ALL_TASK_MANAGERS]),
        ("train in rounds", [ALL_TASK_MANAGERS]),
        ("encode", [TASK_MANAGER, ALL_TASK_MANAGERS]),
    ):
        cases += [Case(job, FLINK, PROCESS, fault=fault) for fault in faults]
    cases += [
        Case("count", FLINK, PROCESS, fault=fault) for fault in (TERMINATE, JOB_MANAGER, JOB_SERVER)
    ]
    cases += [Case(job, FLINK, PROCESS, fault=ALL_TASK_MANAGERS) for job in STREAMS]
    cases.append(Case("train", SPARK, LOOPBACK))
    cases += [Case(job, SPARK, PROCESS, S3, EXECUTOR) for job in ("count", "encode")]
    return cases


# --- Places ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """Environment of the suite: its inputs, the results of local runs, and the servers."""

    directory: Path
    servers: Servers

    @property
    def local(self) -> Path:
        """The directory of local inputs and outputs."""
        return self.directory / "local"

    def place(self, name: str, files: str) -> str:
        """Return the argument of the command for a place."""
        if files in STORES:
            return STORES[files].uri(name)
        return name if files == RELATIVE else str(self.local / name)

    def files(self, name: str, files: str) -> dict[str, bytes]:
        """Return the files below a place with their bytes."""
        return STORES[files].files(name) if files in STORES else files_below(self.local / name)

    def with_places(self, args: Sequence[str], files: str) -> list[str]:
        """Return arguments with places replaced."""
        return [self.place(arg, files) if arg in PLACES else arg for arg in args]

    def command(self, job: str, files: str, output: str) -> list[str]:
        """Return the command of a job, without arguments for Beam."""
        args = self.with_places(JOBS[job], files)
        if job == "train in rounds":
            args += ["--work-dir", self.place(f"{output}-work", files)]
        return [*args, "--output", self.place(output, files)]

    def start(
        self, args: Sequence[str], files: str, program: Sequence[str] = ("-m", "pipelines")
    ) -> subprocess.Popen[str]:
        """Start the command like a user, in the directory of local files."""
        return subprocess.Popen(
            [sys.executable, *program, *args],
            cwd=self.local,
            env=worker_environment() | (STORES[files].environment if files in STORES else {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def prepare(self, stores: Collection[str]) -> None:
        """Make the inputs, here and in stores, and run all jobs locally."""
        self.local.mkdir()
        write_shards(self.local / "text", english(3000), 8, ".parquet")
        for seed, group in enumerate(("en", "de")):
            write_shards(self.local / "groups" / f"lang={group}", english(600, seed), 3, ".jsonl")
        sources = "[{group: en, weight: 1, max_repeats: 9}, {group: de, tokens: 5k}]"
        (self.local / "mix.yaml").write_text(f"sources: {sources}")
        inputs = {"words": ("count", "text"), "tokenizer": ("train", "text", "--vocab-size=250")}
        for calls in (inputs, {f"expected {job}": args for job, args in JOBS.items()}):
            run = [self.start([*args, "--output", out], LOCAL) for out, args in calls.items()]
            for running in run:
                _must_end(running, 0)
        for store, name in itertools.product(stores, PLACES):
            STORES[store].upload(self.local / name)

    def difference(self, job: str, files: str, output: str) -> str | None:
        """Describe how an output differs from the local run; None if it does not."""
        if left := self.files(f"{output}-work", files):
            return f"the work directory holds {sorted(left)[:3]}"
        found, wanted = self.files(output, files), self.files(f"expected {job}", LOCAL)
        if not wanted:
            return "the local run wrote nothing"
        for files_there in (found, wanted):
            for name in OF_THE_RUN & files_there.keys():
                del files_there[name]
            for name in MANIFESTS & files_there.keys() if job.startswith("encode") else ():
                files_there[name] = without_times(files_there[name])
            for name, data in files_there.items() if job.startswith("encode") else ():
                if name.endswith(".parquet"):
                    files_there[name] = shard_without_times(data)
        names = [name for name in found.keys() | wanted if found.get(name) != wanted.get(name)]
        return f"other bytes than the local run in {sorted(names)[:3]}" if names else None


def shard_without_times(shard: bytes) -> bytes:
    """Return a shard without the identity of its inputs in the footer, which includes their times.
    Times differ between stores."""
    metadata = pq.read_metadata(pa.BufferReader(shard))
    pairs = dict(metadata.metadata)
    value = json.loads(pairs.pop(RECORD_KEY.encode()))
    del value["record"]["source"]
    pages = shard[: len(shard) - metadata.serialized_size - TAIL]
    columns = [str(metadata.row_group(i).to_dict()) for i in range(metadata.num_row_groups)]
    schema = str(metadata.schema).partition("\n")[2]  # without the address of the object
    footer = [schema, *columns, json.dumps(value), str(sorted(pairs.items()))]
    return pages + "\n".join(footer).encode()


def without_times(manifest: bytes) -> bytes:
    """Return a manifest without the times of the inputs and the last commit."""
    value = json.loads(manifest)
    value.pop("commit", None)
    value.pop("output_bytes", None)
    for record in (*value.get("shards", ()), *value.get("sources", ())):
        record["source"] = record["source"].get("bytes")
        record.pop("output_bytes")
    return json.dumps(value).encode()


class CaseError(Exception):
    """A case failed."""


def _must_end(running: subprocess.Popen[str], status: int) -> None:
    """Wait for a command. Raises CaseError unless it ends with an exit status."""
    try:
        said, _ = running.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        running.kill()
        said, _ = running.communicate()
        raise CaseError(f"did not end within {HANGS:.0f} s: {said[-1500:]}") from None
    if running.returncode != status:
        raise CaseError(f"ended with {running.returncode}, not {status}: {said[-1500:]}")


def _must_run(running: subprocess.Popen[str]) -> None:
    """Wait for a line of progress of a command, which appears every few seconds. Raises CaseError
    without one. (Flink's job server reports progress only at the end.)"""
    end, lines = time.monotonic() + STARTS, [""]
    while ": running" not in lines[-1]:
        lines.append(running.stdout.readline() if running.stdout else "")
        if not lines[-1] or time.monotonic() > end:
            raise CaseError(f"shows no progress: {''.join(lines)[-1500:]}")


# --- Runs -----------------------------------------------------------------------------------------

_numbers = itertools.count(1)


@dataclass
class Run:
    """A running case."""

    case: Case
    bench: Bench

    def __post_init__(self) -> None:
        self.output = f"output-{next(_numbers):02}"
        self.pauses = self.bench.directory / f"{self.output}-pauses"

    def run(self) -> None:
        """Run the case. Raises CaseError for another exit status, or other bytes."""
        if self.case.job in STREAMS:
            directory = self.bench.directory / self.output
            tokenizer = self.bench.local / "tokenizer"
            STREAMS[self.case.job](directory, tokenizer, self.bench.servers)
            return
        if self.case.fault == NO_FAULT:
            _must_end(self._start(), 0)
            if self.case.cluster == PRISM:
                self._wait(lambda: not _runs("prism"), "Prism runs on")
        elif self.case.fault == AGAIN_AND_AGAIN:
            self._kill_again_and_again()
        else:
            self._run_with_fault()
        self._check()

    def _start(self, *, pausing: bool = False) -> subprocess.Popen[str]:
        beam_args = self._beam_args(pausing)
        return self.bench.start([*self._command(), *beam_args], self.case.files)

    def _kill_again_and_again(self) -> None:
        """Kill run after run, each after some more changes of the store, until one ends."""
        for number in range(2, 100, 3):
            how = [stopping.__file__, "KILL", str(number), f"/{self.output}"]
            running = self.bench.start(self._command(), self.case.files, how)
            said, _ = running.communicate(timeout=HANGS)
            if running.returncode != -signal.SIGKILL:
                break
        if running.returncode or number < LEAST_KILLS * 3:
            raise CaseError(f"before change {number}, ended with {running.returncode}: {said}")

    def _command(self) -> list[str]:
        return self.bench.command(self.case.job, self.case.files, self.output)

    def _pause_before(self) -> tuple[int, str]:
        number, pattern = PAUSE_BEFORE[self.case.job]
        return (1 if self.case.files in STORES else number), pattern

    def _beam_args(self, pausing: bool) -> list[str]:
        case = self.case
        if case.cluster == LOCAL_BEAM:
            return []
        if case.cluster == PRISM:
            return ["--", "--runner=PrismRunner", f"--prism_location={go_program('prism')}"]
        args = ["--", "--runner=PortableRunner", f"--job_endpoint=127.0.0.1:{servers.JOB_SERVER}"]
        if case.cluster != SPARK:
            args += ["--parallelism=2", "--checkpointing_interval=500"]
        args.append(f"--environment_type={case.workers}")
        if case.workers == PROCESS:
            config: dict[str, object] = {"command": servers.boot_command(self.bench.directory)}
            env = {}
            if case.files in STORES:
                env |= STORES[case.files].environment
            if pausing:
                number, pattern = self._pause_before()
                env[pauses.PAUSE] = f"{self.pauses}\n{number}\n{pattern}"
            args.append(f"--environment_config={json.dumps(config | {'env': env})}")
        if case.workers == EXTERNAL:
            args.append(f"--environment_config=127.0.0.1:{servers.POOL}")
        return args

    def _check(self) -> None:
        if difference := self.bench.difference(self.case.job, self.case.files, self.output):
            raise CaseError(difference)

    # --- Faults ----------------------------------------------------------------------------------

    def _run_with_fault(self) -> None:
        """Cause the fault while a worker waits. This worker continues after the end of the job, and
        must not change anything then, like any other rest of the job."""
        self.pauses.mkdir()
        running = self._start(pausing=True)
        try:
            worker, parent = self._paused(running)
            # (The only range of words in a training waits, so it makes no progress.)
            if self.case.fault == WORKER and self.case.job in ("count", "encode"):
                _must_run(running)
            self._fault(running, worker, parent)
            self._check()
        finally:
            (self.pauses / pauses.GO_ON).touch()
        self._wait(lambda: not _is_there(worker), "the worker that waited does not end")
        self._wait(self._is_idle, "a job runs on")
        self._check()

    def _paused(self, running: subprocess.Popen[str]) -> tuple[int, int]:
        """Return the ids of the waiting worker and of its parent."""
        note = self.pauses / pauses.PAUSED
        self._wait(lambda: _has_text(note) or running.poll() is not None, "no worker came there")
        if running.poll() is not None:
            _must_end(running, -1)
        worker, parent = map(int, note.read_text().split())
        return worker, parent

    def _fault(self, running: subprocess.Popen[str], worker: int, parent: int) -> None:
        fault, cluster = self.case.fault, self.bench.servers
        if fault == WORKER:
            os.kill(worker, signal.SIGKILL)
        elif fault == EXECUTOR:
            os.kill(parent, signal.SIGKILL)
            os.kill(worker, signal.SIGKILL)
        elif fault in (TASK_MANAGER, ALL_TASK_MANAGERS):
            cluster.replace_task_managers(None if fault == ALL_TASK_MANAGERS else parent)
        elif fault in (JOB_MANAGER, JOB_SERVER):
            if fault == JOB_SERVER:
                cluster.replace_job_server()
            else:
                cluster.replace_job_manager()
            _must_end(running, FAILED)
            (self.pauses / pauses.GO_ON).touch()
            running = self._start()
        elif fault == DRIVER:
            running.kill()
            running.communicate()
            running = self._start()
        elif fault == TERMINATE:
            running.terminate()
            _must_end(running, INTERRUPTED)
            (self.pauses / pauses.GO_ON).touch()
            self._wait(self._is_idle, "the job runs on")
            running = self._start()
        _must_end(running, 0)

    def _is_idle(self) -> bool:
        """Return True if the cluster has no job."""
        return self.case.cluster != FLINK or _states() <= {"FINISHED", "CANCELED", "FAILED"}

    def _wait(self, is_so: Callable[[], bool], else_: str) -> None:
        end = time.monotonic() + HANGS
        while not is_so():
            if time.monotonic() > end:
                raise CaseError(else_)
            time.sleep(0.1)


def _states() -> set[str]:
    """The states of the jobs on the cluster."""
    return {job["status"] for job in servers.rest("jobs")["jobs"]}


def _is_there(process: int) -> bool:
    """Return True if a process runs. A zombie does not."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _runs(name: str) -> bool:
    """Return True if a process of this name runs."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # the process has ended
            if path.read_text().strip() == name and _is_there(int(path.parent.name)):
                return True
    return False


def _has_text(path: Path) -> bool:
    with suppress(FileNotFoundError):
        return path.read_text().endswith("\n")
    return False


def timed(run: Run) -> tuple[float, str | None]:
    """Run a case. Returns the seconds, and the fault, if there is one."""
    began = time.monotonic()
    fault = None
    try:
        run.run()
    except (CaseError, StreamError, ServerError, OSError) as error:
        fault = str(error)
    return time.monotonic() - began, fault
