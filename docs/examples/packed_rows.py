"""A batch of packed rows for training, in which no text attends to another one.

    rows = load_dataset("packed", split="train").with_format("numpy")
    loader = DataLoader(rows, batch_size=8, collate_fn=packed_batch)

`document_starts` of a row are the positions in its `input_ids` where a text starts, or continues
from the previous row. Tokens before the first position, such as [CLS], belong to the first text,
and tokens between two texts, such as [SEP], to the text before them. Padding, which rows with the
column `num_tokens` may have, is like one more text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def packed_batch(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Return a batch: `input_ids`, `labels`, which are -100 for padding, `position_ids`, which
    restart with each text, and `document_ids`, the number of the text in its row, all of shape
    (rows, max_length); and `cu_seqlens`, the offsets of all texts in the concatenated rows, as
    FlashAttention takes them.

    The block-diagonal attention mask is `document_ids[:, :, None] == document_ids[:, None, :]`.

    >>> batch = packed_batch([{"input_ids": [2, 7, 8, 3, 9, 3], "document_starts": [1, 4]}])
    >>> batch["position_ids"].tolist(), batch["document_ids"].tolist()
    ([[0, 1, 2, 3, 0, 1]], [[0, 0, 0, 0, 1, 1]])
    >>> batch["cu_seqlens"].tolist()
    [0, 4, 6]
    >>> padded = {"input_ids": [7, 8, 3, 0], "document_starts": [0], "num_tokens": 3}
    >>> packed_batch([padded])["labels"].tolist()
    [[7, 8, 3, -100]]
    """
    ids = np.asarray([row["input_ids"] for row in rows])
    length = ids.shape[1]
    begins = np.zeros(ids.shape, dtype=np.int32)
    for i, row in enumerate(rows):
        begins[i, np.asarray(row["document_starts"])[1:]] = 1
    begins[:, 0] = 1
    ends = np.asarray([row.get("num_tokens", length) for row in rows])
    is_padding = np.arange(length) >= ends[:, None]
    begins[ends < length, ends[ends < length]] = 1
    firsts = np.maximum.accumulate(np.where(begins, np.arange(length), 0), axis=1)
    return {
        "input_ids": ids,
        "labels": np.where(is_padding, -100, ids),
        "position_ids": np.arange(length) - firsts,
        "document_ids": begins.cumsum(axis=1) - 1,
        "cu_seqlens": np.append(np.flatnonzero(begins), ids.size).astype(np.int32),
    }
