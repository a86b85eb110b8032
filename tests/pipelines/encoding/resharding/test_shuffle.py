"""Files of runs: their rows by bucket, and how much memory these take."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.encoding.resharding.shuffle import (
    Buckets,
    RunWriter,
    order_of,
    read_segments,
)
from pipelines.encoding.row_weights import SPLIT, WEIGHT
from pipelines.io.outputs import NewFile
from wordpiece_core.limits import LIMITS

ROWS, RUNS = 1000, 3
WEIGHTS = [
    LIMITS.bucket_bytes * 5 // 2,
    LIMITS.bucket_bytes,
]  # of the splits: three buckets, and one


@pytest.fixture
def buckets(tmp_path: Path) -> tuple[Buckets, str]:
    """Buckets, and a file of runs: rows of 20 bytes by their weights, and of more in memory."""
    path = str(tmp_path / "0.runs")
    table = pa.table(
        {
            "input_ids": pa.array([[7] * 10] * ROWS, pa.list_(pa.int32())),
            WEIGHT: pa.array([20] * ROWS, pa.int64()),
            SPLIT: pa.array([0, 0, 0, 1] * (ROWS // 4), pa.int16()),
        }
    )
    with NewFile(path, str(tmp_path)) as file:
        writer = RunWriter(file, Buckets.of(WEIGHTS, LIMITS), run_bytes=1)  # each table is a run
        for run in range(RUNS):
            writer.add(table, order_of(1, "a", run * ROWS, ROWS))
        writer.finish()
        file.put()
    return Buckets.of(WEIGHTS, LIMITS).written([path]), path


def test_all_rows_are_in_the_buckets_of_their_splits(buckets: tuple[Buckets, str]) -> None:
    found, path = buckets
    assert found.numbers == [3, 1]
    rows = [sum(table.num_rows for table in read_segments(path, n)) for n in range(4)]
    assert [sum(rows[:3]), rows[3]] == [ROWS * RUNS * 3 // 4, ROWS * RUNS // 4]
    assert [*found.weights] == [20 * many for many in rows]


def test_the_parts_of_a_bucket_follow_from_its_bytes_in_memory(
    buckets: tuple[Buckets, str],
) -> None:
    found, path = buckets
    for bucket in range(4):
        held = sum(table.nbytes for table in read_segments(path, bucket))
        assert found.bytes[bucket] == pytest.approx(held, rel=0.01)
        assert held > 2 * found.weights[bucket]
        assert found.parts(bucket, 4 * found.bytes[bucket], copies=2) == 1
        assert found.parts(bucket, 4 * found.bytes[bucket] - 1, copies=2) == 2
