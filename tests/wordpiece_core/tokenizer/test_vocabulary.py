"""Vocabulary files: a token a line, its id the line's number, and nothing taken that is unsure."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs
from tokenizers.models import WordPiece

import wordpiece_core as wp
from tests.oracle import WHITE_SPACE
from wordpiece_core import storage
from wordpiece_core.tokenizer.vocabulary import (
    check_vocabulary,
    parse_vocabulary,
    read_text,
    vocabulary_text,
)

# Tokens that a file can hold: without a line end, or white space at their end.
TOKENS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1)
VOCABULARIES = st.lists(TOKENS.filter(lambda token: token[-1] not in WHITE_SPACE), unique=True).map(
    lambda tokens: ["[UNK]", *(token for token in tokens if token != "[UNK]")]
)


@given(VOCABULARIES)
def test_written_vocabularies_are_read_back(tokens: list[str]) -> None:
    text = vocabulary_text(tokens, "vocab.txt")
    assert text.count("\n") == len(tokens)
    assert parse_vocabulary(text, "vocab.txt") == tokens
    assert parse_vocabulary(text.removesuffix("\n"), "vocab.txt") == tokens


def test_only_a_line_feed_ends_a_line() -> None:
    odd = ["[UNK]", "\x0b", "\x85", "\u2028", "a b", " ", "\x1c", "\ufeff"]
    assert parse_vocabulary("\n".join(odd), "vocab.txt") == odd


def test_white_space_at_the_end_of_a_line_is_not_part_of_the_token() -> None:
    lines = ["[UNK]\r", "a ", " b\t", "c\u3000\r\r", "d\x1c", "e f"]
    tokens = ["[UNK]", "a", " b", "c", "d\x1c", "e f"]
    assert parse_vocabulary("\n".join(lines), "vocab.txt") == tokens
    with tempfile.NamedTemporaryFile("w", suffix=".txt", newline="\n") as file:
        file.write("\n".join(lines))
        file.flush()
        assert WordPiece.read_file(file.name) == {token: i for i, token in enumerate(tokens)}


def test_crlf_line_ends_are_accepted() -> None:
    assert parse_vocabulary("[UNK]\r\na\r\n##b\r\n", "vocab.txt") == ["[UNK]", "a", "##b"]
    with pytest.raises(wp.InputError, match=r"^v\.txt line 3: token 'a' is already on line 2"):
        parse_vocabulary("[UNK]\r\na\r\na", "v.txt")


def test_a_line_end_in_a_token_is_refused_rather_than_written() -> None:
    for token in ("a\nb", "a\rb", "a\r", "a ", "a\xa0"):
        with pytest.raises(wp.InputError, match="has a line end, or white space at its end"):
            vocabulary_text(["[UNK]", token], "vocab.txt")
    with pytest.raises(wp.InputError, match="would start the file with a byte order mark"):
        vocabulary_text(["\ufeffa", "[UNK]"], "vocab.txt")


def test_half_a_surrogate_pair_is_no_token() -> None:
    with pytest.raises(
        wp.InputError, match=r"vocab line 2: token '\\ud800' contains half a surrogate"
    ):
        wp.Tokenizer(["[UNK]", "\ud800"])


def test_a_path_that_no_file_can_have_is_an_input_error() -> None:
    for path in ("a\0b", "a\ud800b"):
        with pytest.raises(wp.InputError, match=r"^'a\\.*b': not a valid file name"):
            wp.Tokenizer.load(path)


def test_tokens_given_in_python_are_checked_like_a_file() -> None:
    for tokens, reason in {
        (): "vocab: the vocabulary is empty",
        ("a",): r"vocab: no \[UNK\] token",
        ("[UNK]", "a", "a"): "vocab line 3: token 'a' is already on line 2",
    }.items():
        with pytest.raises(wp.InputError, match=reason):
            wp.Tokenizer(tokens)
        with pytest.raises(wp.InputError, match=reason):
            check_vocabulary(tokens, "vocab")


def test_reading_says_where_the_text_is_not_utf8_and_drops_a_byte_order_mark(
    tmp_path: Path,
) -> None:
    path = tmp_path / "vocab.txt"
    assert read_text(str(path)) is None
    assert read_text(str(tmp_path)) is None
    path.write_bytes(b"\xef\xbb\xbf[UNK]\n\xe6\xbc\xa2\n")
    assert read_text(str(path)) == read_text(f"file://{path}") == "[UNK]\n漢\n"
    path.write_bytes(b"[UNK]\n\xe6\xbc")
    with pytest.raises(wp.InputError) as caught:
        read_text(str(path))
    assert str(caught.value) == f"{path}: not UTF-8 at byte 6"


def test_a_saved_vocab_txt_alone_is_the_same_tokenizer(tmp_path: Path) -> None:
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "é", "e", "##x"]
    tokenizer = wp.Tokenizer(vocab)
    tokenizer.save(tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == "\n".join([*vocab, ""]).encode()
    assert wp.Tokenizer.load(tmp_path / "vocab.txt").digest == tokenizer.digest
    assert wp.Tokenizer.load(tmp_path / "tokenizer.json").digest == tokenizer.digest
    others = [
        wp.Tokenizer(vocab[::-1]),
        wp.Tokenizer(vocab, lowercase=False),
        wp.Tokenizer(vocab, strip_accents=False),
        wp.Tokenizer(vocab, max_word_length=99),
        wp.Tokenizer(vocab, continuing_prefix="@"),
        wp.Tokenizer(vocab, pre_tokenizer="whitespace"),
        wp.Tokenizer(vocab, unk_scope="character"),
    ]
    assert len({tokenizer.digest, *(other.digest for other in others)}) == 8


def test_the_digest_does_not_depend_on_how_special_tokens_are_listed(tmp_path: Path) -> None:
    vocab = ["[UNK]", "<b>", "<a>", "x"]
    tokenizer = wp.Tokenizer(vocab, more_special_tokens=["<a>", "<b>", "<a>", "[UNK]"])
    tokenizer.save(tmp_path)
    assert wp.Tokenizer.load(tmp_path).digest == tokenizer.digest
    none = wp.Tokenizer(vocab)
    assert wp.Tokenizer(vocab, more_special_tokens=["<c>"]).digest == none.digest
    assert none.digest != tokenizer.digest


@pytest.mark.parametrize("options", [{}, {"lowercase": False}], ids=str)
def test_equivalent_tokenizers_have_one_digest(options: dict[str, bool]) -> None:
    vocab = ["[UNK]", "a"]
    stripped = options.get("lowercase", True)
    said = wp.Tokenizer(vocab, **options, strip_accents=stripped)
    assert wp.Tokenizer(vocab, **options).digest == said.digest
    assert wp.Tokenizer(vocab, **options, strip_accents=not stripped).digest != said.digest


@pytest.mark.parametrize("query", ["", "?region=x", "?endpoint_override=localhost:1/&scheme=http"])
def test_a_tokenizer_is_found_at_a_uri_with_options_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    def opened(bucket: str, options: dict[str, Any]) -> fs.FileSystem:
        assert [*options] == re.findall(r"(\w+)=", query)
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    (tmp_path / "bucket").symlink_to(tmp_path)
    vocab = ["[UNK]", "a?"]
    cased = wp.Tokenizer(vocab, lowercase=False)
    cased.save(tmp_path / "tok")
    (tmp_path / "config" / "x").mkdir(parents=True)
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(tmp_path / "tok" / name, tmp_path / "config" / "x" / name)
    monkeypatch.setitem(storage.STORES, "s3", opened)
    for place in ("tok", "tok/", "tok/tokenizer.json", "config/x"):
        assert wp.Tokenizer.load(f"s3://bucket/{place}{query}").digest == cased.digest
    uncased = wp.Tokenizer.load(f"s3://bucket/tok/vocab.txt{query}")
    assert uncased.digest == wp.Tokenizer(vocab).digest
    (tmp_path / "what?").mkdir()
    cased.save(tmp_path / "what?")
    assert wp.Tokenizer.load(tmp_path / "what?").digest == cased.digest
