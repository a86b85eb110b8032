"""Reasons for the segmentations of BPE and Unigram: the merges of tokens, or the scores of the best
and the next best segmentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from wordpiece_core.symbols import WORD_END
from wordpiece_core.tokenizer.models import Bpe, Unigram
from wordpiece_core.tokenizer.spec import TokenizerSpec


@dataclass(frozen=True)
class Merge:
    """Two symbols that became one. `rank`: number of the merge, from 0, in the order of
    training."""

    left: str
    right: str
    rank: int


@dataclass(frozen=True)
class ScoredSegmentation:
    """The tokens of a word, and the sum of their scores, natural logarithms of probabilities."""

    tokens: tuple[str, ...]
    score: float


@dataclass(frozen=True)
class Reason:
    """Reason for the tokens of a word.

    Attributes:
        word: Number of the word.
        merges: For BPE, the merges of each token in their order.
        best: For Unigram, the segmentation.
        next_best: For Unigram, the next best one; None if there is no other.
    """

    word: int
    merges: tuple[Merge, ...] = ()
    best: ScoredSegmentation | None = None
    next_best: ScoredSegmentation | None = None


@dataclass(frozen=True)
class Reasoner:
    """Finder of reasons for the segmentations of a tokenizer."""

    spec: TokenizerSpec

    def reason(self, number: int, tokens: Sequence[str]) -> Reason:
        """Return the reason for the tokens of a word without unknown parts."""
        if isinstance(self.spec.model, Bpe):
            merges = [merge for token in tokens for merge in self.merges_of(token)]
            return Reason(number, merges=tuple(merges))
        found = self.best_segmentations("".join(tokens))
        best = ScoredSegmentation(tuple(tokens), sum(self._scores[token] for token in tokens))
        others = [other for other in found if other.tokens != best.tokens]
        return Reason(number, best=best, next_best=others[0] if others else None)

    @cached_property
    def _ranks(self) -> dict[tuple[str, str], int]:
        assert isinstance(self.spec.model, Bpe)
        vocab = self.spec.vocab
        return {(vocab[a], vocab[b]): rank for rank, (a, b) in enumerate(self.spec.model.merges)}

    def merges_of(self, token: str) -> list[Merge]:
        """Return the merges of a token in their order. They are the same in every word, because no
        merge on the way crosses its ends."""
        end = WORD_END if token.endswith(WORD_END) and token != WORD_END else ""
        symbols = list(token.removesuffix(end))
        symbols[-1:] = [symbol + end for symbol in symbols[-1:]]
        made = []
        while len(symbols) > 1:
            pairs = list(pairwise(symbols))
            ranks = [self._ranks.get(pair) for pair in pairs]
            known = [rank for rank in ranks if rank is not None]
            if not known:
                break  # a token that no merge makes
            at = ranks.index(min(known))
            made.append(Merge(*pairs[at], rank=min(known)))
            symbols[at : at + 2] = ["".join(pairs[at])]
        return made

    @cached_property
    def _scores(self) -> dict[str, float]:
        assert isinstance(self.spec.model, Unigram)
        special = {*self.spec.special_tokens} if self.spec.model.of_sentencepiece else set()
        pairs = zip(self.spec.vocab, self.spec.model.scores, strict=True)
        return {token: score for token, score in pairs if token not in special}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._scores))

    def best_segmentations(self, word: str) -> list[ScoredSegmentation]:
        """Return the two best segmentations of a word into known tokens; fewer, if there are not
        two."""
        # The best two at each place: a score, the start of the last token, its number there.
        ends: list[list[tuple[float, int, int]]] = [[(0.0, 0, 0)]]
        for end in range(1, len(word) + 1):
            found = []
            for start in range(max(0, end - self._longest), end):
                score = self._scores.get(word[start:end]) if ends[start] else None
                if score is not None:
                    found += [(s + score, start, n) for n, (s, _, _) in enumerate(ends[start])]
            ends.append(sorted(found, key=lambda one: -one[0])[:2])
        return [
            ScoredSegmentation(_tokens(word, ends, number), score)
            for number, (score, _, _) in enumerate(ends[-1])
        ]


def _tokens(word: str, ends: Sequence[Sequence[tuple[float, int, int]]], n: int) -> tuple[str, ...]:
    """Follow the `n`-th segmentation of a word back from its end."""
    tokens, end = [], len(word)
    while end:
        _, start, n = ends[end][n]
        tokens.append(word[start:end])
        end = start
    return tuple(reversed(tokens))
