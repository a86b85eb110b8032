"""`wordpiece inspect`: shows texts and their tokens, to people and to scripts."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from pipelines.commands.loading import load_tokenizer
from pipelines.encoding.options import TokenizerChoice
from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core.reference import WHITE_SPACE
from wordpiece_core.tokenizer.inspection import Inspection, Inspector, Misfit, Token, Word

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"head": "bold", "text": "", "unknown": "bold red", "special": "cyan", "added": "dim"}
LONGEST = 40  # characters of a cell; what is longer is shown without its middle
MOST = 20  # items of a list; the others are counted
NARROW = 60  # columns of a terminal
KNOWN = {
    "start": "in the vocabulary only as the start of a word",
    "continuation": "in the vocabulary only as a continuation",
    "inside": "in the vocabulary only inside longer tokens",
    "nowhere": "not in the vocabulary",
}

# Letters and marks that are invisible (Default_Ignorable_Code_Point). Other characters that are
# invisible, or change the direction of a line, are recognized by their category.
HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def run_inspect(
    texts: Sequence[str], choice: TokenizerChoice, encoding: EncodingOptions, *, as_json: bool
) -> None:
    """Runs `wordpiece inspect`."""
    inspector = Inspector(
        load_tokenizer(choice),
        add_special_tokens=encoding.add_special_tokens,
        split_special_tokens=encoding.split_special_tokens,
    )
    if isinstance(sys.stdout, io.TextIOWrapper):  # which need not be UTF-8, as JSON is
        sys.stdout.reconfigure(
            encoding="utf-8" if as_json else None,
            errors="replace" if as_json else "backslashreplace",
        )
    try:
        inspections = map(inspector.inspect, _texts(texts))
        _print_json(inspections) if as_json else _print_tables(inspections, inspector.tokenizer)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _texts(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments. `-`, or no argument, stands for the lines of standard input."""
    for argument in arguments or ["-"]:
        if argument == "-":
            for line in sys.stdin.buffer:
                yield line.rstrip(b"\r\n").decode(errors="replace")
        else:
            yield os.fsencode(argument).decode(errors="replace")


def _print_json(inspections: Iterable[Inspection]) -> None:
    for inspection in inspections:
        line = json.dumps(asdict(inspection), ensure_ascii=False)
        print(re.sub(r"[^\x20-\x7e]", lambda found: _in_json(found.group()), line))


def _in_json(c: str) -> str:
    return json.dumps(c)[1:-1] if _is_hidden(c) else c


# --- Tables ---------------------------------------------------------------------------------------


def _print_tables(inspections: Iterable[Inspection], tokenizer: Tokenizer) -> None:
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    codes = {kind: _codes(style, console) for kind, style in STYLES.items()}
    for number, inspection in enumerate(inspections):
        if number:
            print()
        text = _shown(inspection.text, 4 * LONGEST) or "(no text)"
        lines = [(line, "head") for line in _wrapped(text, console)]
        lines += _table(inspection.tokens, console.width)
        for remark in [*_changes(inspection), *_reasons(inspection.words, tokenizer)]:
            lines += ((line, "text") for line in _wrapped(remark, console))
        print("\n".join(line.join(codes[kind]) for line, kind in lines))


def _wrapped(text: str, console: Console) -> Iterator[str]:
    from rich.text import Text

    for line in Text(text).wrap(console, console.width, overflow="fold"):
        yield line.plain.rstrip()


def _codes(style: str, console: Console) -> tuple[str, str]:
    """The codes that begin and end a style on this terminal. They are empty if it is a file."""
    from rich.text import Text

    with console.capture() as capture:
        console.print(Text("x", style), end="")
    begin, _, end = capture.get().partition("x")
    return begin, end


def _changes(inspection: Inspection) -> Iterator[str]:
    """Lines on what normalization changed in words, and what it removed between them."""
    changed = [word for word in inspection.words if word.raw != word.normalized]
    if changed:
        pairs = [f"{_shown(word.raw)} -> {_shown(word.normalized)}" for word in changed]
        yield f"changed: {_list(dict.fromkeys(pairs))}"
    places: dict[str, list[str]] = {}
    for dropped in inspection.dropped:
        places.setdefault(dropped.character, []).append(str(dropped.at))
    for character, at in places.items():
        yield f"dropped: {_name(character)} at {_list(at)}"


def _table(tokens: Sequence[Token], columns: int) -> Iterator[tuple[str, str]]:
    """The lines of the table and their kinds. A cell that is too wide continues in the next line.
    (rich's own tables take a minute for a text of 300 KB.)"""
    from rich.cells import cell_len, chop_cells, set_cell_size

    head = ["word", "chars", "id", "token", "source", ""]
    rows = [_cells(token) for token in tokens]
    narrow = columns < NARROW
    if narrow:
        head, *rows = ([row[0], *row[2:]] for row in [head, *rows])
    gap = " " if narrow else "  "
    widths = [max(map(cell_len, column)) for column in zip(head, *rows, strict=True)]
    _make_fit(widths, columns - len(gap) * (len(widths) - 1))
    kinds = ["head", *(token.kind for token in tokens)]
    for row, kind in zip([head, *rows], kinds, strict=True):
        folded = (chop_cells(c, max(w, 1)) for c, w in zip(row, widths, strict=True))
        for cells in zip_longest(*folded, fillvalue=""):
            numbers = (cell.rjust(w) for cell, w in zip(cells[:-3], widths, strict=False))
            others = map(set_cell_size, cells[-3:], widths[-3:])
            yield gap.join([*numbers, *others]).rstrip(), kind


def _cells(token: Token) -> list[str]:
    place = ["", ""] if token.word is None else [str(token.word), f"{token.start}-{token.end}"]
    kind = "" if token.kind == "text" else token.kind
    return [*place, str(token.id), _shown(token.token), _shown(token.source), kind]


def _make_fit(widths: list[int], room: int) -> None:
    """Makes the columns of tokens and sources narrower, always the wider one, down to 4."""
    token, source = len(widths) - 3, len(widths) - 2
    while sum(widths) > room and max(widths[token], widths[source]) > 4:
        widths[token if widths[token] > widths[source] else source] -= 1


def _reasons(words: Iterable[Word], tokenizer: Tokenizer) -> Iterator[str]:
    """Lines on why words are unknown, one for each distinct word."""
    numbers: dict[str, list[Word]] = {}
    for word in words:
        if word.too_long or word.misfits:
            numbers.setdefault(word.normalized, []).append(word)
    for normalized, same in numbers.items():
        which = f"word{'s' * (len(same) > 1)} {_list([str(word.number) for word in same])}"
        name = f"unknown: {_shown(normalized)} ({which})"
        if same[0].too_long:
            most = tokenizer.spec.max_word_length
            yield f"{name}: {len(normalized):,} characters, more than max_word_length ({most:,})"
        for misfit in same[0].misfits:
            yield f"{name}: {_misfit(misfit)}"


def _misfit(misfit: Misfit) -> str:
    after = f"after {_list(list(map(_shown, misfit.after)))}, " if misfit.after else ""
    return f"{after}no token fits at {_name(misfit.character)}, which is {KNOWN[misfit.known]}"


def _list(items: Collection[str]) -> str:
    more = f" and {len(items) - MOST:,} more" if len(items) > MOST else ""
    return ", ".join(islice(items, MOST)) + more


# --- Characters -----------------------------------------------------------------------------------


def _shown(text: str, longest: int = LONGEST) -> str:
    """The text on one line, with every character visible. Invisible characters are escaped, and a
    combining mark without a letter before it is put on a dotted circle."""
    if len(text) > longest:
        text = f"{text[: longest - 20]}…{text[-19:]}"
    shown = ""
    carries = False  # whether a mark can stand on what is shown last
    for c in text:
        is_hidden, is_mark = _is_hidden(c), unicodedata.category(c).startswith("M")
        if is_hidden:
            shown += f"\\u{ord(c):04x}" if c <= "\uffff" else f"\\U{ord(c):08x}"
        else:
            shown += "◌" * (is_mark and not carries) + c
        carries = not is_hidden and (c.isalnum() or not c.isascii())
    return shown


def _is_hidden(c: str) -> bool:
    """Whether a character is invisible, or changes the characters around it."""
    if c in WHITE_SPACE:
        return c not in " \u3000"
    return unicodedata.category(c)[0] == "C" or HIDDEN.match(c) is not None


def _name(c: str) -> str:
    """A character, its code point and its name."""
    name = unicodedata.name(c, "")
    return f"{_shown(c)} (U+{ord(c):04X}{' ' * bool(name)}{name})"
