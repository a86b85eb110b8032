"""`tokenizer_config.json` and `special_tokens_map.json`, which `transformers` reads next to a
`tokenizer.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from wordpiece_core.errors import InputError, opt, shown
from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import ROLES, SPECIAL_TOKENS
from wordpiece_core.text_parts import GPT2
from wordpiece_core.tokenizer.formats.configured_tokens import token_content
from wordpiece_core.tokenizer.formats.json_text import Json
from wordpiece_core.tokenizer.formats.tokenizer_json_reading import check_added_token
from wordpiece_core.tokenizer.models import AddedToken, Layout, WordPiece
from wordpiece_core.tokenizer.spec import ROLE_NAMES, TokenizerSpec
from wordpiece_core.tokenizer.words import AS_IT_IS

# Text options by their names in a tokenizer_config.json.
CONFIG_TEXT = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
MORE_TOKENS = (
    "additional_special_tokens",
    "extra_special_tokens",
    "model_specific_special_tokens",
)


CHAT_TEMPLATE = "chat_template.jinja"
UNCHANGED = (
    *("chat_template", "padding_side", "truncation_side", "clean_up_tokenization_spaces"),
    *("model_input_names", *MORE_TOKENS),
)
"""Keys of a tokenizer_config.json that are written unchanged."""


def with_unchanged(spec: TokenizerSpec, config: Json, chat_template: str | None) -> TokenizerSpec:
    """Return the specification with the keys of a `tokenizer_config.json` that are written again:
    the chat template, the sides, and tokens with other roles than `ROLE_NAMES`. A
    `chat_template.jinja` wins over the key."""
    kept = {name: config[name] for name in UNCHANGED if name in config}
    others = {
        name: token
        for name, token in config.items()
        if name.endswith("_token") and name not in ROLE_NAMES and isinstance(token, str)
    }
    template = {} if chat_template is None else {"chat_template": chat_template}
    usual = config_files(spec)["tokenizer_config.json"]
    found = {n: v for n, v in (kept | others | template).items() if usual.get(n, ...) != v}
    return replace(spec, config=found or None)


def config_files(spec: TokenizerSpec) -> dict[str, dict[str, Any]]:
    """Return both files by name. They name only added tokens, because `transformers` adds all
    tokens in them."""
    special = {*spec.special_tokens}
    roles = {name: token for name, token in spec.roles.items() if token in special}
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    if spec.model_max_length is not None:
        config["model_max_length"] = spec.model_max_length
    if spec.text != AS_IT_IS and spec.text.pre_tokenizer != GPT2:
        config |= {name: getattr(spec.text, option) for name, option in CONFIG_TEXT.items()}
    config["clean_up_tokenization_spaces"] = isinstance(spec.model, WordPiece)
    pair = spec.post_processor.pair if spec.post_processor is not None else Layout()
    has_types = bool(pair.added) and any((pair.types[1], *(kind for _, kind in pair.added)))
    types = ["token_type_ids"] if has_types else []
    config["model_input_names"] = ["input_ids", *types, "attention_mask"]
    config |= roles | {**(spec.config or {})}
    if chat_template(spec) is not None:
        del config["chat_template"]
    return {"tokenizer_config.json": config, "special_tokens_map.json": roles}


def chat_template(spec: TokenizerSpec) -> str | None:
    """Return the text of `chat_template.jinja`. Several templates are in tokenizer_config.json."""
    template = (spec.config or {}).get("chat_template")
    return template if isinstance(template, str) else None


def with_config(spec: TokenizerSpec, config: Json, path: str) -> TokenizerSpec:
    """Return the specification of a vocabulary with the config file next to it.

    Raises InputError for a token that is not in the vocabulary, or whose flags change its search.
    """
    _check_split(config, path)
    roles = _roles_of_config(spec, config, path)
    named = [] if roles is None else [*roles.values()]
    if roles is not None and config.get("unk_token") is not None:
        named.append(_checked_content(config["unk_token"], path))
    known, ids = {*spec.special_tokens}, {token: i for i, token in enumerate(spec.vocab)}
    more = [t for t in dict.fromkeys([*_more_tokens(config, path), *named]) if t not in known]
    unknown = [token for token in more if token not in ids]
    if unknown:
        raise InputError(f"{path}: special token {unknown[0]!r} is not in the vocabulary; add it")
    added = [*spec.added_tokens, *map(AddedToken, more)]
    text = _text_of_config(spec.text, config, path)
    return replace(
        spec if text == spec.text else spec.with_text(text),
        added_tokens=tuple(sorted(added, key=lambda token: ids[token.content])),
        roles=spec.roles if roles is None else roles,
        model_max_length=_max_length(config) or spec.model_max_length,
    )


def check_text(spec: TokenizerSpec, config: Json, path: str) -> None:
    """Raise InputError if a config file has other text options than the `tokenizer.json` next to
    it. For a PreTrainedTokenizerFast `transformers` ignores them."""
    if config.get("tokenizer_class") == "PreTrainedTokenizerFast" or spec.library is not None:
        return
    if _text_of_config(spec.text, config, path).for_kernel() != spec.text.for_kernel():
        raise InputError(
            f"{path}: contradicts tokenizer.json in how text is handled; fix one of them"
        )


def with_roles(spec: TokenizerSpec, config: Json, path: str) -> TokenizerSpec:
    """Return the specification of a `tokenizer.json` with the roles of tokens in a config file.
    Everything else is as in the `tokenizer.json`."""
    _check_split(config, path)
    length = _max_length(config) or spec.model_max_length
    spec, known = replace(spec, model_max_length=length), {*spec.vocab}
    said = {n: token_content(config[n], path) for n in ROLE_NAMES if config.get(n) is not None}
    said = {name: token for name, token in said.items() if token in known and name != "unk_token"}
    return replace(spec, roles={**spec.roles, **said})


def _max_length(config: Json) -> int | None:
    """Return the maximum number of tokens of the model. `transformers` writes 10^30 for none."""
    length = config.get("model_max_length")
    return length if isinstance(length, int) and 0 < length < 10**9 else None


def _check_split(config: Json, path: str) -> None:
    if config.get("split_special_tokens"):
        raise InputError(
            f"{path}: split_special_tokens is set; remove it, and set"
            f" {opt.special_tokens_in_text} when encoding"
        )


def _roles_of_config(spec: TokenizerSpec, config: Json, path: str) -> Mapping[str, str] | None:
    """Return the roles of a tokenizer with the roles in a config file. The unknown token is the
    token of the model."""
    said = {n: _checked_content(config[n], path) for n in ROLE_NAMES if config.get(n) is not None}
    if isinstance(spec.model, WordPiece):
        for name, token in ROLES.items():
            if said.get(name, token) != token:
                raise InputError(
                    f"{path}: {name} is {said[name]!r}; only {token} is supported here"
                )
        return None
    said.pop("unk_token", None)
    return {**spec.roles, **said}


def _text_of_config(text: TextOptions, config: Json, path: str) -> TextOptions:
    options = text.values()
    if text == AS_IT_IS or text.pre_tokenizer == GPT2:
        return text  # these options do not change other normalizers
    for name, option in CONFIG_TEXT.items():
        value = config.get(name, options[option])
        if not (isinstance(value, bool) or (value is None and option == "strip_accents")):
            raise InputError(f"{path}: {name} is {shown(value)}, not true or false")
        options[option] = value
    return TextOptions(**options)


def _more_tokens(config: Json, path: str) -> Iterator[str]:
    """Yield the special tokens that a config file names, except BERT's five."""
    for name in MORE_TOKENS:
        listed = config.get(name) or []
        tokens = listed.values() if isinstance(listed, dict) else listed
        if not isinstance(listed, dict | list):
            raise InputError(f"{path}: {name} is {shown(listed)}, not a list")
        yield from (_checked_content(token, path) for token in tokens)
    for name, token in config.items():
        is_named = name in ROLE_NAMES or (name.endswith("_token") and isinstance(token, str))
        if is_named and name not in ROLES and token is not None:
            yield _checked_content(token, path)
    decoder = config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise InputError(f"{path}: added_tokens_decoder is {shown(decoder)}, not an object")
    for token in decoder.values():
        content = _checked_content(token, path)
        if content not in SPECIAL_TOKENS:
            yield content


def _checked_content(token: Any, path: str) -> str:
    """Return the string of a special token. InputError if its flags change how it is found."""
    if not isinstance(token, str):
        check_added_token(token, path)
    return token_content(token, path)
