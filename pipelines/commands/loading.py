"""Loading a tokenizer for a command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.commands.summary import say
from pipelines.encoding.options import TokenizerChoice
from wordpiece_core import TakenAsCasedWarning, Tokenizer


def load_tokenizer(choice: TokenizerChoice) -> Tokenizer:
    """Loads a tokenizer. If it is taken as cased, a line says so, because that changes the ids."""
    with saying_cased():
        return choice.load()


@contextmanager
def saying_cased() -> Iterator[None]:
    """Says after the block, if it has not failed, which tokenizers it has taken as cased."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TakenAsCasedWarning)
        yield
    for warning in caught:
        if isinstance(warning.message, TakenAsCasedWarning):
            say(f"tokenizer {warning.message.fact} (--lowercase to override)")
