"""The files from which `transformers`, `tokenizers` and `sentencepiece` load a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import storage
from wordpiece_core.storage import appears_when_closed
from wordpiece_core.tokenizer.by_class import FILES
from wordpiece_core.tokenizer.formats.configs import CHAT_TEMPLATE, chat_template, config_files
from wordpiece_core.tokenizer.formats.json_text import written
from wordpiece_core.tokenizer.formats.merges_files import merges_files
from wordpiece_core.tokenizer.formats.sentencepiece_model import SPIECE, sentencepiece_model
from wordpiece_core.tokenizer.formats.tokenizer_json import tokenizer_json
from wordpiece_core.tokenizer.models import Bpe, Unigram, WordPiece
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.vocabulary import vocabulary_text
from wordpiece_core.tokenizer.words import AS_IT_IS
from wordpiece_core.uri import join


def tokenizer_files(spec: TokenizerSpec) -> dict[str, bytes]:
    """Return the bytes of the files of a tokenizer directory by name. A tokenizer from a model of
    `sentencepiece` is written as one, because `tokenizers` would not give its ids."""
    if spec.of_sentencepiece:
        return {SPIECE: sentencepiece_model(spec)}
    configs = {name: written(value) for name, value in config_files(spec).items()}
    if (template := chat_template(spec)) is not None:
        configs[CHAT_TEMPLATE] = template.encode()
    if spec.library is not None:
        return {"tokenizer.json": spec.library.tokenizer_json.encode(), **configs}
    # In the order of writing.
    return {"tokenizer.json": written(tokenizer_json(spec)), **configs, **_of_model(spec)}


TOKENIZER_FILES = frozenset(FILES) - {"config.json"}
"""Names of all files from which any program loads a tokenizer. `config.json` belongs to the
model."""


def write_tokenizer(directory: str, spec: TokenizerSpec) -> tuple[str, ...]:
    """Write a tokenizer, replacing another one, and return the paths of its files.

    The directory has the old tokenizer until its `tokenizer.json` is deleted, and the new one as
    soon as its own exists. Between these two steps it has only configs, which cannot be loaded.
    """
    storage.check_writable("directory", directory)
    storage.make_directory(directory)
    files = tokenizer_files(spec)
    staged = {}
    if not appears_when_closed(directory):
        staged = {name: join(directory, f".wordpiece-tmp-{token_hex(8)}") for name in files}
    try:
        for name, place in staged.items():
            storage.write_bytes(place, files[name])
            storage.sync(place)
        there = {entry.name for entry in storage.entries(directory, recursive=False)}
        for name in sorted(TOKENIZER_FILES & there, key=_step, reverse=True):
            storage.delete_file(join(directory, name))
        for name in sorted(files, key=_step):
            if staged:
                storage.move(staged[name], join(directory, name))
            else:
                storage.write_bytes(join(directory, name), files[name])
    except BaseException:
        storage.delete_files(staged.values())
        raise
    storage.sync(directory)
    return tuple(join(directory, name) for name in files)


def _step(name: str) -> int:
    """Return when a file is written: configs first, then `tokenizer.json`."""
    is_config = name.endswith(("_config.json", "_map.json", ".jinja"))
    return 0 if is_config else 1 if name == "tokenizer.json" else 2


def _of_model(spec: TokenizerSpec) -> dict[str, bytes]:
    """Return the files of a model for other programs."""
    if isinstance(spec.model, WordPiece):
        return {"vocab.txt": vocabulary_text(spec.vocab, "vocab.txt").encode()}
    if isinstance(spec.model, Bpe):
        return merges_files(spec)
    assert isinstance(spec.model, Unigram)
    by_spaces = spec.words.is_metaspace or (
        spec.words.is_by_options and spec.text.resolved() == AS_IT_IS.resolved()
    )
    if by_spaces and _are_32_bits(spec.model.scores):
        return {SPIECE: sentencepiece_model(spec)}
    return {}  # sentencepiece would not give these ids


def _are_32_bits(scores: Sequence[float]) -> bool:
    """Return True if a model of sentencepiece can store scores. Reading a `tokenizer.json` may
    change their last bit."""
    given = pa.array(scores, pa.float64())
    error = pc.abs(pc.subtract(pc.cast(given, pa.float32(), safe=False).cast(pa.float64()), given))
    return bool(pc.all(pc.less_equal(error, 1e-12), min_count=0).as_py())
