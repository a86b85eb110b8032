"""Models of SentencePiece: one file with a protobuf message, which has the pieces and the
normalizer.

Our models are written so that `sentencepiece` finds the same pieces in raw text. Unigram and bpe
models of `sentencepiece` are read, and models with other ids are refused.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError
from wordpiece_core.symbols import SPACE_MARK, byte_tokens
from wordpiece_core.text_parts import Json
from wordpiece_core.tokenizer.formats import sentencepiece_proto as proto
from wordpiece_core.tokenizer.models import AddedToken, Bpe, Unigram
from wordpiece_core.tokenizer.parts import (
    AT_MARKS,
    SENTENCEPIECE,
    charsmap,
    sentencepiece_normalizer,
    types,
)
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.vocabulary import check_vocabulary, is_unused
from wordpiece_core.tokenizer.words import check_words, words_of

SPIECE = "spiece.model"
MODEL_NAMES = (SPIECE, "tokenizer.model", "sentencepiece.bpe.model", "sentencepiece.model")
NEVER_FOUND = (proto.UNKNOWN, proto.CONTROL, proto.UNUSED)  # types that are never found in texts
# Roles of a model, with their names in its fields.
ROLES = {"unk_token": "unk", "bos_token": "bos", "eos_token": "eos", "pad_token": "pad"}
# BERT's roles that are written if a tokenizer lacks these roles.
INSTEAD = {"bos_token": "cls_token", "eos_token": "sep_token"}


def sentencepiece_model(spec: TokenizerSpec) -> bytes:
    """Return the bytes of the model of a Unigram tokenizer, or of a tokenizer from such a model.
    Only a tokenizer from a model with a character map is written with one. Special tokens are
    control symbols, which `sentencepiece` does not find in texts."""
    assert isinstance(spec.model, Unigram | Bpe)
    model = proto.new_model()
    roles = spec.roles
    user_defined = user_defined_symbols(spec)
    control = {*spec.special_tokens, *roles.values()} - user_defined
    of_bytes = {*byte_tokens(spec.model.byte_fallback)}
    for token, score in zip(spec.vocab, _scores(spec), strict=True):
        kind = _kind(token, roles.get("unk_token"), control, of_bytes)
        model.pieces.add(
            piece=token, score=score, type=proto.USER_DEFINED if token in user_defined else kind
        )
    trainer = model.trainer_spec
    trainer.model_type = proto.UNIGRAM if isinstance(spec.model, Unigram) else proto.BPE
    trainer.vocab_size = len(spec.vocab)
    trainer.byte_fallback = spec.model.byte_fallback
    ids = {token: i for i, token in enumerate(spec.vocab)}
    for role, name in ROLES.items():
        token = roles.get(role, roles.get(INSTEAD.get(role, ""), ""))
        setattr(trainer, f"{name}_id", ids.get(token, -1))
        if token:
            setattr(trainer, f"{name}_piece", token)
    options = normalizer_options(spec)
    normalizer = model.normalizer_spec
    normalizer.precompiled_charsmap = b64decode(options["precompiled_charsmap"])
    normalizer.name = "user_defined" if normalizer.precompiled_charsmap else "identity"
    for name in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"):
        setattr(normalizer, name, options[name])
    trainer.treat_whitespace_as_suffix = options["treat_whitespace_as_suffix"]
    return bytes(model.SerializeToString(deterministic=True))


def _scores(spec: TokenizerSpec) -> Sequence[float]:
    """Return the scores by id. Only their order matters for BPE: the token of the first merge has
    the best."""
    if isinstance(spec.model, Unigram):
        return spec.model.scores
    assert isinstance(spec.model, Bpe)
    scores, tied, score = {}, {*spec.model.tied}, 0.0
    for at, (left, right) in enumerate(spec.model.merges):
        score -= at not in tied
        scores[spec.vocab[left] + spec.vocab[right]] = score
    return [scores.get(token, 0.0) for token in spec.vocab]


def user_defined_symbols(spec: TokenizerSpec) -> set[str]:
    """Return the user-defined symbols of a model of sentencepiece."""
    if isinstance(spec.model, Unigram):
        return {spec.vocab[i] for i in spec.model.user_defined}
    return {token.content for token in spec.added_tokens if token.normalized}


def normalizer_options(spec: TokenizerSpec) -> dict[str, Any]:
    """Return the options of the normalizer, under their names in sentencepiece."""
    if types(spec.normalizer) == [SENTENCEPIECE]:
        return spec.normalizer[0]
    words = spec.words
    scheme = words.pre_tokenizers[-1]["prepend_scheme"] if words.is_metaspace else "always"
    compiled = [charsmap(p, "normalizer") for p in words.normalizers if p["type"] == "Precompiled"]
    return sentencepiece_normalizer(
        *compiled,
        add_dummy_prefix=scheme != "never",
        remove_extra_whitespaces=words.collapses_spaces or not words.is_metaspace,
    )


def _kind(token: str, unk: str | None, control: set[str], of_bytes: set[str]) -> int:
    if token == unk:
        return proto.UNKNOWN
    if token in control or is_unused(token):
        return proto.CONTROL
    return proto.BYTE if token in of_bytes else proto.NORMAL


def read_model(data: bytes, path: str) -> TokenizerSpec:
    """Return the tokenizer of the bytes of a model. Raises InputError, which names `path`, for
    other bytes, and for a model with other ids."""
    try:
        model = proto.parsed(data)
    except ValueError as error:
        raise InputError(f"{path}: not a sentencepiece model") from error
    if not model.pieces:
        raise InputError(f"{path}: not a sentencepiece model (it has no pieces)")
    vocab = [piece.piece for piece in model.pieces]
    check_vocabulary(vocab, path, unk=None)
    if "" in vocab:
        raise InputError(f"{path}: piece {vocab.index('')} is empty")
    kinds = [piece.type for piece in model.pieces]
    _check_kinds(vocab, kinds, model.trainer_spec.byte_fallback, path)
    user_defined = [i for i, kind in enumerate(kinds) if kind == proto.USER_DEFINED]
    symbols = [vocab[i] for i in user_defined]
    hidden = {token for token, kind in zip(vocab, kinds, strict=True) if kind in NEVER_FOUND}
    of_unigram = model.trainer_spec.model_type == proto.UNIGRAM
    if of_unigram or model.trainer_spec.model_type == proto.BPE:
        fallback = model.trainer_spec.byte_fallback
        found: Unigram | Bpe
        if of_unigram:
            found, symbols_in_texts = (
                Unigram(_finite_scores(model, path), fallback, True, user_defined),
                set(),
            )
        else:
            found, symbols_in_texts = _bpe(model, path), {*symbols}
        is_by_words = of_unigram and not symbols and _is_by_words(model)
        spec = TokenizerSpec(
            vocab,
            found,
            (_normalizer(model, symbols),),
            (AT_MARKS,) if is_by_words else (),
            added_tokens=tuple(
                AddedToken(token)
                if token in hidden
                else AddedToken(token, normalized=True, special=False)
                for token in vocab
                if token in hidden or token in symbols_in_texts
            ),
            roles=_roles(model.trainer_spec, vocab, kinds),
        )
        check_words(words_of(spec, path), path)
        return spec
    kind = proto.MODEL_TYPES.get(model.trainer_spec.model_type, "unknown")
    raise InputError(
        f"{path}: a sentencepiece {kind} model; only unigram and bpe models are supported"
    )


def _finite_scores(model: Any, path: str) -> list[float]:
    scores = [piece.score for piece in model.pieces]
    if not all(math.isfinite(score) for score in scores):
        raise InputError(f"{path}: a score is not a finite number")
    return scores


def _bpe(model: Any, path: str) -> Bpe:
    """Return the merges that build the pieces of a bpe model, which has scores instead of
    merges."""
    scores = _finite_scores(model, path)
    for piece in model.pieces:
        if piece.type == proto.UNUSED:
            raise InputError(
                f"{path}: the piece {piece.piece!r} is unused: sentencepiece may split it"
                " again, which is"
                " not supported here"
            )
    pieces = [piece.piece if piece.type == proto.NORMAL else "" for piece in model.pieces]
    known = {piece for piece in pieces if len(piece) == 1}
    for piece in pieces:
        if not known.issuperset(piece):
            missing = next(character for character in piece if character not in known)
            raise InputError(
                f"{path}: piece {piece!r} contains {missing!r}, which is not a piece; add it"
            )
    places = {score: rank for rank, score in enumerate(sorted({*scores}, reverse=True))}
    ranks = [places[score] for score in scores]
    merges = _kernel.merges_of_ranks([p.encode() for p in pieces], ranks, by_character=True)
    ids = {piece: i for i, piece in enumerate(pieces)}
    made = [ranks[ids[pieces[left] + pieces[right]]] for left, right in merges]
    tied = [at for at, (one, next_) in enumerate(pairwise(made), 1) if one == next_]
    fallback = model.trainer_spec.byte_fallback
    return Bpe(merges, None, fallback, fuse_unk=True, of_sentencepiece=True, tied=tied)


def _is_by_words(model: Any) -> bool:
    """Return True if no piece crosses words, so that each word is a text of its own."""
    normalizer = model.normalizer_spec
    ordinary = [piece.piece for piece in model.pieces if piece.type == proto.NORMAL]
    return bool(
        SPACE_MARK in ordinary
        and not any(SPACE_MARK in piece[1:] for piece in ordinary)
        and normalizer.escape_whitespaces
        and not model.trainer_spec.treat_whitespace_as_suffix
    )


def _normalizer(model: Any, symbols: Sequence[str]) -> Json:
    """Return the normalizer of a model as a part."""
    normalizer = model.normalizer_spec
    return sentencepiece_normalizer(
        normalizer.precompiled_charsmap,
        add_dummy_prefix=normalizer.add_dummy_prefix,
        remove_extra_whitespaces=normalizer.remove_extra_whitespaces,
        escape_whitespaces=normalizer.escape_whitespaces,
        treat_whitespace_as_suffix=model.trainer_spec.treat_whitespace_as_suffix,
        user_defined_symbols=symbols,
    )


def _check_kinds(
    vocab: Sequence[str], kinds: Sequence[int], byte_fallback: bool, path: str
) -> None:
    if kinds.count(proto.UNKNOWN) != 1:
        raise InputError(f"{path}: {kinds.count(proto.UNKNOWN)} unknown pieces, not one")
    of_bytes = {token for token, kind in zip(vocab, kinds, strict=True) if kind == proto.BYTE}
    wanted = {*byte_tokens(byte_fallback)}
    if of_bytes != wanted:
        raise InputError(
            f"{path}: {len(of_bytes)} byte pieces instead of {len(wanted)} for a model"
            f" {'with' if byte_fallback else 'without'} byte_fallback"
        )


def _roles(trainer: Any, vocab: Sequence[str], kinds: Sequence[int]) -> dict[str, str]:
    roles = {"unk_token": vocab[kinds.index(proto.UNKNOWN)]}
    ids = {token: i for i, token in enumerate(vocab)}
    for role, name in ROLES.items():
        token = getattr(trainer, f"{name}_piece")
        if role != "unk_token" and token in ids and kinds[ids[token]] == proto.CONTROL:
            roles[role] = token
    return roles
