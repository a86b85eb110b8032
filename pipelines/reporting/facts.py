"""The facts that a page shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from pipelines.reporting.tokenized_words import NotableWords
from pipelines.reporting.vocabulary import TrainingLog, words_of_text
from wordpiece_core.measures import RARE, Measures, superwords
from wordpiece_core.symbols import BYTES
from wordpiece_core.tokenizer.bytes_as_text import readable
from wordpiece_core.tokenizer.spec import TokenizerSpec

GENERATOR = '<meta name="generator" content="wordpiece report">'
"""Marks a page as written by this program."""

Group = str | None


@dataclass(frozen=True)
class OnText:
    """Measures of one tokenizer on a text. `groups`: in the order of their names; one, without a
    name, if the text has no groups."""

    groups: dict[Group, Measures]

    @cached_property
    def all(self) -> Measures:
        """The sums over all groups."""
        first, *others = self.groups.values()
        return sum(others, first)


@dataclass(frozen=True)
class Other:
    """A tokenizer to compare with. `tokens`: by id, as WordPiece writes them. `on_text`: None
    without a text."""

    name: str
    tokens: dict[int, str]
    on_text: OnText | None = None


@dataclass(frozen=True)
class Facts:
    """Facts about a tokenizer, and about its results on a text if one is given.

    `text`: the names of the texts; empty without a text, and then `on_text`, `words` and `at_sizes`
    are empty too. `at_sizes`: by vocabulary size. `dataset_counts`: number of occurrences of ids
    in a dataset.
    """

    name: str
    spec: TokenizerSpec
    log: TrainingLog
    text: list[str] = field(default_factory=list)
    on_text: OnText | None = None
    at_sizes: dict[int, OnText] = field(default_factory=dict)
    words: NotableWords | None = None
    others: list[Other] = field(default_factory=list)
    dataset_counts: dict[int, int] | None = None

    @property
    def counts(self) -> dict[int, int] | None:
        """Number of occurrences of each used token, by id, in a dataset or else in the text."""
        if self.dataset_counts is not None:
            return self.dataset_counts
        return None if self.on_text is None else counts_by_id(self.on_text.all)


@dataclass(frozen=True)
class Uses:
    """Uses of tokens in a text.

    Attributes:
        ranked: Tokens of words with their counts, the most frequent first, equally frequent ones in
            id order, without special tokens and [unusedN]. Tokens of bytes are text.
        common: Number of tokens with ten or more uses.
        used: Number of tokens with any use.
        superwords: The same for tokens that cross spaces.
    """

    ranked: list[tuple[str, int]]
    common: int
    used: int
    superwords: list[tuple[str, int]]

    @property
    def superword_share(self) -> float:
        """Share of superwords among the tokens of the text."""
        counts = (sum(count for _, count in uses) for uses in (self.superwords, self.ranked))
        across, all_tokens = counts
        return across / max(all_tokens, 1)


def token_uses(spec: TokenizerSpec, counts: dict[int, int]) -> Uses:
    """Return the uses of the tokens of a tokenizer. `counts`: by id."""
    ids = {token: i for i, token in enumerate(spec.vocab)}
    show = readable if spec.word_boundary == BYTES else str

    def ranked(tokens: Iterable[str]) -> list[tuple[str, int]]:
        found = [(show(token), counts.get(ids[token], 0)) for token in tokens]
        return sorted(found, key=lambda use: -use[1])

    found = ranked(words_of_text(spec))
    common, used = (sum(count >= least for _, count in found) for least in (RARE, 1))
    return Uses(found, common, used, ranked(superwords(spec)))


def counts_by_id(measures: Measures) -> dict[int, int]:
    """Return the number of occurrences of each used token, by id."""
    uses = measures.uses
    return dict(zip(uses["token"].to_pylist(), uses["count"].to_pylist(), strict=True))
