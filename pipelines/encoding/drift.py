"""Whether the text of a stream drifts away from the vocabulary that it is encoded with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MANY_UNKNOWN = 0.01  # the share of [UNK] in the tokens above which there is a warning
MOVED = 0.1  # the share by which tokens per word may differ from those before


def drift(before: pa.Table, row: Mapping[str, Any]) -> list[str]:
    """What is wrong with an epoch, one sentence each. `before`: the rows of the epochs before it;
    their tokens per word count by their words."""
    said = []
    if row["unknown_rate"] is not None and row["unknown_rate"] > MANY_UNKNOWN:
        said.append(
            f"epoch {row['epoch']}: {row['unknown_rate']:.1%} of the tokens are [UNK]; does the"
            " tokenizer still fit the text?"
        )
    words = pc.sum(before["words"]).as_py() or 0
    now = row["tokens_per_word"]
    if words and now is not None:
        usual = pc.sum(pc.multiply(before["tokens_per_word"], before["words"])).as_py() / words
        if abs(now - usual) > MOVED * usual:
            said.append(
                f"epoch {row['epoch']}: {now:.3f} tokens per word, not {usual:.3f} as in the epochs"
                " before; if that stays so, train a new vocabulary"
            )
    return said
