"""The driver of a training: a word table to a vocabulary, in exact rounds of merges.

A round is a pipeline (`pipelines.training.rounds`) that brings the driver what it may hold, and
then merges as long as what it holds is all that matters. What the rounds have done is in the work
directory (`pipelines.training.work_directory`), from which a training that was killed goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.counting.word_table import WordRange, WordTable, read_words, word_ranges
from pipelines.files import outputs, storage
from pipelines.files.batches import from_bytes, read_batches, to_bytes, write_batches
from pipelines.files.filesystems import join
from pipelines.running.progress import Progress, report
from pipelines.running.runner import run_pipeline
from pipelines.training.rounds import (
    CANDIDATES,
    LIMITS,
    ROUND,
    RUNS,
    UNIGRAMS,
    AdvanceRound,
    GatherRound,
    RoundState,
    read_splits,
)
from pipelines.training.work_directory import FinishedRound, TrainingWork
from wordpiece_core.errors import InputError
from wordpiece_core.options import TrainingOptions
from wordpiece_core.training.alphabet import InitialVocabulary, initial_vocabulary, merge_symbols
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.train import (
    TrainingResult,
    make_trainer,
    merge_log,
    merge_round,
    symbol_counts,
)

CHARACTERS = b"characters"


@dataclass
class Job:
    """What the rounds of a training share."""

    options: TrainingOptions
    word_table: str
    """The digest of the word table."""
    work: TrainingWork
    """Claimed by this run."""
    progress: Progress
    budget: RoundBudget
    """What the driver may hold in a round."""
    worker_memory: int
    """Bytes for the tables of one worker."""
    beam_args: Sequence[str]

    @property
    def identity(self) -> dict[str, Any]:
        """What a training that goes on must have in common with the one that was killed."""
        return {"word_table": self.word_table} | self.options.plain()


def train_on_table(table: WordTable, job: Job) -> TrainingResult:
    """Trains on a word table. Raises InputError, StorageError, OutputError and OptionError."""
    ranges = word_ranges(table)
    try:
        vocabulary, split_tokens = _vocabulary(ranges, job)
        return _Training(ranges, vocabulary, split_tokens, job).run()
    except InputError as error:
        if str(error).startswith(table.path):  # it names a file of the table
            raise
        raise InputError(f"{table.path}: {error}") from error


def _report_merges(merges: int, tokens: int) -> None:
    report(merges=merges, tokens=tokens)


class _Training:
    """The driver's side of the rounds."""

    def __init__(
        self, ranges: list[WordRange], vocabulary: InitialVocabulary, split_tokens: int, job: Job
    ) -> None:
        self.ranges, self.job = ranges, job
        self.words = sum(part.rows for part in ranges)
        self.trainer = make_trainer(vocabulary.tokens, job.options)
        self.finished = job.work.finished_rounds()
        self.split_tokens = self.finished[-1].split_tokens if self.finished else split_tokens
        for done in self.finished:
            self.trainer.restore(done.merges, done.support)

    def run(self) -> TrainingResult:
        """Makes the rounds that are not yet done."""
        job, trainer = self.job, self.trainer
        while not (self.finished and self.finished[-1].status == "done"):
            first = sum(len(done.merges) for done in self.finished)
            self.begin_round()
            with job.progress.stage("merge", "tokens", job.options.vocab_size):
                report(tokens=trainer.vocab_size, merges=first)
                status = merge_round(trainer, done=first, merged=_report_merges)
            merges = pa.record_batch(trainer.merges(first))
            done = FinishedRound(merges, trainer.support, status, self.split_tokens)
            self.finished.append(done)
            job.work.finish_round(len(self.finished), done)
        log = merge_log(trainer)
        return TrainingResult(trainer.tokens, log, len(self.finished))

    def begin_round(self) -> None:
        """Runs the pipeline of a round and gives the trainer what it brings."""
        job, state = self.job, self.state()
        directory = job.work.exchange()
        whole = job.budget.holds(self.split_tokens, self.words)
        step = AdvanceRound(state) if whole else GatherRound(state, directory)
        with job.progress.stage("aggregate", "words", self.words):
            run_pipeline(
                lambda pipeline: pipeline | "ranges" >> beam.Create(self.ranges) | "round" >> step,
                job.beam_args,
            )
        if whole:
            for part in self.ranges:
                self.trainer.add_splits(read_splits(state.splits(part)))
            self.trainer.start_whole_round()
        else:
            self.begin_cut_round(directory)

    def begin_cut_round(self, directory: str) -> None:
        """Gives the trainer the runs that a pipeline gathered."""
        facts = outputs.read_json(join(directory, ROUND))
        runs = join(directory, RUNS)
        for batch in read_batches(runs) if storage.info(runs) is not None else ():
            self.trainer.add_splits(batch)
        (unigrams,), (candidates,), (limits,) = (
            read_batches(join(directory, name)) for name in (UNIGRAMS, CANDIDATES, LIMITS)
        )
        self.split_tokens = facts["split_tokens"]
        self.trainer.start_round(
            unigrams,
            largest=facts["largest"],
            level=facts["level"],
            candidates=candidates,
            limits=limits if self.trainer.watches else None,
        )

    def state(self) -> RoundState:
        """What workers need for the next round."""
        job = self.job
        return RoundState(
            work=job.work,
            number=len(self.finished) + 1,
            options=job.options,
            budget=job.budget,
            worker_memory=job.worker_memory,
            run=job.work.run,
        )


# --- The alphabet ---------------------------------------------------------------------------------


def _vocabulary(ranges: list[WordRange], job: Job) -> tuple[InitialVocabulary, int]:
    """What training begins with, and the tokens in all splits then."""
    known = job.work.begun(job.identity)
    if known is not None:
        return known
    directory = job.work.exchange()

    def build(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | "ranges" >> beam.Create(ranges)
            | "count characters" >> beam.Map(count_symbols, job.options)
            | "write" >> beam.MapTuple(lambda name, data: _write(directory, name, data))
        )

    with job.progress.stage("alphabet", "words", sum(part.rows for part in ranges)):
        run_pipeline(build, job.beam_args)
        names = outputs.list_directory(directory)
        batches = [batch for name in names for batch in read_batches(join(directory, name))]
        vocabulary = initial_vocabulary(merge_symbols(batches), job.options)
    split_tokens = sum(int(batch.schema.metadata[CHARACTERS]) for batch in batches)
    job.work.begin(job.identity, vocabulary, split_tokens)
    return vocabulary, split_tokens


def count_symbols(part: WordRange, options: TrainingOptions) -> tuple[str, bytes]:
    """Counts of the characters in a range, and how many there are in its words, each taken once."""
    words = read_words(part)
    symbols = symbol_counts(words, part.first_rank, options)
    lengths = pc.utf8_length(words["word"])
    enough = pc.greater_equal(words["count"], options.min_word_count)
    admitted = pc.and_(enough, pc.less_equal(lengths, options.max_word_length))
    characters = pc.sum(lengths.filter(admitted)).as_py() or 0
    report(words=part.rows)
    metadata = {CHARACTERS: str(characters)}
    return part.name, to_bytes(symbols.replace_schema_metadata(metadata))


def _write(directory: str, name: str, data: bytes) -> None:
    write_batches(join(directory, f"{name}.arrow"), [from_bytes(data)])
