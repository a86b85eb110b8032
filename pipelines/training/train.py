"""The job `train`, from its inputs to the tokenizer directory: counts if need be, makes the rounds
(`pipelines.training.driver`), writes what they give."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from pipelines.counting.count import count
from pipelines.counting.options import CountCall
from pipelines.counting.word_table import (
    Coverage,
    WordTable,
    coverage,
    read_word_table,
    table_digest,
    text_of,
)
from pipelines.files.filesystems import beside
from pipelines.files.input_files import resolve
from pipelines.files.owned import one_run
from pipelines.files.places import check_writable
from pipelines.running.checks import checked_call
from pipelines.running.progress import Progress
from pipelines.running.runner import pipeline_options, workers
from pipelines.training.driver import Job, train_on_table
from pipelines.training.options import TrainCall
from pipelines.training.tokenizer_directory import check_tokenizer_directory, write_tokenizer
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import Tokenizer, TrainingOptions
from wordpiece_core.errors import InputError, OptionError, OutputError
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.training.train import TrainingResult, fewer_tokens

MANY_UNKNOWN = 0.01  # of words: more is worth a warning
WORK = ".work"  # after the output's name: what a training keeps while it runs


@dataclass(frozen=True)
class Trained:
    """What a training made, and of what: the result of `pipelines.train`. `output`: the tokenizer
    directory; `result`: vocabulary and merges; `table`: the words; `spec`: the tokenizer;
    `covered`: how it cuts the words.

    >>> import pipelines
    >>> trained = pipelines.train("corpus/", output="tokenizer", vocab_size=14, quiet=True)
    >>> trained.rounds, trained.vocab[-1], round(trained.covered.tokens_per_word, 2)
    (1, 'hugs', 1.33)
    """

    output: str
    result: TrainingResult
    table: WordTable
    spec: TokenizerSpec
    training: TrainingOptions
    covered: Coverage
    seconds: dict[str, float]
    """Of each stage."""

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself."""
        return Tokenizer.of(self.spec)

    @property
    def vocab(self) -> list[str]:
        """The tokens, in id order."""
        return self.result.vocab

    @property
    def merges(self) -> pa.Table:
        """The training log: the columns of `merges.parquet`."""
        return self.result.merges

    @property
    def rounds(self) -> int:
        """How often the counts were taken."""
        return self.result.rounds

    def summary(self) -> dict[str, Any]:
        """What `wordpiece train --json` prints. Tokens and words are of the word table."""
        return {
            "output": self.output,
            "vocab_size": len(self.vocab),
            "merges": len(self.merges),
            "rounds": self.rounds,
            "corpus": self.table.totals,
            **asdict(self.covered),
            "tokens_per_word": self.covered.tokens_per_word,
            "seconds": self.seconds,
        }

    def warnings(self) -> list[str]:
        """What may be wrong in the result, a line each."""
        said = self.table.warnings()
        share = self.covered.unknown_share
        if share > MANY_UNKNOWN:
            said.append(
                f"{share:.1%} of the words are [UNK]; raise limit_alphabet or max_word_length"
            )
        fewer = fewer_tokens(len(self.vocab), self.training)
        return [*said, fewer] if fewer else said


def train(call: TrainCall, *, beam_args: Sequence[str] = (), progress: Progress) -> Trained:
    """Trains a tokenizer and writes its directory. Holds the output and the work directory.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    call = checked_call(call, beam_args)
    place = call.work_dir or beside(call.output, WORK)
    check_writable("--work-dir", place)
    work = TrainingWork(place)
    with one_run(call.output), one_run(work.path):
        return _Run(call, work, beam_args, progress).run()


@dataclass(frozen=True)
class _Run:
    call: TrainCall
    work: TrainingWork
    beam_args: Sequence[str]
    progress: Progress

    def run(self) -> Trained:
        call = self.call
        identity: dict[str, Any] = {"training": call.training.plain()}
        if call.word_counts:  # the table may have been counted without rare words
            del identity["training"]["min_word_count"]
        else:
            identity["text"] = asdict(call.counting.text)
        self._check_output(identity)
        table = read_word_table(call.word_counts) if call.word_counts else None
        counted_from = {} if table else self._counted_from()
        self.work.check(counted_from, identity["training"])
        self.work.claim(counted_from)
        try:
            done = self._train(table or self._count(counted_from))
        except (InputError, OptionError):
            with suppress(OutputError):
                self.work.release()
            raise
        if not call.keep_work:
            self.work.delete()
        return done

    def _check_output(self, identity: dict[str, Any]) -> None:
        check_tokenizer_directory(self.call.output, identity, overwrite=self.call.overwrite)

    def _counted_from(self) -> dict[str, Any]:
        """What a word table in the work directory must have been counted from."""
        files = resolve(self.call.inputs, [self.call.output, self.work.path])
        options = asdict(self.call.counting)
        del options["worker_memory"]
        text = options.pop("text")
        files_as_planned = [[file.path, file.size, file.modified] for file in files]
        return {**options, **text, "inputs": files_as_planned}

    def _count(self, counted_from: dict[str, Any]) -> WordTable:
        """The word table of the inputs, counted in the work directory unless it is there
        already."""
        if self.work.is_counted():
            return read_word_table(self.work.words)
        self.work.begin_count(counted_from)
        inputs, counting = self.call.inputs, self.call.counting
        call = CountCall(inputs=inputs, output=self.work.words, counting=counting)
        own = [self.call.output, self.work.path]
        return count(call, own=own, beam_args=self.beam_args, progress=self.progress)

    def _train(self, table: WordTable) -> Trained:
        text = text_of([table], self.call.counting.text)
        training = _training_of(table, self.call.training)
        digest = table_digest(table)
        identity = {"text": asdict(text), "training": training.plain(), "word_table": digest}
        self._check_output(identity)
        job = Job(
            training,
            digest,
            self.work,
            self.progress,
            self.call.budget,
            self.call.counting.worker_memory,
            self.beam_args,
        )
        result = train_on_table(table, job)
        spec = result.spec(text)
        covered = coverage(table, Tokenizer.of(spec))
        seconds = {name: round(value, 3) for name, value in self.progress.seconds.items()}
        done = Trained(self.call.output, result, table, spec, training, covered, seconds)
        self.work.owned.check_lease()
        record = _training_record(done, identity)
        write_tokenizer(self.call.output, spec, result.merges, record, self._run_record(done))
        return done

    def _run_record(self, done: Trained) -> dict[str, Any]:
        """What this run took: the contents of `run.json`."""
        return {
            "inputs": list(self.call.inputs),
            "word_counts": self.call.word_counts,
            "text_column": self.call.counting.text_column,
            "group_column": self.call.counting.group_column,
            "driver_memory": self.call.budget.driver_memory,
            "round_budget": self.call.budget.round_budget,
            "rounds": done.rounds,
            "seconds": done.seconds,
            "peak_memory_bytes": peak_memory(),
            "workers": workers(pipeline_options(self.beam_args)),
            "beam_args": list(self.beam_args),
        }


def _training_of(table: WordTable, training: TrainingOptions) -> TrainingOptions:
    """The options for a table without rare words: one cannot train on more words than it has."""
    given, known = training.min_word_count, table.min_word_count
    if 1 < given < known:
        raise OptionError(f"min_word_count: {given}, but {table.path} was counted with {known}")
    return replace(training, min_word_count=max(given, known))


def _training_record(done: Trained, identity: dict[str, Any]) -> dict[str, Any]:
    """What it takes to train again and get the same bytes: the contents of `training.json`.
    `corpus` is of the text; `coverage` of the words in the table, by its counts."""
    return {
        "versions": {name: version(name) for name in ("wordpiece-beam", "pyarrow")},
        **identity,
        "corpus": done.table.totals,
        "smoothing": done.table.smoothing,
        "coverage": asdict(done.covered),
        "vocab_size": len(done.result.vocab),
        "merges": done.result.merges.num_rows,
    }


def peak_memory() -> int:
    """The most memory this process, or one it started, has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return unit * max(resource.getrusage(who).ru_maxrss for who in whose)
