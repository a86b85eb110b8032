"""Beam's local runner, and the changes of it that jobs cannot do without. No other module uses
Beam's private names.

- With workers in threads or processes, elements of large bundles are lost silently. Each second a
  thread of its own sends what a worker has written: it copies the buffer and clears it, without a
  lock that the writer takes too, so what is written in between is lost. This is Beam's class
  `TimeBasedBufferingClosableOutputStream`, added by BEAM-7949
  (https://github.com/apache/beam/pull/10246). We found no report of the fault. `local_runner` turns
  the sending by time off
  (`test_no_element_of_a_large_bundle_is_lost_to_a_thread_that_sends_at_times`).
- In a notebook, Beam imports its interactive runner to label steps. With pandas 3 that import fails
  and, with it, every pipeline. `allow_notebooks` then does without the labels
  (`test_jobs_run_in_a_notebook_and_show_a_bar`).

The changes stay for the life of the process, as threads of a failed pipeline may run on after it.
Tested with Beam 2.77.
"""

from __future__ import annotations

import logging

from apache_beam import pipeline as beam_pipeline
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.runners.worker import sdk_worker
from apache_beam.utils.interactive_utils import is_in_ipython


def local_runner() -> FnApiRunner:
    """Return Beam's local runner, with the workarounds. Workers in this process print tracebacks
    only if errors are logged; Beam's own print them at any log level, even after a pipeline has
    ended."""
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
    is_quiet = not logging.getLogger().isEnabledFor(logging.ERROR)
    sdk_worker.print = _ignore if is_quiet else print
    allow_notebooks()
    return FnApiRunner()


def _ignore(*_: object, **__: object) -> None:
    """Print nothing."""


def allow_notebooks() -> None:
    """Has pipelines in a notebook do without labels, if Beam cannot make these."""
    if is_in_ipython():
        try:
            import apache_beam.runners.interactive.interactive_environment  # noqa: F401
        except Exception:  # an AttributeError with pandas 3
            beam_pipeline.alter_label_if_ipython = lambda *_: None
