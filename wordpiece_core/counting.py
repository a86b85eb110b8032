"""Count words in memory, into a table that carries the options that split its text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Annotated

import pyarrow as pa

from wordpiece_core import _kernel
from wordpiece_core.declared import Form, job
from wordpiece_core.errors import OptionError, opt, shown
from wordpiece_core.options import SegmentOptions, TextOptions
from wordpiece_core.text_parts import BERT, GPT2, SUPERWORD_PATTERNS, names_of_pre_tokenizers, split
from wordpiece_core.tokenizer.tokenizer import Texts, text_array

TEXT_KEY, WORDS_KEY = b"wordpiece.text", b"wordpiece.words"
"""Keys in the metadata of a word table, with text options as JSON: the options that split its text,
and for segments, which superwords are trained on, the options that split them into words."""
UNIT = 1 << 32  # weight that leaves counts unchanged


@dataclass(frozen=True, kw_only=True)
class CountedTexts(SegmentOptions, TextOptions):
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
    of_words, texts = options.select(TextOptions), text_array(options.texts)
    text, pattern = of_words, options.superword_pattern
    if options.superwords:
        text = joined_words(of_words, pattern)
    elif pattern is not None:
        raise OptionError(f"{opt.superword_pattern}: also set {opt.superwords}")
    most_bytes = options.limits.in_memory_table_bytes
    counter = _kernel.WordCounter(text.for_kernel(), most_bytes=most_bytes)
    tables = []
    while len(texts):
        texts = texts[counter.count(texts) :]
        tables += [batch for _, _, _, batch in counter.take(1)] if counter.is_full else []
    tables += [batch for _, _, _, batch in counter.take(1)]
    words = pa.record_batch(_kernel.weigh_sorted_words(tables, [UNIT] * len(tables), min_count=1))
    return with_text(pa.Table.from_batches([words]), text, of_words if options.superwords else None)


def joined_words(text: TextOptions, pattern: str | None = None) -> TextOptions:
    """Return the options that split text into segments, from the options that split it into words.

    Args:
        pattern: Regular expression of segments, for a pre-tokenizer without one.

    Raises OptionError if there is no pre-tokenizer for superwords.
    """
    name = text.pre_tokenizer or BERT
    patterns = SUPERWORD_PATTERNS.get(str(name)) if pattern is None else [pattern]
    if patterns is None or not text.holds_spaces:
        known = ", ".join(SUPERWORD_PATTERNS)
        raise OptionError(
            f"{opt.superwords}: not with {opt.pre_tokenizer} {shown(name)}; use one of {known}, or"
            f" a regular expression with {opt.superword_pattern}"
        )
    parts = names_of_pre_tokenizers([split(each) for each in patterns])
    try:
        return replace(text, pre_tokenizer=parts)
    except OptionError as error:
        raise OptionError(f"{opt.superword_pattern}: {shown(pattern)} is not supported") from error


def words_in_segments(text: TextOptions) -> TextOptions:
    """Return the options that split text into words, from the options that split it into segments.
    For a regular expression of segments: into the words of gpt2."""
    known = (replace(text, pre_tokenizer=name) for name in SUPERWORD_PATTERNS)
    gpt2 = replace(text, pre_tokenizer=GPT2)
    return next((words for words in known if joined_words(words) == text), gpt2)


def with_text(words: pa.Table, text: TextOptions, of_words: TextOptions | None = None) -> pa.Table:
    """Return a word table that carries the options that split its text. `of_words`: options that
    split segments into words."""
    options = {TEXT_KEY: text} | ({} if of_words is None else {WORDS_KEY: of_words})
    found = {key: json.dumps(value.to_dict()) for key, value in options.items()}
    return words.replace_schema_metadata(found)


def text_of(words: object, key: bytes = TEXT_KEY) -> TextOptions | None:
    """Return the options that split the text of a word table, if it carries them. `key`: TEXT_KEY,
    or WORDS_KEY for the options that split segments into words."""
    metadata = words.schema.metadata if isinstance(words, pa.Table | pa.RecordBatch) else None
    value = (metadata or {}).get(key)
    return None if value is None else TextOptions(**json.loads(value))
