"""Limits of the memory of a round of training."""

from __future__ import annotations

from dataclasses import dataclass

from wordpiece_core.declared import PERFORMANCE, Options
from wordpiece_core.option_types import Share, Size

# Measured (benchmarks/memory.md): bytes for each token of a run on the way to the driver and there.
BYTES_PER_TOKEN = 64
# A round over all splits needs less: bytes for each token and for each word.
BYTES_PER_SPLIT_TOKEN, BYTES_PER_SPLIT = 16, 220
SHARE_OF_PARTITION = 4  # a partition has at most 1/4 of a worker's memory


@dataclass(frozen=True, kw_only=True)
class RoundBudget(Options, section=PERFORMANCE):
    """Limits of the memory of a round. They do not change the result."""

    round_budget: Share = 1.0
    """Share of all split tokens that the driver may hold in a round (default: all)."""
    driver_memory: Size | None = None
    """Memory of the driver. The result does not depend on it."""

    def tokens(self, split_tokens: int) -> int:
        """Maximum number of tokens of segmentations, or of fragments, in a round."""
        by_memory = split_tokens
        if self.driver_memory is not None:
            by_memory = self.driver_memory // BYTES_PER_TOKEN
        return min(int(split_tokens * self.round_budget), by_memory)

    def candidates(self, split_tokens: int) -> int:
        """Maximum number of candidate pairs of a round. With more pairs, their words would not
        fit."""
        tokens, limits = self.tokens(split_tokens), self.limits
        return max(tokens // limits.tokens_per_candidate, limits.least_candidates)

    def holds(self, split_tokens: int, splits: int) -> bool:
        """Return True if a round may hold all segmentations: their number, and their tokens."""
        if self.tokens(split_tokens) >= split_tokens:
            return True
        memory, needed = self.driver_memory, bytes_of_all(split_tokens, splits)
        return self.round_budget >= 1.0 and memory is not None and needed <= memory


def bytes_of_all(split_tokens: int, splits: int) -> int:
    """Return the approximate memory of a round over all segmentations."""
    return split_tokens * BYTES_PER_SPLIT_TOKEN + splits * BYTES_PER_SPLIT


def partitions_of(total_bytes: int, worker_memory: int | None, most: int) -> int:
    """Return the number of partitions for this number of bytes, so that a worker can hold each, but
    at most `most`. `worker_memory`: bytes; None for one partition."""
    if worker_memory is None:
        return 1
    return max(min(-(-total_bytes * SHARE_OF_PARTITION // worker_memory), most), 1)
