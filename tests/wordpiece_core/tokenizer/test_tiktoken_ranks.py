"""Files of ranks have the ids of tiktoken, whose own table has their expressions and tokens."""

import json
import random
from base64 import b64decode, b64encode
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
import tiktoken
from tiktoken_ext import openai_public

import wordpiece_core as wp
from tests.wordpiece_core.real_text import real_lines
from wordpiece_core.tokenizer.formats.tiktoken_ranks import ENCODINGS

MORE = "äöü ñ 你好 世界 \r\n\r\n   don't DON'T 12345 camelCaseWORD\t👍🏽 " * 30
PARTS = (
    *("a", "B", "don't", "'LL", "12", "3456", " ", "  ", "\n", "\r\n", "\t", "é", "ß", "你好"),
    "世",
    *("!", "/", "-", "\u00a0", "ǅ", "ʰ", "\u0308", "camelCase", "WORD", "the ", "👍🏽", "ſ"),
    "\u2028",
)


def grown_ranks(size: int) -> dict[bytes, int]:
    """Ranks as training of bytes gives them, the bytes themselves in an order of no rule."""
    parts = [bytes([byte]) for byte in ("\n".join(real_lines(8_000)) + MORE).encode()]
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


# The expressions of the libraries that read the other encodings, as they publish them, and some of
# their special tokens.
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
O200K = (
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"""
    + CONTRACTION
    + r"""?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"""
    + CONTRACTION
    + r"""?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
LLAMA3 = (
    CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
PUBLISHED = {
    "llama3": (LLAMA3, {"<|begin_of_text|>": 128_000, "<|image|>": 128_011}, 128_256),
    "qwen": (LLAMA3.replace("{1,3}", ""), {"<|im_start|>": 151_644}, 151_851),
}


def of_tiktoken(name: str, monkeypatch: pytest.MonkeyPatch) -> tiktoken.Encoding:
    if name in PUBLISHED:
        pattern, special, size = PUBLISHED[name]
        assert 1 + max(ENCODINGS[name].special_tokens.values()) == size
        return tiktoken.Encoding(
            name, pat_str=pattern, mergeable_ranks=RANKS, special_tokens=special
        )
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: dict(RANKS))
    options: dict[str, Any] = getattr(openai_public, name)()
    return tiktoken.Encoding(**options | {"explicit_n_vocab": None})


@pytest.mark.parametrize("name", ENCODINGS)
def test_ids_match_tiktoken(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = of_tiktoken(name, monkeypatch)
    path = tmp_path / f"{name}.tiktoken"
    path.write_text(text_of(RANKS))
    ours = wp.Tokenizer.load(str(path))
    rng = random.Random(name)
    parts = [*PARTS, *sorted(theirs.special_tokens_set)[:5]]
    texts = ["".join(rng.choices(parts, k=rng.randrange(30))) for _ in range(2000)]
    expected = [theirs.encode(text, allowed_special="all") for text in texts]
    if name == "qwen":
        expected = [theirs.encode(normalize("NFC", text), allowed_special="all") for text in texts]
        texts = [normalize("NFC", text) for text in texts]
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


def test_tokens_may_precede_their_parts(tmp_path: Path) -> None:
    rng = random.Random(3)
    for _ in range(6):
        late = {bytes(rng.choices(b"xyz.", k=rng.randrange(2, 7))) for _ in range(12)}
        ranks = {bytes([byte]): byte for byte in range(256)}
        ranks |= {
            token: 256 + rank for rank, token in enumerate(rng.sample(sorted(late), len(late)))
        }
        path = tmp_path / "r50k_base.tiktoken"
        path.write_text(text_of(ranks))
        ours = wp.Tokenizer.load(path)
        theirs = tiktoken.Encoding(
            "late", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={}
        )
        words = ["".join(rng.choices("xyz", k=rng.randrange(1, 90))) for _ in range(50)]
        expected = [theirs.encode(word) for word in words]
        assert [list(map(int, row)) for row in ours(words)["input_ids"]] == expected


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_text(text_of(RANKS))
    text = "don't 世界 <|eot_id|> 12345"
    named = wp.Tokenizer.load(path, encoding="llama3")
    assert named.ids["<|eot_id|>"] == 128_009 in named(text)["input_ids"]
    (tmp_path / "tokenizer_config.json").write_text(
        '{"eos_token": "<|eot_id|>", "tokenizer_class": "TikTokenTokenizer",'
        ' "auto_map": {"AutoTokenizer": ["x.Y", null]}}'
    )
    of_directory = wp.Tokenizer.load(tmp_path, encoding="llama3")
    assert of_directory.token_of("eos_token") == "<|eot_id|>"
    assert of_directory(text)["input_ids"] == named(text)["input_ids"]
    with pytest.raises(wp.OptionError, match=r"encoding: .*/none contains no tiktoken ranks"):
        wp.Tokenizer.load(tmp_path / "none", encoding="llama3")
    with pytest.raises(wp.InputError, match=r"is custom code.*; give `encoding`"):
        wp.Tokenizer.load(tmp_path)


def tekken(special: int, size: int) -> dict[str, Any]:
    """A file of Mistral, whose first 256 tokens are the bytes."""
    order = [bytes([byte]) for byte in range(256)] + [t for t in RANKS if len(t) > 1]
    vocab = [
        {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(order)
    ]
    sizes = {"default_vocab_size": size, "default_num_special_tokens": special}
    return {"config": {"pattern": O200K.replace("{1,3}", ""), **sizes}, "vocab": vocab}


def test_a_tekken_file_has_its_special_tokens_first(tmp_path: Path) -> None:
    value = tekken(30, 500)
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(value))
    ranks = {b64decode(token["token_bytes"]): token["rank"] for token in value["vocab"][:470]}
    pattern = value["config"]["pattern"]
    theirs = tiktoken.Encoding("tekken", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    rng = random.Random(5)
    texts = ["".join(rng.choices(PARTS, k=rng.randrange(30))) for _ in range(2000)]
    expected = [[30 + number for number in theirs.encode(text)] for text in texts]
    for place in (path, tmp_path):
        ours = wp.Tokenizer.load(place)
        assert [list(map(int, row)) for row in ours(texts)["input_ids"]] == expected
    assert ours.vocab[:3] + ours.vocab[19:21] == [
        *("<unk>", "<s>", "</s>", "[TOOL_CONTENT]", "<SPECIAL_20>")
    ]
    value["special_tokens"] = [{"rank": 3, "token_str": "[THINK]", "is_control": True}]
    path.write_text(json.dumps(value))
    assert wp.Tokenizer.load(path).vocab[2:5] == ["<SPECIAL_2>", "[THINK]", "<SPECIAL_4>"]
    for change, message in (
        ({"special_tokens": [{"rank": 30, "token_str": "x"}]}, "is not one of the first 30 ids"),
        ({"special_tokens": [{"rank": 3, "token_str": "<SPECIAL_4>"}]}, "two special tokens are"),
        ({"special_tokens": [{"rank": 3, "token_str": []}]}, "is not one of the first 30 ids"),
        (
            {"config": value["config"] | {"default_num_special_tokens": 10**12}},
            "default_vocab_size is",
        ),
        ({"vocab": value["vocab"][:400]}, "the file may be truncated"),
        ({"vocab": value["vocab"][::-1]}, r"vocab\[0\] is .*, not token 0"),
        ({"config": {}}, "default_vocab_size is None"),
    ):
        path.write_text(json.dumps(value | change))
        with pytest.raises(wp.InputError, match=message):
            wp.Tokenizer.load(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("vocab.txt", text_of(RANKS), "name its encoding with `encoding`"),
        ("mine.tiktoken", text_of(RANKS), "name its encoding with `encoding`: r50k_base, "),
        ("r50k_base.tiktoken", text_of(RANKS) + "x\n", "line 601: 'x' is not a token in base64"),
        ("r50k_base.tiktoken", text_of(RANKS) + "YQ 700\n", "line 601: 'YQ 700' is not a token"),
        ("r50k_base.tiktoken", text_of(RANKS) + "YQ== 700\n", "line 601: token b'a' is empty or"),
        ("r50k_base.tiktoken", text_of(RANKS) + "YWJjZGVm 0\n", "two tokens have the same rank"),
        (
            "r50k_base.tiktoken",
            text_of(RANKS) + "YWJjZGVm 50256\n",
            "50256 is the id of both a token and",
        ),
        (
            "r50k_base.tiktoken",
            "IQ== 999999999\n",
            "line 1: rank 999,999,999 is not below 16,777,216",
        ),
        (
            "r50k_base.tiktoken",
            "IQ== 0\nIg== 1\n",
            "no token for byte 0; the file may be truncated",
        ),
    ],
)
def test_an_unknown_encoding_is_one_line(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises((wp.InputError, wp.OptionError)) as caught:
        wp.Tokenizer.load(str(path))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
