"""What a page shows, checked against plain Python: word lists, scripts, sizes, plots."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.reporting.plots import HOVERED, plot_counts
from pipelines.reporting.scripts import are_mixed, have_digits, scripts_of
from pipelines.reporting.tokenized_words import (
    COST,
    FREQUENT,
    LISTED,
    SAMPLE,
    SEVERAL,
    TECHNICAL,
    UNKNOWN,
    RareWords,
    WordStatistics,
    combined,
    fewer_here,
    fewer_there,
    tokenize_words,
    tokens_of_words,
)
from pipelines.reporting.vocabulary import (
    MOST_SIZES,
    TrainingLog,
    alphabet,
    at_sizes,
    lengths,
    minimum_pair_counts,
    round_sizes,
)
from tests.pipelines.corpora import english
from tests.wordpiece_core.tokenizer.test_library_measures import byte_level_bpe, of_library
from wordpiece_core import Tokenizer, reference, train
from wordpiece_core.tokenizer.files import TokenizerSpec

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
RARE = RareWords(1, tuple(range(40, len(TABLE), 50)))


def statistics(rows: int) -> WordStatistics:
    """The statistics of the table, from parts of so many rows, the last part first."""
    starts = [*range(0, len(TABLE), rows)][::-1]
    return combined(tokenize_words(TABLE.slice(s, rows), s, [LARGE, SMALL], RARE) for s in starts)


def test_statistics_do_not_depend_on_how_a_table_is_divided() -> None:
    assert statistics(1) == statistics(17) == statistics(len(TABLE))


def test_lists_and_totals_are_those_of_plain_lines() -> None:
    found = statistics(100)
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
    check(SAMPLE, [rows[rank] for rank in RARE.ranks], count)
    words = TABLE["word"]
    technical = pc.or_(have_digits(words), are_mixed(words)).to_pylist()
    of_table = [r for r, is_technical in zip(rows, technical, strict=True) if is_technical]
    check(TECHNICAL, [r for r in of_table if r in several and r in known], count)
    check(fewer_there(0), [r for r in both if saved(r) > 0], saved)
    check(fewer_here(0), [r for r in both if saved(r) < 0], lambda r: -saved(r))
    totals = found.kinds["all"]
    assert totals["words"] == sum(map(count, rows)) == sum(totals[n] for n in range(1, 5))
    assert totals["tokens"] == sum(r[1] * len(r[2]) for r in rows)
    assert totals["unknown"] == sum(r[1] for r in rows if "[UNK]" in r[2])
    assert totals[4] == sum(r[1] for r in rows if len(r[2]) >= 4)
    assert found.kinds["rare"]["distinct"] == sum(r[1] == 1 for r in rows)
    most = [len(word.tokens) for word in found.with_most_tokens]
    assert most == sorted((len(r[2]) for r in several), reverse=True)[:LISTED]


def test_words_of_two_scripts_and_with_digits_are_found() -> None:
    words = [
        "cat",
        "сat",
        "кот",
        "x1",
        "日本ひらカナ",
        "日本x",
        "٣",
        "",
        "été",
        "한国",
        "don't",
        "µm",
    ]
    array = pa.array(words)
    chosen = are_mixed(array).to_pylist()
    assert [w for w, m in zip(words, chosen, strict=True) if m] == ["сat", "日本x"]
    digits = have_digits(array).to_pylist()
    assert [w for w, has in zip(words, digits, strict=True) if has] == ["x1", "٣"]


def test_every_character_has_a_script_or_a_kind() -> None:
    assert scripts_of("aя日1.€\u0301\u200b") == {
        **{"a": "Latin", "я": "Cyrillic", "日": "Han", "1": "digits and numbers"},
        **{".": "punctuation", "€": "symbols", "\u0301": "marks", "\u200b": "other characters"},
    }


def test_the_alphabet_and_the_lengths_leave_special_tokens_out() -> None:
    spec = TokenizerSpec(["[PAD]", "[UNK]", "[unused0]", "a", "##b", "##ab", "яb", "##", "[x]"])
    assert [(row.script, row.characters, row.tokens) for row in alphabet(spec)] == [
        ("Latin", 3, 5),
        ("punctuation", 3, 2),
        ("Cyrillic", 1, 1),
    ]
    begins, continues = {(1, False): 1, (2, False): 2, (3, False): 1}, {(1, True): 1, (2, True): 1}
    assert lengths(spec) == {**begins, **continues}


@pytest.mark.parametrize("criterion", ["pmi", "frequency"])
def test_vocabularies_at_sizes_are_those_of_trainings_of_that_size(criterion: str) -> None:
    complete = train(dict(COUNTS), vocab_size=150, criterion=criterion)
    found = at_sizes(TokenizerSpec(complete.vocab), TrainingLog(complete.merges))
    assert len(found) > 4
    assert found[-1] == complete.vocab
    for vocab in found[1:]:
        assert vocab == train(dict(COUNTS), vocab_size=len(vocab), criterion=criterion).vocab


@pytest.mark.parametrize("rule", ["auto", 3])
def test_minimum_pair_counts_are_those_of_the_training(rule: int | str) -> None:
    words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5, "gum": 7, "snug": 3}
    result = train(words, vocab_size=26, min_pair_count=rule)
    log = TrainingLog(result.merges, {"training": {"min_pair_count": rule}})
    splits = [reference.split_word(word, "abghmnpsu") for word in words]
    bound: int | None = None if rule == "auto" else int(rule)
    wanted = []
    for merge in result.merges.to_pylist():
        pairs = reference.pair_counts(splits, list(words.values()), None)
        if rule == "auto":
            bound = reference.fall(bound, max(pairs.values()))
        wanted.append(bound)
        splits = [reference.merge_word(s, merge["left"], merge["right"]) for s in splits]
    assert minimum_pair_counts(log) == wanted
    assert minimum_pair_counts(TrainingLog(result.merges)) is None


@pytest.mark.parametrize(("least", "most"), [(5, 6), (100, 120), (300, 250_000), (1, 10**7)])
def test_sizes_are_few_and_include_the_ends(least: int, most: int) -> None:
    sizes = round_sizes(least, most)
    assert (sizes[0], sizes[-1]) == (least, most)
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= max(MOST_SIZES, 72)
    assert 8000 in round_sizes(300, 250_000)
    assert 8000 in round_sizes(4000, 30_522)


@pytest.mark.parametrize("merges", [1, 2, 30_000])
def test_a_plot_of_any_number_of_merges_has_few_points(merges: int) -> None:
    rows = [
        {"left": "a", "right": "<b>", "token": f"a<b>{i}", "score": 1e-9 * (i + 1)}
        | {"pair_count": merges - i}
        for i in range(merges)
    ]
    svg = plot_counts(TrainingLog(pa.Table.from_pylist(rows)))
    assert 0 < svg.count("<title>") <= HOVERED
    assert "&lt;b&gt;" in svg
    assert "<b>" not in svg
    assert len(svg) < 50_000


def test_other_tokenizers_tokenize_words_as_in_a_text() -> None:
    peer = byte_level_bpe()
    words = ["the", "und", "x"]
    tokens, unknown = tokens_of_words(of_library(peer), pa.array(words))
    assert tokens.to_pylist() == [peer.encode(f"a {word}").tokens[1:] for word in words]
    assert unknown is None
