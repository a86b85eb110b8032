"""Vocabulary files: BERT's `vocab.txt`, a token a line, the line's number (from 0) its id."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import fs

from wordpiece_core.errors import InputError, one_line, shown
from wordpiece_core.option_kinds import is_utf8
from wordpiece_core.reference import WHITE_SPACE

UNK = "[UNK]"
TRIMMED = "".join(WHITE_SPACE)


def read_text(path: str) -> str | None:
    """The text of a file on any file system that Arrow reads; None if there is none."""
    try:
        if "://" in path:
            filesystem, place = fs.FileSystem.from_uri(path)
        else:
            filesystem, place = fs.LocalFileSystem(), path
        if filesystem.get_file_info(place).type != fs.FileType.File:
            return None
        with filesystem.open_input_stream(place, compression=None) as stream:
            data: bytes = stream.read()
    except (OSError, ValueError, pa.ArrowException) as error:
        name = path if path.isprintable() else repr(path)
        raise InputError(f"{name}: cannot be read ({one_line(error)})") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error


def parse_vocabulary(text: str, path: str) -> list[str]:
    """The tokens of a `vocab.txt`; `path` is for errors. White space at the end of a line, as of
    CRLF line ends, is none of the token.

    Raises InputError for an empty vocabulary, a token twice, and one without [UNK].
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    # As `tokenizers` reads it; but it makes one token, the empty one, of all lines that are nothing
    # but white space. No text has those.
    tokens = [line.rstrip(TRIMMED) or line.removesuffix("\r") for line in lines]
    check_vocabulary(tokens, path)
    return tokens


def check_vocabulary(tokens: Sequence[str], path: str) -> None:
    """Raises InputError, naming `path` and the line, unless the tokens are a usable vocabulary."""
    if not tokens:
        raise InputError(f"{path}: the vocabulary is empty")
    whole = {*map(type, tokens)} == {str} and len({*tokens}) == len(tokens) and UNK in tokens
    if whole and is_utf8("".join(tokens)):
        return  # at once; what is wrong is looked for line by line
    lines: dict[str, int] = {}
    for line, token in enumerate(tokens, 1):
        if not isinstance(token, str):
            raise InputError(f"{path} line {line}: token {shown(token)} is not a string")
        if not is_utf8(token):
            raise InputError(
                f"{path} line {line}: token {token!r} holds half a surrogate pair; mend the token"
            )
        if token in lines:
            raise InputError(
                f"{path} line {line}: token {token!r} is on line {lines[token]} already;"
                " remove one of them (ids are line numbers)"
            )
        lines[token] = line
    if UNK not in lines:
        raise InputError(f"{path}: no {UNK} token; add a line {UNK}")


def vocabulary_text(tokens: Sequence[str], path: str) -> str:
    """The text of a `vocab.txt`. InputError for a token that would be read as another: Python ends
    lines at carriage returns too."""
    for token in tokens:
        if re.search("[\n\r]", token) or (token.rstrip(TRIMMED) or token) != token:
            raise InputError(f"{path}: token {token!r} has a line end, or white space at its end")
    if tokens and tokens[0].startswith("\ufeff"):
        raise InputError(f"{path}: token {tokens[0]!r} would begin the file as a byte order mark")
    return "".join(f"{token}\n" for token in tokens)
