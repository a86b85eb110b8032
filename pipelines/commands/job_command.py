"""The command of a job: options from the command line, the environment and a config file; then the
job; then its result as lines or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import click
from click.core import ParameterSource as Source

from pipelines.commands.options import (
    CONFIG,
    SectionOption,
    Value,
    build,
    nearest,
    parameters,
    spelled_here,
    spelling,
    variable,
    with_values,
)
from pipelines.options import BeamOptions, RunOptions
from pipelines.progress import Progress, is_terminal, write_line
from wordpiece_core.declared import MAIN, OTHER, SECTIONS, Options, helps
from wordpiece_core.errors import OptionError, WordpieceError
from wordpiece_core.limits import Limits
from wordpiece_core.option_types import File

EXAMPLES = {
    "count": ("corpus/ --output words", "'s3://bucket/*.jsonl.gz' --output words"),
    "train": (
        "corpus/ --output tokenizer --vocab-size 32000",
        "corpus/ --output tokenizer --config llm-bpe",
    ),
    "extend": (
        "bert-base-uncased corpus/ --output extended --new-tokens 2000",
        "tokenizer --word-counts words --output extended --vocab-size 40000",
    ),
    "prune": (
        "bert-base-multilingual-cased corpus/ --output pruned --vocab-size 40000",
        "tokenizer --word-counts words --output pruned --vocab-size 20000",
    ),
    "encode": (
        "corpus/ --tokenizer tokenizer --output dataset --max-length 512",
        "corpus/ --tokenizer gpt2 --output packed --pack --max-length 1024 --shuffle 1",
    ),
    "check": (
        "gpt2/tokenizer.json --on corpus/",
        "tokenizer.model --on corpus/ --sample 100MB",
    ),
    "compare": (
        "tokenizer bert-base-cased --on held-out/",
        "tokenizer bert-base-cased --word-counts words",
    ),
    "report": (
        "tokenizer --on held-out/ --output report.html",
        "tokenizer --word-counts words --output report.html",
    ),
}
"""Two examples of each command."""
JOBS = {
    **{"count": "counting", "train": "training", "extend": "training", "prune": "training"},
    **{"encode": "encoding", "check": "comparing", "compare": "comparing", "report": "reporting"},
}
"""The folders of the jobs. `pipelines.FOLDER.NAME` has the function `NAME_job`."""
PASSED_ON = "Arguments after -- go to Beam, for example: -- --runner=FlinkRunner"


class Call(NamedTuple):
    """The arguments of a command after --, and the limits of its job."""

    after_dashes: list[str]
    limits: Limits


class Command(click.Command):
    """A command whose help groups the options, and whose errors name variables and files."""

    def __init__(self, *args: Any, options: Sequence[type[Options]], **more: Any) -> None:
        """`options`: the dataclasses of the options, whose docstrings are the help."""
        super().__init__(*args, **more)
        self.options = options

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below the headings of their sections."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        texts = {name: text for kind in self.options for name, text in helps(kind).items()}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, SectionOption) and parameter.name in texts:
                parameter.describe(texts[parameter.name])
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                sections[getattr(parameter, "section", OTHER)].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, with_values(self.options, args))
        except click.BadParameter as error:
            raise self._placed(ctx, error) from error
        except click.NoSuchOption as error:
            raise self._hinted(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Errors name options as they were given."""
        try:
            return super().invoke(ctx)
        except WordpieceError as error:
            for detail in error.details:
                say(f"error: {detail}")
            error.spell(spelling(ctx))
            raise

    def _placed(self, ctx: click.Context, error: click.BadParameter) -> click.UsageError:
        """Return the error for a wrong value with the variable of the environment that has it."""
        name = error.param.name if error.param and error.param.name else ""
        source = ctx.get_parameter_source(name)
        if source is Source.ENVIRONMENT or (source is None and not ctx.params.get(name)):
            place = f"the environment variable {variable(ctx, name)}"
            return click.UsageError(f"{place}: {error.message}", ctx)
        return error

    def _hinted(self, error: click.NoSuchOption) -> click.UsageError:
        """Return the error for an unknown option that may be an option of Beam."""
        name = error.option_name.removeprefix("--")
        known = {parameter.name for parameter in self.params}
        if name != "runner" and ("_" not in name or name in known):
            return error
        hint = f"options for Beam go after --, for example: -- {error.option_name}=..."
        return click.UsageError(f"No such option: {error.option_name} ({hint})", ctx=error.ctx)


def job_command(name: str, options: type[RunOptions]) -> Command:
    """Return the command of a job, whose module is imported when it runs. The dataclass declares
    its help and its options."""
    on_beam = issubclass(options, BeamOptions)

    @click.pass_obj
    def callback(call: Call, /, debug: bool, as_json: bool, **given: Any) -> None:
        if call.after_dashes and not on_beam:
            raise OptionError(f"{name} does not run on Beam; remove the arguments after --")
        more: dict[str, Any] = {"beam_args": call.after_dashes} if on_beam else {}
        chosen = build(options, nearest(options, given), limits=call.limits, **more)
        if is_terminal(sys.stderr) and not chosen.quiet:
            write_line(f"{name}: starting")  # Beam alone takes some seconds
        job = getattr(import_module(f"pipelines.{JOBS[name]}.{name}"), f"{name}_job")
        log: dict[str, Any] = {}
        if getattr(chosen, "follow", False):
            log = {"log": CommandLog(quiet=chosen.quiet, as_json=as_json)}
        result: Result = job(chosen, Progress(quiet=chosen.quiet), **log)
        print_result(result, quiet=chosen.quiet, as_json=as_json)

    params = [*parameters(options), *_common_options()]
    calls = "".join(f"\n  wordpiece {name} {example}" for example in EXAMPLES[name])
    epilog = f"\b\nExamples:{calls}" + f"\n\n{PASSED_ON}" * on_beam
    how: Any = {"help": options.__doc__, "epilog": epilog, "options": [options]}
    return Command(name, callback=callback, params=params, **how)


class Result(Protocol):
    """The result of a job."""

    def summary(self) -> Any:
        """Return the summary as values that JSON can hold."""

    def lines(self) -> list[str]:
        """Return the summary as lines."""

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""


def print_result(result: Result, *, quiet: bool, as_json: bool) -> None:
    """Print a result and its warnings."""
    if as_json:
        print(json.dumps(result.summary(), ensure_ascii=False))
    elif not quiet:
        print("\n".join(result.lines()))
    for warning in result.warnings():
        say(f"warning: {warning}")
    if (failure := getattr(result, "failure", None)) is not None:
        raise failure


class CommandLog:
    """Log of `encode --follow`: a line on standard error for each commit, or a JSON object."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json

    def commit(self, row: Mapping[str, Any]) -> None:
        """Print a commit."""
        if self.as_json:
            write_line(json.dumps(dict(row), ensure_ascii=False))
        elif not self.quiet:
            write_line(
                ", ".join(f"{name.replace('_', ' ')} {_shown(n)}" for name, n in row.items())
            )

    def warn(self, message: str) -> None:
        """Print a warning."""
        if self.as_json:
            write_line(json.dumps({"warning": spelled_here(message)}, ensure_ascii=False))
        else:
            say(f"warning: {message}")


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def say(text: str) -> None:
    """Write a line for people to standard error."""
    write_line(f"wordpiece: {spelled_here(text)}")


def debug() -> click.Option:
    """Return the option --debug."""
    text = "Show tracebacks and messages of libraries."
    return click.Option(["--debug"], is_flag=True, help=text)


def _common_options() -> list[click.Option]:
    return [
        SectionOption(
            ["--config"],
            section=MAIN,
            type=Value(File),
            is_eager=True,
            expose_value=False,
            callback=_read_config,
            metavar="FILE",
            help="YAML file of options, or the name of a built-in preset.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the summary as JSON."),
        debug(),
    ]


def _read_config(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Make the options of a config file the defaults of the command."""
    if path is not None:
        from pipelines.commands.config import read_config

        ctx.meta[CONFIG] = path
        ctx.default_map = read_config(path, ctx)
