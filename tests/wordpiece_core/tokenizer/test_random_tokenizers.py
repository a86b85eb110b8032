"""Random and difficult files of `tokenizers`: all columns equal the columns of the library. `make
soak` tries thousands."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tokenizers import Tokenizer, models

import wordpiece_core as wp

from ...parity.random_cases import assert_same, difference, load, random_case
from ...quick import parametrize
from .kinds import TAKES_SPACE, of_bytes, with_tokens
from .peers import added, sentencepiece_like, trained

Json = dict[str, Any]
PARTS, SEEDS = 10, 60


@parametrize("part", range(PARTS), quick=1)
def test_random_tokenizers_give_the_rows_of_tokenizers(part: int) -> None:
    compared = 0
    for seed in range(SEEDS * part, SEEDS * (part + 1)):
        try:
            found = difference(*random_case(seed))
        except wp.InputError:  # one of both refuses it
            continue
        assert found is None, f"seed {seed}: {found}"
        compared += 1
    assert compared > SEEDS * 0.9


def of_model(model: Json, *tokens: Json, **parts: Any) -> Json:
    return {"version": "1.0", "added_tokens": [*tokens], "model": model, **parts}


NORMALIZED = [
    *(
        "a ＜/s＞",
        "＜pad＞",
        "‹extra_id_１>",
        "＜extra_id_１＞",
        "<\x01/s>",
        "[S\x01EP] x",
        "▁ a ▁b",
    )
]
SPACED = ["a\n[SEP]", "a\n\n [SEP]\n", "\n[SEP]", "\n\n"]


def test_special_tokens_that_normalization_makes_are_found(tmp_path: Path) -> None:
    assert_same(sentencepiece_like("t5"), NORMALIZED)
    assert_same(with_tokens(sentencepiece_like("t5"), **{"▁": {}}), NORMALIZED)
    wp.train({"the": 9, "cat": 7, "that": 5}, model="unigram", vocab_size=14).save(tmp_path)
    assert_same(json.loads((tmp_path / "tokenizer.json").read_text()), NORMALIZED)


@pytest.mark.parametrize("add_prefix_space", [True, False])
def test_offsets_of_roberta_in_all_rows_of_a_stride(add_prefix_space: bool) -> None:
    value = of_bytes("roberta", add_prefix_space)
    vocab = value["model"]["vocab"]
    for token in ("ĠĠ", "ĠĠĠ"):
        vocab.setdefault(token, len(vocab))
    value["model"]["merges"] += [["Ġ", "Ġ"], ["ĠĠ", "Ġ"]]
    value = with_tokens(value, **TAKES_SPACE, **{"\n": {"normalized": True}})
    texts = [" the cat  sat on   the mat", "the    <mask>  dog \n <mask>\nsaid", "   <mask>", "the"]
    assert_same(value, texts, max_length=9, stride=1)


def test_token_types_of_pairs_in_all_rows_of_a_stride() -> None:
    text = "the cat sat on the mat and the dog sat on the log"
    assert_same(sentencepiece_like("t5"), [text, text], max_length=12, stride=2)
    options = wp.EncodingOptions(max_length=12, stride=2, columns=("token_type_ids",))
    types = load(sentencepiece_like("t5")).encode_table([text], [text], options=options).table
    assert any(1 in row for row in types["token_type_ids"].to_pylist())


def test_tokens_that_are_searched_for_later_leave_white_space_to_the_others() -> None:
    tokens = {"[SEP]": {"lstrip": True}, "\n": {"normalized": True}}
    assert_same(with_tokens(trained("gpt2"), **tokens), SPACED)


@pytest.mark.parametrize("unk", [None, "B"])
def test_a_character_that_vanishes_does_not_separate_what_is_beside_it(unk: str | None) -> None:
    vocab = {token: i for i, token in enumerate(["A", "▁", "A▁", "B", "B▁", "▁▁", "A▁▁"])}
    merges = ["A ▁", "B ▁", "▁ ▁", "A ▁▁"]
    model = {"type": "BPE", "unk_token": unk, "vocab": vocab, "merges": merges}
    assert_same(of_model(model), ["Aé▁", "A▁é▁", "Aéé▁B", "é▁A", "A漢▁é▁▁B😀▁"])


def test_a_mark_that_a_byte_level_model_has_as_a_token_does_not_split_words() -> None:
    """Its words are bytes, so no word contains the mark."""
    model = {"type": "BPE", "unk_token": "u", "fuse_unk": True, "vocab": {"u": 0, "▁": 1, "b": 2}}
    steps = [
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
        | {"use_regex": False},
    ]
    parts = {"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}
    assert_same(of_model(model | {"merges": []}, **parts), ["b", "xb", "", "b b"])


UNIGRAM = [["<unk>", 0.0], ["▁", -2.0], ["▁a", -3.0], ["a", -4.0], ["▁b", -3.0], ["b", -3.5]]
SEARCHED = (
    *("a newtok b", "a NewTok b", "NewTokNewTok", "a  NewTok  b", " NEWTOK", "xNewTok", "raw RAW"),
    *("ab ａb aａb", "raw  NewTok\tab", "", "\u00a0NewTok\u00a0", "a-NewTok-b", "e\u0301NewTok"),
)
NORMALIZERS: list[Json] = [
    *({"type": "Lowercase"}, {"type": "NFKC"}, {"type": "Prepend", "prepend": "▁"}),
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    | {"strip_accents": None, "lowercase": True},
    {
        "type": "Sequence",
        "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": True}],
    },
]


@pytest.mark.parametrize("flag", [None, "lstrip", "rstrip", "single_word"])
@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda normalizer: normalizer["type"])
def test_added_tokens_are_searched_for_in_the_normalized_text(
    normalizer: Json, flag: str | None
) -> None:
    flags = {"special": False} | ({} if flag is None else {flag: True})
    tokens = enumerate([("NewTok", True), ("ａb", True), ("raw", False)], 6)
    splitter = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    value = of_model(
        {"type": "Unigram", "unk_id": 0, "vocab": UNIGRAM, "byte_fallback": False},
        *(added(content, i, normalized=late, **flags) for i, (content, late) in tokens),
        **{"normalizer": normalizer, "pre_tokenizer": splitter},
    )
    assert_same(value, SEARCHED)


def of_letters(*tokens: str) -> Json:
    rows = [("<unk>", 0.0), *((token, -1.0) for token in tokens)]
    return dict(json.loads(Tokenizer(models.Unigram(rows, 0)).to_str()))


def test_offsets_of_unknown_tokens_are_trimmed() -> None:
    value = of_letters("a", "b") | {"normalizer": {"type": "NFC"}}
    trims = {"add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    value["post_processor"] = {"type": "ByteLevel", **trims}
    assert_same(value, ["a ☃", " ☃ a", "☃  ☃b☃ ", "é ☃ é"])


def test_added_tokens_inside_stripped_white_space_are_found() -> None:
    contents = ["\n", "\n\n", "<s>", " x"]
    value = of_letters(*contents, "a")
    parts = ["\n", "\n", " ", "<s>", " x", "a", "☃"]
    for seed, normalizer in product(range(100), (None, {"type": "NFC"})):
        rng = Random(seed)
        value["normalizer"] = normalizer
        value["added_tokens"] = [
            added(content, i, special=False, rstrip=rng.random() < 0.7)
            | {"single_word": rng.random() < 0.3}
            for i, content in enumerate(contents, 1)
        ]
        texts = ["".join(rng.choices(parts, k=rng.randrange(12))) for _ in range(6)]
        assert (
            difference(value, texts, texts[::-1], wp.EncodingOptions(columns=["offset_mapping"]))
            is None
        )


@pytest.mark.parametrize("pattern", ["^", r"\b", "(?=a)", "x*"])
@pytest.mark.parametrize("scheme", [None, "first", "always"])
def test_text_inserted_after_an_added_token_is_kept(scheme: str | None, pattern: str) -> None:
    value = of_letters("a", "b", "▁") | {"added_tokens": [added("<s>", 1)]}
    value["normalizer"] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": "b"}
    if scheme is not None:
        metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme}
        value["pre_tokenizer"] = metaspace | {"split": False}
    value["model"]["vocab"].insert(1, ["<s>", -1.0])
    assert_same(value, ["<s>a", "a<s>a <s>", "<s><s>ab", "é<s>é", " <s> a"])


def test_a_regular_expression_that_takes_too_long_is_an_error_that_names_it() -> None:
    pattern = {"Regex": "(?:a|a)*b"}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    replace = {"type": "Replace", "pattern": pattern, "content": "a"}
    for part in ({"pre_tokenizer": split}, {"normalizer": replace}):
        with pytest.raises(wp.InputError, match=r'^the regular expression "\(\?:a\|a\)\*b": .*$'):
            load(of_letters("a") | part).encode_table(["a" * 30 + "cb"])


@pytest.mark.parametrize("kind", ["BPE", "Unigram", "WordPiece"])
def test_added_tokens_get_the_ids_of_tokenizers(kind: str) -> None:
    """`tokenizers` numbers added tokens that the model does not have in the order of the file."""
    vocab = {token: i for i, token in enumerate(["<unk>", *"abcdefg <>xy"])}
    model: Json = {
        "BPE": {"vocab": vocab, "merges": [], "unk_token": "<unk>"},
        "Unigram": {"vocab": [[token, -float(i)] for token, i in vocab.items()], "unk_id": 0},
        "WordPiece": {"vocab": vocab, "unk_token": "<unk>", "continuing_subword_prefix": "##"}
        | {"max_input_chars_per_word": 100},
    }[kind]
    parts = ["<b>", "<a>", "<e>", "<unk>", "x", "ab", " ", "c", "q", "ba"]
    for seed in range(50):
        rng = Random(seed)
        names = rng.sample(["<b>", "<a>", "<e>", "<unk>", "x", "ab", ""], k=rng.randrange(6))
        tokens = [added(name, rng.randrange(20), special=rng.random() < 0.6) for name in names]
        value = of_model({"type": kind, **model}, *tokens)
        texts = ["".join(rng.choices(parts, k=8)) for _ in range(8)]
        assert difference(value, texts, None, wp.EncodingOptions()) is None, seed


def test_20_000_added_tokens_have_their_ids() -> None:
    vocab = {"<unk>": 0, "a": 1}
    tokens = [added(f"<{i}>", 2 + i, special=False) for i in range(20_000)]
    model = {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>"}
    ours = load(of_model(model, *tokens))
    assert ours.encode_batch(["<19999>a<7>"], add_special_tokens=False).to_pylist() == [
        [20_001, 1, 9]
    ]
