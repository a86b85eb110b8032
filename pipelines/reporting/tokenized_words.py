"""Lists of notable words of a word table: words with many tokens, and words for which tokenizers
differ. Lists of parts of a table combine to the lists of the table, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import starmap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import Tokenizer
from wordpiece_core.measures import as_in_text, tokens_of
from wordpiece_core.tokenizer.library import LibraryEncoder
from wordpiece_core.training.exact_sums import EXACT, EXACT_LENGTH

LISTED = 20  # words of a list
TOKENIZERS = 8  # whose tokens are kept
FREQUENT = 1_000  # words of several tokens, the most frequent, among which to look for most tokens
SEVERAL, COST, UNKNOWN = "several", "cost", "unknown"
LENGTHS = {SEVERAL: FREQUENT}  # length of lists that do not have `LISTED` words


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
class NotableWords:
    """Lists of words by name, each of a bounded length and in order."""

    lists: dict[str, list[TokenizedWord]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the lists as values that JSON can hold."""
        return {
            name: [[*vars(word).values()] for word in words] for name, words in self.lists.items()
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> NotableWords:
        """Make the lists from the result of `plain`."""
        return cls({name: [*starmap(_word, words)] for name, words in value.items()})

    @property
    def with_most_tokens(self) -> list[TokenizedWord]:
        """The words with the most tokens, among the most frequent words of several tokens."""
        words = self.lists.get(SEVERAL, [])
        return sorted(words, key=lambda row: (-len(row.tokens), row.key, row.word))[:LISTED]


def _word(key: int, word: str, count: int, tokens: list[str], others: list[str]) -> TokenizedWord:
    return TokenizedWord(key, word, count, tuple(tokens), tuple(others))


def combined(parts: Iterable[NotableWords]) -> NotableWords:
    """Combine the lists of parts of a table."""
    lists: dict[str, list[TokenizedWord]] = {}
    for part in parts:
        for name, words in part.lists.items():
            lists[name] = sorted([*lists.get(name, []), *words])[: LENGTHS.get(name, LISTED)]
    return NotableWords(lists)


def tokenize_words(words: pa.RecordBatch, tokenizers: Sequence[Tokenizer]) -> NotableWords:
    """Return the notable words of a part of a table for the first tokenizer, and the words for
    which the other tokenizers differ."""
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
    several, known = pc.greater(ours.number, 1), pc.invert(ours.unknown)
    one = pa.scalar(1, pa.int32())
    lists = {
        SEVERAL: _largest(SEVERAL, table, several, count),
        COST: _largest(COST, table, several, _product(count, pc.subtract(ours.number, one))),
        UNKNOWN: _largest(UNKNOWN, table, ours.unknown, count),
    }
    for i, other in enumerate(others):
        # Words with an [UNK] are left out: it is few tokens for what it loses.
        both = pc.and_(known, pc.invert(other.unknown))
        more = _product(count, pc.subtract(ours.number, other.number))
        compared = table.set_column(table.schema.get_field_index("others"), "others", other.tokens)
        for name, by in ((fewer_there(i), more), (fewer_here(i), pc.negate(more))):
            lists[name] = _largest(name, compared, pc.and_(both, pc.greater(by, 0)), by)
    return NotableWords(lists)


def _product(count: pa.Array, number: pa.Array) -> pa.Array:
    """Multiply counts by numbers of tokens. Products may exceed int64."""
    return pc.multiply(count.cast(EXACT), number.cast(EXACT_LENGTH))


def fewer_there(other: int) -> str:
    """The name of the list of words for which another tokenizer needs fewer tokens."""
    return f"fewer there {other}"


def fewer_here(other: int) -> str:
    """The name of the list of words for which it needs more tokens."""
    return f"fewer here {other}"


@dataclass(frozen=True)
class _Tokenized:
    """The tokens of words, their number, and True for each word with the unknown token."""

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
    return _Tokenized(tokens, tokens.value_lengths(), unknown)


def tokens_of_words(tokenizer: Tokenizer, words: pa.Array) -> tuple[pa.ListArray, str | None]:
    """Return the tokens of each word after a space, and the unknown token if the tokenizer has one.
    Tokens that continue a word begin with `##`, as in WordPiece."""
    kind = pa.list_(pa.string())
    unknown, encoder = tokenizer.spec.roles.get("unk_token"), tokenizer.kernel
    if isinstance(encoder, LibraryEncoder):
        return pa.array(encoder.tokens_of_chunks(words.to_pylist()), kind), unknown
    ids = tokenizer.encode_batch(as_in_text(tokenizer, words), add_special_tokens=False)
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
            -int(row["by"]),
            row["word"],
            row["count"],
            tuple(row["tokens"]),
            tuple(row["others"] or ()),
        )
        for row in rows
    )
