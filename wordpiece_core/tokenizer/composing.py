"""Tokenizers whose words are those of normalizers and pre-tokenizers by name (`text_parts`)."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from wordpiece_core.errors import OptionError
from wordpiece_core.options import TextOptions
from wordpiece_core.reference.marks import BYTES
from wordpiece_core.text_parts import (
    GPT2,
    NORMALIZERS,
    PRE_TOKENIZERS,
    names_of_pre_tokenizers,
    pre_tokenizer_parts,
    sequence,
)
from wordpiece_core.tokenizer.files import AS_IT_IS, TokenizerSpec
from wordpiece_core.tokenizer.formats.tokenizer_json import tokenizer_json
from wordpiece_core.tokenizer.formats.tokenizer_json_parts import parts
from wordpiece_core.tokenizer.models import Composed, Metaspace

BY_BYTES = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}


def composed(spec: TokenizerSpec) -> TokenizerSpec:
    """The spec of a model whose words are those of its text options, with the parts that they stand
    for as its rules: as it is read from the `tokenizer.json` that is written of it."""
    of_bytes = spec.word_boundary == BYTES
    normalizer, pre_tokenizer = spec.text.composed
    if of_bytes:
        cutters = pre_tokenizer_parts(spec.text.pre_tokenizers)
        pre_tokenizer = sequence([*cutters, BY_BYTES], "pretokenizers")
    decoder = json.dumps(tokenizer_json(replace(spec, text=AS_IT_IS))["decoder"])
    rules = Composed(normalizer, pre_tokenizer, of_bytes, decoder)
    return replace(spec, text=AS_IT_IS, rules=rules)


def text_options(spec: TokenizerSpec) -> TextOptions:
    """The text options whose words are those of a tokenizer. OptionError if there are none."""
    if spec.rules is None:
        return spec.text
    if isinstance(spec.rules, Metaspace) and spec.rules.collapse_spaces:
        return AS_IT_IS  # its words are those between spaces, which it normalizes itself
    if not isinstance(spec.rules, Composed):
        raise OptionError(f"tokenizer: words are not counted as by {type(spec.rules).__name__}")
    names = []
    for part in parts(
        {"normalizer": _parsed(spec.rules.normalizer)}, "normalizer", "normalizers", "tokenizer"
    ):
        name = next((name for name, known in NORMALIZERS.items() if known == part), None)
        if name is None:
            raise OptionError(f"tokenizer: words are not counted after its {part['type']}")
        names.append(name)
    cutters = parts(
        {"pre_tokenizer": _parsed(spec.rules.pre_tokenizer)},
        "pre_tokenizer",
        "pretokenizers",
        "tokenizer",
    )
    if spec.rules.of_bytes:
        last = cutters.pop()
        if last.get("add_prefix_space", True):
            raise OptionError("tokenizer: words are not counted with a space before texts")
        if last.get("use_regex", True):
            cutters += PRE_TOKENIZERS[GPT2]
    return TextOptions(pre_tokenizer=names_of_pre_tokenizers(cutters), normalizer=names)


def splits_as(spec: TokenizerSpec, text: TextOptions) -> bool:
    """Whether a tokenizer splits text into words as text options do."""
    if not text.is_composed:
        with suppress(OptionError):
            return text_options(spec).resolved() == text.resolved()
        return False
    wanted = composed(replace(spec, text=text, rules=None)).rules
    assert isinstance(wanted, Composed)
    if not isinstance(spec.rules, Composed):
        return False
    if _words(wanted) == _words(spec.rules):
        return True
    with suppress(OptionError):  # the same may be written otherwise
        return _words(composed(replace(spec, text=text_options(spec), rules=None)).rules) == (
            _words(wanted)
        )
    return False


def _words(rules: object) -> list[object]:
    assert isinstance(rules, Composed)
    return [_parsed(part) for part in (rules.normalizer, rules.pre_tokenizer)]


def _parsed(part: str | None) -> object:
    return None if part is None else json.loads(part)
