"""How the number of distinct words grows with the text: Heaps' law, distinct = K · words^β.

The text doubles from row to row. Its rows are drawn from all over the corpus (every 2^n-th block of
neighbours), as a larger corpus is of more sources, not of more of one. `β`: from the row above."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.count_job import count_in_memory
from benchmarks.measure import Row, number
from benchmarks.setting import Setting, megabytes, read_texts

HALVINGS = 6
BLOCKS = 1 << 10


def heaps(setting: Setting) -> Iterator[Row]:
    """Distinct words of growing text, and how many of them occur 2, 5 and 10 times at least"""
    texts = read_texts(setting.groups[setting.main_group])
    block = np.arange(len(texts)) * BLOCKS // len(texts)
    before = (0, 0)
    for halvings in range(HALVINGS, -1, -1):
        part = texts.filter(pa.array(block % (1 << halvings) == 0))
        counts = count_in_memory(part)["count"].to_numpy()
        words, distinct = int(counts.sum()), len(counts)
        growth = math.log(distinct / before[1]) / math.log(words / before[0]) if before[0] else None
        yield {
            "text": setting.main_group,
            "MB": number(megabytes(part)),
            "words": f"{words:,}",
            "distinct": f"{distinct:,}",
            "β": f"{growth:.3f}" if growth else "",
            **{f"{least} times": f"{np.mean(counts >= least):.1%}" for least in (2, 5, 10)},
        }
        before = (words, distinct)
