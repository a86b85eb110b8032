"""Random files of `tokenizers`, with added tokens of every kind: ids and offsets are those of the
library. `make soak` tries thousands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import wordpiece_core as wp

from ...parity.random_cases import difference, random_case

PARTS, SEEDS = 4, 40


@pytest.mark.parametrize("part", range(PARTS))
def test_random_tokenizers_give_the_rows_of_tokenizers(part: int) -> None:
    compared = 0
    for seed in range(SEEDS * part, SEEDS * (part + 1)):
        try:
            found = difference(*random_case(seed))
        except wp.InputError:  # one of both refuses it
            continue
        assert found is None, f"seed {seed}: {found}"
        compared += 1
    assert compared > SEEDS / 2


def both(path: Path, value: dict[str, Any], text: str) -> tuple[list[int], list[int]]:
    """Our ids, and those of `tokenizers`."""
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], **value}))
    ours = wp.Tokenizer.load(path).encode([text], add_special_tokens=False)[0].as_py()
    return ours, Tokenizer.from_file(str(path)).encode(text, add_special_tokens=False).ids


def test_a_character_that_vanishes_does_not_separate_what_is_beside_it(tmp_path: Path) -> None:
    vocab = {token: i for i, token in enumerate(["A", "▁", "A▁", "B", "B▁", "▁▁", "A▁▁"])}
    merges = ["A ▁", "B ▁", "▁ ▁", "A ▁▁"]
    for unk in (None, "B"):
        model = {"type": "BPE", "unk_token": unk, "vocab": vocab, "merges": merges}
        for text in ("Aé▁", "A▁é▁", "Aéé▁B", "é▁A", "A漢▁é▁▁B😀▁"):
            ours, theirs = both(tmp_path / "tokenizer.json", {"model": model}, text)
            assert ours == theirs, (unk, text)


TOKEN = {"single_word": False, "lstrip": False, "rstrip": False, "special": False}
UNIGRAM = [["<unk>", 0.0], ["▁", -2.0], ["▁a", -3.0], ["a", -4.0], ["▁b", -3.0], ["b", -3.5]]


TEXTS = (
    *("a newtok b", "a NewTok b", "NewTokNewTok", "a  NewTok  b", " NEWTOK", "xNewTok", "raw RAW"),
    *("ab ａb aａb", "raw  NewTok\tab", "", "\u00a0NewTok\u00a0", "a-NewTok-b", "e\u0301NewTok"),
)


@pytest.mark.parametrize("flag", [None, "lstrip", "rstrip", "single_word"])
@pytest.mark.parametrize(
    "normalizer",
    [
        {"type": "Lowercase"},
        {"type": "NFKC"},
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
        {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
        | {"strip_accents": None, "lowercase": True},
        {"type": "Sequence", "normalizers": [{"type": "Strip"} | {"strip_left": True}]},
    ],
    ids=lambda normalizer: normalizer["type"],
)
def test_added_tokens_are_searched_for_in_the_normalized_text(
    tmp_path: Path, normalizer: dict[str, Any], flag: str | None
) -> None:
    if normalizer["type"] == "Sequence":
        normalizer["normalizers"][0]["strip_right"] = True
    flags = TOKEN | ({} if flag is None else {flag: True})
    added = [
        {"id": 6, "content": "NewTok", "normalized": True, **flags},
        {"id": 7, "content": "ａb", "normalized": True, **flags},
        {"id": 8, "content": "raw", "normalized": False, **flags},
    ]
    cutter = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    value = {
        **{"added_tokens": added, "normalizer": normalizer, "pre_tokenizer": cutter},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": UNIGRAM, "byte_fallback": False},
    }
    for text in TEXTS:
        ours, theirs = both(tmp_path / "tokenizer.json", value, text)
        assert ours == theirs, text
