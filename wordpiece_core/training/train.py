"""Training a vocabulary from a word table in memory, and the parts that the Beam job shares."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError
from wordpiece_core.options import NO_LIMIT, TrainingOptions
from wordpiece_core.training.alphabet import InitialVocabulary, initial_vocabulary, merge_symbols
from wordpiece_core.training.budget import RoundBudget

MERGES_PER_CALL = 200
WORDS_AT_ONCE = 1 << 18  # cut into splits before they are handed on


class FewerTokensWarning(UserWarning):
    """No pair was left to merge before the vocabulary was full."""


@dataclass(frozen=True)
class TrainingResult:
    """A trained vocabulary.

    `vocab`: the tokens, in id order. `merges`: the training log, a row per merge: `step` (from 1),
    `left`, `right`, `token`, `score`, and the counts before the merge: `pair_count`, `left_count`,
    `right_count`. A merge that builds a token known already adds no token. `rounds`: how often
    the counts were taken.
    """

    vocab: list[str]
    merges: pa.Table
    rounds: int = 1


def train(
    word_counts: Mapping[str, int] | Iterable[tuple[str, int]] | pa.Table,
    *,
    round_budget: float = 1.0,
    driver_memory: int | None = None,
    **options: Any,
) -> TrainingResult:
    """Trains on words with their counts, in table order (ties go by it).

    word_counts: a mapping or pairs, or a table with the columns `word` and `count`.
    round_budget: the share of all split tokens that a round may hold; the result is the same.
    driver_memory: bytes that a round may take, beside the table itself; the result is the same.
    options: those of `TrainingOptions`. Raises OptionError, and InputError for a bad table.

    >>> train({"hug": 10, "pug": 5, "hugs": 5}, vocab_size=12, min_pair_count=1).vocab[-1]
    '##gs'
    """
    training = TrainingOptions.of(**options)
    budget = RoundBudget(round_budget=round_budget, driver_memory=driver_memory)
    words = word_batch(word_counts)
    symbols = merge_symbols([symbol_counts(words, 0, training)])
    vocabulary = initial_vocabulary(symbols, training)
    trainer = make_trainer(vocabulary.tokens, training)
    rounds, status = 0, "round over"
    while status == "round over":
        _begin_round(words, vocabulary, trainer, training, budget)
        rounds, status = rounds + 1, merge_round(trainer)
    result = TrainingResult(trainer.tokens, merge_log(trainer), rounds)
    fewer = fewer_tokens(len(result.vocab), training)
    if fewer:
        warnings.warn(fewer, FewerTokensWarning, stacklevel=2)
    return result


def merge_round(
    trainer: _kernel.Trainer, *, done: int = 0, merged: Callable[[int, int], None] | None = None
) -> str:
    """Merges until a round is over: "round over", or "done". `done`: the merges made before;
    `merged` is told, time and again, how many more were made and how many tokens they added (a
    merge can build a token that is known)."""
    status = "running"
    while status == "running":
        tokens = trainer.vocab_size
        status = trainer.run(MERGES_PER_CALL)
        if merged is not None:
            merges = len(trainer.merges(done))
            merged(merges, trainer.vocab_size - tokens)
            done += merges
    return status


def _begin_round(
    words: pa.RecordBatch,
    vocabulary: InitialVocabulary,
    trainer: _kernel.Trainer,
    options: TrainingOptions,
    budget: RoundBudget,
) -> None:
    """A round over words in memory."""
    merges = pa.record_batch(trainer.merges())
    splitter = make_splitter(vocabulary, merges, options)
    starts = range(0, len(words), WORDS_AT_ONCE)

    def splits() -> Iterator[pa.RecordBatch]:
        for start in starts:
            yield pa.record_batch(splitter.split(words.slice(start, WORDS_AT_ONCE), start))

    if budget == RoundBudget():
        for part in splits():
            trainer.add_splits(part)
        trainer.start_whole_round()
        return
    counter = _kernel.PairCounter()
    for part in splits():
        counter.add_splits(part)
    pairs = [pairs for _, pairs in counter.take_pairs(1)]
    tokens = budget.tokens(counter.symbols)
    unigrams = counter.unigrams()
    largest = max(map(trainer.largest, pairs), default=0)
    chosen, loosest = trainer.candidates(
        unigrams, pairs, largest=largest, most=budget.candidates(counter.symbols)
    )
    candidates = pa.record_batch(chosen)
    table = _kernel.Candidates(candidates, trainer.watches)
    sizes = _kernel.RunSizes(tokens, loosest)
    for part in splits():
        sizes.add_splits(part, table)
    runs = _kernel.Runs()
    for part in splits():
        runs.add_splits(part, table, sizes.level)
    for part in map(pa.record_batch, runs.take(WORDS_AT_ONCE)):
        trainer.add_splits(part)
    limits = None
    if trainer.watches:
        limits = trainer.limits(unigrams, pairs, candidates=candidates, largest=largest)
    trainer.start_round(
        unigrams, largest=largest, level=sizes.level, candidates=candidates, limits=limits
    )


def make_trainer(tokens: list[str], options: TrainingOptions) -> _kernel.Trainer:
    """The kernel's trainer, with the vocabulary that training begins with."""
    auto = options.min_pair_count == "auto"
    return _kernel.Trainer(
        tokens,
        vocab_size=options.vocab_size,
        criterion=options.criterion,
        min_pair_count=None if auto else int(options.min_pair_count),
        max_token_length=options.max_token_length or NO_LIMIT,
        continuing_prefix=options.continuing_prefix,
    )


def make_splitter(
    vocabulary: InitialVocabulary, merges: pa.RecordBatch, options: TrainingOptions
) -> _kernel.Splitter:
    """The kernel's splitter for words after `merges`."""
    return _kernel.Splitter(
        vocabulary.alphabet,
        merges,
        continuing_prefix=options.continuing_prefix,
        min_word_count=options.min_word_count,
        max_word_length=options.max_word_length,
    )


def symbol_counts(
    words: pa.RecordBatch, first_rank: int, options: TrainingOptions
) -> pa.RecordBatch:
    """Counts of the characters in a part of a word table that begins with rank `first_rank`."""
    return pa.record_batch(
        _kernel.symbol_counts(
            words,
            first_rank=first_rank,
            min_word_count=options.min_word_count,
            max_word_length=options.max_word_length,
        )
    )


def word_batch(words: Mapping[str, int] | Iterable[tuple[str, int]] | pa.Table) -> pa.RecordBatch:
    """A word table as one batch of `word: string, count: int64`."""
    if isinstance(words, pa.RecordBatch):
        words = pa.Table.from_batches([words])
    if not isinstance(words, pa.Table):
        try:
            rows = list(words.items() if isinstance(words, Mapping) else words)
            columns = [[word for word, _ in rows], [count for _, count in rows]]
            words = pa.table({"word": pa.array(columns[0], pa.string()), "count": columns[1]})
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"word counts: not words with their counts ({error})") from error
    for name in ("word", "count"):
        if name not in words.column_names:
            raise InputError(f"word table: no column {name!r}, only {words.column_names}")
    try:
        count = pc.cast(words["count"], pa.int64())
    except pa.ArrowException as error:
        raise InputError(f"word table: column 'count': {error}") from error
    columns = [words["word"].combine_chunks(), count.combine_chunks()]
    return pa.record_batch(columns, names=["word", "count"])


def merge_log(trainer: _kernel.Trainer) -> pa.Table:
    """The training log with the tokens themselves: the columns of `merges.parquet`."""
    merges = pa.record_batch(trainer.merges())
    tokens = pa.array(trainer.tokens, pa.string())
    names = ("left", "right", "token")
    columns = {"step": pa.array(range(1, len(merges) + 1), pa.int64())}
    columns |= {name: tokens.take(merges[name]) for name in names}
    columns |= {name: merges[name] for name in merges.schema.names if name not in names}
    return pa.table(columns)


def fewer_tokens(size: int, options: TrainingOptions) -> str | None:
    """What there is to say if no pair was left to merge before the vocabulary was full."""
    if size == options.vocab_size:
        return None
    return f"the vocabulary has {size} tokens, not {options.vocab_size}: no pair is left to merge"
