"""`wordpiece inspect` for texts: show their tokens to people and to scripts."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

from pipelines.encoding.options import TokenizerOptions
from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core.symbols import BYTES
from wordpiece_core.tokenizer.bytes_as_text import readable
from wordpiece_core.tokenizer.inspection import Inspection, Inspector, Misfit, Token, Word
from wordpiece_core.tokenizer.segmentation_reasons import ScoredSegmentation
from wordpiece_core.visible import LONGEST, is_hidden, name_of, visible

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"head": "bold", "text": "", "unknown": "bold red", "special": "cyan", "added": "dim"}
MOST_ITEMS = 20  # items of a list; the others are counted
Show = Callable[[str], str]
"""Turns a token into visible text."""
KNOWN = {
    "start": "in the vocabulary only as the start of a word",
    "continuation": "in the vocabulary only as a continuation",
    "inside": "in the vocabulary only inside longer tokens",
    "nowhere": "not in the vocabulary",
}


def run_inspect(
    texts: Sequence[str], choice: TokenizerOptions, encoding: EncodingOptions, *, as_json: bool
) -> None:
    """Run `wordpiece inspect` for texts."""
    inspector = Inspector(
        choice.load_tokenizer(),
        add_special_tokens=encoding.add_special_tokens,
        special_tokens_in_text=encoding.special_tokens_in_text,
    )
    if as_json and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    inspections = map(inspector.inspect, _texts(texts))
    _print_json(inspections) if as_json else _print_tables(inspections, inspector.tokenizer)


def _texts(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments. For `-`, or without arguments, yield the lines of standard input."""
    for argument in arguments or ["-"]:
        if argument == "-":
            for line in sys.stdin.buffer:
                yield line.rstrip(b"\r\n").decode(errors="replace")
        else:
            yield os.fsencode(argument).decode(errors="replace")


def _print_json(inspections: Iterable[Inspection]) -> None:
    for inspection in inspections:
        plain = {name: of for name, of in asdict(inspection).items() if of is not None}
        line = json.dumps(plain, ensure_ascii=False)
        print(re.sub(r"[^\x20-\x7e]", lambda found: _in_json(found.group()), line))


def _in_json(c: str) -> str:
    return json.dumps(c)[1:-1] if is_hidden(c) else c


# --- Tables ---------------------------------------------------------------------------------------


def _print_tables(inspections: Iterable[Inspection], tokenizer: Tokenizer) -> None:
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    codes = {kind: _codes(style, console) for kind, style in STYLES.items()}
    is_of_bytes = tokenizer.spec.word_boundary == BYTES
    show: Show = (lambda token: visible(readable(token))) if is_of_bytes else visible
    for number, inspection in enumerate(inspections):
        if number:
            print()
        text = visible(inspection.text, 4 * LONGEST) or "(no text)"
        lines = [(line, "head") for line in _wrapped(text, console)]
        lines += _table(inspection.tokens, show)
        more_warnings = [*_changes(inspection), *_reasons(inspection.words, tokenizer)]
        for warning in [*more_warnings, *_segmentations(inspection, show)]:
            lines += ((line, "text") for line in _wrapped(warning, console))
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
    # With some rules of text the spaces before a word are part of what it comes from.
    forms = [(word.raw.lstrip(" "), word.normalized.lstrip(" ")) for word in inspection.words]
    pairs = [f"{visible(raw)} -> {visible(normal)}" for raw, normal in forms if raw != normal]
    if pairs:
        yield f"changed: {_list(dict.fromkeys(pairs))}"
    places: dict[str, list[str]] = {}
    for dropped in inspection.dropped:
        places.setdefault(dropped.character, []).append(str(dropped.at))
    for character, at in places.items():
        yield f"dropped: {name_of(character)} at {_list(at)}"


def _table(tokens: Sequence[Token], show: Show) -> Iterator[tuple[str, str]]:
    """The lines of the table and their kinds. (rich's own tables take a minute for a text of 300
    KB.)"""
    from rich.cells import cell_len, set_cell_size

    head = ["word", "chars", "id", "token", "source", ""]
    rows = [head, *(_cells(token, show) for token in tokens)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row, kind in zip(rows, ["head", *(token.kind for token in tokens)], strict=True):
        numbers = [cell.rjust(width) for cell, width in zip(row[:3], widths, strict=False)]
        others = map(set_cell_size, row[3:], widths[3:])
        yield "  ".join([*numbers, *others]).rstrip(), kind


def _cells(token: Token, show: Show) -> list[str]:
    place = ["", ""] if token.word is None else [str(token.word), f"{token.start}-{token.end}"]
    kind = "" if token.kind == "text" else token.kind
    return [*place, str(token.id), show(token.token), visible(token.source), kind]


def _reasons(words: Iterable[Word], tokenizer: Tokenizer) -> Iterator[str]:
    """Lines on why words are unknown, one for each distinct word."""
    numbers: dict[str, list[Word]] = {}
    for word in words:
        if word.too_long or word.misfits:
            numbers.setdefault(word.normalized, []).append(word)
    for normalized, same in numbers.items():
        which = f"word{'s' * (len(same) > 1)} {_list([str(word.number) for word in same])}"
        name = f"unknown: {visible(normalized)} ({which})"
        if same[0].too_long:
            most = tokenizer.spec.max_word_length
            yield f"{name}: {len(normalized):,} characters, more than max_word_length ({most:,})"
        for misfit in same[0].misfits:
            yield f"{name}: {_misfit(misfit)}"


def _segmentations(inspection: Inspection, show: Show) -> Iterator[str]:
    """Lines on how words came by their tokens, one for each distinct word."""
    words = {word.number: word.normalized for word in inspection.words}
    said = {}
    for reason in inspection.reasons or ():
        name = visible(words[reason.word])
        if reason.merges:
            merges = [f"{show(m.left)} + {show(m.right)} ({m.rank:,})" for m in reason.merges]
            said[name] = f"merges of {name}, with their ranks: {_list(merges)}"
        elif reason.best is not None:
            other = "; there is no other segmentation"
            if reason.next_best is not None:
                other = f", next best {_scored(reason.next_best)}"
            said[name] = f"score of {name}: {_scored(reason.best)}{other}"
    yield from islice(said.values(), MOST_ITEMS)
    if len(said) > MOST_ITEMS:
        yield f"and {len(said) - MOST_ITEMS:,} more words"


def _scored(found: ScoredSegmentation) -> str:
    return f"{' '.join(map(visible, found.tokens))} {found.score:.4g}"


def _misfit(misfit: Misfit) -> str:
    after = f"after {_list(list(map(visible, misfit.after)))}, " if misfit.after else ""
    return f"{after}no token fits at {name_of(misfit.character)}, which is {KNOWN[misfit.known]}"


def _list(items: Collection[str]) -> str:
    more = f" and {len(items) - MOST_ITEMS:,} more" if len(items) > MOST_ITEMS else ""
    return ", ".join(islice(items, MOST_ITEMS)) + more
