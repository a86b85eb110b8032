"""A text, a word or a token that is eight times as long takes about eight times as long, whatever
is in it: nothing is quadratic in a length."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import wordpiece_core as wp
from wordpiece_core import _kernel

from ..parity.random_cases import load

pytestmark = pytest.mark.soak  # it compares times

Work = Callable[[], Any]

OFFSETS = wp.EncodingOptions(columns=["offset_mapping"], add_special_tokens=False)
IDS = wp.EncodingOptions(add_special_tokens=False)


def composed(*added: str) -> wp.Tokenizer:
    """Return a tokenizer with composed parts, and added tokens that include the following white
    space."""
    flags = {"special": False, "single_word": False, "lstrip": False, "rstrip": True}
    vocab = ["<unk>", "a", "b", "é", *added]
    value = {
        "version": "1.0",
        "added_tokens": [
            {"id": vocab.index(token), "content": token, "normalized": False, **flags}
            for token in added
        ],
        "normalizer": {"type": "NFC"},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [[token, -1.0] for token in vocab]}
        | {"byte_fallback": False},
    }
    return load(value)


def encoding(tokenizer: wp.Tokenizer, text: str, options: wp.EncodingOptions) -> Work:
    return lambda: tokenizer.encode_table([text], options=options)


def offsets_of_ascii(size: int) -> Work:
    return encoding(composed(), "ab" * (size // 2), OFFSETS)


def offsets_of_others(size: int) -> Work:
    return encoding(composed(), "éa" * (size // 2), OFFSETS)


def line_ends(size: int) -> Work:
    return encoding(composed("\n"), "\n" * size, IDS)


def offsets_of_line_ends(size: int) -> Work:
    return encoding(composed("\n"), "\n" * size, OFFSETS)


def offsets_of_line_ends_of_bytes(size: int) -> Work:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    value = json.loads(Tokenizer(models.BPE({c: at for at, c in enumerate(alphabet)}, [])).to_str())
    value["pre_tokenizer"] = json.loads(pre_tokenizers.ByteLevel().__getstate__())
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": True}
    value["added_tokens"] = [{"id": 256, "content": "\n", "normalized": False, **flags}]
    return encoding(load(value), "\n" * size, OFFSETS)


def unknown_characters(size: int) -> Work:
    tokenizer = wp.Tokenizer(["[UNK]", "a"], unk_scope="character", max_word_length=1 << 20)
    return encoding(tokenizer, "☃" * size, IDS)


def long_token_of_ranks(size: int) -> Work:
    random = Random(1)
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [bytes(random.choices(b"abcd", k=2)) for _ in range(40)]
    tokens = [*dict.fromkeys(tokens), bytes(random.choices(b"abcd", k=size))]
    return lambda: _kernel.merges_of_ranks(tokens, range(len(tokens)))


def merges_of_long_words(size: int) -> Work:
    word = "".join(chr(0x20000 + at) for at in range(size // 4))
    alphabet = [(word[0], 0), *(("##" + c, at) for at, c in enumerate(word[1:], 1))]
    left = range(0, len(word) - 1, 2)
    numbers = {
        "left": left,
        "right": [at + 1 for at in left],
        "token": [len(word) + at for at in left],
    }
    counts = dict.fromkeys(("pair_count", "left_count", "right_count"), [1] * len(left))
    merges = {
        **{name: pa.array(column, pa.uint32()) for name, column in numbers.items()},
        "score": pa.array([0.0] * len(left)),
        **{name: pa.array(column, pa.int64()) for name, column in counts.items()},
    }
    options = {"continuing_prefix": "##", "min_word_count": 1, "max_word_length": 1 << 20}
    splitter = _kernel.Splitter(alphabet, pa.record_batch(merges), **options)
    words = pa.record_batch({"word": [word], "count": pa.array([1], pa.int64())})
    return lambda: splitter.split(words, 0)


def sizes_of_long_runs(size: int) -> Work:
    pairs = size // 4
    splits = {name: pa.array([number], pa.int64()) for name, number in (("rank", 0), ("offset", 0))}
    splits |= {"count": pa.array([1], pa.int64())}
    splits |= {"symbols": pa.array([list(range(pairs + 1))], pa.list_(pa.uint32()))}
    candidates = {
        "left": pa.array(range(pairs), pa.uint32()),
        "right": pa.array(range(1, pairs + 1), pa.uint32()),
        "level": pa.array(range(pairs, 0, -1), pa.uint16()),
    }
    levels = _kernel.PairLevels(pa.record_batch(candidates))
    batch = pa.record_batch(splits)
    return lambda: _kernel.RunSizes(1 << 60, 60_000).add_splits(batch, levels)


def seconds(work: Work, times: int) -> float:
    """Return the shortest of three measurements of the processor time of some calls."""

    def once() -> float:
        start = time.process_time()
        for _ in range(times):
            work()
        return time.process_time() - start

    return min(once() for _ in range(3))


@pytest.mark.parametrize(
    "kind",
    [
        *(offsets_of_ascii, offsets_of_others, line_ends, offsets_of_line_ends),
        *(offsets_of_line_ends_of_bytes, unknown_characters, long_token_of_ranks),
        *(merges_of_long_words, sizes_of_long_runs),
    ],
    ids=lambda kind: kind.__name__,
)
def test_eight_times_the_length_takes_about_eight_times_as_long(
    kind: Callable[[int], Work],
) -> None:
    small, large = kind(20_000), kind(160_000)
    ratio = seconds(large, 1) / seconds(small, 8)
    # Quadratic is about 8; memory that is not in a cache makes it 2 or 3.
    assert ratio < 5, f"{ratio:.1f} times as long as so many short ones"
