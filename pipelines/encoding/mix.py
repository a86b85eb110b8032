"""The file of `--mix`: sources of texts, and the number of tokens that are drawn from each.

    max_repeats: 2
    sources:
      - inputs: books/*.parquet
        weight: 3
      - inputs: [code/, notebooks/]
        weight: 1
        max_repeats: 4
      - inputs: manuals.jsonl
        tokens: 20M

Sources are inputs, or groups of rows by the values of `--group-column`. Sources with `tokens` get
that number, and the rest of `--tokens` is divided among the others in proportion to their weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipelines.io.yaml_text import parse_mapping
from wordpiece_core import storage
from wordpiece_core.declared import checked
from wordpiece_core.errors import OptionError, opt, shown
from wordpiece_core.option_types import MOST_COUNT, TokenCount, parse_count, paths
from wordpiece_core.storage import MissingError

KEYS = ("inputs", "group", "weight", "tokens", "max_repeats")


@dataclass(frozen=True)
class Source:
    """A source of texts.

    Attributes:
        inputs: Files, globs or directories; empty for a group.
        group: Value of the group column.
        tokens: Number of tokens to draw.
        max_repeats: Maximum number of times that a row is drawn.
    """

    inputs: tuple[str, ...]
    group: str
    tokens: int
    max_repeats: int

    @property
    def name(self) -> str:
        """The name of the source in messages and in the manifest."""
        return self.group or ", ".join(self.inputs)


@dataclass(frozen=True)
class Mix:
    """The sources, which are all inputs or all groups."""

    sources: Sequence[Source]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the sources, if they are groups."""
        return tuple(source.group for source in self.sources if source.group)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs of all sources."""
        return tuple(place for source in self.sources for place in source.inputs)

    def to_list(self) -> list[str]:
        """Return the sources as texts, for the options of the dataset."""
        return [
            f"{s.tokens} tokens (max_repeats {s.max_repeats}) of {s.name}" for s in self.sources
        ]


def read_mix(place: str, tokens: int | None) -> Mix:
    """Read the file of a mix. `tokens`: the number of tokens of the dataset.

    Raises OptionError for a wrong file, and for tokens that do not fit it.
    """
    try:
        data = storage.read_bytes(place)
    except MissingError:
        raise OptionError(f"{opt.mix}: {place}: no such file") from None
    value = parse_mapping(place, data)
    _check_keys(place, value, ("sources", "max_repeats"))
    items = value.get("sources")
    if not isinstance(items, list) or not items:
        raise OptionError(f"{place}: sources: not a list of sources; see docs/guides/layouts.md")
    repeats = _count(f"{place}: max_repeats", value.get("max_repeats", "1"))
    parts = [_Part.of(f"{place}: source {n}", item, repeats) for n, item in enumerate(items, 1)]
    if len({bool(part.group) for part in parts}) > 1:
        raise OptionError(f"{place}: sources: give either `inputs` or `group` in all of them")
    groups = [part.group for part in parts if part.group]
    for group in groups:
        if groups.count(group) > 1:
            raise OptionError(f"{place}: the group {group!r} is in two sources; join them")
    budgets = _budgets(place, parts, tokens)
    for number, budget in enumerate(budgets, 1):
        if not budget:
            raise OptionError(f"{place}: source {number}: its weight gives no token; raise it")
    return Mix(
        [
            Source(part.inputs, part.group, budget, part.max_repeats)
            for part, budget in zip(parts, budgets, strict=True)
        ]
    )


@dataclass(frozen=True)
class _Part:
    """A source as the file has it."""

    inputs: tuple[str, ...]
    group: str
    weight: Fraction | None
    tokens: int | None
    max_repeats: int

    @classmethod
    def of(cls, place: str, value: Any, max_repeats: int) -> _Part:
        if not isinstance(value, dict):
            raise OptionError(f"{place}: not a mapping with `inputs` or `group`")
        _check_keys(place, value, KEYS)
        for one, other in (("inputs", "group"), ("weight", "tokens")):
            if (value.get(one) is None) == (value.get(other) is None):
                raise OptionError(f"{place}: give either `{one}` or `{other}`")
        inputs, group, weight = value.get("inputs"), value.get("group"), value.get("weight")
        try:
            found = () if inputs is None else paths(inputs)
        except ValueError as error:
            raise OptionError(f"{place}: inputs: {error}") from error
        if group == "":
            raise OptionError(f"{place}: group: is empty; name a value of the column")
        if group is not None and not isinstance(group, str):
            raise OptionError(f"{place}: group: {shown(group)} is not a single value")
        if not (found or group):
            raise OptionError(f"{place}: has no inputs; name files, globs or directories")
        return cls(
            found,
            group or "",
            None if weight is None else _weight(place, weight),
            None if weight is not None else _count(f"{place}: tokens", value["tokens"]),
            _count(f"{place}: max_repeats", value.get("max_repeats", str(max_repeats))),
        )


def _check_keys(place: str, value: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in value:
        if key not in known:
            raise OptionError(f"{place}: unknown key {key!r}; known are {', '.join(known)}")


def _weight(place: str, value: Any) -> Fraction:
    try:
        weight = Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        weight = Fraction(0)
    if not 0 < weight <= MOST_COUNT:
        raise OptionError(f"{place}: weight: {shown(value)} is not a number above 0")
    return weight


def _count(place: str, value: Any) -> int:
    try:
        return int(checked(TokenCount, parse_count(value) if isinstance(value, str) else value))
    except ValueError as error:
        raise OptionError(f"{place}: {error}") from error


def _budgets(place: str, parts: Sequence[_Part], tokens: int | None) -> list[int]:
    """Return the number of tokens of each source. They add up to `tokens` exactly."""
    fixed = sum(part.tokens or 0 for part in parts)
    weights = [part.weight or Fraction(0) for part in parts]
    whole = sum(weights)
    if tokens is None:
        if whole:
            raise OptionError(f"{place}: has weights; also set {opt.tokens}, the total")
        tokens = fixed
    rest = tokens - fixed
    if rest < 0 or (rest and not whole) or (whole and not rest):
        raise OptionError(
            f"{opt.tokens}: is {tokens:,}, but the sources of {place} add up to {fixed:,}"
            f"{' and more' if whole else ''}"
        )
    found, before = [], Fraction(0)
    for part, weight in zip(parts, weights, strict=True):
        after = before + weight
        shares = [int(rest * bound / (whole or 1)) for bound in (before, after)]
        found.append((part.tokens or 0) + shares[1] - shares[0])
        before = after
    return found
