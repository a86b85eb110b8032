"""Compare the word lists and sizes of a page with plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pipelines.reporting.tokenized_words import (
    COST,
    FREQUENT,
    LISTED,
    SEVERAL,
    UNKNOWN,
    NotableWords,
    combined,
    fewer_here,
    fewer_there,
    tokenize_words,
    tokens_of_words,
)
from pipelines.reporting.vocabulary import (
    MOST_SIZES,
    TrainingLog,
    round_sizes,
    smaller_sizes,
)
from tests.pipelines.corpora import english
from tests.wordpiece_core.tokenizer.test_library_measures import byte_level_bpe, of_library
from wordpiece_core import Tokenizer, train

COUNTS = Counter(word for text in english(300) for word in text.lower().split())


def word_table() -> pa.RecordBatch:
    made = random.Random(5)
    words = Counter(COUNTS)
    for _ in range(400):
        letters = made.choices("abcehinorstабвгя0123日本", k=made.randrange(1, 9))
        words["".join(letters)] += made.choice([1, 1, 1, 2, 9])
    rows = sorted(words.items(), key=lambda row: (-row[1], row[0]))
    return pa.RecordBatch.from_pylist([{"word": w, "count": c} for w, c in rows])


TABLE = word_table()
LARGE = Tokenizer(train(dict(COUNTS), vocab_size=120).vocab)
SMALL = Tokenizer(train(dict(COUNTS), vocab_size=80, criterion="frequency").vocab)


def notable(rows: int) -> NotableWords:
    """Return the notable words of the table in parts of `rows` rows, combined backwards."""
    starts = [*range(0, len(TABLE), rows)][::-1]
    return combined(tokenize_words(TABLE.slice(start, rows), [LARGE, SMALL]) for start in starts)


def test_lists_do_not_depend_on_how_a_table_is_divided() -> None:
    assert notable(1) == notable(17) == notable(len(TABLE))


def test_lists_match_plain_python() -> None:
    found = notable(100)
    rows = [
        (row["word"], row["count"], LARGE.tokenize(row["word"]), SMALL.tokenize(row["word"]))
        for row in TABLE.to_pylist()
    ]
    known = [r for r in rows if "[UNK]" not in r[2]]
    several = [r for r in rows if len(r[2]) > 1]
    both = [r for r in known if "[UNK]" not in r[3]]

    def check(name: str, chosen: list[Any], key: Callable[[Any], int], most: int = LISTED) -> None:
        wanted = sorted(chosen, key=lambda r: (-key(r), r[0]))[:most]
        listed = [(w.word, w.count, list(w.tokens)) for w in found.lists[name]]
        assert listed == [row[:3] for row in wanted], name

    def count(row: Any) -> int:
        return int(row[1])

    def saved(row: Any) -> int:
        return int(row[1] * (len(row[2]) - len(row[3])))

    check(SEVERAL, several, count, FREQUENT)
    check(COST, several, lambda r: r[1] * (len(r[2]) - 1))
    check(UNKNOWN, [r for r in rows if "[UNK]" in r[2]], count)
    check(fewer_there(0), [r for r in both if saved(r) > 0], saved)
    check(fewer_here(0), [r for r in both if saved(r) < 0], lambda r: -saved(r))
    most = [len(word.tokens) for word in found.with_most_tokens]
    assert most == sorted((len(r[2]) for r in several), reverse=True)[:LISTED]


@pytest.mark.parametrize("criterion", ["pmi", "frequency"])
def test_vocabularies_at_sizes_match_trainings_of_that_size(criterion: str) -> None:
    complete = train(dict(COUNTS), vocab_size=150, criterion=criterion)
    log = TrainingLog(complete.merges["token"].to_pylist())
    found = smaller_sizes(complete.tokenizer().spec, log)
    assert len(found) > 3
    for size, spec in [*found.items()][1:]:
        assert spec.vocab == train(dict(COUNTS), vocab_size=size, criterion=criterion).vocab


@pytest.mark.parametrize(("least", "most"), [(5, 6), (100, 120), (300, 250_000), (1, 10**7)])
def test_sizes_are_few_and_include_the_ends(least: int, most: int) -> None:
    sizes = round_sizes(least, most)
    assert (sizes[0], sizes[-1]) == (least, most)
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= max(MOST_SIZES, 72)
    assert 8000 in round_sizes(300, 250_000)
    assert 8000 in round_sizes(4000, 30_522)


def test_other_tokenizers_tokenize_words_as_in_a_text() -> None:
    peer = byte_level_bpe()
    words = ["the", "und", "x"]
    tokens, unknown = tokens_of_words(of_library(peer), pa.array(words))
    assert tokens.to_pylist() == [peer.encode(f"a {word}").tokens[1:] for word in words]
    assert unknown is None
