"""What a page shows, beside plain lines of Python: lists of words, scripts, sizes, supports."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.reporting.charts import Axis
from pipelines.reporting.cuts import (
    COST,
    CUT,
    LISTED,
    SAMPLE,
    TECHNICAL,
    UNKNOWN,
    Cuts,
    Rare,
    added,
    better_here,
    better_there,
    cut_words,
)
from pipelines.reporting.cutters import OfWords, cutter
from pipelines.reporting.numbers import percent
from pipelines.reporting.plots import POINTS, _course, _spread
from pipelines.reporting.scripts import are_mixed, have_digits, scripts_of
from pipelines.reporting.vocabulary import (
    MOST_SIZES,
    TrainingLog,
    alphabet,
    at_sizes,
    lengths,
    round_sizes,
    supports,
)
from tests.pipelines.corpora import english
from tests.wordpiece_core.tokenizer.test_foreign import byte_level_bpe
from wordpiece_core import Tokenizer, reference, train
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.foreign import ForeignTokenizer

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
RESULT = train(dict(COUNTS), vocab_size=120)
LARGE = Tokenizer(RESULT.vocab)
SMALL = Tokenizer(train(dict(COUNTS), vocab_size=80, criterion="frequency").vocab)
RARE = Rare(1, tuple(range(40, len(TABLE), 50)))


def cuts_in(pieces: int) -> Cuts:
    """The cuts of the table, from parts of so many rows, in another order."""
    cutters = [OfWords(LARGE), OfWords(SMALL)]
    starts = [*range(0, len(TABLE), pieces)][::-1]
    return added(cut_words(TABLE.slice(s, pieces), s, cutters, RARE) for s in starts)


def test_cuts_do_not_depend_on_how_a_table_is_divided() -> None:
    whole = cuts_in(len(TABLE))
    assert cuts_in(1) == cuts_in(17) == whole
    assert Cuts.of_plain(whole.plain()) == whole


def test_lists_and_sums_are_those_of_plain_lines() -> None:
    cuts = cuts_in(100)
    rows = []
    for rank, row in enumerate(TABLE.to_pylist()):
        word, count = row["word"], row["count"]
        here, there = (tok.tokenize(word) for tok in (LARGE, SMALL))
        rows.append((rank, word, count, here, there))
    unknown = [r for r in rows if "[UNK]" in r[3]]
    several = [r for r in rows if len(r[3]) > 1]

    def listed(name: str) -> list[tuple[str, int, list[str]]]:
        return [(cut.word, cut.count, list(cut.pieces)) for cut in cuts.lists[name]]

    def best(chosen: list, key) -> list[tuple[str, int, list[str]]]:  # type: ignore
        ordered = sorted(chosen, key=lambda r: (-key(r), r[1]))
        return [(r[1], r[2], r[3]) for r in ordered][:LISTED]

    assert listed(COST) == best(several, lambda r: r[2] * (len(r[3]) - 1))
    assert listed(UNKNOWN) == best(unknown, lambda r: r[2])
    assert (
        listed(CUT)
        == [(r[1], r[2], r[3]) for r in sorted(several, key=lambda r: (-r[2], r[1]))][:1000]
    )
    assert [cut.word for cut in cuts.lists[SAMPLE]] == sorted(
        (rows[rank][1] for rank in RARE.ranks), key=lambda w: (-dict_of(rows)[w], w)
    )
    technical = [
        r
        for r in several
        if "[UNK]" not in r[3] and (any(c.isdigit() for c in r[1]) or mixed(r[1]))
    ]
    assert listed(TECHNICAL) == best(technical, lambda r: r[2])
    both = [r for r in rows if "[UNK]" not in r[3] + r[4]]
    more = [r for r in both if len(r[3]) > len(r[4])]
    fewer = [r for r in both if len(r[3]) < len(r[4])]
    assert listed(better_there(0)) == best(more, lambda r: r[2] * (len(r[3]) - len(r[4])))
    assert listed(better_here(0)) == best(fewer, lambda r: r[2] * (len(r[4]) - len(r[3])))
    sums = cuts.sums["all"]
    assert sums.words == sum(r[2] for r in rows)
    assert sums.tokens == sum(r[2] * len(r[3]) for r in rows)
    assert sums.unknown == sum(r[2] for r in unknown)
    assert sums.whole == sum(r[2] for r in rows if len(r[3]) == 1 and r[3] != ["[UNK]"])
    assert sums.of_pieces.total() == sums.words
    assert cuts.sums["rare"].distinct == sum(r[2] == 1 for r in rows)
    most = [len(cut.pieces) for cut in cuts.in_most_pieces]
    assert most == sorted(most, reverse=True)
    assert most[0] == max(len(r[3]) for r in several)


def dict_of(rows: list) -> dict[str, int]:  # type: ignore
    return {row[1]: row[2] for row in rows}


def mixed(word: str) -> bool:
    kinds = {"Latin" if c < "\x80" else "Cyrillic" if c < "\u0500" else "Han" for c in word}
    return (
        len(kinds - ({"Latin"} if not any(c.isalpha() and c < "\x80" for c in word) else set())) > 1
    )


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
    found = scripts_of("aя日ひ한א1.€\u0301\u200bª")
    assert found["a"] == "Latin"
    assert found["я"] == "Cyrillic"
    assert found["日"] == "Han"
    assert found["1"] == "digits and numbers"
    assert found["."] == "punctuation"
    assert found["€"] == "symbols"
    assert found["\u0301"] == "marks"
    assert found["\u200b"] == "other characters"


def test_the_alphabet_and_the_lengths_leave_special_tokens_out() -> None:
    spec = TokenizerSpec(["[PAD]", "[UNK]", "[unused0]", "a", "##b", "##ab", "яb", "##", "[x]"])
    assert [(row.script, row.characters, row.tokens) for row in alphabet(spec)] == [
        ("Latin", 3, 5),
        ("punctuation", 3, 2),
        ("Cyrillic", 1, 1),
    ]
    found = lengths(spec)
    assert found.begin == Counter({1: 1, 2: 2, 3: 1})
    assert found.go_on == Counter({1: 1, 2: 1})


@pytest.mark.parametrize("criterion", ["pmi", "frequency"])
def test_vocabularies_at_sizes_are_those_of_trainings_of_that_size(criterion: str) -> None:
    whole = train(dict(COUNTS), vocab_size=150, criterion=criterion)
    log = TrainingLog(whole.merges)
    found = at_sizes(TokenizerSpec(whole.vocab), log)
    assert len(found) > 4
    assert found[-1] == whole.vocab
    for vocab in found[1:]:
        assert vocab == train(dict(COUNTS), vocab_size=len(vocab), criterion=criterion).vocab


@pytest.mark.parametrize("rule", ["auto", 3])
def test_supports_are_those_of_the_training(rule: int | str) -> None:
    words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5, "gum": 7, "snug": 3}
    result = train(words, vocab_size=26, min_pair_count=rule)
    log = TrainingLog(result.merges, {"training": {"min_pair_count": rule}})
    splits = [reference.split_word(word, "abghmnpsu") for word in words]
    support: int | None = None if rule == "auto" else int(rule)
    wanted = []
    for merge in result.merges.to_pylist():
        pairs = reference.pair_counts(splits, list(words.values()), None)
        if rule == "auto":
            support = reference.fall(support, max(pairs.values()))
        wanted.append(support)
        splits = [reference.merge_word(s, merge["left"], merge["right"]) for s in splits]
    assert supports(log) == wanted
    assert supports(TrainingLog(result.merges)) is None


@pytest.mark.parametrize(("least", "most"), [(5, 6), (100, 120), (300, 250_000), (1, 10**7)])
def test_sizes_are_few_and_hold_the_ends(least: int, most: int) -> None:
    sizes = round_sizes(least, most)
    assert sizes[0] == least
    assert sizes[-1] == most
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= max(MOST_SIZES, 72)
    assert 8000 in round_sizes(300, 250_000)
    assert 8000 in round_sizes(4000, 30_522)


def test_a_plot_has_few_points_and_says_the_extremes() -> None:
    values = [random.Random(i).random() for i in range(30_000)]
    band, middle = _course(values, "a")
    assert len(band.rows) <= POINTS
    assert len(middle.rows) == len(band.rows)
    assert min(row["y"] for row in band.rows) == min(values)
    assert max(row["y2"] for row in band.rows) == max(values)
    assert _spread(30_000, POINTS)[:3] == [0, 1, 2]
    assert _spread(30_000, POINTS)[-1] == 29_999
    assert _spread(0, 5) == []
    assert _spread(1, 5) == [0]


@given(
    kind=st.sampled_from(["linear", "log", "symlog"]),
    least=st.floats(1e-9, 1e6),
    factor=st.floats(1.02, 1e9),
    most_ticks=st.integers(4, 9),
)
def test_an_axis_has_some_ticks_and_not_too_many(
    kind: str, least: float, factor: float, most_ticks: int
) -> None:
    start, end = (0.0, max(least * factor, 13)) if kind == "symlog" else (least, least * factor)
    ticks = Axis("", start, end, kind).ticks(most_ticks)
    assert 1 <= len(ticks) <= most_ticks
    assert ticks == sorted(set(ticks))
    assert all(start <= tick <= end * (1 + 1e-9) for tick in ticks)


def test_tokenizers_of_other_kinds_cut_words_as_in_a_text() -> None:
    foreign = ForeignTokenizer(byte_level_bpe().to_str(), "bpe")
    words = pa.array(["the", "und", "x"])
    found = cutter(foreign).cut(words).to_pylist()
    peer = byte_level_bpe()
    assert found == [peer.encode(f"a {w}").tokens[1:] for w in words.to_pylist()]


def test_shares_are_told_from_none_and_all() -> None:
    assert [percent(share) for share in (0, 1, 1e-9, 1 - 1e-9, 0.25)] == [
        *("0 %", "100 %", "<0.0001 %", ">99.9999 %", "25.0 %")
    ]
