"""WordPiece's and BPE's merging, in rounds.

Each part keeps the segmentations of its words after the merges so far. If all segmentations fit
into the memory of the driver, it merges them directly. Otherwise the passes of a round collect what
is needed (`wordpiece_core/kernel/core/src/train/threshold.rs` proves that nothing is lost):

    segmentations ─ count ─┬─ tokens ──────────────────────┐
       │                   └─ pairs, by partition ─ candidates ─┐
       ├────────────────────────────── sample ◀─────────────────┘
       └────────────────────────────── fragments, by partition

Candidates are the pairs at which segmentations need not be split. A sample of the fragments decides
up to which level pairs are kept together, so that the driver can hold all fragments.

Results do not depend on the number of partitions, which only limits the memory of workers.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.options import NO_LIMIT, TrainingOptions
from wordpiece_core.symbols import BYTES
from wordpiece_core.tokenizer.kernel_model import kernel_bpe
from wordpiece_core.tokenizer.tokenizer import Tokenizer
from wordpiece_core.training.alphabet import InitialVocabulary
from wordpiece_core.training.budget import RoundBudget, bytes_of_all, partitions_of
from wordpiece_core.training.rounds import (
    KEPT,
    Adding,
    Batch,
    Deciding,
    FinishedRound,
    Given,
    Output,
    Pass,
    Results,
    RoundAlgorithm,
    Told,
    facts_of,
    with_facts,
)

PAIR_BYTES, RUN_TOKEN_BYTES = 48, 32  # approximate sizes in memory
MERGES_PER_CALL = 200
ALL, LAST = "all", "last"  # merges


class Merging(RoundAlgorithm):
    """The training of a vocabulary by merging pairs of tokens.

    Args:
        vocabulary: The initial vocabulary.
        split_tokens: Number of tokens of all initial segmentations, each word counted once.
        words: Number of words.
        counting_memory: Bytes of pairs and fragments that a worker holds before it emits them.
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
        self.limits = budget.limits
        self.split_tokens, self.words = split_tokens, words
        self.counting_memory = counting_memory
        self.trainer = _trainer(vocabulary, options)
        self.last: Batch = pa.record_batch(self.trainer.merges())  # merges of the last round
        self._splitters: dict[str, Splitter] = {}
        self._lock = threading.Lock()

    def restore(self, done: FinishedRound) -> None:
        """Apply the merges of a round."""
        self.trainer.restore(done.decided, done.facts["support"])
        self._ended(done)

    def aim_at(self, vocab_size: int) -> None:
        """Set the number of tokens to train. A training that was finished with fewer tokens
        continues with more rounds."""
        self.options = replace(self.options, vocab_size=vocab_size)
        self.trainer.aim_at(vocab_size)

    def _ended(self, done: FinishedRound) -> None:
        self.split_tokens, self.last = done.facts["split_tokens"], done.decided
        self._splitters.clear()

    @property
    def merges(self) -> int:
        """Number of merges."""
        return len(pa.record_batch(self.trainer.merges()))

    @property
    def deciding(self) -> Deciding:
        """Progress up to the size of the vocabulary."""
        done = {"tokens": self.trainer.vocab_size, "merges": self.merges}
        return Deciding("merge", self.options.vocab_size, done)

    def _splitter(self, which: str) -> Splitter:
        """Return the splitter of words after ALL merges, or of segmentations after the merges of
        the LAST round. Threads share it."""
        with self._lock:
            if which not in self._splitters:
                merges = self.last if which == LAST else pa.record_batch(self.trainer.merges())
                self._splitters[which] = splitter(self.vocabulary, self.options, merges)
            return self._splitters[which]

    def first_kept(self, words: Batch) -> Batch:
        """Return the segmentations of words: `rank`, `offset`, `count`, `symbols: list<uint32>`."""
        return pa.record_batch(self._splitter(ALL).split(words, facts_of(words)["first_rank"]))

    def next_kept(self, kept: Batch) -> Batch:
        """Return segmentations after the last round, from segmentations before it."""
        return pa.record_batch(self._splitter(LAST).merge(kept))

    def holds_all(self) -> bool:
        """True if the budget allows a round over all segmentations. Raises OptionError if it does
        not, and partial rounds are useless because rare pairs have high scores."""
        if self.budget.holds(self.split_tokens, self.words):
            return True
        options, fixed = self.options, self.options.min_pair_count != "auto"
        if options.criterion == "likelihood" or (options.criterion == "pmi" and fixed):
            needed = bytes_of_all(self.split_tokens, self.words)
            with_count = f" with a fixed {opt.min_pair_count}" if options.criterion == "pmi" else ""
            raise OptionError(
                f"{opt.driver_memory}: {opt.criterion} {options.criterion}{with_count} needs all"
                " words in"
                f" one round, about {needed:,} bytes; increase it and remove"
                f" {opt.round_budget}, or use {opt.criterion} frequency, or pmi with"
                f" {opt.min_pair_count} auto"
            )
        return False

    def begin_with_all(self, kept: Iterable[Batch]) -> None:
        """Start a round over all segmentations."""
        for splits in kept:
            self.trainer.add_splits(splits)
        self.trainer.start_whole_round()

    def passes(self) -> Sequence[Pass]:
        """Return the passes in the diagram of this module."""
        trainer, budget, memory = self.trainer, self.budget, self.counting_memory
        pairs, runs = self._pair_partitions(), self._run_partitions()
        least, at_once = self.limits.least_added_bytes, self.limits.fragments_at_once
        return [
            Pass(
                *("count", KEPT),
                {
                    "tokens": Output(lambda parts, _: _add_tokens(parts, least)),
                    "pairs": Output(
                        lambda parts, _: _add_pairs(parts, trainer, least), partitions=True
                    ),
                },
                lambda _: _Count(memory, pairs),
            ),
            Pass(
                *("candidates", "pairs"),
                {"candidates": Output(lambda parts, used: iter([self._choose(list(parts), used)]))},
                lambda used: Adding(
                    "candidates",
                    lambda pairs: self._choose_from(pairs, used),
                    lambda parts: self._choose(parts, used),
                ),
                ("tokens", "pairs"),
            ),
            Pass(
                *("sample", KEPT),
                {"sample": Output(lambda parts, used: _add_samples(parts, budget, used, least))},
                lambda used: _Sample(budget, used),
                ("tokens", "candidates"),
            ),
            Pass(
                *("runs", KEPT),
                {
                    "runs": Output(
                        lambda parts, _: _add_runs(parts, max(at_once // runs, 1)), partitions=True
                    )
                },
                lambda used: _Runs(used, memory, runs, at_once),
                ("candidates", "sample"),
            ),
        ]

    def _pair_partitions(self) -> int:
        """Number of partitions of pairs, which are hashed. There are at most as many pairs as
        tokens in segmentations, and as pairs of two tokens."""
        most = min(self.split_tokens, self.trainer.vocab_size**2)
        return max(self._partitions(most * PAIR_BYTES), self.limits.least_pair_partitions)

    def _run_partitions(self) -> int:
        """Number of partitions of fragments, which are hashed. The driver holds all of them."""
        most = self.budget.tokens(self.split_tokens)
        partitions = self._partitions(most * RUN_TOKEN_BYTES)
        return max(partitions, self.limits.least_fragment_partitions)

    def _partitions(self, total_bytes: int) -> int:
        """Return a number of partitions whose batches are not too small: they would mostly be
        overhead, and the shuffle holds all of them."""
        memory, share = self.counting_memory, self.limits.partition_share_bytes
        return partitions_of(total_bytes, memory, most=(memory or 0) // share)

    def _choose_from(self, pairs: Batch, used: Results) -> Batch:
        """Return the candidates among the pairs of a partition: its share, plus six standard
        deviations for chance. If this is not enough, the level of complete candidates is lower."""
        largest = max(each.facts["largest"] for each in used["pairs"])
        tokens = used["tokens"][0]
        most = self.budget.candidates(tokens.facts["split_tokens"])
        share = -(-most // len(used["pairs"]))
        share = min(most, share + 6 * isqrt(share) + 64)
        return self._candidates([pairs], tokens.batch, largest, share, None)

    def _choose(self, parts: list[Batch], used: Results) -> Batch:
        """Return the candidates among the candidates of partitions."""
        facts = [facts_of(part) for part in parts]
        level = min(fact["max_level"] for fact in facts)
        tokens = used["tokens"][0]
        most = self.budget.candidates(tokens.facts["split_tokens"])
        return self._candidates(parts, tokens.batch, facts[0]["largest"], most, level)

    def _candidates(
        self, pairs: list[Batch], tokens: Batch, largest: int, most: int, max_level: int | None
    ) -> Batch:
        """Return about this number of candidates, the level up to which all pairs are among them,
        and the largest count of a pair."""
        candidates, level = self.trainer.candidates(
            tokens, pairs, largest=largest, most=most, max_level=max_level
        )
        return with_facts(candidates, max_level=level, largest=largest)

    def begin(self, results: Results) -> None:
        """Start a round over fragments."""
        (tokens,), (chosen,), (sample,) = (
            results[name] for name in ("tokens", "candidates", "sample")
        )
        streams = [each.read() for each in results["runs"]]
        for runs in _in_order(streams, self.limits.fragments_at_once):
            self.trainer.add_splits(runs)
        self.split_tokens = tokens.facts["split_tokens"]
        self.trainer.start_round(
            tokens.batch,
            largest=chosen.facts["largest"],
            max_level=sample.facts["max_level"],
            candidates=chosen.batch.filter(pc.equal(chosen.batch["level"], 0)),  # the best pair
        )

    def decide(self, told: Told) -> FinishedRound:
        """Merge until the round is finished."""
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


@dataclass(frozen=True)
class TokenizerSplitter:
    """Splitter of words by a tokenizer, which also applies merges. Words with one of the `hidden`
    tokens, such as the unknown token, are ignored."""

    tokenizer: Tokenizer
    hidden: Sequence[int]
    options: TrainingOptions
    merges: _kernel.Splitter

    def split(self, words: Batch, first_rank: int) -> Batch:
        """Return the segmentations of words in the format of the kernel's splitter."""
        ids = self.tokenizer.encode_batch(words["word"], add_special_tokens=False)
        is_hidden = pc.is_in(ids.flatten(), pa.array(self.hidden, ids.type.value_type))
        rows = pa.array(range(len(words)), pa.int64())
        without = pc.invert(
            pc.is_in(rows, pc.list_parent_indices(ids).filter(is_hidden).cast(pa.int64()))
        )
        is_frequent = pc.greater_equal(words["count"], self.options.min_word_count)
        is_short = pc.less_equal(pc.utf8_length(words["word"]), self.options.max_word_length)
        taken = pc.and_(without, pc.and_(is_frequent, is_short))
        splits = {
            "rank": pc.add(rows, first_rank).filter(taken),
            "offset": pa.repeat(pa.scalar(0, pa.int64()), len(rows)).filter(taken),
            "count": words["count"].filter(taken),
            "symbols": ids.filter(taken).cast(pa.list_(pa.uint32())),
        }
        return self.merge(pa.record_batch(splits))

    def merge(self, splits: Batch) -> Batch:
        """Return the segmentations after the merges."""
        return pa.record_batch(self.merges.merge(splits))


Splitter = _kernel.Splitter | TokenizerSplitter


def splitter(
    vocabulary: InitialVocabulary, options: TrainingOptions, merges: Batch | None = None
) -> Splitter:
    """Return the splitter that makes initial segmentations, and applies merges to segmentations."""
    begins_with_tokens = vocabulary.by_longest_match or vocabulary.model is not None
    made = _kernel.Splitter(
        vocabulary.alphabet,
        merges,
        continuing_prefix=options.prefix,
        min_word_count=options.min_word_count,
        max_word_length=options.max_word_length,
        tokens=vocabulary.tokens if begins_with_tokens else None,
        model=kernel_bpe(vocabulary.model, BYTES) if vocabulary.model is not None else None,
        hidden=list(vocabulary.hidden) if vocabulary.model is not None else [],
        word_marks=vocabulary.marks,
    )
    if vocabulary.tokenizer is None:
        return made
    return TokenizerSplitter(vocabulary.tokenizer, vocabulary.hidden, options, made)


def split_tokens(splitter: Splitter, words: Batch, first_rank: int) -> int:
    """Return the number of tokens of the segmentations of words, each word counted once."""
    counter = _kernel.PairCounter()
    counter.add_splits(splitter.split(words, first_rank))
    return counter.symbols


def _trainer(vocabulary: InitialVocabulary, options: TrainingOptions) -> _kernel.Trainer:
    """Return the kernel's trainer with the initial vocabulary."""
    auto = options.min_pair_count == "auto"
    return _kernel.Trainer(
        vocabulary.tokens,
        vocab_size=options.vocab_size,
        criterion=str(options.criterion),
        min_pair_count=None if auto else int(options.min_pair_count),
        max_token_length=options.max_token_length or NO_LIMIT,
        continuing_prefix=options.prefix,
        sealed=vocabulary.is_sealed,
        word_marks=vocabulary.marks,
        max_words=vocabulary.max_words,
    )


# --- Accumulators, and the sums of what they give -------------------------------------------------


@dataclass
class _Count:
    """Accumulator of the counts of tokens, and of pairs by partition. `most_bytes`: maximum size of
    the pairs in memory."""

    most_bytes: int | None
    partitions: int
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
        for partition, pairs in self.counter.take_pairs(self.partitions):
            yield "pairs", partition, pa.record_batch(pairs)


def _folded(
    parts: Iterable[Batch], add: Callable[[list[Batch]], Batch], least_bytes: int
) -> Iterator[Batch]:
    """Return the sum of batches with few of them in memory: waiting batches are added when they are
    as large as the sum so far, and have `least_bytes`."""
    held: list[Batch] = []
    waiting = added = 0
    for part in parts:
        held.append(part)
        waiting += part.nbytes
        if waiting > max(added, least_bytes):
            held = [add(held)]
            waiting, added = 0, held[0].nbytes
    yield add(held)


def _add_tokens(parts: Iterator[Batch], least_bytes: int) -> Iterator[Batch]:
    def add(batches: list[Batch]) -> Batch:
        split_tokens = sum(facts_of(batch)["split_tokens"] for batch in batches)
        return with_facts(_kernel.add_unigrams(batches), split_tokens=split_tokens)

    return _folded(parts, add, least_bytes)


def _add_pairs(
    parts: Iterator[Batch], trainer: _kernel.Trainer, least_bytes: int
) -> Iterator[Batch]:
    """Return the pairs of a partition, and the largest count of a pair that may be merged."""

    def add(batches: list[Batch]) -> Batch:
        return pa.record_batch(_kernel.add_pairs(batches))

    for pairs in _folded(parts, add, least_bytes):
        yield with_facts(pairs, largest=trainer.largest(pairs))


class _Sample:
    """Accumulator of a sample of fragments, which decides up to which level pairs are kept
    together."""

    def __init__(self, budget: RoundBudget, used: Results) -> None:
        candidates = used["candidates"][0]
        self.sizes = _kernel.RunSizes(_most(budget, used), candidates.facts["max_level"])
        self.levels = _kernel.PairLevels(candidates.batch)

    def add(self, splits: Batch) -> Given:
        self.sizes.add_splits(splits, self.levels)
        yield from ()

    def finish(self) -> Given:
        yield "sample", 0, with_facts(self.sizes.sample(), max_level=self.sizes.max_level)


def _add_samples(
    parts: Iterator[Batch], budget: RoundBudget, used: Results, least_bytes: int
) -> Iterator[Batch]:
    def add(batches: list[Batch]) -> Batch:
        max_level = min(facts_of(batch)["max_level"] for batch in batches)
        sizes = _kernel.RunSizes(_most(budget, used), max_level)
        for batch in batches:
            sizes.add_sample(batch)
        return with_facts(sizes.sample(), max_level=sizes.max_level)

    return _folded(parts, add, least_bytes)


def _most(budget: RoundBudget, used: Results) -> int:
    """Return the maximum number of tokens of fragments that the driver may hold."""
    return budget.tokens(used["tokens"][0].facts["split_tokens"])


class _Runs:
    """Accumulator of fragments by partition, with the sums of equal ones. `most_bytes`: maximum
    size in memory. `at_once`: rows of a batch."""

    def __init__(
        self, used: Results, most_bytes: int | None, partitions: int, at_once: int
    ) -> None:
        self.runs = _kernel.Runs()
        self.levels = _kernel.PairLevels(used["candidates"][0].batch)
        self.max_level = used["sample"][0].facts["max_level"]
        self.most_bytes, self.partitions, self.at_once = most_bytes, partitions, at_once

    def add(self, splits: Batch) -> Given:
        self.runs.add_splits(splits, self.levels, self.max_level)
        if self.most_bytes is not None and self.runs.memory > self.most_bytes:
            yield from self.finish()

    def finish(self) -> Given:
        for partition, runs in self.runs.take_partitions(self.partitions, self.at_once):
            yield "runs", partition, pa.record_batch(runs)


def _add_runs(parts: Iterator[Batch], at_once: int) -> Iterator[Batch]:
    """Return the fragments of a partition in the order of their places, in batches of `at_once`
    rows."""
    runs = _kernel.Runs()
    for part in parts:
        runs.add_runs(part)
    return map(pa.record_batch, runs.take(at_once))


def _in_order(streams: Sequence[Iterator[Batch]], at_once: int) -> Iterator[Batch]:
    """Yield the fragments of all partitions in the order of their places, in batches of `at_once`
    rows, from ordered streams. One batch of each is in memory."""
    if len(streams) == 1:
        yield from streams[0]
        return
    heads = {number: batch for number, batch in enumerate(map(_next, streams)) if len(batch)}
    while heads:
        end = min(_place(batch, len(batch) - 1) for batch in heads.values())
        runs = _kernel.Runs()
        for number, batch in list(heads.items()):
            rows = bisect_right(range(len(batch)), end, key=lambda row: _place(batch, row))
            runs.add_runs(batch.slice(0, rows))
            heads[number] = batch.slice(rows) if rows < len(batch) else _next(streams[number])
            if not len(heads[number]):
                del heads[number]
        yield from map(pa.record_batch, runs.take(at_once))


def _next(stream: Iterator[Batch]) -> Batch:
    """Return the next batch with rows; an empty one at the end."""
    return next((batch for batch in stream if len(batch)), _NO_RUNS)


_NO_RUNS: Batch = pa.record_batch([], names=[])


def _place(runs: Batch, row: int) -> tuple[int, int]:
    return runs["rank"][row].as_py(), runs["offset"][row].as_py()
