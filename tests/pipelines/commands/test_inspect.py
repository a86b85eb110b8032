"""`wordpiece inspect`: what it shows, to people and to scripts."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from wordpiece_core import Tokenizer

from ..corpora import done, english, train_tokenizer, wordpiece

VOCAB = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "un", "##afford", "##able", "日", "x"),
    *("##y", "qu", "[", "]", "sep", "a", "##a"),
)


@pytest.fixture
def vocab(tmp_path: Path) -> Path:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in VOCAB))
    return path


def shown(vocab: Path, *args: str) -> str:
    outcome = done("inspect", vocab, *args)
    assert outcome.err == ""
    assert all(line == line.rstrip() and line.isprintable() for line in outcome.out.split("\n"))
    return outcome.out


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.usefixtures("wide")
def test_a_text_is_a_table_of_tokens_and_its_oddities_are_explained(vocab: Path) -> None:
    assert shown(vocab, "Héllo unaffordable[SEP] x😀", "y") == (
        "Héllo unaffordable[SEP] x😀\n"
        "word  chars  id  token     source\n"
        "              2  [CLS]             added\n"
        "   0    0-5   5  hello     Héllo\n"
        "   1    6-8   6  un        un\n"
        "   1   8-14   7  ##afford  afford\n"
        "   1  14-18   8  ##able    able\n"
        "   2  18-23   3  [SEP]     [SEP]   special\n"
        "   3  24-26   1  [UNK]     x😀     unknown\n"
        "              3  [SEP]             added\n"
        "changed: Héllo -> hello\n"
        "unknown: x😀 (word 3): after x, no token fits at 😀 (U+1F600 GRINNING FACE), which is"
        " not in the vocabulary\n"
        "\n"
        "y\n"
        "word  chars  id  token  source\n"
        "              2  [CLS]          added\n"
        "   0    0-1   1  [UNK]  y       unknown\n"
        "              3  [SEP]          added\n"
        "unknown: y (word 0): no token fits at y (U+0079 LATIN SMALL LETTER Y), which is in the"
        " vocabulary only as a continuation\n"
    )


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["xu"], "which is in the vocabulary only inside longer tokens"),
        (["xx"], "which is in the vocabulary only as the start of a word"),
        (["a" * 101], "(word 0): 101 characters, more than max_word_length (100)"),
        (["q q x q"], "q (words 0, 1, 3): no token fits at q"),
        (["☃ " * 30], "17, 18, 19 and 10 more)"),
        (["--unk-scope", "character", "x☃a"], "x☃a (word 0): after x, no token fits at ☃ (U+2603"),
        (["--unk-scope=character", "x☃a"], "   0    2-3  17  ##a    a\n"),
        (["--no-lowercase", "A"], "no token fits at A (U+0041 LATIN CAPITAL LETTER A)"),
        (["--no-add-special-tokens", "x"], "x\nword  chars  id  token  source\n   0    0-1  10  x"),
        (["--special-tokens-in-text", "text", "[SEP]"], "   1    1-4  15  sep    SEP\n"),
        ([""], "(no text)\nword  chars  id  token  source\n              2  [CLS]          added"),
        (["x\u200by\u202e"], "changed: x\\u200by -> xy\ndropped: \\u202e (U+202E RIGHT-TO-LEFT OV"),
        (["\x1b[31m"], "dropped: \\u001b (U+001B) at 0\n"),
        (["\u0301\ufe0f\U000e0041"], "◌\u0301\\ufe0f\\U000e0041\n"),
        (["x" * 200], f"{'x' * 140}…{'x' * 19}\n"),
        (["日x"], "   0    0-1   9  日     日\n   1    1-2  10  x      x\n"),
        (["--", "--x"], "--x\nword"),
    ],
    ids=str,
)
def test_inspect_shows_tokens_and_reasons(vocab: Path, args: list[str], said: str) -> None:
    assert said in shown(vocab, *args)


# --- Scripts --------------------------------------------------------------------------------------


def objects(vocab: Path, *args: str) -> list[dict[str, Any]]:
    out = done("inspect", vocab, "--json", *args).out
    return [json.loads(line) for line in out.splitlines()]


ADDED = {"kind": "added", "start": 0, "end": 0, "source": "", "word": None}
TEXT = {"kind": "text", "word": 0}


def test_json_is_an_object_a_text(vocab: Path) -> None:
    texts = ["x\u200by\u2028\x85\0", 'a☃"\\', ""]
    found = objects(vocab, *texts)
    assert [one["text"] for one in found] == texts
    assert found[0] == {
        "text": "x\u200by\u2028\x85\0",
        "tokens": [
            ADDED | {"token": "[CLS]", "id": 2},
            TEXT | {"token": "x", "id": 10, "start": 0, "end": 1, "source": "x"},
            TEXT | {"token": "##y", "id": 11, "start": 2, "end": 3, "source": "y"},
            ADDED | {"token": "[SEP]", "id": 3},
        ],
        "words": [
            {"number": 0, "start": 0, "end": 3, "raw": "x\u200by", "normalized": "xy"}
            | {"too_long": False, "misfits": []}
        ],
        "dropped": [{"at": 5, "character": "\0"}],
    }
    assert found[1]["words"][0]["misfits"] == [
        {"at": 1, "character": "☃", "after": ["a"], "known": "nowhere"}
    ]
    assert found[1]["tokens"][1]["kind"] == "unknown"


# --- Standard input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "texts"),
    [
        ([], ["x", "", "a\ufffdb"]),
        (["-"], ["x", "", "a\ufffdb"]),
        (["q", "-"], ["q", "x", "", "a\ufffdb"]),
    ],
)
def test_lines_of_standard_input_are_texts(
    vocab: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], texts: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x\r\n\na\xffb")))
    assert [one["text"] for one in objects(vocab, *args)] == texts


# --- The call -------------------------------------------------------------------------------------


def test_inspect_shows_the_ids_that_encode_writes(tmp_path: Path) -> None:
    texts = english(5)
    tokenizer = train_tokenizer(tmp_path, texts, "--vocab-size", "60", "--no-lowercase")
    found = objects(Path(tokenizer), *texts)
    expected = Tokenizer.load(tokenizer).encode_batch(texts).to_pylist()
    assert [[token["id"] for token in one["tokens"]] for one in found] == expected


@pytest.mark.parametrize(
    ("args", "status", "reason"),
    [
        ([], 2, "Missing argument 'TOKENIZER'."),
        (["VOCAB", "x", "--unk-scope", "x"], 2, "Invalid value for '--unk-scope'"),
        (["VOCAB", "--jsn"], 2, "No such option '--jsn'."),
        (["./NOWHERE", "x"], 1, "./NOWHERE: no tokenizer found; expected a directory"),
    ],
)
def test_a_wrong_call_is_one_line(vocab: Path, args: list[str], status: int, reason: str) -> None:
    outcome = wordpiece("inspect", *(str(vocab) if arg == "VOCAB" else arg for arg in args))
    assert (outcome.status, outcome.out) == (status, "")
    assert outcome.fault.startswith(reason)


def test_help_lists_it() -> None:
    assert "  inspect  Show how TEXT is" in done("--help").out
    help_text = done("inspect", "--help").out
    assert max(map(len, help_text.splitlines())) <= 100


@pytest.mark.usefixtures("wide")
def test_tokens_of_bytes_are_shown_as_text(tmp_path: Path) -> None:
    args = ("--model", "bpe", "--word-boundary", "bytes", "--pre-tokenizer", "gpt2")
    tokenizer = train_tokenizer(tmp_path, ["日本語 hello"] * 9, *args, "--vocab-size", "269")
    out = shown(Path(tokenizer), "日本語 語")
    assert "日本語" in out.split("\n")[2].split()
    assert r"\xe8" in out
    assert "æĹ" not in out
