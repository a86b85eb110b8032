"""Random models, a few of them: `python -m tests.parity random` tries more."""

from .random_sentencepiece import sentencepiece_difference


def test_random_models_match_sentencepiece() -> None:
    found = {seed: sentencepiece_difference(seed) for seed in range(12)}
    assert {seed: what for seed, what in found.items() if what} == {}
