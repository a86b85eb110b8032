"""Inspection of texts, and reasons for unknown words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import oracle
from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core.tokenizer.inspection import Inspection, Inspector
from wordpiece_core.tokenizer.models import Unigram
from wordpiece_core.tokenizer.segmentation_reasons import Reasoner
from wordpiece_core.tokenizer.spec import TokenizerSpec

from ...parity.random_cases import peer, wordpiece
from ..strategies import odd_text

VOCAB = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "ab", "##é", "é", "e", "##e", "i"),
    *("##\u0323", "漢", "字", "가", "σ", "##σ", "z", "##z", "##zz", "9", ",", "!", "[", "]", "sep"),
    *("un", "##aff", "##able", "qu", "##xy", "\u0301"),
)


def inspect(text: str, *, add: bool = False, split: bool = False, **options: Any) -> Inspection:
    tokenizer = Tokenizer(VOCAB, **options)
    inspector = Inspector(
        tokenizer, add_special_tokens=add, special_tokens_in_text="text" if split else "parse"
    )
    return inspector.inspect(text)


texts = st.lists(odd_text(6) | st.sampled_from([*VOCAB, " ", "a" * 9, "[SEP"]), max_size=8).map(
    "".join
)


@given(texts, st.booleans(), st.sampled_from(["word", "character"]), st.integers(1, 8))
def test_tokens_match_encoding_and_words_match_tokenizers(
    text: str, lowercase: bool, scope: str, most: int
) -> None:
    options: dict[str, Any] = {"lowercase": lowercase, "max_word_length": most}
    tokenizer = Tokenizer(VOCAB, unk_scope=scope, **options)
    found = Inspector(tokenizer).inspect(text)
    assert [token.id for token in found.tokens] == tokenizer.encode_batch([text])[0].as_py()
    assert all(token.source == text[token.start : token.end] for token in found.tokens)
    unknown = [t.word for t in found.tokens if t.kind == "unknown"]
    reasons = [w.number for w in found.words for _ in range(len(w.misfits) or w.too_long)]
    assert unknown == reasons
    if scope == "word":
        encoding = peer(wordpiece(VOCAB, **options), EncodingOptions()).encode(text)
        inside = slice(1, -1)
        assert [t.word for t in found.tokens][inside] == encoding.word_ids[inside]
        assert [(t.start, t.end) for t in found.tokens] == encoding.offsets


@given(texts, st.booleans())
def test_a_word_is_unknown_for_the_first_place_where_no_token_fits(
    text: str, lowercase: bool
) -> None:
    for word in inspect(text, lowercase=lowercase).words:
        assert not word.too_long
        assert bool(word.misfits) == (oracle.tokenize_word(word.normalized, VOCAB) == ["[UNK]"])
        for misfit in word.misfits:
            before = word.normalized[: misfit.at]
            assert [*misfit.after] == (oracle.tokenize_word(before, VOCAB) if before else [])
            assert misfit.character == word.normalized[misfit.at]
            prefix = "##" if misfit.at else ""
            rest = word.normalized[misfit.at :]
            assert not any((prefix + rest).startswith(t) and len(t) > len(prefix) for t in VOCAB)


def test_every_character_is_in_a_word_a_special_token_or_is_space_or_dropped() -> None:
    found = inspect("\u200ba[SEP]\u0301\tb\0 \u202e \ufeffé")
    assert [(word.start, word.end, word.raw) for word in found.words] == [
        (1, 2, "a"),
        (9, 10, "b"),
        (15, 16, "é"),
    ]
    dropped = [(d.at, d.character) for d in found.dropped]
    assert dropped == [(0, "\u200b"), (7, "\u0301"), (10, "\0"), (12, "\u202e"), (14, "\ufeff")]


def test_special_tokens_are_told_from_added_ones_and_from_plain_text() -> None:
    def kinds(**options: Any) -> list[tuple[str, str]]:
        return [(t.token, t.kind) for t in inspect("a[SEP]", **options).tokens]

    text = [("a", "text"), ("[SEP]", "special")]
    assert kinds() == text
    assert kinds(add=True) == [("[CLS]", "added"), *text, ("[SEP]", "added")]
    assert kinds(split=True) == [(token, "text") for token in ("a", "[", "sep", "]")]
    # Written in the text, and no word that became unknown.
    found = inspect("[UNK] [UNK]a")
    assert [t.kind for t in found.tokens] == ["special", "special", "text"]
    found = inspect("[UNK]", split=True, pre_tokenizer="whitespace", lowercase=False)
    assert [(t.token, t.kind) for t in found.tokens] == [("[UNK]", "unknown")]
    options = {"pre_tokenizer": "whitespace", "lowercase": False, "unk_scope": "character"}
    found = inspect("[UNK]☃", split=True, **options)
    kinds_of = {t.kind for t in found.tokens if t.token == "[UNK]"}
    assert kinds_of == {"unknown"}


@pytest.mark.parametrize(
    ("word", "at", "character", "after", "known"),
    [
        ("unaffx", 5, "x", ("un", "##aff"), "inside"),
        ("uni", 2, "i", ("un",), "start"),
        ("\u0323", 0, "\u0323", (), "continuation"),
        ("q", 0, "q", (), "inside"),
        ("a😀", 1, "😀", ("a",), "nowhere"),
        ("aU", 1, "U", ("a",), "nowhere"),  # special tokens do not count
    ],
)
def test_the_character_that_does_not_fit_is_named_and_where_else_it_is(
    word: str, at: int, character: str, after: tuple[str, ...], known: str
) -> None:
    (found,) = inspect(word, lowercase=False).words
    (misfit,) = found.misfits
    assert (misfit.at, misfit.character, misfit.after, misfit.known) == (
        *(at, character, after, known),
    )


def test_each_unknown_character_has_its_reason_where_they_are_unknown_alone() -> None:
    found = inspect("a☃z☃", unk_scope="character")
    assert [(t.token, t.source, t.kind) for t in found.tokens] == [
        ("a", "a", "text"),
        ("[UNK]", "☃", "unknown"),
        ("##z", "z", "text"),
        ("[UNK]", "☃", "unknown"),
    ]
    misfits = [(misfit.at, misfit.after) for misfit in found.words[0].misfits]
    assert misfits == [(1, ("a",)), (3, ("##z",))]


def test_words_over_the_limit_are_named() -> None:
    for length in (100, 101):
        (word,) = inspect("a" * length).words
        assert (word.too_long, len(word.normalized), word.misfits) == (length > 100, length, ())


def test_any_continuing_prefix_is_followed() -> None:
    for prefix in ("", "@@"):
        tokenizer = Tokenizer(["[UNK]", "a", f"{prefix}b"], continuing_prefix=prefix)
        found = Inspector(tokenizer).inspect("abb aba")
        assert [t.token for t in found.tokens][:3] == ["a", f"{prefix}b", f"{prefix}b"]
        assert [m.known for m in found.words[1].misfits] == ([] if prefix == "" else ["start"])


@given(st.dictionaries(st.text("ab", min_size=1, max_size=3), st.integers(-9, 0), min_size=1))
def test_the_two_best_segmentations_match_all(scores: dict[str, int]) -> None:
    model = Unigram([0.0, *map(float, scores.values())])
    reasoner = Reasoner(TokenizerSpec(["[UNK]", *scores], model=model))

    def all_of(word: str) -> list[tuple[str, ...]]:
        if not word:
            return [()]
        starts = [token for token in scores if word.startswith(token)]
        return [(t, *rest) for t in starts for rest in all_of(word.removeprefix(t))]

    for word in ("a", "abba", "aaabab"):
        found = reasoner.best_segmentations(word)
        best = sorted((sum(scores[t] for t in tokens) for tokens in all_of(word)), reverse=True)
        assert [one.score for one in found] == best[:2]
        assert len({one.tokens for one in found}) == len(found)
        assert all(sum(scores[t] for t in one.tokens) == one.score for one in found)
        assert all("".join(one.tokens) == word for one in found)
