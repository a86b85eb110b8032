"""The worked examples of the WordPiece literature, through the public API."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import wordpiece_core as wp

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

HUGS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}

# From the words of four sentences about the Hugging Face course.
COURSE = {
    **{"This": 3, "is": 2, "the": 1, "Hugging": 1, "Face": 1, "Course": 1, ".": 4, "chapter": 1},
    **{"about": 1, "tokenization": 1, "section": 1, "shows": 1, "several": 1, "tokenizer": 1},
    **{"algorithms": 1, "Hopefully": 1, ",": 1, "you": 1, "will": 1, "be": 1, "able": 1, "to": 1},
    **{"understand": 1, "how": 1, "they": 1, "are": 1, "trained": 1, "and": 1, "generate": 1},
    **{"tokens": 1},
}
COURSE_MERGES = (
    "ab ##fu Fa Fac ##ct ##ful ##full ##fully Th ch ##hm cha chap chapt ##thm Hu Hug Hugg sh th is "
    "##thms ##za ##zat ##ut"
)
COURSE_SCORES = (
    "1/5 1/5 1/7 1/2 1/7 1/7 1/6 1/2 1/8 1/5 1/4 1/6 1/2 1/6 1/5 1/8 1/4 1/3 1/9 1/7 1/10 1/8 1/10 "
    "1/4 1/9"
)
FIRST_SEEN = "T ##h ##i ##s i t ##e H ##u ##g ##n F ##a ##c C ##o ##r . c ##p ##t a"

Log = list[dict[str, Any]]


def train(word_counts: dict[str, int], **options: Any) -> tuple[list[str], Log]:
    result = wp.train(word_counts, min_pair_count=1, **options)
    return result.vocab, result.merges.to_pylist()


def tokenize(vocab: list[str], text: str) -> list[str]:
    return wp.Tokenizer(vocab=vocab, lowercase=False).tokenize(text)


def test_a_rare_pair_of_rare_tokens_beats_a_common_pair_of_common_ones() -> None:
    # Without a prefix q, u, qu and t, h, th count 100, 5000, 95 and 8000, 6000, 4000.
    words = {"qu": 95, "q": 5, "u": 4905, "th": 4000, "t": 4000, "h": 2000}
    vocab, merges = train(words, vocab_size=11, continuing_prefix="")
    assert vocab == [*SPECIAL, "h", "q", "t", "u", "qu", "th"]
    columns = ("left", "right", "score", "pair_count", "left_count", "right_count")
    assert [tuple(merge[column] for column in columns) for merge in merges] == [
        ("q", "u", 0.00019, 95, 100, 5000),
        ("t", "h", 1 / 12000, 4000, 8000, 6000),
    ]


def test_hugs_begin_with_their_alphabet_and_merge_g_and_s_first() -> None:
    vocab, merges = train(HUGS, vocab_size=13)
    assert vocab[:5] == SPECIAL
    assert set(vocab[5:12]) == {"b", "h", "p", "##g", "##n", "##s", "##u"}
    assert vocab[5:12] == sorted(vocab[5:12])
    assert vocab[12:] == ["##gs"]
    assert merges == [
        {
            **{"step": 1, "left": "##g", "right": "##s", "token": "##gs"},
            **{"score": 1 / 20, "pair_count": 5, "left_count": 20, "right_count": 5},
        }
    ]


def test_the_course_gives_the_published_tokens_and_scores() -> None:
    vocab, merges = train(COURSE, vocab_size=70)
    assert vocab[:5] == SPECIAL
    assert vocab[5:45] == sorted(vocab[5:45])
    assert vocab[45:] == COURSE_MERGES.split()
    assert [merge["token"] for merge in merges] == COURSE_MERGES.split()
    scores = [float(Fraction(score)) for score in COURSE_SCORES.split()]
    assert [merge["score"] for merge in merges] == scores
    assert [merge["step"] for merge in merges] == list(range(1, 26))


def test_the_alphabet_can_stand_in_the_order_in_which_it_was_seen() -> None:
    first_seen, _ = train(COURSE, vocab_size=70, alphabet_order="first_seen")
    in_order, _ = train(COURSE, vocab_size=70)
    assert first_seen[5:27] == FIRST_SEEN.split()
    assert sorted(first_seen[5:45]) == in_order[5:45]
    assert first_seen[45:] == in_order[45:]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hugging", "Hugg ##i ##n ##g"),
        ("HOgging", "[UNK]"),
        (
            "This is the Hugging Face course!",
            "Th ##i ##s is th ##e Hugg ##i ##n ##g Fac ##e c ##o ##u ##r ##s ##e [UNK]",
        ),
    ],
)
def test_the_course_vocabulary_cuts_text(text: str, tokens: str) -> None:
    vocab, _ = train(COURSE, vocab_size=70)
    assert tokenize(vocab, text) == tokens.split()


@pytest.mark.parametrize(
    ("pieces", "tokens"),
    [
        (["un", "##afford", "##able"], ["un", "##afford", "##able"]),
        (["un", "afford", "##able"], ["[UNK]"]),  # inside a word a piece carries the prefix
    ],
)
def test_unaffordable(pieces: list[str], tokens: list[str]) -> None:
    assert tokenize([*SPECIAL, *pieces], "unaffordable") == tokens
