"""Counts are smoothed across groups of text, exactly, for any ranges and partitions."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError
from wordpiece_core.training.smoothing import FRACTION_BITS, smoothing_weights

from ..corpora import counted, done, files_below, manifest, table_rows, wordpiece

Rows = list[tuple[str | None, str | None]]
LANGUAGES = {"de": 1000, "en": 5000, "pl": 60, None: 30}


def spoken(seed: int = 0) -> Rows:
    """(language, text): unlike many words of each language, some of them in all."""
    rng = random.Random(seed)
    rows: Rows = [("en", None)]
    for language, words in LANGUAGES.items():
        own = [f"{language or 'x'}{int(rng.paretovariate(0.6)) % 300}" for _ in range(words)]
        mixed = [rng.choice((word, "ok", "taxi")) for word in own]
        rows += [(language, " ".join(mixed[i : i + 10])) for i in range(0, words, 10)]
    rng.shuffle(rows)
    return rows


def write(path: Path, rows: Rows, kind: pa.DataType | None = None) -> str:
    """A Parquet or JSON-lines file with the columns `lang` and `text`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    languages, texts = [language for language, _ in rows], [text for _, text in rows]
    if path.suffix == ".parquet":
        lang = pa.array(languages, pa.string())
        columns = {"lang": lang if kind is None else lang.cast(kind), "text": texts}
        pq.write_table(pa.table(columns), path, row_group_size=70)
    else:
        lines = [json.dumps({"lang": a, "text": b}) for a, b in rows]
        path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def smoothed(rows: Rows, exponent: float) -> list[tuple[str, int]]:
    """The table of plain Python: fractions, rounded once for each word."""
    groups: dict[str | None, Counter[str]] = defaultdict(Counter)
    for language, text in rows:
        groups[language].update(dict(counted([text])))
    weights = smoothing_weights([words.total() for words in groups.values()], exponent)
    sums: Counter[str] = Counter()
    for words, weight in zip(groups.values(), weights, strict=True):
        for word, n in words.items():
            sums[word] += n * weight
    half = Fraction(1, 2)
    table = {word: Fraction(n, 1 << FRACTION_BITS) + half for word, n in sums.items()}
    found = [(word, max(n.numerator // n.denominator, 1)) for word, n in table.items()]
    return sorted(found, key=lambda row: (-row[1], row[0]))


# --- Weights --------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**62), max_size=8), st.sampled_from([0, 0.3, 0.7, 0.999, 1]))
def test_weights_turn_shares_into_their_powers(words: list[int], exponent: float) -> None:
    weights = smoothing_weights(words, exponent)
    assert len(weights) == len(words)
    total = sum(words)
    powers = [(n / total) ** exponent if n else 0.0 for n in words] if total else []
    for n, weight, power in zip(words, weights, powers, strict=False):
        if n:
            share = n / total * weight / 2**FRACTION_BITS
            assert share == pytest.approx(power / sum(powers), rel=1e-6, abs=1e-9)


def test_weights_are_known_to_the_last_bit() -> None:
    # By exp and ln in an arithmetic of 100 digits.
    expected = [67533384734, 34933794730, 4261068510]
    assert smoothing_weights([100, 900, 10**6], 0.7) == expected


# --- The job --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
@pytest.mark.parametrize("exponent", [0, 0.7])
def test_a_smoothed_table_matches_plain_python(
    tmp_path: Path, ending: str, exponent: float
) -> None:
    rows = spoken()
    shard = write(tmp_path / f"a{ending}", rows)
    options = ["--group-column", "lang", "--smoothing-exponent", exponent]
    done("count", shard, "--output", tmp_path / "words", *options)
    expected = smoothed(rows, exponent)
    assert table_rows(tmp_path / "words") == expected != counted(text for _, text in rows)


def test_with_the_exponent_1_the_table_is_that_without_groups(tmp_path: Path) -> None:
    shard = write(tmp_path / "a.parquet", spoken())
    done("count", shard, "--output", tmp_path / "plain")
    done("count", shard, "--output", tmp_path / "one", "--group-column", "lang")
    plain, one = files_below(tmp_path / "plain"), files_below(tmp_path / "one")
    assert plain.pop("_manifest.json") != one.pop("_manifest.json")
    assert plain == one


def test_the_manifest_has_the_words_and_the_weight_of_each_group(tmp_path: Path) -> None:
    rows: Rows = [("b", "x x x"), ("a", "x"), (None, "y y"), ("a", None), ("c", "")]
    shard = write(tmp_path / "a.jsonl", rows)
    options = ["--group-column", "lang", "--smoothing-exponent", "0"]
    done("count", shard, "--output", tmp_path / "words", *options)
    assert manifest(tmp_path / "words")["smoothing"] == {
        "column": "lang",
        "exponent": 0.0,
        "groups": [
            {"name": None, "words": 2, "weight": 1.0},
            {"name": "a", "words": 1, "weight": 2.0},
            {"name": "b", "words": 3, "weight": pytest.approx(2 / 3)},
        ],
    }
    assert table_rows(tmp_path / "words") == [("x", 4), ("y", 2)]


def test_training_smooths_as_counting_does(tmp_path: Path) -> None:
    shard = write(tmp_path / "a.parquet", spoken())
    options = ["--group-column", "lang", "--smoothing-exponent", "0.3"]
    size = ["--vocab-size", "150"]
    done("count", shard, "--output", tmp_path / "words", *options)
    done("train", "--word-counts", tmp_path / "words", "--output", tmp_path / "a", *size)
    done("train", shard, "--output", tmp_path / "b", *size, *options)
    done("train", shard, "--output", tmp_path / "c", *size)
    names = ("vocab.txt", "training.json", "merges.parquet")
    a, b, c = ([(tmp_path / tok / name).read_bytes() for name in names] for tok in "abc")
    assert a == b
    assert a[2] != c[2]


def test_groups_of_a_word_table_are_chosen_when_it_is_counted(tmp_path: Path) -> None:
    shard = write(tmp_path / "a.parquet", spoken())
    done("count", shard, "--output", tmp_path / "words")
    lang = ["--group-column", "lang"]
    train = ["train", "--word-counts", tmp_path / "words", "--output", tmp_path / "tok"]
    count_more = ["count", "--merge", tmp_path / "words", "--output", tmp_path / "sum"]
    for command, fault in (
        (train, "--group-column: set it when you count the word table"),
        (count_more, "--merge: a word table has no groups; remove --group-column"),
    ):
        outcome = wordpiece(*command, *lang)
        assert outcome.status == 2
        assert outcome.fault == fault


def test_a_smoothed_table_is_not_merged_but_one_with_the_exponent_1_is(tmp_path: Path) -> None:
    shard = write(tmp_path / "a.parquet", spoken())
    lang = ["--group-column", "lang"]
    done("count", shard, "--output", tmp_path / "one", *lang)
    done("count", shard, "--output", tmp_path / "half", *lang, "--smoothing-exponent", "0.5")
    done("count", "--merge", tmp_path / "one", "--output", tmp_path / "sum")
    assert table_rows(tmp_path / "sum") == table_rows(tmp_path / "one")
    outcome = wordpiece("count", "--merge", tmp_path / "half", "--output", tmp_path / "no")
    assert outcome.status == 2
    assert f"{tmp_path / 'half'} was counted with --smoothing-exponent" in outcome.fault


@pytest.mark.parametrize(
    ("name", "rows", "options", "status", "fault"),
    [
        ("a.parquet", [("x", "y")], ["--group-column", "source"], 1, "no column 'source'; it has"),
        ("a.txt", [("x", "y")], ["--group-column", "lang"], 2, "has no columns; use .parquet"),
        ("a.jsonl", [("x", "y")], ["--group-column", "source"], 1, "no key 'source' in the first"),
        ("a.parquet", [("x", "y")], ["--smoothing-exponent", "0.7"], 2, "also set --group-column"),
    ],
)
def test_a_wrong_choice_of_groups_is_named(
    tmp_path: Path, name: str, rows: Rows, options: Sequence[str], status: int, fault: str
) -> None:
    outcome = wordpiece("count", write(tmp_path / name, rows), "--output", tmp_path / "o", *options)
    assert outcome.status == status
    assert fault in outcome.fault
    if status == 1:
        assert outcome.fault.startswith(str(tmp_path / name))
        assert "--group-column" in outcome.fault


def test_a_group_for_every_row_is_an_error(tmp_path: Path) -> None:
    rows: Rows = [(f"row {i}", "text") for i in range(10_001)]
    shard = write(tmp_path / "a.parquet", rows)
    options = ["--group-column", "lang", "--worker-memory", "64MiB"]
    outcome = wordpiece("count", shard, "--output", tmp_path / "o", *options)
    assert outcome.status == 2
    assert "more than 10,000 values in --group-column 'lang'" in outcome.fault


# --- The kernel -----------------------------------------------------------------------------------


def test_smoothed_counts_beyond_63_bits_are_an_error() -> None:
    batch = pa.record_batch({"word": ["a"], "count": pa.array([2**62], pa.int64())})
    one = 1 << FRACTION_BITS
    weighed = _kernel.weigh_sorted_words([batch], [2 * one - 4], min_count=1)
    assert pa.record_batch(weighed)["count"].to_pylist() == [2**63 - 2**32]
    with pytest.raises(InputError, match="more than 2\\^63 - 1"):
        _kernel.weigh_sorted_words([batch], [2 * one], min_count=1)
    with pytest.raises(InputError, match="more than 2\\^63 - 1"):
        _kernel.weigh_sorted_words([batch], [2**127], min_count=1)
