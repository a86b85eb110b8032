"""The random numbers of a row, by which its words are segmented at random."""

from __future__ import annotations

from hashlib import blake2b
from typing import Protocol


class Random(Protocol):
    """What gives random numbers: ``RowRandom``, or ``random.Random``."""

    def random(self) -> float:
        """From 0 up to, but not including, 1."""


class RowRandom:
    """The numbers of a text, which follow from it and a seed alone (SplitMix64).

    The first state is the text's BLAKE2b hash of 8 bytes, the key being the seed as 8 bytes, both
    with the lowest byte first. Each number is made of the next state.

    >>> round(RowRandom("the cat", seed=7).random(), 6)
    0.162944
    """

    def __init__(self, text: str, seed: int = 0) -> None:
        digest = blake2b(text.encode(), digest_size=8, key=seed.to_bytes(8, "little")).digest()
        self.state = int.from_bytes(digest, "little")

    def random(self) -> float:
        """A multiple of 2^-53, from 0 up to, but not including, 1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return ((z ^ z >> 31) >> 11) / 2**53
