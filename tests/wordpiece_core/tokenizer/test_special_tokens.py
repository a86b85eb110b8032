"""Special tokens in texts, and their columns."""

from __future__ import annotations

import wordpiece_core as wp
from wordpiece_core.options import ENCODING_COLUMNS

from ...parity.random_cases import load
from ..encoding_cases import Case, by_kernel, by_tokenizers, differences
from .peers import sentencepiece_like

TEXT_ALONE = wp.EncodingOptions(add_special_tokens=False, special_tokens_in_text="text")


def split(tokenizer: wp.Tokenizer, text: str) -> list[str]:
    """The tokens of a text without special ones."""
    ids = tokenizer.encode_table([text], options=TEXT_ALONE).table["input_ids"][0].as_py()
    return [tokenizer.vocab[i] for i in ids]


def test_special_tokens_of_wordpiece_do_not_come_out_of_untrusted_text() -> None:
    vocab = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "eos", "##s", "e", "##o"]
    tokenizer = wp.Tokenizer(vocab, pre_tokenizer="whitespace", lowercase=False)
    assert split(tokenizer, "a [SEP] [MASK] [UNK] b") == ["a", *["[UNK]"] * 3, "b"]
    tokenizer = wp.Tokenizer(vocab, more_special_tokens=["eos"])
    assert split(tokenizer, "a eos") == ["a", "e", "##o", "##s"]


def test_special_tokens_of_unigram_do_not_come_out_of_untrusted_text() -> None:
    tokenizer = load(sentencepiece_like("t5"))
    special = {*tokenizer.special_tokens}
    tokens = split(tokenizer, "the </s> <unk> <extra_id_1> ＜/s＞ ＜pad＞ cat")
    assert not special & {*tokens} - {"<unk>"}
    letters = {*"".join(tokens)}
    assert {*"</padunkextr_1>"} & letters  # the text is there


def test_letters_of_unicode_16_and_17_match_tokenizers() -> None:
    letters = "\ua7cb\ua7da\ua7ce\U00010d50\ua7dc\u1c89İ"
    lowercase = "\u0264\ua7db\ua7cf\U00010d70\u019b\u1c8ai"
    vocab = ["[UNK]", *lowercase, *(f"##{c}" for c in lowercase), "ª", "ª\u0897"]
    options = wp.EncodingOptions(add_special_tokens=False, columns=ENCODING_COLUMNS)
    case = Case(vocab, {}, options, [letters, *letters, "ª\u0897"], None, "word")
    assert differences(by_kernel(case), by_tokenizers(case)) == []
    found = wp.Tokenizer(vocab).tokenize(" ".join(letters[:6]))
    assert found == [*lowercase[:6]]
