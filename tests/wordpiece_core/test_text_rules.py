"""Rules of text that are not BERT's: GPT-2's and SentencePiece's, as `tokenizers` and
`sentencepiece` have them."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from wordpiece_core import TextOptions, _kernel
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.symbols import SPACE_MARK
from wordpiece_core.tokenizer.parts import AT_MARKS, sentencepiece_normalizer
from wordpiece_core.tokenizer.words import Words

from ..quick import parametrize
from .sentencepiece_models import charsmap, processor
from .strategies import ODD, odd_text

GPT2 = TextOptions(pre_tokenizer="gpt2")
RULES = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
ROW = 64
PLANES = [range(plane << 16, plane + 1 << 16) for plane in range(17)]
BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
PIECES = (
    *("'s", "'re", "'ll", "'", "  ", " ", "\n", "\r\n", "a", "B", "7", "...", "don't", "é", "日"),
)
SPACED = (" ", "  ", "\u3000", "\xa0", "▁", "▁ ", "a", "b", "e\u0301", "\xa8", "\ufb01", "\x0b")
MARKED = ("\u0344", "\u0600", "\u0d4e", "\u200c", "が", "か\u3099", "\r\n", "\x85")

mixed = st.lists(st.sampled_from([*PIECES, *ODD]), max_size=120).map("".join)
spaced = st.lists(st.sampled_from([*SPACED, *MARKED, *ODD]), max_size=30).map("".join)


def words(texts: list[str], options: TextOptions = GPT2, **rules: Any) -> list[list[str]]:
    array = pa.array(texts, pa.large_string())
    return pa.array(_kernel.pre_tokenize(array, options.for_kernel() | rules)).to_pylist()


def rows(context: str) -> list[str]:
    """Every code point in a context, many to a text."""
    points = [chr(c) for plane in PLANES for c in plane if not 0xD800 <= c < 0xE000]
    parts = (points[i : i + ROW] for i in range(0, len(points), ROW))
    return ["".join(context.replace("c", c) for c in part) for part in parts]


def pieces(text: str, rules: pre_tokenizers.ByteLevel = BYTE_LEVEL) -> list[str]:
    return [text[start:end] for _, (start, end) in rules.pre_tokenize_str(text)]


@pytest.mark.soak
def test_gpt2_words_of_every_code_point_match_tokenizers() -> None:
    texts = rows("xc7")
    for text, found in zip(texts, words(texts), strict=True):
        assert found == pieces(text)


@given(st.lists(st.one_of(mixed, odd_text()), max_size=5))
@example(["'s 's''s\n's  's", "a  \n b \t", "can't'VE'll'ld", " ", "\n\n", "x \u3000y\xa0 z"])
def test_gpt2_words_match_tokenizers(texts: list[str]) -> None:
    assert words(texts) == [pieces(text) for text in texts]


@given(mixed)
@example("")
@example("\n")
@example("\t\ta")
@example("'s")
def test_a_space_is_put_before_a_text_as_tokenizers_does(text: str) -> None:
    rules = _kernel.Composed.gpt2(True)
    prefixed = text if text.startswith(" ") or not text else " " + text
    assert words([text], rules=rules) == [pieces(prefixed)]


def test_gpt2_takes_text_as_it_is() -> None:
    options = GPT2.for_kernel() | {"lowercase": True}
    with pytest.raises(OptionError, match="gpt2 takes text as it is"):
        _kernel.pre_tokenize(pa.array(["a"]), options)


@cache
def of_sentencepiece(rule: str, collapse: bool, dummy: bool) -> tuple[Any, Any]:
    compiled = charsmap(rule)
    theirs = processor(compiled, collapse=collapse, dummy_prefix=dummy)
    return rules_of(compiled, collapse, dummy), theirs


def rules_of(compiled: bytes, collapse: bool = True, dummy: bool = True) -> Any:
    """Return the rules of a sentencepiece model whose pieces do not cross words."""
    options = {"add_dummy_prefix": dummy, "remove_extra_whitespaces": collapse}
    part = sentencepiece_normalizer(compiled, **options)
    return Words(None, SPACE_MARK, (part,), (AT_MARKS,), is_metaspace=True).rules()


def normalized(text: str, rules: Any) -> str:
    """A text as the words of rules are together."""
    return "".join(words([text], rules=rules)[0])


@parametrize("rule", RULES, quick=1)
def test_every_code_point_is_normalized_as_sentencepiece_does(rule: str) -> None:
    mine, theirs = of_sentencepiece(rule, collapse=True, dummy=True)
    for text in rows("ac b"):
        assert normalized(text, mine) == theirs.normalize(text)


@given(spaced, st.sampled_from(RULES), st.booleans(), st.booleans())
@example("a ▁ ▁\u3000", "nfkc", True, True)
@example("\u0001 \xa8 a", "nmt_nfkc", True, False)
@example("\x0b", "nmt_nfkc", False, True)
def test_text_is_normalized_as_sentencepiece_does(
    text: str, rule: str, collapse: bool, dummy: bool
) -> None:
    mine, theirs = of_sentencepiece(rule, collapse, dummy)
    assert normalized(text, mine) == theirs.normalize(text)


def damaged_maps() -> list[bytes]:
    whole = charsmap("nmt_nfkc")
    size = struct.unpack("<I", whole[:4])[0]
    a = ord("a")  # the root leads to a node that leads to itself
    ring = struct.pack("<2I", 1024, 1 << 10) + struct.pack("<I", a << 10 | a) * 255 + b"\0"
    return [
        *(whole[:3], whole[:100], b"\xff" * 8, whole[: 4 + size], whole[:-1], whole + b"\xff\0"),
        *(struct.pack("<I", size - 2) + whole[4:], ring),
    ]


@pytest.mark.parametrize("compiled", damaged_maps())
def test_a_damaged_map_is_refused(compiled: bytes) -> None:
    with pytest.raises(InputError, match="map of characters"):
        rules_of(compiled)
