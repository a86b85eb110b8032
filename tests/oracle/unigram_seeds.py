"""The pieces that the training of a unigram language model begins with.

SentencePiece counts its seeds in whole sentences. Here they are counted in runs of words, so that a
piece that always ends its word is also found.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping

LEAST_COUNT = 2


def seeds(counts: Mapping[str, int], max_token_length: int, seed_size: int) -> dict[str, int]:
    """Return the substrings of runs that cover most characters, with their counts. They have two
    characters or more, occur twice or more, and not always with the same character after them.

    >>> seeds({"▁hug": 2, "▁hugs": 1}, max_token_length=16, seed_size=3)
    {'▁hug': 3, 'hug': 3, 'ug': 3}
    """
    found: Counter[str] = Counter()
    followers: defaultdict[str, set[str]] = defaultdict(set)
    for run, n in counts.items():
        for start in range(len(run)):
            last = min(start + max_token_length, len(run))
            for end in range(start + 2, last + 1):
                found[run[start:end]] += n
                followers[run[start:end]].add(run[end] if end < last else "")
    often = [
        piece
        for piece, n in found.items()
        if n >= LEAST_COUNT and (len(followers[piece]) > 1 or "" in followers[piece])
    ]
    often.sort(key=lambda piece: (-found[piece] * len(piece), piece))
    return {piece: found[piece] for piece in often[:seed_size]}


def first_scores(characters: Mapping[str, int], found: Mapping[str, int]) -> dict[str, float]:
    """Each character and seed in proportion to the characters that it covers, at least one."""
    weights = {p: max(n * len(p), 1) for p, n in [*characters.items(), *found.items()]}
    total = math.log(sum(weights.values()))
    return {piece: math.log(weight) - total for piece, weight in sorted(weights.items())}
