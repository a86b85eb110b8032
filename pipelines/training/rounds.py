"""The rounds of a training on Beam: passes as pipelines (`wordpiece_core.training.rounds`).

    ranges of words ─ accumulate ─ group by partition ─ combine ─┬─▶ files for the driver
                          ▲                                      └─▶ what later passes use
                          └──────────────────────────────────────────┘

What is kept of a part from round to round is a Parquet file in the work directory, one for each
range of the word table: the first pass of a round over it makes it of the one of the round before.
What passes give goes to the driver by files too, in a directory of the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
from apache_beam.pvalue import AsSingleton, TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.decorators import no_annotations

from pipelines.counting.word_table import WordRange, read_words
from pipelines.files import outputs, storage
from pipelines.files.batches import from_bytes, one_batch, read_batches, to_bytes, write_batches
from pipelines.files.filesystems import join
from pipelines.files.reading import bad_data
from pipelines.files.storage import StoredFile
from pipelines.running.progress import report
from pipelines.running.runner import local_cores, run_pipeline
from pipelines.running.threads import in_threads
from pipelines.training.work_directory import TrainingWork
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
    with_facts,
)

PACKED = "zstd"  # batches on their way through the shuffle
Passes = Callable[[], Sequence[Pass]]


@dataclass(frozen=True)
class RoundState:
    """What workers need to know of the training so far: where it is.

    `number`: of the round, from 1. `words`: in the table. `worker_memory`: bytes for the pairs of
    one worker. `run`: another one whenever the driver begins anew.
    """

    work: TrainingWork
    number: int
    options: TrainingOptions
    budget: RoundBudget
    words: int
    worker_memory: int
    run: str

    def algorithm(self) -> RoundAlgorithm:
        """The algorithm where the driver's is, one for all steps of a round in a process."""
        with _reading:
            return _read_algorithm(self)

    def passes(self) -> Sequence[Pass]:
        """The passes of the round."""
        return self.algorithm().passes()

    def kept(self, part: WordRange) -> Batch:
        """What is kept of a range in this round, which is also written."""
        path = self._file(part, self.number)
        if storage.info(path) is not None:  # of another pass, or of a run that was killed
            return _read_kept(path)
        earlier = self._file(part, self.number - 1)
        if storage.info(earlier) is not None:
            kept = self.algorithm().next_kept(_read_kept(earlier))
        else:
            kept = self.algorithm().first_kept(words_of(part))
        options: dict[str, Any] = {"compression": "lz4", "use_dictionary": False}
        outputs.write_file(
            path, lambda stream: outputs.write_tables(stream, [kept], kept.schema, **options)
        )
        report(words=part.rows)
        return kept

    def _file(self, part: WordRange, number: int) -> str:
        return join(self.work.splits(number), f"{part.name}.parquet")


def _read_kept(path: str) -> Batch:
    with StoredFile(path) as source, bad_data(path):
        return one_batch(pq.read_table(source.arrow()))


_reading = threading.Lock()


@lru_cache(maxsize=1)
def _read_algorithm(state: RoundState) -> RoundAlgorithm:
    """Reads the work directory."""
    algorithm = state.work.algorithm(
        state.options, state.budget, words=state.words, counting_memory=state.worker_memory
    )
    assert algorithm is not None
    for done in state.work.finished_rounds():
        algorithm.restore(done)
    return algorithm


def words_of(part: WordRange) -> Batch:
    """The words of a range, as passes over words get them."""
    return with_facts(read_words(part), first_rank=part.first_rank)


@dataclass(frozen=True)
class OnBeam:
    """Runs passes over the ranges of a word table. `kept`: gives what is kept of one, if anything
    is."""

    ranges: Sequence[WordRange]
    work: TrainingWork
    beam_args: Sequence[str]
    kept: Callable[[WordRange], Batch] | None = None

    def each(self, work: Callable[[Batch], Batch]) -> Iterator[Batch]:
        """What a function gives for the words of each range: here, not on workers, as the driver
        has to hold it all."""

        def worked_on(part: WordRange) -> Batch:
            done = work(words_of(part))
            report(words=part.rows)
            return done

        return in_threads(worked_on, iter(self.ranges), local_cores())

    def run(self, passes: Passes) -> dict[str, list[Batch]]:
        """Runs passes as one pipeline, and reads what it has written."""
        directory = self.work.exchange()
        step = RunPasses(passes, self.kept, directory)
        run_pipeline(
            lambda pipeline: pipeline | "ranges" >> beam.Create(self.ranges) | "passes" >> step,
            self.beam_args,
        )
        wanted = [
            name
            for step in passes()
            for name, output in step.outputs.items()
            if not output.partitions
        ]
        paths = {name: _place(directory, name) for name in wanted}
        return {
            name: list(read_batches(path)) if storage.info(path) is not None else []
            for name, path in paths.items()
        }


def _place(directory: str, output: str) -> str:
    return join(directory, f"{output}.arrow")


# --- The pipeline ---------------------------------------------------------------------------------


@dataclass
class RunPasses(beam.PTransform):
    """Ranges of words to what passes give, in files of `directory`."""

    passes: Passes
    kept: Callable[[WordRange], Batch] | None
    directory: str

    def expand(self, ranges: beam.PCollection) -> beam.PCollection:
        results: dict[str, beam.PCollection] = {}
        written = []
        for step in self.passes():
            used = [AsSingleton(results[name]) for name in step.using]
            source = ranges if step.over in (WORDS, KEPT) else results[step.over]
            given = source | step.name >> beam.ParDo(
                Accumulate(self.passes, step.name, self.kept), *used
            ).with_outputs(*step.outputs)
            for name, output in step.outputs.items():
                combine = Combine(self.passes, step.name, name, self.directory)
                grouped = given[name] | f"group {name}" >> beam.GroupByKey()
                if output.is_large:
                    written.append(grouped | f"write {name}" >> beam.Map(combine.write, *used))
                    continue
                results[name] = grouped | f"add {name}" >> beam.Map(combine.to_one, *used)
                if not output.partitions:
                    write = beam.Map(_write, _place(self.directory, name))
                    written.append(results[name] | f"write {name}" >> write)
        return written | beam.Flatten()


class Accumulate(beam.DoFn):
    """Adds the elements of a bundle to an accumulator of a pass."""

    def __init__(
        self, passes: Passes, name: str, kept: Callable[[WordRange], Batch] | None
    ) -> None:
        self.passes, self.name, self.kept = passes, name, kept

    def start_bundle(self) -> None:
        self.accumulator: Accumulator | None = None

    @no_annotations  # as Beam does not understand the last of them
    def process(self, element: Any, *used: bytes) -> Iterator[TaggedOutput]:
        if self.accumulator is None:
            step = _pass(self.passes, self.name)
            self.over, self.accumulator = step.over, step.accumulator(_results(step, used))
        for output, partition, batch in self.accumulator.add(self._batch(element)):
            yield TaggedOutput(output, (partition, to_bytes(batch, PACKED)))

    def _batch(self, element: Any) -> Batch:
        if self.over == KEPT:
            assert self.kept is not None
            return self.kept(element)
        if self.over == WORDS:
            report(words=element.rows)
            return words_of(element)
        return from_bytes(element)

    def finish_bundle(self) -> Iterator[TaggedOutput]:
        accumulator, self.accumulator = self.accumulator, None  # Beam keeps the object
        for output, partition, batch in accumulator.finish() if accumulator else ():
            value = partition, to_bytes(batch, PACKED)
            yield TaggedOutput(output, GlobalWindows.windowed_value(value))


@dataclass(frozen=True)
class Combine:
    """Sums of what accumulators give, of one output of a pass."""

    passes: Passes
    step: str
    output: str
    directory: str

    @no_annotations
    def to_one(self, partition: tuple[int, Iterable[bytes]], *used: bytes) -> bytes:
        """The sum, a batch."""
        (batch,) = self._combined(partition[1], used)
        return to_bytes(batch, PACKED)

    @no_annotations
    def write(self, partition: tuple[int, Iterable[bytes]], *used: bytes) -> None:
        """Writes the sum, any number of batches."""
        batches = self._combined(partition[1], used)
        write_batches(_place(self.directory, self.output), batches)

    def _combined(self, parts: Iterable[bytes], used: Sequence[bytes]) -> Iterator[Batch]:
        step = _pass(self.passes, self.step)
        return step.outputs[self.output].combine(map(from_bytes, parts), _results(step, used))


def _pass(passes: Passes, name: str) -> Pass:
    return next(step for step in passes() if step.name == name)


def _results(step: Pass, used: Sequence[bytes]) -> Results:
    return {name: from_bytes(data) for name, data in zip(step.using, used, strict=True)}


def _write(batch: bytes, path: str) -> None:
    write_batches(path, [from_bytes(batch)])
