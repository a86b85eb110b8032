"""Beam's local runner, and the changes of it that jobs cannot do without. No other module uses
Beam's private names.

- With workers in threads or processes, elements of large bundles are lost silently. Each second a
  thread of its own sends what a worker has written: it copies the buffer and clears it, without a
  lock that the writer takes too, so what is written in between is lost. This is Beam's class
  `TimeBasedBufferingClosableOutputStream`, added by BEAM-7949
  (https://github.com/apache/beam/pull/10246). We found no report of the fault. `local_runner` turns
  the sending by time off
  (`test_no_element_of_a_large_bundle_is_lost_to_a_thread_that_sends_at_times`).
- If a worker process is killed, for example because memory runs out, Beam waits for its answers for
  ever. Without a change, 7 of 10 encodings hung in which we killed one at a random moment; in the
  other 3 the work was done by then. `LocalProcess` ends the job with an error
  (`test_a_worker_process_that_is_killed_ends_the_job`).
- If a job fails while a worker process is still starting, Beam waits for that worker for ever: it
  tells only those to end that are connected. `_close_connection` tells the others, too
  (`test_a_failed_job_does_not_wait_for_a_worker_that_starts_late`).
- In a notebook, Beam imports its interactive runner to label steps. With pandas 3 that import fails
  and, with it, every pipeline. `allow_notebooks` then does without the labels
  (`test_jobs_run_in_a_notebook_and_show_a_bar`).

The changes stay for the life of the process, as threads of a failed pipeline may run on after it.
Tested with Beam 2.77.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading
import traceback
from contextlib import suppress

from apache_beam import pipeline as beam_pipeline
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    BeamFnControlServicer,
    ControlConnection,
    ControlFuture,
)
from apache_beam.runners.portability.local_job_service import SubprocessSdkWorker
from apache_beam.transforms.environments import SubprocessSDKEnvironment
from apache_beam.utils.interactive_utils import is_in_ipython

from wordpiece_core.errors import JobError

WORKER_ENDED = "a worker process ended before its work (out of memory?); run the job again"


def local_runner(options: PipelineOptions, *, is_quiet: bool) -> FnApiRunner:
    """Beam's local runner. `is_quiet`: whether the log of workers in other processes, which is
    their standard error, is dropped."""
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
    ControlConnection.close = _close_connection
    allow_notebooks()
    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode != "multi_processing" or not is_quiet:
        return FnApiRunner()
    direct.direct_running_mode = "in_memory"  # otherwise the runner sets an environment of its own
    command = f"{shlex.quote(sys.executable)} -m apache_beam.runners.worker.sdk_worker_main"
    environment = SubprocessSDKEnvironment.from_command_string(f"exec {command} 2>{os.devnull}")
    return FnApiRunner(environment)


def allow_notebooks() -> None:
    """Has pipelines in a notebook do without labels, if Beam cannot make these."""
    if is_in_ipython():
        try:
            import apache_beam.runners.interactive.interactive_environment  # noqa: F401
        except Exception:  # an AttributeError with pandas 3
            beam_pipeline.alter_label_if_ipython = lambda *_: None


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
    """Closes the connection to a worker process, also of one that has not connected yet."""
    connection.push(BeamFnControlServicer._DONE_MARKER)
    _beam_close_connection(connection)
