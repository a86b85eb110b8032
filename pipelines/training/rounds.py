"""One round of training as a Beam pipeline.

    ranges of words ─ advance ─┬─ counts of tokens ─────────────────┐
           │         (splits)  └─ counts of pairs, by partition ─ choose candidates ─┐
           └─────────────────────── gather runs of the splits ◀──────────────────────┘─▶ driver

Splits are Parquet parts in the work directory, one for each range of the word table. A round
applies the merges of the round before to them (`advance`) and counts tokens and pairs. The pairs
that need not be cut are chosen, and how many of them stay whole so that the driver can hold the
pieces; then the splits are cut into these, equal ones added up. Why this loses nothing:
`wordpiece_core/kernel/src/train/cut.rs`. A round that may hold all splits only advances them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from apache_beam.pvalue import AsSingleton
from apache_beam.transforms.window import GlobalWindows

from pipelines.counting.word_table import WordRange, read_words
from pipelines.files import outputs, storage
from pipelines.files.batches import ROWS_AT_ONCE, from_bytes, one_batch, to_bytes, write_batches
from pipelines.files.filesystems import join
from pipelines.files.reading import bad_data
from pipelines.files.storage import StoredFile
from pipelines.running.progress import report
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import _kernel
from wordpiece_core.options import TrainingOptions
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.train import make_splitter, make_trainer

PARTITIONS = 16  # of pairs by hash; how many is part of no result
PACKED = "zstd"  # batches on their way through the shuffle
UNIGRAMS, CANDIDATES, LIMITS = "unigrams.arrow", "candidates.arrow", "limits.arrow"
RUNS, ROUND = "runs.arrow", "round.json"


@dataclass(frozen=True)
class RoundState:
    """What workers need to know of the training so far: where it is.

    `number`: of the round, from 1. `worker_memory`: bytes for the pairs of one worker. `run`:
    another one whenever the driver begins anew.
    """

    work: TrainingWork
    number: int
    options: TrainingOptions
    budget: RoundBudget
    worker_memory: int
    run: str

    @property
    def trainer(self) -> _kernel.Trainer:
        """A trainer where the driver's is."""
        return _read_state(self).trainer

    def pair_levels(self, chosen: Chosen) -> _kernel.Candidates:
        """The pairs that need not be cut."""
        return _kernel.Candidates(from_bytes(chosen.candidates), self.trainer.watches)

    @property
    def splitter(self) -> _kernel.Splitter:
        """Cuts words into their splits after all merges."""
        return _read_state(self).splitter

    @property
    def advancer(self) -> _kernel.Splitter:
        """Applies the merges of the round before to splits."""
        return _read_state(self).advancer

    def splits(self, part: WordRange, number: int | None = None) -> str:
        """The file with the splits of a range, in this round or another."""
        directory = self.work.splits(self.number if number is None else number)
        return join(directory, f"{part.name}.parquet")


@dataclass(frozen=True)
class _ReadState:
    trainer: _kernel.Trainer
    splitter: _kernel.Splitter
    advancer: _kernel.Splitter


_reading_state = threading.Lock()


def _read_state(state: RoundState) -> _ReadState:
    """Reads the work directory, once for all steps of a round in a process."""
    with _reading_state:
        return _read_state_once(state)


@lru_cache(maxsize=1)
def _read_state_once(state: RoundState) -> _ReadState:
    begun = state.work.begun()
    assert begun is not None
    vocabulary, options = begun[0], state.options
    trainer = make_trainer(vocabulary.tokens, options)
    last = trainer.merges()
    for done in state.work.finished_rounds():
        trainer.restore(done.merges, done.support)
        last = done.merges
    return _ReadState(
        trainer,
        make_splitter(vocabulary, pa.record_batch(trainer.merges()), options),
        make_splitter(vocabulary, pa.record_batch(last), options),
    )


@dataclass
class AdvanceRound(beam.PTransform):
    """Ranges of words to their splits, in files; gives how many there are."""

    state: RoundState

    def expand(self, ranges: beam.PCollection) -> beam.PCollection:
        return ranges | "advance" >> beam.Map(lambda part: len(advance(part, self.state)))


@dataclass
class GatherRound(beam.PTransform):
    """Ranges of words to what the driver holds in a round, in files of `directory`."""

    state: RoundState
    directory: str

    def expand(self, ranges: beam.PCollection) -> beam.PCollection:
        state = self.state
        counted = ranges | "advance and count" >> beam.ParDo(CountSplits(state)).with_outputs(
            "tokens", main="pairs"
        )
        tokens = counted.tokens | "add tokens" >> beam.CombineGlobally(add_tokens)
        pairs = (
            counted.pairs
            | "group pairs" >> beam.GroupByKey()
            | "add pairs" >> beam.MapTuple(lambda _, batches: add_pairs(batches))
        )
        largest = (
            pairs
            | "largest" >> beam.Map(lambda batch: state.trainer.largest(from_bytes(batch)))
            | "largest of all" >> beam.CombineGlobally(lambda counts: max(counts, default=0))
        )
        chosen = (
            pairs
            | "candidates" >> beam.Map(choose, state, AsSingleton(tokens), AsSingleton(largest))
            | "to one" >> beam.combiners.ToList()
            | "choose" >> beam.Map(choose_of_parts, state)
        )
        level = (
            ranges
            | "measure" >> beam.ParDo(MeasureRuns(state), AsSingleton(chosen))
            | "level" >> beam.CombineGlobally(add_samples).without_defaults()
        )
        runs = (
            ranges
            | "gather" >> beam.ParDo(GatherRuns(state), AsSingleton(chosen), AsSingleton(level))
            | "runs to one" >> beam.GroupByKey()
            | "add runs" >> beam.MapTuple(lambda _, runs: write_runs(runs, self.directory))
        )
        limits = (
            pairs
            | "limits" >> beam.Map(limit, state, AsSingleton(chosen))
            | "join limits" >> beam.CombineGlobally(join_limits)
        )
        facts = level | "write" >> beam.Map(
            write_round, state, self.directory, AsSingleton(chosen), AsSingleton(limits)
        )
        return (runs, facts) | beam.Flatten()


# --- Splits ---------------------------------------------------------------------------------------


def advance(part: WordRange, state: RoundState) -> pa.RecordBatch:
    """The splits of a range after all merges, which are also written for the round to come."""
    path = state.splits(part)
    if storage.info(path) is not None:  # of this round, killed before its end
        return read_splits(path)
    earlier = state.splits(part, state.number - 1)
    if storage.info(earlier) is not None:
        splits = pa.record_batch(state.advancer.merge(read_splits(earlier)))
    else:
        splits = pa.record_batch(state.splitter.split(read_words(part), part.first_rank))
    _write_splits(path, splits)
    report(words=part.rows)
    return splits


def _write_splits(path: str, splits: pa.RecordBatch) -> None:
    storage.again(
        lambda: outputs.write_parquet(
            path, [splits], splits.schema, compression="lz4", use_dictionary=False
        )
    )


def read_splits(path: str) -> pa.RecordBatch:
    """The splits in a part: `rank`, `offset`, `count`, `symbols: list<uint32>`."""
    with StoredFile(path) as source, bad_data(path):
        return one_batch(pq.read_table(source.arrow()))


@dataclass(frozen=True)
class TokenCounts:
    """Counts of tokens over splits. `split_tokens`: tokens in all splits, each word once."""

    split_tokens: int
    unigrams: bytes


class CountSplits(beam.DoFn):
    """Advances the splits of ranges, and counts tokens and pairs over those of a bundle."""

    def __init__(self, state: RoundState) -> None:
        self.state = state

    def start_bundle(self) -> None:
        self.counter = _kernel.PairCounter()

    def process(self, part: WordRange) -> Iterator[tuple[int, bytes]]:
        self.counter.add_splits(advance(part, self.state))
        if self.counter.memory > self.state.worker_memory:
            yield from self._take()

    def _take(self) -> Iterator[tuple[int, bytes]]:
        for partition, pairs in self.counter.take_pairs(PARTITIONS):
            yield partition, to_bytes(pairs, PACKED)

    def finish_bundle(self) -> Iterator[Any]:
        for pairs in self._take():
            yield GlobalWindows.windowed_value(pairs)
        none = 0, to_bytes(_kernel.add_pairs([]))
        yield GlobalWindows.windowed_value(none)  # so that there are pairs, if only none
        counts = TokenCounts(self.counter.symbols, to_bytes(self.counter.unigrams()))
        del self.counter  # Beam keeps the object
        yield beam.pvalue.TaggedOutput("tokens", GlobalWindows.windowed_value(counts))


def add_tokens(parts: Iterable[TokenCounts]) -> TokenCounts:
    """Their sum."""
    parts = list(parts)
    sums = _kernel.add_unigrams([from_bytes(part.unigrams) for part in parts])
    return TokenCounts(sum(part.split_tokens for part in parts), to_bytes(sums))


def add_pairs(batches: Iterable[bytes]) -> bytes:
    """The sum of counts of pairs."""
    return to_bytes(_kernel.add_pairs([from_bytes(batch) for batch in batches]), PACKED)


# --- Candidates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """Pairs that need not be cut, and what goes with them (see `Trainer.candidates`).

    `unigrams`: counts of all tokens. `largest`: the largest count of a pair. `split_tokens`: in
    all splits.
    """

    candidates: bytes
    loosest: int | None
    unigrams: bytes
    largest: int
    split_tokens: int


def choose(pairs: bytes, state: RoundState, tokens: TokenCounts, largest: int) -> Chosen:
    """The candidates of a part of the pairs."""
    every = Chosen(pairs, None, tokens.unigrams, largest, tokens.split_tokens)
    return choose_of_parts([every], state)


def choose_of_parts(parts: list[Chosen], state: RoundState) -> Chosen:
    """The candidates among those of parts of the pairs."""
    first = parts[0]
    levels = [part.loosest for part in parts if part.loosest is not None]
    candidates, loosest = state.trainer.candidates(
        from_bytes(first.unigrams),
        [from_bytes(part.candidates) for part in parts],
        largest=first.largest,
        most=state.budget.candidates(first.split_tokens),
        loosest=min(levels, default=None),
    )
    return replace(first, candidates=to_bytes(candidates, PACKED), loosest=loosest)


# --- Runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """A sample of the runs of some splits (see `RunSizes`), and what the driver may hold."""

    runs: bytes
    level: int
    most: int


class MeasureRuns(beam.DoFn):
    """Samples of the runs of a bundle's splits, from which the level of the cut is chosen."""

    def __init__(self, state: RoundState) -> None:
        self.state = state

    def start_bundle(self) -> None:
        self.sizes: _kernel.RunSizes | None = None

    def process(self, part: WordRange, chosen: Chosen) -> Iterator[Sample]:
        if self.sizes is None:
            assert chosen.loosest is not None
            self.most = self.state.budget.tokens(chosen.split_tokens)
            self.sizes = _kernel.RunSizes(self.most, chosen.loosest)
            self.candidates = self.state.pair_levels(chosen)
        self.sizes.add_splits(read_splits(self.state.splits(part)), self.candidates)
        yield from ()

    def finish_bundle(self) -> Iterator[Any]:
        if self.sizes is not None:
            sample = Sample(to_bytes(self.sizes.sample()), self.sizes.level, self.most)
            self.sizes = None  # Beam keeps the object
            del self.candidates
            yield GlobalWindows.windowed_value(sample)


def add_samples(samples: Iterable[Sample]) -> Sample:
    """Their sum."""
    samples = list(samples)
    most = samples[0].most
    sizes = _kernel.RunSizes(most, min(sample.level for sample in samples))
    for sample in samples:
        sizes.add_sample(from_bytes(sample.runs))
    return Sample(to_bytes(sizes.sample()), sizes.level, most)


class GatherRuns(beam.DoFn):
    """The runs in the splits of ranges, equal ones of a bundle added up."""

    def __init__(self, state: RoundState) -> None:
        self.state = state

    def start_bundle(self) -> None:
        self.runs: _kernel.Runs | None = None

    def process(self, part: WordRange, chosen: Chosen, cut: Sample) -> Iterator[tuple[None, bytes]]:
        if self.runs is None:
            self.runs = _kernel.Runs()
            self.candidates = self.state.pair_levels(chosen)
        splits = read_splits(self.state.splits(part))
        self.runs.add_splits(splits, self.candidates, cut.level)
        yield from ()

    def finish_bundle(self) -> Iterator[Any]:
        if self.runs is not None:
            batches = self.runs.take(ROWS_AT_ONCE)
            self.runs = None  # Beam keeps the object
            del self.candidates
            for runs in batches:
                yield GlobalWindows.windowed_value((None, to_bytes(runs, PACKED)))


def write_runs(parts: Iterable[bytes], directory: str) -> None:
    """Adds runs up and writes them for the driver."""
    runs = _kernel.Runs()
    for part in parts:
        runs.add_runs(from_bytes(part))
    write_batches(join(directory, RUNS), runs.take(ROWS_AT_ONCE))


def limit(pairs: bytes, state: RoundState, chosen: Chosen) -> bytes:
    """What scores the pairs that are no candidates may come to, if the round needs to know."""
    if not state.trainer.watches:
        return join_limits([])
    unigrams, candidates = from_bytes(chosen.unigrams), from_bytes(chosen.candidates)
    return to_bytes(
        state.trainer.limits(
            unigrams, [from_bytes(pairs)], candidates=candidates, largest=chosen.largest
        )
    )


def join_limits(parts: Iterable[bytes]) -> bytes:
    """The limits of all parts of the pairs."""
    return to_bytes(_kernel.join_limits([from_bytes(part) for part in parts]))


def write_round(
    cut: Sample, state: RoundState, directory: str, chosen: Chosen, limits: bytes
) -> None:
    """Writes what else the driver reads."""
    candidates = from_bytes(chosen.candidates)
    if not state.trainer.watches:  # then the best will do
        candidates = candidates.filter(pc.equal(candidates["level"], 0))
    tables = {
        UNIGRAMS: from_bytes(chosen.unigrams),
        CANDIDATES: candidates,
        LIMITS: from_bytes(limits),
    }
    for name, table in tables.items():
        write_batches(join(directory, name), [table])
    facts = {
        "split_tokens": chosen.split_tokens,
        "largest": chosen.largest,
        "level": cut.level,
    }
    outputs.write_json(join(directory, ROUND), facts)
