"""The words of the kernel equal the words of `tokenizers`, for every code point and for unusual
text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, WhitespaceSplit

from tests import oracle
from wordpiece_core import _kernel

from .strategies import odd_text

SWITCHES = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
COMBINATIONS = list(product([False, True], repeat=4))
UNCASED = (True, True, True, True)
BARE = (False, False, False, False)  # no normalization at all
PRE_TOKENIZERS = {"bert": BertPreTokenizer(), "whitespace": WhitespaceSplit()}

# The 17 planes of Unicode. A text of the tests holds 64 code points, with a space between them.
PLANES = range(17)
ASSIGNED = [
    pytest.param(plane, marks=() if plane in (0, 1) else pytest.mark.soak) for plane in PLANES
]
ROW = 64

Switches = tuple[bool, bool, bool, bool]


def words_by_kernel(texts: list[str], switches: Switches, pre_tokenizer: str) -> list[list[str]]:
    options: dict[str, Any] = dict(zip(SWITCHES, switches, strict=True))
    array = _kernel.pre_tokenize(
        pa.array(texts, pa.large_string()), options | {"pre_tokenizer": pre_tokenizer}
    )
    words: list[list[str]] = pa.array(array).to_pylist()
    return words


@lru_cache(maxsize=0x10000 // ROW)  # most texts of a plane are the same after any normalization
def cut(normalized: str, pre_tokenizer: str) -> list[str]:
    return [word for word, _ in PRE_TOKENIZERS[pre_tokenizer].pre_tokenize_str(normalized)]


def words_by_tokenizers(
    texts: Iterable[str], switches: Switches, pre_tokenizer: str
) -> Iterator[list[str]]:
    normalizer = BertNormalizer(**dict(zip(SWITCHES, switches, strict=True)))
    return (cut(normalizer.normalize_str(text), pre_tokenizer) for text in texts)


def differing(texts: list[str], switches: Switches, pre_tokenizer: str) -> list[int]:
    mine = words_by_kernel(texts, switches, pre_tokenizer)
    theirs = words_by_tokenizers(texts, switches, pre_tokenizer)
    return [i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b]


def assert_same_words(
    plane: int, context: Callable[[str], str], switches: Switches, pre_tokenizer: str = "bert"
) -> None:
    """Compare a plane text by text, and where texts differ name the code points that do."""
    points = [chr(c) for c in range(plane << 16, plane + 1 << 16) if not 0xD800 <= c < 0xE000]
    rows = [points[i : i + ROW] for i in range(0, len(points), ROW)]
    wrong = differing([" ".join(map(context, row)) for row in rows], switches, pre_tokenizer)
    suspects = [c for i in wrong for c in rows[i]]
    found = differing(list(map(context, suspects)), switches, pre_tokenizer)
    names = [f"U+{ord(suspects[i]):04X}" for i in found]
    assert not wrong, (switches, names)


@pytest.mark.parametrize("plane", ASSIGNED)
def test_every_code_point_alone_gives_the_words_of_tokenizers(plane: int) -> None:
    for switches in COMBINATIONS:
        assert_same_words(plane, str, switches)


@pytest.mark.soak
@pytest.mark.parametrize("switches", [UNCASED, pytest.param(BARE, marks=pytest.mark.soak)])
def test_every_code_point_is_cut_at_white_space_as_tokenizers_cuts_it(switches: Switches) -> None:
    for plane in PLANES:
        assert_same_words(plane, lambda c: f"a{c}b", switches, "whitespace")


any_switches = st.sampled_from(COMBINATIONS)
any_pre_tokenizer = st.sampled_from(["bert", "whitespace"])


@given(st.lists(odd_text(), max_size=8), any_switches, any_pre_tokenizer)
@example(["\u0344\u0301a\u0323\u0301", "각\u11a8가\u11a7", "\u0f73\u0f71\u0f72"], UNCASED, "bert")
@example(["ΑΣ ΑΣΑ Σ", "İI\u0307ıi", "ﬃ ẞß ŉ"], UNCASED, "bert")
@example(["", " ", "\0", "\ufffd\u200b"], UNCASED, "bert")
def test_random_text_gives_the_words_of_tokenizers(
    texts: list[str], switches: Switches, pre_tokenizer: str
) -> None:
    expected = list(words_by_tokenizers(texts, switches, pre_tokenizer))
    assert words_by_kernel(texts, switches, pre_tokenizer) == expected


@given(st.integers(0, 400), odd_text(max_size=4), st.integers(0, 400), any_switches)
def test_one_odd_character_in_long_plain_text_gives_the_words_of_tokenizers(
    before: int, odd: str, after: int, switches: Switches
) -> None:
    # Fast ways for plain ASCII must end where it ends.
    plain = "The quick Brown fox, jumps (over) it's lazy-dog. 1234567890abcdefghijklmnop! " * 6
    text = plain[:before] + odd + plain[len(plain) - after :]
    expected = list(words_by_tokenizers([text], switches, "bert"))
    assert words_by_kernel([text], switches, "bert") == expected


def test_many_marks_on_one_letter_are_put_in_order() -> None:
    text = "a" + "\u0301\u0323\u0345\u0327" * 500 + "b"
    for switches in COMBINATIONS:
        expected = list(words_by_tokenizers([text], switches, "bert"))
        assert words_by_kernel([text], switches, "bert") == expected


def test_null_rows_stay_null() -> None:
    options: dict[str, Any] = dict(zip(SWITCHES, UNCASED, strict=True))
    texts = pa.array(["A b", None, "", "c"])
    words = pa.array(_kernel.pre_tokenize(texts, options | {"pre_tokenizer": "bert"}))
    assert words.to_pylist() == [["a", "b"], None, [], ["c"]]


# Assigned before Unicode 9, and of one category since.
OLD_TEXT = (
    "aZé Å\u0323\u0301 İß ΣΑΣ й ё 한글 漢字 が\u3099 नमस्ते ก «a» ¿b? ٣ ½ € … — \u200d\xad"
    "\t\0\ufffd\x7f\u3000\xa0ﬁ²\n-+=$×\u2028\x1c\x85"
)


@given(st.text(OLD_TEXT), any_switches, any_pre_tokenizer)
def test_the_reference_agrees_on_old_characters(
    text: str, switches: Switches, pre_tokenizer: str
) -> None:
    options = dict(zip(SWITCHES, switches, strict=True))
    words = oracle.words(text, pre_tokenizer=pre_tokenizer, **options)
    assert [words] == words_by_kernel([text], switches, pre_tokenizer)
    assert [words] == list(words_by_tokenizers([text], switches, pre_tokenizer))
