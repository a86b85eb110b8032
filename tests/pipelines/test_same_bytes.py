"""A job writes the same bytes however its work is divided: for any order of the inputs, number and
kind of workers, and memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pipelines.counting.spill import Spill
from pipelines.encoding.pipeline import EncodeShard
from pipelines.encoding.resharding.rows import Target
from pipelines.io.reader import Reader
from pipelines.training.passes import Exchange
from wordpiece_core.limits import Limits
from wordpiece_core.option_types import LEAST_WORKER_MEMORY

from ..quick import parametrize
from .corpora import (
    ONE_WORKER,
    done,
    english,
    files_below,
    multilingual,
    train_tokenizer,
    write_shards,
)

TEXTS = multilingual(60) + english(340)
LAYOUT = Limits(  # of files: many parts and row groups, as a large corpus has
    table_part_rows=200,
    table_group_rows=60,
    words_per_sample=5,
    row_group_bytes=20_000,
    piece_bytes=1000,
    dictionary_ids=300,
    block_bytes=5000,
    bucket_bytes=1000,
    large_buckets=2,
    task_bytes=2000,
    packed_ids=700,
)
DIVIDED = replace(
    LAYOUT,
    range_bytes=1000,
    counted_bytes=500,
    max_partition_bytes=2000,
    partition_share_bytes=16 << 10,
    min_table_piece_bytes=1,
    merged_bytes=1,
    least_candidates=5,
    tokens_per_candidate=2,
    least_pair_partitions=20,
    least_fragment_partitions=3,
    fragments_at_once=50,
    spilled_bytes=1,
    least_added_bytes=1,
    held_bytes=1000,
    waiting_shards=1,
    records_per_file=2,
    run_share=64,
    sorted_copies=30,
    read_bytes=500,
)
ROUNDS = ["--round-budget", "0.4"]
Straight = Callable[[str], tuple[dict[str, bytes], int]]
"""The files that a job writes on one worker, and the number of calls of its method."""


@dataclass(frozen=True)
class Job:
    """A job: its call, with IN, DIRECTORY and TOKENIZER for places; what is added when its work is
    divided; and a method that is then called more often. `by_file`: True if files of the output
    depend on files of the input."""

    call: Sequence[str]
    owner: type
    method: str
    more: Sequence[str] = ()
    by_file: bool = False


ENCODE = ["encode", "IN", "--tokenizer", "TOKENIZER"]
SHUFFLE = ["--shuffle", "3", "--shard-size", "16KiB"]
MEGATRON = ["--format", "megatron", "--splits", "train=0.8,test=0.2", *SHUFFLE]
MIX = ["--mix", "MIX", "--tokens", "2k", "--group-column", "lang"]
BEST_FIT = ["--pack", "best-fit", "--max-length", "32"]
GROUPS = ["--group-column", "lang", "--smoothing-exponent", "0.7"]
GPT2 = ["--config", "gpt2", "--vocab-size", "500", "--min-word-count", "1"]
SUPERWORDS = ["--superwords", "100"]
UNIGRAM = ["--model", "unigram", "--vocab-size", "400"]
ON = ["--on", "DIRECTORY", "--group-column", "lang"]
BPE = ["--model", "bpe", "--vocab-size", "700"]
MARKS = ["--word-boundary", "▁", "--byte-fallback"]
EXTEND = ["extend", "TOKENIZER", "IN", "--new-tokens", "40", "--criterion", "frequency"]
JOBS = {
    "count": Job(["count", "IN"], Spill, "emit"),
    "count with groups": Job(["count", "IN", *GROUPS], Spill, "emit"),
    "train": Job(["train", "IN", "--vocab-size", "420"], Exchange, "write", ROUNDS),
    "train bpe": Job(["train", "IN", *GPT2], Exchange, "write", ROUNDS),
    "train superwords": Job(["train", "IN", *GPT2, *SUPERWORDS], Exchange, "write", ROUNDS),
    "train unigram": Job(["train", "IN", *UNIGRAM], Exchange, "write", ROUNDS),
    "extend": Job(EXTEND, Exchange, "write", ROUNDS),
    "prune": Job(["prune", "TOKENIZER", "IN", "--vocab-size", "300"], Spill, "emit"),
    "encode": Job([*ENCODE, "--columns", "num_tokens"], EncodeShard, "_put", by_file=True),
    "encode packed": Job(
        [*ENCODE, "--pack", "--max-length", "32", *SHUFFLE], Target, "_segments", by_file=True
    ),
    "encode best-fit": Job([*ENCODE, *BEST_FIT, *SHUFFLE], Target, "_segments", by_file=True),
    "encode mixed": Job([*ENCODE, *MIX, *SHUFFLE], Target, "_segments", by_file=True),
    "encode for megatron": Job([*ENCODE, *MEGATRON], Target, "_segments", by_file=True),
    "compare": Job(["compare", "TOKENIZER", "BPE", *ON, "--json"], Reader, "_batch"),
    "report": Job(
        ["report", "TOKENIZER", "--compare-with", "BPE", *ON], Reader, "_batch", by_file=True
    ),
    "train bpe of words": Job(["train", "IN", *BPE], Exchange, "write", ROUNDS),
    "train bpe with marks": Job(["train", "IN", *BPE, *MARKS], Exchange, "write", ROUNDS),
}
SLOW = {"train bpe of words", "train bpe with marks"}
QUICK = {"count", "encode packed"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer, and texts of several languages in 4 files and, in the same order, in 23."""
    directory = tmp_path_factory.mktemp("corpus")
    train_tokenizer(directory, TEXTS, "--vocab-size", "400")
    train_tokenizer(directory / "bpe", TEXTS, *BPE)
    parts = "[{group: a, weight: 2}, {group: c, weight: 1, max_repeats: 9}]"
    (directory / "mix.yaml").write_text(f"sources: {parts}")
    rows = [{"id": i, "text": text, "lang": "abc"[i % 3]} for i, text in enumerate(TEXTS)]
    for files in (4, 23):
        (directory / str(files)).mkdir()
        for number in range(files):
            some = rows[len(rows) * number // files : len(rows) * (number + 1) // files]
            lines = "".join(json.dumps(row) + "\n" for row in some)
            (directory / str(files) / f"{number:02}.jsonl").write_text(lines)
    return directory


@pytest.fixture(scope="module")
def straight(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Straight:
    """Return what a job writes on one worker, and the calls of its method."""

    @cache
    def run(job: str) -> tuple[dict[str, bytes], int]:
        output = tmp_path_factory.mktemp("straight") / "out"
        with calls_of(JOBS[job]) as calls:
            files = written(corpus, job, output, *ONE_WORKER)
        return files, len(calls)

    return run


def written(
    corpus: Path,
    job: str,
    output: Path | str,
    *more: str,
    limits: Limits = LAYOUT,
    many_files: bool = False,
) -> dict[str, bytes]:
    """Run a job, and return the files that it writes, or the table that it prints."""
    folder = corpus / ("23" if many_files and not JOBS[job].by_file else "4")
    inputs = sorted(map(str, folder.iterdir()), reverse=many_files)
    words = {"IN": inputs, "DIRECTORY": [str(folder)], "TOKENIZER": [str(corpus / "tokenizer")]}
    words["BPE"] = [str(corpus / "bpe" / "tokenizer")]
    words["MIX"] = [str(corpus / "mix.yaml")]
    call = [part for word in JOBS[job].call for part in words.get(word, [word])]
    place = f"{output}/report.html" if job == "report" else output
    where = [] if job == "compare" else ["--output", place]
    outcome = done(*call, *where, *more, limits=limits)
    if job == "compare":
        return {"table": outcome.out.encode()}
    return without_times(output)


def without_times(output: Path | str) -> dict[str, bytes]:
    """Return the files of an output. Records of runs, which have times, are empty."""
    files = files_below(output)
    return {name: b"" if "run.json" in name else data for name, data in files.items()}


@contextmanager
def calls_of(job: Job) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the arguments of the calls of the method of a job."""
    calls: list[tuple[Any, ...]] = []
    method = getattr(job.owner, job.method)

    def counting(*args: Any, **more: Any) -> Any:
        calls.append(args)
        return method(*args, **more)

    with mock.patch.object(job.owner, job.method, counting):
        yield calls


def differing(files: dict[str, bytes], others: dict[str, bytes]) -> list[str]:
    """Return the names of files that differ."""
    return [n for n in sorted(files.keys() | others) if files.get(n) != others.get(n)]


@pytest.mark.usefixtures("any_memory")
@pytest.mark.parametrize(
    "job", [pytest.param(j, marks=pytest.mark.soak) if j in SLOW else j for j in JOBS]
)
def test_divided_work_gives_the_same_bytes(
    corpus: Path, tmp_path: Path, job: str, straight: Straight
) -> None:
    more = [*JOBS[job].more, "--worker-memory", "64KiB", "--", "--direct_num_workers=2"]
    with calls_of(JOBS[job]) as calls:
        files = written(corpus, job, tmp_path / "out", *more, limits=DIVIDED, many_files=True)
    expected, fewer = straight(job)
    assert differing(files, expected) == []
    assert len(calls) > fewer
    if "--round-budget" in JOBS[job].more:
        rounds = json.loads((tmp_path / "out" / "run.json").read_text())["rounds"]
        assert rounds > 1
    if "--round-budget" in JOBS[job].more and job != "train unigram":
        partitions = Counter(output for _, output, *_ in calls)
        assert partitions["pairs"] >= 19 * partitions["tokens"]
        assert partitions["runs"] > partitions["tokens"] == partitions["candidates"]


@pytest.mark.usefixtures("any_memory")
@parametrize(
    ("job", "place"),
    [
        *[("count", "store"), ("encode packed", "store_that_closes"), ("train", "store")],
        *product(sorted({*JOBS} - {"compare", "report"}), ["store_that_closes?region=x"]),
    ],
    quick=2,
)
def test_outputs_on_a_store_have_the_same_bytes(
    request: pytest.FixtureRequest,
    corpus: Path,
    tmp_path: Path,
    job: str,
    place: str,
    straight: Straight,
) -> None:
    kind, *query = place.partition("?")
    output = f"{request.getfixturevalue(kind)}/out{''.join(query)}"
    more = [*JOBS[job].more, "--worker-memory", "64KiB"]
    for is_again in (False, True):
        with calls_of(Job([], EncodeShard, "_encode")) as encoded:
            written(corpus, job, output, *more, limits=DIVIDED)
        assert differing(without_times(tmp_path / "out"), straight(job)[0]) == []
        assert bool(encoded) == (job.startswith("encode") and not is_again)


@parametrize("job", [*sorted(QUICK), *sorted({*JOBS} - QUICK)], quick=2)
def test_workers_in_processes_give_the_same_bytes(
    corpus: Path, tmp_path: Path, job: str, straight: Straight
) -> None:
    beam = ["--", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    files = written(corpus, job, tmp_path / "out", *beam)
    assert differing(files, straight(job)[0]) == []


@pytest.mark.soak
def test_the_least_memory_gives_the_same_bytes(tmp_path: Path) -> None:
    # Enough words to overflow the smallest memory, and to be divided into two partitions.
    rows = [" ".join(f"{row:x}w{n}" for n in range(40)) for row in range(20_000)]
    shards = write_shards(tmp_path / "in", rows, 4, ".txt")
    done("count", shards, "--output", tmp_path / "default")
    least = ["--worker-memory", str(LEAST_WORKER_MEMORY)]
    done("count", shards, "--output", tmp_path / "least", *least)
    assert files_below(tmp_path / "least") == files_below(tmp_path / "default")
