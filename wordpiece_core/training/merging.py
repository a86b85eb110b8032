"""WordPiece's merging, in rounds.

Of each part the splits of its words are kept: what the merges so far have made of them. Where the
driver may hold all splits it merges with them at hand. Where it may not, the passes of a round
bring it what matters (why this loses nothing: `wordpiece_core/kernel/src/train/cut.rs`):

    splits ─ count ─┬─ tokens ───────────────────────────────────┐
       │            └─ pairs, by partition ─ largest ─ candidates ─┐
       ├───────────────────────────── sample ◀────────────────────┤
       └───────────────────────────── runs ◀── sample             └─ limits

The pairs that need not be cut are chosen (`candidates`), and, by a sample of the pieces, up to
which level they stay whole so that the driver can hold the pieces: its runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.options import NO_LIMIT, TrainingOptions
from wordpiece_core.training.alphabet import InitialVocabulary
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.rounds import (
    KEPT,
    Batch,
    Each,
    FinishedRound,
    Output,
    Pass,
    Results,
    RoundAlgorithm,
    Told,
    facts_of,
    with_facts,
)

PARTITIONS = 16  # of pairs by hash; how many is part of no result
MERGES_PER_CALL = 200
ROWS_AT_ONCE = 1 << 18  # of runs
ALL, LAST = "all", "last"  # merges

Given = Iterator[tuple[str, int, Batch]]


class Merging(RoundAlgorithm):
    """The training of a vocabulary by merging pairs of tokens.

    `vocabulary`: what it begins with; `split_tokens`: the tokens of all splits then, each word's
    once; `words`: how many there are; `counting_memory`: bytes for the pairs that one worker counts
    before it hands them on.
    """

    def __init__(
        self,
        vocabulary: InitialVocabulary,
        options: TrainingOptions,
        budget: RoundBudget,
        *,
        split_tokens: int,
        words: int,
        counting_memory: int | None = None,
    ) -> None:
        self.vocabulary, self.options, self.budget = vocabulary, options, budget
        self.split_tokens, self.words = split_tokens, words
        self.counting_memory = counting_memory
        self.trainer = _trainer(vocabulary.tokens, options)
        self.last: Batch = pa.record_batch(self.trainer.merges())  # of the last round
        self._splitters: dict[str, _kernel.Splitter] = {}
        self._lock = threading.Lock()

    def restore(self, done: FinishedRound) -> None:
        """Takes up the merges of a round."""
        self.trainer.restore(done.decided, done.facts["support"])
        self._ended(done)

    def _ended(self, done: FinishedRound) -> None:
        self.split_tokens, self.last = done.facts["split_tokens"], done.decided
        self._splitters.clear()

    @property
    def merges(self) -> int:
        """How many merges there are."""
        return len(pa.record_batch(self.trainer.merges()))

    def _splitter(self, which: str) -> _kernel.Splitter:
        """Splits words after ALL merges, or splits after the merges of the LAST round. It is made
        once, whichever threads ask for it."""
        with self._lock:
            if which not in self._splitters:
                merges = self.last if which == LAST else pa.record_batch(self.trainer.merges())
                self._splitters[which] = _kernel.Splitter(
                    self.vocabulary.alphabet,
                    merges,
                    continuing_prefix=self.options.continuing_prefix,
                    min_word_count=self.options.min_word_count,
                    max_word_length=self.options.max_word_length,
                )
            return self._splitters[which]

    def first_kept(self, words: Batch) -> Batch:
        """The splits of words: `rank`, `offset`, `count`, `symbols: list<uint32>`."""
        return pa.record_batch(self._splitter(ALL).split(words, facts_of(words)["first_rank"]))

    def next_kept(self, kept: Batch) -> Batch:
        """Splits after the last round, from splits before it."""
        return pa.record_batch(self._splitter(LAST).merge(kept))

    def holds_all(self) -> bool:
        """Whether the budget allows a round over all splits."""
        return self.budget.holds(self.split_tokens, self.words)

    def begin_with_all(self, kept: Iterable[Batch]) -> None:
        """Begins a round over all splits."""
        for splits in kept:
            self.trainer.add_splits(splits)
        self.trainer.start_whole_round()

    def passes(self) -> Sequence[Pass]:
        """Those in the head of this module."""
        trainer, budget = self.trainer, self.budget
        counted = {"tokens": Output(_add_tokens), "pairs": Output(_add_pairs, partitions=True)}
        chosen = ("tokens", "largest")
        passes = [
            Pass("count", KEPT, counted, lambda _: _Count(self.counting_memory)),
            Pass("largest", "pairs", {"largest": Output(_maximum)}, lambda _: _Largest(trainer)),
            Pass(
                *("candidates", "pairs"),
                {"candidates": Output(lambda parts, used: iter([self._choose(parts, used)]))},
                lambda used: Each("candidates", lambda pairs: self._choose([pairs], used)),
                chosen,
            ),
            Pass(
                *("sample", KEPT),
                {"sample": Output(lambda parts, used: _add_samples(parts, budget, used))},
                lambda used: _Sample(trainer, budget, used),
                ("tokens", "candidates"),
            ),
            Pass(
                *("runs", KEPT),
                {"runs": Output(_add_runs, is_large=True)},
                lambda used: _Runs(trainer, used),
                ("candidates", "sample"),
            ),
        ]
        if trainer.watches:
            limits = Pass(
                *("limits", "pairs"),
                {"limits": Output(lambda parts, _: iter([_join_limits(parts)]))},
                lambda used: Each("limits", lambda pairs: self._limits(pairs, used)),
                (*chosen, "candidates"),
            )
            passes.append(limits)
        return passes

    def _choose(self, parts: Iterable[Batch], used: Results) -> Batch:
        """The candidates among pairs, or among the candidates of partitions."""
        parts = list(parts)
        levels = [facts_of(part)["max_level"] for part in parts if "max_level" in facts_of(part)]
        tokens = used["tokens"]
        candidates, max_level = self.trainer.candidates(
            tokens,
            parts,
            largest=facts_of(used["largest"])["largest"],
            most=self.budget.candidates(facts_of(tokens)["split_tokens"]),
            max_level=min(levels, default=None),
        )
        return with_facts(candidates, max_level=max_level)

    def _limits(self, pairs: Batch, used: Results) -> Batch:
        """What scores the pairs that are no candidates may come to."""
        largest, candidates = facts_of(used["largest"])["largest"], used["candidates"]
        limits = self.trainer.limits(
            used["tokens"], [pairs], candidates=candidates, largest=largest
        )
        return pa.record_batch(limits)

    def begin(self, results: Mapping[str, list[Batch]]) -> None:
        """Begins a round over runs."""
        (tokens,), (largest,), (candidates,), (sample,) = (
            results[name] for name in ("tokens", "largest", "candidates", "sample")
        )
        for runs in results["runs"]:
            self.trainer.add_splits(runs)
        limits = None
        if self.trainer.watches:
            (limits,) = results["limits"]
        else:  # then the best candidates will do
            candidates = candidates.filter(pc.equal(candidates["level"], 0))
        self.split_tokens = facts_of(tokens)["split_tokens"]
        self.trainer.start_round(
            tokens,
            largest=facts_of(largest)["largest"],
            max_level=facts_of(sample)["max_level"],
            candidates=candidates,
            limits=limits,
        )

    def decide(self, told: Told) -> FinishedRound:
        """Merges until the round is over."""
        first = done = self.merges
        status = "running"
        while status == "running":
            tokens = self.trainer.vocab_size
            status = self.trainer.run(MERGES_PER_CALL)
            merges = len(pa.record_batch(self.trainer.merges(done)))
            told(merges, self.trainer.vocab_size - tokens)
            done += merges
        facts = {"support": self.trainer.support, "split_tokens": self.split_tokens}
        decided = pa.record_batch(self.trainer.merges(first))
        ended = FinishedRound(decided, facts, is_last=status == "done")
        self._ended(ended)
        return ended


def _trainer(tokens: list[str], options: TrainingOptions) -> _kernel.Trainer:
    """The kernel's trainer, with the vocabulary that training begins with."""
    auto = options.min_pair_count == "auto"
    return _kernel.Trainer(
        tokens,
        vocab_size=options.vocab_size,
        criterion=options.criterion,
        min_pair_count=None if auto else int(options.min_pair_count),
        max_token_length=options.max_token_length or NO_LIMIT,
        continuing_prefix=options.continuing_prefix,
    )


# --- Accumulators, and the sums of what they give -------------------------------------------------


@dataclass
class _Count:
    """Counts of tokens, and of pairs by partition. `most_bytes`: of pairs held at once."""

    most_bytes: int | None
    counter: _kernel.PairCounter = field(default_factory=_kernel.PairCounter)

    def add(self, splits: Batch) -> Given:
        self.counter.add_splits(splits)
        if self.most_bytes is not None and self.counter.memory > self.most_bytes:
            yield from self._pairs()

    def finish(self) -> Given:
        yield from self._pairs()
        yield "pairs", 0, pa.record_batch(_kernel.add_pairs([]))
        tokens = with_facts(self.counter.unigrams(), split_tokens=self.counter.symbols)
        yield "tokens", 0, tokens

    def _pairs(self) -> Given:
        for partition, pairs in self.counter.take_pairs(PARTITIONS):
            yield "pairs", partition, pa.record_batch(pairs)


def _add_tokens(parts: Iterator[Batch], _: Results) -> Iterator[Batch]:
    batches = list(parts)
    split_tokens = sum(facts_of(batch)["split_tokens"] for batch in batches)
    yield with_facts(_kernel.add_unigrams(batches), split_tokens=split_tokens)


def _add_pairs(parts: Iterator[Batch], _: Results) -> Iterator[Batch]:
    yield pa.record_batch(_kernel.add_pairs(list(parts)))


@dataclass
class _Largest:
    """The largest count of a pair that may be merged."""

    trainer: _kernel.Trainer
    largest: int = 0

    def add(self, pairs: Batch) -> Given:
        self.largest = max(self.largest, self.trainer.largest(pairs))
        yield from ()

    def finish(self) -> Given:
        yield "largest", 0, with_facts(pa.record_batch([], names=[]), largest=self.largest)


def _maximum(parts: Iterator[Batch], _: Results) -> Iterator[Batch]:
    yield max(parts, key=lambda batch: facts_of(batch)["largest"])


def _join_limits(parts: Iterable[Batch]) -> Batch:
    return pa.record_batch(_kernel.join_limits(list(parts)))


class _Sample:
    """A sample of the runs of splits, from which is chosen up to which level pairs stay whole."""

    def __init__(self, trainer: _kernel.Trainer, budget: RoundBudget, used: Results) -> None:
        candidates = used["candidates"]
        self.sizes = _kernel.RunSizes(_most(budget, used), facts_of(candidates)["max_level"])
        self.levels = _kernel.PairLevels(candidates, trainer.watches)

    def add(self, splits: Batch) -> Given:
        self.sizes.add_splits(splits, self.levels)
        yield from ()

    def finish(self) -> Given:
        yield "sample", 0, with_facts(self.sizes.sample(), max_level=self.sizes.max_level)


def _add_samples(parts: Iterator[Batch], budget: RoundBudget, used: Results) -> Iterator[Batch]:
    batches = list(parts)
    max_level = min(facts_of(batch)["max_level"] for batch in batches)
    sizes = _kernel.RunSizes(_most(budget, used), max_level)
    for batch in batches:
        sizes.add_sample(batch)
    yield with_facts(sizes.sample(), max_level=sizes.max_level)


def _most(budget: RoundBudget, used: Results) -> int:
    """The most tokens of runs that the driver may hold."""
    return budget.tokens(facts_of(used["tokens"])["split_tokens"])


class _Runs:
    """The runs in splits, equal ones added up."""

    def __init__(self, trainer: _kernel.Trainer, used: Results) -> None:
        self.runs = _kernel.Runs()
        self.levels = _kernel.PairLevels(used["candidates"], trainer.watches)
        self.max_level = facts_of(used["sample"])["max_level"]

    def add(self, splits: Batch) -> Given:
        self.runs.add_splits(splits, self.levels, self.max_level)
        yield from ()

    def finish(self) -> Given:
        for runs in self.runs.take(ROWS_AT_ONCE):
            yield "runs", 0, pa.record_batch(runs)


def _add_runs(parts: Iterator[Batch], _: Results) -> Iterator[Batch]:
    runs = _kernel.Runs()
    for part in parts:
        runs.add_runs(part)
    return map(pa.record_batch, runs.take(ROWS_AT_ONCE))
