"""Pruning a vocabulary: dropping the tokens without which the words of a table lose least.

`wordpiece_core/reference/extension.py` says exactly which. What a token is worth is not guessed
from its count: every word that uses it is cut without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.options import MOST_TOKENS, check_whole
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.tokenizer import Tokenizer
from wordpiece_core.training.extension import Each, check_is_wordpiece
from wordpiece_core.training.rounds import Batch
from wordpiece_core.training.train import parts_of, word_batch

PART_DROPPED = 2  # half of what is still to go; less changes the cost by a hundredth of it


@dataclass(frozen=True)
class PruningResult:
    """A pruned vocabulary. `base`: the tokenizer before. `kept`: the old ids of the tokens that are
    left, in the order of the new ones.

    >>> tok = Tokenizer(["[UNK]", "a", "##b", "ab", "abb"])
    >>> result = prune(tok, {"ab": 2, "abb": 1}, vocab_size=4)
    >>> result.vocab, result.ids.to_pylist()[-1]
    (['[UNK]', 'a', '##b', 'ab'], {'old_id': 4, 'token': 'abb', 'new_id': None})
    """

    base: TokenizerSpec
    kept: list[int]

    @property
    def vocab(self) -> list[str]:
        """The tokens that are left, in id order: that of the old ids."""
        return [self.base.vocab[i] for i in self.kept]

    @property
    def spec(self) -> TokenizerSpec:
        """The pruned tokenizer."""
        return replace(self.base, vocab=self.vocab)

    def tokenizer(self) -> Tokenizer:
        """The pruned tokenizer. Texts are cut into words as by the old one."""
        return Tokenizer.of(self.spec)

    @property
    def ids(self) -> pa.Table:
        """A row for each old token, in id order: `old_id`, `token`, and `new_id`, null if it was
        dropped. The rows of a model's embeddings that stay are those with a `new_id`."""
        new = {old: i for i, old in enumerate(self.kept)}
        old_ids = range(len(self.base.vocab))
        return pa.table(
            {
                "old_id": pa.array(old_ids, pa.int32()),
                "token": pa.array(list(self.base.vocab), pa.string()),
                "new_id": pa.array([new.get(old) for old in old_ids], pa.int32()),
            }
        )


def prune(
    tokenizer: Tokenizer,
    word_counts: Mapping[str, int] | Iterable[tuple[str, int]] | pa.Table,
    *,
    vocab_size: int,
) -> PruningResult:
    """Drops the tokens without which words lose least, until so many are left. The ids of the
    others keep their order.

    Special tokens stay, and the characters of the words as tokens of one character. No word that
    can be cut becomes [UNK]; for this reason more tokens may be left than wanted.

    Args:
        tokenizer: The tokenizer to prune.
        word_counts: Words, cut as the tokenizer cuts text, with their counts: as for `train`.
        vocab_size: How many tokens are to be left.

    Raises:
        OptionError: If there are no more tokens than that, or more special ones.
        InputError: For a table without words and counts.
    """
    check_whole("vocab_size", vocab_size, MOST_TOKENS)
    words = word_batch(word_counts)
    each = partial(_each, words)
    return pruned(tokenizer.spec, vocab_size, each)


def _each(words: pa.RecordBatch, work: Callable[[Batch], Batch]) -> Iterable[Batch]:
    return map(work, parts_of(words))


def pruned(base: TokenizerSpec, vocab_size: int, each: Each) -> PruningResult:
    """Prunes by the words of a table. OptionError as for `prune`."""
    check_size(base, vocab_size)
    size = len(base.vocab)
    kept = _kept_always(base, each)
    dropped: set[int] = set()
    while True:
        lost = _losses(base, dropped, each)
        if lost.missed:
            kept |= lost.missed
            dropped -= lost.missed
            continue
        excess = size - len(dropped) - vocab_size
        free = [i for i in range(size) if not (i in dropped or i in kept or i in lost.needed)]
        if excess <= 0 or not free:
            return PruningResult(base, [i for i in range(size) if i not in dropped])
        free.sort(key=lambda token: (lost.more_tokens[token], -token))
        dropped.update(free[: -(-excess // PART_DROPPED)])


def check_size(base: TokenizerSpec, vocab_size: int) -> None:
    """OptionError if a vocabulary cannot be pruned to so many tokens."""
    check_is_wordpiece(base, "pruned")
    size, special = len(base.vocab), len(base.special_tokens)
    if vocab_size >= size:
        raise OptionError(f"vocab_size: {vocab_size:,}, and there are {size:,} tokens; give fewer")
    if vocab_size < special:
        raise OptionError(f"vocab_size: {vocab_size:,} is too small for {special:,} special tokens")


def _kept_always(base: TokenizerSpec, each: Each) -> set[int]:
    """The ids of the special tokens, and of the tokens of one character that words hold."""
    characters: set[str] = set()
    for batch in each(lambda words: _characters(words, base.max_word_length)):
        characters.update(batch["character"].to_pylist())
    prefix = base.continuing_prefix
    tokens = {*base.special_tokens, *(form for c in characters for form in (c, prefix + c))}
    return {i for i, token in enumerate(base.vocab) if token in tokens}


def _characters(words: Batch, max_word_length: int) -> Batch:
    symbols = _kernel.symbol_counts(
        words, first_rank=0, min_word_count=1, max_word_length=max_word_length
    )
    return pa.record_batch(symbols)


@dataclass(frozen=True)
class _Losses:
    """By token: how many more tokens the words would have without it, whether one could not be cut
    without it, and whether one is missing it."""

    more_tokens: Sequence[int]
    needed: set[int]
    missed: set[int]


def _losses(base: TokenizerSpec, dropped: set[int], each: Each) -> _Losses:
    longest = _kernel.LongestMatch(
        list(base.vocab),
        sorted(dropped),
        continuing_prefix=base.continuing_prefix,
        min_word_count=1,
        max_word_length=base.max_word_length,
    )
    size = len(base.vocab)
    more = pa.array([0] * size, pa.int64())
    needed = missed = pa.array([False] * size, pa.bool_())
    for batch in each(lambda words: pa.record_batch(longest.losses(words))):
        try:
            more = pc.add_checked(more, batch["losses"])
        except pa.ArrowInvalid as error:
            raise InputError("the counts of words add up to more than 2^63 - 1") from error
        needed = pc.or_(needed, batch["is_needed"])
        missed = pc.or_(missed, batch["is_missed"])
    return _Losses(more.to_pylist(), _places(needed), _places(missed))


def _places(flags: pa.Array) -> set[int]:
    return set(pc.indices_nonzero(flags).to_pylist())
