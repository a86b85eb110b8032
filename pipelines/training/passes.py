"""The passes of a round as Beam pipelines (`wordpiece_core.training.rounds`).

    word ranges ─ accumulate ─ group by output and partition ─ combine ─▶ files ─▶ driver
                      ▲                                                     │
                      └────── later passes, once the files are complete ◀───┘

The state of each word range is one Arrow file in the work directory. The first pass of a round
makes it from the file of the round before. Sums are files too, each written by the worker that
combines it, and read by later passes and the driver. Only partial sums go through the pipeline (in
a local run, large ones are files), and references to sums of a few bytes.

A pipeline has one shuffle that distributes the ranges, and one per pass: five in a partial round,
six if the round watches pairs. A pass that uses other passes waits for their references, which are
a side input.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsList
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.decorators import no_annotations
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.beam import is_local, local_cores, pipeline_options, run_plan
from pipelines.counting.spill import Spill, Table
from pipelines.counting.word_table import WordRange, read_words
from pipelines.io import outputs
from pipelines.io.batches import read_batches, write_batches
from pipelines.progress import add_metrics
from pipelines.threads import in_threads
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import storage
from wordpiece_core.limits import Limits
from wordpiece_core.options import TrainingOptions
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.rounds import (
    KEPT,
    WORDS,
    Accumulator,
    Batch,
    Given,
    Pass,
    Results,
    RoundAlgorithm,
    Sum,
    facts_of,
    in_partitions,
    with_facts,
)
from wordpiece_core.training.starting import algorithm_of
from wordpiece_core.uri import join

PLAN = "plan.jsonl"
Passes = Callable[[], Sequence[Pass]]
Key = tuple[str, int]
"""An output and a partition of it."""
SumReference = tuple[str, int, dict[str, int]]
"""Reference to a sum on disk: its output, its partition, its metadata."""


# --- The executor of the driver -------------------------------------------------------------------


@dataclass(frozen=True)
class BeamExecutor:
    """Run passes over the ranges of a word table.

    Attributes:
        state: Return the state of a range, if the algorithm keeps any.
    """

    ranges: Sequence[WordRange]
    work: TrainingWork
    beam_args: Sequence[str]
    limits: Limits
    state: Callable[[WordRange], Batch] | None = None

    def each(self, work: Callable[[Batch], Batch]) -> Iterator[Batch]:
        """Apply a function to the words of each range on the driver, which holds all results."""

        def process(part: WordRange) -> Batch:
            result = work(words_of(part))
            add_metrics(words=part.rows)
            return result

        return in_threads(process, self.ranges, local_cores())

    def run(self, passes: Passes) -> Results:
        """Run passes as one pipeline, and read their results."""
        directory, local = self.work.exchange(), is_local(pipeline_options(self.beam_args))
        spill = Spill.for_run(directory, is_local=local, least_bytes=self.limits.spilled_bytes)
        exchange = Exchange(directory, spill)
        plan = join(exchange.directory, PLAN)

        def build(ranges: beam.PCollection) -> None:
            _ = ranges | RunPasses(passes, self.state, exchange)

        run_plan(build, plan, self.ranges, lambda fields: WordRange(**fields), self.beam_args)
        return exchange.results(passes())


def words_of(part: WordRange) -> Batch:
    """Read the words of a range, with the metadata that passes over words need."""
    return with_facts(read_words(part), first_rank=part.first_rank)


# --- The state of the training on workers ---------------------------------------------------------


@dataclass(frozen=True)
class RoundState:
    """A round, for workers.

    Attributes:
        number: Number of the round, from 1.
        words: Number of words in the table.
        worker_memory: Bytes for the pairs of one worker.
    """

    work: TrainingWork
    number: int
    options: TrainingOptions
    budget: RoundBudget
    words: int
    worker_memory: int

    def passes(self) -> Sequence[Pass]:
        """Return the passes of the round."""
        return self.algorithm().passes()

    def algorithm(self) -> RoundAlgorithm:
        """Return the algorithm after the finished rounds, which all threads of a process share."""
        with _reading:
            return _read_algorithm(self)

    def of_range(self, part: WordRange) -> Batch:
        """Return the state of a range in this round, and write it unless it is on disk."""
        path = self._file(part, self.number)
        if storage.info(path) is not None:  # written by another pass, or before a kill
            return _read_one(path)
        earlier = self._file(part, self.number - 1)
        if storage.info(earlier) is not None:
            state = self.algorithm().next_kept(_read_one(earlier))
        else:
            state = self.algorithm().first_kept(words_of(part))
        write_batches(path, [state], "lz4")
        add_metrics(words=part.rows)
        return state

    def _file(self, part: WordRange, number: int) -> str:
        return join(self.work.splits(number), f"{part.name}.arrow")


_reading = threading.Lock()


@lru_cache(maxsize=1)
def _read_algorithm(state: RoundState) -> RoundAlgorithm:
    start = state.work.start()
    assert start is not None
    algorithm = algorithm_of(
        start, state.options, state.budget, words=state.words, counting_memory=state.worker_memory
    )
    for done in state.work.finished_rounds():
        algorithm.restore(done)
    return algorithm


def _read_one(path: str) -> Batch:
    (batch,) = read_batches(path)
    return batch


# --- Sums on disk ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exchange:
    """A directory with a file for each sum of the passes of a pipeline.

    Attributes:
        spill: Passes partial sums from step to step.
    """

    directory: str
    spill: Spill

    def place(self, output: str, partition: int) -> str:
        """Return the path of a sum. An output without partitions has the partition 0."""
        return join(self.directory, f"{output}-{partition:05}.arrow")

    def write(self, output: str, partition: int, batches: Iterator[Batch]) -> SumReference:
        """Write a sum."""
        written = list(batches)
        write_batches(self.place(output, partition), written)
        return output, partition, facts_of(written[0]) if written else {}

    def sum(self, reference: SumReference) -> Sum:
        """Return a sum that is read when it is needed."""
        output, partition, facts = reference
        return Sum(partial(read_batches, self.place(output, partition)), facts)

    def read(self, output: str) -> Sum:
        """Read the sum of an output without partitions."""
        batch = _read_one(self.place(output, 0))
        return Sum(lambda: iter([batch]), facts_of(batch))

    def used(
        self, step: Pass, passes: Sequence[Pass], references: Iterable[SumReference] = ()
    ) -> Results:
        """Return the results that a pass uses; of outputs in partitions only the referenced
        sums."""
        apart, known = in_partitions(passes), list(references)
        found: dict[str, list[Sum]] = {}
        for name in step.using:
            sums = sorted((ref for ref in known if ref[0] == name), key=lambda ref: ref[1])
            if name not in apart:
                found[name] = [self.read(name)]
            elif sums:
                found[name] = [self.sum(reference) for reference in sums]
        return found

    def results(self, passes: Sequence[Pass]) -> Results:
        """Return all results for the driver. Sums in partitions are read when they are needed."""
        names = outputs.list_directory(self.directory)
        found: dict[str, list[Sum]] = {}
        for name in (name for step in passes for name in step.outputs):
            files = [file for file in names if file.rpartition("-")[0] == name]
            if name in in_partitions(passes):
                paths = (join(self.directory, file) for file in files)
                found[name] = [Sum(partial(read_batches, path)) for path in paths]
            else:
                found[name] = [self.read(name)] if files else []
        return found


# --- The pipeline ---------------------------------------------------------------------------------


@dataclass
class RunPasses(beam.PTransform):
    """Run passes over word ranges. Writes the sums, and returns references to them."""

    passes: Passes
    state: Callable[[WordRange], Batch] | None
    exchange: Exchange

    def expand(self, ranges: beam.PCollection) -> tuple[beam.PCollection, ...]:
        passes = self.passes()
        written: dict[str, beam.PCollection] = {}  # by output
        for step in passes:
            source = ranges if step.over in (WORDS, KEPT) else written[step.over]
            used = [AsList(written[name]) for name in awaited_outputs(step, passes)]
            accumulate = Accumulate(self.passes, step.name, self.state, self.exchange)
            references = (
                source
                | step.name >> beam.ParDo(accumulate, *used)
                | f"group {step.name}" >> beam.GroupByKey()
                | f"add {step.name}" >> beam.Map(Combine(self.passes, self.exchange))
            )
            written |= dict.fromkeys(step.outputs, references)
        return tuple(written.values())


def awaited_outputs(step: Pass, passes: Sequence[Pass]) -> list[str]:
    """Return the outputs that a pass must wait for: one of each pass that it uses, unless another
    of these passes has waited for it. Outputs in partitions are always included, because the pass
    needs their references."""
    apart = in_partitions(passes)
    by = {name: step for step in passes for name in step.outputs}
    waited = {other for name in step.using for other in _all_used(by[name], by)}
    found: dict[str, str] = {}  # by pass
    for name in sorted(step.using, key=lambda name: name not in apart):
        if name in apart or by[name].name not in waited:
            found.setdefault(by[name].name, name)
    return list(found.values())


def _all_used(step: Pass, by: Mapping[str, Pass]) -> set[str]:
    """Return the names of the passes that a pass waits for, directly or not."""
    direct = {by[name].name: by[name] for name in step.using}
    return set(direct).union(*(_all_used(other, by) for other in direct.values()))


@beam.typehints.with_output_types(tuple[tuple[str, int], Any])
class Accumulate(beam.DoFn):
    """Add the elements of a bundle to an accumulator of a pass. Elements are word ranges, or
    references to sums. Side inputs are references to the sums that the pass uses."""

    def __init__(
        self,
        passes: Passes,
        name: str,
        state: Callable[[WordRange], Batch] | None,
        exchange: Exchange,
    ) -> None:
        self.passes, self.name, self.state, self.exchange = passes, name, state, exchange

    def start_bundle(self) -> None:
        self.accumulator: Accumulator | None = None

    @no_annotations  # Beam does not understand the annotation of `used`
    def process(self, element: Any, *used: list[SumReference]) -> Iterator[tuple[Key, Table]]:
        if self.accumulator is None:
            passes = self.passes()
            step = next(step for step in passes if step.name == self.name)
            references = [reference for some in used for reference in some]
            self.over = step.over
            self.accumulator = step.accumulator(self.exchange.used(step, passes, references))
        for batch in self._batches(element):
            yield from self._passed(self.accumulator.add(batch))

    def _batches(self, element: Any) -> Iterator[Batch]:
        if self.over == KEPT:
            assert self.state is not None
            yield self.state(element)
        elif self.over == WORDS:
            add_metrics(words=element.rows)
            yield words_of(element)
        elif element[0] == self.over:  # there may be references to other outputs
            yield from self.exchange.sum(element).read()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        accumulator, self.accumulator = self.accumulator, None  # Beam keeps the object
        if accumulator:
            yield from map(GlobalWindows.windowed_value, self._passed(accumulator.finish()))

    def _passed(self, emitted: Given) -> Iterator[tuple[Key, Table]]:
        sums = (((output, partition), batch) for output, partition, batch in emitted)
        return self.exchange.spill.emit(sums)


@dataclass(frozen=True)
class Combine:
    """Combine the partial sums of a partition of an output, and write the sum. A retry, in any
    order, writes the same bytes."""

    passes: Passes
    exchange: Exchange

    @no_annotations
    def __call__(self, emitted: tuple[Key, Iterable[Table]]) -> SumReference:
        (output, partition), parts = emitted
        passes = self.passes()
        step = next(step for step in passes if output in step.outputs)
        combine = step.outputs[output].combine
        batches = combine(map(self.exchange.spill.read, parts), self.exchange.used(step, passes))
        return self.exchange.write(output, partition, batches)
