"""Words to tokens by a unigram language model, with the mark before a word and with unknown
characters. ``unigram`` segments a word."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from tests.oracle.symbols import marked, unknown_tokens
from tests.oracle.unigram import Scores, best_segmentation

UNKNOWN_PENALTY = 10.0  # an unknown character scores this much less than the worst piece


def tokenize_word(
    word: str, scores: Scores, unk_token: str = "[UNK]", byte_fallback: bool = False
) -> list[str]:
    """The most probable segmentation of a word. Unknown characters side by side are one
    ``unk_token``, or the tokens of their bytes. ``▁`` is put before the word unless it is there.

    >>> tokenize_word("hugs", {"▁h": -2.0, "ug": -1.0, "▁hug": -2.5, "s": -2.0})
    ['▁hug', 's']
    >>> tokenize_word("hxyug", {"▁h": -2.0, "ug": -1.0})
    ['▁h', '[UNK]', 'ug']
    """
    found = best_segmentation(marked(word), with_unknown(marked(word), scores))
    assert found is not None
    return tokens_of(found[0], scores, unk_token, byte_fallback)


def with_unknown(word: str, scores: Scores) -> Scores:
    """Return the scores, with a score for each unknown character of the word."""
    worst = min(scores.values(), default=0.0) - UNKNOWN_PENALTY
    return dict.fromkeys(word, worst) | dict(scores)


def tokens_of(
    pieces: Iterable[str], scores: Scores, unk_token: str, byte_fallback: bool
) -> list[str]:
    """Return the pieces of a segmentation. A run of unknown characters becomes unknown tokens, or
    the piece of that string, which is possible only with positive scores, as in `tokenizers`."""
    tokens: list[str] = []
    for known, run in groupby(pieces, key=lambda piece: piece in scores):
        pieces = list(run)
        whole = "".join(pieces)
        if not known:
            pieces = [whole] if whole in scores else unknown_tokens(whole, unk_token, byte_fallback)
        tokens += pieces
    return tokens
