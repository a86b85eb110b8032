"""Loading a tokenizer for a command."""

from __future__ import annotations

import sys
import warnings

from wordpiece_core import TakenAsCasedWarning, Tokenizer


def load_tokenizer(path: str, *, unk_scope: str, lowercase: bool | None) -> Tokenizer:
    """Loads a tokenizer. What was decided for it is said, as it changes the ids."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TakenAsCasedWarning)
        tokenizer = Tokenizer.load(path, unk_scope=unk_scope, lowercase=lowercase)
    for warning in caught:
        if isinstance(warning.message, TakenAsCasedWarning):
            said = f"{warning.message.fact} (--lowercase to override)"
            print(f"wordpiece: tokenizer {said}", file=sys.stderr)
    return tokenizer
