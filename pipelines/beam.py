"""Run pipelines on Apache Beam: arguments, runners, plans, and workarounds.

Only this module uses names that Beam does not document. Each of these places gives its reason, and
`tests/pipelines/test_beam.py` has a test that fails once Beam no longer needs it. Checked with Beam
2.77.

Without a runner, a pipeline runs in this process, on Beam's FnApiRunner with one thread per core:
the kernel and Arrow release the GIL. (The mode `multi_threading` would send all data through
sockets, and DirectRunner would first download Prism.) All other runners are used as Beam provides
them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from typing import Any, NoReturn, TypeVar

import apache_beam as beam
import numpy as np
from apache_beam import pipeline as beam_pipeline
from apache_beam.options.pipeline_options import (
    DebugOptions,
    DirectOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.runner import PipelineRunner
from apache_beam.runners.worker import sdk_worker
from apache_beam.runners.worker.statesampler import get_current_tracker, set_current_tracker
from apache_beam.utils.interactive_utils import is_in_ipython
from apache_beam.utils.subprocess_server import SubprocessServer

from pipelines.io import outputs
from pipelines.progress import RunnerMetrics
from wordpiece_core.errors import OptionError, WordpieceError, opt, unspelled
from wordpiece_core.storage import StoredFile

T = TypeVar("T")
R = TypeVar("R")

LOCAL_RUNNERS = {"", "direct", "directrunner", "switchingdirectrunner", "fnapirunner"}
PLAN_LINES = 1000  # lines that are written at a time


# --- Arguments ------------------------------------------------------------------------------------


def pipeline_options(beam_args: Sequence[str]) -> PipelineOptions:
    """Return new Beam options for one pipeline. Without a runner, the pipeline runs in this
    process, with one thread per core. `check_beam_args` must have accepted the arguments."""
    options = PipelineOptions(list(beam_args), save_main_session=False)
    if is_local(options):
        direct, given = options.view_as(DirectOptions), " ".join(beam_args)
        if "--direct_running_mode" not in given:
            direct.direct_running_mode = "in_memory"
        if "--direct_num_workers" not in given or not direct.direct_num_workers:
            direct.direct_num_workers = local_cores()
    else:  # listing the installed packages for the worker log takes pip half a second per pipeline
        options.view_as(DebugOptions).add_experiment("disable_logging_submission_environment")
    return options


def check_beam_args(beam_args: Sequence[str]) -> bool:
    """Return True if the pipeline runs on this machine.

    Raises OptionError for arguments that Beam cannot parse and, on the local runner, for arguments
    that Beam does not know. (Beam ignores unknown arguments, and ends the process for others.)
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    for declared in PipelineOptions.__subclasses__():
        declared._add_argparse_args(parser)
    unknown = parser.parse_known_args(list(beam_args))[1]
    local = is_local(pipeline_options(beam_args))
    if unknown and local:  # other runners have options of their own
        raise OptionError(f"{opt.beam_args}: Beam does not know {names_of(unknown)}")
    return local


def names_of(beam_args: Sequence[str]) -> str:
    """Return the names of arguments for Beam. Messages never show their values.

    >>> names_of(["--runner=FlinkRunner", "--parallelism", "2"])
    '--runner --parallelism'
    """
    return " ".join(arg.partition("=")[0] for arg in beam_args if arg.startswith("--"))


class _Parser(argparse.ArgumentParser):
    """Parser that raises OptionError where `argparse` ends the process."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{opt.beam_args}: {message}") from None


def runner_name(options: PipelineOptions) -> str:
    """Return the name of the runner."""
    return str(options.view_as(StandardOptions).runner or FnApiRunner.__name__)


def is_local(options: PipelineOptions) -> bool:
    """Return True if the pipeline runs on this machine, on Beam's local runner."""
    runner: str = options.view_as(StandardOptions).runner or ""
    return runner.lower().rpartition(".")[2] in LOCAL_RUNNERS


def workers(options: PipelineOptions) -> int | None:
    """Return the number of workers of the local runner; None for a runner that decides it."""
    return int(options.view_as(DirectOptions).direct_num_workers) if is_local(options) else None


def processes(options: PipelineOptions) -> int:
    """Return the number of processes of the local runner."""
    direct = options.view_as(DirectOptions)
    return int(direct.direct_num_workers) if direct.direct_running_mode == "multi_processing" else 1


def local_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- Running --------------------------------------------------------------------------------------

_pipeline_processes: set[int] = set()  # process ids: a fork inherits the set


def run_pipeline(
    build: Callable[[beam.Pipeline], object],
    beam_args: Sequence[str],
    local_workers: int | None = None,
) -> None:
    """Build a pipeline and run it to its end. An interrupt cancels it.

    Args:
        local_workers: Default number of workers of a local run, instead of one per core.

    Raises the error that a step raised.
    """
    options = pipeline_options(beam_args)
    if local_workers and is_local(options) and "--direct_num_workers" not in " ".join(beam_args):
        options.view_as(DirectOptions).direct_num_workers = local_workers
    metrics = RunnerMetrics()
    runner = None
    if is_local(options):
        _check_not_forked()
        runner = local_runner()
    try:
        # Beam keeps the processes that it starts, such as a job server, until the block ends.
        with (
            _new_pipeline(options, runner) as pipeline,
            SubprocessServer.cache_subprocesses(),
            metrics.watching(),
        ):
            build(pipeline)
            try:
                metrics.result = pipeline.run()
                metrics.result.wait_until_finish()
            except BaseException:
                if metrics.result is not None:
                    with suppress(Exception):  # a job that has ended cannot be cancelled
                        metrics.result.cancel()
                raise
    except Exception as error:
        raise _step_error(error) from error


def _check_not_forked() -> None:
    """Raise OptionError in a fork of a process that has run a pipeline. The fork lacks the threads
    that Beam keeps for the next pipeline, so it would wait forever."""
    _pipeline_processes.add(os.getpid())
    if len(_pipeline_processes) > 1:
        raise OptionError(
            "this process was forked after a job had run, so Beam's threads are missing; start"
            " processes with multiprocessing.get_context('spawn')"
        )


@contextmanager
def _new_pipeline(
    options: PipelineOptions, runner: PipelineRunner | None = None
) -> Iterator[beam.Pipeline]:
    """Create a pipeline, and delete its temporary directory in the end. (Beam leaves the directory
    in notebooks, and if the pipeline does not run.)"""
    pipeline = beam.Pipeline(runner=runner, options=options)
    try:
        yield pipeline
    finally:
        shutil.rmtree(pipeline.local_tempdir, ignore_errors=True)


STEP_NAME = " [while running '"  # Beam appends it to a message, with the name of the step


def _step_error(error: Exception) -> BaseException:
    """Return the error that a step raised. Beam raises either the error with the name of the step
    appended, or an error whose text is a traceback."""
    if isinstance(error, WordpieceError):
        return type(error)(unspelled(_without_step(str(error))))
    raised = WordpieceError.from_traceback(str(error))
    if raised is not None:
        return type(raised)(_without_step(raised.template))
    last_line = (str(error).strip() or type(error).__name__).splitlines()[-1]
    if _without_step(last_line) == KeyboardInterrupt.__name__:  # in a worker of this process
        return KeyboardInterrupt()
    return RuntimeError(_without_step(last_line))


def _without_step(message: str) -> str:
    is_named = message.endswith("']") and STEP_NAME in message
    return message.rpartition(STEP_NAME)[0] if is_named else message


# --- Workarounds ----------------------------------------------------------------------------------


def local_runner() -> FnApiRunner:
    """Return Beam's local runner, with workarounds that stay for the life of the process, because
    threads of a failed pipeline may outlive it."""
    # A thread of its own sends the data of a worker once a second. It copies the buffer and clears
    # it without a lock, so elements that are written in between are lost: see
    # `TimeBasedBufferingClosableOutputStream`, from https://github.com/apache/beam/pull/10246.
    # `tests/lost_elements.py` shows the loss on plain Beam.
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
    # Workers in this process print tracebacks at any log level, even after the pipeline has ended.
    is_quiet = not logging.getLogger().isEnabledFor(logging.ERROR)
    sdk_worker.print = _print_nothing if is_quiet else print
    allow_notebooks()
    return FnApiRunner()


def _print_nothing(*_: object, **__: object) -> None:
    """Print nothing."""


def allow_notebooks() -> None:
    """Create pipelines without labels of notebook cells if Beam cannot import its interactive
    runner, as with pandas 3."""
    if is_in_ipython():
        try:
            import apache_beam.runners.interactive.interactive_environment  # noqa: F401
        except Exception:  # AttributeError with pandas 3
            beam_pipeline.alter_label_if_ipython = lambda *_: None


def in_this_bundle(work: Callable[[T], R]) -> Callable[[T], R]:
    """Return the function for other threads, with metrics that count for the bundle of this thread.
    (Beam finds the bundle by the thread.)"""
    tracker = get_current_tracker()

    def run(item: T) -> R:
        set_current_tracker(tracker)
        return work(item)

    return run


# --- Plans ----------------------------------------------------------------------------------------


@dataclass
class ReadPlan(beam.PTransform):
    """Read the elements of a plan and distribute them over the workers.

    A plan is a file with one JSON object per line, written by `write_plan`, because runners limit
    the size of the graph, some to 10 MB. (`beam.io.ReadFromText` reads no store that only Arrow or
    fsspec knows. A shuffle by line number distributes the lines as `beam.Reshuffle` does, with one
    step instead of five, which saves 60 ms per pipeline.)

    Attributes:
        path: The path of the plan.
        element: Makes an element of a JSON object.
    """

    path: str
    element: Callable[[dict[str, Any]], Any]

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        return (
            pipeline
            | "path" >> beam.Create([self.path], reshuffle=False)
            | "lines" >> beam.FlatMap(read_plan).with_output_types(tuple[int, bytes])
            | "distribute" >> beam.GroupByKey()
            | "elements" >> beam.FlatMapTuple(self._elements)
        )

    def _elements(self, _: int, lines: Iterable[bytes]) -> Iterator[Any]:
        return (self.element(json.loads(line)) for line in lines)


def run_plan(
    build: Callable[[beam.PCollection], object],
    path: str,
    elements: Sequence[Any],
    element: Callable[[dict[str, Any]], Any],
    beam_args: Sequence[str],
    local_workers: int | None = None,
) -> None:
    """Write elements as a plan, and run a pipeline that is built from them.

    Args:
        path: The path of the plan.
        element: See `ReadPlan`.
        local_workers: See `run_pipeline`.
    """
    write_plan(path, elements)
    read = "plan" >> ReadPlan(path, element)
    run_pipeline(lambda pipeline: build(pipeline | read), beam_args, local_workers)


def write_plan(path: str, elements: Sequence[Any]) -> None:
    """Write dataclasses as a plan."""
    with outputs.atomic_writer(path) as stream:
        for start in range(0, len(elements), PLAN_LINES):
            some = elements[start : start + PLAN_LINES]
            lines = [json.dumps(item, default=_fields).encode() + b"\n" for item in some]
            stream.write(b"".join(lines))


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass. (`asdict` copies their values, which is slow.)"""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def read_plan(path: str) -> Iterator[tuple[int, bytes]]:
    """Read the numbered lines of a plan."""
    with StoredFile(path) as file:
        yield from enumerate(file.read().splitlines())


@dataclass
class AddArrays(beam.CombineFn):
    """Add arrays of whole numbers. Without arrays the sum has zeros.

    Attributes:
        shape: The shape of the arrays.
    """

    shape: tuple[int, ...]

    def create_accumulator(self) -> np.ndarray:
        return np.zeros(self.shape, np.int64)

    def add_input(self, total: np.ndarray, array: np.ndarray) -> Any:
        return total + array

    def merge_accumulators(self, totals: Iterable[np.ndarray]) -> Any:
        return sum(totals, self.create_accumulator())

    def extract_output(self, total: np.ndarray) -> np.ndarray:
        return total


# --- Results for the driver -----------------------------------------------------------------------


@dataclass
class WriteResults(beam.PTransform):
    """Write elements to a fixed number of files for the driver. A retry writes the same bytes.

    Attributes:
        paths: The files. A file without elements is not written.
        key: Return the text that decides the file of an element.
        content: Return the bytes of a file with these elements, in any order.
    """

    paths: Sequence[str]
    key: Callable[[Any], str]
    content: Callable[[Iterable[Any]], bytes]

    def expand(self, results: beam.PCollection) -> beam.PCollection:
        return (
            results
            | "choose file" >> beam.Map(self._with_file).with_output_types(tuple[int, Any])
            | "group files" >> beam.GroupByKey()
            | "write" >> beam.MapTuple(self._write)
        )

    def _with_file(self, result: Any) -> tuple[int, Any]:
        return zlib.crc32(self.key(result).encode()) % len(self.paths), result

    def _write(self, file: int, results: Iterable[Any]) -> None:
        outputs.write_bytes(self.paths[file], self.content(results))
