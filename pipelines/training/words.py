"""The words that `train`, `extend` and `prune` work on: a word table, or the words of the inputs,
which are counted in the work directory."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from pipelines.beam import pipeline_options, runner_name, workers
from pipelines.counting.count import count_job
from pipelines.counting.options import CountOptions, ReadingOptions
from pipelines.counting.word_table import WordTable, read_word_table
from pipelines.io.input_files import InputFile, resolve
from pipelines.io.lock import exclusive_lock
from pipelines.progress import Progress
from pipelines.training.options import ChangeOptions, TrainOptions
from pipelines.training.tokenizer_directory import check_tokenizer_directory, write_tokenizer
from pipelines.training.work_directory import HeldError, TrainingWork
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.option_types import path, paths
from wordpiece_core.storage import check_writable
from wordpiece_core.tokenizer.composing import splits_as
from wordpiece_core.tokenizer.models import AddedToken
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.train import MERGES
from wordpiece_core.uri import sibling

MANY_ROUNDS = 50  # a useful budget needs five or ten
WORK = ".work"  # the default work directory is OUTPUT.work
PACKAGES = ("wordpiece-beam", "pyarrow")  # whose versions training.json records


@dataclass(frozen=True)
class WordsJob:
    """A job with its words, while it holds its output and its work directory.

    Attributes:
        split_at: Tokens that split the text and are not counted.
    """

    options: TrainOptions | ChangeOptions
    progress: Progress
    work: TrainingWork
    table: WordTable
    split_at: Sequence[AddedToken]

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage."""
        return {name: round(value, 3) for name, value in self.progress.seconds.items()}

    def write(
        self,
        spec: TokenizerSpec,
        identity: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
        **took: Any,
    ) -> None:
        """Write the tokenizer directory.

        Args:
            identity: The keys of `training.json` that determine the result.
            tables: Parquet files by name.
            took: Keys of `run.json`.
        """
        options, merges = self.options, tables.get(MERGES)
        record = {
            "versions": {name: version(name) for name in PACKAGES},
            **identity,
            **({"split_special_tokens": True} if options.split_special_tokens else {}),
            "corpus": self.table.totals,
            "smoothing": self.table.smoothing,
            "vocab_size": len(spec.vocab),
            "merges": merges.num_rows if merges is not None else 0,
        }
        beam = pipeline_options(options.beam_args)
        run = {
            "inputs": list(paths(options.inputs)),
            "word_counts": options.word_counts,
            "text_column": options.text_column,
            "group_column": options.group_column,
            **took,
            "seconds": self.seconds,
            "peak_memory_bytes": peak_memory(),
            "workers": workers(beam),
            "runner": runner_name(beam),
        }
        output, overwrite = path(options.output), options.overwrite
        write_tokenizer(output, spec, tables, record, run, overwrite=overwrite)

    def unsplit_warning(self) -> str | None:
        """Return a warning if the word table was counted without splitting at special tokens."""
        table = self.table
        if not self.options.word_counts or table.text is None:
            return None
        counted = [t.content for t in self.split_at if t.content not in table.special_tokens]
        if not counted:
            return None
        return (
            f"{table.path} was counted without splitting at {', '.join(counted)}, so parts of them"
            f" may be words; pass them to count as {opt.special_tokens}"
        )


@contextmanager
def open_words(
    options: TrainOptions | ChangeOptions,
    progress: Progress,
    text: TextOptions,
    split_at: Sequence[AddedToken],
    identity: Mapping[str, Any],
    training: Mapping[str, Any],
) -> Iterator[WordsJob]:
    """Lock the output and the work directory, and count the words unless there is a word table. The
    work directory is deleted after the block. An InputError or OptionError ends the training, but
    keeps its words for the next run; after any other error the next run resumes it.

    Args:
        text: How the text of the inputs is split into words.
        split_at: Tokens that split the text and are not counted.
        identity: Keys of `training.json` that are known before there are words.
        training: Values of the work directory that are known before there are words.
    """
    output = path(options.output)
    place = path(options.work_dir) if options.work_dir else sibling(output, WORK)
    check_writable("work_dir", place)
    work = TrainingWork(place)
    with exclusive_lock(output), exclusive_lock(place):
        check_output(options, identity)
        table = read_word_table(path(options.word_counts)) if options.word_counts else None
        counted_from = {} if table else _counted_from(options, work, text, split_at)
        work.check(counted_from, training)
        work.claim(counted_from)
        try:
            if table is None:
                table = _count(options, progress, work, text, split_at, counted_from)
            yield WordsJob(options, progress, work, table, split_at)
        except HeldError:
            raise
        except (InputError, OptionError):
            work.release()
            raise
        if not options.keep_work:
            work.delete()


def check_output(options: TrainOptions | ChangeOptions, identity: Mapping[str, Any]) -> None:
    """Check the output with `check_tokenizer_directory`."""
    identity = {**identity, "split_special_tokens": options.split_special_tokens}
    check_tokenizer_directory(path(options.output), identity, overwrite=options.overwrite)


def _counted_from(
    options: TrainOptions | ChangeOptions,
    work: TrainingWork,
    text: TextOptions,
    split_at: Sequence[AddedToken],
) -> dict[str, Any]:
    """Return the values that a word table in the work directory must have been counted from."""
    reading = options.select(ReadingOptions).to_dict()
    del reading["worker_memory"]
    return {
        **reading,
        **text.to_dict(),
        "split_at": [vars(token) for token in split_at],
        "inputs": [
            [file.path, file.size, file.modified] for file in input_files(options, work.path)
        ],
    }


def input_files(options: TrainOptions | ChangeOptions, work_dir: str) -> list[InputFile]:
    """Return the files of the inputs, without files of the output and the work directory."""
    own, quoting = [path(options.output), work_dir], not options.no_quoting
    return resolve(paths(options.inputs), own, quoting=quoting)


def _count(
    options: TrainOptions | ChangeOptions,
    progress: Progress,
    work: TrainingWork,
    text: TextOptions,
    split_at: Sequence[AddedToken],
    counted_from: dict[str, Any],
) -> WordTable:
    """Count the words of the inputs, unless the work directory has them already."""
    if work.is_counted():
        return read_word_table(work.words)
    work.start_count(counted_from)
    counting = CountOptions(
        inputs=options.inputs,
        output=work.words,
        beam_args=options.beam_args,
        limits=options.limits,
        **options.select(ReadingOptions).values() | text.values(),
    )
    return count_job(counting, progress, own=[path(options.output), work.path], split_at=split_at)


def base_tokenizer(options: ChangeOptions) -> Tokenizer:
    """Load the tokenizer that a job changes. Raises OptionError if the output contains it."""
    place, output = path(options.tokenizer), path(options.output)
    if f"{place.rstrip('/')}/".startswith(f"{output.rstrip('/')}/"):
        raise OptionError(
            f"{opt.output}: {output} contains the tokenizer; choose another directory"
        )
    return options.load(place)


def check_same_text(table: WordTable, tokenizer: TokenizerSpec) -> None:
    """Raise OptionError if a word table was counted with other text options than a tokenizer
    has."""
    if table.text is None or splits_as(tokenizer, table.text):
        return
    words, wanted = table.text.resolved(), tokenizer.text.resolved()
    names = [n for n in words if words[n] != wanted[n]] if tokenizer.words.is_by_options else []
    name, has = (names[0], wanted[names[0]]) if names else ("pre_tokenizer", "another one")
    raise OptionError(
        f"{opt[name]}: {table.path} was counted with {words[name]}, but the tokenizer has {has};"
        f" count again with the same options as the tokenizer, or pass {opt.inputs}"
    )


def lowest_word_count(table: WordTable, wanted: int) -> int:
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
    """Return a warning if a small budget has led to many rounds, else None."""
    if rounds <= MANY_ROUNDS:
        return None
    name = "round_budget" if budget.round_budget < 1 else "driver_memory"
    return f"there were {rounds:,} rounds; a larger {name} makes fewer, and the same vocabulary"


def peak_memory() -> int:
    """Return the peak memory of this process, or of a process that it started, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return unit * max(resource.getrusage(who).ru_maxrss for who in whose)
