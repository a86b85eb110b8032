"""Whether the text of a stream drifts away from the vocabulary that it is encoded with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MANY_UNKNOWN = 0.01  # the share of [UNK] in the tokens above which there is a warning
MOVED = 0.1  # the share by which tokens per word may differ from those before


def drift(before: pa.Table, row: Mapping[str, Any]) -> list[str]:
    """What is wrong with a commit, one sentence each. `before`: the commits before it; their tokens
    per word count by their tokens."""
    warnings = []
    unknown = row["unknown_tokens"] / max(row["tokens"], 1)
    if unknown > MANY_UNKNOWN:
        warnings.append(
            f"commit {row['commit']}: {unknown:.1%} of the tokens are [UNK]; does the tokenizer"
            " still fit the text?"
        )
    with_words = before.filter(pc.is_valid(before["tokens_per_word"]))
    tokens = pc.sum(with_words["tokens"]).as_py() or 0
    now = row["tokens_per_word"]
    if tokens and now is not None:
        weighted = pc.multiply(with_words["tokens_per_word"], with_words["tokens"])
        usual = pc.sum(weighted).as_py() / tokens
        if abs(now - usual) > MOVED * usual:
            warnings.append(
                f"commit {row['commit']}: {now:.3f} tokens per word, not {usual:.3f} as in the"
                " commits before; if that stays so, train a new vocabulary"
            )
    return warnings
