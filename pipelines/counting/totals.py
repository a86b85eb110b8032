"""Sums over the input of a count, and the weights that smooth its groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import apache_beam as beam

from pipelines.io import outputs
from pipelines.io.publishing import Publication
from wordpiece_core.errors import InputError
from wordpiece_core.option_types import MOST_COUNT
from wordpiece_core.training.smoothing import FRACTION_BITS, smoothing_weights

Group = str | None
ONE = 1 << FRACTION_BITS  # the weight that changes nothing
TOTALS = "totals.json"  # exists while the job runs


@dataclass
class Totals:
    """Sums over the input.

    Attributes:
        counts: Numbers of rows, nulls, bytes, words and replaced sequences.
        groups: Number of words in each group.
    """

    counts: Counter[str] = field(default_factory=Counter)
    groups: Counter[Group] = field(default_factory=Counter)

    def add(self, other: Totals) -> None:
        """Add other totals."""
        self.counts.update(other.counts)
        self.groups.update(other.groups)


class SumTotals(beam.CombineFn):
    """Add up totals. Raises InputError if there are more words than can be counted."""

    def create_accumulator(self) -> Totals:
        return Totals()

    def add_input(self, mutable_accumulator: Totals, element: Totals) -> Totals:
        mutable_accumulator.add(element)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[Totals]) -> Totals:
        totals = Totals()
        for other in accumulators:
            totals.add(other)
        return totals

    def extract_output(self, accumulator: Totals) -> Totals:
        check_sums(accumulator.counts)
        return accumulator


def check_sums(counts: Mapping[str, int]) -> None:
    """Raise InputError for a sum that int64 cannot hold. The kernel has the same limit."""
    for name, count in counts.items():
        if count > MOST_COUNT:
            raise InputError(
                f"counts add up to more than 2^63 - 1; {name}: {count}; scale them down"
            )


def group_weights(totals: Totals, exponent: float) -> dict[Group, int]:
    """Return the weights of groups in units of 2^-32: first the null group, then the others in the
    order of their names."""
    names = sorted(totals.groups, key=lambda name: (name is not None, name or ""))
    weights = smoothing_weights([totals.groups[name] for name in names], exponent)
    return dict(zip(names, weights, strict=True))


def write_totals(totals: Totals, publication: Publication) -> None:
    """Write totals as JSON. Groups are a list, because a JSON key cannot be null."""
    groups = list(totals.groups.items())
    publication.stage_json(TOTALS, {"counts": totals.counts, "groups": groups})


def read_totals(publication: Publication) -> Totals:
    """Read the totals that `write_totals` wrote; empty totals if nothing was counted."""
    value = outputs.read_json(publication.place(TOTALS)) or {"counts": {}, "groups": []}
    return Totals(Counter(value["counts"]), Counter(dict(value["groups"])))
