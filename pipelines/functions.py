"""The jobs as functions, with the option names and the defaults of the command line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pyarrow as pa

from pipelines.commands.job_command import CommandLog, Result
from pipelines.comparing.check import Checked, check_job
from pipelines.comparing.compare import compare_job
from pipelines.comparing.options import CheckOptions, CompareOptions
from pipelines.counting.count import count_job
from pipelines.counting.options import CountOptions
from pipelines.counting.word_table import WordTable
from pipelines.encoding.encode import encode_job
from pipelines.encoding.options import EncodeOptions
from pipelines.encoding.result import Encoded
from pipelines.options import RunOptions
from pipelines.progress import Progress
from pipelines.reporting.options import ReportOptions
from pipelines.reporting.report import Report, report_job
from pipelines.training.extend import Extended, extend_job
from pipelines.training.options import ExtendOptions, PruneOptions, TrainOptions
from pipelines.training.prune import Pruned, prune_job
from pipelines.training.train import Trained, train_job
from wordpiece_core.declared import job
from wordpiece_core.errors import spelled


class JobWarning(UserWarning):
    """A result of a job that may have a problem, for example many [UNK]."""


class _Log(CommandLog):
    """Log of a job that follows its inputs: a line for each commit, and Python's warnings."""

    def warn(self, message: str) -> None:
        warnings.warn(spelled(message), JobWarning, stacklevel=2)


Chosen = TypeVar("Chosen", bound=RunOptions)
Done = TypeVar("Done", bound=Result)


def _run(run: Callable[[Chosen, Progress], Done], options: Chosen) -> Done:
    """Run a job, and issue the warnings of its result as Python's warnings."""
    result = run(options, Progress(quiet=options.quiet))
    for warning in result.warnings():
        warnings.warn(spelled(warning), JobWarning, stacklevel=4)
    return result


@job(CountOptions)
def count(options: CountOptions) -> WordTable:
    """Count the words of texts into a word table, as `wordpiece count` does.

    >>> table = count("corpus/", output="words")
    >>> table.totals["words"]
    9
    >>> table.read().to_pylist()[0]
    {'word': 'hug', 'count': 4}
    """
    return _run(count_job, options)


@job(TrainOptions)
def train(options: TrainOptions) -> Trained:
    """Train a vocabulary on texts, or on a word table, and write a tokenizer directory, as
    `wordpiece train` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> len(trained.vocab), trained.tokenizer.tokenize("hugs pun")
    (14, ['hugs', 'p', '##u', '##n'])
    """
    return _run(train_job, options)


@job(ExtendOptions)
def extend(options: ExtendOptions) -> Extended:
    """Add tokens for the words of texts, or of a word table, to a tokenizer, and write the new
    tokenizer directory, as `wordpiece extend` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> more = extend("tokenizer", "corpus/", output="more", new_tokens=1)
    >>> more.new_tokens, more.saved_tokens
    (['##un'], 1)
    """
    return _run(extend_job, options)


@job(PruneOptions)
def prune(options: PruneOptions) -> Pruned:
    """Remove the tokens of a tokenizer that the words of texts, or of a word table, need least, and
    write the new tokenizer directory, as `wordpiece prune` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> fewer = prune("tokenizer", "corpus/", output="fewer", vocab_size=13)
    >>> len(fewer.vocab), fewer.more_tokens
    (13, 1)
    """
    return _run(prune_job, options)


@job(EncodeOptions)
def encode(options: EncodeOptions) -> Encoded:
    """Encode texts into Parquet shards of token ids, as `wordpiece encode` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> encoded = encode("corpus/", tokenizer="tokenizer", output="dataset", max_length=128)
    >>> encoded.rows, encoded.shards
    (3, ['a.parquet'])
    """
    log = _Log(quiet=options.quiet, as_json=False) if options.follow else None
    return _run(partial(encode_job, log=log), options)


@job(CheckOptions)
def check(options: CheckOptions) -> Checked:
    """Encode a sample of texts natively and with the library that the tokenizer belongs to, as
    `wordpiece check` does, and compare every id.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> done = check("tokenizer/tokenizer.json", on="corpus/")
    >>> done.rows, done.differing_rows, done.encoder
    (3, 0, 'kernel')
    """
    return _run(check_job, options)


@job(CompareOptions)
def compare(options: CompareOptions) -> pa.Table:
    """Measure tokenizers on the same text, as `wordpiece compare` does. The table has a row for
    each tokenizer, with a null `group`, followed by a row for each group. docs/guides/compare.md
    describes the columns.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> table = compare(["tokenizer", trained.tokenizer], on="corpus/")
    >>> table["tokens_per_word"].to_pylist(), table["overlap"].to_pylist()
    ([1.3333333333333333, 1.3333333333333333], [1.0, 1.0])
    """
    return _run(compare_job, options).table


@job(ReportOptions)
def report(options: ReportOptions) -> Report:
    """Write an HTML page about a tokenizer and how it tokenizes text, as `wordpiece report` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> done = report("tokenizer", on="corpus/", output="report.html")
    >>> done.output, done.facts.on_text.all.tokens_per_word
    ('report.html', 1.3333333333333333)
    """
    return _run(report_job, options)


RAISES = """
Raises:
    wordpiece_core.OptionError: For a wrong argument.
    wordpiece_core.InputError: For bad data or a bad file.
    wordpiece_core.OutputError: If the output contains other files, or another run writes to it.
    wordpiece_core.WordpieceError: Base class of all errors.
"""
for _function in (count, train, extend, prune, encode, check, compare, report):
    _function.__doc__ = f"{_function.__doc__}{RAISES}"
