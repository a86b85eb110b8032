"""Write `tokenizer.json`, the file of the library `tokenizers`."""

from __future__ import annotations

from collections.abc import Sequence

from wordpiece_core.text_parts import Json
from wordpiece_core.tokenizer.models import (
    AddedToken,
    Bpe,
    PostProcessor,
    Unigram,
    WordPiece,
)
from wordpiece_core.tokenizer.parts import BERT, ROBERTA, byte_level, one_of
from wordpiece_core.tokenizer.spec import TokenizerSpec


def tokenizer_json(spec: TokenizerSpec) -> Json:
    """Return the JSON of a specification whose model is not `Library`."""
    ids = {token: i for i, token in enumerate(spec.vocab)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(token, ids[token.content]) for token in spec.added_tokens],
        "normalizer": one_of(spec.normalizer, "normalizers"),
        "pre_tokenizer": one_of(spec.pre_tokenizer, "pretokenizers"),
        "post_processor": one_of(_post_processors(spec.post_processor, ids), "processors"),
        "decoder": spec.decoder,
        "model": _model(spec, ids),
    }


def _added_token(token: AddedToken, number: int) -> Json:
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    said = {flag: getattr(token, flag) for flag in flags}
    return {"id": number, "content": token.content} | said


def _post_processors(post_processor: PostProcessor | None, ids: dict[str, int]) -> list[Json]:
    """Return the parts that trim offsets, and the part that adds tokens."""
    if post_processor is None:
        return []
    parts = [byte_level(add_prefix_space=adds, use_regex=True) for adds in post_processor.trims]
    if post_processor.single.added or post_processor.pair.added:
        parts.append((_ends if post_processor.fixed_type else template)(post_processor, ids))
    return parts


def _ends(post_processor: PostProcessor, ids: dict[str, int]) -> Json:
    """Return RobertaProcessing or BertProcessing, which give a second text a fixed type."""
    kind = ROBERTA if len(post_processor.pair.between) > 1 else BERT
    single = post_processor.single
    ends = {"sep": single.after[0][0], "cls": single.before[0][0]}
    trims = {"trim_offsets": False, "add_prefix_space": True} if kind == ROBERTA else {}
    return {"type": kind, **{name: [token, ids[token]] for name, token in ends.items()}, **trims}


def template(post_processor: PostProcessor, ids: dict[str, int]) -> Json:
    """Return a TemplateProcessing."""

    def special(tokens: Sequence[tuple[str, int]]) -> list[Json]:
        return [{"SpecialToken": {"id": token, "type_id": kind}} for token, kind in tokens]

    def sequence(name: str, kind: int) -> Json:
        return {"Sequence": {"id": name, "type_id": kind}}

    single, pair = post_processor.single, post_processor.pair
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


def _model(spec: TokenizerSpec, ids: dict[str, int]) -> Json:
    beyond = {token.content for token in spec.added_tokens if not token.in_model}
    ids = {token: i for token, i in ids.items() if token not in beyond}
    unk = spec.roles.get("unk_token")
    if isinstance(spec.model, WordPiece):
        return {
            "type": "WordPiece",
            "unk_token": unk,
            "continuing_subword_prefix": spec.model.continuing_prefix,
            "max_input_chars_per_word": spec.model.max_word_length,
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
        "end_of_word_suffix": spec.model.end_of_word_suffix,
        "fuse_unk": spec.model.fuse_unk,
        "byte_fallback": spec.model.byte_fallback,
        "ignore_merges": spec.model.ignore_merges,
        "vocab": ids,
        "merges": [[spec.vocab[left], spec.vocab[right]] for left, right in spec.model.merges],
    }
