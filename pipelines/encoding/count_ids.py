"""The pipeline that counts the ids of a finished dataset.

    shards ─ count the ids of each ─▶ one sum ─▶ .shards/token-counts.npy ─▶ FILE.parquet

The pass reads the finished dataset, so shards of earlier runs count too, and nothing is kept if the
pass is killed: the next run does it again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow.parquet as pq

from pipelines.beam import AddArrays, run_plan
from pipelines.encoding.dataset import Dataset
from pipelines.encoding.options import BEST_FIT
from pipelines.encoding.shard_names import has_ids
from pipelines.encoding.shard_writer import IDS
from pipelines.io import outputs
from pipelines.io.reading import bad_data
from pipelines.progress import Progress, add_metrics
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.storage import StoredFile

READ_IDS = 1 << 20  # ids that are counted together: 8 MiB as numbers of NumPy
COUNTING = 3  # number of the plan
SUM = "token-counts.npy"


@dataclass(frozen=True)
class CountedShard:
    """A file of ids. `dtype`: type of the ids of a file that has only ids."""

    name: str
    dtype: str | None


def count_ids(
    dataset: Dataset,
    manifest: Mapping[str, Any],
    tokenizer: Tokenizer,
    beam_args: Sequence[str],
    progress: Progress,
) -> np.ndarray:
    """Return the number of occurrences of each id in a dataset, without padding."""
    work, size, padding = dataset.work, len(tokenizer), manifest["padding_tokens"]
    if padding is None and _is_padded(dataset.job["options"]):
        raise OptionError(
            f"{dataset.path}: was encoded by an earlier version, which did not count padding;"
            f" {opt.token_counts} needs a new dataset"
        )
    work.claim()
    dtype = manifest.get("dtype")
    shards = [CountedShard(s["name"], dtype) for s in manifest["shards"] if has_ids(s["name"])]

    def build(shards: beam.PCollection) -> None:
        _ = (
            shards
            | "count" >> beam.ParDo(_CountIds(dataset, size))
            | "add" >> beam.CombineGlobally(AddArrays((size,)))
            | "write" >> beam.Map(_write_sum, work.place(SUM))
        )

    plan = work.place(f"plan-{COUNTING:06}.jsonl")
    with progress.stage("count tokens", "shards", len(shards)):
        run_plan(build, plan, shards, lambda fields: CountedShard(**fields), beam_args)
    counts: np.ndarray = np.load(io.BytesIO(storage.read_bytes(work.place(SUM))))
    fill_id = tokenizer.fill_id
    if fill_id is not None:
        counts[fill_id] -= padding or 0
    work.delete()
    return counts


def _is_padded(options: Mapping[str, Any]) -> bool:
    return bool(options.get("padding")) or options.get("pack") == BEST_FIT


@dataclass
class _CountIds(beam.DoFn):
    """Count the ids of shards. `size`: number of tokens."""

    dataset: Dataset
    size: int

    def process(self, shard: CountedShard) -> Iterator[np.ndarray]:
        path = self.dataset.place(shard.name)
        counts = np.zeros(self.size, np.int64)
        with StoredFile(path) as file, bad_data(path, fix="; run wordpiece encode again"):
            for ids in _ids_of(file, shard.dtype):
                counts += np.bincount(ids, minlength=self.size)
        add_metrics(shards=1)
        yield counts


def _ids_of(file: StoredFile, dtype: str | None) -> Iterator[np.ndarray]:
    """Yield the ids of a shard, some at a time."""
    if dtype is not None:
        size = np.dtype(dtype).itemsize
        while data := file.read(READ_IDS * size):
            yield np.frombuffer(data, np.dtype(dtype).newbyteorder("<"))
        return
    parquet = pq.ParquetFile(file.arrow())
    for row_group in range(parquet.num_row_groups):
        ids = parquet.read_row_group(row_group, [IDS]).column(IDS)
        for chunk in ids.chunks:
            values = chunk.flatten()
            for start in range(0, len(values), READ_IDS):
                yield values.slice(start, READ_IDS).to_numpy()


def _write_sum(counts: np.ndarray, place: str) -> None:
    stream = io.BytesIO()
    np.save(stream, counts, allow_pickle=False)
    outputs.write_bytes(place, stream.getvalue())
