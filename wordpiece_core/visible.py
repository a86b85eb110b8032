"""Texts for people: on one line, with every character visible."""

from __future__ import annotations

import re
import unicodedata

from wordpiece_core.symbols import WHITE_SPACE

LONGEST = 40  # characters; longer texts are shown without their middle

# Letters and marks that are invisible (Default_Ignorable_Code_Point). Other characters that are
# invisible, or change the direction of a line, are recognized by their category.
HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def visible(text: str, longest: int = LONGEST) -> str:
    """Return a text on one line, with every character visible. Invisible characters are escaped,
    and a combining mark without a letter is put on a dotted circle."""
    if len(text) > longest:
        text = f"{text[: longest - 20]}…{text[-19:]}"
    shown = ""
    carries = False  # True if the last shown character can carry a mark
    for c in text:
        hidden, is_mark = is_hidden(c), unicodedata.category(c).startswith("M")
        if hidden:
            shown += f"\\u{ord(c):04x}" if c <= "\uffff" else f"\\U{ord(c):08x}"
        else:
            shown += "◌" * (is_mark and not carries) + c
        carries = not hidden and (c.isalnum() or not c.isascii())
    return shown


def is_hidden(c: str) -> bool:
    """Return True for a character that is invisible, or changes characters around it."""
    if c in WHITE_SPACE:
        return c not in " \u3000"
    return unicodedata.category(c)[0] == "C" or HIDDEN.match(c) is not None


def name_of(c: str) -> str:
    """Return a character, its code point and its name."""
    name = unicodedata.name(c, "")
    return f"{visible(c)} (U+{ord(c):04X}{' ' * bool(name)}{name})"
