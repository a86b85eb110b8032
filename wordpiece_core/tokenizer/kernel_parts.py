"""The models and rules of a tokenizer as the kernel takes them."""

from __future__ import annotations

import pyarrow as pa

from wordpiece_core import _kernel
from wordpiece_core.symbols import SPACE_MARK
from wordpiece_core.text_parts import sequence
from wordpiece_core.tokenizer.models import Bpe, ByteLevel, Composed, Metaspace, Model, Unigram

# A word begins at each mark.
AT_MARKS = {
    "type": "Split",
    "pattern": {"String": SPACE_MARK},
    "behavior": "MergedWithNext",
    "invert": False,
}


def kernel_rules(rules: ByteLevel | Metaspace | Composed | None) -> _kernel.Composed | None:
    """The rules of text, if they are not those of the text options. InputError for a part that is
    damaged, or not known."""
    if isinstance(rules, Composed):
        return _kernel.Composed(rules.normalizer, rules.pre_tokenizer, of_bytes=rules.of_bytes)
    if isinstance(rules, Metaspace):
        normalizers, pre_tokenizers = rules.normalizers, rules.pre_tokenizers
        if not rules.by_grapheme:
            options = rules.normalizer_spec | {"user_defined_symbols": []}
            normalizers, pre_tokenizers = [{"type": "SentencePiece"} | options], [AT_MARKS]
        return _kernel.Composed(
            sequence(normalizers, "normalizers"),
            sequence(pre_tokenizers, "pretokenizers"),
            of_bytes=False,
        )
    return None if rules is None else _kernel.Composed.gpt2(**vars(rules))


def kernel_model(model: Model | None) -> _kernel.Bpe | _kernel.Unigram | None:
    """The model; None for WordPiece. The encoder checks it."""
    if isinstance(model, Bpe):
        return kernel_bpe(model)
    if isinstance(model, Unigram):
        return _kernel.Unigram(
            pa.array(model.scores, pa.float64()),
            byte_fallback=model.byte_fallback,
            of_sentencepiece=model.of_sentencepiece,
            user_defined=list(model.user_defined),
        )
    return None


def kernel_bpe(model: Bpe) -> _kernel.Bpe:
    """The merges and options of byte-pair encoding."""
    left, right = (pa.array([pair[i] for pair in model.merges], pa.uint32()) for i in (0, 1))
    return _kernel.Bpe(
        left,
        right,
        word_boundary=model.word_boundary,
        byte_fallback=model.byte_fallback,
        fuse_unk=model.fuse_unk,
        ignore_merges=model.ignore_merges,
        tied=list(model.tied),
    )
