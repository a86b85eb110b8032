"""GPT-2's pre-tokenizer: text to pieces that keep their spaces. Its regular expression is:

's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from tests.oracle.symbols import WHITE_SPACE

CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


def gpt2_words(text: str, *, add_prefix_space: bool = False) -> list[str]:
    """The pieces of a text; joined, they are the text with the space that is put before it."""
    if add_prefix_space and text and not text.startswith(" "):
        text = " " + text
    return list(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    while text:
        length = _first_piece(text)
        yield text[:length]
        text = text[length:]


def _first_piece(text: str) -> int:
    """Return the length of the first piece: a contraction, or characters of one kind with a space
    before them. White space is a piece without its last character, which begins the next piece if
    it is a space, and otherwise is a piece of its own."""
    for contraction in CONTRACTIONS:
        if text.startswith(contraction):
            return len(contraction)
    space = 1 if text[0] == " " and text[1:2] and _kind(text[1]) != "space" else 0
    kind = _kind(text[space])
    end = next((i for i, c in enumerate(text) if i > space and _kind(c) != kind), len(text))
    return end - 1 if kind == "space" and 1 < end < len(text) else end


def _kind(c: str) -> str:
    if c in WHITE_SPACE:
        return "space"
    return {"L": "letter", "N": "number"}.get(unicodedata.category(c)[0], "other")
