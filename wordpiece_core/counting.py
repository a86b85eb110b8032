"""Count words in memory, into a table that carries the options that split its text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Annotated

import pyarrow as pa

from wordpiece_core import _kernel
from wordpiece_core.declared import Form, job
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.options import TextOptions
from wordpiece_core.text_parts import SUPERWORD_PATTERNS, names_of_pre_tokenizers, split
from wordpiece_core.tokenizer.tokenizer import Texts, text_array

TEXT_KEY = b"wordpiece.text"
"""Key of the text options in the metadata of a word table, as JSON."""
UNIT = 1 << 32  # weight that leaves counts unchanged


@dataclass(frozen=True, kw_only=True)
class CountedTexts(TextOptions):
    """Arguments of `count_words`."""

    texts: Annotated[Texts, Form("", check=lambda value: value)] = field(kw_only=False)
    """Texts: a list, an Arrow array, or one string. Nulls are skipped."""
    superwords: bool = False
    """Count words with single spaces between them as one, to train superwords."""


@job(CountedTexts)
def count_words(options: CountedTexts) -> pa.Table:
    """Count the words of texts in memory. Returns a table of `word: string` and `count: int64`,
    ordered by count (descending), then by word, which carries the text options for `train`.

    Raises:
        OptionError: For a wrong option.
        InputError: For a value that is not text.

    >>> words = count_words(["Hug a pug", "Hug", None], lowercase=False)
    >>> words.to_pylist()
    [{'word': 'Hug', 'count': 2}, {'word': 'a', 'count': 1}, {'word': 'pug', 'count': 1}]
    """
    text, texts = options.select(TextOptions), text_array(options.texts)
    if options.superwords:
        text = joined_words(text)
    most_bytes = options.limits.in_memory_table_bytes
    counter = _kernel.WordCounter(text.for_kernel(), most_bytes=most_bytes)
    tables = []
    while len(texts):
        texts = texts[counter.count(texts) :]
        tables += [batch for _, _, _, batch in counter.take(1)] if counter.is_full else []
    tables += [batch for _, _, _, batch in counter.take(1)]
    words = pa.record_batch(_kernel.weigh_sorted_words(tables, [UNIT] * len(tables), min_count=1))
    return with_text(pa.Table.from_batches([words]), text)


def joined_words(text: TextOptions) -> TextOptions:
    """Return the options that split text into segments, from the options that split it into words.

    Raises OptionError if there is no pre-tokenizer for superwords.
    """
    patterns = SUPERWORD_PATTERNS.get(str(text.pre_tokenizer))
    if patterns is None:
        known = ", ".join(SUPERWORD_PATTERNS)
        raise OptionError(
            f"{opt.superwords}: not with {opt.pre_tokenizer} {text.pre_tokenizer or 'bert'}; use"
            f" one of {known}"
        )
    return replace(text, pre_tokenizer=names_of_pre_tokenizers([split(p) for p in patterns]))


def with_text(words: pa.Table, text: TextOptions) -> pa.Table:
    """Return a word table that carries the options that split its text."""
    return words.replace_schema_metadata({TEXT_KEY: json.dumps(text.to_dict())})


def text_of(words: object) -> TextOptions | None:
    """Return the options that split the text of a word table, if it carries them."""
    metadata = words.schema.metadata if isinstance(words, pa.Table | pa.RecordBatch) else None
    value = (metadata or {}).get(TEXT_KEY)
    return None if value is None else TextOptions(**json.loads(value))
