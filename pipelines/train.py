"""The job `train`: a word table to a vocabulary, in exact rounds of merges.

Each round is one pipeline:

    ranges of words ─ split ─┬─ count pairs ─ add up ─▶ counts ─▶ driver
                             │                   └─ choose hot pairs ─┐
                             └─────────────── gather words with one ◀─┘ ─▶ driver

Words are cut into the splits that they have after the merges so far; tokens and pairs are counted
over all of them; the words that hold a hot pair are gathered. The driver merges as long as all
words of the best pair have been gathered, then the next round begins. With a budget of 1 every
word is gathered, and one round is all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa

from pipelines import outputs
from pipelines.batches import from_bytes, to_bytes
from pipelines.progress import Progress, report
from pipelines.runner import run_pipeline
from pipelines.word_table import WordRange, WordTable, read_words, word_ranges
from wordpiece_core import _kernel
from wordpiece_core.alphabet import InitialVocabulary, initial_vocabulary, merge_symbols
from wordpiece_core.errors import InputError
from wordpiece_core.options import TrainingOptions
from wordpiece_core.training import (
    TrainingResult,
    make_splitter,
    make_trainer,
    merge_log,
    symbol_counts,
)

MERGES_PER_REPORT = 200
COMBINE_AT = 8  # counts of as many ranges wait before they are added up
UNIGRAMS, PAIRS, WORDS = "unigrams", "pairs", "words"


@dataclass
class Job:
    """What the rounds of a training share."""

    options: TrainingOptions
    work: str
    """A directory for what pipelines hand to the driver."""
    progress: Progress
    round_budget: float = 1.0
    """The share of all split tokens that a round may gather."""
    beam_args: Sequence[str] = ()


def train(table: WordTable, job: Job) -> TrainingResult:
    """Trains on a word table. Raises InputError and OptionError."""
    ranges = word_ranges(table)
    words = sum(part.rows for part in ranges)
    try:
        with job.progress.stage("alphabet", "words", words):
            symbols = merge_symbols(_count_symbols(ranges, job))
            vocabulary = initial_vocabulary(symbols, job.options)
        trainer = make_trainer(vocabulary.tokens, job.options)
        rounds, status = 0, "round over"
        while status == "round over":
            rounds += 1
            state = RoundState.of(vocabulary, trainer, job)
            with job.progress.stage("aggregate", "words", words):
                counts, splits = _run_round(ranges, state, job)
            begun_with = len(vocabulary.tokens)
            with job.progress.stage("merge", "merges", job.options.vocab_size - begun_with):
                report(merges=trainer.vocab_size - begun_with)
                trainer.start_round(counts.unigrams, counts.pairs, splits)
                status = _merge(trainer)
    except ValueError as error:
        raise InputError(f"{table.path}: {error}") from error
    return TrainingResult(trainer.tokens, merge_log(trainer), rounds)


def _merge(trainer: _kernel.Trainer) -> str:
    """Merges until the round is over, or all is done."""
    status = "running"
    while status == "running":
        before = trainer.vocab_size
        status = trainer.run(MERGES_PER_REPORT)
        report(merges=trainer.vocab_size - before)
    return status


# --- The pipelines --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """Counts over splits. `split_tokens`: tokens in all splits, each word once."""

    split_tokens: int
    unigrams: bytes
    pairs: bytes


@dataclass(frozen=True)
class DriverCounts:
    """The same, as the driver has them."""

    unigrams: pa.RecordBatch
    pairs: pa.RecordBatch


@dataclass(frozen=True)
class RoundState:
    """What workers need to know of the training so far."""

    vocabulary: InitialVocabulary
    tokens: list[str]
    merges: bytes
    support: int
    options: TrainingOptions
    budget: float

    @classmethod
    def of(cls, vocabulary: InitialVocabulary, trainer: _kernel.Trainer, job: Job) -> RoundState:
        """The state of a trainer."""
        merges = to_bytes(trainer.merges())
        tokens, support = trainer.tokens, trainer.support
        return cls(vocabulary, tokens, merges, support, job.options, job.round_budget)

    def splitter(self) -> _kernel.Splitter:
        """Cuts words into their splits after the merges so far."""
        return make_splitter(self.vocabulary, from_bytes(self.merges), self.options)

    def hot_pairs(self, counts: Counts) -> bytes | None:
        """The pairs whose words are to be gathered; None: all words."""
        if self.budget >= 1.0:
            return None
        trainer = make_trainer(self.tokens, self.options, self.support)
        budget = int(counts.split_tokens * self.budget)
        unigrams, pairs = from_bytes(counts.unigrams), from_bytes(counts.pairs)
        return to_bytes(trainer.hot_pairs(unigrams, pairs, budget))


def _count_symbols(ranges: list[WordRange], job: Job) -> list[pa.RecordBatch]:
    """Counts of the characters in every range."""
    directory = _fresh(job, "symbols")

    def build(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | "ranges" >> beam.Create(ranges)
            | "count characters" >> beam.Map(count_symbols, job.options).with_output_types(Named)
            | "write" >> beam.Map(write, directory)
        )

    run_pipeline(build, job.beam_args)
    return _read_all(directory)


def _run_round(
    ranges: list[WordRange], state: RoundState, job: Job
) -> tuple[DriverCounts, list[pa.RecordBatch]]:
    """The counts over all splits, and the splits of the gathered words."""
    directory = _fresh(job, "round")
    words = outputs.join(directory, WORDS)
    outputs.make_directory(words)

    def build(pipeline: beam.Pipeline) -> None:
        splits = pipeline | "ranges" >> beam.Create(ranges) | "split" >> beam.ParDo(Split(state))
        counts = (
            splits
            | "count pairs" >> beam.Map(count_pairs)
            | "add up" >> beam.CombineGlobally(AddCounts())
        )
        hot = counts | "choose hot pairs" >> beam.Map(state.hot_pairs)
        counts | "write counts" >> beam.Map(write_counts, directory)
        (
            splits
            | "gather" >> beam.Map(gather, beam.pvalue.AsSingleton(hot)).with_output_types(Named)
            | "write words" >> beam.Map(write, words)
        )

    run_pipeline(build, job.beam_args)
    counts = DriverCounts(_read(directory, UNIGRAMS), _read(directory, PAIRS))
    return counts, _read_all(words)


Named = tuple[str, bytes]
"""A batch with a name that no other range has."""


def count_symbols(part: WordRange, options: TrainingOptions) -> Named:
    """Counts of the characters in a range."""
    symbols = symbol_counts(read_words(part), part.first_rank, options)
    report(words=part.rows)
    return part.name, to_bytes(symbols)


@beam.typehints.with_output_types(Named)
class Split(beam.DoFn):
    """The splits of the words in a range."""

    def __init__(self, state: RoundState) -> None:
        self.state = state

    def setup(self) -> None:
        self.splitter = self.state.splitter()

    def process(self, part: WordRange) -> Iterator[Named]:
        yield part.name, to_bytes(self.splitter.split(read_words(part), part.first_rank))
        report(words=part.rows)


def count_pairs(splits: Named) -> Counts:
    """Counts of tokens and pairs over splits."""
    batch = from_bytes(splits[1])
    counter = _kernel.PairCounter()
    counter.add_splits(batch)
    split_tokens = len(batch["symbols"].flatten())
    return Counts(split_tokens, to_bytes(counter.unigrams()), to_bytes(counter.pairs()))


def add_up(parts: Iterable[Counts]) -> Counts:
    """The sum of counts over parts of the words."""
    counter, split_tokens = _kernel.PairCounter(), 0
    for part in parts:
        counter.add_counts(from_bytes(part.unigrams), from_bytes(part.pairs))
        split_tokens += part.split_tokens
    return Counts(split_tokens, to_bytes(counter.unigrams()), to_bytes(counter.pairs()))


class AddCounts(beam.CombineFn):
    """Adds counts up, a few at a time."""

    def create_accumulator(self) -> list[Counts]:
        return []

    def add_input(self, waiting: list[Counts], counts: Counts) -> list[Counts]:
        return self.compact([*waiting, counts])

    def merge_accumulators(self, parts: Iterable[list[Counts]]) -> list[Counts]:
        return self.compact([counts for part in parts for counts in part])

    def compact(self, waiting: list[Counts]) -> list[Counts]:
        return [add_up(waiting)] if len(waiting) > COMBINE_AT else waiting

    def extract_output(self, waiting: list[Counts]) -> Counts:
        return add_up(waiting)


def gather(splits: Named, hot: bytes | None) -> Named:
    """The splits that hold a hot pair; all if there is no choice of pairs."""
    if hot is None:
        return splits
    name, batch = splits
    return name, to_bytes(_kernel.words_with_pairs(from_bytes(batch), from_bytes(hot)))


# --- Files between pipelines and the driver -------------------------------------------------------


def write(named: Named, directory: str) -> None:
    """Writes a batch under its name."""
    name, batch = named
    with outputs.atomic_writer(outputs.join(directory, f"{name}.arrow")) as stream:
        stream.write(batch)


def write_counts(counts: Counts, directory: str) -> None:
    """Writes the two tables of counts."""
    write((UNIGRAMS, counts.unigrams), directory)
    write((PAIRS, counts.pairs), directory)


def _fresh(job: Job, name: str) -> str:
    """An empty directory for one pipeline."""
    directory = outputs.join(job.work, name)
    outputs.delete(directory)
    outputs.make_directory(directory)
    return directory


def _read(directory: str, name: str) -> pa.RecordBatch:
    return from_bytes(outputs.read_bytes(outputs.join(directory, f"{name}.arrow")))


def _read_all(directory: str) -> list[pa.RecordBatch]:
    names = outputs.list_directory(directory)
    return [_read(directory, name.removesuffix(".arrow")) for name in names]
