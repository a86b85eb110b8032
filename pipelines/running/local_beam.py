"""Changes of Beam's behaviour, for local runs only. No other module uses its private names.

Each item says what Beam does, and what changes it:

- A worker process that dies leaves the job waiting for ever: `LocalProcess` (tested by
  `test_a_killed_worker_process_costs_time_only`).
- After a failure, Beam waits for ever for a worker that starts late: `_close_connection`
  (`test_a_failed_job_does_not_wait_for_a_worker_that_starts_late`).
- Elements of large bundles are lost silently: `DATA_BUFFER_TIME_LIMIT_MS`
  (`test_no_element_of_a_large_bundle_is_lost_to_a_thread_that_sends_at_times`).
- Beam's runner advises against workers that are threads of one process, the default here:
  `_no_advice` (`test_nothing_is_printed_or_logged_on_import_or_by_a_quiet_job`).
- In a notebook, Beam loads its interactive runner to label steps, which fails with pandas 3:
  `alter_label_if_ipython` (`test_jobs_run_in_a_notebook`).

They stay for the life of the process: threads of a pipeline that failed may run on after its end.
Tested with Beam 2.77.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from apache_beam import pipeline as beam_pipeline
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, fn_runner, worker_handlers
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    BeamFnControlServicer,
    ControlConnection,
    ControlFuture,
)
from apache_beam.runners.portability.local_job_service import SubprocessSdkWorker
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from wordpiece_core.errors import JobError

WORKER_ENDED = "a worker process ended before its work (out of memory?); run the job again"


_own_pipeline = ContextVar("_own_pipeline", default=False)


@contextmanager
def own_pipeline() -> Iterator[None]:
    """Marks that a pipeline of this project is being built. Other pipelines in the process are not
    changed."""
    beam_pipeline.alter_label_if_ipython = _alter_label
    token = _own_pipeline.set(True)
    try:
        yield
    finally:
        _own_pipeline.reset(token)


def local_runner(options: PipelineOptions, *, is_quiet: bool) -> FnApiRunner:
    """Beam's local runner. `is_quiet`: whether the log of workers in other processes, which is
    their standard error, is dropped."""
    direct = options.view_as(DirectOptions)
    ControlConnection.close = _close_connection
    fn_runner._LOGGER.addFilter(_no_advice)
    # Beam would send the buffer every second from another thread. Elements that are written while
    # that thread copies and clears the buffer would be lost silently.
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
    if direct.direct_running_mode != "multi_processing" or not is_quiet:
        return FnApiRunner()
    direct.direct_running_mode = "in_memory"  # otherwise the runner sets an environment of its own
    command = f"{shlex.quote(sys.executable)} -m apache_beam.runners.worker.sdk_worker_main"
    environment = SubprocessSDKEnvironment.from_command_string(f"exec {command} 2>{os.devnull}")
    return FnApiRunner(environment)


@worker_handlers.WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)
class LocalProcess(worker_handlers.SubprocessSdkWorkerHandler):
    """A worker process that ends the job when it dies. Beam would wait for its answers for ever."""

    def start_worker(self) -> None:
        self.worker = SubprocessSdkWorker(
            self._worker_command_line, self.control_address, self.provision_info, self.worker_id
        )
        self.worker_thread = threading.Thread(target=self._run, name="run_worker")
        self.worker_thread.start()

    def _run(self) -> None:
        """Runs the process until it ends. Requests that it has not answered by then fail, and so do
        later requests."""
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


def _fail(future: ControlFuture) -> None:
    identity = future.instruction_id
    text = "\n".join(traceback.format_exception_only(JobError(WORKER_ENDED)))
    future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=identity, error=text))


_beam_close_connection = ControlConnection.close


def _close_connection(connection: ControlConnection) -> None:
    """Closes the connection to a worker, even if the worker has not opened it yet. Beam tells only
    open connections, and then waits for all workers to end: for a late one, for ever."""
    connection.push(BeamFnControlServicer._DONE_MARKER)
    _beam_close_connection(connection)


_beam_alter_label = beam_pipeline.alter_label_if_ipython


def _alter_label(*args: object) -> None:
    """Labels a step by its cell of a notebook, except in pipelines of this project."""
    if not _own_pipeline.get():
        _beam_alter_label(*args)


def _no_advice(record: logging.LogRecord) -> bool:
    """False for the advice to run workers as processes, which is then not logged."""
    return "direct_running_mode should be" not in record.getMessage()
