"""Text to words, tokens, and rows of ids, with offsets.

A normalized text is a list of characters with their places: ``("e", 3)`` comes from character 3 of
the raw text. So each token has offsets into the raw text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from tests.oracle.rules import truncated_lengths
from tests.oracle.symbols import SPECIAL_TOKENS, WHITE_SPACE
from wordpiece_core.errors import InputError, OptionError

Placed = list[tuple[str, int]]
Row = dict[str, Any]

# --- Text to words --------------------------------------------------------------------------------

# Unicode's property White_Space. (str.isspace would add U+001C to U+001F.)
CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


def normalize(text: str, **options: Any) -> str:
    """Return the text of ``normalize_placed``."""
    return _joined(normalize_placed(text, **options))


def normalize_placed(
    text: str,
    *,
    clean_text: bool = True,
    handle_chinese_chars: bool = True,
    strip_accents: bool | None = None,
    lowercase: bool = True,
) -> Placed:
    """Normalize like BERT, in this order. ``strip_accents=None`` has the value of ``lowercase``."""
    placed = [(c, i) for i, c in enumerate(text)]
    if clean_text:
        placed = [(" " if c in WHITE_SPACE else c, i) for c, i in placed if not _is_control(c)]
    if handle_chinese_chars:
        placed = [(d, i) for c, i in placed for d in (f" {c} " if _is_chinese(c) else c)]
    if lowercase if strip_accents is None else strip_accents:
        placed = [(c, i) for c, i in _decompose(placed) if unicodedata.category(c) != "Mn"]
    if lowercase:  # each alone: a final sigma is not an exception
        placed = [(d, i) for c, i in placed for d in c.lower()]
    return placed


def _decompose(placed: Placed) -> Iterator[tuple[str, int]]:
    """Decompose characters by Unicode's NFD, and order neighbouring marks by combining class.

    Marks are reordered; offsets stay. As in `tokenizers`, the first part of each character takes
    the next offset, and every other part the offset of the part before it.
    """
    parts = [(d, k == 0) for c, _ in placed for k, d in enumerate(unicodedata.normalize("NFD", c))]
    places = iter([i for _, i in placed])
    place = 0
    for starters, run in groupby(parts, key=lambda part: unicodedata.combining(part[0]) == 0):
        marks = None if starters else sorted(run, key=lambda part: unicodedata.combining(part[0]))
        for c, first in marks or run:
            if first:
                place = next(places)
            yield c, place


def pre_tokenize(text: str, pre_tokenizer: str = "bert") -> list[str]:
    """Return the words of ``split_words``."""
    return [_joined(word) for word in split_words([(c, 0) for c in text], pre_tokenizer)]


def split_words(placed: Placed, pre_tokenizer: str = "bert") -> list[Placed]:
    """Split at white space; with ``bert`` every punctuation character is a word of its own too."""
    words: list[Placed] = []
    inside = False  # does the next character belong to the last word?
    for c, place in placed:
        alone = pre_tokenizer == "bert" and _is_punctuation(c)
        if c in WHITE_SPACE:
            inside = False
        elif inside and not alone:
            words[-1].append((c, place))
        else:
            words.append([(c, place)])
            inside = not alone
    return words


def words(text: str, *, pre_tokenizer: str = "bert", **options: Any) -> list[str]:
    """Return the words of raw text. ``options``: see ``normalize_placed``."""
    return pre_tokenize(normalize(text, **options), pre_tokenizer)


def count_words(
    texts: Iterable[str | None], *, special_tokens: Sequence[str] = (), **options: Any
) -> Counter[str]:
    """Return the word table of texts, without None: ordered by count (descending), then by code
    point. Special tokens split a text and are not counted."""
    pattern = _any_of(special_tokens)
    parts = (part for text in texts if text is not None for part in re.split(pattern, text))
    counts = Counter(word for part in parts for word in words(part, **options))
    return Counter(dict(sorted(counts.items(), key=lambda row: (-row[1], row[0]))))


def _joined(placed: Placed) -> str:
    return "".join(c for c, _ in placed)


def _is_control(c: str) -> bool:
    if c in "\t\n\r":
        return False
    return c in "\0\ufffd" or unicodedata.category(c) in ("Cc", "Cf", "Co")  # Cn stays


def _is_chinese(c: str) -> bool:
    return any(first <= ord(c) <= last for first, last in CHINESE)


def _is_punctuation(c: str) -> bool:
    return c in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" or unicodedata.category(c).startswith("P")


# --- Words to tokens ------------------------------------------------------------------------------


class PlacedToken(NamedTuple):
    """A token with its offsets in the raw text, and the number of its word."""

    token: str
    start: int
    end: int
    word: int


def _any_of(tokens: Iterable[str]) -> str:
    """Return the regular expression that finds the longest of the tokens."""
    longest_first = sorted(filter(None, tokens), key=len, reverse=True)
    return "|".join(map(re.escape, longest_first)) or "(?!)"  # (?!) matches nothing


def tokenize(text: str, vocab: Collection[str], **options: Any) -> list[str]:
    """Return the tokens of ``tokenize_placed``."""
    return [token.token for token in tokenize_placed(text, vocab, **options)]


def tokenize_placed(
    text: str,
    vocab: Collection[str],
    *,
    unk_token: str = "[UNK]",
    unk_scope: str = "word",
    max_word_length: int = 100,
    continuing_prefix: str = "##",
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    special_tokens_in_text: str = "parse",
    pre_tokenizer: str = "bert",
    **options: Any,
) -> list[PlacedToken]:
    """Return the tokens of raw text. ``options``: see ``normalize_placed``.

    Special tokens are found in the raw text first: the leftmost, and of several the longest. If
    ``special_tokens_in_text`` is ``"text"``, text never becomes a special token, except
    ``unk_token`` if no other token fits.
    """
    known = set(vocab).difference(special_tokens if special_tokens_in_text == "text" else ())
    rules = (unk_token, unk_scope, max_word_length, continuing_prefix)
    pattern = _any_of(known.intersection(special_tokens))
    parts = re.split(f"({pattern})", text)
    tokens: list[PlacedToken] = []
    start = count = 0
    for i, part in enumerate(parts):
        if i % 2:  # re.split gives text, match, text, match, ..., text
            tokens.append(PlacedToken(part, start, start + len(part), count))
            count += 1
        else:
            for word in split_words(normalize_placed(part, **options), pre_tokenizer):
                places = [start + place for _, place in word]
                for token, first, end in placed_tokens(_joined(word), known, *rules):
                    tokens.append(PlacedToken(token, places[first], places[end - 1] + 1, count))
                count += 1
        start += len(part)
    return tokens


def tokenize_word(word: str, vocab: Container[str], *rules: Any, **options: Any) -> list[str]:
    """Return the tokens of ``placed_tokens``."""
    return [token for token, _, _ in placed_tokens(word, vocab, *rules, **options)]


def placed_tokens(
    word: str,
    vocab: Container[str],
    unk_token: str = "[UNK]",
    unk_scope: str = "word",
    max_word_length: int = 100,
    continuing_prefix: str = "##",
) -> list[tuple[str, int, int]]:
    """Return the tokens of a word by greedy longest match, each with its start and end.

    A word longer than ``max_word_length`` is ``unk_token``. If no token fits, the complete word
    becomes ``unk_token`` (``unk_scope="word"``), or one character (``"character"``); the rest of
    the word still counts as inside.
    """
    unknown = [(unk_token, 0, len(word))]
    if len(word) > max_word_length:
        return unknown
    tokens: list[tuple[str, int, int]] = []
    start = 0
    while start < len(word):
        prefix = continuing_prefix if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocab), None)
        if end is not None:
            tokens.append((prefix + word[start:end], start, end))
        elif unk_scope == "word":
            return unknown
        else:
            end = start + 1
            tokens.append((unk_token, start, end))
        start = end
    return tokens


# --- Tokens to rows -------------------------------------------------------------------------------


def encode(text: str, vocab: Sequence[str], **options: Any) -> list[int]:
    """Return the ids of raw text. ``options``: see ``encode_rows``, without a stride."""
    ids: list[int] = encode_rows(text, vocab=vocab, **options)[0]["input_ids"]
    return ids


def encode_rows(
    text: str,
    pair: str | None = None,
    *,
    vocab: Sequence[str],
    add_special_tokens: bool = True,
    prepend_bos: bool = False,
    append_eos: bool = False,
    bos_token: str | None = None,
    eos_token: str | None = None,
    max_length: int | None = None,
    truncation: str = "longest_first",
    stride: int | None = None,
    padding: bool = False,
    **options: Any,
) -> list[Row]:
    """Return the columns of the rows of a text or a pair: ``[CLS] text [SEP] pair [SEP]``.

    A row has at most ``max_length`` tokens, and with ``padding`` exactly as many. With
    ``prepend_bos`` it begins with ``bos_token``, with ``append_eos`` it ends with ``eos_token``.
    With a ``stride``, truncated tokens go to more rows that overlap by this number of tokens.
    ``options``: see ``tokenize_placed``.

    Raises OptionError for options that are wrong for any text, and InputError if this text or pair
    cannot be truncated.
    """
    ids = {token: i for i, token in enumerate(vocab)}
    texts = [text] if pair is None else [text, pair]
    sequences = [tokenize_placed(text, vocab, **options) for text in texts]
    before, after = (["[CLS]"], ["[SEP]"]) if add_special_tokens else ([], [])
    needed: list[str | None] = [*before, *after, *["[PAD]"] * padding]
    needed += [bos_token] * prepend_bos + [eos_token] * append_eos
    if not ids.keys() >= set(needed):
        raise OptionError(f"the vocabulary has not all of {needed}")
    if truncation == "only_second" and pair is None:
        raise OptionError("truncation: only_second, and there is no second text")
    if bos_token is not None and before != [bos_token]:
        before = [bos_token, *before]
    if eos_token is not None and after != [eos_token]:
        after = [*after, eos_token]
    if pair is not None and (prepend_bos or append_eos):
        raise OptionError("prepend_bos, append_eos: cannot be combined with pairs of texts")
    rooms = [len(sequence) for sequence in sequences]
    if max_length is not None:
        room = max_length - len(before) - len(after) * len(texts)
        both_truncated = truncation == "longest_first" and pair is not None
        no_window = stride is not None and (stride >= room or (both_truncated and room < 2))
        if room < 0 or no_window:
            raise OptionError(f"max_length {max_length}, stride {stride}: no room for text")
        rooms = truncated_lengths(rooms, room, truncation)
    parts = [windows(*args, stride) for args in zip(sequences, rooms, strict=True)]
    rows = [columns(combination, ids, before, after) for combination in combinations(parts)]
    return [pad(row, max_length, ids["[PAD]"]) if padding and max_length else row for row in rows]


def windows(sequence: list[PlacedToken], room: int, stride: int | None) -> list[list[PlacedToken]]:
    """Return the first ``room`` tokens; with a stride also the following windows, to the end."""
    if stride is None or room >= len(sequence):
        return [sequence[:room]]
    if stride >= room:
        raise InputError(f"stride {stride}: only {room} tokens of a text are left in a row")
    starts = range(0, len(sequence) - stride, room - stride)
    return [sequence[start : start + room] for start in starts]


def combinations(parts: Sequence[list[list[PlacedToken]]]) -> list[list[list[PlacedToken]]]:
    """Return each window of a text with each window of its pair: both first windows, then the other
    windows of the text with all of the pair, then the first window with the others of the pair."""
    if len(parts) == 1:
        return [[window] for window in parts[0]]
    (first, *more), pairs = parts
    others = [[window, other] for window in more for other in pairs]
    return [[first, pairs[0]], *others, *([first, other] for other in pairs[1:])]


def columns(
    sequences: Sequence[list[PlacedToken]],
    ids: dict[str, int],
    before: Sequence[str],
    after: Sequence[str],
) -> Row:
    """Return the columns of one row, with added tokens before the first text and after each."""
    rows: list[tuple[int, int, int, tuple[int, int], int | None]] = []
    for type_id, sequence in enumerate(sequences):
        if type_id == 0:
            rows += ((ids[token], 0, 1, (0, 0), None) for token in before)
        rows += ((ids[t.token], type_id, 0, (t.start, t.end), t.word) for t in sequence)
        rows += ((ids[token], type_id, 1, (0, 0), None) for token in after)
    return {
        "input_ids": [row[0] for row in rows],
        "attention_mask": [1] * len(rows),
        "token_type_ids": [row[1] for row in rows],
        "special_tokens_mask": [row[2] for row in rows],
        "offset_mapping": [row[3] for row in rows],
        "word_ids": [row[4] for row in rows],
        "num_tokens": len(rows),
    }


PADDING: Row = {
    "attention_mask": 0,
    "token_type_ids": 0,
    "special_tokens_mask": 1,
    "offset_mapping": (0, 0),
    "word_ids": None,
}


def pad(row: Row, length: int, pad_id: int) -> Row:
    """Return the row with [PAD] up to ``length`` tokens. ``num_tokens`` stays."""
    more = length - row["num_tokens"]
    values = PADDING | {"input_ids": pad_id}
    return {
        name: row[name] + [values[name]] * more if name in values else row[name] for name in row
    }
