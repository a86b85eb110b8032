"""The rounds of a training on Beam: passes as pipelines (`wordpiece_core.training.rounds`).

    ranges of words ─ accumulate ─ group by output and partition ─ combine ─▶ files ─▶ the driver
                          ▲                                                     │
                          └──────── passes that use them, when all are there ◀──┘

Each range of the word table keeps its state from round to round in one Arrow file in the work
directory. The first pass of a round makes it from the file of the round before. The sums of a pass
are files too, each written by the worker that adds them up; later passes and the driver read them.
Only what is to be added up goes through the pipeline, and notes of a few bytes that name the files.

So a pipeline has a shuffle that spreads the ranges, and one for each pass: five in a partial round,
six where it watches pairs. A pass that uses others waits for their notes, which are a side input.
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

from pipelines.beam import ReadPlan, local_cores, run_pipeline, write_plan
from pipelines.counting.word_table import WordRange, read_words
from pipelines.io import outputs
from pipelines.io.batches import from_bytes, read_batches, to_bytes, write_batches
from pipelines.progress import add_metrics
from pipelines.threads import in_threads
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import storage
from wordpiece_core.options import TrainingOptions
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.rounds import (
    KEPT,
    WORDS,
    Accumulator,
    Batch,
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

PACKED = "zstd"  # batches on their way through the shuffle
RANGES_PLAN = "plan.jsonl"  # of the ranges
Passes = Callable[[], Sequence[Pass]]
Note = tuple[str, int, dict[str, int]]
"""Of a sum that is in a file: its output, its partition, its facts."""


@dataclass(frozen=True)
class RoundState:
    """Where workers find the training so far. `number`: of the round, from 1. `words`: in the
    table. `worker_memory`: bytes for the pairs of one worker."""

    work: TrainingWork
    number: int
    options: TrainingOptions
    budget: RoundBudget
    words: int
    worker_memory: int

    def algorithm(self) -> RoundAlgorithm:
        """The algorithm where the driver's is, one for all steps of a round in a process."""
        with _reading:
            return _read_algorithm(self)

    def passes(self) -> Sequence[Pass]:
        """The passes of the round."""
        return self.algorithm().passes()

    def kept(self, part: WordRange) -> Batch:
        """The state of a range in this round, which is also written."""
        path = self._file(part, self.number)
        if storage.info(path) is not None:  # of another pass, or of a run that was killed
            return _read_kept(path)
        earlier = self._file(part, self.number - 1)
        if storage.info(earlier) is not None:
            kept = self.algorithm().next_kept(_read_kept(earlier))
        else:
            kept = self.algorithm().first_kept(words_of(part))
        write_batches(path, [kept], "lz4")
        add_metrics(words=part.rows)
        return kept

    def _file(self, part: WordRange, number: int) -> str:
        return join(self.work.splits(number), f"{part.name}.arrow")


def _read_kept(path: str) -> Batch:
    (batch,) = read_batches(path)
    return batch


_reading = threading.Lock()


@lru_cache(maxsize=1)
def _read_algorithm(state: RoundState) -> RoundAlgorithm:
    """Reads the work directory."""
    start = state.work.start()
    assert start is not None
    algorithm = algorithm_of(
        start, state.options, state.budget, words=state.words, counting_memory=state.worker_memory
    )
    for done in state.work.finished_rounds():
        algorithm.restore(done)
    return algorithm


def words_of(part: WordRange) -> Batch:
    """The words of a range, as passes over words get them."""
    return with_facts(read_words(part), first_rank=part.first_rank)


@dataclass(frozen=True)
class OnBeam:
    """Runs passes over the ranges of a word table. `kept`: gives the state of a range, if the
    algorithm keeps any."""

    ranges: Sequence[WordRange]
    work: TrainingWork
    beam_args: Sequence[str]
    kept: Callable[[WordRange], Batch] | None = None

    def each(self, work: Callable[[Batch], Batch]) -> Iterator[Batch]:
        """What a function gives for the words of each range. The driver calls it, as it has to hold
        all results."""

        def worked_on(part: WordRange) -> Batch:
            done = work(words_of(part))
            add_metrics(words=part.rows)
            return done

        return in_threads(worked_on, iter(self.ranges), local_cores())

    def run(self, passes: Passes) -> Results:
        """Runs passes as one pipeline. Its results are read from files."""
        exchange = Exchange(self.work.exchange())
        path = join(exchange.directory, RANGES_PLAN)
        write_plan(path, self.ranges)
        ranges = "ranges" >> ReadPlan(path, lambda fields: WordRange(**fields))
        step = RunPasses(passes, self.kept, exchange)
        run_pipeline(lambda pipeline: pipeline | ranges | step, self.beam_args)
        return exchange.results(passes())


@dataclass(frozen=True)
class Exchange:
    """A directory with a file for each sum of the passes of a pipeline."""

    directory: str

    def place(self, output: str, partition: int) -> str:
        """The path of a sum. One that is not in partitions is partition 0."""
        return join(self.directory, f"{output}-{partition:05}.arrow")

    def write(self, output: str, partition: int, batches: Iterator[Batch]) -> Note:
        """Writes a sum."""
        written = list(batches)
        write_batches(self.place(output, partition), written)
        return output, partition, facts_of(written[0]) if written else {}

    def sum(self, note: Note) -> Sum:
        """A sum in partitions, which is not read yet."""
        output, partition, facts = note
        return Sum(partial(read_batches, self.place(output, partition)), facts)

    def whole(self, output: str) -> Sum:
        """The sum of an output that is not in partitions. It is read."""
        (batch,) = read_batches(self.place(output, 0))
        return Sum(lambda: iter([batch]), facts_of(batch))

    def used(self, step: Pass, passes: Sequence[Pass], notes: Iterable[Note] = ()) -> Results:
        """The results that a pass uses: those in partitions by notes, if there are any."""
        apart = in_partitions(passes)
        noted = {name: [note for note in notes if note[0] == name] for name in apart}
        found: dict[str, list[Sum]] = {}
        for name in step.using:
            if name not in apart:
                found[name] = [self.whole(name)]
            elif noted[name]:
                found[name] = [self.sum(note) for note in sorted(noted[name], key=lambda n: n[1])]
        return found

    def results(self, passes: Sequence[Pass]) -> Results:
        """All results, for the driver. What is in partitions is not read yet."""
        names = outputs.list_directory(self.directory)
        found: dict[str, list[Sum]] = {}
        for name in (name for step in passes for name in step.outputs):
            files = [file for file in names if file.rpartition("-")[0] == name]
            if name in in_partitions(passes):
                paths = (join(self.directory, file) for file in files)
                found[name] = [Sum(partial(read_batches, path)) for path in paths]
            else:
                found[name] = [self.whole(name)] if files else []
        return found


# --- The pipeline ---------------------------------------------------------------------------------


@dataclass
class RunPasses(beam.PTransform):
    """From ranges of words to the sums of passes, in files, and the notes of these."""

    passes: Passes
    kept: Callable[[WordRange], Batch] | None
    exchange: Exchange

    def expand(self, ranges: beam.PCollection) -> tuple[beam.PCollection, ...]:
        passes = self.passes()
        written: dict[str, beam.PCollection] = {}  # by output
        for step in passes:
            source = ranges if step.over in (WORDS, KEPT) else written[step.over]
            used = [AsList(written[name]) for name in to_wait_for(step, passes)]
            accumulate = Accumulate(self.passes, step.name, self.kept, self.exchange)
            notes = (
                source
                | step.name >> beam.ParDo(accumulate, *used)
                | f"group {step.name}" >> beam.GroupByKey()
                | f"add {step.name}" >> beam.Map(Combine(self.passes, self.exchange))
            )
            written |= dict.fromkeys(step.outputs, notes)
        return tuple(written.values())


def to_wait_for(step: Pass, passes: Sequence[Pass]) -> list[str]:
    """Outputs that stand for all that a pass uses: one of each pass that gives any of it, unless
    another of these passes has waited for that one. What is in partitions is always among them, as
    the pass needs its notes."""
    apart = in_partitions(passes)
    by = {name: step for step in passes for name in step.outputs}
    waited = {other for name in step.using for other in _all_used(by[name], by)}
    found: dict[str, str] = {}  # by pass
    for name in sorted(step.using, key=lambda name: name not in apart):
        if name in apart or by[name].name not in waited:
            found.setdefault(by[name].name, name)
    return list(found.values())


def _all_used(step: Pass, by: Mapping[str, Pass]) -> set[str]:
    """The names of the passes that one waits for."""
    direct = {by[name].name: by[name] for name in step.using}
    return set(direct).union(*(_all_used(other, by) for other in direct.values()))


@beam.typehints.with_output_types(tuple[tuple[str, int], bytes])
class Accumulate(beam.DoFn):
    """Adds the elements of a bundle to an accumulator of a pass. Elements are ranges, or notes of
    sums. Side inputs are the notes of the sums that the pass uses."""

    def __init__(
        self,
        passes: Passes,
        name: str,
        kept: Callable[[WordRange], Batch] | None,
        exchange: Exchange,
    ) -> None:
        self.passes, self.name, self.kept, self.exchange = passes, name, kept, exchange

    def start_bundle(self) -> None:
        self.accumulator: Accumulator | None = None

    @no_annotations  # as Beam does not understand the last of them
    def process(self, element: Any, *used: list[Note]) -> Iterator[tuple[tuple[str, int], bytes]]:
        if self.accumulator is None:
            passes = self.passes()
            step = next(step for step in passes if step.name == self.name)
            notes = [note for some in used for note in some]
            self.over = step.over
            self.accumulator = step.accumulator(self.exchange.used(step, passes, notes))
        for batch in self._batches(element):
            yield from map(_packed, self.accumulator.add(batch))

    def _batches(self, element: Any) -> Iterator[Batch]:
        if self.over == KEPT:
            assert self.kept is not None
            yield self.kept(element)
        elif self.over == WORDS:
            add_metrics(words=element.rows)
            yield words_of(element)
        elif element[0] == self.over:  # there may be notes of other outputs
            yield from self.exchange.sum(element).read()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        accumulator, self.accumulator = self.accumulator, None  # Beam keeps the object
        for given in accumulator.finish() if accumulator else ():
            yield GlobalWindows.windowed_value(_packed(given))


def _packed(given: tuple[str, int, Batch]) -> tuple[tuple[str, int], bytes]:
    output, partition, batch = given
    return (output, partition), to_bytes(batch, PACKED)


@dataclass(frozen=True)
class Combine:
    """Adds up what accumulators give for a partition of an output, and writes the sum. It is the
    same if it is done again, and in any order."""

    passes: Passes
    exchange: Exchange

    @no_annotations
    def __call__(self, given: tuple[tuple[str, int], Iterable[bytes]]) -> Note:
        (output, partition), parts = given
        passes = self.passes()
        step = next(step for step in passes if output in step.outputs)
        combine = step.outputs[output].combine
        batches = combine(map(from_bytes, parts), self.exchange.used(step, passes))
        return self.exchange.write(output, partition, batches)
