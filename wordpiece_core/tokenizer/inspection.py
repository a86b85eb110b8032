"""Tokens of a text, and reasons for [UNK]."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from wordpiece_core import _kernel
from wordpiece_core.options import AS_TEXT, EncodingOptions, SpecialTokensInText
from wordpiece_core.symbols import WHITE_SPACE
from wordpiece_core.tokenizer.decoders import BYTE_TOKEN
from wordpiece_core.tokenizer.decoding import decoded
from wordpiece_core.tokenizer.models import Library, WordPiece
from wordpiece_core.tokenizer.segmentation_reasons import Reason, Reasoner
from wordpiece_core.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Token:
    """A token.

    Attributes:
        start: Start of its characters in the text.
        end: End of its characters.
        source: These characters.
        word: Number of its word; None for a token that is added around the text.
    """

    token: str
    id: int
    start: int
    end: int
    source: str
    word: int | None
    kind: str
    """"text", "unknown", "special" (written like this in the text) or "added"."""


@dataclass(frozen=True)
class Misfit:
    """A place in a normalized word without a matching token."""

    at: int
    """Number of characters of the word before it."""
    character: str
    after: tuple[str, ...]
    """Tokens since the last misfit, or since the start of the word."""
    known: str
    """Place of the character in the vocabulary: only at the "start" of words, only as a
    "continuation", only "inside" longer tokens, or "nowhere". With BPE and Unigram "inside" is
    anywhere in a token."""


@dataclass(frozen=True)
class Word:
    """A word. `raw`: its text, from `start` to `end`."""

    number: int
    start: int
    end: int
    raw: str
    normalized: str
    too_long: bool
    misfits: tuple[Misfit, ...]


@dataclass(frozen=True)
class Dropped:
    """A character between words that normalization removed."""

    at: int
    character: str


@dataclass(frozen=True)
class Inspection:
    """The inspection of a text. `reasons`: for BPE and Unigram, the reasons for the tokens of each
    known word; None for WordPiece, which takes the longest token, and for the library
    `tokenizers`."""

    text: str
    tokens: list[Token]
    words: list[Word]
    dropped: list[Dropped]
    reasons: list[Reason] | None = None


class Inspector:
    """Inspector of the tokens of texts.

    >>> inspector = Inspector(Tokenizer(["[UNK]", "a", "##b"]))
    >>> inspector.inspect("ac").words[0].misfits[0].character
    'c'
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        add_special_tokens: bool = True,
        special_tokens_in_text: SpecialTokensInText = "parse",
    ) -> None:
        self.tokenizer = tokenizer
        self.options = EncodingOptions(
            add_special_tokens=add_special_tokens and tokenizer.adds_special_tokens,
            special_tokens_in_text=special_tokens_in_text,
            columns=("offset_mapping", "word_ids"),
        )
        special = tokenizer.special_tokens
        is_text = special_tokens_in_text == AS_TEXT
        found = [] if is_text else special
        self._known = {*tokenizer.ids} - {*(special if is_text else ())}
        longest_first = map(re.escape, sorted(found, key=len, reverse=True))
        self._special = re.compile(f"({'|'.join(longest_first) or '(?!)'})")
        self._longest = max(map(len, tokenizer.vocab))

    @cached_property
    def _characters(self) -> set[str]:
        """Characters of all tokens that are not special."""
        spec = self.tokenizer.spec
        tokens = set(self.tokenizer.vocab) - set(spec.special_tokens)
        tokens = {token.removeprefix(spec.continuing_prefix) for token in tokens}
        return set().union(*tokens)

    @property
    def _is_bert(self) -> bool:
        """True for WordPiece with words that text options give."""
        spec = self.tokenizer.spec
        return isinstance(spec.model, WordPiece) and spec.words.is_by_options

    def inspect(self, text: str) -> Inspection:
        """Return the tokens, words and dropped characters of a text."""
        table = self.tokenizer.encode_table([text], options=self.options).table
        if not self._is_bert:
            return self._of_model(text, table)
        pieces = list(self._pieces(text))
        found = [
            (["special"], ()) if special else self._tokenized(piece) for piece, special in pieces
        ]
        kinds = chain.from_iterable(kinds for kinds, _ in found)
        tokens: list[Token] = []
        spans: dict[int, tuple[int, int]] = {}
        for token_id, (start, end), number in zip(*_only_row(table), strict=True):
            kind = "added" if number is None else next(kinds)
            token = self.tokenizer.vocab[token_id]
            tokens.append(Token(token, token_id, start, end, text[start:end], number, kind))
            if number is not None:
                first, last = spans.get(number, (start, end))
                spans[number] = (min(first, start), max(last, end))
        words = [
            Word(i, *spans[i], text[slice(*spans[i])], piece, self._is_too_long(piece), misfits)
            for i, ((piece, is_special), (_, misfits)) in enumerate(zip(pieces, found, strict=True))
            if not is_special
        ]
        return Inspection(text, tokens, words, list(_dropped(text, spans.values())))

    def _of_model(self, text: str, table: pa.Table) -> Inspection:
        """Inspect a text whose tokens determine the words: for BPE, Unigram, and other parts than
        BERT's."""
        tokens: list[Token] = []
        for token_id, (start, end), number in zip(*_only_row(table), strict=True):
            token, source = self.tokenizer.vocab[token_id], text[start:end]
            if tokens and (tokens[-1].start, tokens[-1].end) == (start, end):
                source = tokens[-1].source  # one long text may have thousands of bytes
            kind = "added" if number is None else self._kind(token_id, token, source)
            tokens.append(Token(token, token_id, start, end, source, number, kind))
        by_word: dict[int, list[Token]] = {}
        for token in tokens:
            if token.word is not None:
                by_word.setdefault(token.word, []).append(token)
        spans = [(min(t.start for t in w), max(t.end for t in w)) for w in by_word.values()]
        words = [
            self._word(number, text[slice(*span)], span, of)
            for (number, of), span in zip(by_word.items(), spans, strict=True)
            if of[0].kind != "special"
        ]
        dropped = list(_dropped(text, spans))
        if isinstance(self.tokenizer.spec.model, Library | WordPiece):
            return Inspection(text, tokens, words, dropped)
        # The library gives no reasons; WordPiece takes the longest token.
        known = {word.number for word in words if not word.misfits}
        reasons = [
            self._reasoner.reason(number, [token.token for token in of])
            for number, of in by_word.items()
            if number in known and not any(BYTE_TOKEN.fullmatch(token.token) for token in of)
        ]
        return Inspection(text, tokens, words, dropped, reasons)

    @cached_property
    def _reasoner(self) -> Reasoner:
        return Reasoner(self.tokenizer.spec)

    def _kind(self, token_id: int, token: str, source: str) -> str:
        if self._special.fullmatch(source) and token == source:
            return "special"
        return "unknown" if token_id == self.tokenizer.unk_id else "text"

    def _word(self, number: int, raw: str, span: tuple[int, int], tokens: list[Token]) -> Word:
        """Return a word of BPE or Unigram. Its normalized form is the text of its tokens, without a
        mark; unknown characters are unchanged."""
        spec = self.tokenizer.spec
        written = [token.source if token.kind == "unknown" else token.token for token in tokens]
        normalized = decoded(spec, written).removeprefix(" " * (not raw.startswith(" ")))
        misfits = [
            Misfit(token.start - span[0], character, (), self._where_known(character))
            for token in tokens
            if token.kind == "unknown"
            for character in token.source[:1]
        ]
        return Word(number, *span, raw, normalized, False, tuple(misfits))

    def _pieces(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield normalized words, and special tokens (True) that are written in the text."""
        parts = self._special.split(text)
        options = self.tokenizer.spec.text.for_kernel()
        words = pa.array(_kernel.pre_tokenize(pa.array(parts[::2]), options)).to_pylist()
        for i, own in enumerate(words):
            yield from ((word, False) for word in own)
            yield from ((special, True) for special in parts[2 * i + 1 : 2 * i + 2])

    def _is_too_long(self, word: str) -> bool:
        return len(word) > self.tokenizer.spec.max_word_length

    def _tokenized(self, word: str) -> tuple[list[str], tuple[Misfit, ...]]:
        """Return the kinds of the tokens by greedy longest match, and the misfits."""
        if self._is_too_long(word):
            return ["unknown"], ()
        kinds: list[str] = []
        found: list[str] = []  # since the last misfit
        misfits: list[Misfit] = []
        at = 0
        while at < len(word):
            token = self._longest_token(word, at)
            if token is not None:
                kinds.append("text")
                found.append(token)
                at += len(token) - (len(self.tokenizer.spec.continuing_prefix) if at else 0)
                continue
            misfits.append(Misfit(at, word[at], tuple(found), self._where_known(word[at])))
            if self.tokenizer.unk_scope == "word":
                return ["unknown"], tuple(misfits)
            kinds.append("unknown")
            found = []
            at += 1
        return kinds, tuple(misfits)

    def _longest_token(self, word: str, at: int) -> str | None:
        prefix = self.tokenizer.spec.continuing_prefix if at else ""
        ends = range(min(len(word), at + self._longest), at, -1)
        tokens = (prefix + word[at:end] for end in ends)
        return next((token for token in tokens if token in self._known), None)

    def _where_known(self, character: str) -> str:
        """Return the place of a misfitting character in the vocabulary."""
        if not isinstance(self.tokenizer.spec.model, WordPiece):
            return "inside" if character in self._characters else "nowhere"
        if character in self._known:
            return "start"
        if self.tokenizer.spec.continuing_prefix + character in self._known:
            return "continuation"
        return "inside" if character in self._characters else "nowhere"


def _only_row(table: pa.Table) -> list[list[Any]]:
    return [column[0].as_py() for column in table.itercolumns()]


def _dropped(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Dropped]:
    """Yield the characters outside the spans, except white space."""
    covered = bytearray(len(text))
    for start, end in spans:
        covered[start:end] = b"\1" * (end - start)
    for at, character in enumerate(text):
        if not covered[at] and character not in WHITE_SPACE:
            yield Dropped(at, character)
