"""The rounds of a training, on the driver (`wordpiece_core.training.rounds`).

If the driver may hold all words, it reads them itself. Otherwise a pipeline brings it the results
of passes over the words (`pipelines.training.passes`). Finished rounds are in the work directory,
from which a killed training resumes. An extension consists of the same rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from pipelines.beam import local_cores
from pipelines.counting.word_table import WordTable
from pipelines.progress import add_metrics
from pipelines.training.passes import BeamExecutor, RoundState
from pipelines.training.words import WordsJob
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


def train_in_rounds(job: WordsJob, training: TrainingOptions, marks: str | None) -> TrainingResult:
    """Train a vocabulary.

    Args:
        marks: How words are marked; see `TrainingOptions.word_marks`.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    identity = {"word_table": job.table.digest} | training.to_dict()
    with naming(job.table):
        passes = partial(start_passes, training, marks)
        algorithm, finished = _resume(
            job, training, identity, passes, lambda symbols: start_of(symbols, training, marks)
        )
        if not (finished and finished[-1].is_last):
            _run_rounds(job, training, algorithm, finished)
        return training_result(algorithm, len(finished))


def extend_in_rounds(job: WordsJob, goal: Goal, base: dict[str, Any]) -> ExtensionResult:
    """Extend a vocabulary.

    Args:
        base: Identity of the tokenizer to extend.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    identity = {"word_table": job.table.digest} | base | goal.options.to_dict()
    with naming(job.table):
        job.work.check_started(identity)
        job.work.write_goal(goal)
        merging, finished = _resume(
            job,
            goal.training,
            identity,
            partial(_missing_symbol_passes, job.work),
            lambda symbols: _start_of_extension(symbols, goal),
        )
        assert isinstance(merging, Merging)

        def each(work: Callable[[Batch], Batch]) -> Iterator[Batch]:
            with job.progress.stage("find words", "words", job.table.rows):
                yield from _executor(job).each(work)

        rounds = partial(_run_rounds, job, goal.training, merging, finished)
        new_tokens = extended(merging, goal, rounds, each)
        return extension_result(merging, goal, new_tokens, len(finished))


def _executor(job: WordsJob, state: Callable[..., Batch] | None = None) -> BeamExecutor:
    return BeamExecutor(job.table.ranges, job.work, job.options.beam_args, state)


def _resume(
    job: WordsJob,
    training: TrainingOptions,
    identity: dict[str, Any],
    passes: Callable[[], Sequence[Pass]],
    start_from: Callable[[Sum], Start],
) -> tuple[RoundAlgorithm, list[FinishedRound]]:
    """Return the algorithm after its finished rounds, and these rounds.

    Args:
        identity: Values that a killed training must share to be resumed.
        passes: Return the passes whose output `symbols` a new training starts from.
        start_from: Make the start of a training of this output.
    """
    work = job.work
    work.check_started(identity)
    start = work.start()
    if start is None:
        with job.progress.stage("find alphabet", "words", job.table.rows):
            (symbols,) = _executor(job).run(passes)["symbols"]
            start = start_from(symbols)
        work.start_training(identity, start)
    budget, cores = job.options.select(RoundBudget), local_cores()
    algorithm = algorithm_of(start, training, budget, words=job.table.rows, threads=cores)
    finished = work.finished_rounds()
    for done in finished:
        algorithm.restore(done)
    return algorithm, finished


def _run_rounds(
    job: WordsJob,
    training: TrainingOptions,
    algorithm: RoundAlgorithm,
    finished: list[FinishedRound],
) -> None:
    """Run and commit rounds until one is the last: the vocabulary has its size, or cannot reach
    it."""
    budget, memory = job.options.select(RoundBudget), job.options.worker_memory
    words, progress, is_last = job.table.rows, job.progress, False
    while not is_last:
        number = len(finished) + 1
        state = RoundState(job.work, number, training, budget, words, memory)
        with progress.stage("segment words", "words", words):
            begin_round(algorithm, _executor(job, state.of_range), state.passes)
        deciding = algorithm.deciding
        with progress.stage(deciding.stage, "tokens", deciding.total):
            add_metrics(**deciding.done)
            done = algorithm.decide(
                lambda merges, tokens: add_metrics(merges=merges, tokens=tokens)
            )
        finished.append(done)
        job.work.finish_round(number, done)
        is_last = done.is_last


@contextmanager
def naming(table: WordTable) -> Iterator[None]:
    """Name the word table in errors about its words."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(table.path):  # the error names a file of the table
            raise
        raise InputError(f"{table.path}: {error.template}") from error


def _start_of_extension(symbols: Sum, goal: Goal) -> MergingStart:
    return MergingStart(vocabulary_to_extend(symbols.batch, goal), symbols.facts["split_tokens"])


@lru_cache(maxsize=1)
def _missing_symbol_passes(work: TrainingWork) -> Sequence[Pass]:
    """Return the passes of `missing_symbol_passes`. Workers read the goal in the work directory."""
    return missing_symbol_passes(work.goal())
