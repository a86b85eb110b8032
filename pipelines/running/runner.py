"""Running Beam pipelines: local defaults, and errors that a person can read.

A local run stays in this process: Beam's FnApiRunner, in memory, with one thread per core, whose
work the kernel and Arrow do with the GIL released. (`multi_threading` would send all data through
sockets, and keep memory from one pipeline to the next. `DirectRunner` would first try Prism, a
program that Beam fetches from the network.) Any other runner is Beam's affair.
"""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners import create_runner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    BeamFnControlServicer,
    ControlConnection,
    ControlFuture,
)
from apache_beam.runners.portability.local_job_service import SubprocessSdkWorker
from apache_beam.runners.worker import sdk_worker
from apache_beam.transforms.environments import SubprocessSDKEnvironment
from apache_beam.transforms.resources import resource_hints_from_options

from wordpiece_core.errors import JobError, OptionError, WordpieceError, one_line
from wordpiece_core.options import is_utf8

MOST_WORKERS = 1024  # of a local run
LOCAL_RUNNERS = {"", "direct", "directrunner", "switchingdirectrunner", "fnapirunner"}

_STEP = " [while running '"  # what Beam puts behind a message, with the name of the step
_WORKER_GONE = "Channel closed prematurely"  # what Beam says of a worker process


def local_cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pipeline_options(beam_args: Sequence[str]) -> PipelineOptions:
    """Beam's options. Without a runner: local, one thread per core.

    Raises OptionError for arguments that Beam does not know, or does not take.
    """
    _check_known(beam_args)
    _check_taken(beam_args)
    options = PipelineOptions(list(beam_args), save_main_session=False)
    direct = options.view_as(DirectOptions)
    if is_local(options):
        given = " ".join(beam_args)
        if "--direct_running_mode" not in given:
            direct.direct_running_mode = "in_memory"
        if "--direct_num_workers" not in given:
            direct.direct_num_workers = local_cores()
    return options


def _check_taken(beam_args: Sequence[str]) -> None:
    """What Beam would refuse only with a pipeline at hand, when much has been done already."""
    options = PipelineOptions(list(beam_args), save_main_session=False)
    number = options.view_as(DirectOptions).direct_num_workers
    if not 1 <= number <= MOST_WORKERS:
        raise OptionError(
            f"arguments after --: --direct_num_workers={number}: give 1 to {MOST_WORKERS}, or leave"
            " it out for one for each core"
        )
    local = is_local(options)
    try:
        runner = FnApiRunner() if local else create_runner(options.view_as(StandardOptions).runner)
        beam.Pipeline(runner=runner, options=options)
        resource_hints_from_options(options)
    except (ValueError, TypeError, ImportError, AttributeError) as error:
        raise OptionError(f"arguments after --: {one_line(error)}") from error


def is_local(options: PipelineOptions) -> bool:
    """Whether the pipeline runs on this machine, in Beam's local runner."""
    runner = options.view_as(StandardOptions).runner or ""
    return runner.lower().rpartition(".")[2] in LOCAL_RUNNERS


def workers(options: PipelineOptions) -> int | None:
    """How many workers a local run has; None for runners that decide for themselves."""
    return int(options.view_as(DirectOptions).direct_num_workers) if is_local(options) else None


def run_pipeline(build: Callable[[beam.Pipeline], object], beam_args: Sequence[str]) -> None:
    """Builds a pipeline and runs it to its end. Raises the error that a step raised."""
    options = pipeline_options(beam_args)
    runner = _local_runner(options) if is_local(options) else None
    try:
        with beam.Pipeline(runner=runner, options=options) as pipeline:
            build(pipeline)
    except Exception as error:
        raise _raised(error) from error


def _raised(error: Exception) -> BaseException:
    """The error that a step raised, from the one that Beam gives: itself, with the step behind its
    message, or one with the text of the worker's traceback."""
    if isinstance(error, WordpieceError):
        return type(error)(_without_step(str(error)))
    raised = WordpieceError.from_traceback(str(error))
    if raised is not None:
        return type(raised)(_without_step(str(raised)))
    last_line = (str(error).strip() or type(error).__name__).splitlines()[-1]
    if _without_step(last_line) == KeyboardInterrupt.__name__:  # in a worker of this process
        return KeyboardInterrupt()
    if last_line.startswith(_WORKER_GONE):
        return _worker_ended()
    return RuntimeError(_without_step(last_line))


def _without_step(message: str) -> str:
    return message.rpartition(_STEP)[0] if message.endswith("']") and _STEP in message else message


def _local_runner(options: PipelineOptions) -> FnApiRunner:
    """Beam's local runner. Unless logging is on here, what its workers write to standard error
    whatever the level is dropped: tracebacks of those in this process, even after the pipeline's
    end, and the log of those in processes of their own."""
    direct = options.view_as(DirectOptions)
    quiet = not logging.getLogger().isEnabledFor(logging.ERROR)
    sdk_worker.print = _nothing if quiet else print
    ControlConnection.close = _close_connection
    # Beam would also send what is written every second, from another thread; what is written while
    # that thread copies and clears the buffer would be lost, silently: elements of large bundles.
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
    if direct.direct_running_mode != "multi_processing" or not quiet:
        return FnApiRunner()
    direct.direct_running_mode = "in_memory"  # else the runner would set its own environment
    command = f"{shlex.quote(sys.executable)} -m apache_beam.runners.worker.sdk_worker_main"
    environment = SubprocessSDKEnvironment.from_command_string(f"exec {command} 2>{os.devnull}")
    return FnApiRunner(default_environment=environment)


@worker_handlers.WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)
class LocalProcess(worker_handlers.SubprocessSdkWorkerHandler):
    """A worker process whose death ends the job. Beam would wait for its answers for ever."""

    def start_worker(self) -> None:
        self.worker = SubprocessSdkWorker(
            self._worker_command_line, self.control_address, self.provision_info, self.worker_id
        )
        self.worker_thread = threading.Thread(target=self._run, name="run_worker")
        self.worker_thread.start()

    def _run(self) -> None:
        """Runs the process to its end. What it has not answered then has failed, and so has what
        it is asked later."""
        with suppress(Exception):  # it could not be started, or ended badly
            self.worker.run()
        connection = self.control_conn
        push = connection.push

        def push_in_vain(request: object) -> ControlFuture | None:
            future = push(request)
            if future is not None:
                _fail(future)
            return future

        connection.push = push_in_vain
        for future in list(connection._futures_by_id.values()):
            _fail(future)


def _worker_ended() -> JobError:
    return JobError("a worker process ended before its work (out of memory?); run the job again")


def _fail(future: ControlFuture) -> None:
    identity = future.instruction_id
    text = "\n".join(traceback.format_exception_only(_worker_ended()))
    future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=identity, error=text))


_beam_close_connection = ControlConnection.close


def _close_connection(connection: ControlConnection) -> None:
    """Closes a connection to a worker, also one that the worker has yet to open: Beam would tell
    only those that are open, wait for all workers to end, and so for a late one for ever."""
    connection.push(BeamFnControlServicer._DONE_MARKER)
    _beam_close_connection(connection)


def _nothing(*_: object, **__: object) -> None:
    """Prints nothing."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises what `argparse` would print."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(f"arguments after --: {message}")


def _check_known(beam_args: Sequence[str]) -> None:
    for arg in beam_args:
        if not is_utf8(arg):
            raise OptionError(f"arguments after --: {os.fsencode(arg)!r} is not UTF-8")
    parser = _Parser(add_help=False, allow_abbrev=False)
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)
    _, unknown = parser.parse_known_args(list(beam_args))
    if unknown:
        raise OptionError(f"arguments after --: Beam does not know {' '.join(unknown)}")
