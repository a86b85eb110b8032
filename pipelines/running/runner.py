"""Running Beam pipelines: defaults for local runs, and errors that a person can read.

A local run stays in this process. It uses Beam's FnApiRunner, in memory, with one thread per core;
the kernel and Arrow work without the GIL. (`multi_threading` would send all data through sockets
and keep memory from one pipeline to the next. `DirectRunner` would first try Prism, a program that
Beam downloads.) Other runners are used as Beam provides them.
"""

from __future__ import annotations

import argparse
import logging
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
from apache_beam.runners import create_runner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineRunner
from apache_beam.runners.worker import sdk_worker
from apache_beam.transforms.resources import resource_hints_from_options
from apache_beam.utils.subprocess_server import SubprocessServer

from pipelines.files.lease import Lease
from pipelines.running.beam_args import names_of
from pipelines.running.figures import PipelineFigures
from pipelines.running.job_server import cancel, class_of_runner, reach_runner
from wordpiece_core.errors import OptionError, WordpieceError, one_line
from wordpiece_core.option_kinds import is_utf8

MOST_WORKERS = 1024  # of a local run
LOCAL_RUNNERS = {"", "direct", "directrunner", "switchingdirectrunner", "fnapirunner"}

_STEP = " [while running '"  # Beam adds this to a message, with the name of the step


def local_cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pipeline_options(beam_args: Sequence[str]) -> PipelineOptions:
    """Beam's options, anew for each pipeline, which may change them. Without a runner, the run is
    local, with one thread per core. `check_beam_args` must have taken the arguments."""
    options = PipelineOptions(list(beam_args), save_main_session=False)
    if is_local(options):
        direct, given = options.view_as(DirectOptions), " ".join(beam_args)
        if "--direct_running_mode" not in given:
            direct.direct_running_mode = "in_memory"
        if "--direct_num_workers" not in given:
            direct.direct_num_workers = min(local_cores(), MOST_WORKERS)
    else:  # the list of packages here, for the log of workers, takes pip half a second a pipeline
        options.view_as(DebugOptions).add_experiment("disable_logging_submission_environment")
    return options


def check_beam_args(beam_args: Sequence[str]) -> bool:
    """Whether the run is local. Raises OptionError for arguments that Beam does not know or does
    not accept, and JobError if a job server cannot be reached, before any work."""
    _check_text(beam_args)
    unknown = _unknown(beam_args)
    options = pipeline_options(beam_args)
    if unknown and is_local(options):
        raise OptionError(f"beam_args: Beam does not know {names_of(unknown)}")
    if not is_local(options):
        reach_runner(options, unknown)
    _check_taken(options, beam_args)
    return is_local(options)


def _check_taken(options: PipelineOptions, beam_args: Sequence[str]) -> None:
    """Raises OptionError for what Beam would refuse only later, when it builds a pipeline."""
    number = options.view_as(DirectOptions).direct_num_workers
    if not 1 <= number <= MOST_WORKERS:
        raise OptionError(
            f"beam_args: --direct_num_workers={number}: give 1 to {MOST_WORKERS}, or leave"
            " it out for one for each core"
        )
    local = is_local(options)
    try:
        runner = FnApiRunner() if local else create_runner(options.view_as(StandardOptions).runner)
        resource_hints_from_options(options)
        with _new_pipeline(options, runner):
            pass
    except (ValueError, TypeError, ImportError, AttributeError) as error:
        raise OptionError(f"beam_args: {one_line(error)}") from error


def runner_name(options: PipelineOptions) -> str:
    """The name of the runner."""
    return str(options.view_as(StandardOptions).runner or FnApiRunner.__name__)


def is_local(options: PipelineOptions) -> bool:
    """Whether the pipeline runs on this machine, in Beam's local runner."""
    return class_of_runner(options) in LOCAL_RUNNERS


def workers(options: PipelineOptions) -> int | None:
    """The number of workers of a local run; None for other runners, which decide it themselves."""
    return int(options.view_as(DirectOptions).direct_num_workers) if is_local(options) else None


def processes(options: PipelineOptions) -> int:
    """The number of processes of a local run."""
    direct = options.view_as(DirectOptions)
    return int(direct.direct_num_workers) if direct.direct_running_mode == "multi_processing" else 1


def run_pipeline(
    build: Callable[[beam.Pipeline], object],
    beam_args: Sequence[str],
    lease: Lease | None = None,
) -> None:
    """Builds a pipeline and runs it. Raises the error that a step raised. `lease`: of
    the run, which workers check."""
    options = pipeline_options(beam_args)
    figures = PipelineFigures()
    is_quiet = _quiet_workers()
    runner = None
    if is_local(options):
        # imported only here, because it changes classes of Beam
        from pipelines.running.local_beam import local_runner

        runner = local_runner(options, is_quiet=is_quiet)
    else:
        reach_runner(options)
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
            except BaseException as error:
                if lease is not None and not isinstance(error, Exception):
                    with suppress(WordpieceError):
                        lease.give_up()  # which ends workers that nothing else can tell
                if figures.result is not None:
                    cancel(figures.result, options)
                raise
    except Exception as error:
        raise _raised(error) from error


def _quiet_workers() -> bool:
    """Has workers in this process print no tracebacks, also after the end of the pipeline, unless
    errors are logged: Beam's print them at any log level. Returns whether they are quiet."""
    is_quiet = not logging.getLogger().isEnabledFor(logging.ERROR)
    sdk_worker.print = _nothing if is_quiet else print
    return is_quiet


def _nothing(*_: object, **__: object) -> None:
    """Prints nothing."""


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
        return type(error)(_without_step(str(error)))
    raised = WordpieceError.from_traceback(str(error))
    if raised is not None:
        return type(raised)(_without_step(str(raised)))
    last_line = (str(error).strip() or type(error).__name__).splitlines()[-1]
    if _without_step(last_line) == KeyboardInterrupt.__name__:  # in a worker of this process
        return KeyboardInterrupt()
    return RuntimeError(_without_step(last_line))


def _without_step(message: str) -> str:
    return message.rpartition(_STEP)[0] if message.endswith("']") and _STEP in message else message


class _Parser(argparse.ArgumentParser):
    """A parser that raises an OptionError where `argparse` would exit."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(f"beam_args: {message}") from None


def _check_text(beam_args: Sequence[str]) -> None:
    for arg in beam_args:
        if not is_utf8(arg):
            raise OptionError(f"beam_args: {os.fsencode(arg)!r} is not UTF-8")


def _unknown(beam_args: Sequence[str]) -> list[str]:
    """The arguments that Beam's Python does not know. They may be options of the runner."""
    return _parser().parse_known_args(list(beam_args))[1]


def _parser() -> _Parser:
    """A parser of all of Beam's options."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)
    return parser
