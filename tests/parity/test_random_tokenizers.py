"""Random tokenizers, a few of them: `python -m tests.parity random` tries more."""

from __future__ import annotations

from .random_cases import difference, random_case
from .random_sentencepiece import sentencepiece_difference


def test_random_tokenizers_are_those_of_tokenizers() -> None:
    cases = ((seed, random_case(seed)) for seed in range(200))
    found = {seed: difference(*case) for seed, case in cases}
    assert {seed: what for seed, what in found.items() if what} == {}


def test_random_models_are_those_of_sentencepiece() -> None:
    found = {seed: sentencepiece_difference(seed) for seed in range(50)}
    assert {seed: what for seed, what in found.items() if what} == {}
