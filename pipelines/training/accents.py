"""A look at the first texts of a training: whether lowercasing takes accents from many words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.counting.options import CountOptions
from pipelines.files.input_files import InputFile
from pipelines.files.inputs import plan, read_texts
from wordpiece_core import TextOptions, _kernel

FEWEST = 0.01  # of the words: fewer are foreign ones in text that has no accents
MOST_TEXTS = 10_000


def accents_warning(files: Sequence[InputFile], counting: CountOptions) -> str | None:
    """The warning if accents are removed because text is lowercased, and many words of the first
    file have some."""
    text = counting.text
    if not text.lowercase or text.strip_accents is not None or text.is_composed:
        return None
    for part in plan(files[:1], counting.text_column)[:1]:
        first = next(read_texts(part, counting.text_column), None)
        return None if first is None else _warning(first.texts.slice(0, MOST_TEXTS), text)
    return None


def _warning(texts: pa.Array, text: TextOptions) -> str | None:
    kept = _words(texts, replace(text, strip_accents=False))
    stripped = _words(texts, text)
    if not len(kept) or len(kept) != len(stripped):
        return None
    differ = pc.not_equal(kept, stripped)
    if pc.sum(differ).as_py() < FEWEST * len(kept):
        return None
    first = pc.index(differ, value=True).as_py()
    written = _words(texts, replace(text, lowercase=False, strip_accents=False))
    word = written if len(written) == len(kept) else kept
    return (
        f"lowercasing also removes accents: {word[first]} becomes {stripped[first]};"
        f" `strip_accents=False` keeps them"
    )


def _words(texts: pa.Array, text: TextOptions) -> pa.Array:
    return pa.array(_kernel.pre_tokenize(texts, text.for_kernel())).flatten()
