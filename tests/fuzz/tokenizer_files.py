"""Random changes of tokenizer files: each is read, or refused with one line that names the file.

    python -m tests.fuzz.tokenizer_files --seconds 60

Files of `tokenizers`, `sentencepiece` and `tiktoken` are changed in their bytes and in
their values. The program ends with status 1 at any other exception, and keeps that file.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from random import Random
from typing import Any

from tests.parity.random_tokenizers import random_text, random_tokenizer
from tests.wordpiece_core.sentencepiece_models import model
from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core.errors import WordpieceError

VALUES = [None, True, -1, 0, 2**31, 2**63, 2**64, 1e400, 0.5, "", "Ġ", "\ud800", [], {}, [[]], "▁"]
TOKENS = {"model": {"vocab": ["a", "ab", "▁b"]}, "added_tokens": [{"content": "</s>"}]}
"""What the texts are made of, as in a `tokenizer.json`."""

RULES = ("identity", "nfkc", "nmt_nfkc", "nmt_nfkc_cf")


def files(rng: Random) -> tuple[str, bytes]:
    """The name and the content of a tokenizer file that is right."""
    kind = rng.choice(["tokenizer.json"] * 4 + ["tokenizer.model", "x.tiktoken", "vocab.txt"])
    if kind == "tokenizer.json":
        tokenizer = json.loads(json.dumps(random_tokenizer(rng)))  # it shares its parts with others
        for _ in range(rng.choice([0, 1, 1, 2, 4])):
            change(tokenizer, rng)
        return kind, json.dumps(tokenizer).encode()
    if kind == "tokenizer.model":
        return kind, model(rng.choice(RULES))
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b" a", b"\n\n"]
    if kind == "x.tiktoken":
        lines = (f"{base64.b64encode(token).decode()} {i}" for i, token in enumerate(tokens))
        return kind, "\n".join(lines).encode()
    return kind, b"\n".join([b"[UNK]", b"[CLS]", b"[SEP]", b"[PAD]", b"a", b"##b", "é".encode()])


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
    node, key = rng.choice(places)
    way = rng.randrange(4)
    if way == 0:
        node.pop(key)
    elif way == 1:
        other, other_key = rng.choice(places)
        node[key] = json.loads(json.dumps(other[other_key])) if other_key in keys_of(other) else 0
    else:
        node[key] = rng.choice(VALUES)


def keys_of(node: Any) -> Any:
    return node if isinstance(node, dict) else range(len(node))


def changed(data: bytes, rng: Random) -> bytes:
    """The bytes with a few of them changed, taken out, doubled or cut off."""
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
        encoded = tokenizer.encode_batch(texts, options=options)
        for row in encoded.table["input_ids"].to_pylist():
            tokenizer.decode(row)
    except WordpieceError as error:
        message = str(error)
        assert message
        assert "\n" not in message, message
        return False
    return True


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
            name, data = files(rng)
            path = Path(directory, name)
            path.write_bytes(changed(data, rng) if rng.random() < 0.6 else data)
            try:
                read += check(path, rng)
            except BaseException:
                kept = Path(tempfile.mkdtemp()) / name
                kept.write_bytes(path.read_bytes())
                print(f"seed {given.seed}, file {number}: {kept}", file=sys.stderr)
                raise
            number += 1
    print(f"{number:,} files: {read:,} read, {number - read:,} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
