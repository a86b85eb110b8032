"""Random models of `sentencepiece`, and texts for them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import sentencepiece

import wordpiece_core as wp

from ..wordpiece_core.tokenizer.peers import sentencepiece_model
from .random_tokenizers import random_text

Options = tuple[tuple[str, Any], ...]


def random_model_options(rng: Random) -> Options:
    """Options with which `sentencepiece` trains a model."""
    choices: dict[str, list[Any]] = {
        "model_type": ["unigram", "bpe"],
        "user_defined_symbols": ["", "", "ab,<sep>,\u00e9e,the,▁▁,12"],
        "treat_whitespace_as_suffix": [False, False, True],
        "split_by_whitespace": [True, True, False],
        "vocab_size": [120, 250, 450],
        "normalization_rule_name": ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"],
        "remove_extra_whitespaces": [True, True, False],
        "add_dummy_prefix": [True, True, False],
        "character_coverage": [0.9995, 0.98],
        "byte_fallback": [False, False, True],
        "split_digits": [False, True],
    }
    options = {name: rng.choice(values) for name, values in choices.items()}
    if options["byte_fallback"]:
        options["vocab_size"] = 450
    return tuple(sorted(options.items()))


@cache
def _both(options: Options) -> tuple[wp.Tokenizer, Any]:
    model = sentencepiece_model(options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.model"
        path.write_bytes(model)
        wp.Tokenizer.load(path).save(folder)
        ours = wp.Tokenizer.load(Path(folder) / "spiece.model")
    return ours, sentencepiece.SentencePieceProcessor(model_proto=model)


def sentencepiece_difference(seed: int) -> str | None:
    """Return the differences in the random texts of a seed on one line; None if there are none."""
    rng = Random(seed)
    options = random_model_options(rng)
    ours, theirs = _both(options)
    pieces = [[theirs.id_to_piece(i), 0.0] for i in range(theirs.vocab_size())]
    control = [{"content": piece} for piece in ("<s>", "</s>", "<unk>", "▁")]
    value = {"model": {"vocab": pieces}, "added_tokens": control}
    texts = [random_text(rng, value) for _ in range(20)]
    texts = [text.replace("\0", "") for text in texts]  # which ends strings in C++
    found = ours.encode_batch(texts, add_special_tokens=False).to_pylist()
    for text, ids in zip(texts, found, strict=True):
        if ids != (wanted := theirs.encode(text)):
            return f"{text!a}: {ids} not {wanted} ({dict(options)})"
    return None
