"""The tokenizer: its directory, its ids and its text against `tokenizers` and `transformers`."""

import pickle
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

import wordpiece_core as wp
from tests import oracle
from wordpiece_core import storage

from .. import sentencepiece_models

TEXTS = [
    *("Hello, world! It's a naïve café's résumé.", "unaffordable HUGGING hugs; don't stop"),
    *("日本語のテキスト と 中文字符 mixed with latin", "Привет мир, İstanbul ﬁne ½ x\u0301y"),
    *("[MASK] inside [SEP]text[CLS] and [unk] [UNK]", "a\u200bb\tc\u00a0d\ufffd e\x00f", "", " "),
    "x" * 120,
]


@pytest.fixture(scope="module")
def vocab() -> list[str]:
    words = oracle.count_words(TEXTS, lowercase=False)
    words.update(oracle.count_words(TEXTS))
    options = {"min_pair_count": 1, "criterion": "frequency"}
    return wp.train(words, vocab_size=200, **options).vocab


@given(
    word=st.text("abhugs", min_size=1, max_size=12), scope=st.sampled_from(["word", "character"])
)
def test_both_scopes_of_unknown_are_the_references(word: str, scope: str) -> None:
    vocab = ["[UNK]", "[CLS]", "[SEP]", "a", "h", "hug", "##u", "##g", "##gs", "##b"]
    tok = wp.Tokenizer(vocab, unk_scope=scope)
    assert tok.tokenize(word) == oracle.tokenize(word, vocab, unk_scope=scope)


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
)
def test_arrays_of_any_text_type_are_accepted(vocab: list[str], kind: pa.DataType) -> None:
    tok = wp.Tokenizer(vocab)
    texts = pa.array([*TEXTS, None])
    assert tok.encode_batch(texts.cast(kind)).equals(tok.encode_batch(texts))
    assert tok.encode_batch(texts.cast(kind)[3:]).equals(tok.encode_batch(texts[3:]))
    assert tok.encode_batch(texts.dictionary_encode()).equals(tok.encode_batch(texts))
    with pytest.raises(wp.InputError, match="int64"):
        tok.encode_batch(pa.array([1]))


def test_an_id_outside_the_vocabulary_is_named(vocab: list[str]) -> None:
    with pytest.raises(wp.InputError, match=f"id {len(vocab)} is not in the vocabulary"):
        wp.Tokenizer(vocab).decode([len(vocab)])


def test_the_scope_of_unknown_survives_pickling(vocab: list[str]) -> None:
    tok = wp.Tokenizer(vocab, lowercase=False, unk_scope="character")
    again = pickle.loads(pickle.dumps(tok))
    assert again.digest == tok.digest
    assert again.encode_batch(TEXTS).equals(tok.encode_batch(TEXTS))


def test_a_published_vocabulary_is_loaded_with_the_options_given(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nA\r\na\r\n")  # CRLF is taken
    assert wp.Tokenizer.load(path, lowercase=True).tokenize("A") == ["a"]
    assert wp.Tokenizer.load(path, lowercase=False).tokenize("A") == ["A"]
    assert wp.Tokenizer.load(tmp_path, lowercase=False).tokenize("A a") == ["A", "a"]


def test_files_other_than_tokenizers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(wp.InputError, match="no tokenizer"):
        wp.Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "WordLevel"}}')
    with pytest.raises(wp.InputError, match="model WordLevel is not supported"):
        wp.Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(wp.InputError, match=r"tokenizer.json: not JSON"):
        wp.Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("vocab", "options", "said"),
    [
        (["[UNK]"], {"unk_scope": "sentence"}, "unk_scope: 'sentence'"),
        (["[UNK]"], {"cased": True}, "unknown tokenizer option cased"),
        (["[UNK]"], {"lowercase": "no"}, "lowercase: 'no' is not True or False"),
        (["[UNK]"], {"max_word_length": -1}, "max_word_length: -1"),
        (["[UNK]"], {"max_word_length": 2**32}, "max_word_length: 4294967296 is not"),
        (["[UNK]"], {"more_special_tokens": 5}, "more_special_tokens: 5 is not a list"),
        (["[UNK]", "<s>"], {"more_special_tokens": "<s>"}, "more_special_tokens: '<s>' is not a l"),
        (["[UNK]"], {"continuing_prefix": "\ud800"}, "continuing_prefix: .* is not a string"),
        (["[UNK]"], {"continuing_prefix": 3}, "continuing_prefix: 3 is not a string"),
        *((vocab, {}, "vocab: expected a list of tokens") for vocab in ("[UNK]", {"[UNK]": 0}, 5)),
    ],
)
def test_a_wrong_option_is_named(vocab: object, options: dict[str, object], said: str) -> None:
    with pytest.raises(wp.OptionError, match=said):
        wp.Tokenizer(vocab, **options)


def test_values_other_than_text_are_input_errors() -> None:
    with pytest.raises(wp.InputError, match="texts"):
        wp.Tokenizer(["[UNK]"]).encode_batch([1])
    with pytest.raises(wp.InputError, match="token 3 is not a string"):
        wp.Tokenizer(["[UNK]", 3])


CALLS = [
    {},
    {"add_special_tokens": False},
    {"padding": True},
    {"padding": "longest", "return_token_type_ids": False},
    {"truncation": True, "max_length": 7},
    {"max_length": 7},
    {"truncation": True, "max_length": 9, "padding": "max_length"},
    {"truncation": "do_not_truncate"},
    {"padding": "max_length"},
    {"truncation": True, "max_length": 8, "stride": 2, "return_overflowing_tokens": True},
    {"return_special_tokens_mask": True, "return_attention_mask": False},
    {"return_offsets_mapping": True, "truncation": "longest_first", "max_length": 12},
]


@pytest.mark.parametrize("options", CALLS, ids=str)
def test_it_is_called_as_a_tokenizer_of_transformers(
    vocab: list[str], options: dict[str, object], tmp_path: Path
) -> None:
    tok = wp.Tokenizer(vocab)
    assert tok.vocab_size == len(vocab)
    assert all(Path(path).exists() for path in tok.save_pretrained(tmp_path))
    other = AutoTokenizer.from_pretrained(tmp_path)

    def plain(encoded: dict[str, object]) -> dict[str, object]:
        spans = encoded.get("offset_mapping")
        as_lists = [list(map(list, row)) for row in spans] if spans else None
        return dict(encoded) | ({"offset_mapping": as_lists} if spans else {})

    assert tok(TEXTS, **options) == plain(other(TEXTS, **options))
    pairs = TEXTS[::-1]
    if "stride" not in options:
        assert tok(TEXTS, pairs, **options) == plain(other(TEXTS, pairs, **options))
        one = other(TEXTS[0], **options)
        assert tok(TEXTS[0], **options)["input_ids"] == one["input_ids"]


@pytest.mark.parametrize(
    "options",
    [
        {"padding": "most"},
        {"truncation": "first"},
        {"padding": "max_length", "max_length": 5, "truncation": False},
    ],
    ids=str,
)
def test_a_call_with_what_it_cannot_have_is_refused(
    vocab: list[str], options: dict[str, object]
) -> None:
    with pytest.raises(wp.OptionError):
        wp.Tokenizer(vocab)(TEXTS, **options)


KINDS = {
    "wordpiece": ["vocab.txt", "tokenizer.json"],
    "bpe": ["vocab.json", "merges.txt", "tokenizer.json"],
    "unigram": ["tokenizer.json"],
    "sentencepiece": ["spiece.model"],
}


def trained(kind: str) -> wp.Tokenizer:
    words = {"hug": 9, "pug": 5, "hugs": 4}
    if kind != "sentencepiece":
        return wp.train(words, model=kind, vocab_size=14).tokenizer()
    with TemporaryDirectory() as place:
        path = Path(place, "spiece.model")
        path.write_bytes(sentencepiece_models.model("identity"))
        return wp.Tokenizer.load(path)


@pytest.mark.parametrize("before", KINDS)
@pytest.mark.parametrize("after", KINDS)
def test_a_saved_tokenizer_replaces_another(tmp_path: Path, before: str, after: str) -> None:
    trained(before).save(tmp_path)
    more = ["added_tokens.json", "tokenizer.model", "chat_template.jinja"]
    for name in [*more, "config.json", "notes.txt"]:
        (tmp_path / name).write_text("{}")
    tokenizer = trained(after)
    paths = tokenizer.save(tmp_path)
    assert {*paths} == {str(p) for p in tmp_path.iterdir()} - {
        str(tmp_path / name) for name in ("config.json", "notes.txt")
    }
    assert {Path(path).name for path in paths} >= {*KINDS[after]}
    (tmp_path / "config.json").unlink()
    assert wp.Tokenizer.load(tmp_path).digest == tokenizer.digest


@pytest.mark.parametrize("before", KINDS)
@pytest.mark.parametrize("after", KINDS)
def test_a_killed_save_leaves_one_of_the_two_or_none(
    tmp_path: Path, before: str, after: str
) -> None:
    digests = {trained(kind).digest for kind in (before, after)}
    found = []
    for calls in range(12):
        place = tmp_path / str(calls)
        trained(before).save(place)
        left = [calls]

        def dies(call: Any, left: list[int] = left) -> Any:
            def made(*args: Any) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
                call(*args)

            return made

        with (
            mock.patch.object(storage, "move", dies(storage.move)),
            mock.patch.object(storage, "delete_file", dies(storage.delete_file)),
            suppress(KeyboardInterrupt),
        ):
            trained(after).save(place)
        if any((place / name).exists() for name in ("tokenizer.json", "spiece.model")):
            found.append(wp.Tokenizer.load(place).digest)
            continue
        with pytest.raises(wp.InputError, match="no tokenizer"):
            wp.Tokenizer.load(place)
    assert {*found} == digests


def test_a_tokenizer_is_saved_to_a_uri() -> None:
    tokenizer = trained("bpe")
    paths = tokenizer.save("memory://bucket/tok")
    assert "memory://bucket/tok/tokenizer.json" in paths
    assert wp.Tokenizer.load("memory://bucket/tok").digest == tokenizer.digest
    with pytest.raises(wp.OptionError, match="http://x/tok is not writable"):
        tokenizer.save("http://x/tok")


def test_ids_of_arrow_are_decoded_as_lists_are() -> None:
    tokenizer = wp.Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug", "##s"])
    ids = tokenizer.encode_batch(["hugs hug"])
    for some in (ids[0], ids.values, ids[0].as_py()):
        assert tokenizer.decode(some) == "hugs hug"
