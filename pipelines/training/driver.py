"""The driver of a training: a word table to a vocabulary, in exact rounds.

What a round is: `wordpiece_core.training.rounds`. Where the driver may hold all words it reads them
itself; else a pipeline (`pipelines.training.rounds`) brings it what matters. What the rounds have
done is in the work directory (`pipelines.training.work_directory`), from which a training that was
killed goes on. So is the extension of a vocabulary, which has the same rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from pipelines.counting.word_table import WordRange, WordTable, word_ranges
from pipelines.running.figures import report
from pipelines.running.progress import Progress
from pipelines.running.runner import local_cores
from pipelines.training.rounds import OnBeam, RoundState
from pipelines.training.work_directory import TrainingWork
from wordpiece_core.errors import InputError
from wordpiece_core.options import TrainingOptions
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.extension import (
    ExtensionResult,
    Goal,
    extended,
    extension_result,
    missing_symbol_passes,
    vocabulary_to_extend,
)
from wordpiece_core.training.merging import Merging
from wordpiece_core.training.rounds import (
    Batch,
    FinishedRound,
    Pass,
    RoundAlgorithm,
    Sum,
    begin_round,
)
from wordpiece_core.training.starting import (
    MergingStart,
    Start,
    algorithm_of,
    start_of,
    start_passes,
)
from wordpiece_core.training.train import TrainingResult, training_result


@dataclass
class TrainingJob:
    """What the rounds of a training share."""

    options: TrainingOptions
    identity: dict[str, Any]
    """What a training that goes on must have in common with the one that was killed."""
    work: TrainingWork
    """Claimed by this run."""
    progress: Progress
    budget: RoundBudget
    """What the driver may hold in a round."""
    worker_memory: int
    """Bytes for the tables of one worker."""
    beam_args: Sequence[str]
    marks: str | None = None
    """How words are marked: see `TrainingOptions.word_marks`."""


def train_on_table(table: WordTable, job: TrainingJob) -> TrainingResult:
    """Trains on a word table. Raises InputError, StorageError, OutputError and OptionError."""
    with naming(table):
        rounds = _Rounds(table, job)
        passes = partial(start_passes, job.options, job.marks)
        algorithm = rounds.begun(passes, lambda sum: start_of(sum, job.options, job.marks))
        if not (rounds.finished and rounds.finished[-1].is_last):
            rounds.make(algorithm)
        return training_result(algorithm, len(rounds.finished))


def extend_on_table(table: WordTable, goal: Goal, job: TrainingJob) -> ExtensionResult:
    """Extends a vocabulary by the words of a table. Raises what `train_on_table` raises."""
    with naming(table):
        rounds = _Rounds(table, job)
        job.work.check_begun(job.identity)
        job.work.write_goal(goal)
        passes = partial(_missing_symbol_passes, job.work)
        merging = rounds.begun(passes, lambda sum: _to_extend(sum, goal))
        assert isinstance(merging, Merging)

        def each(work: Callable[[Batch], Batch]) -> Iterator[Batch]:
            with job.progress.stage("look", "words", rounds.words):
                yield from rounds.executor.each(work)

        new_tokens = extended(merging, goal, lambda: rounds.make(merging), each)
        return extension_result(merging, goal, new_tokens, len(rounds.finished))


@contextmanager
def naming(table: WordTable) -> Iterator[None]:
    """Makes errors in the words of a table name the table."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(table.path):  # it names a file of the table
            raise
        raise InputError(f"{table.path}: {error}") from error


def _to_extend(symbols: Sum, goal: Goal) -> MergingStart:
    return MergingStart(vocabulary_to_extend(symbols.batch, goal), symbols.facts["split_tokens"])


@lru_cache(maxsize=1)
def _missing_symbol_passes(work: TrainingWork) -> Sequence[Pass]:
    """See `missing_symbol_passes`. Workers read in the work directory what is extended."""
    return missing_symbol_passes(work.goal())


@dataclass
class _Rounds:
    """The rounds of a training, as far as they are done, and how further ones are made."""

    table: WordTable
    job: TrainingJob
    finished: list[FinishedRound] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ranges: list[WordRange] = word_ranges(self.table)
        self.words = sum(part.rows for part in self.ranges)
        self.executor = OnBeam(self.ranges, self.job.work, self.job.beam_args)

    def begun(
        self,
        passes: Callable[[], Sequence[Pass]],
        begin: Callable[[Sum], Start],
    ) -> RoundAlgorithm:
        """The training after the rounds that are done. `passes`: give the output `symbols`.
        `begin`: makes of it what training begins with."""
        job = self.job
        job.work.check_begun(job.identity)
        start = job.work.start()
        if start is None:
            with job.progress.stage("alphabet", "words", self.words):
                (symbols,) = self.executor.run(passes)["symbols"]
                start = begin(symbols)
            job.work.begin(job.identity, start)
        algorithm = algorithm_of(
            start, job.options, job.budget, words=self.words, threads=local_cores()
        )
        self.finished = job.work.finished_rounds()
        for done in self.finished:
            algorithm.restore(done)
        return algorithm

    def make(self, algorithm: RoundAlgorithm) -> None:
        """Makes and commits rounds, up to one that is the last: the vocabulary is as large as the
        training aims at, or cannot become so."""
        job, is_last = self.job, False
        while not is_last:
            number = len(self.finished) + 1
            memory = job.worker_memory
            state = RoundState(
                *(job.work, number, job.options, job.budget, self.words, memory, job.work.run)
            )
            executor = OnBeam(self.ranges, job.work, job.beam_args, state.kept)
            with job.progress.stage("aggregate", "words", self.words):
                begin_round(algorithm, executor, state.passes)
            deciding = algorithm.deciding
            with job.progress.stage(deciding.stage, "tokens", deciding.total):
                report(**deciding.done)
                done = algorithm.decide(lambda merges, tokens: report(merges=merges, tokens=tokens))
            self.finished.append(done)
            job.work.finish_round(number, done)
            is_last = done.is_last
