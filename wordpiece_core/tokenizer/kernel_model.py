"""Models as the kernel takes them."""

from __future__ import annotations

import pyarrow as pa

from wordpiece_core import _kernel
from wordpiece_core.tokenizer.models import Bpe, Unigram
from wordpiece_core.tokenizer.spec import TokenizerSpec


def kernel_model(spec: TokenizerSpec) -> _kernel.Bpe | _kernel.Unigram | None:
    """Return the model of a tokenizer; None for WordPiece. The encoder checks it."""
    if isinstance(spec.model, Bpe):
        return kernel_bpe(spec.model, spec.word_boundary)
    if isinstance(spec.model, Unigram):
        return _kernel.Unigram(
            pa.array(spec.model.scores, pa.float64()),
            byte_fallback=spec.model.byte_fallback,
            of_sentencepiece=spec.model.of_sentencepiece,
            user_defined=list(spec.model.user_defined),
        )
    return None


def kernel_bpe(model: Bpe, word_boundary: str | None) -> _kernel.Bpe:
    """Return the merges and options of byte-pair encoding."""
    left, right = (pa.array([pair[i] for pair in model.merges], pa.uint32()) for i in (0, 1))
    return _kernel.Bpe(
        left,
        right,
        word_boundary=word_boundary,
        byte_fallback=model.byte_fallback,
        fuse_unk=model.fuse_unk,
        ignore_merges=model.ignore_merges,
        tied=list(model.tied),
    )
