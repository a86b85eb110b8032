"""Added tokens of a `tokenizer.json` after `AutoTokenizer` has read the config files next to it.

`transformers` adds the tokens that `tokenizer_config.json`, `special_tokens_map.json` and
`added_tokens.json` name. A token that is in `tokenizer.json` already gets the flags of the config.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from wordpiece_core.errors import InputError, shown
from wordpiece_core.tokenizer.formats.json_text import Json, get

CONFIG, MAP, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
DECODER = "added_tokens_decoder"
EXTRA, ADDITIONAL = "extra_special_tokens", "additional_special_tokens"


def with_configured_tokens(value: Json, files: Mapping[str, Json | None], directory: str) -> Json:
    """Return the JSON of a `tokenizer.json` with the added tokens that `AutoTokenizer` gives it.

    Args:
        value: The JSON of the file.
        files: The JSON of the config files by name; None for a file that does not exist.
        directory: The path in errors.

    Raises InputError for a config that `transformers` cannot read.
    """
    model, listed = value.get("model"), value.get("added_tokens", [])
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if not (isinstance(vocab, dict | list) and isinstance(listed, list)):
        return value  # its reader names the fault
    if not all(map(_is_added_token, listed)):
        return value
    if isinstance(vocab, list):
        vocab = {str(row[0]): i for i, row in enumerate(vocab) if isinstance(row, list) and row}
    found = {token["content"]: token for token in listed}
    last = max([len(vocab) - 1, *(token["id"] for token in listed)])
    for token in _tokens_to_add(files, listed, directory):
        content, before = token["content"], found.get(token["content"])
        number = vocab.get(content) if before is None else before["id"]
        if number is None:
            number = last = last + 1
        was_special = before is not None and before.get("special", True)
        found[content] = {"id": number, **token, "special": token["special"] or was_special}
    found.pop("", None)
    return {**value, "added_tokens": list(found.values())}


def role_tokens(files: Mapping[str, Json | None]) -> Json:
    """Return what the config files say apart from the added tokens. `special_tokens_map.json` wins
    over `tokenizer_config.json`, and is ignored next to an `added_tokens_decoder`."""
    config = files.get(CONFIG) or {}
    return config if DECODER in config else config | (files.get(MAP) or {})


def token_content(token: Any, place: str) -> str:
    """Return the string of a token, which may be an object with flags."""
    content = token.get("content") if isinstance(token, dict) else token
    if not isinstance(content, str):
        raise InputError(f"{place}: {shown(token)} is not a special token")
    return content


def _is_added_token(token: Any) -> bool:
    return (
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and type(token.get("id")) is int
        and all(isinstance(token.get(name, False), bool) for name in FLAGS)
    )


def _tokens_to_add(
    files: Mapping[str, Json | None], listed: list[Json], directory: str
) -> Iterator[Json]:
    """Yield the tokens in the order in which `transformers` adds them."""
    config, said = files.get(CONFIG) or {}, role_tokens(files)
    place = f"{directory}/{CONFIG}"
    own, others = _named(said, config, place)
    named = {token_content(token, place) for token in (*own, *others)}
    extra = _extra(config, {} if DECODER in config else files.get(MAP) or {}, place)
    if DECODER in config:
        numbered = _numbered(config[DECODER], place)
    else:
        special = named | {token_content(token, place) for token in extra}
        numbered = _of_added_json(files.get(ADDED) or {}, special, f"{directory}/{ADDED}")
        numbered |= {token["id"]: token for token in listed}
    for number in sorted(numbered):
        yield _flags(numbered[number], named, place)
    known = {token_content(token, place) for token in (*listed, *numbered.values())}
    for token in (*own, *others, *extra):
        if token_content(token, place) not in known:
            yield _flags(token, named, place)


def _numbered(decoder: Any, place: str) -> dict[int, Any]:
    """Return the tokens of an `added_tokens_decoder` by id."""
    if not isinstance(decoder, dict):
        raise InputError(f"{place}: {DECODER} is {shown(decoder)}, not an object")
    try:
        return {int(number): token for number, token in decoder.items()}
    except ValueError as error:
        raise InputError(f"{place}: a key of {DECODER} is not a number ({error})") from error


def _of_added_json(added: Json, special: Collection[str], place: str) -> dict[int, Any]:
    """Return the tokens of an `added_tokens.json` by id."""
    tokens = {}
    for content, number in added.items():
        if type(number) is not int:
            raise InputError(f"{place}: the id of {content!r} is {shown(number)}, not a number")
        tokens[number] = {"content": content, "special": content in special}
    return tokens


def _named(said: Json, config: Json, place: str) -> tuple[list[Any], list[Any]]:
    """Return the tokens of the seven roles of `transformers`, and the tokens of other roles such as
    `image_token`."""
    others = {n: t for n, t in config.items() if _is_other_role(n) and isinstance(t, str)}
    extra = config.get(EXTRA) or config.get(ADDITIONAL)
    others |= extra if isinstance(extra, dict) else {}
    more = others or get(config, "model_specific_special_tokens", dict, place, {})
    listed = {n: t for n, t in said.items() if _is_other_role(n) and isinstance(t, str | dict)}
    own = [said[name] for name in NAMED if said.get(name) is not None]
    return own, [*(listed | more).values()]


def _is_other_role(name: str) -> bool:
    return name.endswith("_token") and name not in NAMED


def _extra(config: Json, special_map: Json, place: str) -> list[Any]:
    """Return the special tokens without a role. An object has tokens with roles."""
    for name in (EXTRA, ADDITIONAL):
        tokens = config.get(name)
        if tokens is not None and not isinstance(tokens, dict | list):
            raise InputError(f"{place}: {name} is {shown(tokens)}, not a list")
        if not isinstance(special_map.get(name, []), list):
            of_map = place.replace(CONFIG, MAP)
            raise InputError(f"{of_map}: {name} is {shown(special_map[name])}, not a list")
    own = {name: config[name] for name in (EXTRA, ADDITIONAL) if name in config}
    if ADDITIONAL in own and not own.get(EXTRA):
        own[EXTRA] = own.pop(ADDITIONAL)
    if isinstance(own.get(EXTRA), dict):
        del own[EXTRA]
    if EXTRA in special_map:
        own[EXTRA] = [*(own.get(EXTRA) or []), *special_map[EXTRA]]
    if ADDITIONAL in special_map:
        own[ADDITIONAL] = special_map[ADDITIONAL]
    found = own[EXTRA] if EXTRA in own else own.get(ADDITIONAL)
    return found if isinstance(found, list) else []


def _flags(token: Any, named: Collection[str], place: str) -> Json:
    """Return a token with all its flags. `named`: the tokens with a role, which are special."""
    own = token if isinstance(token, dict) else {"special": True}
    content = token_content(token, place)
    for name in FLAGS:
        if not isinstance(own.get(name, False), bool):
            raise InputError(
                f"{place}: {name} of {content!r} is {shown(own[name])}, not true or false"
            )
    special = content in named or own.get("special", False)
    flags = {name: own.get(name, False) for name in FLAGS[:3]}
    normalized = own.get("normalized", not special)
    return {"content": content, **flags, "normalized": normalized, "special": special}
