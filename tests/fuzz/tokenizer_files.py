"""Random changes of tokenizer files: each is read, or refused with one line that names the file.

    python -m tests.fuzz.tokenizer_files --seconds 60

Files of `tokenizers`, `sentencepiece` and `tiktoken` are changed in their bytes and in
their values. The program ends with status 1 at any other exception, and prints its number.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import tempfile
import time
import warnings
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

from tests.parity.random_tokenizers import random_text, random_tokenizer
from tests.wordpiece_core.sentencepiece_models import model
from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core.errors import WordpieceError

VALUES = [None, True, -1, 0, 2**31, 2**63, 2**64, 1e400, 0.5, "", "Ġ", "\ud800", [], {}, [[]], "▁"]
TOKENS = {"model": {"vocab": ["a", "ab", "▁b"]}, "added_tokens": [{"content": "</s>"}]}
"""Fragments of the texts, in the form of a `tokenizer.json`."""

RULES = ("identity", "nfkc", "nmt_nfkc", "nmt_nfkc_cf")


KINDS = {
    "tokenizer.json": 8,
    "tokenizer.model": 2,
    "r50k_base.tiktoken": 2,
    "tekken.json": 3,
    "vocab.txt": 2,
    "directory": 6,
}
"""The kinds of files, and how often each is made."""
SPECIAL = {"content": "<s>", "lstrip": True, "special": True}
CONFIGS: dict[str, Any] = {
    "tokenizer_config.json": {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": {"1": SPECIAL, "2": {"content": "</s>", "normalized": False}},
        "bos_token": "<s>",
        "image_token": "<image>",
        "extra_special_tokens": ["</s>", SPECIAL | {"__type": "AddedToken"}],
        "model_max_length": 512,
        "chat_template": [{"name": "default", "template": "{{ messages }}"}],
    },
    "special_tokens_map.json": {"pad_token": SPECIAL, "unk_token": "<unk>"},
    "added_tokens.json": {"<new>": 4, "<image>": 5},
    "config.json": {"model_type": "nothing", "tokenizer_class": None},
}
BYTES = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b" a", b"\n\n"]


def files(rng: Random) -> dict[str, bytes]:
    """Return the files of a tokenizer by name, most with some values changed."""
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    if kind in ("tokenizer.json", "directory"):
        tokenizer = json.loads(json.dumps(random_tokenizer(rng)))  # it shares its parts with others
        found = {"tokenizer.json": tokenizer}
        if kind == "directory":
            configs = json.loads(json.dumps(CONFIGS))
            found |= {name: configs[name] for name in rng.sample(list(configs), rng.randrange(5))}
        for _ in range(rng.choice([0, 1, 1, 2, 4])):
            change(found[rng.choice(list(found))], rng)
        return {name: json.dumps(value).encode() for name, value in found.items()}
    if kind == "tokenizer.model":
        return {kind: model(rng.choice(RULES))}
    if kind == "r50k_base.tiktoken":
        lines = [f"{base64.b64encode(token).decode()} {i}" for i, token in enumerate(BYTES)]
        if rng.random() < 0.5:
            lines[rng.randrange(len(lines))] = f"IQ== {rng.choice([0, 300, 2**24, 10**9, 10**30])}"
        return {kind: "\n".join(lines).encode()}
    if kind == "tekken.json":
        tekken = _tekken()
        for _ in range(rng.choice([0, 1, 1, 2])):
            change(tekken, rng)
        return {kind: json.dumps(tekken).encode()}
    tokens = [b"[UNK]", b"[CLS]", b"[SEP]", b"[PAD]", b"a", b"##b", "é".encode()]
    return {kind: b"\n".join(tokens)}


def _tekken() -> dict[str, Any]:
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(BYTES)
    ]
    special = [{"rank": 0, "token_str": "<unk>"}, {"rank": 1, "token_str": "<s>"}]
    sizes = {"default_vocab_size": 262, "default_num_special_tokens": 2}
    config = {"pattern": r"\p{L}+|\s+|.", "num_vocab_tokens": 300, "version": "v3", **sizes}
    return {"config": config, "vocab": vocab, "special_tokens": special}


def change(value: Any, rng: Random) -> None:
    """Puts another value somewhere into a JSON value, takes one out, or moves one."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        # Of long lists and vocabularies a few places are enough.
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        for key in rng.sample(keys, min(len(keys), 12)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(value)
    if not places:
        return
    node, key = rng.choice(places)
    way = rng.randrange(4)
    if way == 0:
        node.pop(key)
    elif way == 1:
        other, other_key = rng.choice(places)
        node[key] = json.loads(json.dumps(other[other_key])) if other_key in keys_of(other) else 0
    else:
        node[key] = deepcopy(rng.choice(VALUES))


def keys_of(node: Any) -> Any:
    return node if isinstance(node, dict) else range(len(node))


def changed(data: bytes, rng: Random) -> bytes:
    """Return the bytes with a few of them changed, removed, repeated or truncated."""
    result = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 2, 8])):
        at = rng.randrange(len(result) + 1)
        length = rng.choice([1, 1, 2, 8, 100])
        match rng.randrange(5):
            case 0:
                del result[at : at + length]
            case 1:
                result[at:at] = rng.randbytes(length)
            case 2:
                result[at : at + length] = rng.randbytes(min(length, len(result) - at))
            case 3:
                result[at:at] = result[at : at + length]
            case 4 if length == 100:
                del result[at:]
            case _:
                continue
    return bytes(result)


def check(path: Path, rng: Random) -> bool:
    """Reads the file and encodes texts. Whether it was read."""
    try:
        tokenizer = Tokenizer.load(str(path))
        texts = [random_text(rng, TOKENS) for _ in range(3)]
        options = EncodingOptions(columns=["offset_mapping"])
        encoded = tokenizer.encode_table(texts, options=options)
        for row in encoded.table["input_ids"].to_pylist():
            tokenizer.decode(row)
    except WordpieceError as error:
        message = str(error)
        assert message
        assert "\n" not in message, message
        return False
    return True


def check_files(made: dict[str, bytes], directory: Path, rng: Random) -> bool:
    """Writes files, changed in their bytes, and checks them. Whether they were read."""
    for path in directory.iterdir():
        path.unlink()
    for name, data in made.items():
        (directory / name).write_bytes(changed(data, rng) if rng.random() < 0.3 else data)
    name = next(iter(made))
    return check(directory if len(made) > 1 else directory / name, rng)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    end, number, read = time.monotonic() + given.seconds, 0, 0
    with tempfile.TemporaryDirectory() as directory:
        while time.monotonic() < end:
            rng = Random(f"{given.seed} {number}")
            try:
                read += check_files(files(rng), Path(directory), rng)
            except BaseException:
                print(f"seed {given.seed}, file {number}", file=sys.stderr)
                raise
            number += 1
    print(f"{number:,} files: {read:,} read, {number - read:,} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
