"""The training of a unigram language model, in rounds (Kudo 2018, section 3.2; as SentencePiece).

Words are split into segments, which pieces do not cross
(`wordpiece_core/kernel/core/src/unigram/runs.rs`). The first round finds the initial pieces: the
characters, and the substrings of segments that cover most of them, in partitions by their first two
characters. Each later round estimates the probabilities of the pieces by two steps of expectation
maximization, then drops the quarter of the pieces that the likelihood needs least. The last round
keeps the best of the remaining pieces:

    words ─┬─ expected ─ the M step ─┐
           ├─ again ◀────────────────┤ the M step
           └─ best ◀─────────────────┴─ pruning

If all segments fit into the memory of the driver, it computes the sums itself. Otherwise the passes
of a round compute the same sums: each segment contributes integers, which are added in 128 bits, so
the sums depend neither on the order nor on the sharding.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.options import TrainingOptions
from wordpiece_core.symbols import SPACE_MARK
from wordpiece_core.training.alphabet import check_size, kept_characters, reserved_tokens
from wordpiece_core.training.budget import RoundBudget, partitions_of
from wordpiece_core.training.rounds import (
    WORDS,
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

ROOM = 1.25  # the last pieces are chosen from 1.25 times the size of the vocabulary
KEPT_SHARE = 0.75  # share of the pieces that a round keeps
SCORE_UNITS = 64
"""Scores are rounded to multiples of 1/64, in nats. So sums of up to 2^18 scores are exact in 32
bits, and all programs find the same pieces."""
COUNT_BITS, LOG_BITS = 52, 40  # fractional bits of sums: of expected counts, of logarithms
EXPECTED, BEST = "expected", "best"  # sums of the kernel

# Memory of the driver, measured (.github/notes/unigram.md).
BYTES_PER_CHARACTER, BYTES_PER_WORD = 24, 40
MOST_PARTITIONS = 1024

Decided = tuple[FinishedRound, _kernel.UnigramModel | None]  # with the model of the next round

# --- What it begins with --------------------------------------------------------------------------


def character_passes(options: TrainingOptions) -> Sequence[Pass]:
    """Return the pass that counts the characters of all segments. Its fact `characters` is the
    number of characters, with each word counted once."""
    splitter = _splitter(options, None)

    def counted(words: Batch) -> Batch:
        batch, characters = splitter.characters(words)
        return with_facts(batch, characters=characters)

    outputs = {"symbols": Output(lambda parts, _: iter([_add_characters(list(parts))]))}
    return [Pass("symbols", WORDS, outputs, lambda _: Adding("symbols", counted, _add_characters))]


def _add_characters(batches: list[Batch]) -> Batch:
    characters = sum(facts_of(batch)["characters"] for batch in batches)
    return with_facts(_kernel.add_characters(batches), characters=characters)


def _splitter(options: TrainingOptions, alphabet: str | None) -> _kernel.RunSplitter:
    return _kernel.RunSplitter(
        alphabet,
        min_word_count=options.min_word_count,
        max_run_length=options.max_word_length,
    )


@dataclass(frozen=True)
class Characters:
    """Start of a training.

    Attributes:
        counts: Count of each character of the alphabet, in the order of the characters.
        in_runs: Number of characters of all segments, with each word counted once.
    """

    counts: list[tuple[str, int]]
    in_runs: int

    @classmethod
    def of(cls, symbols: Batch, options: TrainingOptions) -> Characters:
        """Return the start from the result of `character_passes`. Raises OptionError if the
        vocabulary is too small."""
        counts = {row["word"]: row["count"] for row in symbols.to_pylist()}
        if SPACE_MARK in options.listed_tokens:
            raise OptionError(f"{opt.special_tokens}: {SPACE_MARK!r} represents a space; remove it")
        alphabet = kept_characters(counts, options).difference(options.listed_tokens)
        check_size(len(alphabet), options)
        in_runs = facts_of(symbols)["characters"]
        return cls([(c, counts.get(c, 0)) for c in sorted(alphabet)], in_runs)

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can hold."""
        return {"characters": [list(row) for row in self.counts], "in_runs": self.in_runs}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Characters:
        """Return the start from the result of `to_dict`."""
        return cls([(c, count) for c, count in value["characters"]], value["in_runs"])

    @property
    def alphabet(self) -> str:
        """The characters."""
        return "".join(character for character, _ in self.counts)

    @property
    def batch(self) -> Batch:
        """The counts for the kernel."""
        columns = [[c for c, _ in self.counts], pa.array([n for _, n in self.counts], pa.int64())]
        return pa.record_batch(columns, names=["word", "count"])


# --- The rounds -----------------------------------------------------------------------------------


class UnigramTraining(RoundAlgorithm):
    """The training of a unigram language model.

    Args:
        characters: Start of the training.
        words: Number of words in the table.
        counting_memory: Bytes of segments that a worker holds before it emits them.
        threads: Number of threads of the driver.
    """

    def __init__(
        self,
        characters: Characters,
        options: TrainingOptions,
        budget: RoundBudget,
        *,
        words: int,
        counting_memory: int | None = None,
        threads: int = 1,
    ) -> None:
        self.characters, self.options, self.budget, self.words = characters, options, budget, words
        self.counting_memory, self.threads = counting_memory, threads
        self.room = options.vocab_size - len(reserved_tokens(options))
        self.splitter = _splitter(options, characters.alphabet)
        self.model: _kernel.UnigramModel | None = None
        self.pieces: Batch | None = None  # the result
        self.estimates: list[dict[str, float]] = []
        """For each round except the first: the number of pieces before pruning, and the
        log-likelihood of all words before the last M step, in nats."""
        self._source: _Corpus | _Results | None = None
        self._after: dict[str, _kernel.UnigramModel] = {}  # the passes of this round
        self._lock = threading.Lock()

    @property
    def deciding(self) -> Deciding:
        """Progress without a total, because pieces become fewer."""
        return Deciding("seeds" if self.model is None else "estimate")

    def restore(self, done: FinishedRound) -> None:
        """Apply the pieces of a round."""
        self._check_memory(done.facts["pieces"])
        self._ended(done, None if done.is_last else _kernel.UnigramModel(done.decided))

    def _ended(self, done: FinishedRound, model: _kernel.UnigramModel | None) -> None:
        """Finish a round. `model`: the model of the pieces, if there is another round."""
        if "log_likelihood" in done.facts:
            nats = done.facts["log_likelihood"] / 2**LOG_BITS
            self.estimates.append({"pieces": done.facts["pieces"], "log_likelihood": nats})
        if model is None:
            self.pieces = done.decided
        else:
            self.model = model
        self._after = {}

    def first_kept(self, words: Batch) -> Batch:
        """Return the segments of words: `word: string, count: int64`."""
        return pa.record_batch(self.splitter.runs(words))

    def next_kept(self, kept: Batch) -> Batch:
        """Return the segments unchanged."""
        return kept

    def holds_all(self) -> bool:
        """True if the budget allows the driver to hold all segments."""
        memory = self.budget.driver_memory
        return self.budget.round_budget >= 1.0 and (memory is None or self._needed() <= memory)

    def _needed(self) -> int:
        """Return the bytes that the driver needs approximately, without lattices, which it keeps if
        there is room."""
        characters = self.characters.in_runs
        seeds = min(self.options.seed_size, characters)
        runs = characters * BYTES_PER_CHARACTER + self.words * BYTES_PER_WORD
        return runs + seeds * self.budget.limits.seed_bytes

    def begin_with_all(self, kept: Iterable[Batch]) -> None:
        """Start a round over all segments, which are read only once."""
        if not isinstance(self._source, _Corpus):
            memory = self.budget.driver_memory
            free = self.budget.limits.lattice_bytes if memory is None else memory - self._needed()
            corpus = _kernel.RunCorpus(most_bytes=free, threads=self.threads)
            for runs in kept:
                corpus.add(runs)
            self._source = _Corpus(corpus)

    def begin(self, results: Results) -> None:
        """Start a round with the sums of passes."""
        self._source = _Results(results)

    def passes(self) -> Sequence[Pass]:
        """Return the passes in the diagram of this module."""
        if self.model is None:
            most = self.options.seed_size
            combine = {"seeds": Output(lambda parts, _: _find_seeds(parts, most), partitions=True)}
            return [Pass("seeds", WORDS, combine, lambda _: self._suffixes())]
        return [
            Pass(name, WORDS, {name: Output(_add_sums)}, partial(self._sums, name), earlier)
            for name, earlier in (
                ("expected", ()),
                ("again", ("expected",)),
                ("best", ("expected", "again")),
            )
        ]

    def _suffixes(self) -> _Suffixes:
        total, memory = (
            self.characters.in_runs * self.budget.limits.suffix_bytes,
            self.counting_memory,
        )
        partitions = partitions_of(total, memory, MOST_PARTITIONS)
        counter = _kernel.SuffixCounter(
            self.splitter, max_length=self._max_length(), partitions=partitions
        )
        return _Suffixes(counter, memory)

    def _max_length(self) -> int:
        assert self.options.max_token_length is not None
        return self.options.max_token_length

    def _sums(self, name: str, used: Results) -> _Sums:
        model = self._model_of(name, _Results(used))
        if name == "best" and not self._is_dropping(model):
            return _Sums(name, None)
        return _Sums(
            name, _kernel.RunSums(self.splitter, model, BEST if name == "best" else EXPECTED)
        )

    def _model_of(self, name: str, source: _Results | _Corpus) -> _kernel.UnigramModel:
        """Return the model of a pass of this round. Threads share it."""
        assert self.model is not None
        with self._lock:
            models = self._after
            if not models:
                models["expected"] = self.model
            for before, after in (("expected", "again"), ("again", "best")):
                if name in models:
                    break
                if after not in models:
                    sums, _ = source.sums(before, models[before])
                    models[after] = models[before].maximized(sums)
            return models[name]

    def _is_dropping(self, model: _kernel.UnigramModel) -> bool:
        """True if pieces are dropped and another round follows. Otherwise the last pieces are
        chosen, because there are few enough, or only characters could be dropped."""
        return len(model) > max(self._aim, len(self.characters.counts))

    @property
    def _aim(self) -> int:
        return int(self.options.vocab_size * ROOM)

    def decide(self, told: Told) -> FinishedRound:
        """Finish the round."""
        source, self._source = self._source, None
        assert source is not None
        if isinstance(source, _Corpus):
            self._source = source  # for the next round
        done, model = self._begun(source) if self.model is None else self._estimated(source)
        self._ended(done, model)
        return done

    def _begun(self, source: _Corpus | _Results) -> Decided:
        seeds = source.seeds(self._max_length(), self.options.seed_size)
        reserved = pa.array(reserved_tokens(self.options), pa.string())
        seeds = seeds.filter(pc.invert(pc.is_in(seeds["word"], reserved)))
        self._check_memory(len(seeds) + len(self.characters.counts))
        model = _kernel.UnigramModel.first(self.characters.batch, seeds)
        return FinishedRound(pa.record_batch(model.pieces()), {"pieces": len(model)}), model

    def _check_memory(self, pieces: int) -> None:
        """Raise OptionError if the pieces do not fit into the memory of the driver. Fewer pieces
        would give another vocabulary, so the user must choose."""
        memory, size = self.budget.driver_memory, self.budget.limits.seed_bytes
        needed = pieces * size
        if memory is None or needed <= memory:
            return
        fitting = memory // size - len(self.characters.counts)
        fewer = f", or a {opt.seed_size} of {fitting:,} or less, which may give another vocabulary"
        raise OptionError(
            f"{opt.driver_memory}: {memory:,} bytes, but the initial {pieces:,} pieces need about"
            f" {needed:,}; increase it{fewer if fitting > 0 else ''}"
        )

    def _estimated(self, source: _Corpus | _Results) -> Decided:
        model = self._model_of("best", source)
        sums, log_likelihood = source.sums("again", self._after["again"])
        facts = {"pieces": len(model), "log_likelihood": log_likelihood}
        if not self._is_dropping(model):
            return FinishedRound(self._last_pieces(model, sums), facts, is_last=True), None
        size = max(self._aim, int(KEPT_SHARE * len(model)))
        counts, _ = source.sums("best", model)
        model = model.pruned(counts, size, self.threads)
        return FinishedRound(pa.record_batch(model.pieces()), facts), model

    def _last_pieces(self, model: _kernel.UnigramModel, sums: Batch) -> Batch:
        """Return all characters, and the other pieces with the largest scores: `piece`, `score`,
        and the expected `count`, by descending score, then by piece."""
        found = pa.record_batch(model.pieces())
        length = pc.min_element_wise(pc.utf8_length(found["piece"]), 2)
        found = found.append_column("length", length)
        first = [("length", "ascending"), ("score", "descending"), ("piece", "ascending")]
        kept = found.take(pc.sort_indices(found, first)[: self.room])
        units = pc.floor(pc.add(pc.multiply(kept["score"], float(SCORE_UNITS)), 0.5))
        kept = kept.set_column(1, "score", pc.divide(units, float(SCORE_UNITS)))
        kept = kept.sort_by(first[1:])
        before = pa.record_batch(self._after["again"].pieces())["piece"]
        counts = numbers_of(sums.take(pc.index_in(kept["piece"], before)))
        columns = [*kept.columns[:2], pa.array([n / 2**COUNT_BITS for n in counts], pa.float64())]
        return pa.record_batch(columns, names=["piece", "score", "count"])


def numbers_of(sums: Batch) -> list[int]:
    """Return numbers of 128 bits."""
    halves = zip(sums["high"].to_pylist(), sums["low"].to_pylist(), strict=True)
    return [(high << 64) + (low & (1 << 64) - 1) for high, low in halves]


# --- Where sums are from --------------------------------------------------------------------------


@dataclass
class _Corpus:
    """All segments in memory. Sums are computed on request."""

    corpus: _kernel.RunCorpus
    made: tuple[_kernel.UnigramModel, str, tuple[Batch, int]] | None = None

    def seeds(self, max_length: int, most: int) -> Batch:
        """Return the best seeds."""
        return pa.record_batch(self.corpus.seeds(max_length, most))

    def sums(self, name: str, model: _kernel.UnigramModel) -> tuple[Batch, int]:
        """Return the sums of a pass with a model, and the log-likelihood. The last result is
        cached."""
        if self.made is None or self.made[0] is not model or self.made[1] != name:
            sums, log = self.corpus.sums(model, BEST if name == "best" else EXPECTED)
            self.made = model, name, (pa.record_batch(sums), log)
        return self.made[2]


@dataclass(frozen=True)
class _Results:
    """Results of passes."""

    results: Results

    def seeds(self, max_length: int, most: int) -> Batch:
        """Return the best seeds."""
        held: list[Batch] = []
        for part in self.results["seeds"]:
            held += part.read()
            if sum(map(len, held[1:])) > len(held[0]):
                held = [pa.record_batch(_kernel.best_seeds(held, most))]
        return pa.record_batch(_kernel.best_seeds(held, most))

    def sums(self, name: str, model: _kernel.UnigramModel) -> tuple[Batch, int]:
        """Return the sums of a pass, and the log-likelihood."""
        (sums,) = self.results[name]
        return sums.batch, sums.facts["log_likelihood"]


# --- Accumulators, and the sums of what they give -------------------------------------------------


@dataclass
class _Suffixes:
    """Accumulator of the suffixes of segments by partition, with the sums of equal ones.
    `most_bytes`: maximum size in memory."""

    counter: _kernel.SuffixCounter
    most_bytes: int | None

    def add(self, words: Batch) -> Given:
        self.counter.add(words)
        if self.most_bytes is not None and self.counter.memory > self.most_bytes:
            yield from self._taken()

    def finish(self) -> Given:
        yield from self._taken()
        empty = pa.record_batch([[], []], _SUFFIXES)
        yield "seeds", 0, empty

    def _taken(self) -> Given:
        for partition, suffixes in self.counter.take():
            yield "seeds", partition, pa.record_batch(suffixes)


_SUFFIXES = pa.schema([("word", pa.string()), ("count", pa.int64())])


def _find_seeds(parts: Iterator[Batch], most: int) -> Iterator[Batch]:
    """Return the best seeds of a partition."""
    yield pa.record_batch(_kernel.find_seeds(list(parts), most))


@dataclass
class _Sums:
    """Accumulator of sums over the segments of words. `sums`: None if no sum is needed."""

    name: str
    sums: _kernel.RunSums | None = field(repr=False)

    def add(self, words: Batch) -> Given:
        if self.sums is not None:
            self.sums.add(words)
        yield from ()

    def finish(self) -> Given:
        sums, log = (_kernel.add_run_sums([]), 0) if self.sums is None else self.sums.sums()
        yield self.name, 0, with_facts(sums, log_likelihood=log)


def _add_sums(parts: Iterator[Batch], _: Results) -> Iterator[Batch]:
    """Return the sums of all words. Two batches are in memory."""
    total, log = None, 0
    for part in parts:
        total = part if total is None else pa.record_batch(_kernel.add_run_sums([total, part]))
        log += facts_of(part)["log_likelihood"]
    assert total is not None
    yield with_facts(total, log_likelihood=log)
