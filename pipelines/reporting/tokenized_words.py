"""The tokens of the words of a word table: totals by kind of word, and lists of notable words.

Results of parts of a table add up to those of the table, in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import starmap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reporting.scripts import are_mixed, have_digits
from wordpiece_core import Tokenizer
from wordpiece_core.measures import as_in_text, tokens_of
from wordpiece_core.tokenizer.library import LibraryEncoder

LISTED = 20  # words of a list
TOKENIZERS = 8  # whose tokens are kept
FREQUENT = 1_000  # words of several tokens, the most frequent, among which to look for most tokens
SAMPLED = 30  # rare words that are shown
FOUR_OR_MORE = 4  # tokens of a word; more are counted together
ALL, RARE, DIGITS, MIXED = "all", "rare", "digits", "mixed"  # kinds of words
SEVERAL, COST, UNKNOWN, TECHNICAL, SAMPLE = "several", "cost", "unknown", "technical", "sample"
LENGTHS = {SEVERAL: FREQUENT, SAMPLE: SAMPLED}  # of lists that are not of `LISTED` words


@dataclass(frozen=True, order=True)
class TokenizedWord:
    """A word in a list. `key`: what the list is ordered by, before the word. `others`: its tokens
    in another tokenizer, if the list compares two."""

    key: int
    word: str
    count: int = field(compare=False)
    tokens: tuple[str, ...] = field(compare=False)
    others: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class WordStatistics:
    """lists: by name, each of a bounded number of words, in order. `kinds`: totals by kind of
    word: "distinct" words, "words", their "tokens", "unknown" words; and by a number of tokens up
    to `FOUR_OR_MORE`, the words with that number. All but "distinct" count every occurrence."""

    kinds: dict[str, Counter[str | int]] = field(default_factory=dict)
    lists: dict[str, list[TokenizedWord]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        kinds = {name: [*totals.items()] for name, totals in self.kinds.items()}
        lists = {
            name: [[*vars(word).values()] for word in words] for name, words in self.lists.items()
        }
        return {"kinds": kinds, "lists": lists}

    @classmethod
    def of_plain(cls, value: dict[str, Any]) -> WordStatistics:
        """From what `plain` gives."""
        kinds = {name: Counter(dict(map(tuple, pairs))) for name, pairs in value["kinds"].items()}
        lists = {name: [*starmap(_word, words)] for name, words in value["lists"].items()}
        return cls(kinds, lists)

    @property
    def with_most_tokens(self) -> list[TokenizedWord]:
        """Of the most frequent words of several tokens, those with the most tokens."""
        words = self.lists.get(SEVERAL, [])
        return sorted(words, key=lambda row: (-len(row.tokens), row.key, row.word))[:LISTED]


def _word(key: int, word: str, count: int, tokens: list[str], others: list[str]) -> TokenizedWord:
    return TokenizedWord(key, word, count, tuple(tokens), tuple(others))


def combined(parts: Iterable[WordStatistics]) -> WordStatistics:
    """The statistics of a table, from those of its parts."""
    kinds: dict[str, Counter[str | int]] = {}
    lists: dict[str, list[TokenizedWord]] = {}
    for part in parts:
        for name, totals in part.kinds.items():
            kinds.setdefault(name, Counter()).update(totals)
        for name, words in part.lists.items():
            lists[name] = sorted([*lists.get(name, []), *words])[: LENGTHS.get(name, LISTED)]
    return WordStatistics(kinds, lists)


@dataclass(frozen=True)
class RareWords:
    """Which words of a table are rare: those that occur at most `most_count` times. `ranks`: the
    places in the table of those that are shown."""

    most_count: int
    ranks: tuple[int, ...]


def tokenize_words(
    words: pa.RecordBatch, first_rank: int, tokenizers: Sequence[Tokenizer], rare: RareWords
) -> WordStatistics:
    """The statistics of a part of a table for the first tokenizer, and where the others differ.
    `first_rank`: how many words of the table come before."""
    ours, *others = (_tokenized(tokenizer, words["word"]) for tokenizer in tokenizers)
    count = words["count"]
    table = pa.table(
        {
            "word": words["word"].cast(pa.string()),
            "count": count,
            "tokens": ours.tokens,
            "others": pa.nulls(len(words), pa.list_(pa.string())),
        }
    )
    rank = pa.array(range(first_rank, first_rank + len(words)), pa.int64())
    digits, mixed = have_digits(table["word"].combine_chunks()), are_mixed(words["word"])
    several, known = pc.greater(ours.number, 1), pc.invert(ours.unknown)
    shown = pc.is_in(rank, value_set=pa.array(rare.ranks, pa.int64()))
    technical = pc.and_(pc.or_(digits, mixed), pc.and_(known, several))
    lists = {
        SEVERAL: _largest(SEVERAL, table, several, count),
        COST: _largest(COST, table, several, pc.multiply(count, pc.subtract(ours.number, 1))),
        UNKNOWN: _largest(UNKNOWN, table, ours.unknown, count),
        TECHNICAL: _largest(TECHNICAL, table, technical, count),
        SAMPLE: _largest(SAMPLE, table, shown, count),
    }
    for i, other in enumerate(others):
        # Words with an [UNK] are left out: it is few tokens for what it loses.
        both = pc.and_(known, pc.invert(other.unknown))
        more = pc.multiply(count, pc.subtract(ours.number, other.number))
        compared = table.set_column(table.schema.get_field_index("others"), "others", other.tokens)
        for name, by in ((fewer_there(i), more), (fewer_here(i), pc.negate(more))):
            lists[name] = _largest(name, compared, pc.and_(both, pc.greater(by, 0)), by)
    every = pa.repeat(True, len(words))
    is_rare = pc.less_equal(count, rare.most_count)
    kinds = {ALL: every, RARE: is_rare, DIGITS: digits, MIXED: mixed}
    numbers = pa.table({"count": count, "number": ours.number, "unknown": ours.unknown})
    return WordStatistics({k: _totals(numbers.filter(mask)) for k, mask in kinds.items()}, lists)


def fewer_there(other: int) -> str:
    """The name of the list of words for which another tokenizer needs fewer tokens."""
    return f"fewer there {other}"


def fewer_here(other: int) -> str:
    """The name of the list of words for which it needs more tokens."""
    return f"fewer here {other}"


@dataclass(frozen=True)
class _Tokenized:
    """Of each word: its tokens, their number, and whether one of them is the unknown token."""

    tokens: pa.ListArray
    number: pa.Array
    unknown: pa.Array


def _tokenized(tokenizer: Tokenizer, words: pa.Array) -> _Tokenized:
    tokens, unknown_token = tokens_of_words(tokenizer, words)
    unknown = pa.repeat(False, len(words))
    if unknown_token is not None:
        is_unknown = pc.equal(tokens.flatten(), unknown_token)
        rows = pc.unique(pc.list_parent_indices(tokens).filter(is_unknown))
        unknown = pc.is_in(pa.array(range(len(words)), pa.int64()), value_set=rows)
    return _Tokenized(tokens, tokens.value_lengths().cast(pa.int64()), unknown)


def tokens_of_words(tokenizer: Tokenizer, words: pa.Array) -> tuple[pa.ListArray, str | None]:
    """The tokens of each word as in a text, behind a space; and the tokenizer's unknown token if it
    has one. Tokens are written as those of WordPiece, with `##` where they continue a word."""
    kind = pa.list_(pa.string())
    unknown, encoder = tokenizer.spec.tokens_by_role.get("unk_token"), tokenizer.kernel
    if isinstance(encoder, LibraryEncoder):
        return pa.array(encoder.tokens_of_chunks(words.to_pylist()), kind), unknown
    ids = tokenizer.encode(as_in_text(tokenizer, words), add_special_tokens=False)
    tokens = _written(tokenizer).take(ids.values)
    return pa.ListArray.from_arrays(ids.offsets, tokens, kind), unknown


@lru_cache(TOKENIZERS)
def _written(tokenizer: Tokenizer) -> pa.Array:
    """All tokens of a tokenizer, as the page shows them. Each part of a table needs them."""
    return pa.array(tokens_of(tokenizer), pa.string())


def _largest(name: str, table: pa.Table, mask: pa.Array, by: pa.Array) -> list[TokenizedWord]:
    """The rows of the mask with the largest values; of equal ones, those whose word comes first."""
    keys = pa.table({"by": by, "word": table["word"], "row": range(len(table))}).filter(mask)
    if not len(keys):
        return []
    order = [("by", "descending"), ("word", "ascending")]
    number = min(LENGTHS.get(name, LISTED), len(keys))
    keys = keys.take(pc.select_k_unstable(keys, number, order))
    rows = table.take(keys["row"]).append_column("by", keys["by"]).to_pylist()
    return sorted(
        TokenizedWord(
            -row["by"], row["word"], row["count"], tuple(row["tokens"]), tuple(row["others"] or ())
        )
        for row in rows
    )


def _totals(table: pa.Table) -> Counter[str | int]:
    count, number = table["count"], table["number"]
    totals: Counter[str | int] = Counter()
    totals["distinct"] = len(table)
    totals["words"] = _sum(count)
    totals["tokens"] = _sum(pc.multiply(count, number))
    totals["unknown"] = _sum(count.filter(table["unknown"]))
    for tokens in range(1, FOUR_OR_MORE + 1):
        compare = pc.equal if tokens < FOUR_OR_MORE else pc.greater_equal
        totals[tokens] = _sum(count.filter(compare(number, tokens)))
    return totals


def _sum(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0
