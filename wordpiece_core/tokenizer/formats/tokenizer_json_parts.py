"""The parts of a `tokenizer.json` of BPE or Unigram: what its normalizers and pre-tokenizers say
about words, and what its post-processors put around texts. InputError for what is not known."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from wordpiece_core.errors import InputError, OptionError, shown
from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import BYTES, SPACE_MARK
from wordpiece_core.text_parts import GPT2, GPT2_CUT
from wordpiece_core.tokenizer.files import AS_IT_IS, NO_TEMPLATE, unless_usual
from wordpiece_core.tokenizer.formats.json_text import Json, get
from wordpiece_core.tokenizer.formats.tokenizer_json import (
    BERT,
    PRE_TOKENIZER_TYPES,
    ROBERTA,
)
from wordpiece_core.tokenizer.kernel_parts import kernel_rules
from wordpiece_core.tokenizer.models import (
    REPLACE,
    STRIP,
    ByteLevel,
    Composed,
    Layout,
    Metaspace,
    Template,
    around,
    metaspace,
)

KINDS = {name: kind for kind, name in PRE_TOKENIZER_TYPES.items()}


@dataclass(frozen=True)
class Words:
    """How text becomes words, as a spec has it."""

    text: TextOptions
    rules: ByteLevel | Metaspace | Composed | None
    boundary: str | None
    """Of BYTES, SPACE_MARK, or None."""


def parts(value: Json, name: str, inside: str, path: str) -> list[Json]:
    """The parts of a value like `normalizer`, where sequences, whose list is called `inside`, are
    spread out."""
    found = value.get(name)
    return [] if found is None else list(_spread(found, name, inside, path))


def _spread(part: Any, name: str, inside: str, path: str) -> Iterator[Json]:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise InputError(f"{path}: {name} is {shown(part)}, not an object with a type")
    if part["type"] != "Sequence":
        yield part
        return
    for each in get(part, inside, list, path):
        yield from _spread(each, name, inside, path)


def types(found: Sequence[Json]) -> list[str]:
    """The types of parts."""
    return [part["type"] for part in found]


def bert_text(normalizer: Json, kind: str, path: str) -> TextOptions:
    """The text options of a BertNormalizer."""
    known = {field.name for field in fields(TextOptions)} & normalizer.keys()
    try:
        return TextOptions(**{n: normalizer[n] for n in known}, pre_tokenizer=kind)
    except OptionError as error:
        raise InputError(f"{path}: {error}") from error


def read_words(value: Json, path: str) -> Words:
    """How a tokenizer of BPE or Unigram makes words of text."""
    normalizers = parts(value, "normalizer", "normalizers", path)
    cutters = parts(value, "pre_tokenizer", "pretokenizers", path)
    found = (
        _gpt2_words(normalizers, cutters, value, path)
        or _bert_words(normalizers, cutters, value, path)
        or _metaspace_words(normalizers, cutters, path)
    )
    model = get(value, "model", dict, path, {})
    is_unigram = model.get("type") == "Unigram"
    is_usual = not is_unigram or (found is not None and found.boundary == SPACE_MARK)
    added_tokens = get(value, "added_tokens", list, path, [])
    if normalizers and any(_is_normalized(token) for token in added_tokens):
        is_usual = False  # such tokens are searched for in the normalized text
    if found is not None and is_usual and not (found.boundary and model.get("end_of_word_suffix")):
        return found
    takes_bytes = not is_unigram and not model.get("end_of_word_suffix")
    return composed_words(takes_bytes and types(cutters[-1:]) == ["ByteLevel"], value, path)


def _is_normalized(token: Any) -> bool:
    return isinstance(token, dict) and token.get("normalized") is True


_PIECE = (
    r"(?:\\[dDsSwWhHRXnrt]|\\[pP]\{\^?\w+\}|\\[^\w\s]|\[(?:\\.|[^\[\]\\])+\]|[^\\^$*?+(){}|\[\]])"
    r"(?:\+|\{[1-9]\d*(?:,\d*)?\})?"
)
_NEVER_EMPTY = re.compile(rf"(?:{_PIECE})+(?:\|(?:{_PIECE})+)*")
"""Expressions of which it is plain that no match is empty."""


def _check_replace(value: Json, path: str) -> None:
    """InputError for a Replace that may match nothing, where ByteLevel follows: `tokenizers` then
    writes some characters of what is put in twice."""
    normalizers = parts(value, "normalizer", "normalizers", path)
    if "ByteLevel" not in types(
        [*normalizers, *parts(value, "pre_tokenizer", "pretokenizers", path)]
    ):
        return
    for part in normalizers:
        pattern = part.get("pattern") if part["type"] == "Replace" else None
        regex = pattern.get("Regex") if isinstance(pattern, dict) else None
        if isinstance(regex, str) and not _NEVER_EMPTY.fullmatch(regex):
            raise InputError(
                f"{path}: Replace of {regex!r}, which may match nothing, and ByteLevel"
            )


def composed_words(of_bytes: bool, value: Json, path: str) -> Words:
    """Those of any parts that the kernel knows."""
    normalizer, pre_tokenizer, decoder = (
        None if value.get(name) is None else json.dumps(value[name])
        for name in ("normalizer", "pre_tokenizer", "decoder")
    )
    rules = Composed(normalizer, pre_tokenizer, of_bytes, decoder)
    check_rules(rules, path)
    _check_replace(value, path)
    return Words(AS_IT_IS, rules, BYTES if of_bytes else None)


def _gpt2_words(
    normalizers: list[Json], cutters: list[Json], value: Json, path: str
) -> Words | None:
    """GPT-2's: the text as it is, split by the regular expression of ByteLevel."""
    if types(cutters) not in (["ByteLevel"], ["Split", "ByteLevel"]):
        return None
    add_prefix_space = get(cutters[-1], "add_prefix_space", bool, path, True)
    by_regex = get(cutters[-1], "use_regex", bool, path, True)
    if types(cutters) == ["Split", "ByteLevel"]:
        if by_regex or add_prefix_space or not _is_gpt2_split(cutters[0]):
            return None
    elif not by_regex:
        return None
    if normalizers:
        return None
    rules = ByteLevel(add_prefix_space)
    return Words(TextOptions(pre_tokenizer=GPT2), unless_usual(rules), BYTES)


def _is_gpt2_split(part: Json) -> bool:
    wanted = {"pattern": {"Regex": GPT2_CUT}, "behavior": "Isolated", "invert": False}
    return {name: part.get(name) for name in wanted} == wanted


def _bert_words(
    normalizers: list[Json], cutters: list[Json], value: Json, path: str
) -> Words | None:
    """BERT's words, or those between white space; and how they are marked."""
    kind = KINDS.get(cutters[0]["type"]) if cutters else None
    if kind is None or types(normalizers) not in ([], ["BertNormalizer"]):
        return None
    text = replace(AS_IT_IS, pre_tokenizer=kind)
    if normalizers:
        text = bert_text(normalizers[0], kind, path)
    marks = cutters[1:]
    if not marks:
        return Words(text, None, None)
    if types(marks) == ["Metaspace"] and not normalizers and _splits(marks[0], path):
        return None
    if marks == [metaspace("always", split=False)]:
        return Words(text, None, SPACE_MARK)
    if types(marks) != ["ByteLevel"]:
        return None
    for name, default, wanted in (("add_prefix_space", True, True), ("use_regex", True, False)):
        if get(marks[0], name, bool, path, default) != wanted:
            return None
    return Words(text, None, BYTES)


def _splits(part: Json, path: str) -> bool:
    """Whether a Metaspace begins words at marks that are in a text."""
    return get(part, "split", bool, path, True)


def _metaspace_words(normalizers: list[Json], cutters: list[Json], path: str) -> Words | None:
    """SentencePiece's, as `tokenizers` has them."""
    rest = list(normalizers)
    charsmap = b""
    if types(rest[:1]) == ["Precompiled"]:
        charsmap = _charsmap(rest.pop(0), path)
    replaces = rest[:1] == [STRIP] and rest[1:] in ([REPLACE], [REPLACE | {"content": " "}])
    splits = types(cutters) == ["WhitespaceSplit", "Metaspace"]
    if not (splits or types(cutters) == ["Metaspace"]) or (splits if replaces else rest):
        return None
    mark = cutters[-1]
    if get(mark, "replacement", str, path, SPACE_MARK) != SPACE_MARK or not _splits(mark, path):
        return None
    if splits and prepend_scheme(mark, path) != "always":
        return None
    rules = Metaspace(
        charsmap,
        by_grapheme=True,
        collapse_spaces=splits or replaces,
        prepend=prepend_scheme(mark, path),
        by_replacement=replaces,
    )
    check_rules(rules, path)
    return Words(AS_IT_IS, rules, SPACE_MARK)


def check_rules(rules: Metaspace | Composed, path: str) -> None:
    """InputError if the kernel does not know the map of characters of the rules."""
    try:
        kernel_rules(rules)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def prepend_scheme(mark: Json, path: str) -> str:
    """Return where a Metaspace adds a mark: "always", "first" or "never"."""
    usual = "always" if get(mark, "add_prefix_space", bool, path, True) else "never"
    scheme = get(mark, "prepend_scheme", str, path, usual)
    if scheme not in ("always", "first", "never"):
        raise InputError(f"{path}: prepend_scheme is {shown(scheme)}, not always, first or never")
    return scheme


def _charsmap(part: Json, path: str) -> bytes:
    try:
        return b64decode(get(part, "precompiled_charsmap", str, path), validate=True)
    except ValueError as error:
        raise InputError(f"{path}: precompiled_charsmap is not base64") from error


# --- What post-processors do ----------------------------------------------------------------------


def read_trimming(value: Json, path: str) -> list[bool]:
    """The `add_prefix_space` of each post-processor that trims offsets. InputError if one does it
    when tokens have been put around the text, which it would take for text."""
    found, is_surrounded = [], False
    for part in parts(value, "post_processor", "processors", path):
        if part["type"] in ("ByteLevel", ROBERTA) and get(part, "trim_offsets", bool, path, True):
            if is_surrounded:
                raise InputError(
                    f"{path}: post_processor ({part['type']}) trims offsets after another"
                    " post_processor"
                    " has added tokens; put it first, or set its trim_offsets to false"
                )
            found.append(get(part, "add_prefix_space", bool, path, True))
        is_surrounded |= part["type"] in (ROBERTA, BERT, "TemplateProcessing")
    return found


def read_around(value: Json, ids: dict[str, int], path: str) -> Template:
    """What post-processors put around texts."""
    found = [NO_TEMPLATE]
    for part in parts(value, "post_processor", "processors", path):
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


def _of_ends(part: Json, ids: dict[str, int], path: str) -> Template:
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


def _of_template(part: Json, ids: dict[str, int], path: str) -> Template:
    """What a TemplateProcessing puts around. InputError for one that does not have each text once,
    A before B."""
    try:
        tokens = {name: said["ids"] for name, said in part["special_tokens"].items()}
        made = Template(_layout(part["single"], "single"), _layout(part["pair"], "pair"))
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
    """What a template says. ValueError for one that does not have the texts in their order."""
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
    """A token type that the column `token_type_ids`, of int8, can hold."""
    if not 0 <= value <= 127:
        raise ValueError(value)
    return int(value)
