"""SentencePiece's models: one file, of a protobuf message, with the pieces and how text is
normalized.

A model of ours is written so that `sentencepiece` makes the same pieces of raw text. A model of
`sentencepiece` is read if it is a unigram model; what would make other ids is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from wordpiece_core.errors import InputError
from wordpiece_core.reference.marks import SPACE_MARK, byte_tokens
from wordpiece_core.tokenizer.charsmap import charsmap
from wordpiece_core.tokenizer.files import AS_IT_IS, NOTHING_ADDED, TokenizerSpec
from wordpiece_core.tokenizer.formats import sentencepiece_proto as proto
from wordpiece_core.tokenizer.formats.tokenizer_json_parts import check_rules
from wordpiece_core.tokenizer.models import Metaspace, Unigram
from wordpiece_core.tokenizer.vocabulary import check_vocabulary, is_unused

SPIECE = "spiece.model"
MODEL_NAMES = (SPIECE, "tokenizer.model", "sentencepiece.bpe.model", "sentencepiece.model")
NEVER_FOUND = (proto.UNKNOWN, proto.CONTROL, proto.UNUSED)  # in a text
# The roles that such a model has, with the part of the names of its fields.
ROLES = {"unk_token": "unk", "bos_token": "bos", "eos_token": "eos", "pad_token": "pad"}
# Which role of BERT's is written as which of these, where a tokenizer has no such role itself.
INSTEAD = {"bos_token": "cls_token", "eos_token": "sep_token"}


def sentencepiece_model(spec: TokenizerSpec) -> bytes:
    """The bytes of the model of a Unigram tokenizer. Its map of characters is that of the spec's
    rules, or else does what the spec's text options do. Special tokens are control symbols:
    `sentencepiece` does not look for them in texts."""
    assert isinstance(spec.model, Unigram)
    rules = spec.rules if isinstance(spec.rules, Metaspace) else Metaspace(charsmap(spec.text))
    model = proto.model_class()()
    roles = spec.tokens_by_role
    control = {*spec.special_tokens, *roles.values()}
    of_bytes = {*byte_tokens(spec.model.byte_fallback)}
    for token, score in zip(spec.vocab, spec.model.scores, strict=True):
        kind = _kind(token, roles.get("unk_token"), control, of_bytes)
        model.pieces.add(piece=token, score=score, type=kind)
    trainer = model.trainer_spec
    trainer.model_type = proto.UNIGRAM
    trainer.vocab_size = len(spec.vocab)
    trainer.byte_fallback = spec.model.byte_fallback
    ids = {token: i for i, token in enumerate(spec.vocab)}
    for role, name in ROLES.items():
        token = roles.get(role, roles.get(INSTEAD.get(role, ""), ""))
        setattr(trainer, f"{name}_id", ids.get(token, -1))
        if token:
            setattr(trainer, f"{name}_piece", token)
    normalizer = model.normalizer_spec
    normalizer.name = "identity" if not rules.charsmap else "user_defined"
    normalizer.precompiled_charsmap = rules.charsmap
    normalizer.add_dummy_prefix = rules.prepend != "never"
    normalizer.remove_extra_whitespaces = rules.collapse_spaces
    normalizer.escape_whitespaces = True
    return bytes(model.SerializeToString(deterministic=True))


def _kind(token: str, unk: str | None, control: set[str], of_bytes: set[str]) -> int:
    if token == unk:
        return proto.UNKNOWN
    if token in control or is_unused(token):
        return proto.CONTROL
    return proto.BYTE if token in of_bytes else proto.NORMAL


def read_model(data: bytes, path: str) -> TokenizerSpec:
    """The tokenizer of a model's bytes. InputError, which names `path`, for what is no such model,
    and for one whose pieces could not be made here."""
    try:
        model = proto.parsed(data)
    except ValueError as error:
        raise InputError(f"{path}: not a model of sentencepiece") from error
    if not model.pieces:
        raise InputError(f"{path}: not a model of sentencepiece (it has no pieces)")
    _check(model, path)
    vocab = [piece.piece for piece in model.pieces]
    check_vocabulary(vocab, path, unk=None)
    kinds = [piece.type for piece in model.pieces]
    _check_kinds(vocab, kinds, model.trainer_spec.byte_fallback, path)
    scores = [piece.score for piece in model.pieces]
    if not all(math.isfinite(score) for score in scores):
        raise InputError(f"{path}: a score is not a finite number")
    normalizer = model.normalizer_spec
    rules = Metaspace(
        charsmap=normalizer.precompiled_charsmap,
        collapse_spaces=normalizer.remove_extra_whitespaces,
        prepend="always" if normalizer.add_dummy_prefix else "never",
    )
    check_rules(rules, path)
    _check_marks([t for t, kind in zip(vocab, kinds, strict=True) if kind == proto.NORMAL], path)
    return TokenizerSpec(
        vocab,
        AS_IT_IS,
        continuing_prefix="",
        more_special_tokens=tuple(
            token for token, kind in zip(vocab, kinds, strict=True) if kind in NEVER_FOUND
        ),
        model=Unigram(scores, model.trainer_spec.byte_fallback, of_sentencepiece=True),
        rules=rules,
        roles=_roles(model.trainer_spec, vocab, kinds),
        added=NOTHING_ADDED,
    )


def _check(model: Any, path: str) -> None:
    """InputError for a part that is not known here."""
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    if trainer.model_type != proto.UNIGRAM:
        kind = proto.MODEL_TYPES.get(trainer.model_type, "unknown")
        raise InputError(
            f"{path}: a {kind} model of sentencepiece; only unigram models are read (a"
            " tokenizer.json made of it can be)"
        )
    if trainer.treat_whitespace_as_suffix:
        raise InputError(f"{path}: treat_whitespace_as_suffix is set; words begin with ▁ here")
    if not normalizer.escape_whitespaces:
        raise InputError(f"{path}: escape_whitespaces is off; spaces are written as ▁ here")


def _check_kinds(
    vocab: Sequence[str], kinds: Sequence[int], byte_fallback: bool, path: str
) -> None:
    if kinds.count(proto.UNKNOWN) != 1:
        raise InputError(f"{path}: {kinds.count(proto.UNKNOWN)} unknown pieces, not one")
    if proto.USER_DEFINED in kinds:
        raise InputError(
            f"{path}: {vocab[kinds.index(proto.USER_DEFINED)]!r} is a user-defined symbol, which is"
            " found before any other piece; such symbols are not known here"
        )
    of_bytes = {token for token, kind in zip(vocab, kinds, strict=True) if kind == proto.BYTE}
    wanted = {*byte_tokens(byte_fallback)}
    if of_bytes != wanted:
        raise InputError(
            f"{path}: {len(of_bytes)} pieces of bytes, not the {len(wanted)} of a model"
            f" {'with' if byte_fallback else 'without'} byte_fallback"
        )


def _check_marks(pieces: Sequence[str], path: str) -> None:
    """InputError if a piece could reach from a word into the next one."""
    for piece in pieces:
        if SPACE_MARK in piece[1:]:
            raise InputError(
                f"{path}: the piece {piece!r} has {SPACE_MARK} behind its first character; only"
                " models trained with split_by_whitespace are known, without pieces of spaces"
            )
    if SPACE_MARK not in pieces:
        raise InputError(f"{path}: no piece {SPACE_MARK}; add it, with a low score")


def _roles(trainer: Any, vocab: Sequence[str], kinds: Sequence[int]) -> dict[str, str]:
    roles = {"unk_token": vocab[kinds.index(proto.UNKNOWN)]}
    ids = {token: i for i, token in enumerate(vocab)}
    for role, name in ROLES.items():
        token = getattr(trainer, f"{name}_piece")
        if role != "unk_token" and token in ids and kinds[ids[token]] == proto.CONTROL:
            roles[role] = token
    return roles
