"""Reading tokenizers that other programs have written: a `vocab.txt`, a `tokenizer.json`, or a
directory.

A tokenizer is refused if its ids here would differ from those that `tokenizers` or `transformers`
give: one with another model or normalizer, with special tokens in other roles or searched for in
other ways, or with files that contradict each other.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain
from typing import Any, TypeVar

from wordpiece_core.errors import InputError, OptionError, shown
from wordpiece_core.option_kinds import is_utf8
from wordpiece_core.options import TextOptions
from wordpiece_core.reference import SPECIAL_TOKENS
from wordpiece_core.tokenizer.files import (
    ADDED_TOKEN_FLAGS,
    PRE_TOKENIZER_TYPES,
    ROLES,
    TokenizerSpec,
    post_processor,
)
from wordpiece_core.tokenizer.vocabulary import (
    UNK,
    check_vocabulary,
    parse_vocabulary,
    read_text,
)
from wordpiece_core.uri import split_query

Json = dict[str, Any]
T = TypeVar("T")

# The text options in a tokenizer_config.json, by the names they have there.
CONFIG_TEXT = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
MOST_DEPTH = 32  # of lists and objects; tokenizers have 6
TOO_DEEP = f"more than {MOST_DEPTH} lists and objects inside each other"
ONE_MORE_TOKEN = ("bos_token", "eos_token")
MORE_TOKENS = ("additional_special_tokens", "extra_special_tokens")


class TakenAsCasedWarning(UserWarning):
    """A vocabulary that does not say how text is handled has capital letters in its tokens, so it
    is taken as cased. The argument is its path."""

    @property
    def fact(self) -> str:
        """The message without what to do if that is wrong."""
        return f"{self.args[0]} has capital letters: taken as cased"

    def __str__(self) -> str:
        return f"{self.fact} (lowercase=True to override)"


def read_tokenizer(path: str, lowercase: bool | None = None) -> TokenizerSpec:
    """Reads a tokenizer directory, a `tokenizer.json` or a `vocab.txt`.

    The options of a directory are those in its `tokenizer.json`, else in its
    `tokenizer_config.json`. Without either they are BERT's, and text is lowercased, unless tokens
    have capital letters, which lowercased text could never match. Then a TakenAsCasedWarning is
    given, unless `lowercase` is given. `truncation` and `padding` of a `tokenizer.json` are
    ignored, its decoder is taken to be BERT's, and rows are padded and cut on the right. Raises
    InputError.
    """
    text = read_text(path)
    if text is not None and split_query(path)[0].endswith(".json"):
        return _from_tokenizer_json(_parse(text, path), path)
    if text is not None:
        return _bare(parse_vocabulary(text, path), path, lowercase)
    return _from_directory(path, lowercase)


def _bare(vocab: list[str], path: str, lowercase: bool | None) -> TokenizerSpec:
    """The tokenizer of a vocabulary that does not say how text is handled."""
    if lowercase is not None or not any(map(_has_capitals, vocab)):
        return TokenizerSpec(vocab)
    warnings.warn(TakenAsCasedWarning(path), stacklevel=4)
    return TokenizerSpec(vocab, TextOptions(lowercase=False))


def _has_capitals(token: str) -> bool:
    """Whether lowercased text can never match a token. Tokens in brackets do not count."""
    return token.lower() != token and not re.fullmatch(r"\[.*\]|<.*>", token)


def _from_directory(path: str, lowercase: bool | None) -> TokenizerSpec:
    directory, query = split_query(path)

    def place(name: str) -> str:
        return f"{directory.rstrip('/')}/{name}{query}"

    def read(name: str) -> Json | None:
        text = read_text(place(name))
        return None if text is None else _parse(text, place(name))

    text = read_text(place("vocab.txt"))
    vocab = None if text is None else parse_vocabulary(text, place("vocab.txt"))
    whole = read("tokenizer.json")
    if whole is not None:
        spec = _from_tokenizer_json(whole, place("tokenizer.json"))
        if vocab is not None and vocab != list(spec.vocab):
            raise InputError(
                f"{place('tokenizer.json')}: another vocabulary than the vocab.txt beside it;"
                " remove one"
            )
    elif vocab is None:
        raise InputError(f"{path}: no tokenizer; give a directory with vocab.txt, or a vocab.txt")
    configs = {name: read(name) for name in ("special_tokens_map.json", "tokenizer_config.json")}
    if whole is None and vocab is not None:
        said = configs["tokenizer_config.json"] is not None
        spec = TokenizerSpec(vocab) if said else _bare(vocab, place("vocab.txt"), lowercase)
    for name, config in configs.items():
        if config is not None:
            spec = _with_config(spec, config, place(name), fixed=whole is not None)
    for token in read("added_tokens.json") or {}:
        if token not in spec.special_tokens:
            raise InputError(
                f"{place('added_tokens.json')}: added token {token!r} is not a special one; only"
                " these are known here"
            )
    return spec


def _parse(text: str, path: str) -> Json:
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise InputError(f"{path}: {TOO_DEEP}") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: not a JSON object")
    _check_depth(value, path)
    if "\\u" in text and not is_utf8(json.dumps(value, ensure_ascii=False)):
        raise InputError(
            f"{path}: a string holds half a surrogate pair (\\ud800 to \\udfff); mend it"
        )
    return value


def _check_depth(value: Json, path: str) -> None:
    """Refuses a value that is nested too deeply, which could overflow the stack later."""
    values: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        objects = chain.from_iterable(v.values() for v in values if isinstance(v, dict))
        lists = chain.from_iterable(v for v in values if isinstance(v, list))
        values = [*objects, *lists]
        if not values:
            return
    raise InputError(f"{path}: {TOO_DEEP}")


def _get(value: Json, name: str, kind: type[T], path: str, default: T | None = None) -> T:
    """An entry of a JSON object. InputError if it has another type, or if it is missing and there
    is no default."""
    found = value.get(name, default)
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        wanted = {dict: "an object", list: "a list", str: "a string", int: "a whole number"}
        raise InputError(
            f"{path}: {name} is {shown(found)}, not {wanted.get(kind, 'true or false')}"
        )
    return found


# --- tokenizer.json -------------------------------------------------------------------------------


def _from_tokenizer_json(value: Json, path: str) -> TokenizerSpec:
    model, normalizer, pre_tokenizer = (
        _get(value, name, dict, path, {}) for name in ("model", "normalizer", "pre_tokenizer")
    )
    kinds = {name: kind for kind, name in PRE_TOKENIZER_TYPES.items()}
    # Files from before tokenizers 0.9 do not say what model they hold.
    unsaid = "WordPiece" if "max_input_chars_per_word" in model else None
    found = (model.get("type", unsaid), normalizer.get("type"), pre_tokenizer.get("type"))
    kind = kinds.get(str(found[2]))
    if found[:2] != ("WordPiece", "BertNormalizer") or kind is None:
        parts = ", ".join(part if isinstance(part, str) else shown(part) for part in found)
        raise InputError(
            f"{path}: {parts} is not a WordPiece tokenizer with BERT's normalizer; give one that is"
        )
    if model.get("unk_token") != UNK:
        raise InputError(f"{path}: unk_token is {shown(model.get('unk_token'))}, not {UNK}")
    vocab = _vocabulary(model, path)
    ids = {token: i for i, token in enumerate(vocab)}
    _check_post_processor(value, path, ids)
    known = {field.name for field in fields(TextOptions)} & normalizer.keys()
    try:
        text = TextOptions(**{n: normalizer[n] for n in known}, pre_tokenizer=kind)
    except OptionError as error:
        raise InputError(f"{path}: {error}") from error
    longest = _get(model, "max_input_chars_per_word", int, path, 100)
    if not 1 <= longest < 2**32:
        raise InputError(f"{path}: max_input_chars_per_word is {longest}, not 1 or more")
    prefix = _get(model, "continuing_subword_prefix", str, path, "##")
    more = _added_tokens(_get(value, "added_tokens", list, path, []), ids, path)
    return TokenizerSpec(vocab, text, longest, prefix, more)


def _vocabulary(model: Json, path: str) -> list[str]:
    """The tokens in id order."""
    ids = _get(model, "vocab", dict, path)
    numbers = list(ids.values())
    if any(type(number) is not int for number in numbers) or sorted(numbers) != [*range(len(ids))]:
        raise InputError(f"{path}: the ids of the vocabulary are not 0 to {len(ids) - 1}")
    tokens = sorted(ids, key=ids.__getitem__)
    check_vocabulary(tokens, path)
    return tokens


def _added_tokens(added: list[Any], ids: dict[str, int], path: str) -> tuple[str, ...]:
    """The added tokens beside BERT's five. InputError for a token that is not searched for exactly
    as it is written, and if one of the five is not searched for at all."""
    for token in added:
        _check_added_token(token, path)
        if type(token.get("id")) is not int or ids.get(token["content"]) != token["id"]:
            raise InputError(f"{path}: added token {token['content']!r} is not in the vocabulary")
    listed = [token["content"] for token in added]
    for token in SPECIAL_TOKENS:
        if token in ids and token not in listed:
            raise InputError(f"{path}: {token} is not among the added_tokens; add it to them")
    return tuple(token for token in listed if token not in SPECIAL_TOKENS)


def _check_added_token(token: Any, path: str) -> None:
    if not isinstance(token, dict) or not isinstance(token.get("content"), str):
        raise InputError(f"{path}: {shown(token)} is no added token")
    flags = {name: token.get(name, False) for name in ADDED_TOKEN_FLAGS}
    if flags != ADDED_TOKEN_FLAGS or token.get("special", True) is not True:
        wrong = [name for name, flag in flags.items() if flag] or ["not special"]
        raise InputError(
            f"{path}: added token {token['content']!r} is {', '.join(wrong)}; only special ones"
            " that are searched for as they are written are known here"
        )


def _check_post_processor(value: Json, path: str, ids: dict[str, int]) -> None:
    """InputError unless [CLS] and [SEP] are put around texts exactly if the vocabulary has them."""
    wanted = post_processor(ids)
    bert = None
    if wanted is not None:
        ends = {name: [token, ids[token]] for name, token in (("sep", "[SEP]"), ("cls", "[CLS]"))}
        bert = {"type": "BertProcessing", **ends}
    found = value.get("post_processor")
    if found not in (wanted, bert):
        kind = found.get("type") if isinstance(found, dict) else found
        kind = kind if isinstance(kind, str) else shown(kind)
        does = "put [CLS] and [SEP] around texts as BERT's does" if wanted else "leave texts alone"
        raise InputError(f"{path}: post_processor ({kind}) does not {does}; mend or replace it")


# --- tokenizer_config.json, special_tokens_map.json -----------------------------------------------


def _with_config(spec: TokenizerSpec, config: Json, path: str, *, fixed: bool) -> TokenizerSpec:
    """The spec, changed by what a config file beside the vocabulary says. If the spec is `fixed` by
    a tokenizer.json, it is not changed: InputError if the file contradicts it."""
    if config.get("split_special_tokens"):
        raise InputError(
            f"{path}: split_special_tokens is set; leave it out, and give it when encoding"
        )
    for name, token in ROLES.items():
        role = config.get(name)
        if role is not None and _content(role, path, fixed) != token:
            raise InputError(
                f"{path}: {name} is {_content(role, path, fixed)!r}; only {token} is known here"
            )
    more = dict.fromkeys([*spec.more_special_tokens, *_more_tokens(config, path, fixed)])
    unknown = [token for token in more if token not in set(spec.vocab)]
    if unknown:
        raise InputError(f"{path}: special token {unknown[0]!r} is not in the vocabulary; add it")
    text = _text_of_config(spec.text, config, path)
    named = TokenizerSpec(
        spec.vocab, text, spec.max_word_length, spec.continuing_prefix, tuple(more)
    )
    if not fixed:
        return named
    # For that class `transformers` reads the special tokens here, but not how text is handled.
    heard = config.get("tokenizer_class") != "PreTrainedTokenizerFast"
    if heard and named.text.for_kernel() != spec.text.for_kernel():
        raise InputError(f"{path}: handles text otherwise than tokenizer.json; mend one of them")
    if {*named.special_tokens} != {*spec.special_tokens}:
        raise InputError(f"{path}: has other special tokens than tokenizer.json; mend one of them")
    return spec


def _text_of_config(text: TextOptions, config: Json, path: str) -> TextOptions:
    options = dict(vars(text))
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
    for name in ONE_MORE_TOKEN:
        if config.get(name) is not None:
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
        _check_added_token(token, path)
    return str(token["content"])
