"""Specifications as JSON for work directories and datasets: a `tokenizer.json` whose model has one
more key, which the library `tokenizers` ignores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wordpiece_core.errors import InputError
from wordpiece_core.text_parts import Json
from wordpiece_core.tokenizer.formats.json_text import parse
from wordpiece_core.tokenizer.formats.tokenizer_json import tokenizer_json
from wordpiece_core.tokenizer.formats.tokenizer_json_reading import from_tokenizer_json
from wordpiece_core.tokenizer.library import library_spec
from wordpiece_core.tokenizer.models import Bpe, Unigram
from wordpiece_core.tokenizer.spec import TokenizerSpec

MORE = "wordpiece_beam"
PLACE = "tokenizer"  # in errors


def spec_to_dict(spec: TokenizerSpec) -> dict[str, Any]:
    """See `TokenizerSpec.to_dict`."""
    more: Json = {"roles": dict(spec.roles)}
    more |= {n: v for n in ("model_max_length", "config") if (v := getattr(spec, n)) is not None}
    if spec.library is not None:
        return {"model": {MORE: more | {"tokenizer_json": spec.library.tokenizer_json}}}
    if isinstance(spec.model, Bpe | Unigram) and spec.model.of_sentencepiece:
        name = "tied" if isinstance(spec.model, Bpe) else "user_defined"
        more["sentencepiece"] = {name: list(getattr(spec.model, name))}
    value = tokenizer_json(spec)
    return {**value, "model": value["model"] | {MORE: more}}


def spec_from_dict(value: Mapping[str, Any]) -> TokenizerSpec:
    """See `TokenizerSpec.from_dict`."""
    model = dict(value["model"])
    more = model.pop(MORE)
    kept = {name: more[name] for name in ("roles", "model_max_length", "config") if name in more}
    if text := more.get("tokenizer_json"):
        refusal = InputError(f"{PLACE}: a part is not supported")
        return replace(library_spec(parse(text, PLACE), text, PLACE, refusal), **kept)
    spec = from_tokenizer_json({**value, "model": model}, PLACE)
    options = more.get("sentencepiece")
    if options is not None:
        assert isinstance(spec.model, Bpe | Unigram)
        kept["model"] = replace(spec.model, of_sentencepiece=True, **options)
    return replace(spec, **kept)


def identity(spec: TokenizerSpec) -> dict[str, Any]:
    """Return everything that ids depend on, in one form for equal tokenizers."""
    value = spec_to_dict(spec)
    for name in ("model_max_length", "config"):
        value["model"][MORE].pop(name, None)
    parts = [_normal(part) for part in spec.normalizer]
    return {**value, "decoder": None, "normalizer": parts, "pre_tokenizer": spec.pre_tokenizer}


def _normal(normalizer: Json) -> Json:
    """Return a normalizer without a default that depends on another option."""
    if normalizer["type"] != "BertNormalizer" or normalizer.get("strip_accents") is not None:
        return normalizer
    return {**normalizer, "strip_accents": normalizer.get("lowercase", True)}
