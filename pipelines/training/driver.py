"""The driver of a training: a word table to a vocabulary, in exact rounds of merges.

What a round is: `wordpiece_core.training.rounds`. Where the driver may hold all words it reads them
itself; else a pipeline (`pipelines.training.rounds`) brings it what matters. What the rounds have
done is in the work directory (`pipelines.training.work_directory`), from which a training that was
killed goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipelines.counting.word_table import WordRange, WordTable, word_ranges
from pipelines.running.figures import report
from pipelines.running.progress import Progress
from pipelines.training.rounds import OnBeam, RoundState
from pipelines.training.work_directory import TrainingWork
from wordpiece_core.errors import InputError
from wordpiece_core.options import TrainingOptions
from wordpiece_core.training.alphabet import initial_vocabulary, symbol_passes
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.merging import Merging
from wordpiece_core.training.rounds import begin_round
from wordpiece_core.training.train import TrainingResult, training_result


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
        return _train(ranges, job)
    except InputError as error:
        if str(error).startswith(table.path):  # it names a file of the table
            raise
        raise InputError(f"{table.path}: {error}") from error


def _train(ranges: list[WordRange], job: Job) -> TrainingResult:
    """Makes the rounds that are not yet done."""
    words = sum(part.rows for part in ranges)
    merging = _begun(ranges, words, job)
    finished = job.work.finished_rounds()
    for done in finished:
        merging.restore(done)
    while not (finished and finished[-1].is_last):
        number = len(finished) + 1
        state = RoundState(
            *(job.work, number, job.options, job.budget, words, job.worker_memory, job.work.run)
        )
        executor = OnBeam(ranges, job.work, job.beam_args, state.kept)
        with job.progress.stage("aggregate", "words", words):
            begin_round(merging, executor, state.passes)
        with job.progress.stage("merge", "tokens", job.options.vocab_size):
            report(tokens=merging.trainer.vocab_size, merges=merging.merges)
            done = merging.decide(lambda merges, tokens: report(merges=merges, tokens=tokens))
        finished.append(done)
        job.work.finish_round(number, done)
    return training_result(merging, len(finished))


def _begun(ranges: list[WordRange], words: int, job: Job) -> Merging:
    """The training before its first round, which begins with the alphabet."""
    job.work.check_begun(job.identity)
    known = job.work.algorithm(job.options, job.budget, words=words)
    if known is not None:
        return known
    executor = OnBeam(ranges, job.work, job.beam_args)
    with job.progress.stage("alphabet", "words", words):
        (symbols,) = executor.run(partial(symbol_passes, job.options))["symbols"]
        vocabulary = initial_vocabulary(symbols.batch, job.options)
    split_tokens = symbols.facts["characters"]
    job.work.begin(job.identity, vocabulary, split_tokens)
    return Merging(vocabulary, job.options, job.budget, split_tokens=split_tokens, words=words)
