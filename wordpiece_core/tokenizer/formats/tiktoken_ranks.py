"""Files of ranks of tiktoken: each line has the bytes of a token in base64, and its rank, which is
its id.

These files have neither the regular expression of pieces nor the special tokens. The libraries that
read them know both by the name of the encoding, which is often the name of the file:
`cl100k_base.tiktoken`. A `tekken.json` has both (`tekken`).
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError, opt, shown
from wordpiece_core.options import ENCODING_NAMES, END_OF_TEXT
from wordpiece_core.symbols import BYTE_CHARACTERS
from wordpiece_core.text_parts import (
    CL100K_PATTERN,
    GPT2_PATTERN,
    LLAMA3_PATTERN,
    O200K_PATTERN,
    QWEN2_PATTERN,
    split,
)
from wordpiece_core.tokenizer.models import MOST_IDS, AddedToken, Bpe
from wordpiece_core.tokenizer.parts import byte_level
from wordpiece_core.tokenizer.spec import TokenizerSpec, usual_roles
from wordpiece_core.tokenizer.vocabulary import check_vocabulary
from wordpiece_core.tokenizer.words import check_words, words_of

ENDING = ".tiktoken"
RANK_NAMES = ("qwen.tiktoken", "tokenizer.model")  # names of files in directories
END_OF_PROMPT = "<|endofprompt|>"
_LINE = re.compile(rb"([A-Za-z0-9+/]+={0,2}) ([0-9]{1,9})")


class Encoding(NamedTuple):
    """The parts of an encoding that its file lacks.

    Args:
        pattern: The regular expression of pieces.
        special_tokens: The special tokens and their ids.
        normalizer: The Unicode normalization of texts, if there is one.
    """

    pattern: str
    special_tokens: Mapping[str, int]
    normalizer: str | None = None


_FILL_IN = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")


def _reserved(special_tokens: dict[str, int], first: int, end: int) -> dict[str, int]:
    """Return special tokens, with a reserved token for each other id."""
    free = {*range(first, end)} - {*special_tokens.values()}
    return special_tokens | {f"<|reserved_{number}|>": number for number in sorted(free)}


def _numbered(tokens: Sequence[str], first: int) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens, first)}


def _llama3() -> dict[str, int]:
    reserved = [f"<|reserved_special_token_{number}|>" for number in range(246)]
    tokens = ["<|begin_of_text|>", "<|end_of_text|>", *reserved[:2]]
    tokens += ["<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>"]
    tokens += ["<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>", "<|image|>"]
    return _numbered([*tokens, *reserved[2:]], 128_000)


_HARMONY = {
    **{"<|startoftext|>": 199_998, END_OF_TEXT: 199_999, "<|return|>": 200_002},
    **{"<|constrain|>": 200_003, "<|channel|>": 200_005, "<|start|>": 200_006, "<|end|>": 200_007},
    **{"<|message|>": 200_008, "<|call|>": 200_012, END_OF_PROMPT: 200_018},
}
_CHAT = (END_OF_TEXT, "<|im_start|>", "<|im_end|>", *(f"<|extra_{n}|>" for n in range(205)))
_OF_NAMES = (
    # tiktoken has faster forms of most patterns, with the same pieces.
    Encoding(GPT2_PATTERN, {END_OF_TEXT: 50_256}),
    Encoding(GPT2_PATTERN, {END_OF_TEXT: 50_256}),
    Encoding(
        CL100K_PATTERN,
        {END_OF_TEXT: 100_257, **_numbered(_FILL_IN, 100_258), END_OF_PROMPT: 100_276},
    ),
    Encoding(O200K_PATTERN, {END_OF_TEXT: 199_999, END_OF_PROMPT: 200_018}),
    # In tiktoken, 200018 is also the id of <|reserved_200018|>. Here an id has one token.
    Encoding(O200K_PATTERN, _reserved(_HARMONY, 200_000, 201_088)),
    Encoding(LLAMA3_PATTERN, _llama3()),
    Encoding(QWEN2_PATTERN, _numbered(_CHAT, 151_643), "NFC"),
)
ENCODINGS = dict(zip(ENCODING_NAMES, _OF_NAMES, strict=True))
KNOWN_FILES = {
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": "llama3",
}
"""Encodings of files that are published as `tokenizer.model`, by their SHA-256."""


def is_ranks(data: bytes) -> bool:
    """Return True for the bytes of a file of ranks: its first lines have base64 and a number.

    >>> is_ranks(b"IQ== 0\\nIg== 1\\n"), is_ranks(b"[UNK]\\nthe\\n")
    (True, False)
    """
    lines = [line for line in data[:4096].split(b"\n")[:8] if line.strip()]
    return len(lines) > 0 and all(_LINE.fullmatch(line.rstrip(b"\r")) for line in lines[:4])


def read_ranks(data: bytes, name: str, path: str) -> TokenizerSpec:
    """Return the tokenizer of an encoding, with the ids of the library that reads its file.

    Args:
        data: The bytes of the file.
        name: Name of the encoding, or of the file.
        path: The path in errors.

    Raises OptionError for an unknown encoding, and InputError for a line that is not a token and
    its rank.
    """
    encoding, ranks = encoding_of(data, name, path), ranks_of(data, path)
    tokens = [b""] * (1 + max(ranks.values()))
    for token, rank in ranks.items():
        tokens[rank] = token
    return spec_of_tokens(tokens, encoding, path)


def encoding_of(data: bytes, name: str, path: str) -> Encoding:
    """Return the encoding of a file of ranks by its name, or by the digest of a known file.
    Arguments and errors: see `read_ranks`."""
    name = name.removesuffix(ENDING)
    if name not in ENCODINGS:
        name = KNOWN_FILES.get(sha256(data).hexdigest(), name)
    encoding = ENCODINGS.get(name)
    if encoding is None:
        raise OptionError(
            f"{path}: a file of tiktoken has ranks, but neither the regular expression nor the"
            f" special tokens; name its encoding with {opt.encoding}: {', '.join(ENCODINGS)}"
        )
    return encoding


def spec_of_tokens(tokens: Sequence[bytes], encoding: Encoding, path: str) -> TokenizerSpec:
    """Return the tokenizer of the tokens of an encoding by id, which is also the rank; b"" for an
    id without a token. Raises InputError, which names `path`, for an id with two tokens, and for a
    byte without a token."""
    special = {number: token for token, number in encoding.special_tokens.items()}
    tokens = [*tokens, *[b""] * (1 + max(special, default=-1) - len(tokens))]
    taken = [number for number in special if tokens[number]]
    if taken:
        raise InputError(
            f"{path}: {min(taken)} is the id of both a token and {special[min(taken)]}"
        )
    missing = {*range(256)} - {token[0] for token in tokens if len(token) == 1}
    if missing:
        raise InputError(f"{path}: no token for byte {min(missing)}; the file may be truncated")
    merges = _kernel.merges_of_ranks(list(tokens), range(len(tokens)))
    names = ["".join(BYTE_CHARACTERS[byte] for byte in token) for token in tokens]
    # Names of ids without a token have a space, which byte tokens never have.
    vocab = [token or special.get(number, f"unused {number}") for number, token in enumerate(names)]
    check_vocabulary(vocab, path, unk=None)
    form = encoding.normalizer
    spec = TokenizerSpec(
        vocab,
        Bpe(merges, ignore_merges=True),
        ({"type": form},) if form else (),
        (split(encoding.pattern), byte_level(add_prefix_space=False, use_regex=False)),
        decoder=byte_level(add_prefix_space=False, use_regex=True),
        added_tokens=tuple(AddedToken(token) for _, token in sorted(special.items())),
        roles=usual_roles({*special.values()}),
    )
    check_words(words_of(spec, path), path)
    return spec


def ranks_of(data: bytes, path: str) -> dict[bytes, int]:
    """Return the rank of each token. Raises InputError for a line that is not a token and its
    rank."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.rstrip(b"\r"))
        try:
            token, rank = b64decode(match[1], validate=True), int(match[2])  # type: ignore[index]
        except (TypeError, binascii.Error):
            said = shown(line.decode(errors="replace"))
            raise InputError(
                f"{path} line {number}: {said} is not a token in base64 and its rank"
            ) from None
        if rank >= MOST_IDS:
            raise InputError(f"{path} line {number}: rank {rank:,} is not below {MOST_IDS:,}")
        if not token or ranks.setdefault(token, rank) != rank:
            raise InputError(f"{path} line {number}: token {token!r} is empty or occurs twice")
    if len({*ranks.values()}) != len(ranks):
        raise InputError(f"{path}: two tokens have the same rank")
    return ranks
