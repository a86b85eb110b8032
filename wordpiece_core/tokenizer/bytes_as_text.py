"""GPT-2's alphabet: a character for each byte, to write byte tokens as text."""

from __future__ import annotations

from wordpiece_core.symbols import BYTE_CHARACTERS

_BYTES = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}
_WHITE_SPACE = {byte: BYTE_CHARACTERS[byte] for byte in b" \t\n\r"}


def bytes_of(token: str) -> bytes:
    """Return the bytes that a token represents, or its UTF-8 bytes if a character is outside of the
    alphabet."""
    found = [_BYTES.get(character) for character in token]
    return token.encode() if None in found else bytes(byte for byte in found if byte is not None)


def text_of(token: str) -> str:
    """Return the text of a byte token, or the token if its bytes are not text."""
    try:
        return bytes(_BYTES[c] for c in token).decode()
    except (KeyError, UnicodeDecodeError):
        return token


def readable(token: str) -> str:
    """Return a token of bytes as text on one line. White space keeps GPT-2's characters, and bytes
    outside of UTF-8 are escaped.

    >>> readable("ĠæĹ¥"), readable("æĹ")
    ('Ġ日', '\\\\xe6\\\\x97')
    """
    if not _BYTES.keys() >= {*token}:
        return token
    return bytes_of(token).decode(errors="backslashreplace").translate(_WHITE_SPACE)
