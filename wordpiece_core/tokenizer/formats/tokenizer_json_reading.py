"""Reading a `tokenizer.json`. It is refused if its ids would not be those of `tokenizers`."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from wordpiece_core.errors import InputError, shown
from wordpiece_core.options import UNK
from wordpiece_core.symbols import ROLES, SPECIAL_TOKENS, WORD_END, byte_tokens
from wordpiece_core.tokenizer.decoders import decoding_steps
from wordpiece_core.tokenizer.files import (
    TokenizerSpec,
    trimming_unless_usual,
    usual_roles,
)
from wordpiece_core.tokenizer.formats.json_text import Json, get
from wordpiece_core.tokenizer.formats.merges_files import merges_by_id, vocabulary_of
from wordpiece_core.tokenizer.formats.tokenizer_json import (
    ADDED_TOKEN_FLAGS,
    decoder_of,
    template,
)
from wordpiece_core.tokenizer.formats.tokenizer_json_parts import (
    KINDS,
    Words,
    bert_text,
    composed_words,
    read_around,
    read_trimming,
    read_words,
)
from wordpiece_core.tokenizer.kernel_parts import kernel_rules
from wordpiece_core.tokenizer.models import BERT_TEMPLATE, AddedToken, Bpe, Unigram
from wordpiece_core.tokenizer.vocabulary import check_vocabulary

BPE_FIELDS = {"vocab", "merges"}
WORDLEVEL_FIELDS = {"vocab", "unk_token"}
WORDPIECE_FIELDS = WORDLEVEL_FIELDS | {"continuing_subword_prefix", "max_input_chars_per_word"}


def from_tokenizer_json(value: Json, path: str) -> TokenizerSpec:
    """The tokenizer of the JSON of a file. `path`: what errors name."""
    model = get(value, "model", dict, path, {})
    kind = model_kind(model)
    read = {"WordPiece": _wordpiece, "BPE": _bpe, "Unigram": _unigram}.get(str(kind))
    if read is not None:
        return _with_decoder(read(value, path), value, path)
    if kind is None and not model:
        raise InputError(f"{path}: no model in this file; choose a tokenizer.json")
    name = kind if isinstance(kind, str) else shown(kind)
    raise InputError(f"{path}: model {name} is not supported; only WordPiece, BPE and Unigram are")


def _with_decoder(spec: TokenizerSpec, value: Json, path: str) -> TokenizerSpec:
    """The spec with the decoder of the file, unless it is the usual one."""
    decoder = value.get("decoder")
    if decoding_steps(decoder, path) == decoding_steps(decoder_of(spec), path):
        return spec
    return replace(spec, decoder=json.dumps(decoder))


def model_kind(model: Json) -> Any:
    """The type of a model. Files from before `tokenizers` 0.9 do not say it: then it is the first
    type that has their fields, in the order of that library. None: there is no such type."""
    if "type" in model:
        return model["type"]
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    known = model.keys()
    fields_of = {"BPE": BPE_FIELDS, "WordPiece": WORDPIECE_FIELDS, "WordLevel": WORDLEVEL_FIELDS}
    return next((kind for kind, wanted in fields_of.items() if wanted <= known), None)


# --- WordPiece ------------------------------------------------------------------------------------


def _wordpiece(value: Json, path: str) -> TokenizerSpec:
    model, normalizer, pre_tokenizer = (
        get(value, name, dict, path, {}) for name in ("model", "normalizer", "pre_tokenizer")
    )
    longest = get(model, "max_input_chars_per_word", int, path, 100)
    if not 1 <= longest < 2**32:
        raise InputError(f"{path}: max_input_chars_per_word is {longest}, not 1 or more")
    prefix = get(model, "continuing_subword_prefix", str, path, "##")
    kind = KINDS.get(str(pre_tokenizer.get("type")))
    if normalizer.get("type") != "BertNormalizer" or kind is None:
        spec = _composed_wordpiece(value, get(model, "unk_token", str, path, UNK), path)
        return replace(spec, max_word_length=longest, continuing_prefix=prefix)
    if model.get("unk_token") != UNK:
        raise InputError(f"{path}: unk_token is {shown(model.get('unk_token'))}, not {UNK}")
    vocab = vocabulary_of(get(model, "vocab", dict, path), path, UNK)
    ids = {token: i for i, token in enumerate(vocab)}
    _check_post_processor(value, path, ids)
    text = bert_text(normalizer, kind, path)
    more = _added_tokens(added_tokens(value, path), ids, path)
    return TokenizerSpec(vocab, text, longest, prefix, more)


def _composed_wordpiece(value: Json, unk: str, path: str) -> TokenizerSpec:
    """WordPiece with words that are not BERT's."""
    ids = dict(get(value["model"], "vocab", dict, path))
    added, beyond = _own_added_tokens(value, ids, path)
    vocab = vocabulary_of(ids, path, unk)
    return _spec(value, composed_words(False, value, path), vocab, added, unk, None, beyond, path)


def _added_tokens(added: list[Any], ids: dict[str, int], path: str) -> tuple[str, ...]:
    """The added tokens beside BERT's five. InputError for a token that is not searched for exactly
    as it is written, and if one of the five is not searched for at all."""
    for token in added:
        check_added_token(token, path)
        if ids.get(token["content"]) != token["id"]:
            raise InputError(f"{path}: added token {token['content']!r} is not in the vocabulary")
    listed = [token["content"] for token in added]
    for token in SPECIAL_TOKENS:
        if token in ids and token not in listed:
            raise InputError(f"{path}: {token} is missing from added_tokens; add it")
    return tuple(token for token in listed if token not in SPECIAL_TOKENS)


def check_added_token(token: Any, path: str, allowed: Sequence[str] = ()) -> None:
    """InputError unless a token is special and searched for as it is written. `allowed`: flags that
    may be set."""
    if not isinstance(token, dict) or not isinstance(token.get("content"), str):
        raise InputError(f"{path}: {shown(token)} is not an added token")
    for name in [*ADDED_TOKEN_FLAGS, "special"]:
        if not isinstance(token.get(name, False), bool):
            raise InputError(
                f"{path}: {name} of added token {token['content']!r} is {shown(token[name])}, not"
                " true or false"
            )
    flags = {name: token.get(name, False) for name in ADDED_TOKEN_FLAGS if name not in allowed}
    special = "special" in allowed or token.get("special", True)
    if any(flags.values()) or not special:
        wrong = [name for name, flag in flags.items() if flag] or ["not special"]
        raise InputError(
            f"{path}: added token {token['content']!r} is {', '.join(wrong)}; only special"
            " tokens without these flags are supported here"
        )


def _check_post_processor(value: Json, path: str, ids: dict[str, int]) -> None:
    """InputError unless [CLS] and [SEP] are put around texts exactly if the vocabulary has them."""
    wanted = bert = None
    if {"[CLS]", "[SEP]"} <= ids.keys():
        wanted = template(BERT_TEMPLATE, ids)
        ends = {name: [token, ids[token]] for name, token in (("sep", "[SEP]"), ("cls", "[CLS]"))}
        bert = {"type": "BertProcessing", **ends}
    found = value.get("post_processor")
    if found not in (wanted, bert):
        kind = found.get("type") if isinstance(found, dict) else found
        kind = kind if isinstance(kind, str) else shown(kind)
        does = "put [CLS] and [SEP] around texts as BERT's does" if wanted else "leave texts alone"
        raise InputError(f"{path}: post_processor ({kind}) does not {does}; fix or replace it")


# --- BPE and Unigram ------------------------------------------------------------------------------


def _bpe(value: Json, path: str) -> TokenizerSpec:
    model, words = value["model"], read_words(value, path)
    if model.get("dropout"):
        raise InputError(f"{path}: dropout is {shown(model['dropout'])}; set it to null")
    if model.get("continuing_subword_prefix"):
        raise InputError(
            f"{path}: continuing_subword_prefix is set; only BPE without one is supported"
        )
    suffix = model.get("end_of_word_suffix") or None
    if suffix not in (None, WORD_END):
        raise InputError(f"{path}: end_of_word_suffix is {shown(suffix)}, not {WORD_END}")
    unk = model.get("unk_token")
    if unk is not None and not isinstance(unk, str):
        raise InputError(f"{path}: unk_token is {shown(unk)}, not a string")
    ids = dict(get(model, "vocab", dict, path))
    added, beyond = _own_added_tokens(value, ids, path)
    vocab = vocabulary_of(ids, path, unk)
    merges = merges_by_id(_pairs(get(model, "merges", list, path), path), ids, path)
    flags: dict[str, Any] = {
        name: get(model, name, bool, path, False)
        for name in ("byte_fallback", "fuse_unk", "ignore_merges")
    }
    made = Bpe(merges, suffix or words.boundary, **flags)
    _check_bytes(vocab, made, path)
    return _spec(value, words, vocab, added, unk, made, beyond, path)


def _pairs(merges: list[Any], path: str) -> list[tuple[str, str]]:
    """Merges, each of which is a list of two tokens, or both with a space between."""
    pairs = []
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not (isinstance(pair, list) and len(pair) == 2 and {*map(type, pair)} == {str}):
            raise InputError(f"{path}: merge {shown(merge)} does not have two tokens")
        pairs.append((pair[0], pair[1]))
    return pairs


def _check_bytes(vocab: Sequence[str], model: Bpe | Unigram, path: str) -> None:
    """InputError if bytes are to stand for unknown characters, but not all are tokens: then
    `tokenizers` makes the unknown token of some characters only."""
    missing = {*byte_tokens(model.byte_fallback)} - {*vocab}
    if missing:
        raise InputError(f"{path}: byte_fallback is set, but there is no token {min(missing)}")


def _unigram(value: Json, path: str) -> TokenizerSpec:
    model, words = value["model"], read_words(value, path)
    rows = get(model, "vocab", list, path)
    for row in rows:
        if not (isinstance(row, list) and len(row) == 2 and _is_score(row[1])):
            raise InputError(f"{path}: {shown(row)} is not a token and its score")
    tokens = [row[0] for row in rows]
    check_vocabulary(tokens, path, unk=None)
    unk_id = get(model, "unk_id", int, path)
    if not 0 <= unk_id < len(tokens):
        raise InputError(
            f"{path}: unk_id is {unk_id}, which is not an id of the {len(tokens)} tokens"
        )
    ids = {token: i for i, token in enumerate(tokens)}
    added, beyond = _own_added_tokens(value, ids, path)
    vocab = vocabulary_of(ids, path, tokens[unk_id])
    scores = [float(row[1]) for row in rows]
    scores += [max(scores)] * (
        len(vocab) - len(rows)
    )  # not the least, which unknown text depends on
    made = Unigram(scores, get(model, "byte_fallback", bool, path, False))
    _check_bytes(vocab, made, path)
    return _spec(value, words, vocab, added, tokens[unk_id], made, beyond, path)


def _is_score(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def _spec(
    value: Json,
    words: Words,
    vocab: list[str],
    added: list[str],
    unk: str | None,
    model: Bpe | Unigram | None,
    beyond: Collection[str],
    path: str,
) -> TokenizerSpec:
    """The spec, in which nothing is said that is as in BERT's. `beyond`: the added tokens that the
    model does not have."""
    ids = {token: i for i, token in enumerate(vocab)}
    put = read_around(value, ids, path)
    of_bert = {name: token for name, token in ROLES.items() if token in ids}
    as_bert = unk == UNK and {*of_bert.values()} <= {*added}
    roles = None if as_bert else ({} if unk is None else {"unk_token": unk}) | usual_roles(added)
    more = [token for token in added if not (as_bert and token in SPECIAL_TOKENS)]
    usual = TokenizerSpec(vocab).around
    found = _found_otherwise(value, beyond, path)
    _check_normalized(found or (), words, path)
    return TokenizerSpec(
        vocab,
        words.text,
        continuing_prefix="",
        more_special_tokens=tuple(more),
        model=model,
        rules=words.rules,
        roles=roles,
        added=None if as_bert and put == usual else put,
        added_tokens=found,
        trim_offsets=trimming_unless_usual(read_trimming(value, path), words.text),
    )


def _found_otherwise(
    value: Json, beyond: Collection[str], path: str
) -> tuple[AddedToken, ...] | None:
    """The added tokens that are not found as special tokens usually are; None if there are none.
    `beyond`: those that the model does not have."""
    found = []
    for token in added_tokens(value, path):
        flags = {flag: token.get(flag, False) for flag in ADDED_TOKEN_FLAGS}
        flags |= {"special": token.get("special", True)}
        added = AddedToken(token["content"], **flags, in_model=token["content"] not in beyond)
        if added != AddedToken(token["content"]):
            found.append(added)
    return tuple(sorted(found, key=lambda token: token.content)) or None


def _check_normalized(tokens: Sequence[AddedToken], words: Words, path: str) -> None:
    """InputError for a token of which the normalizer leaves nothing: `tokenizers` finds it
    everywhere."""
    normalized = [token.content for token in tokens if token.normalized]
    rules = kernel_rules(words.rules) if normalized else None
    for content in normalized:
        if rules is not None and not rules.normalized(content):
            raise InputError(f"{path}: added token {content!r} is empty after normalization")


def _own_added_tokens(
    value: Json, ids: dict[str, int], path: str
) -> tuple[list[str], frozenset[str]]:
    """Return the added tokens, and the set of them that the model lacks. Adds these to `ids`,
    numbered in the order of the file as in `tokenizers`, which ignores their `id`."""
    listed, size, last = [], len(ids), -1
    of_model = frozenset(ids)
    for token in added_tokens(value, path):
        check_added_token(token, path, [*ADDED_TOKEN_FLAGS, "special"])
        content = token["content"]
        number = ids.setdefault(content, max(size, last + 1))
        if type(number) is int:  # `vocabulary_of` refuses others
            last = max(last, number)
        listed.append(content)
    return listed, frozenset(listed) - of_model


def added_tokens(value: Json, path: str) -> list[Any]:
    """Return the added tokens that `tokenizers` takes: each once, and no empty one.

    Raises InputError for a token without an id, and for two of one content with other flags.
    """
    found: dict[Any, Any] = {}
    for token in get(value, "added_tokens", list, path, []):
        content = token.get("content") if isinstance(token, dict) else None
        if not isinstance(content, str):
            raise InputError(f"{path}: {shown(token)} is not an added token")
        if type(token.get("id")) is not int:
            number = shown(token.get("id"))
            raise InputError(
                f"{path}: the id of added token {content!r} is {number}, which is not a number"
            )
        first = found.setdefault(content, token)
        if {**first, "id": None} != {**token, "id": None}:
            raise InputError(
                f"{path}: added token {content!r} occurs twice with different settings"
            )
    found.pop("", None)
    return list(found.values())
