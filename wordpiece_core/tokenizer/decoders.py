"""Decoders of `tokenizers` as in `tokenizer.json`: each turns the tokens of a text into pieces of
text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, shown
from wordpiece_core.symbols import SPACE_MARK
from wordpiece_core.tokenizer.bytes_as_text import bytes_of
from wordpiece_core.tokenizer.formats.json_text import Json, get
from wordpiece_core.tokenizer.parts import prepend_scheme

CLEAN_UP = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't")),
    *((" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)
"""Replacements in decoded English text, in this order."""
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_PARSED = re.compile(r"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")  # as Rust parses numbers
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Decoder:
    """A step of decoding. Equal steps give equal text."""

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        """Return the pieces of text of the tokens."""
        raise NotImplementedError


@dataclass(frozen=True)
class ByteLevel(Decoder):
    """Decoder of byte tokens: each character is a byte; a token with any other character is
    text."""

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        return [b"".join(map(bytes_of, tokens)).decode(errors="replace")]


@dataclass(frozen=True)
class WordPiece(Decoder):
    """Decoder that puts a space before each token without the prefix."""

    prefix: str
    cleanup: bool

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        pieces = [
            (token.removeprefix(self.prefix) if token.startswith(self.prefix) else f" {token}")
            if at
            else token
            for at, token in enumerate(tokens)
        ]
        return [clean(piece) for piece in pieces] if self.cleanup else pieces


@dataclass(frozen=True)
class Metaspace(Decoder):
    """Decoder that replaces each mark by a space. `drops_first`: marks in the first token are
    dropped."""

    mark: str
    drops_first: bool

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        first = [token.replace(self.mark, "" if self.drops_first else " ") for token in tokens[:1]]
        return first + [token.replace(self.mark, " ") for token in tokens[1:]]


@dataclass(frozen=True)
class BPEDecoder(Decoder):
    """Decoder that replaces the suffix by a space, except at the end of the text."""

    suffix: str

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        ends = ([" "] * len(tokens))[1:] + [""] * bool(tokens)
        return [token.replace(self.suffix, end) for token, end in zip(tokens, ends, strict=True)]


@dataclass(frozen=True)
class ByteFallback(Decoder):
    """Return the text of adjacent byte tokens, or U+FFFD for each of these bytes."""

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        pieces: list[str] = []
        for is_byte, some in groupby(tokens, key=lambda token: bool(_PARSED.fullmatch(token))):
            if not is_byte:
                pieces.extend(some)
                continue
            data = bytes(int(token[3:5], 16) for token in some)
            try:
                pieces.append(data.decode())
            except UnicodeDecodeError:
                pieces.extend(REPLACEMENT * len(data))
        return pieces


@dataclass(frozen=True)
class Fuse(Decoder):
    """Decoder that joins all pieces."""

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        return ["".join(tokens)]


@dataclass(frozen=True)
class Strip(Decoder):
    """Remove a character at the start and the end of each piece, as often as given."""

    content: str
    start: int
    stop: int

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        return [self._stripped(token) for token in tokens]

    def _stripped(self, token: str) -> str:
        at_start = len(token) - len(token.lstrip(self.content))
        at_end = len(token) - len(token.rstrip(self.content))
        return token[min(at_start, self.start) : len(token) - min(at_end, self.stop)]


@dataclass(frozen=True)
class Replace(Decoder):
    """Replace each match of a pattern, `{"String": ...}` or `{"Regex": ...}` as JSON."""

    pattern: str
    content: str

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        rules = _replacing(self)
        return [rules.normalized(token) if token else "" for token in tokens]


@lru_cache
def _replacing(step: Replace) -> _kernel.Composed:
    part = {"type": "Replace", "pattern": json.loads(step.pattern), "content": step.content}
    return _kernel.Composed(json.dumps(part), None, of_bytes=False)


@dataclass(frozen=True)
class CTC(Decoder):
    """Decoder of connectionist temporal classification: repeated tokens once, and no padding."""

    pad_token: str
    word_delimiter_token: str
    cleanup: bool

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        pieces = [token.replace(self.pad_token, "") for token, _ in groupby(tokens)]
        if self.cleanup:
            pieces = [clean(piece).replace(self.word_delimiter_token, " ") for piece in pieces]
        return [piece for piece in pieces if piece]


def clean(text: str, replacements: Sequence[tuple[str, str]] = CLEAN_UP) -> str:
    """Remove spaces before punctuation, as in English."""
    for old, new in replacements:
        text = text.replace(old, new)
    return text


# --- From JSON ------------------------------------------------------------------------------------


def decoding_steps(value: Json | None, path: str = "decoder") -> tuple[Decoder, ...] | None:
    """Return the steps of a decoder; None for none: then spaces are put between the tokens.

    Raises InputError for a decoder that `tokenizers` does not have, naming `path`.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError(f"{path}: decoder is {shown(value)}, not an object with a type")
    if value.get("type") == "Sequence":
        parts = get(value, "decoders", list, path)
        return tuple(step for part in parts for step in decoding_steps(part, path) or ())
    return (_step(value, path),)


def _step(value: Json, path: str) -> Decoder:
    kind = value.get("type")
    if kind == "ByteLevel":
        return ByteLevel()
    if kind == "WordPiece":
        return WordPiece(get(value, "prefix", str, path), get(value, "cleanup", bool, path))
    if kind == "Metaspace":
        mark = get(value, "replacement", str, path, SPACE_MARK)
        return Metaspace(mark, drops_first=prepend_scheme(value, path) != "never")
    if kind == "BPEDecoder":
        return BPEDecoder(get(value, "suffix", str, path))
    if kind == "ByteFallback":
        return ByteFallback()
    if kind == "Fuse":
        return Fuse()
    if kind == "Strip":
        start, stop = (get(value, name, int, path) for name in ("start", "stop"))
        return Strip(get(value, "content", str, path), start, stop)
    if kind == "Replace":
        pattern = json.dumps(get(value, "pattern", dict, path))
        step = Replace(pattern, get(value, "content", str, path))
        _replacing(step)  # InputError for a pattern that is not known
        return step
    if kind == "CTC":
        pad, delimiter = (get(value, n, str, path) for n in ("pad_token", "word_delimiter_token"))
        return CTC(pad, delimiter, get(value, "cleanup", bool, path))
    raise InputError(f"{path}: decoder ({shown(kind)}) is unknown to the library tokenizers")


def text_of(steps: Sequence[Decoder] | None, tokens: Sequence[str]) -> str:
    """Return the text of tokens."""
    if steps is None:
        return " ".join(tokens)
    pieces = list(tokens)
    for step in steps:
        pieces = step(pieces)
    return "".join(pieces)
