"""How often the tokens of a vocabulary are used in a text."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.reporting.vocabulary import words_of_text
from wordpiece_core.measures import RARE, Measures
from wordpiece_core.tokenizer.files import TokenizerSpec

LISTED = 120  # tokens of a list


@dataclass(frozen=True)
class Uses:
    """The tokens that words are cut into, the most used first; of equally often used ones in id
    order. Special tokens and [unusedN] are left out."""

    tokens: list[str]
    counts: list[int]

    @property
    def used(self) -> int:
        """How many are used at all."""
        return sum(count > 0 for count in self.counts)

    @property
    def common(self) -> int:
        """How many are used ten times or more."""
        return sum(count >= RARE for count in self.counts)

    @property
    def first(self) -> list[tuple[str, int]]:
        """The most used."""
        return self._of(0, LISTED // 2)

    @property
    def rare(self) -> list[tuple[str, int]]:
        """The least used of those that are used, fewer than ten times."""
        start = max(self.common, self.used - LISTED)
        return self._of(start, self.used)[::-1]

    @property
    def unused(self) -> list[tuple[str, int]]:
        """The first of those that are not used, in id order."""
        return self._of(self.used, self.used + LISTED)

    def _of(self, start: int, end: int) -> list[tuple[str, int]]:
        return list(zip(self.tokens[start:end], self.counts[start:end], strict=True))


def token_uses(spec: TokenizerSpec, measures: Measures) -> Uses:
    """The uses of the tokens of a tokenizer in a text."""
    ids = {token: i for i, token in enumerate(spec.vocab)}
    uses = measures.uses
    counts = dict(zip(uses["token"].to_pylist(), uses["count"].to_pylist(), strict=True))
    found = [(token, counts.get(ids[token], 0)) for token in words_of_text(spec)]
    found.sort(key=lambda use: -use[1])
    return Uses([token for token, _ in found], [count for _, count in found])
