"""Training a vocabulary from a word table in memory, and the parts that the Beam job shares."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.alphabet import InitialVocabulary, initial_vocabulary, merge_symbols
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.options import NO_LIMIT, TrainingOptions

MERGES_PER_CALL = 1000


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
    **options: Any,
) -> TrainingResult:
    """Trains on words with their counts, in table order (ties go by it).

    word_counts: a mapping or pairs, or a table with the columns `word` and `count`.
    round_budget: the share of all split tokens that a round may hold; the result is the same.
    options: those of `TrainingOptions`. Raises OptionError, and InputError for a bad table.

    >>> train({"hug": 10, "pug": 5, "hugs": 5}, vocab_size=12, min_pair_count=1).vocab[-1]
    '##gs'
    """
    training = TrainingOptions.of(**options)
    if not (isinstance(round_budget, int | float) and 0 <= round_budget <= 1):
        raise OptionError(f"round_budget: {round_budget!r} is not a share from 0 to 1")
    words = word_batch(word_counts)
    try:
        symbols = merge_symbols([symbol_counts(words, 0, training)])
        vocabulary = initial_vocabulary(symbols, training)
        trainer = make_trainer(vocabulary.tokens, training)
        rounds = 0
        status = "round over"
        while status == "round over":
            rounds += 1
            splitter = make_splitter(vocabulary, pa.record_batch(trainer.merges()), training)
            splits = pa.record_batch(splitter.split(words, 0))
            start_round(trainer, splits, round_budget)
            while (status := trainer.run(MERGES_PER_CALL)) == "running":
                pass
    except ValueError as error:
        raise InputError(str(error)) from error
    result = TrainingResult(trainer.tokens, merge_log(trainer), rounds)
    warn_of_fewer_tokens(len(result.vocab), training)
    return result


def start_round(trainer: _kernel.Trainer, splits: pa.RecordBatch, budget: float) -> None:
    """Counts over splits and hands the trainer those that its round may change."""
    counter = _kernel.PairCounter()
    counter.add_splits(splits)
    unigrams, pairs = counter.unigrams(), counter.pairs()
    if budget < 1.0:
        tokens = int(len(splits.column("symbols").flatten()) * budget)
        splits = _kernel.words_with_pairs(splits, trainer.hot_pairs(unigrams, pairs, tokens))
    trainer.start_round(unigrams, pairs, [splits])


def make_trainer(tokens: list[str], options: TrainingOptions, support: int = 0) -> _kernel.Trainer:
    """The kernel's trainer of a vocabulary that has these tokens by now."""
    auto = options.min_pair_count == "auto"
    return _kernel.Trainer(
        tokens,
        vocab_size=options.vocab_size,
        criterion=options.criterion,
        min_pair_count=None if auto else int(options.min_pair_count),
        max_token_length=options.max_token_length or NO_LIMIT,
        continuing_prefix=options.continuing_prefix,
        support=support,
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


def warn_of_fewer_tokens(size: int, options: TrainingOptions) -> None:
    """Warns if no pair was left to merge before the vocabulary was full."""
    if size < options.vocab_size:
        warnings.warn(
            f"the vocabulary has {size} tokens, not {options.vocab_size}: no pair is left to merge",
            FewerTokensWarning,
            stacklevel=3,
        )
