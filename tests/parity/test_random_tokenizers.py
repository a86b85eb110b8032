"""Random tokenizers, a few of them: `python -m tests.parity random` tries more."""

from __future__ import annotations

import pytest

from .random_cases import difference, random_case
from .random_sentencepiece import sentencepiece_difference


@pytest.mark.parametrize("first", range(0, 1600, 200))
def test_random_tokenizers_are_those_of_tokenizers(first: int) -> None:
    cases = ((seed, random_case(seed)) for seed in range(first, first + 200))
    found = {seed: difference(*case) for seed, case in cases}
    assert {seed: what for seed, what in found.items() if what} == {}


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_models_are_those_of_sentencepiece(first: int) -> None:
    found = {seed: sentencepiece_difference(seed) for seed in range(first, first + 50)}
    assert {seed: what for seed, what in found.items() if what} == {}
