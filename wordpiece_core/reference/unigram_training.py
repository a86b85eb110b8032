"""Training of a unigram language model: from words, by rounds, to the pieces that stay.

It begins with more pieces than are wanted (``unigram_seeds``), taken of the runs of words
(``unigram_runs``). Each round estimates their probabilities by two steps of expectation
maximization (``unigram``) and drops a quarter of them, those that the likelihood of the runs misses
least. The last round takes the best of what is left. It is what SentencePiece does
(``unigram_model_trainer.cc``), but for its seeds, and for single characters: here they are never
dropped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wordpiece_core.reference.bpe import learn_merges
from wordpiece_core.reference.initial_vocabulary import (
    WordCounts,
    initial_vocabulary,
    kept_characters,
    words_taken,
)
from wordpiece_core.reference.merging import Merge, Pair, Split, filled
from wordpiece_core.reference.unigram import Scores, best_segmentation, expected_counts, maximized
from wordpiece_core.reference.unigram_runs import character_counts, run_counts
from wordpiece_core.reference.unigram_seeds import first_scores, seeds
from wordpiece_core.reference.unigram_tokenizing import tokenize_word
from wordpiece_core.symbols import SPACE_MARK, SPECIAL_TOKENS, bare

ROOM = 1.25  # times as many tokens as wanted are left to choose the last ones from
KEPT_SHARE = 0.75  # of the pieces, each time some are dropped
SCORE_UNITS = 64  # scores are multiples of 1/64 in the end
MORE_THAN_PARTS = 1e-9  # by so much a new token of an extension scores more than its parts
DECIMALS = 12  # of its score


def train(
    word_counts: WordCounts,
    vocab_size: int,
    *,
    seed_size: int = 1_000_000,
    min_word_count: int = 1,
    limit_alphabet: int | None = None,
    initial_alphabet: str = "",
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    max_token_length: int = 16,
    max_word_length: int = 100,
    byte_fallback: bool = False,
) -> dict[str, float]:
    """The tokens in id order, with their scores: special tokens and bytes with 0, then the pieces,
    those with the largest scores first. ``max_word_length`` is of runs, and lengths are in
    characters. ``▁`` is a piece whatever the limit of the alphabet.

    >>> model = train({"hug": 10, "pug": 5, "hugs": 5}, vocab_size=13)
    >>> list(model)[5:]
    ['▁hug', '▁pug', 'g', 'h', 'p', 's', 'u', '▁']

    Raises OptionError if ``vocab_size`` cannot hold the special tokens and the alphabet.
    """
    rows = words_taken(word_counts, min_word_count)
    characters = character_counts(run_counts(rows, None, max_word_length))
    kept = kept_characters(characters.items(), limit_alphabet, initial_alphabet, SPACE_MARK)
    alphabet = {SPACE_MARK, *kept} - {*special_tokens}
    vocab = initial_vocabulary(vocab_size, special_tokens, sorted(alphabet), byte_fallback)
    reserved = [token for token in vocab if token not in alphabet]
    counts = run_counts(rows, alphabet, max_word_length)
    found = seeds(counts, max_token_length, seed_size)
    scores = first_scores(
        {c: characters[c] for c in alphabet},
        {piece: n for piece, n in found.items() if piece not in reserved},
    )
    aim = int(ROOM * vocab_size)
    while True:
        for _ in range(2):
            scores = maximized(scores, expected_counts(counts, scores)[0])
        if len(scores) <= max(aim, len(alphabet)):
            return dict.fromkeys(reserved, 0.0) | chosen(scores, vocab_size - len(reserved))
        size = max(aim, int(KEPT_SHARE * len(scores)))
        scores = pruned(scores, best_counts(counts, scores), size)


def best_counts(counts: Mapping[str, int], scores: Scores) -> Counter[str]:
    """How often each piece is used in the best segmentations of runs."""
    uses: Counter[str] = Counter()
    for run, n in counts.items():
        found = best_segmentation(run, scores)
        assert found is not None
        for piece in found[0]:
            uses[piece] += n
    return uses


def pruned(scores: Scores, uses: Counter[str], size: int) -> dict[str, float]:
    """Drops the pieces without which the likelihood of the runs loses least, so that ``size`` are
    left. ``uses``: how often pieces are used in the best segmentations of runs. A piece that is not
    used then, or that is segmented better than it is kept whole, is dropped; else its place is
    taken by its best other segmentation. Single characters stay. Of pieces that are missed alike
    those first in the order of strings stay.
    """
    total = sum(uses.values())
    losses: dict[str, float] = {}
    for piece, score in scores.items():
        n = uses[piece]
        if len(piece) == 1 or n == 0:
            continue
        other = best_segmentation(piece, {p: s for p, s in scores.items() if p != piece})
        assert other is not None
        if other[1] > score:
            continue
        after = math.log(total + n * (len(other[0]) - 1))
        gone = sum(math.log(uses[part] + n) - after for part in other[0])
        losses[piece] = n * (math.log(n) - math.log(total) - gone)
    single = {piece for piece in scores if len(piece) == 1}
    best = sorted(losses, key=lambda piece: (-losses[piece], piece))
    kept = single | {*best[: max(0, size - len(single))]}
    return {piece: score for piece, score in scores.items() if piece in kept}


def chosen(scores: Scores, most: int) -> dict[str, float]:
    """The pieces in the end, with rounded scores, larger ones first: all characters, and of the
    others those with the largest scores (ties: as strings)."""
    best = sorted(scores, key=lambda piece: (len(piece) > 1, -scores[piece], piece))[:most]
    rounded = {p: math.floor(scores[p] * SCORE_UNITS + 0.5) / SCORE_UNITS for p in best}
    return dict(sorted(rounded.items(), key=lambda item: (-item[1], item[0])))


class Extended(NamedTuple):
    """The tokens with their scores, in id order, and the merges that made the new ones."""

    scores: dict[str, float]
    merges: list[Merge]


def extend(
    word_counts: WordCounts,
    scores: Scores,
    new_tokens: int,
    *,
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    min_pair_count: int = 1,
    min_word_count: int = 1,
    max_token_length: int | None = None,
) -> Extended:
    """Merge pairs of pieces of the words, as BPE does, until enough tokens are new.

    A new token scores as its parts do together, and a little more. So where its parts stand side
    by side it takes their place, and no other way to split a word becomes better than it was. Words
    with an unknown character take no part, and no pair makes a token that is there.

    >>> more = extend({"hugs": 3}, {"[UNK]": 0.0, "▁hug": -2.5, "s": -2.0}, 1)
    >>> list(more.scores), more.scores["▁hugs"]
    (['[UNK]', '▁hug', 's', '▁hugs'], -4.499999999)
    """
    pieces = {piece: score for piece, score in scores.items() if piece not in special_tokens}
    rows = words_taken(word_counts, min_word_count, 100)
    tokenized = [(tokenize_word(word, pieces), count) for word, count in rows]
    taken = [(tokens, count) for tokens, count in tokenized if pieces.keys() >= {*tokens}]

    def is_eligible(pair: Pair, pair_count: int) -> bool:
        length = sum(len(bare(token, SPACE_MARK)) for token in pair)
        short = max_token_length is None or length <= max_token_length
        return short and pair_count >= min_pair_count and "".join(pair) not in scores

    splits: list[Split] = [[*tokens] for tokens, _ in taken]
    coming = learn_merges(splits, [count for _, count in taken], is_eligible)
    made = filled(scores, len(scores) + new_tokens, coming)
    extended = dict(scores)
    for merge in made.merges:
        score = extended[merge.left] + extended[merge.right] + MORE_THAN_PARTS
        extended.setdefault(merge.token, round(score, DECIMALS))
    return Extended(extended, made.merges)
