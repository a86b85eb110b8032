"""Files of tiktoken: on each line the bytes of a token, in base64, and its rank, which is its id.

Such a file has neither the regular expression that splits texts into pieces nor the special tokens.
`tiktoken` has them by the name of the encoding, which is the name of the file here, too:
`cl100k_base.tiktoken`.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import NamedTuple

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, shown
from wordpiece_core.reference.marks import BYTE_CHARACTERS
from wordpiece_core.tokenizer.formats.json_text import Json
from wordpiece_core.tokenizer.formats.tokenizer_json import ADDED_TOKEN_FLAGS
from wordpiece_core.tokenizer.formats.tokenizer_json_parts import GPT2_CUT

ENDING = ".tiktoken"
END_OF_TEXT, END_OF_PROMPT = "<|endoftext|>", "<|endofprompt|>"
_LINE = re.compile(r"([A-Za-z0-9+/]+={0,2}) ([0-9]{1,9})")


class Encoding(NamedTuple):
    """What `tiktoken` knows of an encoding by its name.

    Args:
        pattern: The regular expression of pieces.
        special_tokens: The special tokens and their ids.
    """

    pattern: str
    special_tokens: dict[str, int]


# Without the last `+` of tiktoken's `{1,3}+`, which in a tokenizer.json is a second repetition.
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
_FILL_IN = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")


def _reserved(special_tokens: dict[str, int], first: int, end: int) -> dict[str, int]:
    """Special tokens, with a reserved one for each other id."""
    free = {*range(first, end)} - {*special_tokens.values()}
    return special_tokens | {f"<|reserved_{number}|>": number for number in sorted(free)}


_HARMONY = {
    **{"<|startoftext|>": 199_998, END_OF_TEXT: 199_999, "<|return|>": 200_002},
    **{"<|constrain|>": 200_003, "<|channel|>": 200_005, "<|start|>": 200_006, "<|end|>": 200_007},
    **{"<|message|>": 200_008, "<|call|>": 200_012, END_OF_PROMPT: 200_018},
}
ENCODINGS = {
    # Of GPT-2's expression tiktoken has a faster one, which gives the same pieces.
    "r50k_base": Encoding(GPT2_CUT, {END_OF_TEXT: 50_256}),
    "p50k_base": Encoding(GPT2_CUT, {END_OF_TEXT: 50_256}),
    "cl100k_base": Encoding(
        _CL100K,
        {
            END_OF_TEXT: 100_257,
            **{token: number for number, token in enumerate(_FILL_IN, 100_258)},
            END_OF_PROMPT: 100_276,
        },
    ),
    "o200k_base": Encoding(_O200K, {END_OF_TEXT: 199_999, END_OF_PROMPT: 200_018}),
    # In tiktoken, 200018 is also the id of <|reserved_200018|>. Here an id has one token.
    "o200k_harmony": Encoding(_O200K, _reserved(_HARMONY, 200_000, 201_088)),
}


def is_ranks(text: str) -> bool:
    """Whether a text is the file of an encoding: its first lines have base64 and a rank.

    >>> is_ranks("IQ== 0\\nIg== 1\\n"), is_ranks("[UNK]\\nthe\\n")
    (True, False)
    """
    lines = [line for line in text[:4096].split("\n")[:8] if line.strip()]
    return len(lines) > 0 and all(_LINE.fullmatch(line.rstrip("\r")) for line in lines[:4])


def tokenizer_json_of_ranks(text: str, name: str, path: str) -> Json:
    """The `tokenizer.json` of an encoding, with the ids of `tiktoken`.

    Args:
        text: What its file holds.
        name: The name of the file.
        path: What errors name.

    Raises InputError for an unknown name, and for a line that is not a token and its rank.
    """
    encoding = ENCODINGS.get(name.removesuffix(ENDING))
    if encoding is None:
        raise InputError(
            f"{path}: holds ranks of tiktoken, but is not named after an encoding; rename it to one"
            f" of {', '.join(name + ENDING for name in ENCODINGS)}, or give a tokenizer.json"
        )
    ranks = _ranks(text, path)
    size = 1 + max([*ranks.values(), *encoding.special_tokens.values()])
    tokens = [b""] * size
    for token, rank in ranks.items():
        tokens[rank] = token
    names = ["".join(BYTE_CHARACTERS[byte] for byte in token) for token in tokens]
    special = {number: token for token, number in encoding.special_tokens.items()}
    taken = special.keys() & {*ranks.values()}
    if taken:
        raise InputError(
            f"{path}: rank {min(taken)} is the id of {special[min(taken)]} in the encoding {name}"
        )
    # Ids that no token has: their names have a space, which no text of bytes has here.
    vocab = {
        token or special.get(number, f"unused {number}"): number
        for number, token in enumerate(names)
    }
    split = {"type": "Split", "pattern": {"Regex": encoding.pattern}}
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": number, "content": token, "special": True} | ADDED_TOKEN_FLAGS
            for number, token in sorted(special.items())
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                split | {"behavior": "Isolated", "invert": False},
                by_bytes | {"use_regex": False},
            ],
        },
        "post_processor": None,
        "decoder": by_bytes | {"use_regex": True},
        "model": {
            "type": "BPE",
            "ignore_merges": True,
            "vocab": vocab,
            "merges": [
                [names[left], names[right]] for left, right in _kernel.merges_of_ranks(tokens)
            ],
        },
    }


def _ranks(text: str, path: str) -> dict[bytes, int]:
    """The rank of each token."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.rstrip("\r"))
        try:
            token, rank = b64decode(match[1], validate=True), int(match[2])  # type: ignore[index]
        except (TypeError, binascii.Error):
            raise InputError(
                f"{path} line {number}: {shown(line)} is not a token in base64 and its rank"
            ) from None
        if not token or ranks.setdefault(token, rank) != rank:
            raise InputError(f"{path} line {number}: token {token!r} is empty or there twice")
    if len({*ranks.values()}) != len(ranks):
        raise InputError(f"{path}: two tokens have one rank")
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise InputError(f"{path}: no token for the byte {missing[0]}; the file may be truncated")
    return ranks
