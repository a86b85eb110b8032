"""Draw the rows of a mix, until the tokens of each source reach its number.

All rows of a source are drawn a number of times, and the first ones in the order of a hash once
more. The last of these is found in two passes over the numbers of
tokens: the first adds them up by ranges of hashes, the second reads the hashes of one range.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from pipelines.beam import AddArrays, run_plan
from pipelines.encoding.mix import Source
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.resharding.shuffle import order_of
from pipelines.encoding.row_weights import TOKENS
from pipelines.io import outputs
from pipelines.progress import add_metrics
from wordpiece_core import storage
from wordpiece_core.errors import InputError
from wordpiece_core.storage import MissingError

RANGE_BITS = 12  # ranges of hashes: 4,096, so that a range of 10 billion rows has 40 MB
RANGES = 1 << RANGE_BITS
NO_SOURCE = -1
DRAW = "draw"
Sums = tuple[int, np.ndarray]
"""The number of a source, and for each range of hashes its tokens and its rows."""


@dataclass(frozen=True)
class Drawn:
    """The rows of a source that are drawn: all of them `copies` times, and once more the rows with
    hashes up to `last`; -1 for none.

    Attributes:
        tokens: Number of tokens of all drawn rows.
        rows: Number of drawn rows.
        all_tokens: Number of tokens of the source.
    """

    copies: int
    last: int
    tokens: int
    rows: int
    all_tokens: int

    def record(self, source: Source | None) -> dict[str, Any]:
        """Return the entry of the manifest; None for the rows of no source. `repeats`: average
        number of copies of a token."""
        return {
            "source": None if source is None else source.name,
            "wanted_tokens": 0 if source is None else source.tokens,
            "tokens": self.tokens,
            "rows": self.rows,
            "source_tokens": self.all_tokens,
            "repeats": round(self.tokens / max(self.all_tokens, 1), 4),
        }


def hashes(seed: int, name: str, first: int, rows: int) -> np.ndarray:
    """Return the hashes of rows of an input, which do not depend on the random order of rows."""
    found: np.ndarray = order_of(seed, f"{name}\0{DRAW}", first, rows).to_numpy()
    return found


def drawn_rows(
    target: Target, seed: int, number: int, name: str, first: int, table: pa.Table
) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Yield the drawn rows of a table of an input, each copy by itself, and their random order.
    `first`: number of the first row."""
    rows = table.num_rows
    if target.drawn is None:
        yield table, order_of(seed, name, first, rows)
        return
    keys, sources = hashes(seed, name, first, rows), target.sources_of(number, table)
    copies = np.zeros(rows, np.int64)
    for source, drawn in enumerate(target.drawn):
        is_last = keys <= np.uint64(drawn.last) if drawn.last >= 0 else np.zeros(rows, bool)
        mine = sources == source
        copies[mine] = drawn.copies + is_last[mine]
    for copy in range(copies.max(initial=0)):
        mask = pa.array(copies > copy)
        order = order_of(seed, f"{name}\0{copy}" if copy else name, first, rows)
        yield table.filter(mask), order.filter(mask)


@dataclass(frozen=True)
class DrawInput:
    """An input, by number and name."""

    number: int
    name: str


def draw(
    target: Target,
    sources: Sequence[Source],
    seed: int,
    names: Sequence[str],
    beam_args: Sequence[str],
) -> tuple[list[Drawn], Drawn]:
    """Decide which rows of each source are drawn. Returns these, and the rows of no source.

    Args:
        names: Names of the inputs.

    Raises InputError if a source is too small.
    """
    inputs = [DrawInput(number, name) for number, name in enumerate(names)]
    sums = _pass(
        target, inputs, _SumRanges(target, seed), AddArrays((2, RANGES)), "sums", beam_args
    )
    others = sums.pop(NO_SOURCE, np.zeros((2, RANGES), np.int64))
    left_out = Drawn(0, -1, 0, 0, int(others[0].sum()))
    found: list[Drawn] = []
    ranges: dict[int, int] = {}
    for number, source in enumerate(sources):
        tokens, rows = sums.get(number, np.zeros((2, RANGES), np.int64))
        total = int(tokens.sum())
        copies, rest = divmod(source.tokens, max(total, 1))
        if not total:
            raise InputError(f"the source {source.name} has no tokens; remove it, or add text")
        if copies + bool(rest) > source.max_repeats:
            raise _too_small(source, total)
        found.append(Drawn(copies, -1, copies * total, copies * int(rows.sum()), total))
        if rest:
            ranges[number] = int(np.searchsorted(np.cumsum(tokens), rest))
    if not ranges:
        return found, left_out
    read = _pass(target, inputs, _ReadRange(target, seed, ranges), _Join(), "rows", beam_args)
    for number, one in ranges.items():
        tokens, rows = (sums[number][kind][:one].sum() for kind in (0, 1))
        rest = sources[number].tokens - found[number].tokens - int(tokens)
        keys, values = read[number]
        order = np.argsort(keys, kind="stable")
        ends = np.cumsum(values[order])
        last = keys[order[np.searchsorted(ends, rest)]]
        many = int(np.searchsorted(keys[order], last, "right"))  # with equal hashes
        before = found[number]
        found[number] = Drawn(
            before.copies,
            int(last),
            before.tokens + int(tokens) + int(ends[many - 1]),
            before.rows + int(rows) + many,
            before.all_tokens,
        )
    return found, left_out


def _too_small(source: Source, total: int) -> InputError:
    short = source.tokens - total * source.max_repeats
    return InputError(
        f"the source {source.name} has {total:,} tokens, so {source.max_repeats} of each row give"
        f" {total * source.max_repeats:,}, {short:,} fewer than {source.tokens:,}; add text, lower"
        " its share, or raise max_repeats"
    )


# --- Passes ---------------------------------------------------------------------------------------


def _pass(
    target: Target,
    inputs: Sequence[DrawInput],
    step: beam.DoFn,
    combine: beam.CombineFn,
    name: str,
    beam_args: Sequence[str],
) -> dict[int, np.ndarray]:
    """Run a step over all inputs, and return what it combines for each source."""
    work = target.dataset.work
    place = work.place(f"{DRAW}-{name}.npz")
    storage.delete_file(place)

    def build(inputs: beam.PCollection) -> None:
        _ = (
            inputs
            | name >> beam.ParDo(step)
            | "combine" >> beam.CombinePerKey(combine)
            | "together" >> beam.combiners.ToDict()
            | "write" >> beam.Map(_write, place)
        )

    plan = work.place("plan-000004.jsonl")
    run_plan(build, plan, inputs, lambda fields: DrawInput(**fields), beam_args)
    try:
        with np.load(io.BytesIO(storage.read_bytes(place))) as found:
            return {int(key): found[key] for key in found.files}
    except MissingError:  # no rows
        return {}


def _write(found: Mapping[int, np.ndarray], place: str) -> None:
    stream = io.BytesIO()
    arrays: dict[str, Any] = {str(key): found[key] for key in sorted(found)}
    np.savez(stream, **arrays)
    outputs.write_bytes(place, stream.getvalue())


@dataclass
class _Read(beam.DoFn):
    """A step that reads the hashes and the tokens of the rows of an input."""

    target: Target
    seed: int

    def rows(self, item: DrawInput) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield hashes, tokens and sources of rows, some at a time."""
        first = 0
        for table in self.target.numbers_of(item.name):
            rows = table.num_rows
            tokens = table.column(TOKENS).to_numpy()
            yield (
                hashes(self.seed, item.name, first, rows),
                tokens,
                self.target.sources_of(item.number, table),
            )
            first += rows
            add_metrics(rows=rows)


@dataclass
class _SumRanges(_Read):
    """Add up the tokens and the rows of each source, by ranges of hashes."""

    def process(self, item: DrawInput) -> Iterator[Sums]:
        sums: dict[int, np.ndarray] = {}
        for keys, tokens, sources in self.rows(item):
            ranges = (keys >> np.uint64(64 - RANGE_BITS)).astype(np.int64)
            for source in np.unique(sources).tolist():
                mine = sources == source
                added = sums.setdefault(source, np.zeros((2, RANGES), np.int64))
                np.add.at(added[0], ranges[mine], tokens[mine])
                added[1] += np.bincount(ranges[mine], minlength=RANGES)
        yield from sums.items()


@dataclass
class _ReadRange(_Read):
    """Read the hashes and the tokens of rows of one range of each source."""

    ranges: Mapping[int, int]

    def process(self, item: DrawInput) -> Iterator[tuple[int, np.ndarray]]:
        parts: dict[int, list[np.ndarray]] = {}
        for keys, tokens, sources in self.rows(item):
            ranges = keys >> np.uint64(64 - RANGE_BITS)
            for source, wanted in self.ranges.items():
                mine = (sources == source) & (ranges == wanted)
                if mine.any():
                    found = np.stack([keys[mine], tokens[mine].astype(np.uint64)])
                    parts.setdefault(source, []).append(found)
        for source, some in parts.items():
            yield source, np.concatenate(some, axis=1)


class _Join(beam.CombineFn):
    """Concatenate columns of hashes and tokens, in any order."""

    def create_accumulator(self) -> list[np.ndarray]:
        return []

    def add_input(self, parts: list[np.ndarray], item: np.ndarray) -> list[np.ndarray]:
        parts.append(item)
        return parts

    def merge_accumulators(self, lists: Iterable[list[np.ndarray]]) -> list[np.ndarray]:
        return [part for parts in lists for part in parts]

    def extract_output(self, parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts, axis=1)
