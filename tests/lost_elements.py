"""Show that Beam's local runner loses elements of large bundles.

    pip install apache-beam
    python lost_elements.py        # exit status 1 if elements are lost

A worker in its own thread or process sends its output through a
`TimeBasedBufferingClosableOutputStream` (apache_beam/runners/worker/data_plane.py). A periodic
thread flushes this stream: it sends the contents of the buffer and clears it, without a lock that
the writing thread shares. Elements that are written between these two steps are lost, and the
pipeline ends without an error.
"""

import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

ELEMENTS = 2_000_000
WORKERS = 2


def emit(worker):
    """Emit many elements from one bundle."""
    for number in range(ELEMENTS):
        yield worker, number % 10


def check(counted):
    """Print the number of elements of a worker, and fail if some are missing."""
    worker, count = counted
    print(f"worker {worker}: {count:,} of {ELEMENTS:,} elements")
    if count != ELEMENTS:
        raise RuntimeError(f"{ELEMENTS - count:,} elements are lost")


if __name__ == "__main__":
    sys.setswitchinterval(1e-5)  # switch threads more often than every 5 ms
    options = PipelineOptions(direct_running_mode="multi_threading", direct_num_workers=WORKERS)
    with beam.Pipeline("FnApiRunner", options=options) as pipeline:
        (
            pipeline
            | beam.Create(range(WORKERS))
            | beam.FlatMap(emit)
            | beam.GroupByKey()
            | beam.MapTuple(lambda worker, numbers: (worker, sum(1 for _ in numbers)))
            | beam.Map(check)
        )
