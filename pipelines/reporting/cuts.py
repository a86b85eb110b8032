"""How words of a word table are cut: sums for kinds of words, and lists of words that stand out.

All of it adds up: what is found in parts of a table gives what is in the table, in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reporting.scripts import are_mixed, have_digits

LISTED = 20  # words of a list
FREQUENT = 1_000  # of the words that are cut, the commonest so many are called frequent
SAMPLED = 30  # rare words that are shown
MOST_PIECES = 8  # of a word, apart; more are counted together
ALL, RARE, DIGITS, MIXED = "all", "rare", "digits", "mixed"
CUT, COST, UNKNOWN, TECHNICAL, SAMPLE = "cut", "cost", "unknown", "technical", "sample"
LENGTHS = {CUT: FREQUENT, SAMPLE: SAMPLED}  # of lists that are not of `LISTED` words


class Cutter(Protocol):
    """What cuts words into tokens."""

    def cut(self, words: pa.Array) -> pa.Array:
        """The tokens of each word, as lists of strings."""

    @property
    def unknown(self) -> str | None:
        """The token for what is not known, if there is one."""


@dataclass(frozen=True, order=True)
class CutWord:
    """A word in a list. `key`: what the list is ordered by, before the word. `pieces`: its tokens.
    `others`: its tokens by another tokenizer, if the list is about both."""

    key: tuple[int, ...]
    word: str
    count: int = field(compare=False)
    pieces: tuple[str, ...] = field(compare=False)
    others: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Sums:
    """Sums over words of a kind. `distinct`: how many there are; the others count each word as
    often as it occurs. `of_pieces`: words by the number of their tokens, at most `MOST_PIECES`."""

    distinct: int = 0
    words: int = 0
    tokens: int = 0
    unknown: int = 0
    whole: int = 0
    of_pieces: Counter[int] = field(default_factory=Counter)

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.distinct + other.distinct,
            self.words + other.words,
            self.tokens + other.tokens,
            self.unknown + other.unknown,
            self.whole + other.whole,
            self.of_pieces + other.of_pieces,
        )


@dataclass(frozen=True)
class Cuts:
    """`sums`: by kind of words. `lists`: by name, each of a bounded number of words, in order."""

    sums: dict[str, Sums] = field(default_factory=dict)
    lists: dict[str, list[CutWord]] = field(default_factory=dict)

    def __add__(self, other: Cuts) -> Cuts:
        return added([self, other])

    @property
    def in_most_pieces(self) -> list[CutWord]:
        """Of the commonest words that are cut, those in the most pieces."""
        words = self.lists.get(CUT, [])
        return sorted(words, key=lambda cut: (-len(cut.pieces), cut.key, cut.word))[:LISTED]

    def plain(self) -> dict[str, Any]:
        """The same in values that JSON can hold."""
        return {
            "sums": {name: vars(sums) for name, sums in self.sums.items()},
            "lists": {name: [*map(vars, words)] for name, words in self.lists.items()},
        }

    @classmethod
    def of_plain(cls, value: dict[str, Any]) -> Cuts:
        """From what `plain` gives, as JSON gives it back: its keys are strings."""

        def sums(fields: dict[str, Any]) -> Sums:
            pieces = fields["of_pieces"].items()
            return Sums(**fields | {"of_pieces": Counter({int(n): of for n, of in pieces})})

        def word(fields: dict[str, Any]) -> CutWord:
            lists = {name: tuple(fields[name]) for name in ("key", "pieces", "others")}
            return CutWord(**fields | lists)

        return cls(
            {name: sums(fields) for name, fields in value["sums"].items()},
            {name: [*map(word, words)] for name, words in value["lists"].items()},
        )


def added(all_cuts: Iterable[Cuts]) -> Cuts:
    """What parts of a table come to."""
    sums: dict[str, Sums] = {}
    lists: dict[str, list[CutWord]] = {}
    for cuts in all_cuts:
        for name, of_kind in cuts.sums.items():
            sums[name] = sums.get(name, Sums()) + of_kind
        for name, words in cuts.lists.items():
            lists[name] = sorted([*lists.get(name, []), *words])[: LENGTHS.get(name, LISTED)]
    return Cuts(sums, lists)


@dataclass(frozen=True)
class Rare:
    """Which words of a table are rare. `most_count`: those that occur at most so often. `ranks`:
    those of them that are shown, by their place in the table."""

    most_count: int
    ranks: tuple[int, ...]


def cut_words(
    words: pa.RecordBatch, first_rank: int, cutters: Sequence[Cutter], rare: Rare
) -> Cuts:
    """How the words of a part of a table are cut by the first cutter, and where the others differ.
    `first_rank`: how many words of the table come before."""
    cutter, *others = cutters
    tokens, number, unknown = _cut(cutter, words["word"])
    count = words["count"]
    rank = pa.array(range(first_rank, first_rank + len(words)), pa.int64())
    extra = pc.multiply(count, pc.subtract(number, 1))
    table = pa.table(
        {
            "word": words["word"].cast(pa.string()),
            "count": count,
            "number": number,
            "extra": extra,
            "rank": rank,
            "row": pa.array(range(len(words)), pa.int64()),
        }
    )
    digits, mixed = have_digits(table["word"].combine_chunks()), are_mixed(words["word"])
    is_rare = pc.less_equal(count, rare.most_count)
    known, is_cut = pc.invert(unknown), pc.greater(number, 1)
    kinds = {ALL: None, RARE: is_rare, DIGITS: digits, MIXED: mixed}
    shown = pc.is_in(rank, value_set=pa.array(rare.ranks, pa.int64()))
    technical = pc.and_(pc.or_(digits, mixed), pc.and_(known, is_cut))
    chosen = {
        CUT: (is_cut, ["count"]),
        COST: (is_cut, ["extra"]),
        UNKNOWN: (unknown, ["count"]),
        TECHNICAL: (technical, ["count"]),
        SAMPLE: (shown, ["count"]),
    }
    lists = {name: _best(name, table, *of, tokens) for name, of in chosen.items()}
    for i, other in enumerate(others):
        lists |= _differences(i, table, tokens, known, _cut(other, words["word"]))
    return Cuts({name: _sums(table, unknown, kind) for name, kind in kinds.items()}, lists)


def better_there(other: int) -> str:
    """The name of the list of words for which another tokenizer has fewer tokens."""
    return f"better there {other}"


def better_here(other: int) -> str:
    """The name of the list of words for which it has more tokens."""
    return f"better here {other}"


Cut = tuple[pa.Array, pa.Array, pa.Array]
"""Of each word: its tokens, their number, and whether one is that for the unknown."""


def _cut(cutter: Cutter, words: pa.Array) -> Cut:
    tokens = cutter.cut(words)
    number = tokens.value_lengths().cast(pa.int64())
    unknown = pa.repeat(False, len(words))
    if cutter.unknown is not None:
        is_unknown = pc.equal(tokens.flatten(), cutter.unknown)
        rows = pc.unique(pc.list_parent_indices(tokens).filter(is_unknown))
        unknown = pc.is_in(pa.array(range(len(words)), pa.int64()), value_set=rows)
    return tokens, number, unknown


def _best(
    name: str,
    table: pa.Table,
    mask: pa.Array,
    keys: Sequence[str],
    tokens: pa.Array,
    others: pa.Array | None = None,
) -> list[CutWord]:
    """Those rows of the mask with the largest keys; of equal ones, those whose word comes first."""
    order = [(key, "descending") for key in keys] + [("word", "ascending")]
    rows = table.filter(mask)
    if not len(rows):
        return []
    best = rows.take(pc.select_k_unstable(rows, min(LENGTHS.get(name, LISTED), len(rows)), order))
    at = best["row"]
    pieces = tokens.take(at).to_pylist()
    there = others.take(at).to_pylist() if others is not None else [()] * len(best)
    return sorted(
        CutWord(tuple(-row[key] for key in keys), row["word"], row["count"], tuple(a), tuple(b))
        for row, a, b in zip(best.to_pylist(), pieces, there, strict=True)
    )


def _differences(
    i: int, table: pa.Table, tokens: pa.Array, known: pa.Array, other: Cut
) -> dict[str, list[CutWord]]:
    """The words that cost the most more tokens here than there, and there than here. Words that one
    of the two does not know are left out: one [UNK] is few tokens."""
    there, number, unknown = other
    both = pc.and_(known, pc.invert(unknown))
    more = pc.multiply(table["count"], pc.subtract(table["number"], number))
    lists = {}
    for name, of in ((better_there(i), more), (better_here(i), pc.negate(more))):
        mask = pc.and_(both, pc.greater(of, 0))
        lists[name] = _best(name, table.append_column("more", of), mask, ["more"], tokens, there)
    return lists


def _sums(table: pa.Table, unknown: pa.Array, mask: pa.Array | None) -> Sums:
    if mask is not None:
        table, unknown = table.filter(mask), unknown.filter(mask)
    count, number = table["count"], table["number"]
    apart = pc.min_element_wise(number, pa.scalar(MOST_PIECES, pa.int64()))
    grouped = pa.table({"pieces": apart, "count": count}).group_by("pieces")
    of_pieces = grouped.aggregate([("count", "sum")]).to_pylist()
    whole = pc.and_(pc.equal(number, 1), pc.invert(unknown))
    return Sums(
        distinct=len(table),
        words=_total(count),
        tokens=_total(pc.multiply(count, number)),
        unknown=_total(count.filter(unknown)),
        whole=_total(count.filter(whole)),
        of_pieces=Counter({row["pieces"]: row["count_sum"] for row in of_pieces}),
    )


def _total(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0
