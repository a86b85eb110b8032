"""Words of a text, by BERT's rules (Devlin et al. 2019).

1. Normalize: remove control characters, put spaces around Chinese characters, remove accents, and
   lowercase.
2. Split at white space, and around each punctuation character.

Python's Unicode tables decide about characters here. `tokenizers` and the kernel have tables of
other versions of Unicode, so they can differ for characters that were added or changed since.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable

SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


def words(text: str, *, lowercase: bool = True) -> list[str]:
    """Return the words of a text.

    >>> words("Ça va, 世界?")
    ['ca', 'va', ',', '世', '界', '?']
    """
    found = [""]
    for c in normalize(text, lowercase=lowercase):
        if c in SPACES:
            found.append("")
        elif is_punctuation(c):
            found += [c, ""]
        else:
            found[-1] += c
    return [word for word in found if word]


def normalize(text: str, *, lowercase: bool = True) -> str:
    """Return the text without control characters, with spaces around Chinese characters, and
    without accents and capital letters if `lowercase`."""
    text = "".join(" " if c in SPACES else c for c in text if not is_control(c))
    text = "".join(f" {c} " if is_chinese(c) else c for c in text)
    if lowercase:
        decomposed = unicodedata.normalize("NFD", text)
        text = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
        text = "".join(c.lower() for c in text)  # each alone, even a final sigma
    return text


def count_words(texts: Iterable[str], *, lowercase: bool = True) -> dict[str, int]:
    """Return the words of texts with their counts, the most frequent word first, then by code
    point. Training depends on this order.

    >>> count_words(["to be or not", "to be"])
    {'be': 2, 'to': 2, 'not': 1, 'or': 1}
    """
    counts = Counter(word for text in texts for word in words(text, lowercase=lowercase))
    return dict(sorted(counts.items(), key=lambda row: (-row[1], row[0])))


def is_control(c: str) -> bool:
    """Return True for characters that BERT removes."""
    is_kept = c in "\t\n\r"
    return not is_kept and (c in "\0\ufffd" or unicodedata.category(c) in ("Cc", "Cf", "Co"))


def is_chinese(c: str) -> bool:
    """Return True for ideographs of Chinese, Japanese and Korean."""
    return any(first <= ord(c) <= last for first, last in CHINESE)


def is_punctuation(c: str) -> bool:
    """Return True for Unicode's punctuation, and for all ASCII symbols."""
    return c in ASCII_PUNCTUATION or unicodedata.category(c).startswith("P")


def script(c: str) -> str | None:
    """Return the script of a character; None for marks, which go with any. The name of a letter
    begins with its script. (The kernel has Unicode's own table.)"""
    category = unicodedata.category(c)
    if category.startswith("M"):
        return None
    if not category.startswith("L"):
        return "UNKNOWN" if category in ("Cn", "Co") else "COMMON"
    name = unicodedata.name(c, "UNKNOWN").split()[0]
    return "CJK" if name in ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else name
