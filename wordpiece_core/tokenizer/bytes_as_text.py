"""GPT-2's alphabet: a character for each byte, so that tokens of bytes can be written as text."""

from __future__ import annotations

from wordpiece_core.symbols import BYTE_CHARACTERS

_BYTES = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


def byte_of(character: str) -> int | None:
    """The byte that a character stands for, or None."""
    return _BYTES.get(character)


def text_of(token: str) -> str:
    """The text of a token of bytes, or the token if they are no text."""
    try:
        return bytes(_BYTES[c] for c in token).decode()
    except (KeyError, UnicodeDecodeError):
        return token
