"""The files from which `transformers`, `tokenizers` and `sentencepiece` load a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core.tokenizer.files import AS_IT_IS, TokenizerSpec
from wordpiece_core.tokenizer.formats.configs import config_files
from wordpiece_core.tokenizer.formats.json_text import written
from wordpiece_core.tokenizer.formats.merges_files import merges_files
from wordpiece_core.tokenizer.formats.sentencepiece_model import SPIECE, sentencepiece_model
from wordpiece_core.tokenizer.formats.tokenizer_json import tokenizer_json
from wordpiece_core.tokenizer.models import Bpe, Metaspace, Unigram
from wordpiece_core.tokenizer.vocabulary import vocabulary_text


def tokenizer_files(spec: TokenizerSpec) -> dict[str, bytes]:
    """The bytes of the files of a tokenizer directory, by name. A tokenizer that was read from a
    model of `sentencepiece` is written as one: `tokenizers` would not give its ids."""
    if spec.of_sentencepiece:
        return {SPIECE: sentencepiece_model(spec)}
    configs = {name: written(value) for name, value in config_files(spec).items()}
    if spec.library is not None:
        return {"tokenizer.json": spec.library.tokenizer_json.encode(), **configs}
    # In the order of writing: the first alone says how text is handled.
    return {"tokenizer.json": written(tokenizer_json(spec)), **configs, **_of_model(spec)}


def _of_model(spec: TokenizerSpec) -> dict[str, bytes]:
    """The files that other programs know for a model."""
    if spec.model is None:
        return {"vocab.txt": vocabulary_text(spec.vocab, "vocab.txt").encode()}
    if isinstance(spec.model, Bpe):
        return merges_files(spec)
    assert isinstance(spec.model, Unigram)
    by_spaces = isinstance(spec.rules, Metaspace) or (
        spec.rules is None and spec.text.resolved() == AS_IT_IS.resolved()
    )
    if by_spaces and _are_32_bits(spec.model.scores):
        return {SPIECE: sentencepiece_model(spec)}
    return {}  # sentencepiece would not give these ids


def _are_32_bits(scores: Sequence[float]) -> bool:
    """Whether a model of sentencepiece can hold scores, but for what reading a `tokenizer.json`
    makes of their last bit."""
    given = pa.array(scores, pa.float64())
    error = pc.abs(pc.subtract(pc.cast(given, pa.float32(), safe=False).cast(pa.float64()), given))
    return bool(pc.all(pc.less_equal(error, 1e-12), min_count=0).as_py())
