"""What a round of training may hold."""

from __future__ import annotations

from dataclasses import dataclass

from wordpiece_core.declaration import Declared, option
from wordpiece_core.option_kinds import Share, Size

TOKENS_PER_CANDIDATE, LEAST_CANDIDATES = 8, 1 << 16
BYTES_PER_TOKEN = 128  # of runs, on the way to the driver and there: measured, see docs/scale.md
# A round over all splits needs less: of each token and of each word, measured, see docs/memory.md.
BYTES_PER_SPLIT_TOKEN, BYTES_PER_SPLIT = 16, 220


@dataclass(frozen=True)
class RoundBudget(Declared):
    """What a round of training may hold; the result is the same."""

    round_budget: float = option(
        1.0, Share(), "Of all split tokens, held at once.", shown_default="1, all"
    )
    driver_memory: int | None = option(
        None, Size(), "What the rounds may take; less: more rounds, the same result."
    )

    def tokens(self, split_tokens: int) -> int:
        """The most tokens of splits, or of pieces of splits, that a round may hold."""
        by_memory = split_tokens
        if self.driver_memory is not None:
            by_memory = self.driver_memory // BYTES_PER_TOKEN
        return min(int(split_tokens * self.round_budget), by_memory)

    def candidates(self, split_tokens: int) -> int:
        """The most pairs that need be known for a round: more would not be left whole."""
        return max(self.tokens(split_tokens) // TOKENS_PER_CANDIDATE, LEAST_CANDIDATES)

    def holds(self, split_tokens: int, splits: int) -> bool:
        """Whether a round may hold all splits, so many of so many tokens."""
        if self.tokens(split_tokens) >= split_tokens:
            return True
        needed = split_tokens * BYTES_PER_SPLIT_TOKEN + splits * BYTES_PER_SPLIT
        memory = self.driver_memory
        return self.round_budget >= 1.0 and memory is not None and needed <= memory
