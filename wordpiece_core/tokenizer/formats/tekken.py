"""Mistral's `tekken.json`: the ranks of byte tokens, with their regular expression and special
tokens."""

from __future__ import annotations

import binascii
from base64 import b64decode

from wordpiece_core.errors import InputError, shown
from wordpiece_core.tokenizer.formats.json_text import Json, get
from wordpiece_core.tokenizer.formats.tiktoken_ranks import Encoding, spec_of_tokens
from wordpiece_core.tokenizer.models import MOST_IDS
from wordpiece_core.tokenizer.spec import TokenizerSpec

TEKKEN = "tekken.json"
# Special tokens of files without a list of them.
_FIRST = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]"),
    *("[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "[TOOL_CONTENT]",
)


def is_tekken(value: Json) -> bool:
    """Return True for the JSON of a `tekken.json`."""
    return isinstance(value.get("vocab"), list) and isinstance(value.get("config"), dict)


def read_tekken(value: Json, path: str) -> TokenizerSpec:
    """Return the tokenizer with the ids of `mistral_common`: special tokens first, then as many
    tokens as fit into the vocabulary. Raises InputError, which names `path`, for an incomplete
    file."""
    config = get(value, "config", dict, path)
    size = get(config, "default_vocab_size", int, path)
    count = get(config, "default_num_special_tokens", int, path)
    vocab = get(value, "vocab", list, path)
    if not 0 <= count < size <= count + len(vocab) or size > MOST_IDS:
        raise InputError(
            f"{path}: default_vocab_size is {size}, with {count} special and {len(vocab)} other"
            " tokens; the file may be truncated"
        )
    tokens = [b""] * count
    for rank, token in enumerate(vocab[: size - count]):
        try:
            if token["rank"] != rank:
                raise ValueError
            tokens.append(b64decode(token["token_bytes"], validate=True))
        except (TypeError, KeyError, ValueError, binascii.Error):
            raise InputError(f"{path}: vocab[{rank}] is {shown(token)}, not token {rank}") from None
    if len({*tokens[count:]}) != size - count or b"" in tokens[count:]:
        raise InputError(f"{path}: a token is empty or occurs twice")
    return spec_of_tokens(tokens, encoding_of_tekken(value, path), path)


def encoding_of_tekken(value: Json, path: str) -> Encoding:
    """Return the regular expression and the special tokens of a `tekken.json`. Raises InputError,
    which names `path`, for a file that is not complete."""
    config = get(value, "config", dict, path)
    count = get(config, "default_num_special_tokens", int, path)
    return Encoding(get(config, "pattern", str, path), _special(value, count, path))


def _special(value: Json, count: int, path: str) -> dict[str, int]:
    """Return the special tokens and their ids."""
    usual = [{"rank": rank, "token_str": token} for rank, token in enumerate(_FIRST)]
    listed = get(value, "special_tokens", list, path, usual)
    names = {number: f"<SPECIAL_{number}>" for number in range(count)}
    for token in listed:
        try:
            rank, name = range(count).index(token["rank"]), token["token_str"]
            if not isinstance(name, str):
                raise TypeError
            names[rank] = name
        except (TypeError, KeyError, ValueError):
            raise InputError(
                f"{path}: special token {shown(token)} is not one of the first {count} ids"
            ) from None
    special = {token: number for number, token in names.items()}
    if len(special) != count:
        raise InputError(f"{path}: two special tokens are the same")
    return special
