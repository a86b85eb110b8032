"""A round of training, for every executor: a loop in memory, or Beam.

A training reads all words repeatedly. One step between two reads is a round:

1. **Passes** aggregate what the driver needs. A pass reads the parts of the word table: their
   words, the state that each part keeps from round to round, or a partitioned output of an earlier
   pass. On each worker an accumulator adds part after part as Arrow batches. Their results are
   combined, to one sum or to one sum per partition. Large results are partitioned, so no worker
   holds all of them.
2. **The driver decides**, from the results, or from all parts if they fit into its memory.
3. The decision is **committed** as a `FinishedRound`: a batch and some numbers. From the committed
   rounds any process restores the algorithm: a worker, or a driver that resumes.

`RoundAlgorithm` is such a training. Merging (`wordpiece_core.training.merging`) keeps the
segmentations of the words of each part, and the driver decides merges.

Unigram (`wordpiece_core.training.unigram`) keeps no state of parts: each pass reads the words, or
the driver holds all of them. A round is two iterations of EM: the pass `expected` sums the expected
counts of pieces, the pass `again` does so with the new scores, and the pass `best` counts pieces in
the best segmentations of words. The driver drops pieces, and commits the remaining ones with their
scores.
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
"""Callback that reports progress since the last call: the number of steps, and of new tokens."""

ADDED_AT_ONCE = 16  # number of batches that are added together
WORDS = "words"
"""Source of a pass: the words of a part, `word: string, count: int64`, with the number of words of
the table before it, `first_rank`."""
KEPT = "kept"
"""Source of a pass: the state that a part keeps from round to round."""


Given: TypeAlias = Iterator[tuple[str, int, Batch]]
"""Sums from accumulators: the output, the partition, and a batch."""


class Accumulator(Protocol):
    """Accumulator of batches on one worker."""

    def add(self, batch: Batch) -> Given:
        """Add a batch. Yields sums that no longer fit into memory."""

    def finish(self) -> Given:
        """Yield the remaining sums: at least one batch of each output, even if it is empty."""


@dataclass(frozen=True)
class Sum:
    """The combined sum of an output, or of one partition.

    Attributes:
        read: Return the batches. It can be called repeatedly.
        noted: Metadata, if it is known without reading the sum.
    """

    read: Callable[[], Iterator[Batch]]
    noted: Mapping[str, int] | None = None

    @cached_property
    def facts(self) -> Mapping[str, int]:
        """Numbers in the metadata of the first batch."""
        return self.noted if self.noted is not None else facts_of(next(self.read()))

    @cached_property
    def batch(self) -> Batch:
        """The only batch."""
        (batch,) = self.read()
        return batch


Results = Mapping[str, Sequence[Sum]]
"""Results of passes by the names of their outputs. Partitioned outputs have several sums."""


@dataclass(frozen=True)
class Output:
    """An output of a pass.

    Attributes:
        combine: Return the batches of the sum, from batches of accumulators and the results that
            the pass uses, except partitioned ones.
        partitions: True if there is a sum per partition. Otherwise the sum is one batch.
    """

    combine: Callable[[Iterator[Batch], Results], Iterator[Batch]]
    partitions: bool = False


@dataclass(frozen=True)
class Pass:
    """A pass over all parts.

    Attributes:
        over: WORDS, KEPT, or the name of a partitioned output.
        using: Names of earlier results that accumulators need. Of partitioned results they only
            read metadata.
        accumulator: Return an accumulator for these results.
    """

    name: str
    over: str
    outputs: Mapping[str, Output]
    accumulator: Callable[[Results], Accumulator]
    using: Sequence[str] = ()


@dataclass(frozen=True)
class FinishedRound:
    """The decision of a round: everything that a process needs to resume after it.

    Attributes:
        decided: A batch whose meaning the algorithm defines.
        facts: Numbers.
        is_last: True if the training is finished.
    """

    decided: Batch
    facts: dict[str, int] = field(default_factory=dict)
    is_last: bool = False


@dataclass(frozen=True)
class Deciding:
    """Progress of a decision.

    Attributes:
        stage: Name of the stage.
        total: Number of tokens to reach; 0 if there is no such number.
        done: Numbers before the decision, by the names of metrics.
    """

    stage: str
    total: int = 0
    done: Mapping[str, int] = field(default_factory=dict)


class RoundAlgorithm(ABC):
    """A training in rounds."""

    @property
    def deciding(self) -> Deciding:
        """Progress of the next decision."""
        return Deciding("decide")

    @abstractmethod
    def restore(self, done: FinishedRound) -> None:
        """Apply a finished round."""

    @abstractmethod
    def first_kept(self, words: Batch) -> Batch:
        """Return the state of a part of the table after all restored rounds. `words`: see WORDS."""

    @abstractmethod
    def next_kept(self, kept: Batch) -> Batch:
        """Return the state of a part after the last restored round, from its state before."""

    @abstractmethod
    def passes(self) -> Sequence[Pass]:
        """Return the passes of the next round in the order of their execution."""

    @abstractmethod
    def holds_all(self) -> bool:
        """True if the driver may hold the states of all parts, so it needs no passes."""

    @abstractmethod
    def begin_with_all(self, kept: Iterable[Batch]) -> None:
        """Start a round with the states of all parts, in their order."""

    @abstractmethod
    def begin(self, results: Results) -> None:
        """Start a round with the results of its passes."""

    @abstractmethod
    def decide(self, told: Told) -> FinishedRound:
        """Finish the round."""


class Executor(Protocol):
    """Executor of passes over the parts of a word table."""

    def each(self, work: Callable[[Batch], Batch]) -> Iterator[Batch]:
        """Yield the results of a function for the words of each part, in order."""

    def run(self, passes: Callable[[], Sequence[Pass]]) -> Results:
        """Run the passes that a picklable function returns."""


def make_round(algorithm: RoundAlgorithm, executor: Executor, told: Told) -> FinishedRound:
    """Run the next round."""
    begin_round(algorithm, executor)
    return algorithm.decide(told)


def begin_round(
    algorithm: RoundAlgorithm,
    executor: Executor,
    passes: Callable[[], Sequence[Pass]] | None = None,
) -> None:
    """Start the next round. `passes`: return the passes, if the algorithm cannot be pickled."""
    if algorithm.holds_all():
        algorithm.begin_with_all(executor.each(algorithm.first_kept))
    else:
        algorithm.begin(executor.run(passes or algorithm.passes))


@dataclass(frozen=True)
class InMemory:
    """Executor that runs passes in a loop.

    Attributes:
        words: Yield the parts of the word table, for each pass again.
        kept: Return the state of a part.
    """

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
    """Return the names of partitioned outputs."""
    outputs = (item for step in passes for item in step.outputs.items())
    return {name for name, output in outputs if output.partitions}


def sum_of(batches: Sequence[Batch]) -> Sum:
    """Return the sum of batches in memory."""
    return Sum(lambda: iter(batches))


@dataclass
class Adding:
    """Accumulator of one output, which adds the results of a function for each batch.

    Attributes:
        work: The function.
        add_up: Return the sum of several batches.
    """

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
    """Return a batch of pyarrow or the kernel with numbers in its metadata."""
    metadata = {name: str(value) for name, value in facts.items()}
    return pa.record_batch(batch).replace_schema_metadata(metadata)


def facts_of(batch: Batch) -> dict[str, int]:
    """Return the numbers in the metadata of a batch."""
    metadata = batch.schema.metadata or {}
    return {name.decode(): int(value) for name, value in metadata.items()}
