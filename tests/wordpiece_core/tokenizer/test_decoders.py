"""Decoders give the text of `tokenizers`, alone and in random tokenizers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, decoders

import wordpiece_core as wp
from wordpiece_core.tokenizer.decoders import decoding_steps, text_of

from ...parity.random_cases import load, random_case
from ...quick import parametrize

TOKENS = (
    *("▁the", "▁", "a", "##b", "Ġword", "é", "æĹ¥", "日", "Ċ", "", "  a  ", "▁▁a", "aaa", "a|b"),
    *("<0xE6>", "<0x97>", "<0xA5>", "<0x0a>", "<0xZZ>", "<0x+5>", "<pad>", "|", "##", ".", "?"),
    *(" n't", " do not", " 's", "x</w>", "</w>"),
)
PARTS, SEEDS = 20, 20


def random_decoder(rng: Random) -> Any:
    """Return a decoder of any kind."""
    word_pieces = decoders.WordPiece(rng.choice(["##", "", "▁"]), rng.random() < 0.5)
    metaspace = decoders.Metaspace(rng.choice("▁_"), rng.choice(["always", "never", "first"]))
    expression = Regex(rng.choice([r"\s+", r"▁+", r"[a-c]+", r"<.*?>"]))
    kinds = [
        *(decoders.ByteLevel(), decoders.ByteFallback(), decoders.Fuse(), word_pieces, metaspace),
        decoders.BPEDecoder(rng.choice(["</w>", "x", ""])),
        decoders.Strip(rng.choice(" ▁a"), rng.randrange(3), rng.randrange(3)),
        decoders.Replace(rng.choice(["▁", "a", "</w>", " "]), rng.choice([" ", "", "xx"])),
        decoders.Replace(expression, rng.choice([" ", "", "é"])),
        decoders.CTC(rng.choice(["<pad>", "a"]), rng.choice("| "), rng.random() < 0.5),
    ]
    if rng.random() < 0.3:
        return decoders.Sequence([random_decoder(rng) for _ in range(rng.randrange(1, 4))])
    return rng.choice(kinds)


def json_of(decoder: Any) -> Any:
    return json.loads(decoder.__getstate__())


def unless_panic(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the result of a call, or None if Rust panics, as at a Strip of too short tokens."""
    try:
        return call(*args, **options)
    except BaseException as error:  # a panic derives from BaseException
        if type(error).__name__ != "PanicException":
            raise
        return None


@parametrize("part", range(PARTS), quick=1)
def test_decoders_give_the_text_of_tokenizers(part: int) -> None:
    for seed in range(1000 * part, 1000 * (part + 1)):
        rng = Random(seed)
        decoder, tokens = random_decoder(rng), rng.choices(TOKENS, k=rng.randrange(9))
        value, text = json_of(decoder), unless_panic(decoder.decode, tokens)
        if text is not None:
            assert text_of(decoding_steps(value), tokens) == text, (value, tokens)


@parametrize("part", range(PARTS), quick=1)
def test_random_tokenizers_decode_as_tokenizers_does(part: int) -> None:
    compared = 0
    for seed in range(SEEDS * part, SEEDS * (part + 1)):
        rng = Random(seed)
        value, texts, _, _ = random_case(seed)
        value["decoder"] = rng.choice([None, value["decoder"], json_of(random_decoder(rng))])
        try:
            ours = load(value)
        except wp.InputError:
            continue
        theirs = Tokenizer.from_str(json.dumps(value))
        rows = [found.ids for text in texts if (found := unless_panic(theirs.encode, text))]
        rows += [rng.choices(range(len(ours)), k=rng.randrange(10)) for _ in range(10)]
        for row in rows:
            for skips in (True, False):
                text = ours.decode(
                    row, skip_special_tokens=skips, clean_up_tokenization_spaces=False
                )
                wanted = unless_panic(theirs.decode, row, skip_special_tokens=skips)
                assert wanted in (None, text), (seed, row)
        compared += 1
    assert compared > SEEDS * 0.9


LLAMA_2 = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        *({"type": "ByteFallback"}, {"type": "Fuse"}),
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}


def of_words(decoder: Any, *added: Any) -> dict[str, Any]:
    """Return a BPE of bytes with this decoder."""
    vocab = {token: i for i, token in enumerate(["<s>", "▁the", "▁word", "Ġthe", "æĹ¥", "x"])}
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    return {"added_tokens": [*added], "model": model, "decoder": decoder}


@pytest.mark.parametrize(
    ("decoder", "ids", "text"),
    [
        (LLAMA_2, [0, 1, 2], "<s> the word"),
        ({"type": "ByteLevel"}, [3, 4], " the日"),
        (None, [1, 2], "▁the ▁word"),
    ],
)
def test_the_decoder_of_a_file_is_kept(
    tmp_path: Path, decoder: Any, ids: list[int], text: str
) -> None:
    ours = load(of_words(decoder))
    assert ours.decode(ids) == text
    ours.save(tmp_path)
    assert json.loads((tmp_path / "tokenizer.json").read_text())["decoder"] == decoder
    assert wp.Tokenizer.load(tmp_path).decode(ids) == text


def test_added_tokens_that_are_not_special_stay_in_the_text() -> None:
    think = {"id": 6, "content": "<think>", "special": False} | dict.fromkeys(
        ("single_word", "lstrip", "rstrip", "normalized"), False
    )
    ours = load(
        of_words({"type": "Fuse"}, think, think | {"id": 0, "content": "<s>", "special": True})
    )
    assert ours.decode([0, 6, 5]) == "<think>x"
    assert ours.decode([0, 6, 5], skip_special_tokens=False) == "<s><think>x"


def test_a_decoder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wp.InputError, match="decoder"):
        decoding_steps({"type": "Nonesuch"}, "tokenizer.json")
