"""The files from which `transformers`, `tokenizers` and `sentencepiece` load a tokenizer."""

from __future__ import annotations

from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.formats.configs import config_files
from wordpiece_core.tokenizer.formats.json_text import written
from wordpiece_core.tokenizer.formats.merges_files import merges_files
from wordpiece_core.tokenizer.formats.sentencepiece_model import SPIECE, sentencepiece_model
from wordpiece_core.tokenizer.formats.tokenizer_json import tokenizer_json
from wordpiece_core.tokenizer.models import Bpe
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
    return {SPIECE: sentencepiece_model(spec)}
