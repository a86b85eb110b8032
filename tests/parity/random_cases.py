"""One tokenizer, read here and by the library `tokenizers`, on the same texts."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from tokenizers import Encoding, Tokenizer

import wordpiece_core as wp
from tests.oracle import SPECIAL_TOKENS
from wordpiece_core.options import ENCODING_COLUMNS, TRUNCATIONS, EncodingOptions, TextOptions

from ..wordpiece_core.tokenizer import peers
from .random_tokenizers import Json, random_text, random_tokenizer

COLUMNS = ("input_ids", *ENCODING_COLUMNS)


def random_options(rng: Random, pairs: bool) -> EncodingOptions:
    """Options that both libraries take."""
    stride = rng.choice([None, 0, 1, 3])
    max_length = rng.choice([None, (stride or 0) + rng.randint(6, 20)])
    return EncodingOptions(
        add_special_tokens=rng.random() < 0.7,
        special_tokens_in_text="text" if rng.random() < 0.3 else "parse",
        max_length=max_length,
        truncation=rng.choice(TRUNCATIONS) if pairs else "longest_first",
        stride=stride if max_length else None,
        columns=ENCODING_COLUMNS,
    )


def load(value: Json) -> wp.Tokenizer:
    """The tokenizer as we read it. InputError if the library encodes it, with which it would be
    compared."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_text(json.dumps(value))
        loaded = wp.Tokenizer.load(path)
    if loaded.spec.library is not None:
        raise wp.InputError("the library tokenizers encodes it")
    return loaded


def wordpiece(
    vocab: Sequence[str], special: Sequence[str] = SPECIAL_TOKENS, **options: Any
) -> Json:
    """BERT's tokenizer, with options as `wp.Tokenizer` has them."""
    usual = {"max_word_length": 100, "continuing_prefix": "##", **TextOptions().resolve().values()}
    chosen = usual | options
    ids = {token: i for i, token in enumerate(vocab)}
    switches = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    bert = chosen["pre_tokenizer"] == "bert"
    template = peers._template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ids, 1)
    return {
        "version": "1.0",
        "added_tokens": [
            peers.added(token, ids[token])
            for token in sorted({*special} & {*ids}, key=lambda token: ids[token])
        ],
        "normalizer": {"type": "BertNormalizer", **{name: chosen[name] for name in switches}},
        "pre_tokenizer": {"type": "BertPreTokenizer" if bert else "WhitespaceSplit"},
        "post_processor": template if {"[CLS]", "[SEP]"} <= {*ids} else None,
        "model": {
            **{"type": "WordPiece", "unk_token": "[UNK]", "vocab": ids},
            "continuing_subword_prefix": chosen["continuing_prefix"],
            "max_input_chars_per_word": chosen["max_word_length"],
        },
    }


def peer(value: Json, options: EncodingOptions) -> Tokenizer:
    """The tokenizer as `tokenizers` reads it, with the options of encoding."""
    if options.special_tokens_in_text == "text":
        value = without_special_tokens(value)
    made = Tokenizer.from_str(json.dumps(value))
    set_options(made, options)
    return made


def set_options(made: Tokenizer, options: EncodingOptions) -> None:
    made.no_truncation()
    made.no_padding()
    if options.max_length is not None:
        made.enable_truncation(
            options.max_length, stride=options.stride or 0, strategy=options.truncation
        )
        if options.padding:
            ids = [made.token_to_id(token) for token in ("[PAD]", out_of_reach("[PAD]"))]
            pad_id = max((i for i in ids if i is not None), default=0)
            made.enable_padding(length=options.max_length, pad_id=pad_id, pad_token="[PAD]")


def out_of_reach(token: str) -> str:
    """The name of a token that no word has."""
    return f"{token} out \x00 of reach"


def without_special_tokens(value: Json) -> Json:
    """A tokenizer in whose texts no special token is found: not as an added token, and not by the
    model (which `encode_special_tokens` of `tokenizers` does not prevent)."""
    value = deepcopy(value)
    special = [token["content"] for token in value["added_tokens"] if token["special"]]
    names = {token: out_of_reach(token) for token in special}
    for token in value["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    model = value["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {names.get(token, token): i for token, i in model["vocab"].items()}
    else:
        model["vocab"] = [[names.get(token, token), score] for token, score in model["vocab"]]
    if "merges" in model:
        hidden = {*names}
        model["merges"] = [pair for pair in model["merges"] if not {*pair, "".join(pair)} & hidden]
    if model.get("unk_token") is not None:
        model["unk_token"] = names.get(model["unk_token"], model["unk_token"])
    return value


def their_rows(encoding: Encoding, options: EncodingOptions) -> list[dict[str, Any]]:
    rows = [encoding, *(encoding.overflowing if options.stride is not None else ())]
    return [
        {
            "input_ids": row.ids,
            "attention_mask": row.attention_mask,
            "token_type_ids": row.type_ids,
            "special_tokens_mask": row.special_tokens_mask,
            "offset_mapping": [list(offsets) for offsets in row.offsets],
            "word_ids": row.word_ids,
            "num_tokens": sum(row.attention_mask),
        }
        for row in rows
    ]


def difference(
    value: Json, texts: Sequence[str], pairs: Sequence[str] | None, options: EncodingOptions
) -> str | None:
    """Return the first difference on one line; None if there is none. Raises InputError if our
    reader refuses the tokenizer."""
    ours, theirs = load(value), peer(value, options)
    inputs = list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
    try:
        table = ours.encode_table(texts, pairs, options=options)
    except wp.OptionError as error:
        raise wp.InputError(str(error)) from error
    except wp.InputError as error:
        try:
            theirs.encode_batch(inputs, add_special_tokens=options.add_special_tokens)
        except BaseException as other:  # Rust panics are BaseExceptions
            if not isinstance(other, KeyboardInterrupt):
                return None
        return f"we raise {error}, and tokenizers does not"
    try:
        encodings = theirs.encode_batch(inputs, add_special_tokens=options.add_special_tokens)
    except BaseException as other:  # Rust panics are BaseExceptions
        if isinstance(other, KeyboardInterrupt):
            raise
        raise wp.InputError("tokenizers does not encode it") from other
    wanted = [row for encoding in encodings for row in their_rows(encoding, options)]
    again = ours.encode_table(texts, pairs, options=options)  # words are known now
    plain = ours.encode_table(texts, pairs, options=replace(options, columns=()))
    for batch in (table, again, plain):
        found = batch.table.to_pylist()
        for ours_row, theirs_row in zip(found, wanted, strict=False):
            for name in ours_row:
                if ours_row[name] != theirs_row[name]:
                    return f"{name}: {ours_row[name]} not {theirs_row[name]}"
        if len(found) != len(wanted):
            return f"{len(found)} rows not {len(wanted)}"
    return None


def assert_same(value: Json, texts: Sequence[str], **options: Any) -> None:
    """Texts and pairs of them are encoded as `tokenizers` does, with added tokens and without.
    `options`: of encoding."""
    for adds in (True, False):
        for pairs in (None, texts[::-1]):
            way = EncodingOptions(add_special_tokens=adds, columns=ENCODING_COLUMNS, **options)
            assert difference(value, texts, pairs, way) is None, (adds, pairs)


def random_case(seed: int) -> tuple[Json, list[str], list[str] | None, EncodingOptions]:
    """The tokenizer, texts, pairs and options of a seed."""
    rng = Random(seed)
    value = random_tokenizer(rng)
    texts = [random_text(rng, value) for _ in range(16)]
    pairs = [random_text(rng, value) for _ in texts] if rng.random() < 0.4 else None
    return value, texts, pairs, random_options(rng, pairs is not None)
