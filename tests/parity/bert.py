"""Compare the rows of the kernel with `tokenizers`, in every column: on a corpus with published
vocabularies, and on each code point in contexts of every kind."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.oracle import SPECIAL_TOKENS
from wordpiece_core import Tokenizer
from wordpiece_core.options import ENCODING_COLUMNS, EncodingOptions, TextOptions

from .random_cases import peer, set_options, wordpiece

EVERYTHING = EncodingOptions(columns=ENCODING_COLUMNS)
BATCH = 1000

OPTIONS = (
    *(
        TextOptions(lowercase=lower, strip_accents=strip, handle_chinese_chars=chinese)
        for lower, strip, chinese in product((True, False), (None, True, False), (True, False))
    ),
    TextOptions(clean_text=False),
    TextOptions(lowercase=False, clean_text=False),
    TextOptions(pre_tokenizer="whitespace"),
    TextOptions(lowercase=False, pre_tokenizer="whitespace", clean_text=False),
)
TEXT_OPTIONS = tuple(options.resolve() for options in OPTIONS)

# Contexts of a code point, {0}.
CONTEXTS = {
    "alone": "{0}",
    "between letters": "a{0}b",
    "doubled": "{0}{0}",
    "after a letter": "é{0}",
    "after a digit": "1{0}",
    "after punctuation": "!{0}",
    "after a CJK character": "中{0}",
    "after a mark": "e\u0301{0}",
    "after a mark that is kept": "e\U0001d165{0}",
    "between marks": "e\u0323\u0344{0}\u0345\u0301",
    "after a control character": "a\x00{0}\u200db",
    "after a special token": "[SEP]{0}",
    "before a special token": "{0}[MASK]",
    "in a special token": "[MA{0}SK]",
    "before Hangul": "{0}각\u11a8",
}
NEIGHBOURS = "abeé1!中각\u0301\u0323\u0344\u0345\U0001d165\u11a8[]MASKEP"
POINTS_A_TEXT = 8


class Pair:
    """A tokenizer in the kernel, and its copy in `tokenizers`.

    With `hides`, special tokens that appear in a text are ordinary text.
    """

    def __init__(self, vocab: list[str], text: TextOptions, hides: bool = False) -> None:
        self.kernel = Tokenizer(vocab, **text.values())
        self.peer = peer(
            wordpiece(vocab, **text.values()),
            replace(EVERYTHING, special_tokens_in_text="text" if hides else "parse"),
        )
        self.hides = hides

    def differing(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        options: EncodingOptions = EVERYTHING,
    ) -> list[int]:
        """Return the numbers of texts whose rows differ in any column."""
        assert self.hides == (options.special_tokens_in_text == "text")
        set_options(self.peer, options)
        inputs = texts if pairs is None else list(zip(texts, pairs, strict=True))
        found = self.peer.encode_batch(inputs, add_special_tokens=options.add_special_tokens)
        rows = [(i, row) for i, first in enumerate(found) for row in each_row(first, options)]
        theirs = peer_columns([row for _, row in rows])
        batch = self.kernel.encode_table(texts, pairs, options=options)
        sources = np.array([i for i, _ in rows])
        if batch.source_rows is not None and batch.source_rows.to_pylist() != sources.tolist():
            return list(range(len(texts)))
        wrong: set[int] = set()
        for name, (lengths, values) in theirs.items():
            mine = kernel_column(batch.table.column(name))
            wrong.update(sources[differing_rows(*mine, lengths, values)].tolist())
        return sorted(wrong)


def each_row(row: Any, options: EncodingOptions) -> Iterator[Any]:
    """Yield a row of `tokenizers`, and its overflowing rows."""
    yield row
    if options.stride is not None:
        yield from row.overflowing


Column = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def peer_columns(rows: Sequence[Any]) -> dict[str, Column]:
    """Return the length of each row, and all values in one array, for each column; None is -1."""
    lengths = np.array([len(row.ids) for row in rows])
    total = int(lengths.sum())

    def flat(name: str) -> np.ndarray[Any, Any]:
        values = chain.from_iterable(getattr(row, name) for row in rows)
        return np.fromiter(values, np.int64, total)

    offsets = chain.from_iterable(chain.from_iterable(row.offsets) for row in rows)
    words = (-1 if word is None else word for row in rows for word in row.word_ids)
    columns = {
        "input_ids": flat("ids"),
        "attention_mask": flat("attention_mask"),
        "token_type_ids": flat("type_ids"),
        "special_tokens_mask": flat("special_tokens_mask"),
        "offset_mapping": np.fromiter(offsets, np.int64, 2 * total).reshape(-1, 2),
        "word_ids": np.fromiter(words, np.int64, total),
    }
    counts = np.array([sum(row.attention_mask) for row in rows], np.int64)
    ones = np.ones(len(rows), np.int64)
    return {name: (lengths, column) for name, column in columns.items()} | {
        "num_tokens": (ones, counts)
    }


def kernel_column(column: pa.ChunkedArray) -> Column:
    """Return a column in the form of `peer_columns`."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    if not pa.types.is_list(array.type):
        return np.ones(len(array), np.int64), array.to_numpy(zero_copy_only=False)
    lengths = array.value_lengths().to_numpy(zero_copy_only=False)
    values = array.flatten()
    if pa.types.is_fixed_size_list(values.type):
        return lengths, values.flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
    return lengths, values.fill_null(-1).to_numpy(zero_copy_only=False)


def differing_rows(
    lengths: np.ndarray[Any, Any],
    values: np.ndarray[Any, Any],
    other_lengths: np.ndarray[Any, Any],
    other_values: np.ndarray[Any, Any],
) -> list[int]:
    """Return the numbers of rows that differ; all, if their numbers differ."""
    if np.array_equal(lengths, other_lengths) and np.array_equal(values, other_values):
        return []
    if len(lengths) != len(other_lengths):
        return list(range(len(other_lengths)))
    ends, other_ends = np.cumsum(lengths), np.cumsum(other_lengths)
    return [
        i
        for i in range(len(lengths))
        if not np.array_equal(
            values[ends[i] - lengths[i] : ends[i]],
            other_values[other_ends[i] - other_lengths[i] : other_ends[i]],
        )
    ]


def batches(texts: Sequence[str], size: int = BATCH) -> Iterator[list[str]]:
    for start in range(0, len(texts), size):
        yield list(texts[start : start + size])


# --- Code points ----------------------------------------------------------------------------------


def all_points() -> Iterator[list[str]]:
    """Yield all characters of each plane, without surrogates."""
    for plane in range(17):
        codes = range(plane << 16, plane + 1 << 16)
        yield [chr(c) for c in codes if not 0xD800 <= c < 0xE000]


def is_plain(c: str) -> bool:
    """Return True for one of thousands of similar characters: an ideograph, a Hangul syllable, or a
    private or unassigned character, except the first and the last of each block of 256."""
    category = unicodedata.category(c)
    many = category in ("Co", "Cn") or (category == "Lo" and ord(c) >= 0x3400)
    return many and 1 < ord(c) % 256 < 254


def point_vocabulary(points: Sequence[str]) -> list[str]:
    """Return a vocabulary with all characters and their normalized forms, at the start of words and
    inside."""
    forms = dict.fromkeys(chain(NEIGHBOURS, points))
    for c in points:
        decomposed = unicodedata.normalize("NFD", c)
        forms.update(dict.fromkeys(chain(decomposed, c.lower(), decomposed.lower())))
    return list(dict.fromkeys(chain(SPECIAL_TOKENS, *((c, f"##{c}") for c in forms))))


def differing_points(pair: Pair, points: Sequence[str], contexts: Sequence[str]) -> list[str]:
    """Return the names of code points whose rows differ, with their context."""
    forms = [CONTEXTS[name] for name in contexts]

    def text(chosen: Sequence[str]) -> str:
        return " ".join(form.format(c) for c in chosen for form in forms)

    blocks = [points[i : i + POINTS_A_TEXT] for i in range(0, len(points), POINTS_A_TEXT)]
    wrong: list[str] = []
    for start in range(0, len(blocks), BATCH):
        some = blocks[start : start + BATCH]
        for i in pair.differing([text(block) for block in some]):
            alone = [(c, name) for c in some[i] for name in contexts]
            texts = [CONTEXTS[name].format(c) for c, name in alone]
            found = pair.differing(texts) or range(1)  # alone, none may differ
            wrong += [f"U+{ord(alone[k][0]):04X} {alone[k][1]}" for k in found]
    return wrong


# --- Whole checks ---------------------------------------------------------------------------------


def corpus_parity(
    texts: Mapping[str, Sequence[str]], vocabularies: Sequence[Path]
) -> Iterator[tuple[str, int, int]]:
    """Return a description of the comparison, the number of rows, and the number of differing
    rows."""
    options = replace(EVERYTHING, max_length=128, stride=16, padding=True)
    for path in vocabularies:
        vocab = path.read_text(encoding="utf-8").split("\n")[:-1]
        pair = Pair(vocab, TextOptions(lowercase="-cased" not in path.parent.name))
        for name, of_language in texts.items():
            for how, chosen in {"": EVERYTHING, ", max_length 128, stride 16": options}.items():
                wrong = sum(len(pair.differing(b, None, chosen)) for b in batches(of_language))
                yield f"{name}, {path.parent.name}{how}", len(of_language), wrong


def point_parity() -> Iterator[tuple[str, int, int]]:
    """Return the result of `corpus_parity` for code points in contexts."""
    for options in TEXT_OPTIONS:
        count = 0
        wrong: list[str] = []
        for points in all_points():
            pair = Pair(point_vocabulary(points), options)
            wrong += differing_points(pair, points, tuple(CONTEXTS))
            count += len(points) * len(CONTEXTS)
        where = f" ({', '.join(wrong[:20])})" if wrong else ""
        yield f"code points, {options}{where}", count, len(wrong)
