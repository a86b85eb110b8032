"""Tokenizers of all kinds, each with the library that its file belongs to: files of `tokenizers`
and models of `sentencepiece`, and tokenizers of our own training, saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import wordpiece_core as wp
from wordpiece_core.symbols import SPECIAL_TOKENS
from wordpiece_core.tokenizer.families import trained_spec
from wordpiece_core.tokenizer.models import Bpe, Unigram
from wordpiece_core.tokenizer.spec import TokenizerSpec

from ..real_text import real_lines
from . import library_kinds
from .peers import (
    SENTENCES,
    added,
    sentencepiece_like,
    sentencepiece_model,
    train_sentencepiece,
    trained,
)

Json = dict[str, Any]
Files = Callable[[Path], Path]
"""Write the files of a tokenizer into a directory, and return the path to load."""

OWN = ["word_end", "mark", "bert_bytes", "unigram"]
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


# --- Of `tokenizers` ------------------------------------------------------------------------------


def of_bytes(kind: str, add_prefix_space: bool = False) -> Json:
    value = trained(kind)
    value["pre_tokenizer"]["add_prefix_space"] = add_prefix_space
    if kind == "roberta":
        value["post_processor"]["add_prefix_space"] = add_prefix_space
    return value


def with_tokens(value: Json, **tokens: Json) -> Json:
    """Return the tokenizer with more added tokens, of these flags, in its vocabulary too."""
    vocab = value["model"]["vocab"]
    for token, flags in tokens.items():
        ids = {row[0]: i for i, row in enumerate(vocab)} if isinstance(vocab, list) else vocab
        number = ids.get(token, len(vocab))
        if number == len(vocab):
            vocab.append([token, 0.0]) if isinstance(vocab, list) else vocab.update({token: number})
        value["added_tokens"].append(added(token, number, **flags))
    value["added_tokens"].sort(key=lambda token: token["id"])
    return value


TAKES_SPACE = {"<mask>": {"lstrip": True}}


def write_json(value: Json, directory: Path) -> Path:
    (directory / "tokenizer.json").write_text(json.dumps(value))
    return directory / "tokenizer.json"


def write_config(directory: Path) -> Path:
    """Write GPT-2's tokenizer with roles that its file does not have."""
    write_json(trained("gpt2"), directory)
    roles = dict.fromkeys(("pad_token", "eos_token", "sep_token"), "<|endoftext|>")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 77, **roles}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory


# --- Of `sentencepiece` ---------------------------------------------------------------------------

MODELS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "with bytes": {"byte_fallback": True, "vocab_size": 450, "character_coverage": 0.98},
    "with all spaces": {"remove_extra_whitespaces": False},
    "without prefix": {"add_dummy_prefix": False},
    "without prefix, with all spaces": {
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
    },
    "unchanged": {"normalization_rule_name": "identity"},
    "case-folded": {"normalization_rule_name": "nmt_nfkc_cf", "vocab_size": 150},
    "across spaces": {"user_defined_symbols": "<ent>", "split_by_whitespace": False},
    "bpe": {"model_type": "bpe", "user_defined_symbols": "<sep>,the"},
    "bpe with suffixes": {"model_type": "bpe", "treat_whitespace_as_suffix": True},
}
OF_REAL_TEXT = {
    f"of real text, {rule}{', with bytes' * byte_fallback}": {
        "normalization_rule_name": rule,
        "byte_fallback": byte_fallback,
        "character_coverage": 0.99,
        "hard_vocab_limit": True,
    }
    for rule in ("identity", "nmt_nfkc")
    for byte_fallback in (False, True)
}


def write_model(options: Json, directory: Path, *, real_text: bool = False) -> Path:
    path = directory / "it.model"
    if real_text:
        path.write_bytes(train_sentencepiece(real_lines()[::2], 1200, **options))
    else:
        path.write_bytes(sentencepiece_model(tuple(options.items())))
    return path


# --- Our own --------------------------------------------------------------------------------------


def own_spec(
    kind: str, text: wp.TextOptions | None = None, special_tokens: Sequence[str] = ()
) -> TokenizerSpec:
    """Return the spec of a training whose model a peer has learned."""
    boundary = {"word_end": "</w>", "mark": "▁", "unigram": "▁"}.get(kind, "bytes")
    model = trained(kind)["model"]
    if kind == "unigram":
        vocab = [token for token, _ in model["vocab"]]
        made: Bpe | Unigram = Unigram([round(score * 64) / 64 for _, score in model["vocab"]])
    else:
        vocab = sorted(model["vocab"], key=model["vocab"].get)
        ids = model["vocab"]
        suffix = "</w>" if boundary == "</w>" else None
        made = Bpe([(ids[left], ids[right]) for left, right in model["merges"]], suffix)
    if isinstance(made, Unigram):
        made = replace(made, scores=[*made.scores, *[0.0] * len(special_tokens)])
    return trained_spec(
        [*vocab, *special_tokens],
        made,
        text or wp.TextOptions(),
        boundary,
        special_tokens=[*SPECIAL_TOKENS, *special_tokens],
    )


def with_bytes(spec: TokenizerSpec) -> TokenizerSpec:
    """Return the spec with a token for each byte."""
    assert isinstance(spec.model, Unigram)
    scores = [*spec.model.scores, *[-20.0] * 256]
    model, text = Unigram(scores, byte_fallback=True), wp.TextOptions()
    vocab = [*spec.vocab, *BYTE_TOKENS]
    return trained_spec(vocab, model, text, "▁", special_tokens=SPECIAL_TOKENS)


def saved(spec: TokenizerSpec, directory: Path) -> Path:
    wp.Tokenizer.from_spec(spec).save(directory)
    return directory


def train(options: Json, directory: Path) -> Path:
    """Train a tokenizer, and save it."""
    words = wp.count_words(SENTENCES * 9, **options.get("text", {}))
    training = {name: value for name, value in options.items() if name != "text"}
    wp.train(words, vocab_size=700, **training).tokenizer().save(directory)
    return directory


BYTES = {"model": "bpe", "word_boundary": "bytes"}
SUPERWORDS: dict[str, Json] = {
    "like llama 3": {"pre_tokenizer": "llama3"},
    "like o200k": {"pre_tokenizer": "o200k"},
    "like deepseek": {"pre_tokenizer": "deepseek"},
    "of normalized text": {"pre_tokenizer": "gpt2", "normalizer": ["nfc"]},
    "by an expression": {"pre_tokenizer": r"\s?\S+|\s+", "superword_pattern": r"[^\n.]+|[\n.]+"},
}
TRAININGS: dict[str, Json] = {
    "wordpiece": {},
    "cased": {"text": {"lowercase": False}, "special_tokens": ["[UNK]", "<s>"]},
    "cased without accents": {"text": {"lowercase": False, "strip_accents": True}},
    "with accents": {"text": {"strip_accents": False}},
    "with control characters": {"text": {"clean_text": False, "handle_chinese_chars": False}},
    "whitespace": {"text": {"pre_tokenizer": "whitespace"}, "max_word_length": 5},
    "bpe like llama 3": {"text": {"pre_tokenizer": "llama3"}, **BYTES},
    "bpe like gpt2": {"text": {"pre_tokenizer": "gpt2"}, **BYTES},
    "bpe": {"model": "bpe", "special_tokens": ["<unk>", "</s>"], "unk_token": "<unk>"},
    "unigram with bytes": {"model": "unigram", "byte_fallback": True},
    **{
        f"superwords {name}": {"text": {**text, "superwords": True}, "superwords": 200, **BYTES}
        for name, text in SUPERWORDS.items()
    },
}
CASED, GPT2 = wp.TextOptions(lowercase=False), wp.TextOptions(pre_tokenizer="gpt2")
SPACED = wp.TextOptions(lowercase=False, pre_tokenizer="whitespace")

# --- The table ------------------------------------------------------------------------------------

OF_TOKENIZERS: dict[str, Callable[[], Json]] = {
    **{kind: partial(trained, kind) for kind in ("word_end", "mark", "bert_bytes", "unigram")},
    **{
        f"{kind}{' with a space' * space}": partial(of_bytes, kind, space)
        for kind in ("gpt2", "roberta")
        for space in (False, True)
    },
    **{kind: partial(sentencepiece_like, kind) for kind in ("t5", "xlm_roberta", "converted")},
    "xlm_roberta with a mask": lambda: with_tokens(
        sentencepiece_like("xlm_roberta"), **TAKES_SPACE
    ),
    "roberta with a mask": lambda: with_tokens(trained("roberta"), **TAKES_SPACE),
}
OWN_SPECS: dict[str, Callable[[], TokenizerSpec]] = {
    **{kind: partial(own_spec, kind) for kind in OWN},
    **{f"{kind} cased": partial(own_spec, kind, CASED, ["<ent>"]) for kind in OWN},
    **{f"{kind} spaced": partial(own_spec, kind, SPACED, ["<ent>"]) for kind in OWN},
    "bytes of gpt2": partial(own_spec, "bert_bytes", GPT2),
    "unigram with all bytes": lambda: with_bytes(own_spec("unigram")),
}
KINDS: dict[str, Files] = {
    **{
        f"tokenizers {name}": lambda directory, make=make: write_json(make(), directory)
        for name, make in OF_TOKENIZERS.items()
    },
    "transformers gpt2": write_config,
    **{f"sentencepiece {name}": partial(write_model, MODELS[name]) for name in MODELS},
    **{
        f"sentencepiece {name}": partial(write_model, options, real_text=True)
        for name, options in OF_REAL_TEXT.items()
    },
    **{
        f"own {name}": lambda directory, make=make: saved(make(), directory)
        for name, make in OWN_SPECS.items()
    },
    **{f"trained {name}": partial(train, options) for name, options in TRAININGS.items()},
    **{
        f"library {name}": lambda directory, peer=peer: write_json(
            json.loads(peer.to_str()), directory
        )
        for name, peer in library_kinds.KINDS.items()
    },
}
