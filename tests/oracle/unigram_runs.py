"""Words to runs, the stretches that pieces are taken of when a unigram language model is trained.

No piece has characters of two scripts, as in SentencePiece. Unicode's property Script decides, but
Han, Hiragana, Katakana and the mark ー are one; what is Inherited goes with any. ``▁`` begins a
run.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

from tests.oracle.symbols import SPACE_MARK, marked


def script_by_name(character: str) -> str | None:
    """The script of a character; None if it goes with any. Python does not know scripts; the name
    of a character begins with its script, nearly always. (The kernel has Unicode's own table.)

    >>> [script_by_name(c) for c in "aя1.漢ー\N{COMBINING ACUTE ACCENT}\ue000"]
    ['LATIN', 'CYRILLIC', 'COMMON', 'COMMON', 'CJK', 'CJK', None, 'UNKNOWN']
    """
    category = unicodedata.category(character)
    if category.startswith("M"):
        return None
    if category in ("Cn", "Co"):
        return "UNKNOWN"
    if not category.startswith("L"):
        return "COMMON"
    script = unicodedata.name(character, "UNKNOWN").split()[0]
    return "CJK" if script in ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else script


def runs(
    word: str,
    alphabet: Iterable[str] | None = None,
    script: Callable[[str], str | None] = script_by_name,
) -> list[str]:
    """The runs of a word, with ``▁`` before it. They end where the script changes, and at
    characters outside the alphabet, which are in none.

    >>> runs("x-raysビーム線")
    ['▁x', '-', 'rays', 'ビーム線']
    >>> runs("x-rays", alphabet="▁aysx")
    ['▁x', 'ays']
    """
    known = None if alphabet is None else set(alphabet)
    found: list[str] = [""]
    last: str | None = None
    for character in marked(word):
        if known is not None and character not in known:
            found.append("")
            last = None
            continue
        now = None if character == SPACE_MARK else script(character)
        if character == SPACE_MARK or (now and last and now != last):
            found.append("")
            last = None
        found[-1] += character
        last = now or last
    return [run for run in found if run]


def run_counts(
    rows: Iterable[tuple[str, int]], alphabet: Iterable[str] | None, max_word_length: int
) -> Counter[str]:
    """Return the runs of words with their counts, without runs of more characters."""
    counts: Counter[str] = Counter()
    known = None if alphabet is None else set(alphabet)
    for word, n in rows:
        for run in runs(word, known):
            if len(run) <= max_word_length:
                counts[run] += n
    return counts


def character_counts(counts: Counter[str]) -> Counter[str]:
    """Return the counts of characters in runs."""
    characters: Counter[str] = Counter()
    for run, n in counts.items():
        for character in run:
            characters[character] += n
    return characters
