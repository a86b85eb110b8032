"""Vocabulary files: BERT's `vocab.txt`, with one token per line. The id of a token is its line
number, from 0."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wordpiece_core import storage
from wordpiece_core.declared import is_utf8
from wordpiece_core.errors import InputError, shown
from wordpiece_core.options import UNK
from wordpiece_core.symbols import WHITE_SPACE

TRIMMED = "".join(WHITE_SPACE)


def is_unused(token: str) -> bool:
    """Return True for one of BERT's [unusedN] tokens, which reserve ids."""
    return re.fullmatch(r"\[unused\d+\]", token) is not None


def read_bytes(path: str) -> bytes | None:
    """Return the bytes of a file on any file system; None if there is no such file."""
    if "\0" in path or not is_utf8(path):
        raise InputError(f"{path!r}: not a valid file name")
    found = storage.info(path)
    return storage.read_bytes(path) if found is not None and found.kind == "file" else None


def read_text(path: str) -> str | None:
    """Return the text of a UTF-8 file; None if there is no such file."""
    data = read_bytes(path)
    return None if data is None else decoded(data, path)


def decoded(data: bytes, path: str) -> str:
    """Return the text of bytes. Raises InputError if they are not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error


def parse_vocabulary(text: str, path: str) -> list[str]:
    """Return the tokens of a `vocab.txt`. White space at the end of a line, such as a CR, is not
    part of the token. `path`: path in errors.

    Raises InputError for an empty vocabulary, a duplicate token, and a missing [UNK].
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    # `tokenizers` does the same, but reads all lines of white space as one empty token. No text
    # contains these tokens.
    tokens = [line.rstrip(TRIMMED) or line.removesuffix("\r") for line in lines]
    check_vocabulary(tokens, path)
    return tokens


def check_vocabulary(tokens: Sequence[str], path: str, unk: str | None = UNK) -> None:
    """Raise InputError, which names `path` and the line, unless the tokens are a usable vocabulary
    with the unknown token `unk`, or None."""
    if not tokens:
        raise InputError(f"{path}: the vocabulary is empty")
    whole = (
        {*map(type, tokens)} == {str}
        and len({*tokens}) == len(tokens)
        and (unk is None or unk in tokens)
    )
    if whole and is_utf8("".join(tokens)):
        return  # the quick check; only a bad vocabulary is searched line by line
    lines: dict[str, int] = {}
    for line, token in enumerate(tokens, 1):
        if not isinstance(token, str):
            raise InputError(f"{path} line {line}: token {shown(token)} is not a string")
        if not is_utf8(token):
            raise InputError(
                f"{path} line {line}: token {token!r} contains half a surrogate pair; fix the token"
            )
        if token in lines:
            raise InputError(
                f"{path} line {line}: token {token!r} is already on line"
                f" {lines[token]}; rename the later one (removing a line would shift ids)"
            )
        lines[token] = line
    if unk is not None and unk not in lines:
        raise InputError(f"{path}: no {unk} token; add a line {unk}")


def vocabulary_text(tokens: Sequence[str], path: str) -> str:
    """Return the text of a `vocab.txt`. Raises InputError for a token that would be read back
    differently: Python also ends lines at carriage returns."""
    for token in tokens:
        if re.search("[\n\r]", token) or (token.rstrip(TRIMMED) or token) != token:
            raise InputError(f"{path}: token {token!r} has a line end, or white space at its end")
    if tokens and tokens[0].startswith("\ufeff"):
        raise InputError(f"{path}: token {tokens[0]!r} would start the file with a byte order mark")
    return "".join(f"{token}\n" for token in tokens)
