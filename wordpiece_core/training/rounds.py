"""What a round of training is, once, for whatever runs it: a loop in memory, or Beam.

A training looks at all words again and again. What it does between two looks is a round:

1. **Passes** aggregate what the driver has to know. A pass goes over the parts of the word table:
   it takes the words as they are, or what is kept of each part from round to round, or what an
   earlier pass gave in partitions. On each worker an accumulator takes part after part as Arrow
   batches; what accumulators give is combined, to one sum or to one for each partition. What may
   be as large as the driver's memory is in partitions, so that no worker holds all of it.
2. **The driver decides**: with the results, or with all parts at hand if it may hold them.
3. What it decided is **committed** as a `FinishedRound`: a batch and some numbers. From those of
   all rounds any process makes the algorithm again as it was, a worker or a driver that goes on.

`RoundAlgorithm` is such a training. WordPiece's merging (`wordpiece_core.training.merging`) keeps
the splits of the words of each part; the driver decides merges.

Unigram's (`wordpiece_core.training.unigram`) is another one. Nothing is kept of a part: each pass
goes over the words, or the driver keeps them all in memory. It knows the pieces and their scores. A
round is two iterations of EM: a pass `expected` sums the expected counts of the pieces, a pass
`again`, which uses the result of the first, does so with new scores; a pass `best` counts pieces in
the best segmentations of the words. The driver drops the pieces that are missed least, and commits
those that are left, with their scores. No merge appears in it, and none does here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias

import pyarrow as pa

Batch: TypeAlias = pa.RecordBatch
Told = Callable[[int, int], None]
"""Is told what was decided since it was told before: how many steps, how many new tokens."""

ADDED_AT_ONCE = 16  # batches
WORDS = "words"
"""What a pass can go over: the words of a part, `word: string, count: int64`, with the fact
`first_rank`, how many words of the table come before."""
KEPT = "kept"
"""What a pass can go over: what is kept of a part from round to round."""


Given: TypeAlias = Iterator[tuple[str, int, Batch]]
"""Sums, as accumulators give them: the output, the partition, a batch."""


class Accumulator(Protocol):
    """Takes batches, on one worker; gives sums."""

    def add(self, batch: Batch) -> Given:
        """Takes a batch. Gives what it can no longer hold, if anything."""

    def finish(self) -> Given:
        """Gives the rest: of each output at least one batch, if only an empty one."""


@dataclass(frozen=True)
class Sum:
    """What accumulators gave for an output, or for one partition of it, combined. `read`: gives its
    batches, as often as it is called. `noted`: its facts, if they are known without reading it."""

    read: Callable[[], Iterator[Batch]]
    noted: Mapping[str, int] | None = None

    @cached_property
    def facts(self) -> Mapping[str, int]:
        """The numbers that belong to its first batch."""
        return self.noted if self.noted is not None else facts_of(next(self.read()))

    @cached_property
    def batch(self) -> Batch:
        """Its only batch."""
        (batch,) = self.read()
        return batch


Results = Mapping[str, Sequence[Sum]]
"""Of passes, by the names of their outputs. Those in partitions have several sums."""


@dataclass(frozen=True)
class Output:
    """A result of a pass. `combine`: batches of accumulators to the batches of their sum, with the
    results that the pass uses, as far as they are not in partitions. `partitions`: whether there is
    a sum for each partition. If not, the sum is one batch."""

    combine: Callable[[Iterator[Batch], Results], Iterator[Batch]]
    partitions: bool = False


@dataclass(frozen=True)
class Pass:
    """A pass over all parts. `over`: WORDS, KEPT, or the name of an output in partitions. `using`:
    results of earlier passes that accumulators need. `accumulator` makes one, given those. Of
    results in partitions, accumulators look at the facts alone."""

    name: str
    over: str
    outputs: Mapping[str, Output]
    accumulator: Callable[[Results], Accumulator]
    using: Sequence[str] = ()


@dataclass(frozen=True)
class FinishedRound:
    """What a round decided, all that a process needs to go on from it. `decided`: what it is, is
    the algorithm's. `facts`: numbers beside it. `is_last`: whether the training is over."""

    decided: Batch
    facts: dict[str, int] = field(default_factory=dict)
    is_last: bool = False


@dataclass(frozen=True)
class Deciding:
    """Progress of one decision. `stage`: its name; `total`: how many
    tokens it aims at, 0 if it does not count up to them; `done`: what is done before it, by the
    names of figures."""

    stage: str
    total: int = 0
    done: Mapping[str, int] = field(default_factory=dict)


class RoundAlgorithm(ABC):
    """A training in rounds."""

    @property
    def deciding(self) -> Deciding:
        """What is told of the next decision."""
        return Deciding("decide")

    @abstractmethod
    def restore(self, done: FinishedRound) -> None:
        """Applies a finished round."""

    @abstractmethod
    def first_kept(self, words: Batch) -> Batch:
        """What is kept of a part of the table, after all rounds restored. `words`: see WORDS."""

    @abstractmethod
    def next_kept(self, kept: Batch) -> Batch:
        """What is kept of a part after the last round restored, from what was kept before it."""

    @abstractmethod
    def passes(self) -> Sequence[Pass]:
        """The passes of the next round, in an order in which each can be run."""

    @abstractmethod
    def holds_all(self) -> bool:
        """Whether the driver may hold what is kept of all parts, and so needs no passes."""

    @abstractmethod
    def begin_with_all(self, kept: Iterable[Batch]) -> None:
        """Begins a round with what is kept of all parts, in their order."""

    @abstractmethod
    def begin(self, results: Results) -> None:
        """Begins a round with the results of its passes."""

    @abstractmethod
    def decide(self, told: Told) -> FinishedRound:
        """Ends the round that has begun."""


class Executor(Protocol):
    """Runs over the parts of a word table."""

    def each(self, work: Callable[[Batch], Batch]) -> Iterator[Batch]:
        """What a function gives for the words of each part, in order."""

    def run(self, passes: Callable[[], Sequence[Pass]]) -> Results:
        """Runs passes, which a function that can be pickled gives."""


def make_round(algorithm: RoundAlgorithm, executor: Executor, told: Told) -> FinishedRound:
    """Makes the next round."""
    begin_round(algorithm, executor)
    return algorithm.decide(told)


def begin_round(
    algorithm: RoundAlgorithm,
    executor: Executor,
    passes: Callable[[], Sequence[Pass]] | None = None,
) -> None:
    """Gets what the driver has to know. `passes`: those of the algorithm, if it cannot be pickled
    itself."""
    if algorithm.holds_all():
        algorithm.begin_with_all(executor.each(algorithm.first_kept))
    else:
        algorithm.begin(executor.run(passes or algorithm.passes))


@dataclass(frozen=True)
class InMemory:
    """Runs passes in a loop, over parts that are made anew for each of them. `words`: gives them.
    `kept`: makes what is kept of a part."""

    words: Callable[[], Iterator[Batch]]
    kept: Callable[[Batch], Batch] | None = None

    def each(self, work: Callable[[Batch], Batch]) -> Iterator[Batch]:
        """See `Executor`."""
        return map(work, self.words())

    def run(self, passes: Callable[[], Sequence[Pass]]) -> Results:
        """See `Executor`."""
        results: dict[str, list[Sum]] = {}
        apart = in_partitions(passes())
        for step in passes():
            used = {name: results[name] for name in step.using}
            accumulator = step.accumulator(used)
            given: dict[tuple[str, int], list[Batch]] = defaultdict(list)
            for batch in self._over(step.over, results):
                for output, partition, part in accumulator.add(batch):
                    given[output, partition].append(part)
            for output, partition, part in accumulator.finish():
                given[output, partition].append(part)
            whole = {name: sums for name, sums in used.items() if name not in apart}
            for name, output_of in step.outputs.items():
                results[name] = []
                for (output, _), parts in sorted(given.items(), key=lambda item: item[0]):
                    if output == name:
                        batches = list(output_of.combine(iter(parts), whole))
                        results[name].append(sum_of(batches))
        return results

    def _over(self, source: str, results: Results) -> Iterator[Batch]:
        if source == WORDS:
            return self.words()
        if source == KEPT:
            assert self.kept is not None
            return map(self.kept, self.words())
        return (batch for each in results[source] for batch in each.read())


def in_partitions(passes: Sequence[Pass]) -> set[str]:
    """The names of the outputs of passes that are in partitions."""
    outputs = (item for step in passes for item in step.outputs.items())
    return {name for name, output in outputs if output.partitions}


def sum_of(batches: Sequence[Batch]) -> Sum:
    """A sum of batches that are at hand."""
    return Sum(lambda: iter(batches))


@dataclass
class Adding:
    """An accumulator of one output: what a function gives for each batch, added up on the way.
    `work`: the function. `add_up`: makes one batch of several."""

    output: str
    work: Callable[[Batch], Batch]
    add_up: Callable[[list[Batch]], Batch]
    held: list[Batch] = field(default_factory=list)

    def add(self, batch: Batch) -> Given:
        """See `Accumulator`."""
        self.held.append(self.work(batch))
        if len(self.held) >= ADDED_AT_ONCE:
            self.held = [self.add_up(self.held)]
        yield from ()

    def finish(self) -> Given:
        """See `Accumulator`."""
        if self.held:
            yield self.output, 0, self.add_up(self.held)


def with_facts(batch: object, **facts: int) -> Batch:
    """A batch, of pyarrow or of the kernel, with numbers that belong to it."""
    metadata = {name: str(value) for name, value in facts.items()}
    return pa.record_batch(batch).replace_schema_metadata(metadata)


def facts_of(batch: Batch) -> dict[str, int]:
    """The numbers that belong to a batch."""
    metadata = batch.schema.metadata or {}
    return {name.decode(): int(value) for name, value in metadata.items()}
