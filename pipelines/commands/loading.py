"""Loading a tokenizer for a command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.commands.summary import say
from pipelines.encoding.options import TokenizerChoice
from wordpiece_core import TakenAsCasedWarning, Tokenizer
from wordpiece_core.errors import TokenizerWarning


def load_tokenizer(choice: TokenizerChoice) -> Tokenizer:
    """Loads a tokenizer. A line says if it is taken in a way that changes the ids, or is slow."""
    with showing_warnings():
        return choice.load()


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Shows the warnings about the tokenizers that the block has loaded, if it has not failed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TokenizerWarning)
        yield
    for warning in caught:
        if isinstance(warning.message, TokenizerWarning):
            is_cased = isinstance(warning.message, TakenAsCasedWarning)
            say(f"tokenizer {warning.message.fact}{' (override with --lowercase)' * is_cased}")
