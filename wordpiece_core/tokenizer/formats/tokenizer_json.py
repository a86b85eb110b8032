"""Writing `tokenizer.json`: the file of `tokenizers`, from which it gives the ids of ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from wordpiece_core.symbols import BYTES, SPACE_MARK, WORD_END
from wordpiece_core.text_parts import GPT2
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.formats.json_text import Json
from wordpiece_core.tokenizer.models import (
    AddedToken,
    Bpe,
    ByteLevel,
    Composed,
    Metaspace,
    Template,
    Unigram,
    metaspace,
)

ADDED_TOKEN_FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
PRE_TOKENIZER_TYPES = {"bert": "BertPreTokenizer", "whitespace": "WhitespaceSplit"}
ROBERTA, BERT = "RobertaProcessing", "BertProcessing"


def tokenizer_json(spec: TokenizerSpec) -> Json:
    """The JSON of a spec whose model is not of the library. Ids of `tokenizers` are those of the
    spec's model."""
    ids = {token: i for i, token in enumerate(spec.vocab)}
    otherwise = spec.tokens_found_otherwise
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            _added_token(otherwise.get(token) or AddedToken(token), ids[token])
            for token in sorted(spec.special_tokens, key=ids.__getitem__)
        ],
        "normalizer": _normalizer(spec),
        "pre_tokenizer": (
            _composed(spec, "pre_tokenizer")
            if isinstance(spec.rules, Composed)
            else _one_of(_pre_tokenizers(spec), "pretokenizers")
        ),
        "post_processor": _one_of(_post_processors(spec, ids), "processors"),
        "decoder": decoder_of(spec),
        "model": _model(spec, ids),
    }


def _added_token(token: AddedToken, number: int) -> Json:
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    said = {flag: getattr(token, flag) for flag in flags}
    return {"id": number, "content": token.content} | said


def _one_of(parts: Sequence[Json], name: str) -> Json | None:
    """Nothing, a part, or a sequence of parts."""
    if len(parts) > 1:
        return {"type": "Sequence", name: list(parts)}
    return parts[0] if parts else None


def _byte_level(spec: TokenizerSpec) -> ByteLevel | None:
    """How `tokenizers` puts spaces before words of bytes; None if words are not of bytes."""
    if spec.word_boundary != BYTES:
        return None
    if isinstance(spec.rules, ByteLevel):
        return spec.rules
    if spec.text.pre_tokenizer == GPT2:
        return ByteLevel()
    return ByteLevel(add_prefix_space=True)


def _composed(spec: TokenizerSpec, part: str) -> Json | None:
    """A part that the rules have as JSON."""
    text = getattr(spec.rules, part)
    return None if text is None else json.loads(text)


def _normalizer(spec: TokenizerSpec) -> Json | None:
    if isinstance(spec.rules, Composed):
        return _composed(spec, "normalizer")
    if isinstance(spec.rules, Metaspace):
        return _one_of(spec.rules.normalizers, "normalizers")
    if spec.text.pre_tokenizer == GPT2:
        return None
    text = asdict(spec.text)
    del text["pre_tokenizer"], text["normalizer"]
    return {"type": "BertNormalizer", **text}


def _pre_tokenizers(spec: TokenizerSpec) -> list[Json]:
    if isinstance(spec.rules, Metaspace):
        return spec.rules.pre_tokenizers
    words = PRE_TOKENIZER_TYPES.get(str(spec.text.pre_tokenizer))
    parts: list[Json] = [{"type": words}] if words else []
    bytes_ = _byte_level(spec)
    if bytes_ is not None:
        parts.append(byte_level(bytes_, use_regex=words is None))
    elif spec.word_boundary == SPACE_MARK:
        parts.append(metaspace("always", split=False))
    return parts


def byte_level(rules: ByteLevel, *, use_regex: bool) -> Json:
    """The part that writes bytes as characters, and splits as GPT-2 does if `use_regex`."""
    return {
        "type": "ByteLevel",
        "add_prefix_space": rules.add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _post_processors(spec: TokenizerSpec, ids: dict[str, int]) -> list[Json]:
    """What is done with the tokens of a text: offsets without the space, and tokens around it."""
    around = spec.around
    parts = [
        byte_level(ByteLevel(add_prefix_space), use_regex=True)
        for add_prefix_space in spec.offset_trimming
    ]
    if around is not None and (around.single.added or around.pair.added):
        parts.append((_of_ends if around.fixed_type else template)(around, ids))
    return parts


def _of_ends(around: Template, ids: dict[str, int]) -> Json:
    """RobertaProcessing or BertProcessing, which alone give a second text a fixed type."""
    kind = ROBERTA if len(around.pair.between) > 1 else BERT
    ends = {"sep": around.single.after[0][0], "cls": around.single.before[0][0]}
    trims = {"trim_offsets": False, "add_prefix_space": True} if kind == ROBERTA else {}
    return {"type": kind, **{name: [token, ids[token]] for name, token in ends.items()}, **trims}


def template(around: Template, ids: dict[str, int]) -> Json:
    """What is put around a text, and around two."""

    def special(tokens: Sequence[tuple[str, int]]) -> list[Json]:
        return [{"SpecialToken": {"id": token, "type_id": kind}} for token, kind in tokens]

    def sequence(name: str, kind: int) -> Json:
        return {"Sequence": {"id": name, "type_id": kind}}

    single, pair = around.single, around.pair
    used = sorted({token for token, _ in (*single.added, *pair.added)}, key=ids.__getitem__)
    return {
        "type": "TemplateProcessing",
        "single": [
            *special(single.before),
            sequence("A", single.types[0]),
            *special(single.after),
        ],
        "pair": [
            *special(pair.before),
            sequence("A", pair.types[0]),
            *special(pair.between),
            sequence("B", pair.types[1]),
            *special(pair.after),
        ],
        "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in used},
    }


def decoder_of(spec: TokenizerSpec) -> Json | None:
    """Return the part that makes text of tokens again."""
    if spec.decoder is not None:
        decoder: Json | None = json.loads(spec.decoder)
        return decoder
    if isinstance(spec.rules, Composed):
        return _composed(spec, "decoder")
    if spec.model is None:
        return {"type": "WordPiece", "prefix": spec.continuing_prefix, "cleanup": True}
    if spec.word_boundary == BYTES:
        return byte_level(ByteLevel(add_prefix_space=True), use_regex=True)
    if spec.word_boundary == WORD_END:
        return {"type": "BPEDecoder", "suffix": WORD_END}
    prepend = spec.rules.prepend if isinstance(spec.rules, Metaspace) else "always"
    mark = [metaspace(prepend, split=True)] if spec.word_boundary == SPACE_MARK else []
    has_fallback = isinstance(spec.model, Bpe | Unigram) and spec.model.byte_fallback
    fallback = [{"type": "ByteFallback"}] if has_fallback else []
    return _one_of([*fallback, *mark], "decoders")


def _model(spec: TokenizerSpec, ids: dict[str, int]) -> Json:
    otherwise = spec.tokens_found_otherwise
    ids = {t: i for t, i in ids.items() if t not in otherwise or otherwise[t].in_model}
    unk = spec.tokens_by_role.get("unk_token")
    if spec.model is None:
        return {
            "type": "WordPiece",
            "unk_token": unk,
            "continuing_subword_prefix": spec.continuing_prefix,
            "max_input_chars_per_word": spec.max_word_length,
            "vocab": ids,
        }
    if isinstance(spec.model, Unigram):
        return {
            "type": "Unigram",
            "unk_id": None if unk is None else ids[unk],
            "vocab": [[t, spec.model.scores[i]] for t, i in ids.items()],
            "byte_fallback": spec.model.byte_fallback,
        }
    assert isinstance(spec.model, Bpe)
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unk,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": WORD_END if spec.model.word_boundary == WORD_END else None,
        "fuse_unk": spec.model.fuse_unk,
        "byte_fallback": spec.model.byte_fallback,
        "ignore_merges": spec.model.ignore_merges,
        "vocab": ids,
        "merges": [[spec.vocab[left], spec.vocab[right]] for left, right in spec.model.merges],
    }
