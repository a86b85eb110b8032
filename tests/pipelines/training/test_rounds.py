"""A round knows nothing of merges: another algorithm runs on both executors, in memory and on Beam,
in any parts, with any budget of workers, and gives the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pipelines
from pipelines.counting import word_table
from pipelines.counting.word_table import word_ranges
from pipelines.training.rounds import OnBeam
from pipelines.training.work_directory import TrainingWork
from wordpiece_core.training.rounds import (
    WORDS,
    Adding,
    Batch,
    Executor,
    FinishedRound,
    InMemory,
    Output,
    Pass,
    Results,
    RoundAlgorithm,
    Sum,
    Told,
    facts_of,
    make_round,
    with_facts,
)

from ..corpora import english, write_shards

LEFT = 12  # letters, at the end


class DroppingLetters(RoundAlgorithm):
    """Drops the rarest letter in each round, until few are left. As Unigram's training it keeps
    nothing of parts, begins large, and its second pass uses what the first has found."""

    def __init__(self) -> None:
        self.dropped: list[str] = []
        self.results: Results = {}

    def restore(self, done: FinishedRound) -> None:
        self.dropped += done.decided["letter"].to_pylist()

    def first_kept(self, words: Batch) -> Batch:
        raise AssertionError("nothing is kept of a part")

    next_kept = first_kept

    def holds_all(self) -> bool:
        return False

    def begin_with_all(self, kept: Iterable[Batch]) -> None:
        raise AssertionError("it never holds all")

    def passes(self) -> Sequence[Pass]:
        return [
            Pass(
                *("letters", WORDS),
                {"letters": Output(added)},
                lambda _: Adding("letters", lambda words: counts(words, self.dropped), add_up),
            ),
            Pass(
                *("words", WORDS),
                {"words": Output(added)},
                lambda used: Adding(
                    "words", lambda words: with_rarest(words, used["letters"][0]), add_up
                ),
                using=("letters",),
            ),
        ]

    def begin(self, results: Results) -> None:
        self.results = results

    def decide(self, told: Told) -> FinishedRound:
        (letters,), (words,) = self.results["letters"], self.results["words"]
        decided = pa.record_batch({"letter": [rarest(letters.batch)]})
        told(1, -1)
        facts = {"words": words.facts["words"]}
        done = FinishedRound(decided, facts, is_last=len(letters.batch) == LEFT + 1)
        self.restore(done)
        return done


def counts(words: Batch, dropped: list[str]) -> Batch:
    sums: Counter[str] = Counter()
    for word, count in zip(words["word"].to_pylist(), words["count"].to_pylist(), strict=True):
        for letter in word:
            sums[letter] += count
    kept = sums.keys() - set(dropped)
    return with_facts(table_of({letter: sums[letter] for letter in kept}), words=len(words))


def with_rarest(words: Batch, letters: Sum) -> Batch:
    """How many words have the rarest letter."""
    has = pc.match_substring(words["word"], rarest(letters.batch))
    return with_facts(table_of({}), words=pc.sum(has).as_py() or 0)


def table_of(sums: Mapping[str, int]) -> Batch:
    letters = sorted(sums)
    counts = pa.array([sums[letter] for letter in letters], pa.int64())
    return pa.record_batch({"letter": pa.array(letters, pa.string()), "count": counts})


def rarest(letters: Batch) -> str:
    rows = letters.to_pylist()
    return str(min(rows, key=lambda row: (row["count"], row["letter"]))["letter"])


def added(parts: Iterator[Batch], _: Results) -> Iterator[Batch]:
    yield add_up(list(parts))


def add_up(batches: list[Batch]) -> Batch:
    sums: Counter[str] = Counter()
    for batch in batches:
        for row in batch.to_pylist():
            sums[row["letter"]] += row["count"]
    return with_facts(table_of(sums), words=sum(facts_of(batch)["words"] for batch in batches))


def run(executor: Executor, finished: Sequence[FinishedRound] = ()) -> list[FinishedRound]:
    """All rounds, from those that are finished on."""
    algorithm, done = DroppingLetters(), list(finished)
    for earlier in finished:
        algorithm.restore(earlier)
    while not (done and done[-1].is_last):
        done.append(make_round(algorithm, executor, lambda steps, tokens: None))
    return done


def plain(done: list[FinishedRound]) -> list[tuple[list[str], dict[str, int]]]:
    return [(each.decided["letter"].to_pylist(), each.facts) for each in done]


@pytest.mark.parametrize("rows", [1000, 7])
def test_both_executors_decide_the_same_in_any_parts(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_table, "ROWS_PER_GROUP", rows)
    shards = write_shards(tmp_path / "in", english(40), 3, ".txt")
    table = pipelines.count(shards, output=tmp_path / "words", quiet=True)
    whole = table.read()
    sums: Counter[str] = Counter()
    for row in whole.to_pylist():
        for letter in row["word"]:
            sums[letter] += row["count"]
    by_count = sorted(sums, key=lambda letter: (sums[letter], letter))
    wanted = by_count[: len(sums) - LEFT]

    words = pa.record_batch([c.combine_chunks() for c in whole.columns], names=["word", "count"])
    in_memory = run(InMemory(lambda: iter([with_facts(words, first_rank=0)])))
    assert [done.decided["letter"].to_pylist() for done in in_memory] == [[x] for x in wanted]
    having = [sum(x in word for word in whole["word"].to_pylist()) for x in wanted]
    assert [done.facts["words"] for done in in_memory] == having

    work = TrainingWork(str(tmp_path / "work"))
    work.claim({})
    ranges = word_ranges(table)
    assert len(ranges) == -(-len(whole) // rows)
    on_beam = run(OnBeam(ranges, work, []))
    assert plain(on_beam) == plain(in_memory)


def test_rounds_that_are_committed_are_what_a_training_goes_on_from(tmp_path: Path) -> None:
    words = pa.record_batch({"word": ["".join(map(chr, range(97, 97 + n))) for n in range(1, 20)]})
    words = words.append_column("count", pa.array([1] * 19, pa.int64()))
    executor = InMemory(lambda: iter([with_facts(words, first_rank=0)]))
    whole = run(executor)
    work = TrainingWork(str(tmp_path / "work"))
    work.claim({})
    for number, done in enumerate(whole[:3], 1):
        work.finish_round(number, done)
    read = work.finished_rounds()
    assert plain(read) == plain(whole[:3])
    assert [done.is_last for done in read] == [False] * 3
    assert plain(run(executor, read)) == plain(whole)
