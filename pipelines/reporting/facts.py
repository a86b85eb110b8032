"""What a page shows, before it is a page."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.reporting.cuts import Cuts
from pipelines.reporting.vocabulary import TrainingLog
from wordpiece_core.measures import Measures
from wordpiece_core.tokenizer.files import TokenizerSpec

GENERATOR = '<meta name="generator" content="wordpiece report">'
"""What tells a page of this program from other files."""

Group = str | None


@dataclass(frozen=True)
class OnText:
    """What a text, by group, comes to with one tokenizer. `groups`: in the order of their names;
    one, without a name, if the text has no groups."""

    groups: dict[Group, Measures]

    @property
    def all(self) -> Measures:
        """The sums over all groups."""
        first, *others = self.groups.values()
        return sum(others, first)


@dataclass(frozen=True)
class Other:
    """A tokenizer that another one is compared with. `tokens`: by their ids, as WordPiece writes
    them. `on_text`: None without a text."""

    name: str
    tokens: dict[int, str]
    on_text: OnText | None = None


@dataclass(frozen=True)
class Facts:
    """What is known of a tokenizer, and perhaps of what it does with a text.

    `name`: what the tokenizer is called. `text`: what the text is called; None if there is none,
    and then `on_text`, `cuts` and `at_sizes` are not there either. `at_sizes`: by the size of the
    vocabulary. `rare_count`: rare words occur at most so often. `others`: those it is compared
    with, in order.
    """

    name: str
    spec: TokenizerSpec
    log: TrainingLog
    text: list[str] = field(default_factory=list)
    on_text: OnText | None = None
    at_sizes: dict[int, OnText] = field(default_factory=dict)
    cuts: Cuts | None = None
    rare_count: int = 0
    others: list[Other] = field(default_factory=list)
