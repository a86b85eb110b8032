"""Measures of a tokenizer on a text: sums over words and tokens, and metrics computed from them.

Text is measured in chunks between white space. Each distinct chunk is tokenized once, and weighted
by its count. Tokenizers with superwords, which cross chunks, are measured on complete texts.
docs/guides/compare.md has the definitions with their sources.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError
from wordpiece_core.option_types import MOST_COUNT
from wordpiece_core.symbols import BYTES, SPACE_MARK
from wordpiece_core.tokenizer.library import LibraryEncoder, no_token
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.tokenizer import Tokenizer
from wordpiece_core.tokenizer.word_pieces import word_pieces

RENYI_ALPHA = 2.5  # predicts the quality of translations best (Zouhar et al. 2023)
RARE = 10  # tokens with fewer uses are rare
TABLE = ["word", "count"]  # columns of a word table
SUPERWORD = re.compile("[^\\sĠ▁ĊĉčċČ][Ġ▁]")  # a space after another character
USES = pa.schema([("token", pa.uint32()), ("count", pa.int64())])
CHUNKS_AT_ONCE = 65_536  # chunks that are tokenized together


@dataclass(frozen=True)
class Measures:
    """Sums over a tokenized text. `+` adds the sums of another text with the same tokenizer.
    Characters are counted without white space.

    >>> tok = Tokenizer(["[UNK]", "hug", "##s"])
    >>> measures = measure(tok, ["hugs", "hug", "pug"], [3, 4, 1])
    >>> measures.words, measures.tokens, measures.tokens_per_word
    (8, 11, 1.375)
    >>> measures.whole_words, measures.continued_words, measures.unknown_words
    (4, 3, 1)
    """

    vocab_size: int
    """Number of tokens of the tokenizer."""
    words: int = 0
    """Words by BERT's rules: split at white space, and around punctuation and CJK characters. The
    tokenizer does not change their number."""
    tokens: int = 0
    """Tokens, without special tokens around texts."""
    characters: int = 0
    whole_words: int = 0
    """Words that are one token other than [UNK]. A token for two words makes neither complete."""
    continued_words: int = 0
    """Words of two tokens or more."""
    unknown_words: int = 0
    """Words with an [UNK]."""
    dropped_characters: int = 0
    """Characters without a token, or with only [UNK]."""
    uses: pa.RecordBatch = field(default_factory=lambda: pa.RecordBatch.from_pylist([], USES))
    """Used tokens: `token: uint32` (the id, in order) and `count: int64`."""
    text_bytes: int | None = None
    """Bytes of the text in UTF-8, including white space. None if only its chunks are known."""

    def __add__(self, other: Measures) -> Measures:
        """Return the sums over both texts. Raises InputError above 2^63 - 1."""
        if self.vocab_size != other.vocab_size:
            raise ValueError("the measures are of different tokenizers")
        sums = {name: getattr(self, name) + getattr(other, name) for name in SUMS}
        if max(sums.values()) > MOST_COUNT:
            raise InputError("counts add up to more than 2^63 - 1; scale them down")
        # No count exceeds `tokens`, the sum of all counts.
        text_bytes = None
        if self.text_bytes is not None and other.text_bytes is not None:
            text_bytes = self.text_bytes + other.text_bytes
        uses = _added(self.uses, other.uses)
        return Measures(self.vocab_size, **sums, uses=uses, text_bytes=text_bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measures) and all(
            getattr(self, f.name) == getattr(other, f.name) for f in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can hold."""
        return vars(self) | {"uses": self.uses.to_pydict()}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Measures:
        """Return the measures from the result of `to_dict`."""
        return cls(**{**value, "uses": pa.RecordBatch.from_pydict(value["uses"], USES)})

    @property
    def tokens_per_word(self) -> float | None:
        """Also called fertility. This and the other metrics are None without a divisor."""
        return _ratio(self.tokens, self.words)

    @property
    def characters_per_token(self) -> float | None:
        return _ratio(self.characters, self.tokens)

    @property
    def bytes_per_token(self) -> float | None:
        """The loss per token of a model in bits, divided by this, is its bits per byte."""
        return None if self.text_bytes is None else _ratio(self.text_bytes, self.tokens)

    @property
    def tokens_per_byte(self) -> float | None:
        return None if self.text_bytes is None else _ratio(self.tokens, self.text_bytes)

    @property
    def whole_share(self) -> float | None:
        """Share of complete words; the next two likewise."""
        return _ratio(self.whole_words, self.words)

    @property
    def continued_share(self) -> float | None:
        return _ratio(self.continued_words, self.words)

    @property
    def unknown_share(self) -> float | None:
        return _ratio(self.unknown_words, self.words)

    @property
    def dropped_share(self) -> float | None:
        """Share of dropped characters."""
        return _ratio(self.dropped_characters, self.characters)

    @property
    def used_tokens(self) -> int:
        """Number of distinct used tokens."""
        return len(self.uses)

    @property
    def rare_tokens(self) -> int:
        """Number of distinct tokens that are used fewer than 10 times."""
        return pc.sum(pc.less(self.uses["count"], RARE)).as_py() or 0

    @property
    def renyi_efficiency(self) -> float | None:
        """Rényi entropy of the tokens, of order 2.5, as a share of the maximum for this vocabulary
        size: 1 if all tokens are used equally often. None without tokens, and for a vocabulary of
        one token."""
        if not self.tokens or self.vocab_size < 2:
            return None
        # `fsum` rounds once, so the order of the tokens does not matter.
        powers = math.fsum(count * count * math.sqrt(count) for count in self._counts())
        total = float(self.tokens)
        share = powers / (total * total * math.sqrt(total))
        return math.log(share) / (1 - RENYI_ALPHA) / math.log(self.vocab_size) + 0.0  # no -0.0

    def _counts(self) -> list[float]:
        counts: list[float] = pc.cast(self.uses["count"], pa.float64(), safe=False).to_pylist()
        return counts


SUMS = tuple(f.name for f in fields(Measures) if f.name not in ("vocab_size", "uses", "text_bytes"))
"""Names of the sums in the order of the kernel."""


def measure(
    tokenizer: Tokenizer, chunks: Any, counts: Any, *, complete_texts: bool = False
) -> Measures:
    """Measure a tokenizer on chunks of text.

    Args:
        chunks: Text between white space, or words: an Arrow array of strings, or a list.
        counts: Number of times that each chunk occurs, int64.
        complete_texts: True if the chunks are complete texts.

    Raises InputError for a null chunk, a null or negative count, and sums above 2^63 - 1.

    >>> measures = measure(Tokenizer(["[UNK]", "hug", "##s"]), ["hugs", "hug"], [3, 4])
    >>> measures.words, measures.tokens
    (7, 10)
    """
    batch = pa.record_batch([_array(chunks, pa.string()), _array(counts, pa.int64())], TABLE)
    sums = _kernel.Measurer(vocab_size=len(tokenizer), unk_id=tokenizer.unk_id)
    encoder = tokenizer.kernel
    for start in range(0, len(batch), CHUNKS_AT_ONCE):
        some = batch.slice(start, CHUNKS_AT_ONCE)
        if isinstance(encoder, LibraryEncoder):
            encoder.add_to(sums, some)
        else:
            if not complete_texts:
                some = some.set_column(0, TABLE[0], as_in_text(tokenizer, some["word"]))
            sums.add(some, encoder)
    found, uses = sums.take()
    named = dict(zip(SUMS, found, strict=True))
    return Measures(tokenizer.vocab_size, **named, uses=pa.record_batch(uses).cast(USES))


def superwords(spec: TokenizerSpec) -> list[str]:
    """Return the tokens that cross a space between words, in id order."""
    if spec.word_boundary not in (BYTES, SPACE_MARK) and spec.library is None:
        return []
    added = {*spec.special_tokens, *(token.content for token in spec.added_tokens)}
    return [token for token in spec.vocab if SUPERWORD.search(token) and token not in added]


def as_in_text(tokenizer: Tokenizer, chunks: pa.Array) -> pa.Array:
    """Return chunks as they occur in a text: after a space, if the tokenizer expects one at the
    beginning of a word. (Tokenizers of sentencepiece add it themselves.)"""
    if tokenizer.spec.word_boundary != BYTES:
        return chunks
    spaced = pc.binary_join_element_wise(pa.scalar(" ", chunks.type), chunks, "")
    return pc.if_else(pc.starts_with(chunks, " "), chunks, spaced)


def tokens_by_id(tokenizer: Tokenizer) -> dict[int, str]:
    """Return the tokens in the notation of BERT's vocabularies: with `##` if they continue a
    word."""
    pieces = enumerate(word_pieces(tokenizer.spec))
    if tokenizer.spec.library is None:
        return dict(pieces)
    return {i: piece for i, piece in pieces if tokenizer.vocab[i] != no_token(i)}


def tokens_of(tokenizer: Tokenizer) -> list[str]:
    """Return these tokens in id order."""
    return [*tokens_by_id(tokenizer).values()]


def overlap(vocab: Collection[str], first: Collection[str]) -> float | None:
    """Return the share of the tokens of a vocabulary that the first vocabulary also has."""
    tokens, others = {*vocab}, {*first}
    return _ratio(len(tokens & others), len(tokens))


def parity(tokens_per_word: dict[Any, float | None]) -> dict[Any, float | None]:
    """Return the tokens per word of each group, divided by the value of the best group: 1 for the
    best. `groups`: measures of one tokenizer."""
    best = min((share for share in tokens_per_word.values() if share), default=None)
    return {
        group: share / best if share and best else None for group, share in tokens_per_word.items()
    }


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _added(uses: pa.RecordBatch, others: pa.RecordBatch) -> pa.RecordBatch:
    if not len(uses) or not len(others):
        return uses if len(uses) else others
    both = pa.Table.from_batches([uses, others]).group_by("token").aggregate([("count", "sum")])
    both = both.sort_by("token").rename_columns({"count_sum": "count"}).select(USES.names)
    return pa.record_batch([c.combine_chunks() for c in both.columns], schema=USES)
