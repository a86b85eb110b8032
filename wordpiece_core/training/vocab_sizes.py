"""A tokenizer at smaller vocabulary sizes: with only the first of its merges.

Training with a smaller size makes the same merges up to that size, so a prefix of the merges gives
the tokenizer that such a training gives. BPE keeps its merges in the order of training. WordPiece
does not; `train` writes them to merges.parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from wordpiece_core.errors import OptionError, opt
from wordpiece_core.tokenizer.models import Bpe
from wordpiece_core.tokenizer.spec import TokenizerSpec


def merged_tokens(spec: TokenizerSpec, log: Iterable[str] | None = None) -> list[str] | None:
    """Return the tokens that merges have made, in the order of training. None if it is not known.

    Args:
        spec: The tokenizer.
        log: The column `token` of merges.parquet, if there is one.
    """
    if log is None and isinstance(spec.model, Bpe):
        log = (spec.vocab[left] + spec.vocab[right] for left, right in spec.model.merges)
    if log is None:
        return None
    tokens = {*spec.vocab} - {*spec.special_tokens}
    return [token for token in dict.fromkeys(log) if token in tokens]


def least_size(spec: TokenizerSpec, merged: Sequence[str]) -> int:
    """Return the size of the vocabulary without merges: special tokens and the alphabet."""
    return len(spec.vocab) - len(merged)


def at_size(spec: TokenizerSpec, merged: Sequence[str], size: int) -> TokenizerSpec:
    """Return the tokenizer with a vocabulary of this size. Ids of the tokens may differ.

    Args:
        spec: The tokenizer.
        merged: The result of `merged_tokens`.
        size: Number of tokens, special tokens and alphabet included.

    Raises OptionError if the size is less than special tokens and alphabet need, or more than the
    tokenizer has.

    >>> from wordpiece_core import Tokenizer, train
    >>> result = train({"hug": 10, "pug": 5, "hugs": 5}, vocab_size=14, min_pair_count=1)
    >>> spec = result.tokenizer().spec
    >>> merged = merged_tokens(spec, result.merges["token"].to_pylist())
    >>> least_size(spec, merged), merged
    (10, ['hu', 'pu', 'hug', 'pug'])
    >>> Tokenizer.from_spec(at_size(spec, merged, 11)).tokenize("hug pug")
    ['hu', '##g', 'p', '##u', '##g']
    """
    least = least_size(spec, merged)
    if not least <= size <= len(spec.vocab):
        raise OptionError(
            f"{opt.vocab_sizes}: {size:,} is not from {least:,} (special tokens and alphabet) to"
            f" {len(spec.vocab):,} (complete vocabulary)"
        )
    left_out = {*merged[size - least :]}
    vocab = [token for token in spec.vocab if token not in left_out]
    if not isinstance(spec.model, Bpe):
        return replace(spec, vocab=vocab)
    ids = {token: i for i, token in enumerate(vocab)}
    merges = []
    for pair in spec.model.merges:
        left, right = (spec.vocab[token] for token in pair)
        if left + right not in ids:
            break
        merges.append((ids[left], ids[right]))
    tied = [place for place in spec.model.tied if place < len(merges)]
    return replace(spec, vocab=vocab, model=replace(spec.model, merges=merges, tied=tied))
