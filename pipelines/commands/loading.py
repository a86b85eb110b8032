"""Loading a tokenizer for a command."""

from __future__ import annotations

import warnings

from pipelines.commands.summary import say
from pipelines.encoding.options import TokenizerChoice
from wordpiece_core import TakenAsCasedWarning, Tokenizer


def load_tokenizer(choice: TokenizerChoice) -> Tokenizer:
    """Loads a tokenizer. If it is taken as cased, a line says so, because that changes the ids."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TakenAsCasedWarning)
        tokenizer = choice.load()
    for warning in caught:
        if isinstance(warning.message, TakenAsCasedWarning):
            say(f"tokenizer {warning.message.fact} (--lowercase to override)")
    return tokenizer
