"""Names of normalizers and pre-tokenizers, and their parts in a `tokenizer.json`. A part without a
name is its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from wordpiece_core.declared import checked, refusal

Json = dict[str, Any]
Normalizer = Literal["nfc", "nfd", "nfkc", "nfkd", "lowercase", "strip_accents"]

BERT, WHITESPACE, GPT2, NONE, DIGITS = ("bert", "whitespace", "gpt2", "none", "digits")
LONGEST_SEGMENT = 100  # characters of texts that are counted without a pre-tokenizer

# --- Regular expressions, as the libraries publish them -------------------------------------------

GPT2_PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LEAD = r"[^\r\n\p{L}\p{N}]?"  # before the letters of a word
_SPACES = [r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"]
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SIGNS_AND_SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_WORDS = [_CONTRACTION, _LEAD + r"\p{L}+"]


def _by_case(contraction: str = "") -> list[str]:
    """Return the patterns of words that begin in upper case or end in lower case."""
    upper = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
    lower = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    return [
        f"{_LEAD}{upper}*{lower}+{contraction}",
        f"{_LEAD}{upper}+{lower}*{contraction}",
    ]


_CASED, _CASED_WITH_CONTRACTION = _by_case(), _by_case(_CONTRACTION + "?")


# Without the last `+` of tiktoken's `{1,3}+`, which in a tokenizer.json is a second repetition.
CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
LLAMA3_PATTERN = "|".join([*_WORDS, r"\p{N}{1,3}", _SIGNS, *_SPACES])
QWEN2_PATTERN = "|".join([*_WORDS, r"\p{N}", _SIGNS, *_SPACES])
O200K_PATTERN = "|".join([*_CASED_WITH_CONTRACTION, r"\p{N}{1,3}", _SIGNS_AND_SLASHES, *_SPACES])
TEKKEN_PATTERN = "|".join([*_CASED, r"\p{N}", _SIGNS_AND_SLASHES, *_SPACES])
DEEPSEEK_PATTERNS = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)

# --- Superwords -----------------------------------------------------------------------------------


def _joined(pattern: str, lead: str, *words: str) -> str:
    """Return a pattern whose words also match more words, each after a single space.

    Args:
        lead: The pattern of the character before the letters of a word.
        words: The alternatives of words in the pattern.
    """
    word = "|".join(words)
    assert word in pattern
    first, more = word, "|".join(each.removeprefix(lead) for each in words)
    if len(words) > 1:
        first, more = f"(?:{first})", f"(?:{more})"
    return pattern.replace(word, f"{first}(?: {more})*")


_CL100K_LEAD, _DEEPSEEK_LEAD = r"[^\r\n\p{L}\p{N}]?+", r"[^\r\n\p{L}\p{P}\p{S}]?"
SUPERWORD_PATTERNS: dict[str, list[str]] = {
    GPT2: [_joined(GPT2_PATTERN, " ?", r" ?\p{L}+")],
    "cl100k": [_joined(CL100K_PATTERN, _CL100K_LEAD, _CL100K_LEAD + r"\p{L}++")],
    "o200k": [_joined(O200K_PATTERN, _LEAD, *_CASED_WITH_CONTRACTION)],
    "llama3": [_joined(LLAMA3_PATTERN, _LEAD, _WORDS[1])],
    "qwen2": [_joined(QWEN2_PATTERN, _LEAD, _WORDS[1])],
    "tekken": [_joined(TEKKEN_PATTERN, _LEAD, *_CASED)],
    "deepseek": [
        *DEEPSEEK_PATTERNS[:2],
        _joined(DEEPSEEK_PATTERNS[2], _DEEPSEEK_LEAD, _DEEPSEEK_LEAD + r"[\p{L}\p{M}]+"),
    ],
}
"""The patterns of pre-tokenizers with words joined over single spaces (SuperBPE, Liu et al.
2025)."""

# --- By name --------------------------------------------------------------------------------------


def split(pattern: str) -> Json:
    """Return the pre-tokenizer of a regular expression. Text without a match is also a word."""
    part = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    return part | {"invert": False}


PRE_TOKENIZERS: dict[str, list[Json]] = {
    BERT: [{"type": "BertPreTokenizer"}],
    WHITESPACE: [{"type": "WhitespaceSplit"}],
    NONE: [],
    DIGITS: [{"type": "Digits", "individual_digits": True}],
    GPT2: [split(GPT2_PATTERN)],
    "cl100k": [split(CL100K_PATTERN)],
    "o200k": [split(O200K_PATTERN)],
    "llama3": [split(LLAMA3_PATTERN)],
    "qwen2": [split(QWEN2_PATTERN)],
    "tekken": [split(TEKKEN_PATTERN)],
    "deepseek": [split(pattern) for pattern in DEEPSEEK_PATTERNS],
}
NORMALIZERS: dict[Normalizer, Json] = {
    "nfc": {"type": "NFC"},
    "nfd": {"type": "NFD"},
    "nfkc": {"type": "NFKC"},
    "nfkd": {"type": "NFKD"},
    "lowercase": {"type": "Lowercase"},
    "strip_accents": {"type": "StripAccents"},
}


def parse_pre_tokenizers(text: str) -> list[str]:
    """Return the pre-tokenizers in a text: names with commas between them, or one regular
    expression.

    >>> parse_pre_tokenizers("digits, gpt2"), parse_pre_tokenizers("[a-z]{1,3}|.")
    (['digits', 'gpt2'], ['[a-z]{1,3}|.'])
    """
    names = [name.strip() for name in text.split(",")]
    return names if {*names} <= PRE_TOKENIZERS.keys() else [text]


def check_pre_tokenizers(value: Any) -> str | tuple[str, ...]:
    """Return one pre-tokenizer, or a tuple of several. Raises ValueError."""
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, tuple | list) or not value:
        raise refusal(value, "a pre-tokenizer, or a list of them")
    for item in value:
        checked(str, item)
        is_other = is_json(item) or re.search(r"[\[\\.+*?|(]", item)
        if item not in PRE_TOKENIZERS and not is_other:
            raise refusal(item, f"one of {', '.join(PRE_TOKENIZERS)}, or a regular expression")
    return value[0] if len(value) == 1 else tuple(value)


def is_json(text: str) -> bool:
    """Return True for the JSON of a pre-tokenizer."""
    try:
        return text.startswith("{") and isinstance(json.loads(text), dict)
    except ValueError:
        return False


def pre_tokenizer_parts(names: Sequence[str]) -> list[Json]:
    """Return the parts of pre-tokenizers: names, regular expressions, or JSON."""
    return [part for name in names for part in _parts_of(name)]


def _parts_of(name: str) -> list[Json]:
    if name in PRE_TOKENIZERS:
        return PRE_TOKENIZERS[name]
    return [json.loads(name) if is_json(name) else split(name)]


def names_of_pre_tokenizers(parts: Sequence[Json]) -> str | tuple[str, ...]:
    """Return the pre-tokenizers with these parts."""
    whole = [name for name, known in PRE_TOKENIZERS.items() if known == list(parts)]
    if whole:
        return whole[0]
    names = tuple(
        next((name for name, known in PRE_TOKENIZERS.items() if known == [part]), json.dumps(part))
        for part in parts
    )
    return names[0] if len(names) == 1 else names


def sequence(parts: Sequence[Json], name: str) -> str | None:
    """Return the JSON of a part, or of a sequence of parts in the list `name`; None without
    parts."""
    if len(parts) > 1:
        return json.dumps({"type": "Sequence", name: list(parts)})
    return json.dumps(parts[0]) if parts else None
