"""Encoding words of any length: text without a space must cost what as much text of words costs."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator

from benchmarks.measure import Row, in_turn, number
from benchmarks.setting import Setting, read_texts
from wordpiece_core import Tokenizer

SIZE = 1_000_000  # characters
NO_LIMIT = 2**32 - 1


def long_words(setting: Setting) -> Iterator[Row]:
    """One text of a million characters, ms, one thread, cache empty; times: the text with spaces"""
    words = " ".join(read_texts(setting.groups[setting.main_group])[:50_000].to_pylist()).split()
    text = " ".join(words)[:SIZE]
    letters = random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=SIZE)
    texts = {
        "words": text,
        "the same without spaces": "".join(c for c in text if c.isalnum()),
        "random letters": "".join(letters),
        "one letter": "a" * SIZE,
        "one letter, then one of no token": "a" * (SIZE - 1) + "\u16a0",
    }
    for limit in (100, NO_LIMIT):
        runs = {name: encoder(setting, limit, text) for name, text in texts.items()}
        seconds = in_turn(runs, setting.runs)
        least = statistics.median(seconds["words"])
        for name, taken in seconds.items():
            yield {
                "longest word": "100 (BERT's)" if limit == 100 else "any",
                "text": name,
                "ms": number(1000 * statistics.median(taken)),
                "times": number(statistics.median(taken) / least),
            }


def encoder(setting: Setting, limit: int, text: str) -> Callable[[], float]:
    """Encodes a text with a new tokenizer; seconds."""

    def run() -> float:
        tokenizer = Tokenizer.load(setting.vocab, lowercase=True, max_word_length=limit)
        tokenizer.encode([""])
        started = time.perf_counter()
        tokenizer.encode([text])
        return time.perf_counter() - started

    return run
