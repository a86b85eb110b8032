"""Loading a tokenizer for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.commands.summary import say
from pipelines.encoding.options import TokenizerOptions
from wordpiece_core import TakenAsCasedWarning, Tokenizer
from wordpiece_core.errors import collected_warnings


def load_tokenizer(options: TokenizerOptions) -> Tokenizer:
    """Load a tokenizer. A line says if it is taken in a way that changes the ids, or is slow."""
    with showing_warnings():
        return options.load_tokenizer()


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Shows the warnings about the tokenizers that the block has loaded, if it has not failed."""
    with collected_warnings() as notable:
        yield
    for warning in notable:
        is_cased = isinstance(warning, TakenAsCasedWarning)
        say(f"tokenizer {warning.fact}{' (override with --lowercase)' * is_cased}")
