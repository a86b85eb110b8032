"""The kernel trains as the reference does: the same vocabulary and the same log, bit for bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import AutoTokenizer

import wordpiece_core as wp
from tests import oracle
from wordpiece_core.limits import LIMITS, Limits

from ...quick import parametrize
from ..strategies import possible_budget, rooms, small_rounds, training_options, word_tables

# That pairs run out before the vocabulary is full is the rule with such small tables.
pytestmark = pytest.mark.filterwarnings("ignore")

FREQUENCY = {"criterion": "frequency", "min_pair_count": 1}
PMI = {"criterion": "pmi", "min_pair_count": 1}
LIKELIHOOD = {"criterion": "likelihood", "min_pair_count": 1}

MERGE_COLUMNS = pa.schema(
    [
        ("step", pa.int64()),
        ("left", pa.string()),
        ("right", pa.string()),
        ("token", pa.string()),
        ("score", pa.float64()),
        ("pair_count", pa.int64()),
        ("left_count", pa.int64()),
        ("right_count", pa.int64()),
    ]
)


def smallest_size(table: dict[str, int], options: dict[str, Any]) -> int:
    """The size of special tokens and alphabet."""
    return len(oracle.train(table, 10**6, **{**options, "max_token_length": 1}).vocab)


def assert_equal(mine: Any, specified: oracle.Training) -> None:
    """Equal vocabularies and logs; the scores are compared as doubles."""
    log = [merge._asdict() for merge in specified.merges]
    assert mine.merges.to_pylist() == log
    assert mine.vocab == specified.vocab


@given(word_tables(), training_options(), rooms)
@example({"aaaaaaa": 3, "aaaa": 2, "aa": 1}, {**FREQUENCY, "continuing_prefix": ""}, 40)
@example({"aaaaaaa": 3, "aaaa": 2, "aa": 1}, {**LIKELIHOOD, "continuing_prefix": ""}, 40)
@example({"####": 4}, FREQUENCY, 40)
@example({"##a###": 1}, FREQUENCY, 40)
@example({"###ba": 2}, PMI, 40)
@example({"####a#": 7, "#": 3, "###b#a##": 9}, PMI, 40)
@example({"##aa#a##": 1, "#aa#aaaa": 7, "a#aa##a#a": 3}, LIKELIHOOD, 40)
@example({"xyz": 1, "pq": 3, "xy": 3, "yz": 9}, {**FREQUENCY, "continuing_prefix": ""}, 40)
def test_the_kernel_trains_as_the_reference(
    table: dict[str, int], options: dict[str, Any], room: int
) -> None:
    size = smallest_size(table, options) + room
    specified = oracle.train(table, size, **options)
    assert_equal(wp.train(table, vocab_size=size, **options), specified)


@given(
    word_tables(),
    training_options(),
    rooms,
    st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5, 0.7, 1.0]),
    st.sampled_from([1, 2, 5, LIMITS.least_candidates]),
    st.sampled_from([1, 2, 16, 99]),
)
@example({"####a#": 7, "#": 3, "###b#a##": 9}, PMI, 40, 0.3, 1, 16)
@example({"cd": 1, "ab": 1, "ef": 1}, PMI, 3, 0.3, 1, 16)
@example({"aaaaa": 1}, {**FREQUENCY, "max_token_length": 2}, 10, 0.2, 1, 16)
@example({"abb#b": 1}, {**FREQUENCY, "min_pair_count": 5}, 10, 0.2, 1, 16)
@example({"###": 1}, {**PMI, "continuing_prefix": "#", "limit_alphabet": 1}, 10, 0.2, 1, 16)
@example({"#########": 2, "##": 1, "####": 1}, {**FREQUENCY, "max_token_length": 3}, 20, 0.2, 1, 16)
def test_the_budget_of_a_round_does_not_change_the_result(
    table: dict[str, int],
    options: dict[str, Any],
    room: int,
    round_budget: float,
    candidates: int,
    partitions: int,
) -> None:
    size = smallest_size(table, options) + room
    specified = oracle.train(table, size, **options)
    round_budget = possible_budget(options, round_budget)
    limits = small_rounds(candidates, partitions)
    mine = wp.train(table, vocab_size=size, round_budget=round_budget, limits=limits, **options)
    assert_equal(mine, specified)


def syllables(count: int) -> dict[str, int]:
    """A table like a small language's: words of a few syllables, counts that fall as 1/rank."""
    parts = ["ka", "ri", "to", "men", "sha", "lu", "ing", "ed", "é", "un", "pre", "漢", "s", "ll"]
    table: dict[str, int] = {}
    state = 12345
    while len(table) < count:
        word = ""
        for _ in range(1 + state % 4):
            state = (1103515245 * state + 12345) % 2**31
            word += parts[(state >> 16) % len(parts)]
        table.setdefault(word, 1 + 100_000 // (len(table) + 1))
    return table


@parametrize("criterion", ["pmi", "likelihood", "frequency"], quick=1)
@pytest.mark.parametrize("min_pair_count", [pytest.param(1, marks=pytest.mark.soak), 50, "auto"])
def test_a_larger_table_gives_the_same_hundreds_of_merges(
    criterion: str, min_pair_count: int | str
) -> None:
    table = syllables(300)
    options: dict[str, Any] = {"criterion": criterion, "min_pair_count": min_pair_count}
    specified = oracle.train(table, 250, **options)
    assert len(specified.merges) > 150
    for round_budget in {possible_budget(options, share) for share in (1.0, 0.3, 0.05)}:
        mine = wp.train(table, vocab_size=250, round_budget=round_budget, **options)
        assert_equal(mine, specified)


@pytest.mark.parametrize("n", [2**31, 2**53, 2**60])
def test_scores_are_compared_exactly_where_doubles_are_equal(n: int) -> None:
    # 1/(n + 1) stands above 1/n; rounded to doubles they are equal from 2**53 on.
    table = {"cd": n + 1, "ab": n}
    mine = wp.train(table, vocab_size=11, min_pair_count=1)
    assert mine.merges["token"].to_pylist() == ["ab", "cd"]
    assert mine.merges["pair_count"].to_pylist() == [n, n + 1]
    assert_equal(mine, oracle.train(table, 11, min_pair_count=1))


@given(
    st.dictionaries(
        st.text("ab", min_size=1, max_size=4), st.integers(2**56, 2**58), min_size=1, max_size=6
    ),
    training_options(),
    st.sampled_from([0.0, 0.2, 0.5, 1.0]),
)
def test_counts_near_the_limit_train_exactly_in_any_number_of_rounds(
    table: dict[str, int], options: dict[str, Any], round_budget: float
) -> None:
    size = smallest_size(table, options) + 10
    round_budget = possible_budget(options, round_budget)
    limits = small_rounds(1, 1)
    mine = wp.train(table, vocab_size=size, round_budget=round_budget, limits=limits, **options)
    assert_equal(mine, oracle.train(table, size, **options))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LIKELIHOOD, "`criterion` likelihood needs all words in one round"),
        ({"criterion": "likelihood"}, "`criterion` likelihood needs all words in one round"),
        (PMI, "`criterion` pmi with a fixed `min_pair_count` needs all words in one round"),
    ],
    ids=str,
)
def test_criteria_that_rank_rare_pairs_high_need_all_words(
    options: dict[str, Any], said: str
) -> None:
    for too_little in ({"round_budget": 0.5}, {"driver_memory": 1000}):
        with pytest.raises(wp.OptionError, match=f"driver_memory: {said}, about"):
            wp.train(syllables(300), vocab_size=150, **options, **too_little)


def test_runs_of_all_partitions_come_in_the_order_of_their_places() -> None:
    table = syllables(300)
    for partitions in (1, 2, 7, 400):
        limits = Limits(least_fragment_partitions=partitions, fragments_at_once=40)
        mine = wp.train(table, vocab_size=150, round_budget=0.3, limits=limits)
        assert_equal(mine, oracle.train(table, 150))


def test_the_log_has_the_published_columns() -> None:
    for size in (7, 8):  # without and with a merge
        schema = wp.train({"ab": 1}, vocab_size=size, min_pair_count=1).merges.schema
        assert schema.remove_metadata().equals(MERGE_COLUMNS)


def test_a_table_of_arrow_trains_like_a_mapping() -> None:
    table = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    arrow = pa.table({"word": list(table), "count": pa.array(table.values(), pa.int64())})
    assert_equal(
        wp.train(arrow, vocab_size=20, min_pair_count=1),
        oracle.train(table, 20, min_pair_count=1),
    )


def test_special_tokens_that_are_also_symbols_stand_once() -> None:
    options: dict[str, Any] = {"special_tokens": ["[UNK]", "a", "ab", "[CLS]", "[SEP]"]}
    table = {"ab": 2, "abc": 1}
    specified = oracle.train(table, 8, min_pair_count=1, **options)
    assert specified.vocab == ["[UNK]", "a", "ab", "[CLS]", "[SEP]", "##b", "##c", "abc"]
    assert len(specified.merges) == 2
    assert_equal(wp.train(table, vocab_size=8, min_pair_count=1, **options), specified)


def test_a_dropped_character_stays_out_though_a_special_token_is_spelt_like_it() -> None:
    options: dict[str, Any] = {"special_tokens": ["[UNK]", "##b", "b"], "limit_alphabet": 1}
    table = {"aab": 5, "ba": 1}
    specified = oracle.train(table, 20, min_pair_count=1, **options)
    assert specified.vocab == ["[UNK]", "##b", "b", "##a", "a", "aa"]
    assert_equal(wp.train(table, vocab_size=20, min_pair_count=1, **options), specified)


@pytest.mark.parametrize("model", ["wordpiece", "bpe", "unigram"])
@pytest.mark.parametrize("word", ["Hug", "café", "हिन्दी", "hug"])
def test_the_tokenizer_of_a_training_knows_its_words(word: str, model: str) -> None:
    tokenizer = wp.train({word: 9, word * 2: 5}, model=model, vocab_size=40).tokenizer()
    assert tokenizer.unk_id not in tokenizer.encode_batch([word]).to_pylist()[0]
    assert tokenizer.spec.text.lowercase == (word == "hug")


NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|bos|>", "<|eos|>", "<pad>", "<s>")


@pytest.mark.parametrize("model", ["wordpiece", "bpe", "unigram"])
def test_special_tokens_and_roles_of_any_names_match_transformers(
    tmp_path: Path, model: str
) -> None:
    for seed in range(4):
        rng = random.Random(seed)
        special = rng.sample(NAMES, k=rng.randrange(1, 8))
        bytes_ = model == "bpe" and rng.random() < 0.7
        if not bytes_ and "[UNK]" not in special:
            special.append("[UNK]")
        roles = {r: rng.choice(special) for r in ("pad_token", "eos_token", "mask_token")}
        boundary = {"word_boundary": "bytes"} if bytes_ else {}
        options = {"model": model, "special_tokens": special, **boundary, **roles}
        ours = wp.train({"hug": 9, "pug": 4}, vocab_size=300, **options).tokenizer()
        ours.save(tmp_path / str(seed))
        theirs = AutoTokenizer.from_pretrained(tmp_path / str(seed))
        again = wp.Tokenizer.load(tmp_path / str(seed))
        for text in (" ".join(special) + " hug", "".join(special), "hug[PAD]pug [MASK] <s>x"):
            added = {"add_special_tokens": ours.adds_special_tokens}
            ids = ours.encode_batch([text], **added).to_pylist()
            assert {ours.ids[token] for token in special if token in text} <= {*ids[0]}
            assert (
                ids
                == again.encode_batch([text], **added).to_pylist()
                == theirs([text])["input_ids"]
            )
        assert {role: getattr(theirs, role) for role in roles} == roles
