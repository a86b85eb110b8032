"""Tokenizers whose words are those of normalizers and pre-tokenizers by name (`text_parts`)."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from wordpiece_core.errors import OptionError, opt
from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import BYTES
from wordpiece_core.text_parts import (
    GPT2,
    NORMALIZERS,
    PRE_TOKENIZERS,
    names_of_pre_tokenizers,
    pre_tokenizer_parts,
    sequence,
)
from wordpiece_core.tokenizer.files import AS_IT_IS, TokenizerSpec
from wordpiece_core.tokenizer.formats.tokenizer_json import byte_level, decoder_of
from wordpiece_core.tokenizer.formats.tokenizer_json_parts import parts
from wordpiece_core.tokenizer.models import ByteLevel, Composed, Metaspace


def composed(spec: TokenizerSpec) -> TokenizerSpec:
    """The spec of a model whose words are those of its text options, with the parts that they stand
    for as its rules: as it is read from the `tokenizer.json` that is written of it."""
    normalizer, pre_tokenizer = _parts_of(spec.text, spec.word_boundary)
    plain = replace(spec, text=AS_IT_IS)
    decoder = json.dumps(decoder_of(plain))
    rules = Composed(normalizer, pre_tokenizer, spec.word_boundary == BYTES, decoder)
    return replace(plain, rules=rules)


def _parts_of(text: TextOptions, word_boundary: str | None) -> tuple[str | None, str | None]:
    """The normalizer and the pre-tokenizer of text options, as JSON."""
    normalizer, pre_tokenizer = text.composed
    if word_boundary == BYTES:
        by_bytes = byte_level(ByteLevel(), use_regex=False)
        steps = [*pre_tokenizer_parts(text.pre_tokenizers), by_bytes]
        pre_tokenizer = sequence(steps, "pretokenizers")
    return normalizer, pre_tokenizer


def text_options(spec: TokenizerSpec) -> TextOptions:
    """The text options whose words are those of a tokenizer. OptionError if there are none."""
    if spec.rules is None:
        return spec.text
    if isinstance(spec.rules, Metaspace) and spec.rules.collapse_spaces:
        return AS_IT_IS  # its words are those between spaces, which it normalizes itself
    if not isinstance(spec.rules, Composed):
        raise OptionError(
            f"{opt.tokenizer}: its pre-tokenizer is not supported for counting; choose another"
            " tokenizer"
        )
    value = {
        "normalizer": _parsed(spec.rules.normalizer),
        "pre_tokenizer": _parsed(spec.rules.pre_tokenizer),
    }
    names = []
    for part in parts(value, "normalizer", "normalizers", "tokenizer"):
        name = next((name for name, known in NORMALIZERS.items() if known == part), None)
        if name is None:
            raise OptionError(
                f"{opt.tokenizer}: normalizer or pre-tokenizer {part['type']} is not supported"
                " for counting"
            )
        names.append(name)
    steps = parts(value, "pre_tokenizer", "pretokenizers", "tokenizer")
    if spec.rules.of_bytes:
        last = steps.pop()
        if last.get("add_prefix_space", True):
            raise OptionError(
                f"{opt.tokenizer}: a pre-tokenizer that adds a space before texts is not supported"
                " for counting"
            )
        if last.get("use_regex", True):
            steps += PRE_TOKENIZERS[GPT2]
    return TextOptions(pre_tokenizer=names_of_pre_tokenizers(steps), normalizer=names)


def splits_as(spec: TokenizerSpec, text: TextOptions) -> bool:
    """Whether a tokenizer splits text into words as text options do."""
    own = None
    with suppress(OptionError):
        own = text_options(spec)
    if not text.is_composed:
        return own is not None and own.resolved() == text.resolved()
    if not isinstance(spec.rules, Composed):
        return False
    written = [(spec.rules.normalizer, spec.rules.pre_tokenizer)]
    if own is not None:  # the same may be written otherwise
        written.append(_parts_of(own, spec.word_boundary))
    wanted = [*map(_parsed, _parts_of(text, spec.word_boundary))]
    return any([*map(_parsed, found)] == wanted for found in written)


def _parsed(part: str | None) -> object:
    return None if part is None else json.loads(part)
