"""BERT's normalizer and pre-tokenizer as a map of characters, for SentencePiece's models."""

from __future__ import annotations

from wordpiece_core import _kernel
from wordpiece_core.options import TextOptions


def charsmap(text: TextOptions) -> bytes:
    """The `precompiled_charsmap` with which sentencepiece splits text as these options do, with
    `remove_extra_whitespaces` and `add_dummy_prefix`: what it normalizes a text to is the words of
    the options, with ▁ before each. The same options give the same bytes.

    Three things a map cannot say. With `strip_accents`, a few combining marks are kept; where
    several stand in a row, sentencepiece leaves them in the order of the text. It does not drop
    U+0000. And a ▁ that is in the text itself is to sentencepiece as the mark of a space: one that
    begins a word has another before it, and one at the end of a text is dropped.

    OptionError for `pre_tokenizer` gpt2, whose words no map gives.
    """
    return _kernel.compile_charsmap(text.for_kernel())
