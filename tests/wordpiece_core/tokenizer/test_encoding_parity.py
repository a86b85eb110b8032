"""Compare every column of the kernel with `tokenizers`: code points in contexts, and text that is
hard to split. `make soak` tries more, and `python -m tests.parity` complete corpora."""

from __future__ import annotations

import random
import re
import unicodedata
from dataclasses import replace
from itertools import islice, product
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_core as wp
from tests.oracle import SPECIAL_TOKENS
from wordpiece_core.options import EncodingOptions, TextOptions

from ...parity.bert import (
    CONTEXTS,
    EVERYTHING,
    TEXT_OPTIONS,
    Pair,
    all_points,
    differing_points,
    is_plain,
    point_vocabulary,
)
from ...parity.reference import faults
from ..encoding_cases import Case, Rows, by_kernel, by_reference, random_case
from ..strategies import odd_text

UNCASED = TextOptions().resolve()
CASED = TextOptions(lowercase=False).resolve()
FEW = ("between letters", "between marks")


# --- Code points ----------------------------------------------------------------------------------


FEW_OPTIONS = [
    pytest.param(options, marks=() if options == UNCASED else pytest.mark.soak)
    for options in TEXT_OPTIONS
]


@pytest.mark.parametrize("options", FEW_OPTIONS, ids=str)
def test_code_points_of_all_kinds_are_encoded_among_all_neighbours(options: TextOptions) -> None:
    points = [c for plane in all_points() for c in plane if not is_plain(c)]
    pair = Pair(point_vocabulary(points), options)
    contexts = tuple(CONTEXTS) if options in (UNCASED, CASED) else FEW
    assert differing_points(pair, points, contexts) == []


@pytest.mark.parametrize("options", FEW_OPTIONS, ids=str)
def test_combining_sequences_are_encoded(options: TextOptions) -> None:
    rng = random.Random(5)
    every = [c for plane in all_points() for c in plane if not is_plain(c)]
    marks = [c for c in every if unicodedata.combining(c)]
    long = [c for c in every if unicodedata.normalize("NFD", c) != c]
    bases = [*"aeioE中가!1 \u200d", "\U0001d15e", "\U0001d165", *long]
    kept = ["\U0001d165", "\U0001d16d", "\u302e", "\u302f", "\U0001d172"]
    texts = []
    for _ in range(2500):
        text = ""
        for _ in range(rng.randint(1, 4)):
            run = (rng.choice(rng.choice((marks, marks, kept, long))) for _ in range(6))
            text += rng.choice(bases) + "".join(islice(run, rng.randint(0, 6)))
        texts += [text, text[::-1]]
    pair = Pair(point_vocabulary(sorted(set("".join(texts)))), options)
    assert [ascii(texts[i]) for i in pair.differing(texts)] == []


def test_a_lone_surrogate_is_an_error_in_one_line() -> None:
    tok = wp.Tokenizer(list(SPECIAL_TOKENS))
    for text in ("\ud800", "a\udfff", "\udc00\ud800", "\ud83d\ude00"):
        for encode in (
            tok.encode_batch,
            tok.encode_table,
            lambda texts: tok.encode_table(["a"], texts),
            lambda texts: tok.encode(*texts),
        ):
            with pytest.raises(wp.InputError, match="texts") as raised:
                encode([text])
            assert "\n" not in str(raised.value)


# --- Text that is hard to split -------------------------------------------------------------------

EMOJI = (
    "👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d🚀 🏳\ufe0f\u200d🌈 🇩🇪🇫🇷 🇩 "
    "1\ufe0f\u20e3#\ufe0f\u20e3*\u20e3 👍👍🏿 ☺☺\ufe0f☺\ufe0e "
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f a👩b 👩\u200d \u200d👩 "
    "👩\u200d\u200d👩 ❤\ufe0f\u200d🔥!❤ 😀😀 😀a😀 中😀中 ©\ufe0f®™\ufe0f"
)
HANGUL = (
    "한국어 가각갂갃 ᄒᆞᆫ 한글 각ᆨ 각 가ᆧ ᄀ ᅡ "
    "ᆨ ㄱㅏㄱ 가\u0301 각가각 a가b 가中가 힣힝 ᄀ가 가\u302e나\u302f ﾡￂ"
)
BIDI = (
    "a\u202eb\u202cc \u200fא\u200eب \u2066x\u2069 \u2067y\u2068z \u202aa\u202bb\u202dc "
    "a\u00adb a\u200bb a\u200cb a\u200db a\u2060b a\ufeffb \ufeffa a\u180eb a\u034fb "
    "a\u2028b\u2029c"
)
WORDS = (
    "don't U.S.A. 3.14 e-mail a_b #tag @me ¿qué? «oui» …and— naïve Ångström Straße "
    "İstanbul ΣΊΣΥΦΟΣ ﬁn ǅ ŉ ½ x² ① Ⅳ ㎏ ﷺ"
)
SPECIAL = (
    "[MASK] [CLS][SEP] a[MASK]b [MASK][MASK] [MASK "
    "[[MASK]] [MASK]] [mask] [Mask] [MÁSK] "
    "[M ASK] [SEP] [PAD]x [UNK] x[UNK] [UNK]\u0301 \u0301[UNK] [SE[SEP]P] [CL[MASK]S] "
    "[SEP]中[SEP] ##[SEP] [SEP]## [MASK]ed un[MASK]able [\u200bMASK] [MASK\u200b] "
    '[MASK]\u200b[SEP] ［MASK］ [unused1] <s></s> [MASK]. ([MASK]) "[MASK]"'
)


@pytest.mark.parametrize("text", [EMOJI, HANGUL, BIDI, WORDS, SPECIAL], ids=lambda text: text[:5])
@pytest.mark.parametrize("options", FEW_OPTIONS, ids=str)
def test_sequences_are_encoded_whole_and_in_part(options: TextOptions, text: str) -> None:
    texts = [text, text.replace(" ", ""), *text.split(), *re.split(r"(?<=\S) ", text)]
    texts += [text[i:j] for i in range(0, len(text), 3) for j in (i + 2, i + 5, i + 9)]
    texts += [a + b for a, b in product(text.split()[::2], repeat=2)]
    vocab = point_vocabulary(sorted(set(text)))
    vocab += [t for t in ("##mask", "mask", "##ask", "한국", "##글") if t not in vocab]
    for split in (False, True):
        pair = Pair(vocab, options, hides=split)
        way = replace(EVERYTHING, special_tokens_in_text="text" if split else "parse")
        assert [texts[i] for i in pair.differing(texts, None, way)] == []
        added = replace(way, add_special_tokens=False)
        assert [texts[i] for i in pair.differing(texts, texts[::-1], added)] == []


@pytest.mark.parametrize("options", TEXT_OPTIONS, ids=str)
def test_words_around_the_limit_are_unknown_as_in_tokenizers(
    options: TextOptions,
) -> None:
    texts = []
    # İ and ŉ grow when lowered, é and ǖ and 각 when stripped; \u0301 and \u200d go.
    for unit in ("a", "A", "é", "ǖ", "İ", "ŉ", "각", "😀", "x\u0301", "x\u200d", "\U0001d15e"):
        for length in (*range(31, 36), *range(48, 53), *range(97, 104), 200, 1030, 1100):
            texts += [unit * length, f"b {unit * length}. b", "a" * (length - 1) + unit]
    pair = Pair(point_vocabulary(sorted(set("".join(texts)))), options)
    assert [texts[i] for i in pair.differing(texts)] == []


# --- Pairs, truncation, stride, padding -----------------------------------------------------------


def test_a_stride_needs_room_only_in_the_text_that_is_cut() -> None:
    rng = random.Random(7)
    pair = Pair([*point_vocabulary("abcd."), "ab", "##cd"], UNCASED)
    questions, contexts = (
        ["".join(rng.choices("abcd .", k=length)) for _ in range(50)] for length in (3, 90)
    )
    way = replace(EVERYTHING, max_length=16, stride=7, padding=True)
    for texts in ((questions, contexts), (contexts, questions)):
        assert pair.differing(*texts, way) == []
    with pytest.raises(wp.InputError, match=r"pair 0: stride 7 is not less than the 6 tokens left"):
        pair.kernel.encode_table(contexts, contexts, options=way)


def test_threads_and_slices_do_not_change_rows() -> None:
    case = random_case(Random(3), rows=200)
    case = replace(case, encoding=EncodingOptions(columns=EVERYTHING.columns))
    once = by_kernel(case)
    assert all(by_kernel(case, threads) == once for threads in (2, 3, 1000))
    sliced = replace(case, texts=pa.array(case.texts)[50:], pairs=case.pairs and case.pairs[50:])
    assert by_kernel(sliced).rows == once.rows[50:]


# --- Against the plain reference ------------------------------------------------------------------


def test_random_cases_match_the_reference_and_tokenizers() -> None:
    for seed in range(60):
        rng = Random(seed)
        assert faults(random_case(rng), rng.choice([1, 1, 2])) == [], seed


@given(st.lists(odd_text(), min_size=1, max_size=4), st.sampled_from(TEXT_OPTIONS))
def test_odd_text_is_encoded_as_tokenizers_does(texts: list[str], options: TextOptions) -> None:
    pair = Pair(point_vocabulary(sorted(set("".join(texts)))), options)
    assert pair.differing(texts) == []


# Findings of the fuzz target.
FOUND = [
    (
        "no room for either text, in any way of truncation",
        Case(
            [*SPECIAL_TOKENS, "a"],
            {},
            replace(EVERYTHING, max_length=3, truncation="only_first"),
            ["", "a a"],
            ["a a", "a"],
        ),
    ),
    (
        "marks that change places leave the places in order",
        Case(
            [*SPECIAL_TOKENS, "a", "##\U0001d165", "##\U0001d16d", "##b"],
            {},
            EVERYTHING,
            ["a\U0001d16d\U0001d165\u0323b", "a\U0001d165\u0327b", "a\u0344\U0001d165b"],
        ),
    ),
]


@pytest.mark.parametrize("case", [case for _, case in FOUND], ids=[name for name, _ in FOUND])
def test_cases_found_by_fuzzing_are_correct(case: Case) -> None:
    assert faults(case, 1) == []
    rows: Rows = by_reference(case).rows
    assert any(row and row["num_tokens"] > 2 for row in rows)
