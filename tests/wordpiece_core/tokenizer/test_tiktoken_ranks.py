"""Files of ranks have the ids of tiktoken, whose own table has their expressions and tokens."""

import random
from base64 import b64encode
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from tiktoken_ext import openai_public

import wordpiece_core as wp
from wordpiece_core.tokenizer.formats.tiktoken_ranks import ENCODINGS

CORPUS = Path(__file__).parents[3] / "docs/limits.md"
MORE = "äöü ñ 你好 世界 \r\n\r\n   don't DON'T 12345 camelCaseWORD\t👍🏽 " * 30
PARTS = (
    *(
        "a",
        "B",
        "don't",
        "'LL",
        "12",
        "3456",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "é",
        "ß",
        "你好",
        "世",
    ),
    *(
        "!",
        "/",
        "-",
        "\u00a0",
        "ǅ",
        "ʰ",
        "\u0308",
        "camelCase",
        "WORD",
        "the ",
        "👍🏽",
        "ſ",
        "\u2028",
    ),
)


def grown_ranks(size: int) -> dict[bytes, int]:
    """Ranks as training of bytes gives them, the bytes themselves in an order of no rule."""
    parts = [bytes([byte]) for byte in (CORPUS.read_text(encoding="utf-8") + MORE).encode()]
    order = random.Random(1).sample(range(256), 256)
    ranks = {bytes([byte]): rank for rank, byte in enumerate(order)}
    while len(ranks) < size:
        (left, right), _ = Counter(pairwise(parts)).most_common(1)[0]
        ranks.setdefault(left + right, len(ranks))
        merged: list[bytes] = []
        for part in parts:
            if part == right and merged and merged[-1] == left:
                merged[-1] = left + right
            else:
                merged.append(part)
        parts = merged
    return ranks


RANKS = grown_ranks(600)


def text_of(ranks: dict[bytes, int]) -> str:
    return "".join(f"{b64encode(token).decode()} {rank}\n" for token, rank in ranks.items())


def of_tiktoken(name: str, monkeypatch: pytest.MonkeyPatch) -> tiktoken.Encoding:
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: dict(RANKS))
    options: dict[str, Any] = getattr(openai_public, name)()
    return tiktoken.Encoding(**options | {"explicit_n_vocab": None})


@pytest.mark.parametrize("name", ENCODINGS)
def test_ids_are_those_of_tiktoken(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = of_tiktoken(name, monkeypatch)
    path = tmp_path / f"{name}.tiktoken"
    path.write_text(text_of(RANKS))
    ours = wp.Tokenizer.load(str(path))
    rng = random.Random(name)
    parts = [*PARTS, *sorted(theirs.special_tokens_set)[:5]]
    texts = ["".join(rng.choices(parts, k=rng.randrange(30))) for _ in range(2000)]
    expected = [theirs.encode(text, allowed_special="all") for text in texts]
    assert [list(map(int, row)) for row in ours(texts)["input_ids"]] == expected
    assert [ours.decode(ids, skip_special_tokens=False) for ids in expected] == texts


def test_a_written_tokenizer_has_the_same_ids(tmp_path: Path) -> None:
    path = tmp_path / "cl100k_base.tiktoken"
    path.write_text(text_of(RANKS).replace("\n", "\r\n"))
    ours = wp.Tokenizer.load(str(path))
    ours.save(str(tmp_path / "saved"))
    texts = ["don't 12345678 x<|endoftext|> \r\n\n  y", MORE]
    again = wp.Tokenizer.load(str(tmp_path / "saved"))
    assert again(texts)["input_ids"] == ours(texts)["input_ids"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("vocab.txt", text_of(RANKS), "holds ranks of tiktoken, but is not named after"),
        ("mine.tiktoken", text_of(RANKS), "rename it to one of r50k_base.tiktoken, "),
        ("r50k_base.tiktoken", text_of(RANKS) + "x\n", "line 601: 'x' is not a token in base64"),
        ("r50k_base.tiktoken", text_of(RANKS) + "YQ 700\n", "line 601: 'YQ 700' is not a token"),
        ("r50k_base.tiktoken", text_of(RANKS) + "YQ== 700\n", "line 601: token b'a' is empty or"),
        ("r50k_base.tiktoken", text_of(RANKS) + "YWJjZGVm 0\n", "two tokens have one rank"),
        ("r50k_base.tiktoken", text_of(RANKS) + "YWJjZGVm 50256\n", "rank 50256 is the id of"),
        ("r50k_base.tiktoken", "IQ== 0\nIg== 1\n", "no token for the byte 0; the file may be"),
    ],
)
def test_what_is_no_encoding_is_one_line(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(wp.InputError) as caught:
        wp.Tokenizer.load(str(path))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
