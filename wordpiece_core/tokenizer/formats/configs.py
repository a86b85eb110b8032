"""`tokenizer_config.json` and `special_tokens_map.json`: what `transformers` has beside the
tokenizer itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from wordpiece_core.errors import InputError, shown
from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import ROLES, SPECIAL_TOKENS
from wordpiece_core.text_parts import GPT2
from wordpiece_core.tokenizer.files import AS_IT_IS, ROLE_NAMES, TokenizerSpec
from wordpiece_core.tokenizer.formats.json_text import Json
from wordpiece_core.tokenizer.formats.tokenizer_json_reading import check_added_token
from wordpiece_core.tokenizer.models import Layout

# The text options in a tokenizer_config.json, by the names they have there.
CONFIG_TEXT = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
MORE_TOKENS = ("additional_special_tokens", "extra_special_tokens")


def config_files(spec: TokenizerSpec) -> dict[str, dict[str, Any]]:
    """Both files, by name. They name only special tokens, because `transformers` makes those that
    they name special."""
    special = {*spec.special_tokens}
    roles = {name: token for name, token in spec.tokens_by_role.items() if token in special}
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    if spec.model_max_length is not None:
        config["model_max_length"] = spec.model_max_length
    if spec.text != AS_IT_IS and spec.text.pre_tokenizer != GPT2:
        config |= {name: getattr(spec.text, option) for name, option in CONFIG_TEXT.items()}
    config["clean_up_tokenization_spaces"] = spec.model is None
    pair = spec.around.pair if spec.around is not None else Layout()
    has_types = bool(pair.added) and any((pair.types[1], *(kind for _, kind in pair.added)))
    types = ["token_type_ids"] if has_types else []
    config["model_input_names"] = ["input_ids", *types, "attention_mask"]
    config |= roles
    return {"tokenizer_config.json": config, "special_tokens_map.json": roles}


def with_config(spec: TokenizerSpec, config: Json, path: str, *, fixed: bool) -> TokenizerSpec:
    """The spec, changed by what a config file beside the vocabulary says. If the spec is `fixed` by
    a tokenizer.json, it is not changed: InputError if the file contradicts it."""
    _check_split(config, path)
    if fixed and _has_other_roles(spec, config, path):
        spec = spec.with_roles(spec.tokens_by_role)
    roles = _roles_of_config(spec, config, path, fixed)
    # The unknown token of the model is special only if a file names it.
    is_named = not fixed or config.get("unk_token") is not None
    named = [t for name, t in (roles or {}).items() if is_named or name != "unk_token"]
    more = dict.fromkeys([*spec.more_special_tokens, *_more_tokens(config, path, fixed), *named])
    unknown = [token for token in more if token not in set(spec.vocab)]
    if unknown:
        raise InputError(f"{path}: special token {unknown[0]!r} is not in the vocabulary; add it")
    if roles is not None:  # as tokenizer.json lists them
        more = dict.fromkeys(sorted(more, key=list(spec.vocab).index))
    spec = replace(spec, model_max_length=_max_length(config) or spec.model_max_length)
    text = _text_of_config(spec.text, config, path)
    changed = replace(spec, text=text, roles=roles, more_special_tokens=tuple(more))
    if not fixed:
        return changed
    # For that class `transformers` reads the special tokens here, but not how text is handled.
    heard = config.get("tokenizer_class") != "PreTrainedTokenizerFast"
    if heard and changed.text.for_kernel() != spec.text.for_kernel():
        raise InputError(f"{path}: handles text otherwise than tokenizer.json; fix one of them")
    if {*changed.special_tokens} != {*spec.special_tokens}:
        raise InputError(f"{path}: has other special tokens than tokenizer.json; fix one of them")
    return replace(spec, roles=roles)


def with_roles(spec: TokenizerSpec, config: Json, path: str) -> TokenizerSpec:
    """The spec of a tokenizer that the library `tokenizers` runs, with the roles of tokens that a
    config file says. All else is as in its tokenizer.json."""
    _check_split(config, path)
    known = {*spec.vocab}
    said = {n: _content(config[n], path, True) for n in ROLE_NAMES if config.get(n) is not None}
    said = {name: token for name, token in said.items() if token in known and name != "unk_token"}
    length = _max_length(config) or spec.model_max_length
    return replace(spec, roles={**(spec.roles or {}), **said}, model_max_length=length)


def _max_length(config: Json) -> int | None:
    """The maximum number of tokens of the model. `transformers` writes 10^30 for none."""
    length = config.get("model_max_length")
    return length if isinstance(length, int) and 0 < length < 10**9 else None


def _check_split(config: Json, path: str) -> None:
    if config.get("split_special_tokens"):
        raise InputError(
            f"{path}: split_special_tokens is set; leave it out, and give it when encoding"
        )


def _roles_of_config(
    spec: TokenizerSpec, config: Json, path: str, fixed: bool
) -> Mapping[str, str] | None:
    """The roles of a tokenizer, with those that a config file says. What is unknown is said by the
    model alone."""
    said = {
        name: _content(config[name], path, fixed)
        for name in ROLE_NAMES
        if config.get(name) is not None
    }
    if spec.roles is None:
        for name, token in ROLES.items():
            if said.get(name, token) != token:
                raise InputError(f"{path}: {name} is {said[name]!r}; only {token} is known here")
        return None
    said.pop("unk_token", None)
    return {**spec.roles, **said}


def _has_other_roles(spec: TokenizerSpec, config: Json, path: str) -> bool:
    """True if a file gives one of BERT's roles to another special token. Its unknown token is fixed
    by the model, and [CLS] and [SEP] by what is put around texts."""
    if spec.roles is not None:
        return False
    said = (
        (name, _content(config[name], path, True))
        for name in ROLES
        if config.get(name) is not None and name != "unk_token"
    )
    return any(token != ROLES[name] and token in spec.special_tokens for name, token in said)


def _text_of_config(text: TextOptions, config: Json, path: str) -> TextOptions:
    options = dict(vars(text))
    if text == AS_IT_IS or text.pre_tokenizer == GPT2:
        return text  # the model's own way, which these options do not change
    for name, option in CONFIG_TEXT.items():
        value = config.get(name, options[option])
        if not (isinstance(value, bool) or (value is None and option == "strip_accents")):
            raise InputError(f"{path}: {name} is {shown(value)}, not true or false")
        options[option] = value
    return TextOptions(**options)


def _more_tokens(config: Json, path: str, fixed: bool) -> Iterator[str]:
    """The special tokens beside BERT's five that a config file names."""
    for name in MORE_TOKENS:
        listed = config.get(name) or []
        tokens = listed.values() if isinstance(listed, dict) else listed
        if not isinstance(listed, dict | list):
            raise InputError(f"{path}: {name} is {shown(listed)}, not a list")
        yield from (_content(token, path, fixed) for token in tokens)
    for name in ROLE_NAMES:
        if name not in ROLES and config.get(name) is not None:
            yield _content(config[name], path, fixed)
    decoder = config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise InputError(f"{path}: added_tokens_decoder is {shown(decoder)}, not an object")
    for token in decoder.values():
        content = _content(token, path, fixed)
        if content not in SPECIAL_TOKENS:
            yield content


def _content(token: Any, path: str, fixed: bool) -> str:
    """The string of a special token, which may be written as an object. Unless a tokenizer.json has
    `fixed` how it is searched for, the object is checked."""
    if isinstance(token, str):
        return token
    if not (fixed and isinstance(token, dict) and isinstance(token.get("content"), str)):
        check_added_token(token, path)
    return str(token["content"])
