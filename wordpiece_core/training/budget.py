"""How much a round of training may hold in memory."""

from __future__ import annotations

from dataclasses import dataclass

from wordpiece_core.declared import PERFORMANCE, Options
from wordpiece_core.option_types import Share, Size

TOKENS_PER_CANDIDATE, LEAST_CANDIDATES = 8, 1 << 16
# Measured (benchmarks/memory.md): bytes for each token of a run on the way to the driver and there.
BYTES_PER_TOKEN = 64
# A round over all splits needs less: bytes for each token and for each word.
BYTES_PER_SPLIT_TOKEN, BYTES_PER_SPLIT = 16, 220
SHARE_OF_PARTITION = 4  # a partition has at most 1/4 of a worker's memory


@dataclass(frozen=True, kw_only=True)
class RoundBudget(Options, section=PERFORMANCE):
    """How much a round of training may hold in memory. It does not change the result."""

    round_budget: Share = 1.0
    """Share of all split tokens that the driver may hold in a round (default: all)."""
    driver_memory: Size | None = None
    """Memory of the driver. The result does not depend on it."""

    def tokens(self, split_tokens: int) -> int:
        """The most tokens of splits, or of pieces of splits, that a round may hold."""
        by_memory = split_tokens
        if self.driver_memory is not None:
            by_memory = self.driver_memory // BYTES_PER_TOKEN
        return min(int(split_tokens * self.round_budget), by_memory)

    def candidates(self, split_tokens: int) -> int:
        """The most pairs that a round has use for: with more, their words would not fit."""
        return max(self.tokens(split_tokens) // TOKENS_PER_CANDIDATE, LEAST_CANDIDATES)

    def holds(self, split_tokens: int, splits: int) -> bool:
        """Whether a round may hold all splits: their number, and the tokens in them."""
        if self.tokens(split_tokens) >= split_tokens:
            return True
        memory, needed = self.driver_memory, bytes_of_all(split_tokens, splits)
        return self.round_budget >= 1.0 and memory is not None and needed <= memory


def bytes_of_all(split_tokens: int, splits: int) -> int:
    """About how many bytes a round over all splits takes."""
    return split_tokens * BYTES_PER_SPLIT_TOKEN + splits * BYTES_PER_SPLIT


def partitions_of(total_bytes: int, worker_memory: int | None, most: int) -> int:
    """Into how many partitions so many bytes go: into as many as leave each what a worker can hold,
    but into no more than `most`. `worker_memory`: bytes; None: one partition will do."""
    if worker_memory is None:
        return 1
    return max(min(-(-total_bytes * SHARE_OF_PARTITION // worker_memory), most), 1)
