"""Tokenizers whose words are those of normalizers and pre-tokenizers by name (`text_parts`)."""

from __future__ import annotations

import json
from dataclasses import replace

from wordpiece_core.options import TextOptions
from wordpiece_core.reference.marks import BYTES
from wordpiece_core.text_parts import pre_tokenizer_parts, sequence
from wordpiece_core.tokenizer.files import AS_IT_IS, TokenizerSpec
from wordpiece_core.tokenizer.formats.tokenizer_json import tokenizer_json
from wordpiece_core.tokenizer.models import Composed

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
        parts = pre_tokenizer_parts(spec.text.pre_tokenizers)
        pre_tokenizer = sequence([*parts, BY_BYTES], "pretokenizers")
    decoder = json.dumps(tokenizer_json(replace(spec, text=AS_IT_IS))["decoder"])
    rules = Composed(normalizer, pre_tokenizer, of_bytes, decoder)
    return replace(spec, text=AS_IT_IS, rules=rules)


def splits_as(spec: TokenizerSpec, text: TextOptions) -> bool:
    """Whether a tokenizer splits text into words as text options do."""
    if not text.is_composed:
        return spec.rules is None and spec.text.resolved() == text.resolved()
    wanted = composed(replace(spec, text=text, rules=None)).rules
    return (
        isinstance(spec.rules, Composed)
        and isinstance(wanted, Composed)
        and all(
            _parsed(getattr(spec.rules, name)) == _parsed(getattr(wanted, name))
            for name in ("normalizer", "pre_tokenizer")
        )
    )


def _parsed(part: str | None) -> object:
    return None if part is None else json.loads(part)
