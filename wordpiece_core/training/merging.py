"""WordPiece's merging, in rounds.

Of each part the splits of its words are kept: what the merges so far have made of them. Where the
driver may hold all splits it merges with them at hand. Where it may not, the passes of a round
bring it what matters (why this loses nothing: `wordpiece_core/kernel/core/src/train/threshold.rs`):

    splits ─ count ─┬─ tokens ─────────────────────┐
       │            └─ pairs, by partition ─ candidates ─┐
       ├──────────────────────── sample ◀────────────────┘
       └──────────────────────── runs, by partition

The pairs that need not be divided are chosen (`candidates`), and, by a sample of the pieces, up to
which level they stay whole so that the driver can hold the pieces: its runs.

Nothing here depends on the number of partitions but what one worker holds of pairs and runs.
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

LEAST_PARTITIONS = 16  # of pairs
PARTITION_SHARE_BYTES = 128 << 10  # the least memory of a worker for each partition
PAIR_BYTES, RUN_TOKEN_BYTES = 48, 32  # of a pair in a table, and of a token of runs, about
MERGES_PER_CALL = 200
RUNS_AT_ONCE = 1 << 18  # of runs
LEAST_ADDED_BYTES = 8 << 20  # of batches, which wait to be added up
ALL, LAST = "all", "last"  # merges


class Merging(RoundAlgorithm):
    """The training of a vocabulary by merging pairs of tokens.

    `vocabulary`: what it begins with; `split_tokens`: the tokens of all splits then, each word's
    once; `words`: how many there are; `counting_memory`: bytes for the pairs and the runs that one
    worker holds before it hands them on.
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
        self.trainer = _trainer(vocabulary, options)
        self.last: Batch = pa.record_batch(self.trainer.merges())  # of the last round
        self._splitters: dict[str, Splitter] = {}
        self._lock = threading.Lock()

    def restore(self, done: FinishedRound) -> None:
        """Takes up the merges of a round."""
        self.trainer.restore(done.decided, done.facts["support"])
        self._ended(done)

    def aim_at(self, vocab_size: int) -> None:
        """Sets how many tokens are to be trained. A training that was over with as many as were
        wanted before goes on with further rounds."""
        self.options = replace(self.options, vocab_size=vocab_size)
        self.trainer.aim_at(vocab_size)

    def _ended(self, done: FinishedRound) -> None:
        self.split_tokens, self.last = done.facts["split_tokens"], done.decided
        self._splitters.clear()

    @property
    def merges(self) -> int:
        """How many merges there are."""
        return len(pa.record_batch(self.trainer.merges()))

    @property
    def deciding(self) -> Deciding:
        """Merging goes up to the size of the vocabulary."""
        done = {"tokens": self.trainer.vocab_size, "merges": self.merges}
        return Deciding("merge", self.options.vocab_size, done)

    def _splitter(self, which: str) -> Splitter:
        """Splits words after ALL merges, or splits after the merges of the LAST round. It is made
        once, whichever threads ask for it."""
        with self._lock:
            if which not in self._splitters:
                merges = self.last if which == LAST else pa.record_batch(self.trainer.merges())
                self._splitters[which] = splitter(self.vocabulary, self.options, merges)
            return self._splitters[which]

    def first_kept(self, words: Batch) -> Batch:
        """The splits of words: `rank`, `offset`, `count`, `symbols: list<uint32>`."""
        return pa.record_batch(self._splitter(ALL).split(words, facts_of(words)["first_rank"]))

    def next_kept(self, kept: Batch) -> Batch:
        """Splits after the last round, from splits before it."""
        return pa.record_batch(self._splitter(LAST).merge(kept))

    def holds_all(self) -> bool:
        """Whether the budget allows a round over all splits. OptionError if it does not, and rounds
        over some of them are of no use: where rare pairs have high scores."""
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
        """Begins a round over all splits."""
        for splits in kept:
            self.trainer.add_splits(splits)
        self.trainer.start_whole_round()

    def passes(self) -> Sequence[Pass]:
        """Those in the head of this module."""
        trainer, budget, memory = self.trainer, self.budget, self.counting_memory
        pairs, runs = self._pair_partitions(), self._run_partitions()
        return [
            Pass(
                *("count", KEPT),
                {
                    "tokens": Output(_add_tokens),
                    "pairs": Output(lambda parts, _: _add_pairs(parts, trainer), partitions=True),
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
                {"sample": Output(lambda parts, used: _add_samples(parts, budget, used))},
                lambda used: _Sample(budget, used),
                ("tokens", "candidates"),
            ),
            Pass(
                *("runs", KEPT),
                {"runs": Output(lambda parts, _: _add_runs(parts, runs), partitions=True)},
                lambda used: _Runs(used, memory, runs),
                ("candidates", "sample"),
            ),
        ]

    def _pair_partitions(self) -> int:
        """Of pairs, by hash. There are no more pairs than split tokens, and than any two tokens
        make."""
        most = min(self.split_tokens, self.trainer.vocab_size**2)
        return max(self._partitions(most * PAIR_BYTES), LEAST_PARTITIONS)

    def _run_partitions(self) -> int:
        """Of runs, by hash, of which the driver holds all."""
        return self._partitions(self.budget.tokens(self.split_tokens) * RUN_TOKEN_BYTES)

    def _partitions(self, total_bytes: int) -> int:
        """Not more than leave each a share of a full table: smaller batches are mostly overhead,
        and the shuffle holds all of them."""
        memory = self.counting_memory
        return partitions_of(total_bytes, memory, most=(memory or 0) // PARTITION_SHARE_BYTES)

    def _choose_from(self, pairs: Batch, used: Results) -> Batch:
        """The candidates among the pairs of a partition: its share of them, and what it may have
        more than others by chance (six standard deviations). Should that not do, the level up to
        which all pairs are among the candidates is lower."""
        largest = max(each.facts["largest"] for each in used["pairs"])
        tokens = used["tokens"][0]
        most = self.budget.candidates(tokens.facts["split_tokens"])
        share = -(-most // len(used["pairs"]))
        share = min(most, share + 6 * isqrt(share) + 64)
        return self._candidates([pairs], tokens.batch, largest, share, None)

    def _choose(self, parts: list[Batch], used: Results) -> Batch:
        """The candidates among those of partitions."""
        facts = [facts_of(part) for part in parts]
        level = min(fact["max_level"] for fact in facts)
        tokens = used["tokens"][0]
        most = self.budget.candidates(tokens.facts["split_tokens"])
        return self._candidates(parts, tokens.batch, facts[0]["largest"], most, level)

    def _candidates(
        self, pairs: list[Batch], tokens: Batch, largest: int, most: int, max_level: int | None
    ) -> Batch:
        """About so many candidates; the level up to which all pairs are among them; the largest
        count of a pair."""
        candidates, level = self.trainer.candidates(
            tokens, pairs, largest=largest, most=most, max_level=max_level
        )
        return with_facts(candidates, max_level=level, largest=largest)

    def begin(self, results: Results) -> None:
        """Begins a round over runs."""
        (tokens,), (chosen,), (sample,) = (
            results[name] for name in ("tokens", "candidates", "sample")
        )
        for runs in _in_order([each.read() for each in results["runs"]]):
            self.trainer.add_splits(runs)
        self.split_tokens = tokens.facts["split_tokens"]
        self.trainer.start_round(
            tokens.batch,
            largest=chosen.facts["largest"],
            max_level=sample.facts["max_level"],
            candidates=chosen.batch.filter(pc.equal(chosen.batch["level"], 0)),  # the best pair
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


@dataclass(frozen=True)
class TokenizerSplitter:
    """Splits words as a tokenizer tokenizes them, and applies merges. Words with one of the tokens
    `hidden`, such as the unknown one, take no part."""

    tokenizer: Tokenizer
    hidden: Sequence[int]
    options: TrainingOptions
    merges: _kernel.Splitter

    def split(self, words: Batch, first_rank: int) -> Batch:
        """The splits of words, as the kernel's splitter gives them."""
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
        """The splits after the merges."""
        return pa.record_batch(self.merges.merge(splits))


Splitter = _kernel.Splitter | TokenizerSplitter


def splitter(
    vocabulary: InitialVocabulary, options: TrainingOptions, merges: Batch | None = None
) -> Splitter:
    """What splits words as they begin, and applies merges to splits."""
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


def _trainer(vocabulary: InitialVocabulary, options: TrainingOptions) -> _kernel.Trainer:
    """The kernel's trainer, with the vocabulary that training begins with."""
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
    )


# --- Accumulators, and the sums of what they give -------------------------------------------------


@dataclass
class _Count:
    """Counts of tokens, and of pairs by partition. `most_bytes`: of pairs held at once."""

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


def _folded(parts: Iterable[Batch], add: Callable[[list[Batch]], Batch]) -> Iterator[Batch]:
    """The sum of batches, of which few are held: those that wait are added up when they are as
    large as the sum so far."""
    held: list[Batch] = []
    waiting = added = 0
    for part in parts:
        held.append(part)
        waiting += part.nbytes
        if waiting > max(added, LEAST_ADDED_BYTES):
            held = [add(held)]
            waiting, added = 0, held[0].nbytes
    yield add(held)


def _add_tokens(parts: Iterator[Batch], _: Results) -> Iterator[Batch]:
    def add(batches: list[Batch]) -> Batch:
        split_tokens = sum(facts_of(batch)["split_tokens"] for batch in batches)
        return with_facts(_kernel.add_unigrams(batches), split_tokens=split_tokens)

    return _folded(parts, add)


def _add_pairs(parts: Iterator[Batch], trainer: _kernel.Trainer) -> Iterator[Batch]:
    """The pairs of a partition, and the largest count of one that may be merged."""

    def add(batches: list[Batch]) -> Batch:
        return pa.record_batch(_kernel.add_pairs(batches))

    for pairs in _folded(parts, add):
        yield with_facts(pairs, largest=trainer.largest(pairs))


class _Sample:
    """A sample of the runs of splits, from which is chosen up to which level pairs stay whole."""

    def __init__(self, budget: RoundBudget, used: Results) -> None:
        candidates = used["candidates"][0]
        self.sizes = _kernel.RunSizes(_most(budget, used), candidates.facts["max_level"])
        self.levels = _kernel.PairLevels(candidates.batch)

    def add(self, splits: Batch) -> Given:
        self.sizes.add_splits(splits, self.levels)
        yield from ()

    def finish(self) -> Given:
        yield "sample", 0, with_facts(self.sizes.sample(), max_level=self.sizes.max_level)


def _add_samples(parts: Iterator[Batch], budget: RoundBudget, used: Results) -> Iterator[Batch]:
    def add(batches: list[Batch]) -> Batch:
        max_level = min(facts_of(batch)["max_level"] for batch in batches)
        sizes = _kernel.RunSizes(_most(budget, used), max_level)
        for batch in batches:
            sizes.add_sample(batch)
        return with_facts(sizes.sample(), max_level=sizes.max_level)

    return _folded(parts, add)


def _most(budget: RoundBudget, used: Results) -> int:
    """The most tokens of runs that the driver may hold."""
    return budget.tokens(used["tokens"][0].facts["split_tokens"])


class _Runs:
    """The runs in splits by partition, equal ones added up. `most_bytes`: of runs held at once."""

    def __init__(self, used: Results, most_bytes: int | None, partitions: int) -> None:
        self.runs = _kernel.Runs()
        self.levels = _kernel.PairLevels(used["candidates"][0].batch)
        self.max_level = used["sample"][0].facts["max_level"]
        self.most_bytes, self.partitions = most_bytes, partitions

    def add(self, splits: Batch) -> Given:
        self.runs.add_splits(splits, self.levels, self.max_level)
        if self.most_bytes is not None and self.runs.memory > self.most_bytes:
            yield from self.finish()

    def finish(self) -> Given:
        for partition, runs in self.runs.take_partitions(self.partitions, RUNS_AT_ONCE):
            yield "runs", partition, pa.record_batch(runs)


def _add_runs(parts: Iterator[Batch], partitions: int) -> Iterator[Batch]:
    """The runs of a partition, in the order of their places."""
    runs = _kernel.Runs()
    for part in parts:
        runs.add_runs(part)
    return map(pa.record_batch, runs.take(max(RUNS_AT_ONCE // partitions, 1)))


def _in_order(streams: Sequence[Iterator[Batch]]) -> Iterator[Batch]:
    """The runs of all partitions in the order of their places, from streams that are each in this
    order. One batch of each is held."""
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
        yield from map(pa.record_batch, runs.take(RUNS_AT_ONCE))


def _next(stream: Iterator[Batch]) -> Batch:
    """The next batch with rows; one without at the end."""
    return next((batch for batch in stream if len(batch)), _NO_RUNS)


_NO_RUNS: Batch = pa.record_batch([], names=[])


def _place(runs: Batch, row: int) -> tuple[int, int]:
    return runs["rank"][row].as_py(), runs["offset"][row].as_py()
