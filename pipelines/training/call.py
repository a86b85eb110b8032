"""A call of `train`, from its inputs to the tokenizer directory: counts if need be, makes the
rounds, writes what they give."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

from pipelines.counting.count import CountOptions, count
from pipelines.counting.word_table import (
    Coverage,
    WordTable,
    coverage,
    read_word_table,
    table_digest,
    text_of,
)
from pipelines.files.input_files import resolve
from pipelines.running.progress import Progress
from pipelines.running.runner import pipeline_options, workers
from pipelines.training.tokenizer_directory import check_tokenizer_directory, write_tokenizer
from pipelines.training.train import Job, train
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import TextOptions, Tokenizer, TrainingOptions
from wordpiece_core.errors import InputError, OptionError, OutputError
from wordpiece_core.tokenizer.files import TokenizerSpec, own_special_tokens
from wordpiece_core.training.train import RoundBudget, TrainingResult


@dataclass(frozen=True)
class Trained:
    """What a training made, and of what."""

    result: TrainingResult
    table: WordTable
    training: TrainingOptions
    covered: Coverage


@dataclass(frozen=True)
class TrainingCall:
    """A call of `wordpiece train`, whose options have been checked."""

    inputs: Sequence[str]
    beam_args: Sequence[str]
    output: str
    word_counts: str | None
    counting: CountOptions
    training: TrainingOptions
    budget: RoundBudget
    work: TrainingWork
    keep_work: bool
    overwrite: bool
    progress: Progress

    def run(self) -> Trained:
        """Trains, and writes the tokenizer. Holds the output and the work directory."""
        identity: dict[str, Any] = {"training": self.training.plain()}
        if self.word_counts:  # the table may have been counted without rare words
            del identity["training"]["min_word_count"]
        else:
            identity["text"] = asdict(self.counting.text)
        self._check_output(identity)
        table = read_word_table(self.word_counts) if self.word_counts else None
        counted_from = {} if table else self._counted_from()
        self.work.check(counted_from, identity["training"])
        self.work.claim(counted_from)
        try:
            done = self._train(table or self._count(counted_from))
        except (InputError, OptionError):
            with suppress(OutputError):
                self.work.release()
            raise
        if not self.keep_work:
            self.work.delete()
        return done

    def _check_output(self, identity: dict[str, Any]) -> None:
        check_tokenizer_directory(self.output, identity, overwrite=self.overwrite)

    def _counted_from(self) -> dict[str, Any]:
        """What a word table in the work directory must have been counted from."""
        files = resolve(self.inputs, [self.output, self.work.path])
        options = asdict(self.counting)
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
        own = [self.output, self.work.path]
        more: dict[str, Any] = {"own": own, "beam_args": self.beam_args, "progress": self.progress}
        return count(self.inputs, self.work.words, self.counting, **more)

    def _train(self, table: WordTable) -> Trained:
        text = text_of([table], self.counting.text)
        training = _training_of(table, self.training)
        digest = table_digest(table)
        identity = {"text": asdict(text), "training": training.plain(), "word_table": digest}
        self._check_output(identity)
        job = Job(
            training,
            digest,
            self.work,
            self.progress,
            self.budget,
            self.counting.worker_memory,
            self.beam_args,
        )
        result = train(table, job)
        spec = _spec(result, text, training)
        done = Trained(result, table, training, coverage(table, Tokenizer.of(spec)))
        self.work.owned.check_lease()
        record = _training_record(done, identity)
        write_tokenizer(self.output, spec, result.merges, record, self._run_record(result))
        return done

    def _run_record(self, result: TrainingResult) -> dict[str, Any]:
        """What this run took: the contents of `run.json`."""
        seconds = self.progress.seconds.items()
        return {
            "inputs": list(self.inputs),
            "word_counts": self.word_counts,
            "text_column": self.counting.text_column,
            "group_column": self.counting.group_column,
            "driver_memory": self.budget.memory,
            "round_budget": self.budget.share,
            "rounds": result.rounds,
            "seconds": {name: round(value, 3) for name, value in seconds},
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


def _spec(result: TrainingResult, text: TextOptions, training: TrainingOptions) -> TokenizerSpec:
    """The tokenizer that a training gives."""
    return TokenizerSpec(
        result.vocab,
        text,
        training.max_word_length,
        training.continuing_prefix,
        own_special_tokens(training.special_tokens),
    )


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
