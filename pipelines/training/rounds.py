"""The rounds of a training, on the driver (`wordpiece_core.training.rounds`).

If the driver may hold all words, it reads them itself. Otherwise a pipeline brings it the results
of passes over the words (`pipelines.training.passes`). Finished rounds are in the work directory,
from which a killed training resumes. An extension consists of the same rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from pipelines.beam import local_cores
from pipelines.counting.word_table import WordTable
from pipelines.progress import add_metrics
from pipelines.training.coverage import coverage
from pipelines.training.options import TrainOptions
from pipelines.training.passes import BeamExecutor, RoundState
from pipelines.training.segments import write_segments
from pipelines.training.words import WordsJob
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import TextOptions, Tokenizer
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
from wordpiece_core.training.superwords import (
    TOTAL,
    first_phase,
    second_phase,
    second_vocabulary,
    token_passes,
)
from wordpiece_core.training.train import (
    TrainingResult,
    bpe_of,
    training_result,
    with_superwords,
)


def train_in_rounds(
    job: WordsJob,
    training: TrainingOptions,
    marks: str | None,
    recorded: Mapping[str, Any],
) -> TrainingResult:
    """Train a vocabulary.

    Args:
        marks: How words are marked; see `TrainingOptions.word_marks`.
        recorded: Options that a killed training must share to be resumed.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    identity = {"word_table": job.table.digest, **recorded}

    def start() -> Start:
        return start_of(_symbols(job, partial(start_passes, training, marks)), training, marks)

    with naming(job.table):
        algorithm, finished = _resume(job, training, identity, start)
        if not (finished and finished[-1].is_last):
            _run_rounds(job, training, algorithm, finished)
        return training_result(algorithm, len(finished))


def train_superwords(
    job: WordsJob, options: TrainOptions, training: TrainingOptions, text: TextOptions
) -> tuple[TrainingResult, int]:
    """Train words, then superwords (`wordpiece_core.training.superwords`).

    Args:
        training: Options of the complete training.
        text: Options that split text into words.

    Returns:
        The result, and the number of tokens of the text.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    shorter = first_phase(training, options.superwords)
    recorded = options.recorded(training)
    first = train_in_rounds(job, shorter, training.word_marks(text), recorded)
    words = job.table
    segments, second = write_segments(job, options), second_phase(training)
    job = replace(job, work=job.work.of_superwords, table=segments)

    def start() -> Start:
        most = options.max_superword_words
        vocabulary = second_vocabulary(first.vocab, bpe_of(first), second, most)
        (covered,) = coverage(words, Tokenizer.from_spec(first.tokenizer_spec(text)))
        return MergingStart(vocabulary, covered.tokens)  # no fewer than tokens of segments

    algorithm, finished = _resume(job, second, recorded, start)
    if not (finished and finished[-1].is_last):
        _run_rounds(job, second, algorithm, finished)
    result = training_result(algorithm, len(finished))
    state = _state(job, second, len(finished) + 1)
    with job.progress.stage("count tokens", "words", segments.rows):
        (tokens,) = _executor(job, state.of_range).run(token_passes)[TOTAL]
    return with_superwords(first, result, training, options.segments), tokens.facts[TOTAL]


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

        def start() -> Start:
            symbols = _symbols(job, partial(_missing_symbol_passes, job.work))
            vocabulary = vocabulary_to_extend(symbols.batch, goal)
            return MergingStart(vocabulary, symbols.facts["split_tokens"])

        merging, finished = _resume(job, goal.training, identity, start)
        assert isinstance(merging, Merging)

        def each(work: Callable[[Batch], Batch]) -> Iterator[Batch]:
            with job.progress.stage("find words", "words", job.table.rows):
                yield from _executor(job).each(work)

        rounds = partial(_run_rounds, job, goal.training, merging, finished)
        new_tokens = extended(merging, goal, rounds, each)
        return extension_result(merging, goal, new_tokens, len(finished))


def _executor(job: WordsJob, state: Callable[..., Batch] | None = None) -> BeamExecutor:
    options = job.options
    return BeamExecutor(job.table.ranges, job.work, options.beam_args, options.limits, state)


def _symbols(job: WordsJob, passes: Callable[[], Sequence[Pass]]) -> Sum:
    """Return the output `symbols` of passes, from which a new training starts."""
    with job.progress.stage("find alphabet", "words", job.table.rows):
        (symbols,) = _executor(job).run(passes)["symbols"]
        return symbols


def _state(job: WordsJob, training: TrainingOptions, number: int) -> RoundState:
    budget, memory = job.options.select(RoundBudget), job.options.worker_memory
    return RoundState(job.work, number, training, budget, job.table.rows, memory)


def _resume(
    job: WordsJob,
    training: TrainingOptions,
    identity: dict[str, Any],
    new_start: Callable[[], Start],
) -> tuple[RoundAlgorithm, list[FinishedRound]]:
    """Return the algorithm after its finished rounds, and these rounds.

    Args:
        identity: Values that a killed training must share to be resumed.
        new_start: Return the start of a new training.
    """
    work = job.work
    work.check_started(identity)
    start = work.start()
    if start is None:
        start = new_start()
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
    words, progress, is_last = job.table.rows, job.progress, False
    while not is_last:
        number = len(finished) + 1
        state = _state(job, training, number)
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


@lru_cache(maxsize=1)
def _missing_symbol_passes(work: TrainingWork) -> Sequence[Pass]:
    """Return the passes of `missing_symbol_passes`. Workers read the goal in the work directory."""
    return missing_symbol_passes(work.goal())
