"""Figures are the same wherever workers are: here, in other processes, behind a job service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest

from pipelines.encoding.encode import encode_job
from pipelines.encoding.options import EncodeOptions
from pipelines.running.figures import add_metrics
from pipelines.running.progress import Progress
from pipelines.running.runner import run_pipeline
from pipelines.running.threads import ahead, in_threads
from wordpiece_core import Tokenizer

from ..corpora import write_shard

ITEMS = 4
PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


class Work(beam.DoFn):
    """Reports on the thread of the bundle, on kernel threads, and on one that is ahead."""

    def process(self, number: int) -> None:
        add_metrics(rows=1)
        list(in_threads(lambda n: add_metrics(bytes=n), iter([number, 100]), 2))
        list(ahead(self._tokens, 1))

    def _tokens(self) -> Iterator[None]:
        add_metrics(tokens=10)
        yield

    def finish_bundle(self) -> None:
        add_metrics(shards=1)


def build(pipeline: beam.Pipeline) -> None:
    pipeline | beam.Create(range(ITEMS)) | beam.ParDo(Work())


DONE = {
    "rows": ITEMS,
    "bytes": sum(range(ITEMS)) + 100 * ITEMS,
    "tokens": 10 * ITEMS,
}


def run(beam_args: list[str]) -> Counter[str]:
    """The figures of a run, without the number of its bundles."""
    job = Progress(quiet=True)
    run_pipeline(build, beam_args)
    assert job.figures["shards"] >= 1
    return job.figures - Counter(shards=job.figures["shards"])


@pytest.mark.parametrize("mode", ["in_memory", "multi_threading"])
def test_a_local_run_has_all_figures_at_its_end(mode: str) -> None:
    assert run([f"--direct_running_mode={mode}", "--direct_num_workers=2"]) == DONE


@pytest.mark.soak
def test_an_encoding_reports_from_other_processes_what_its_manifest_says(tmp_path: Path) -> None:
    for name in "ab":
        write_shard(tmp_path / "in" / f"{name}.parquet", ["the cat", "the dog"] * 100)
    tokenizer = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "the", "cat"])
    options = EncodeOptions(
        tmp_path / "in", output=tmp_path / "out", tokenizer=tokenizer, beam_args=PROCESSES
    )
    job = Progress(quiet=True)
    manifest = encode_job(options, tokenizer, job).manifest
    told = {name: manifest[name] for name in ("bytes", "rows", "tokens")}
    told |= {"input": manifest["bytes"], "unknown": manifest["unknown_tokens"], "shards": 2}
    assert job.figures == told
    assert manifest["unknown_tokens"] == 200
