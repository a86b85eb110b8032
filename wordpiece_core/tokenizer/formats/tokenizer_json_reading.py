"""Read a `tokenizer.json`. A file is refused if the kernel's ids could differ from `tokenizers`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from wordpiece_core.errors import InputError, shown
from wordpiece_core.options import UNK
from wordpiece_core.symbols import WORD_END, byte_tokens
from wordpiece_core.text_parts import Json
from wordpiece_core.tokenizer.decoders import decoding_steps
from wordpiece_core.tokenizer.formats.json_text import get
from wordpiece_core.tokenizer.formats.merges_files import merges_by_id, vocabulary_of
from wordpiece_core.tokenizer.models import (
    BERT_LENGTH,
    NOTHING_ADDED,
    AddedToken,
    Bpe,
    Layout,
    PostProcessor,
    Unigram,
    WordPiece,
    around,
)
from wordpiece_core.tokenizer.parts import BERT, ROBERTA, Parts, read_parts, types
from wordpiece_core.tokenizer.spec import TokenizerSpec, bert_roles, usual_roles
from wordpiece_core.tokenizer.vocabulary import check_vocabulary
from wordpiece_core.tokenizer.words import Words, check_words, words_of

BPE_FIELDS = {"vocab", "merges"}
WORDLEVEL_FIELDS = {"vocab", "unk_token"}
WORDPIECE_FIELDS = WORDLEVEL_FIELDS | {"continuing_subword_prefix", "max_input_chars_per_word"}
ADDED_TOKEN_FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)


def from_tokenizer_json(value: Json, path: str) -> TokenizerSpec:
    """Return the tokenizer of the JSON of a file. `path`: path of the file in errors."""
    model = get(value, "model", dict, path, {})
    kind = model_kind(model)
    read = {"WordPiece": _wordpiece, "BPE": _bpe, "Unigram": _unigram}.get(str(kind))
    if read is None:
        if kind is None and not model:
            raise InputError(f"{path}: no model in this file; choose a tokenizer.json")
        name = kind if isinstance(kind, str) else shown(kind)
        raise InputError(
            f"{path}: model {name} is not supported; only WordPiece, BPE and Unigram are"
        )
    found = read(value, model, path)
    ids = {token: i for i, token in enumerate(found.vocab)}
    added = _added_tokens(value, ids, found.of_model, path)
    decoder = value.get("decoder")
    decoding_steps(decoder, path)
    spec = TokenizerSpec(
        found.vocab,
        found.model,
        read_parts(value, "normalizer", "normalizers", path),
        read_parts(value, "pre_tokenizer", "pretokenizers", path),
        _post_processor(value, found, ids, path),
        decoder,
        added,
        _roles(found, added),
    )
    words = words_of(spec, path)
    check_words(words, path)
    _check_replace(spec.normalizer, spec.pre_tokenizer, path)
    _check_normalized(added, words, path)
    return spec


def model_kind(model: Json) -> Any:
    """Return the type of a model; None if it is unknown. Files of `tokenizers` before 0.9 lack it:
    then it is the first type that has their fields, in the order of that library."""
    if "type" in model:
        return model["type"]
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    known = model.keys()
    fields_of = {"BPE": BPE_FIELDS, "WordPiece": WORDPIECE_FIELDS, "WordLevel": WORDLEVEL_FIELDS}
    return next((kind for kind, wanted in fields_of.items() if wanted <= known), None)


# --- Models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """A model, its vocabulary with the added tokens, the tokens that the model has, and its unknown
    token."""

    model: WordPiece | Bpe | Unigram
    vocab: list[str]
    of_model: frozenset[str]
    unk: str | None


def _wordpiece(value: Json, model: Json, path: str) -> _Found:
    longest = get(model, "max_input_chars_per_word", int, path, BERT_LENGTH)
    if not 1 <= longest < 2**32:
        raise InputError(f"{path}: max_input_chars_per_word is {longest}, not 1 or more")
    prefix = get(model, "continuing_subword_prefix", str, path, "##")
    unk = get(model, "unk_token", str, path, UNK)
    ids = dict(get(model, "vocab", dict, path))
    of_model = _number_added_tokens(value, ids, path)
    return _Found(WordPiece(prefix, longest), vocabulary_of(ids, path, unk), of_model, unk)


def _bpe(value: Json, model: Json, path: str) -> _Found:
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
    of_model = _number_added_tokens(value, ids, path)
    vocab = vocabulary_of(ids, path, unk)
    merges = merges_by_id(_pairs(get(model, "merges", list, path), path), ids, path)
    flags: dict[str, Any] = {
        name: get(model, name, bool, path, False)
        for name in ("byte_fallback", "fuse_unk", "ignore_merges")
    }
    made = Bpe(merges, suffix, **flags)
    _check_bytes(vocab, made, path)
    return _Found(made, vocab, of_model, unk)


def _pairs(merges: list[Any], path: str) -> list[tuple[str, str]]:
    """Return the pairs of merges: lists of two tokens, or strings with a space between them."""
    pairs = []
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not (isinstance(pair, list) and len(pair) == 2 and {*map(type, pair)} == {str}):
            raise InputError(f"{path}: merge {shown(merge)} does not have two tokens")
        pairs.append((pair[0], pair[1]))
    return pairs


def _check_bytes(vocab: Sequence[str], model: Bpe | Unigram, path: str) -> None:
    """Raise InputError for `byte_fallback` without a token for each byte: then `tokenizers` makes
    the unknown token of some characters only."""
    missing = {*byte_tokens(model.byte_fallback)} - {*vocab}
    if missing:
        raise InputError(f"{path}: byte_fallback is set, but there is no token {min(missing)}")


def _unigram(value: Json, model: Json, path: str) -> _Found:
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
    of_model = _number_added_tokens(value, ids, path)
    vocab = vocabulary_of(ids, path, tokens[unk_id])
    scores = [float(row[1]) for row in rows]
    # Not the lowest score, on which unknown text depends.
    scores += [max(scores)] * (len(vocab) - len(rows))
    made = Unigram(scores, get(model, "byte_fallback", bool, path, False))
    _check_bytes(vocab, made, path)
    return _Found(made, vocab, of_model, tokens[unk_id])


def _is_score(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def _roles(found: _Found, added: Sequence[AddedToken]) -> dict[str, str]:
    """Return the roles of BERT's tokens if they are added tokens, and else the usual roles."""
    contents = {token.content for token in added}
    usual = usual_roles(contents)
    of_bert = bert_roles(found.vocab)
    if found.unk == UNK and {*of_bert.values()} <= contents:
        return of_bert if isinstance(found.model, WordPiece) else usual | of_bert
    return ({} if found.unk is None else {"unk_token": found.unk}) | usual


# --- Added tokens ---------------------------------------------------------------------------------


def _added_tokens(
    value: Json, ids: dict[str, int], of_model: frozenset[str], path: str
) -> tuple[AddedToken, ...]:
    """Return the added tokens in id order."""
    found = []
    for token in added_tokens(value, path):
        flags = {flag: token.get(flag, False) for flag in ADDED_TOKEN_FLAGS}
        flags |= {"special": token.get("special", True)}
        content = token["content"]
        found.append(AddedToken(content, **flags, in_model=content in of_model))
    return tuple(sorted(found, key=lambda token: ids[token.content]))


def _check_normalized(tokens: Sequence[AddedToken], words: Words, path: str) -> None:
    """Raise InputError for a token that is empty after normalization: `tokenizers` finds it
    everywhere."""
    normalized = [token.content for token in tokens if token.normalized]
    rules = words.rules() if normalized else None
    for content in normalized:
        if rules is not None and not rules.normalized(content):
            raise InputError(f"{path}: added token {content!r} is empty after normalization")


def _number_added_tokens(value: Json, ids: dict[str, int], path: str) -> frozenset[str]:
    """Return the tokens of the model. Adds the other added tokens to `ids`, numbered in the order
    of the file as in `tokenizers`, which ignores their `id`."""
    size, last = len(ids), -1
    of_model = frozenset(ids)
    for token in added_tokens(value, path):
        check_added_token(token, path, [*ADDED_TOKEN_FLAGS, "special"])
        number = ids.setdefault(token["content"], max(size, last + 1))
        if type(number) is int:  # `vocabulary_of` refuses others
            last = max(last, number)
    return of_model


def check_added_token(token: Any, path: str, allowed: Sequence[str] = ()) -> None:
    """Raise InputError unless a token is special and has no flags, except `allowed` ones."""
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


# --- Normalizers ----------------------------------------------------------------------------------

_PIECE = (
    r"(?:\\[dDsSwWhHRXnrt]|\\[pP]\{\^?\w+\}|\\[^\w\s]|\[(?:\\.|[^\[\]\\])+\]|[^\\^$*?+(){}|\[\]])"
    r"(?:\+|\{[1-9]\d*(?:,\d*)?\})?"
)
_NEVER_EMPTY = re.compile(rf"(?:{_PIECE})+(?:\|(?:{_PIECE})+)*")
"""Regular expressions that cannot match an empty text."""


def _check_replace(normalizers: Parts, pre_tokenizers: Parts, path: str) -> None:
    """Raise InputError for a Replace that may match nothing, followed by ByteLevel: `tokenizers`
    then writes some inserted characters twice."""
    if "ByteLevel" not in types([*normalizers, *pre_tokenizers]):
        return
    for part in normalizers:
        pattern = part.get("pattern") if part["type"] == "Replace" else None
        regex = pattern.get("Regex") if isinstance(pattern, dict) else None
        if isinstance(regex, str) and not _NEVER_EMPTY.fullmatch(regex):
            raise InputError(
                f"{path}: Replace of {regex!r}, which may match nothing, and ByteLevel"
            )


# --- Post-processors ------------------------------------------------------------------------------


def _post_processor(
    value: Json, found: _Found, ids: dict[str, int], path: str
) -> PostProcessor | None:
    """Return the post-processor. None for BERT's model without one whose vocabulary lacks [CLS] or
    [SEP]."""
    parts = read_parts(value, "post_processor", "processors", path)
    is_bert = isinstance(found.model, WordPiece) and found.unk == UNK
    if not parts and is_bert and not {"[CLS]", "[SEP]"} <= ids.keys():
        return None
    return replace(_ends(parts, ids, path), trims=_trims(parts, path))


def _trims(parts: Parts, path: str) -> tuple[bool, ...]:
    """Return the `add_prefix_space` of each part that trims offsets. Raises InputError if one
    follows a part that adds tokens, which it would take for text."""
    found, is_surrounded = [], False
    for part in parts:
        if part["type"] in ("ByteLevel", ROBERTA) and get(part, "trim_offsets", bool, path, True):
            if is_surrounded:
                raise InputError(
                    f"{path}: post_processor ({part['type']}) trims offsets after another"
                    " post_processor"
                    " has added tokens; put it first, or set its trim_offsets to false"
                )
            found.append(get(part, "add_prefix_space", bool, path, True))
        is_surrounded |= part["type"] in (ROBERTA, BERT, "TemplateProcessing")
    return tuple(found)


def _ends(parts: Parts, ids: dict[str, int], path: str) -> PostProcessor:
    """Return the tokens around texts."""
    found = [NOTHING_ADDED]
    for part in parts:
        kind = part["type"]
        if kind in (ROBERTA, BERT):
            found.append(_of_ends(part, ids, path))
        elif kind == "TemplateProcessing":
            found.append(_of_template(part, ids, path))
        elif kind != "ByteLevel":
            raise InputError(f"{path}: post_processor ({kind}) is not supported here")
    if len(found) > 2:
        raise InputError(f"{path}: two post_processors add tokens around texts; remove one")
    return found[-1]


def _of_ends(part: Json, ids: dict[str, int], path: str) -> PostProcessor:
    ends = []
    for name in ("cls", "sep"):
        pair = get(part, name, list, path)
        if len(pair) != 2 or not isinstance(pair[0], str) or ids.get(pair[0]) != pair[1]:
            raise InputError(
                f"{path}: {name} of post_processor ({part['type']}) is {shown(pair)}, not a"
                " token of the vocabulary and its id"
            )
        ends.append(pair[0])
    cls, sep = ends
    if part["type"] == BERT:
        return replace(around([cls], [sep], [sep]), fixed_type=True)
    return replace(around([cls], [sep, sep], [sep], 0), fixed_type=True)


def _of_template(part: Json, ids: dict[str, int], path: str) -> PostProcessor:
    """Return the tokens of a TemplateProcessing. Raises InputError unless each text occurs once, A
    before B."""
    try:
        tokens = {name: said["ids"] for name, said in part["special_tokens"].items()}
        made = PostProcessor(_layout(part["single"], "single"), _layout(part["pair"], "pair"))
        added = [token for token, _ in (*made.single.added, *made.pair.added)]
        if any(tokens[token] != [ids[token]] for token in added):
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"{path}: post_processor (TemplateProcessing) does not add tokens of the"
            " vocabulary around A, and around A and B; fix or replace it"
        ) from None
    return made


def _layout(items: list[Json], name: str) -> Layout:
    """Return the layout of a template. Raises ValueError unless the texts are in their order."""
    added: list[list[tuple[str, int]]] = [[]]
    types = [0, 1]
    texts = ["A"] if name == "single" else ["A", "B"]
    for item in items:
        ((kind, said),) = item.items()
        type_id = _token_type(said["type_id"])
        if kind == "SpecialToken":
            added[-1].append((said["id"], type_id))
        elif len(added) > len(texts) or said["id"] != texts[len(added) - 1]:
            raise ValueError(said["id"])
        else:
            types[len(added) - 1] = type_id
            added.append([])
    if len(added) != len(texts) + 1:
        raise ValueError(items)
    before, *between, after = added
    return Layout(before, between[0] if between else (), after, (types[0], types[1]))


def _token_type(value: int) -> int:
    """Return a token type that an int8 can hold."""
    if not 0 <= value <= 127:
        raise ValueError(value)
    return int(value)
