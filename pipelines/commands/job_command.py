"""A command that runs a job, with its options from the command line, the environment and a config
file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from pipelines.commands.options import SectionOption, Value, parameters, parted
from pipelines.running.call import JobCall
from pipelines.running.messages import is_terminal, write_line
from wordpiece_core.declaration import MAIN, OTHER, SECTIONS
from wordpiece_core.option_kinds import Place

C = TypeVar("C", bound=JobCall)

NEAREST = [ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP]
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
"""How each command is called, twice."""
WITHOUT_BEAM = ("check",)
PASSED_ON = "Arguments after -- go to Beam, for example: -- --runner=FlinkRunner"


@dataclass(frozen=True)
class How:
    """How a command runs a job. `beam_args`: arguments for Beam. `quiet`: show no progress and no
    summary. `json`: print the summary as a JSON object."""

    beam_args: list[str]
    quiet: bool = False
    json: bool = False


class Command(click.Command):
    """A command whose help groups the options, and whose errors name variables and files."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options below the headings of their sections."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                sections[getattr(parameter, "section", OTHER)].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        apart = [p.name for p in self.params if getattr(p, "in_config", False) and p.name]
        if apart:
            with formatter.section("Only in config files and Python"):
                formatter.write_text(", ".join(apart))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as error:
            raise self._placed(ctx, error) from error
        except click.NoSuchOption as error:
            raise self._hinted(error) from error

    def _placed(self, ctx: click.Context, error: click.BadParameter) -> click.UsageError:
        """The error for a wrong value, which names the variable of the environment that has it."""
        name = error.param.name if error.param and error.param.name else ""
        source = ctx.get_parameter_source(name)
        if source is ParameterSource.ENVIRONMENT or (source is None and not ctx.params.get(name)):
            variable = f"{ctx.auto_envvar_prefix}_{name}".upper()
            return click.UsageError(f"the environment variable {variable}: {error.message}", ctx)
        return error

    def _hinted(self, error: click.NoSuchOption) -> click.UsageError:
        """The error for an unknown option that is one of Beam or of config files."""
        name = error.option_name.removeprefix("--").replace("-", "_")
        known = {parameter.name: parameter for parameter in self.params}
        if getattr(known.get(name), "in_config", False):
            hint = f"set {name} in a config file, by --config"
        elif name == "runner" or ("_" in error.option_name and name not in known):
            hint = f"options for Beam go after --, for example: -- {error.option_name}=..."
        else:
            return error
        return click.UsageError(f"No such option: {error.option_name} ({hint})", ctx=error.ctx)


def job_command(name: str, call: type[C], module: str) -> Command:
    """Make a command from the function `run_NAME` of a module, which is imported when it runs. The
    call declares the help and the options of the command."""

    @click.pass_obj
    def callback(beam_args: list[str], /, debug: bool, **given: Any) -> None:
        how = {name: value for name, value in given.items() if hasattr(How, name)}
        if is_terminal(sys.stderr) and not how.get("quiet"):
            write_line(f"{name}: starting")  # Beam alone takes some seconds
        run = getattr(import_module(module), f"run_{name}")
        run(parted(call, nearest(call, given)), How(beam_args, **how))

    params = [*parameters(call), *_job_options()]
    calls = "".join(f"\n  wordpiece {name} {example}" for example in EXAMPLES[name])
    epilog = f"\b\nExamples:{calls}" + f"\n\n{PASSED_ON}" * (name not in WITHOUT_BEAM)
    return Command(name, callback=callback, params=params, help=call.__doc__, epilog=epilog)


def nearest(call: type[JobCall], given: dict[str, Any]) -> dict[str, Any]:
    """The options that are set, without those that lose to an alternative which is set nearer to
    the call: on the command line, then in the environment, then in a config file."""
    source = click.get_current_context().get_parameter_source
    ranks = {name: NEAREST.index(place) for name in given if (place := source(name)) in NEAREST}
    for names in call.ALTERNATIVES:
        found = [name for name in names if name in ranks and given[name]]
        best = min((ranks[name] for name in found), default=0)
        ranks = {n: rank for n, rank in ranks.items() if n not in found or rank == best}
    return {name: given[name] for name in ranks}


def debug() -> click.Option:
    """The option --debug, which shows where an error comes from."""
    text = "Show tracebacks and messages of libraries."
    return click.Option(["--debug"], is_flag=True, help=text)


def _job_options() -> list[click.Option]:
    return [
        SectionOption(
            ["--config"],
            section=MAIN,
            type=Value(Place()),
            is_eager=True,
            expose_value=False,
            callback=_read_config,
            metavar="FILE",
            help="YAML file of options, or the name of a built-in preset.",
        ),
        click.Option(["--json", "json"], is_flag=True, help="Print the summary as JSON."),
        click.Option(["--quiet"], is_flag=True, help="Show no progress and no summary."),
        debug(),
    ]


def _read_config(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Makes the options of a config file the defaults of the command."""
    if path is not None:
        from pipelines.commands.config import read_config

        group = ctx.parent.command if ctx.parent else None
        sections = group.commands if isinstance(group, click.Group) else ()
        ctx.default_map = read_config(path, ctx, sections)
