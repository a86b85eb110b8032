"""Training of a unigram language model: from words to pieces, in rounds.

Training starts with many pieces (``unigram_seeds``), which are substrings of the runs of words
(``unigram_runs``). Each round estimates their probabilities by two steps of expectation
maximization (``unigram``), and drops the quarter of the pieces that the likelihood of the runs
needs least. The last round keeps the best of the remaining pieces. SentencePiece does the same
(``unigram_model_trainer.cc``), except for its seeds and for single characters, which are never
dropped here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.oracle.bpe import learn_merges
from tests.oracle.initial_vocabulary import (
    WordCounts,
    initial_vocabulary,
    kept_characters,
    words_taken,
)
from tests.oracle.merging import Merge, Pair, Split, filled
from tests.oracle.symbols import SPACE_MARK, SPECIAL_TOKENS, bare
from tests.oracle.unigram import Scores, best_segmentation, expected_counts, maximized
from tests.oracle.unigram_runs import character_counts, run_counts
from tests.oracle.unigram_seeds import first_scores, seeds
from tests.oracle.unigram_tokenizing import tokenize_word

ROOM = 1.25  # the last pieces are chosen from 1.25 times the size of the vocabulary
KEPT_SHARE = 0.75  # of the pieces, each time some are dropped
SCORE_UNITS = 64  # scores are multiples of 1/64 in the end
MORE_THAN_PARTS = 1e-9  # difference of the scores of a new token and its parts
DECIMALS = 12  # of the scores of new tokens


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
    """Return the tokens in id order with their scores: special tokens and bytes with 0, then pieces
    by descending score. ``max_word_length`` is the maximum length of runs in characters. ``▁`` is
    always a piece.

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
    """Return the counts of pieces in the best segmentations of runs."""
    uses: Counter[str] = Counter()
    for run, n in counts.items():
        found = best_segmentation(run, scores)
        assert found is not None
        for piece in found[0]:
            uses[piece] += n
    return uses


def pruned(scores: Scores, uses: Counter[str], size: int) -> dict[str, float]:
    """Return the ``size`` pieces whose removal would cost most likelihood.

    The place of a removed piece is taken by its best other segmentation. Unused pieces, and pieces
    with a better segmentation than themselves, are dropped. Single characters stay. Of equal costs
    the first strings stay. ``uses``: counts of pieces in the best segmentations of runs.
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
    """Return the final pieces with rounded scores, by descending score: all characters, and the
    pieces with the largest scores (ties: by string)."""
    best = sorted(scores, key=lambda piece: (len(piece) > 1, -scores[piece], piece))[:most]
    rounded = {p: math.floor(scores[p] * SCORE_UNITS + 0.5) / SCORE_UNITS for p in best}
    return dict(sorted(rounded.items(), key=lambda item: (-item[1], item[0])))


class Extended(NamedTuple):
    """The tokens with their scores in id order, and the merges of the new tokens."""

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
    """Merge pairs of pieces in the words, as BPE does, until there are enough new tokens.

    A new token scores a little more than its parts together, so it replaces them wherever they are
    adjacent, and no other segmentation becomes better than before. Words with an unknown character
    are ignored, and no pair builds an existing token.

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
