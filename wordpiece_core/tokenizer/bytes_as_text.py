"""GPT-2's alphabet: a character for each byte, so that tokens of bytes can be written as text."""

from __future__ import annotations


def _characters() -> dict[str, int]:
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return {chr(b): b for b in kept} | {chr(256 + n): b for n, b in enumerate(others)}


_BYTES = _characters()


def byte_of(character: str) -> int | None:
    """The byte that a character stands for, or None."""
    return _BYTES.get(character)


def text_of(token: str) -> str:
    """The text of a token of bytes, or the token if they are no text."""
    try:
        return bytes(_BYTES[c] for c in token).decode()
    except (KeyError, UnicodeDecodeError):
        return token
