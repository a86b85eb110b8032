"""Rules of truncation and of training."""

from __future__ import annotations

from collections.abc import Sequence

from wordpiece_core.errors import InputError


def truncated_lengths(lengths: Sequence[int], room: int, truncation: str) -> list[int]:
    """Return how many tokens of each sequence are kept, at most ``room`` together.

    ``longest_first`` truncates the longer of two; both if half of the room (rounded down, and up
    for the longer one) is not enough for either. ``only_first`` and ``only_second`` keep one token
    of the truncated text, or raise InputError. Without any room nothing is kept.
    """
    if sum(lengths) <= room:
        return list(lengths)
    if room == 0:
        return [0] * len(lengths)
    if truncation == "longest_first":
        if len(lengths) == 1:
            return [room]
        shorter = min(*lengths, room // 2)
        first_is_longer = lengths[0] > lengths[1]
        return [room - shorter, shorter] if first_is_longer else [shorter, room - shorter]
    text = {"only_first": 0, "only_second": 1}[truncation]
    left = room - sum(lengths) + lengths[text]
    if left <= 0:
        raise InputError(f"truncation: {truncation}, and the other text leaves no room")
    return [left if i == text else length for i, length in enumerate(lengths)]


def lower_support(support: int) -> int:
    """Return the next minimum pair count: 15/16 of the last one, rounded down, at least 1.

    Pairs compete by score within a step. On held-out text of seven languages this gives as few
    tokens as merging by count, except for vocabularies with nearly all words of the text; halving
    gives up to 1.6 % more. benchmarks/min-pair-count.md has the figures.
    """
    return max(1, support * 15 // 16)


def placed(vocab: Sequence[str], new_tokens: Sequence[str], slots: Sequence[int] = ()) -> list[str]:
    """Return the vocabulary with new tokens: in the slots first, and the rest at the end."""
    extended = list(vocab)
    for slot, token in zip(slots, new_tokens, strict=False):
        extended[slot] = token
    return extended + list(new_tokens[len(slots) :])
