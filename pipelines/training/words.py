"""A run of a job that makes a tokenizer from words: `train`, `extend`, `prune`. It holds the output
and the work directory, counts the words unless there is a word table, and cleans up."""

from __future__ import annotations

import resource
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pipelines.beam import pipeline_options, runner_name, workers
from pipelines.counting.count import count_job
from pipelines.counting.options import CountOptions, ReadingOptions
from pipelines.counting.word_table import WordTable, read_word_table
from pipelines.io.input_files import InputFile, resolve
from pipelines.io.lock import exclusive_lock
from pipelines.progress import Progress
from pipelines.training.coverage import Coverage
from pipelines.training.options import ChangeOptions, TrainOptions
from pipelines.training.tokenizer_directory import check_tokenizer_directory, write_tokenizer
from pipelines.training.work_directory import HeldError, TrainingWork
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.errors import InputError, OptionError, OutputError, opt
from wordpiece_core.option_types import path, paths
from wordpiece_core.storage import check_writable
from wordpiece_core.summary import Summarized
from wordpiece_core.tokenizer.composing import splits_as, text_options
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.models import AddedToken
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.train import MERGES
from wordpiece_core.uri import sibling

MANY_ROUNDS = 50  # a budget that is of use makes some five or ten
WORK = ".work"  # the work directory is named after the output

Job = TypeVar("Job", bound=TrainOptions | ChangeOptions)
Changing = TypeVar("Changing", bound=ChangeOptions)
Done = TypeVar("Done", bound="MadeOfWords")


@dataclass(frozen=True, repr=False)
class MadeOfWords(Summarized):
    """A tokenizer that a job made from words. `output`: the tokenizer directory; `table`: the
    words; `spec`: the tokenizer; `covered`: how it segments the words; `seconds`: of each stage."""

    output: str
    table: WordTable
    spec: TokenizerSpec
    covered: Coverage
    seconds: dict[str, float]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself."""
        return Tokenizer.of(self.spec)

    @property
    def vocab(self) -> list[str]:
        """The tokens, in id order."""
        return list(self.spec.vocab)

    def _summary(self, counts: dict[str, int], change: dict[str, Any]) -> dict[str, Any]:
        return {
            "output": self.output,
            "vocab_size": len(self.vocab),
            **counts,
            "corpus": self.table.totals,
            **asdict(self.covered),
            "tokens_per_word": self.covered.tokens_per_word,
            **change,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, repr=False)
class Changed(MadeOfWords):
    """A tokenizer made from another one. `before`: how that one segmented the words."""

    before: Coverage

    def _summary(self, counts: dict[str, int], change: dict[str, Any]) -> dict[str, Any]:
        before = {
            "tokens_before": self.before.tokens,
            "unknown_words_before": self.before.unknown_words,
        }
        return super()._summary(counts, before | change)


@dataclass(frozen=True)
class WordsRun(ABC, Generic[Job, Done]):
    """A run. `work`: its work directory."""

    options: Job
    work: TrainingWork
    progress: Progress

    @abstractmethod
    def text(self) -> TextOptions:
        """How the text of INPUT is to be split into words."""

    @abstractmethod
    def split_at(self) -> list[AddedToken]:
        """Return the tokens that split the text of INPUT and are not counted."""

    @abstractmethod
    def known(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is known of the result before there are words: keys of `training.json`, and of what
        the work directory notes."""

    @abstractmethod
    def make(self, table: WordTable) -> Done:
        """Makes the tokenizer and writes its directory."""

    def run(self) -> Done:
        """Does the job. What a failed run has counted stays for the next one."""
        options = self.options
        identity, noted = self.known()
        self.check_output(identity)
        table = read_word_table(path(options.word_counts)) if options.word_counts else None
        counted_from = {} if table else self._counted_from()
        self.work.check(counted_from, noted)
        self.work.claim(counted_from)
        try:
            done = self.make(table or self._count(counted_from))
        except HeldError:
            raise
        except (InputError, OptionError):
            with suppress(OutputError):
                self.work.release()
            raise
        if not options.keep_work:
            self.work.delete()
        return done

    def check_output(self, identity: dict[str, Any]) -> None:
        """See `check_tokenizer_directory`."""
        identity = identity | {"split_special_tokens": self.options.split_special_tokens}
        check_tokenizer_directory(self.output, identity, overwrite=self.options.overwrite)

    @property
    def output(self) -> str:
        """The tokenizer directory."""
        return path(self.options.output)

    @cached_property
    def files(self) -> list[InputFile]:
        """The files of INPUT, as they are when the run begins."""
        own, quoting = [self.output, self.work.path], not self.options.no_quoting
        return resolve(paths(self.options.inputs), own, quoting=quoting)

    def _counted_from(self) -> dict[str, Any]:
        """What a word table in the work directory must have been counted from."""
        reading = self.options.select(ReadingOptions).to_dict()
        del reading["worker_memory"]
        files_as_planned = [[file.path, file.size, file.modified] for file in self.files]
        split = {"split_at": [vars(token) for token in self.split_at()]}
        return {**reading, **self.text().to_dict(), **split, "inputs": files_as_planned}

    def _count(self, counted_from: dict[str, Any]) -> WordTable:
        """The word table of the inputs, counted in the work directory unless it is there
        already."""
        if self.work.is_counted():
            return read_word_table(self.work.words)
        self.work.begin_count(counted_from)
        counting = CountOptions(
            inputs=self.options.inputs,
            output=self.work.words,
            beam_args=self.options.beam_args,
            **vars(self.options.select(ReadingOptions)) | vars(self.text()),
        )
        own = [self.output, self.work.path]
        return count_job(counting, self.progress, own=own, split_at=self.split_at())

    def unsplit_warning(self, table: WordTable) -> str | None:
        """Return a warning if special tokens were not split out of the text of a word table."""
        if not self.options.word_counts or table.text is None:
            return None
        counted = [t.content for t in self.split_at() if t.content not in table.special_tokens]
        if not counted:
            return None
        return (
            f"{table.path} was counted without splitting at {', '.join(counted)}, so parts of them"
            f" may be words; pass them to count as {opt.special_tokens}"
        )

    def seconds(self) -> dict[str, float]:
        """What each stage has taken."""
        return {name: round(value, 3) for name, value in self.progress.seconds.items()}

    def write(
        self,
        done: MadeOfWords,
        identity: dict[str, Any],
        change: dict[str, int],
        tables: Mapping[str, pa.Table],
        **took: Any,
    ) -> None:
        """Writes the tokenizer directory. `identity`, `change`: keys of `training.json`; `tables`:
        the Parquet files, by name; `took`: keys of `run.json`."""
        before = {"coverage_before": asdict(done.before)} if isinstance(done, Changed) else {}
        record = {
            "versions": {name: version(name) for name in ("wordpiece-beam", "pyarrow")},
            **identity,
            **({"split_special_tokens": True} if self.options.split_special_tokens else {}),
            "corpus": done.table.totals,
            "smoothing": done.table.smoothing,
            **before,
            "coverage": asdict(done.covered),
            **change,
            "vocab_size": len(done.vocab),
            "merges": tables[MERGES].num_rows if MERGES in tables else 0,
        }
        options = self.options
        beam = pipeline_options(options.beam_args)
        run = {
            "inputs": list(paths(options.inputs)),
            "word_counts": options.word_counts,
            "text_column": options.text_column,
            "group_column": options.group_column,
            **took,
            "seconds": self.seconds(),
            "peak_memory_bytes": peak_memory(),
            "workers": workers(beam),
            "runner": runner_name(beam),
        }
        write_tokenizer(self.output, done.spec, tables, record, run, overwrite=options.overwrite)


@dataclass(frozen=True)
class TokenizerRun(WordsRun[Changing, Done]):
    """A run that changes a tokenizer."""

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer to change. OptionError if it is where the output is to be."""
        place = path(self.options.tokenizer)
        if f"{place.rstrip('/')}/".startswith(f"{self.output.rstrip('/')}/"):
            raise OptionError(
                f"{opt.output}: {self.output} contains the tokenizer; choose another directory"
            )
        return self.options.load(place)

    def text(self) -> TextOptions:
        return text_options(self.tokenizer.spec)

    def split_at(self) -> list[AddedToken]:
        split = self.options.split_special_tokens
        return self.tokenizer.searched_tokens(split_special_tokens=split)


def run_on_words(run: type[WordsRun[Job, Done]], options: Job, progress: Progress) -> Done:
    """Run a job while no other run has its output and its work directory."""
    options = options.checked()  # type: ignore[assignment]
    output = path(options.output)
    place = path(options.work_dir) if options.work_dir else sibling(output, WORK)
    check_writable("work_dir", place)
    work = TrainingWork(place)
    with exclusive_lock(output), exclusive_lock(work.path):
        return run(options, work, progress).run()


def least_word_count(table: WordTable, wanted: int) -> int:
    """Return the count below which words are left out.

    Raises OptionError if the table lacks words of this count.
    """
    known = table.min_word_count
    if 1 < wanted < known:
        raise OptionError(
            f"{opt.min_word_count}: {wanted}, but {table.path} was counted with {known}"
        )
    return max(wanted, known)


def many_rounds_warning(rounds: int, budget: RoundBudget) -> str | None:
    """The warning if a budget made many rounds, else None."""
    if rounds <= MANY_ROUNDS:
        return None
    name = "round_budget" if budget.round_budget < 1 else "driver_memory"
    return f"there were {rounds:,} rounds; a larger {name} makes fewer, and the same vocabulary"


def check_same_text(table: WordTable, tokenizer: TokenizerSpec) -> None:
    """OptionError if the words of a table were counted with other text options than a tokenizer
    has."""
    if table.text is None or splits_as(tokenizer, table.text):
        return
    words, wanted = table.text.resolved(), tokenizer.text.resolved()
    names = [] if tokenizer.rules is not None else [n for n in words if words[n] != wanted[n]]
    name, has = (names[0], wanted[names[0]]) if names else ("pre_tokenizer", "another one")
    raise OptionError(
        f"{opt[name]}: {table.path} was counted with {words[name]}, but the tokenizer has {has};"
        f" count again with the same options as the tokenizer, or pass {opt.inputs}"
    )


def peak_memory() -> int:
    """The most memory this process, or one it started, has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return unit * max(resource.getrusage(who).ru_maxrss for who in whose)
