"""Faults of the trainers of `tokenizers`, reproduced, and what ours does with the same words."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import tokenizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import BpeTrainer

import wordpiece_core as wp

WORDPIECE = """
import tokenizers
words = [a + b + c for a in "abcdef" for b in "ghijkl" for c in "mnopqr"]
model = tokenizers.models.WordPiece(unk_token="[UNK]")
made = tokenizers.Tokenizer(model)
made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
trainer = tokenizers.trainers.WordPieceTrainer(
    vocab_size=70, special_tokens=["[UNK]"], show_progress=False
)
made.train_from_iterator(words, trainer)
print(sorted(made.get_vocab().items(), key=lambda item: item[1]))
"""


def faults() -> Iterator[str]:
    """A line for each fault: what `tokenizers` does, and what ours does."""
    yield f"tokenizers {tokenizers.__version__}"
    yield _overflow()
    yield _merges_that_never_occur()
    yield _merge_of_no_token()
    yield _runs_that_differ()


def bpe_merges(
    texts: Iterator[str], vocab_size: int, prefix: str | None = None, **options: Any
) -> list[tuple[str, str]]:
    """The merges that BpeTrainer makes of texts. `prefix`: of symbols inside of words."""
    more = {} if prefix is None else {"continuing_subword_prefix": prefix}
    made = tokenizers.Tokenizer(BPE(**more))
    options |= more
    made.pre_tokenizer = WhitespaceSplit()
    made.train_from_iterator(
        texts, BpeTrainer(vocab_size=vocab_size, show_progress=False, **options)
    )
    merges = json.loads(made.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]


def _overflow() -> str:
    """The pair `a a` occurs 2.2 billion times, `b c` ten times."""
    long, times = "a" * 1_000_000, 2_200
    theirs = bpe_merges(iter([*[long] * times, *["bc"] * 10]), 4)
    words = {long: times, "bc": 10}
    trained = wp.train(
        words, model="bpe", word_boundary="▁", vocab_size=12, max_word_length=len(long)
    )
    row = trained.merges.to_pylist()[0]
    ours = (row["left"], row["right"], row["pair_count"])
    return f"counts beyond 2^31: the first merge is {theirs[:1]}, not {ours}"


def _merges_that_never_occur() -> str:
    """With a limited alphabet, characters next to a removed character are counted as pairs."""
    words = {"bac": 1, "b": 1, "c": 1}
    theirs = bpe_merges(iter(words), 60, limit_alphabet=2)
    options: dict[str, Any] = {"word_boundary": "▁", "vocab_size": 60, "limit_alphabet": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wp.FewerTokensWarning)
        ours = wp.train(words, model="bpe", **options).merges["token"].to_pylist()
    return f"pairs that never occur: of {[*words]} without a it merges {theirs}; ours {ours}"


def _merge_of_no_token() -> str:
    """A count falls below 0, and is then taken for the largest."""
    first, *_ = bpe_merges(iter(["####"]), 60, prefix="##", max_token_length=5)
    return f"a pair that never occurs: of #### the first merge is {first}; {first[1]} is no token"


def _runs_that_differ() -> str:
    """WordPieceTrainer on words whose pairs have equal counts."""
    made = {
        subprocess.run(
            [sys.executable, "-c", WORDPIECE], check=True, capture_output=True, text=True
        ).stdout
        for _ in range(10)
    }
    return f"WordPiece of the same words: {len(made)} vocabularies in 10 runs; ours is one"
