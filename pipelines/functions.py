"""The jobs as functions, with the option names and the defaults of the command line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from pipelines.comparing.check import Checked, check_job
from pipelines.comparing.compare import compare_job
from pipelines.comparing.options import CheckCall, CompareCall
from pipelines.counting.count import count_job
from pipelines.counting.options import CountCall
from pipelines.counting.word_table import WordTable
from pipelines.encoding.encode import encode_job
from pipelines.encoding.follow import commit_line
from pipelines.encoding.options import EncodeCall
from pipelines.encoding.result import Encoded
from pipelines.reporting.options import ReportCall
from pipelines.reporting.report import Report, report_job
from pipelines.running.call import JobCall
from pipelines.running.messages import write_line
from pipelines.running.progress import Progress
from pipelines.training.extend import Extended, extend_job
from pipelines.training.options import ExtendCall, PruneCall, TrainCall
from pipelines.training.prune import Pruned, prune_job
from pipelines.training.train import Trained, train_job
from wordpiece_core import Tokenizer
from wordpiece_core.declaration import Option

Function = TypeVar("Function", bound=Callable[..., Any])

RUN_ARGUMENTS = {
    "beam_args": ("Sequence[str]", (), "Arguments for Beam, such as `--runner=FlinkRunner`."),
    "quiet": ("bool", False, "Show no progress."),
}
"""Arguments of all functions in addition to the options of their job: type, default, help."""


class JobWarning(UserWarning):
    """A result of a job that may have a problem, for example many [UNK]."""


class _Log:
    """Log of a job that follows its inputs: a line for each commit, and warnings."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet

    def commit(self, row: Mapping[str, Any]) -> None:
        if not self.quiet:
            write_line(commit_line(row))

    def warn(self, message: str) -> None:
        warnings.warn(message, JobWarning, stacklevel=2)


class _Result(Protocol):
    def warnings(self) -> list[str]: ...


Result = TypeVar("Result", bound=_Result)


def _documented(
    call: type[JobCall], run_arguments: Collection[str] = tuple(RUN_ARGUMENTS)
) -> Callable[[Function], Function]:
    """Give a function the signature and the documented arguments that a call declares."""
    more = {name: RUN_ARGUMENTS[name] for name in run_arguments}

    def decorate(function: Function) -> Function:
        parameters = [_parameter(option, call) for option in call.arguments_first()]
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters += [
            inspect.Parameter(name, keyword, default=default, annotation=kind)
            for name, (kind, default, _) in more.items()
        ]
        given = inspect.signature(function)
        function.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
        lines = [inspect.cleandoc(function.__doc__ or ""), *_lines(call, more)]
        function.__doc__ = "\n".join(lines)
        return function

    return decorate


def _parameter(option: Option, call: type[JobCall]) -> inspect.Parameter:
    is_first = option.name in call.ARGUMENTS
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return option.parameter(kinds[not is_first])


def _lines(call: type[JobCall], more: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments and errors in Google's docstring style."""
    yield "\nArgs:"
    for option in call.arguments_first():
        needed = " Required." if option.is_required else ""
        shown = f" Default: {option.shown_default}." if option.shown_default else ""
        yield f"    {option.name}: {option.help + needed + shown}"
    for name, (_, _, text) in more.items():
        yield f"    {name}: {text}"
    yield "\nRaises:"
    yield "    wordpiece_core.OptionError: For a wrong argument."
    yield "    wordpiece_core.InputError: For bad data or a bad file."
    yield "    wordpiece_core.OutputError: If the output contains other files, or another run"
    yield "        writes to it."
    yield "    wordpiece_core.WordpieceError: Base class of all errors."


def _warned(result: Result) -> Result:
    for warning in result.warnings():
        warnings.warn(warning, JobWarning, stacklevel=3)
    return result


@_documented(CountCall)
def count(
    inputs: str | Sequence[str] = (),
    *,
    beam_args: Sequence[str] = (),
    quiet: bool = False,
    **options: Any,
) -> WordTable:
    """Count the words of texts into a word table, as `wordpiece count` does.

    >>> table = count("corpus/", output="words")
    >>> table.totals["words"]
    9
    >>> table.read().to_pylist()[0]
    {'word': 'hug', 'count': 4}
    """
    call = CountCall.of(inputs=inputs, **options)
    return _warned(count_job(call, beam_args=beam_args, progress=Progress(quiet=quiet)))


@_documented(TrainCall)
def train(
    inputs: str | Sequence[str] = (),
    *,
    beam_args: Sequence[str] = (),
    quiet: bool = False,
    **options: Any,
) -> Trained:
    """Train a vocabulary on texts, or on a word table, and write a tokenizer directory, as
    `wordpiece train` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> len(trained.vocab), trained.tokenizer.tokenize("hugs pun")
    (14, ['hugs', 'p', '##u', '##n'])
    """
    call = TrainCall.of(inputs=inputs, **options)
    return _warned(train_job(call, beam_args=beam_args, progress=Progress(quiet=quiet)))


@_documented(ExtendCall)
def extend(
    tokenizer: str,
    inputs: str | Sequence[str] = (),
    *,
    beam_args: Sequence[str] = (),
    quiet: bool = False,
    **options: Any,
) -> Extended:
    """Add tokens for the words of texts, or of a word table, to a tokenizer, and write the new
    tokenizer directory, as `wordpiece extend` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> more = extend("tokenizer", "corpus/", output="more", new_tokens=1)
    >>> more.new_tokens, more.saved_tokens
    (['##un'], 1)
    """
    call = ExtendCall.of(tokenizer=tokenizer, inputs=inputs, **options)
    return _warned(extend_job(call, beam_args=beam_args, progress=Progress(quiet=quiet)))


@_documented(PruneCall)
def prune(
    tokenizer: str,
    inputs: str | Sequence[str] = (),
    *,
    beam_args: Sequence[str] = (),
    quiet: bool = False,
    **options: Any,
) -> Pruned:
    """Remove the tokens of a tokenizer that the words of texts, or of a word table, need least, and
    write the new tokenizer directory, as `wordpiece prune` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> fewer = prune("tokenizer", "corpus/", output="fewer", vocab_size=13)
    >>> len(fewer.vocab), fewer.more_tokens
    (13, 1)
    """
    call = PruneCall.of(tokenizer=tokenizer, inputs=inputs, **options)
    return _warned(prune_job(call, beam_args=beam_args, progress=Progress(quiet=quiet)))


@_documented(EncodeCall)
def encode(
    inputs: str | Sequence[str] = (),
    *,
    beam_args: Sequence[str] = (),
    quiet: bool = False,
    **options: Any,
) -> Encoded:
    """Encode texts into Parquet shards of token ids, as `wordpiece encode` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> encoded = encode("corpus/", tokenizer="tokenizer", output="dataset", max_length=128)
    >>> encoded.rows, encoded.shards
    (3, ['a.parquet'])
    """
    call = EncodeCall.of(inputs=inputs, **options)
    tokenizer = call.choice.load()
    log = _Log(quiet) if call.following.follow else None
    progress = Progress(quiet=quiet or call.following.follow)
    done = encode_job(call, tokenizer, beam_args=beam_args, progress=progress, log=log)
    return _warned(done)


@_documented(CheckCall, ["quiet"])
def check(tokenizer: str, *, quiet: bool = False, **options: Any) -> Checked:
    """Encode a sample of texts natively and with the library that the tokenizer belongs to, as
    `wordpiece check` does, and compare every id.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> done = check("tokenizer/tokenizer.json", on="corpus/")
    >>> done.rows, done.differing_rows, done.encoder
    (3, 0, 'kernel')
    """
    call = CheckCall.of(tokenizer=tokenizer, **options)
    return _warned(check_job(call, Progress(quiet=quiet)))


@_documented(CompareCall)
def compare(
    tokenizers: str | Tokenizer | Sequence[str | Tokenizer],
    *,
    beam_args: Sequence[str] = (),
    quiet: bool = False,
    **options: Any,
) -> pa.Table:
    """Measure tokenizers on the same text, as `wordpiece compare` does. The table has a row for
    each tokenizer, with a null `group`, followed by a row for each group. docs/guides/compare.md
    describes the columns.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> table = compare(["tokenizer", trained.tokenizer], on="corpus/")
    >>> table["tokens_per_word"].to_pylist(), table["overlap"].to_pylist()
    ([1.3333333333333333, 1.3333333333333333], [1.0, 1.0])
    """
    call = CompareCall.of(tokenizers=tokenizers, **options)
    progress = Progress(quiet=quiet)
    return _warned(compare_job(call, beam_args=beam_args, progress=progress)).table


@_documented(ReportCall)
def report(
    tokenizer: str | Tokenizer,
    *,
    beam_args: Sequence[str] = (),
    quiet: bool = False,
    **options: Any,
) -> Report:
    """Write an HTML page about a tokenizer and how it tokenizes text, as `wordpiece report` does.

    >>> trained = train("corpus/", output="tokenizer", vocab_size=14)
    >>> done = report("tokenizer", on="corpus/", output="report.html")
    >>> done.output, done.facts.on_text.all.tokens_per_word
    ('report.html', 1.3333333333333333)
    """
    call = ReportCall.of(tokenizer=tokenizer, **options)
    progress = Progress(quiet=quiet)
    return _warned(report_job(call, beam_args=beam_args, progress=progress))
