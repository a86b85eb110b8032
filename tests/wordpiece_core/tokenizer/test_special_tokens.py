"""Which special tokens come out of a text, and their columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import wordpiece_core as wp
from wordpiece_core.options import ENCODING_COLUMNS

from ..encoding_cases import Case, by_kernel, by_tokenizers, differences
from .peers import sentencepiece_like, trained

TEXT_ALONE = wp.EncodingOptions(add_special_tokens=False, split_special_tokens=True)


def loaded(folder: Path, value: dict[str, Any]) -> tuple[wp.Tokenizer, Tokenizer]:
    """The tokenizer, and that of `tokenizers`."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(value))
    return wp.Tokenizer.load(path), Tokenizer.from_file(str(path))


def added(content: str, number: int, **flags: bool) -> dict[str, Any]:
    usual = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **usual, "special": True, **flags}


def split(tokenizer: wp.Tokenizer, text: str) -> list[str]:
    """The tokens of a text without special ones."""
    ids = tokenizer.encode_batch([text], options=TEXT_ALONE).table["input_ids"][0].as_py()
    return [tokenizer.vocab[i] for i in ids]


def test_special_tokens_of_wordpiece_do_not_come_out_of_untrusted_text() -> None:
    vocab = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "eos", "##s", "e", "##o"]
    tokenizer = wp.Tokenizer(vocab, pre_tokenizer="whitespace", lowercase=False)
    assert split(tokenizer, "a [SEP] [MASK] [UNK] b") == ["a", *["[UNK]"] * 3, "b"]
    tokenizer = wp.Tokenizer(vocab, more_special_tokens=["eos"])
    assert split(tokenizer, "a eos") == ["a", "e", "##o", "##s"]


def test_special_tokens_of_unigram_do_not_come_out_of_untrusted_text(tmp_path: Path) -> None:
    tokenizer, _ = loaded(tmp_path, sentencepiece_like("t5"))
    special = {*tokenizer.special_tokens}
    tokens = split(tokenizer, "the </s> <unk> <extra_id_1> ＜/s＞ ＜pad＞ cat")
    assert not special & {*tokens} - {"<unk>"}
    letters = {*"".join(tokens)}
    assert {*"</padunkextr_1>"} & letters  # the text is there


def test_special_tokens_that_normalization_makes_are_found(tmp_path: Path) -> None:
    texts = [
        *("a ＜/s＞", "＜pad＞", "‹extra_id_１>", "＜extra_id_１＞", "<\x01/s>", "[S\x01EP] x"),
        "▁ a ▁b",
    ]
    value = sentencepiece_like("t5")
    mark = next(i for i, row in enumerate(value["model"]["vocab"]) if row[0] == "▁")
    for tokens in ([], [added("▁", mark)]):
        value["added_tokens"] = sorted([*value["added_tokens"], *tokens], key=lambda t: t["id"])
        ours, theirs = loaded(tmp_path, value)
        wanted = [row.ids for row in theirs.encode_batch(texts)]
        assert ours.encode(texts).to_pylist() == wanted
    words = {"the": 9, "cat": 7, "that": 5, "at": 4}
    result = wp.train(words, model="unigram", vocab_size=20)
    (tmp_path / "own").mkdir()
    result.save(tmp_path / "own")
    ours = wp.Tokenizer.load(tmp_path / "own")
    theirs = Tokenizer.from_file(str(tmp_path / "own" / "tokenizer.json"))
    assert ours.encode(texts).to_pylist() == [row.ids for row in theirs.encode_batch(texts)]


@pytest.mark.parametrize("add_prefix_space", [True, False])
def test_offsets_of_roberta_in_all_rows_of_a_stride(tmp_path: Path, add_prefix_space: bool) -> None:
    value = trained("roberta")
    value["pre_tokenizer"]["add_prefix_space"] = add_prefix_space
    value["post_processor"]["add_prefix_space"] = add_prefix_space
    vocab = value["model"]["vocab"]
    for token in ("ĠĠ", "ĠĠĠ", "<mask>", "\n"):
        vocab.setdefault(token, len(vocab))
    value["model"]["merges"] += [["Ġ", "Ġ"], ["ĠĠ", "Ġ"]]
    value["added_tokens"] += [
        added("<mask>", vocab["<mask>"], lstrip=True),
        added("\n", vocab["\n"], normalized=True),
    ]
    ours, theirs = loaded(tmp_path, value)
    texts = [" the cat  sat on   the mat", "the    <mask>  dog \n <mask>\nsaid", "   <mask>", "the"]
    for pairs in (None, texts[::-1]):
        options = wp.EncodingOptions(max_length=9, stride=1, columns=ENCODING_COLUMNS)
        theirs.enable_truncation(9, stride=1)
        found = ours.encode_batch(texts, pairs, options=options).table
        rows = theirs.encode_batch(texts if pairs is None else list(zip(texts, pairs, strict=True)))
        rows = [row for first in rows for row in (first, *first.overflowing)]
        assert found["input_ids"].to_pylist() == [row.ids for row in rows]
        assert found["token_type_ids"].to_pylist() == [row.type_ids for row in rows]
        offsets = [[tuple(span) for span in row] for row in found["offset_mapping"].to_pylist()]
        assert offsets == [row.offsets for row in rows]


def test_token_types_of_pairs_in_all_rows_of_a_stride(tmp_path: Path) -> None:
    ours, theirs = loaded(tmp_path, sentencepiece_like("t5"))
    theirs.enable_truncation(12, stride=2)
    options = wp.EncodingOptions(max_length=12, stride=2, columns=("token_type_ids",))
    text = "the cat sat on the mat and the dog sat on the log"
    rows = [theirs.encode(text, text)]
    rows += rows[0].overflowing
    found = ours.encode_batch([text], [text], options=options).table["token_type_ids"].to_pylist()
    assert found == [row.type_ids for row in rows]
    assert any(1 in row for row in found)


def test_tokens_that_are_searched_for_later_leave_white_space_to_the_others(tmp_path: Path) -> None:
    value = trained("gpt2")
    vocab = value["model"]["vocab"]
    value["added_tokens"] += [
        added("[SEP]", len(vocab), lstrip=True),
        added("\n", len(vocab) + 1, normalized=True),
    ]
    ours, theirs = loaded(tmp_path, value)
    texts = ["a\n[SEP]", "a\n\n [SEP]\n", "\n[SEP]", "\n\n"]
    assert ours.encode(texts).to_pylist() == [row.ids for row in theirs.encode_batch(texts)]


def test_letters_of_unicode_16_and_17_are_those_of_tokenizers() -> None:
    letters = "\ua7cb\ua7da\ua7ce\U00010d50\ua7dc\u1c89İ"
    lowercase = "\u0264\ua7db\ua7cf\U00010d70\u019b\u1c8ai"
    vocab = ["[UNK]", *lowercase, *(f"##{c}" for c in lowercase), "ª", "ª\u0897"]
    options = wp.EncodingOptions(add_special_tokens=False, columns=ENCODING_COLUMNS)
    case = Case(vocab, {}, options, [letters, *letters, "ª\u0897"], None, "word")
    assert differences(by_kernel(case), by_tokenizers(case)) == []
    found = wp.Tokenizer(vocab).tokenize(" ".join(letters[:6]))
    assert found == [*lowercase[:6]]
