"""A run of a job that makes a tokenizer of words: `train`, `extend`, `prune`. It holds the output
and the work directory, counts the words unless there is a word table, and cleans up."""

from __future__ import annotations

import resource
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pipelines.counting.count import count
from pipelines.counting.options import CountCall, CountOptions, ReadingOptions
from pipelines.counting.word_table import Coverage, WordTable, read_word_table
from pipelines.files.filesystems import beside
from pipelines.files.input_files import resolve
from pipelines.files.lease import one_run
from pipelines.files.places import check_writable
from pipelines.running.beam_args import shown_args
from pipelines.running.checks import checked_call
from pipelines.running.progress import Progress
from pipelines.running.runner import pipeline_options, workers
from pipelines.training.options import TokenizerWordsCall, TrainCall, WordsCall
from pipelines.training.tokenizer_directory import check_tokenizer_directory, write_tokenizer
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.declaration import named
from wordpiece_core.errors import InputError, OptionError, OutputError
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.training.budget import RoundBudget

MANY_UNKNOWN = 0.01  # of words: more is worth a warning
MANY_ROUNDS = 50  # a budget that is of use makes some five or ten
WORK = ".work"  # after the output's name: what a run keeps while it works

Call = TypeVar("Call", bound=TrainCall | TokenizerWordsCall)
Changing = TypeVar("Changing", bound=TokenizerWordsCall)
Done = TypeVar("Done", bound="MadeOfWords")


@dataclass(frozen=True)
class MadeOfWords:
    """A tokenizer that a job made of words. `output`: the tokenizer directory; `table`: the words;
    `spec`: the tokenizer; `covered`: how it cuts the words."""

    output: str
    table: WordTable
    spec: TokenizerSpec
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
        return list(self.spec.vocab)


@dataclass(frozen=True)
class WordsRun(ABC, Generic[Call, Done]):
    """A run. `work`: its work directory."""

    call: Call
    work: TrainingWork
    beam_args: Sequence[str]
    progress: Progress

    @abstractmethod
    def text(self) -> TextOptions:
        """How the words of INPUT are to be cut."""

    @abstractmethod
    def known(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is known of the result before there are words: keys of `training.json`, and of what
        the work directory notes."""

    @abstractmethod
    def make(self, table: WordTable) -> Done:
        """Makes the tokenizer and writes its directory."""

    def run(self) -> Done:
        """Does the job. What a failed run has counted stays for the next one."""
        call = self.call
        identity, noted = self.known()
        self.check_output(identity)
        table = read_word_table(call.word_counts) if call.word_counts else None
        counted_from = {} if table else self._counted_from()
        self.work.check(counted_from, noted)
        self.work.claim(counted_from)
        try:
            done = self.make(table or self._count(counted_from))
        except (InputError, OptionError):
            with suppress(OutputError):
                self.work.release()
            raise
        if not call.keep_work:
            self.work.delete()
        return done

    def check_output(self, identity: dict[str, Any]) -> None:
        """See `check_tokenizer_directory`."""
        check_tokenizer_directory(self.call.output, identity, overwrite=self.call.overwrite)

    @property
    def _counting(self) -> CountOptions:
        reading = {name: getattr(self.call.counting, name) for name in vars(ReadingOptions())}
        return CountOptions(**reading, text=self.text())

    def _counted_from(self) -> dict[str, Any]:
        """What a word table in the work directory must have been counted from."""
        files = resolve(self.call.inputs, [self.call.output, self.work.path])
        options = asdict(self._counting)
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
        inputs, counting = self.call.inputs, self._counting
        call = CountCall(inputs=inputs, output=self.work.words, counting=counting)
        own = [self.call.output, self.work.path]
        return count(call, own=own, beam_args=self.beam_args, progress=self.progress)

    def seconds(self) -> dict[str, float]:
        """What each stage has taken."""
        return {name: round(value, 3) for name, value in self.progress.seconds.items()}

    def write(
        self,
        spec: TokenizerSpec,
        tables: Mapping[str, pa.Table],
        record: dict[str, Any],
        run: dict[str, Any],
    ) -> None:
        """Writes the tokenizer directory. `tables`: its files of Parquet, by name; `run`: what
        `run.json` holds beside what all runs note."""
        self.work.owned.lease.check()
        versions = {name: version(name) for name in ("wordpiece-beam", "pyarrow")}
        call = self.call
        run = {
            "inputs": list(call.inputs),
            "word_counts": call.word_counts,
            "text_column": call.counting.text_column,
            "group_column": call.counting.group_column,
            **run,
            "peak_memory_bytes": peak_memory(),
            "workers": workers(pipeline_options(self.beam_args)),
            "beam_args": shown_args(self.beam_args),
        }
        write_tokenizer(call.output, spec, tables, {"versions": versions} | record, run)


@dataclass(frozen=True)
class TokenizerRun(WordsRun[Changing, Done]):
    """A run that changes a tokenizer."""

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer to change. OptionError if it is where the output is to be."""
        call = self.call
        if f"{call.tokenizer.rstrip('/')}/".startswith(f"{call.output.rstrip('/')}/"):
            raise OptionError(
                f"{named('output')}: {call.output} holds the tokenizer; give another directory"
            )
        return Tokenizer.load(call.tokenizer, lowercase=call.lowercase)

    def text(self) -> TextOptions:
        return self.tokenizer.spec.text


def run_on_words(
    run: type[WordsRun[Call, Done]], call: Call, beam_args: Sequence[str], progress: Progress
) -> Done:
    """Does a job, while no other run has its output and its work directory."""
    call = checked_call(call, beam_args)
    place = call.work_dir or beside(call.output, WORK)
    check_writable(named("work_dir"), place)
    work = TrainingWork(place)
    with one_run(call.output), one_run(work.path):
        return run(call, work, beam_args, progress).run()


def least_word_count(table: WordTable, wanted: int, call: WordsCall) -> int:
    """The count below which words are left out. OptionError if the table has fewer words than the
    call asks for."""
    known = table.min_word_count
    if wanted < known and (wanted > 1 or "min_word_count" in call.given):
        raise OptionError(
            f"{named('min_word_count')}: {wanted}, but {table.path} was counted with {known}"
        )
    return max(wanted, known)


def many_rounds_warning(rounds: int, budget: RoundBudget) -> str | None:
    """The warning if a budget made many rounds, else None."""
    if rounds <= MANY_ROUNDS:
        return None
    name = "round_budget" if budget.round_budget < 1 else "driver_memory"
    return f"there were {rounds:,} rounds; a larger {name} makes fewer, and the same vocabulary"


def check_cut_alike(table: WordTable, tokenizer: TokenizerSpec) -> None:
    """OptionError if the words of a table were cut otherwise than a tokenizer cuts text."""
    if table.text is None:
        return
    words, wanted = table.text.for_kernel(), tokenizer.text.for_kernel()
    for name, value in words.items():
        if value != wanted[name]:
            raise OptionError(
                f"{name}: {table.path} was counted with {value}, but the tokenizer has"
                f" {wanted[name]}; count again with the tokenizer's, or give {named('inputs')}"
            )


def peak_memory() -> int:
    """The most memory this process, or one it started, has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return unit * max(resource.getrusage(who).ru_maxrss for who in whose)
