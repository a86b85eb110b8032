"""Running Beam pipelines: defaults for local runs, and errors that a person can read.

A local run stays in this process. It uses Beam's FnApiRunner, in memory, with one thread per core;
the kernel and Arrow work without the GIL. (`multi_threading` would send all data through sockets
and keep memory from one pipeline to the next. `DirectRunner` would first try Prism, a program that
Beam downloads.) Other runners are used as Beam provides them.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DebugOptions,
    DirectOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineRunner
from apache_beam.utils.subprocess_server import SubprocessServer

from pipelines.running.beam_args import names_of
from pipelines.running.figures import PipelineFigures
from wordpiece_core.errors import OptionError, WordpieceError, opt, unspelled

LOCAL_RUNNERS = {"", "direct", "directrunner", "switchingdirectrunner", "fnapirunner"}

_pipelines_of: set[int] = set()  # ids of processes: a fork has a copy
_STEP = " [while running '"  # Beam adds this to a message, with the name of the step


def local_cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pipeline_options(beam_args: Sequence[str]) -> PipelineOptions:
    """Return new Beam options for one pipeline, which may change them. Without a runner, the run is
    local, with one thread per core. `check_beam_args` must have accepted the arguments."""
    options = PipelineOptions(list(beam_args), save_main_session=False)
    if is_local(options):
        direct, given = options.view_as(DirectOptions), " ".join(beam_args)
        if "--direct_running_mode" not in given:
            direct.direct_running_mode = "in_memory"
        if "--direct_num_workers" not in given or not direct.direct_num_workers:
            direct.direct_num_workers = local_cores()
    else:  # the list of packages here, for the log of workers, takes pip half a second a pipeline
        options.view_as(DebugOptions).add_experiment("disable_logging_submission_environment")
    return options


def check_beam_args(beam_args: Sequence[str]) -> bool:
    """Return True if the run is local. OptionError for arguments that Beam cannot parse and, in a
    local run, for arguments that Beam does not know."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    for declared in PipelineOptions.__subclasses__():
        declared._add_argparse_args(parser)
    unknown = parser.parse_known_args(list(beam_args))[1]
    local = is_local(pipeline_options(beam_args))
    if unknown and local:  # other runners have options of their own
        raise OptionError(f"{opt.beam_args}: Beam does not know {names_of(unknown)}")
    return local


def runner_name(options: PipelineOptions) -> str:
    """The name of the runner."""
    return str(options.view_as(StandardOptions).runner or FnApiRunner.__name__)


def is_local(options: PipelineOptions) -> bool:
    """True if the pipeline runs on this machine, in Beam's local runner."""
    runner: str = options.view_as(StandardOptions).runner or ""
    return runner.lower().rpartition(".")[2] in LOCAL_RUNNERS


def workers(options: PipelineOptions) -> int | None:
    """The number of workers of a local run; None for other runners, which decide it themselves."""
    return int(options.view_as(DirectOptions).direct_num_workers) if is_local(options) else None


def processes(options: PipelineOptions) -> int:
    """The number of processes of a local run."""
    direct = options.view_as(DirectOptions)
    return int(direct.direct_num_workers) if direct.direct_running_mode == "multi_processing" else 1


def run_pipeline(build: Callable[[beam.Pipeline], object], beam_args: Sequence[str]) -> None:
    """Build a pipeline and run it. Raises the error that a step raised."""
    options = pipeline_options(beam_args)
    figures = PipelineFigures()
    runner = None
    if is_local(options):
        _check_not_forked()
        # imported only here, because it changes classes of Beam
        from pipelines.running.local_beam import local_runner

        runner = local_runner()
    try:
        # Processes that Beam starts, such as a job server, are for all of this.
        with (
            _new_pipeline(options, runner) as pipeline,
            SubprocessServer.cache_subprocesses(),
            figures.watching(),
        ):
            build(pipeline)
            try:
                figures.result = pipeline.run()
                figures.result.wait_until_finish()
            except BaseException:
                if figures.result is not None:
                    with suppress(Exception):  # a job that has ended cannot be cancelled
                        figures.result.cancel()
                raise
    except Exception as error:
        raise _raised(error) from error


def _check_not_forked() -> None:
    """OptionError in a process that was forked after a job. It lacks the threads that Beam keeps
    for the next pipeline, so that this one would wait for ever."""
    _pipelines_of.add(os.getpid())
    if len(_pipelines_of) > 1:
        raise OptionError(
            "this process was forked after a job had run, so Beam's threads are missing; start"
            " processes with multiprocessing.get_context('spawn')"
        )


@contextmanager
def _new_pipeline(
    options: PipelineOptions, runner: PipelineRunner | None = None
) -> Iterator[beam.Pipeline]:
    """A pipeline, and in the end without the directory that Beam makes for each. (Beam leaves it
    when the pipeline is not run, and in notebooks.)"""
    pipeline = beam.Pipeline(runner=runner, options=options)
    try:
        yield pipeline
    finally:
        shutil.rmtree(pipeline.local_tempdir, ignore_errors=True)


def _raised(error: Exception) -> BaseException:
    """The error that a step raised, made from the one that Beam raises. That is either the error
    itself with the name of the step at its end, or an error with the text of a traceback."""
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
    return message.rpartition(_STEP)[0] if message.endswith("']") and _STEP in message else message


class _Parser(argparse.ArgumentParser):
    """A parser that raises an OptionError where `argparse` would exit."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{opt.beam_args}: {message}") from None
