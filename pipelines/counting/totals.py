"""What a count has read: sums, and the words of each group, which are smoothed by weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.io import outputs
from pipelines.io.publishing import Publication
from wordpiece_core.errors import InputError
from wordpiece_core.option_types import MOST_COUNT
from wordpiece_core.training.smoothing import FRACTION_BITS, smoothing_weights

Group = str | None
ONE = 1 << FRACTION_BITS  # the weight that changes nothing
TOTALS = "totals.json"  # while the job runs


@dataclass
class Totals:
    """What was read: the `counts` of rows, nulls, bytes, words and replaced sequences, and the
    number of words in each group."""

    counts: Counter[str] = field(default_factory=Counter)
    groups: Counter[Group] = field(default_factory=Counter)


def add_totals(parts: Iterable[Totals]) -> Totals:
    """The sum of totals. InputError if there are more words than can be counted."""
    totals = Totals()
    for part in parts:
        totals.counts.update(part.counts)
        totals.groups.update(part.groups)
    check_sums(totals.counts)
    return totals


def check_sums(counts: Mapping[str, int]) -> None:
    """InputError for a sum that int64 cannot hold. The kernel has the same limit."""
    for name, count in counts.items():
        if count > MOST_COUNT:
            raise InputError(
                f"counts add up to more than 2^63 - 1; {name}: {count}; scale them down"
            )


def group_weights(totals: Totals, exponent: float) -> dict[Group, int]:
    """The weights of groups, in units of 2^-32. The null group is first, the others are in the
    order of their names."""
    names = sorted(totals.groups, key=lambda name: (name is not None, name or ""))
    weights = smoothing_weights([totals.groups[name] for name in names], exponent)
    return dict(zip(names, weights, strict=True))


def write_totals(totals: Totals, publication: Publication) -> None:
    """Writes totals as JSON. Groups are a list, because a key of JSON cannot be null."""
    groups = list(totals.groups.items())
    publication.stage_json(TOTALS, {"counts": totals.counts, "groups": groups})


def read_totals(publication: Publication) -> Totals:
    """Reads what `write_totals` wrote. The totals are empty if nothing was written."""
    value = outputs.read_json(publication.place(TOTALS)) or {"counts": {}, "groups": []}
    return Totals(Counter(value["counts"]), Counter(dict(value["groups"])))
