"""The driver of a training: from a word table to a vocabulary, in exact rounds.

`wordpiece_core.training.rounds` says what a round is. If the driver may hold all words, it reads
them itself; otherwise a pipeline (`pipelines.training.rounds`) brings it what matters. What the
rounds have done is in the work directory (`pipelines.training.work_directory`), from which a
training that was killed continues. The extension of a vocabulary has the same rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from pipelines.beam import local_cores
from pipelines.counting.word_table import WordTable
from pipelines.progress import add_metrics
from pipelines.training.rounds import OnBeam, RoundState
from pipelines.training.words_run import WordsRun
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
class Rounds:
    """The rounds of a run on a word table: those that are finished, and how further ones are made.
    `identity`: what a run that continues must have in common with the one that was killed."""

    table: WordTable
    options: TrainingOptions
    identity: dict[str, Any]
    run: WordsRun[Any, Any]
    finished: list[FinishedRound] = field(default_factory=list)

    def trained(self, marks: str | None) -> TrainingResult:
        """Trains. `marks`: how words are marked, see `TrainingOptions.word_marks`. Raises
        InputError, StorageError, OutputError and OptionError."""
        with naming(self.table):
            passes = partial(start_passes, self.options, marks)
            algorithm = self._begun(passes, lambda sum: start_of(sum, self.options, marks))
            if not (self.finished and self.finished[-1].is_last):
                self._make(algorithm)
            return training_result(algorithm, len(self.finished))

    def extended(self, goal: Goal) -> ExtensionResult:
        """Extends a vocabulary. Raises what `train` raises."""
        with naming(self.table):
            work = self.run.work
            work.check_begun(self.identity)
            work.write_goal(goal)
            merging = self._begun(
                partial(_missing_symbol_passes, work), lambda sum: _to_extend(sum, goal)
            )
            assert isinstance(merging, Merging)

            def each(work: Callable[[Batch], Batch]) -> Iterator[Batch]:
                with self.run.progress.stage("find words", "words", self.words):
                    yield from self.executor.each(work)

            new_tokens = extended(merging, goal, lambda: self._make(merging), each)
            return extension_result(merging, goal, new_tokens, len(self.finished))

    @property
    def words(self) -> int:
        """How many words the table has."""
        return sum(part.rows for part in self.table.ranges)

    @property
    def executor(self) -> OnBeam:
        """Runs passes over the words."""
        return OnBeam(self.table.ranges, self.run.work, self.run.options.beam_args)

    def _begun(self, passes: Callable[[], Sequence[Pass]], begin: Callable[[Sum], Start]) -> Any:
        """The algorithm after the rounds that are finished. `passes`: give the output `symbols`.
        `begin`: makes of it what training begins with."""
        work = self.run.work
        work.check_begun(self.identity)
        start = work.start()
        if start is None:
            with self.run.progress.stage("find alphabet", "words", self.words):
                (symbols,) = self.executor.run(passes)["symbols"]
                start = begin(symbols)
            work.begin(self.identity, start)
        budget, words = self.run.options.select(RoundBudget), self.words
        algorithm = algorithm_of(start, self.options, budget, words=words, threads=local_cores())
        self.finished = work.finished_rounds()
        for done in self.finished:
            algorithm.restore(done)
        return algorithm

    def _make(self, algorithm: RoundAlgorithm) -> None:
        """Makes and commits rounds until one is the last: the vocabulary is as large as it should
        be, or cannot become so."""
        work, progress, options = self.run.work, self.run.progress, self.run.options
        memory, budget, is_last = options.worker_memory, options.select(RoundBudget), False
        while not is_last:
            number = len(self.finished) + 1
            state = RoundState(work, number, self.options, budget, self.words, memory)
            executor = OnBeam(self.table.ranges, work, options.beam_args, state.kept)
            with progress.stage("segment words", "words", self.words):
                begin_round(algorithm, executor, state.passes)
            deciding = algorithm.deciding
            with progress.stage(deciding.stage, "tokens", deciding.total):
                add_metrics(**deciding.done)
                done = algorithm.decide(
                    lambda merges, tokens: add_metrics(merges=merges, tokens=tokens)
                )
            self.finished.append(done)
            work.finish_round(number, done)
            is_last = done.is_last


@contextmanager
def naming(table: WordTable) -> Iterator[None]:
    """Makes errors in the words of a table name the table."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(table.path):  # it names a file of the table
            raise
        raise InputError(f"{table.path}: {error.template}") from error


def _to_extend(symbols: Sum, goal: Goal) -> MergingStart:
    return MergingStart(vocabulary_to_extend(symbols.batch, goal), symbols.facts["split_tokens"])


@lru_cache(maxsize=1)
def _missing_symbol_passes(work: TrainingWork) -> Sequence[Pass]:
    """See `missing_symbol_passes`. Workers read in the work directory what is extended."""
    return missing_symbol_passes(work.goal())
