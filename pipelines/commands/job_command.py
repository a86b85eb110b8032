"""A command that runs a job, with its options from the command line, the environment and a config
file."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from pipelines.commands.hints import hinted
from pipelines.commands.options import DECLARED, ConfigOption, Value, parameters, parted
from pipelines.commands.standard_input import with_standard_input
from pipelines.running.call import JobCall
from wordpiece_core.declaration import INPUT, MAIN, OTHER, SECTIONS, Option
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Place

C = TypeVar("C", bound=JobCall)

NEAREST = [ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP]
UNDECLARED = {"config": MAIN, "dry_run": MAIN, "stdin_format": INPUT}  # options and their sections
PASSED_ON = "Arguments after -- go to Beam, for example: -- --runner=FlinkRunner"


@dataclass(frozen=True)
class How:
    """How a command runs a job. `beam_args`: arguments for Beam. `quiet`: show no progress and no
    summary. `json`: print the summary as a JSON object. `dry_run`: only say what would be done."""

    beam_args: list[str]
    quiet: bool = False
    json: bool = False
    dry_run: bool = False


class Command(click.Command):
    """A command whose help groups the options, and that names the variable of the environment whose
    value is wrong."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options below the headings of their sections."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                declared: Option | None = getattr(parameter, DECLARED, None)
                section = declared.section if declared else UNDECLARED.get(parameter.name or "")
                sections[section or OTHER].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        apart = [p.name for p in self.get_params(ctx) if isinstance(p, ConfigOption) and p.name]
        if apart:
            with formatter.section("Only in config files and Python"):
                formatter.write_text(", ".join(apart))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as error:
            name = error.param.name if error.param else None
            if name and ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT:
                raise _bad_variable(ctx, name, error.message) from error
            raise
        except ValueError as error:
            name = next((p.name for p in self.params if _is_badly_quoted(p, ctx)), None)
            if name is None:
                raise
            raise _bad_variable(ctx, name, f"{error}; quote values as in a shell") from error


def _is_badly_quoted(parameter: click.Parameter, ctx: click.Context) -> bool:
    """Whether the variable of a parameter cannot be divided into its values."""
    try:
        parameter.value_from_envvar(ctx)
    except ValueError:
        return True
    return False


def _bad_variable(ctx: click.Context, name: str, reason: str) -> click.UsageError:
    """The error for a variable of the environment with a wrong value."""
    variable = f"{ctx.auto_envvar_prefix}_{name}".upper()
    return click.UsageError(f"the environment variable {variable}: {reason}", ctx)


class JobCommand(Command):
    """A command that says what an unknown option is called here, or an unknown variable."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, self._repeated(args))
        except click.NoSuchOption as error:
            raise hinted(error, self) from error
        _check_environment(self, ctx)
        return rest

    def _repeated(self, args: list[str]) -> list[str]:
        """The arguments with an option repeated before each of its values, if it takes several, as
        a shell makes of `--on corpus/*.parquet`. Its metavar then ends with dots."""
        several = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and (parameter.metavar or "").endswith("...")
            for name in parameter.opts
        }
        found: list[str] = []
        name, is_first = "", False
        for arg in args:
            if arg.startswith("-") and arg != "-":
                name, is_first = arg if arg in several else "", True
                found.append(arg)
                continue
            found += [arg] if is_first or not name else [name, arg]
            is_first = False
        return found


def job_command(
    call: type[C], *more: click.Option
) -> Callable[[Callable[[C, How], None]], JobCommand]:
    """Makes a command of a function that runs a job. The help and the options of the command are
    those of the call. `more`: further options of how the job is run."""

    def decorate(run: Callable[[C, How], None]) -> JobCommand:
        @click.pass_obj
        def callback(beam_args: list[str], /, debug: bool, stdin_format: str, **given: Any) -> None:
            how = {name: value for name, value in given.items() if hasattr(How, name)}
            plain = parted(call, nearest(call, given))
            with with_standard_input(plain, stdin_format, beam_args) as ready:
                run(ready, How(beam_args, **how))

        return JobCommand(
            run.__name__,
            callback=callback,
            params=[*parameters(call), *more, *_job_options()],
            help=call.__doc__,
            epilog=PASSED_ON,
        )

    return decorate


def _check_environment(command: click.Command, ctx: click.Context) -> None:
    """UsageError for a variable of the environment that names no option of the command."""
    prefix = f"{ctx.auto_envvar_prefix}_"
    known = {f"{prefix}{parameter.name}".upper() for parameter in command.params}
    for variable in sorted(os.environ):
        if variable.startswith(prefix) and variable not in known:
            close = difflib.get_close_matches(variable, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise click.UsageError(f"the environment variable {variable} is no option{hint}", ctx)


def nearest(call: type[JobCall], given: dict[str, Any]) -> dict[str, Any]:
    """The options that are set, without those that lose to an alternative which is set nearer to
    the call: on the command line, then in the environment, then in a config file."""
    context = click.get_current_context()
    given = {name: v for name, v in given.items() if context.get_parameter_source(name) in NEAREST}
    for names in call.ALTERNATIVES:
        places = {name: context.get_parameter_source(name) for name in names if given.get(name)}
        ranks = {name: NEAREST.index(p) for name, p in places.items() if p in NEAREST}
        best = min(ranks.values(), default=0)
        given = given | {name: None for name, rank in ranks.items() if rank > best}
    return given


def dry_run() -> click.Option:
    """The option --dry-run, for a job that can say what it would do."""
    return click.Option(
        ["--dry-run"], is_flag=True, help="Show what would be done, and do nothing."
    )


def _job_options() -> list[click.Option]:
    return [
        click.Option(
            ["--config"],
            type=Value(Place()),
            is_eager=True,
            expose_value=False,
            callback=_read_config,
            metavar="FILE",
            help="YAML file of options; the command line overrides it.",
        ),
        click.Option(
            ["--stdin-format"],
            default="txt",
            show_default=True,
            metavar="ENDING",
            help="Format of standard input, INPUT -, as the ending of a file.",
        ),
        click.Option(["--json", "json"], is_flag=True, help="Print the summary as JSON."),
        click.Option(["--quiet"], is_flag=True, help="Show no progress and no summary."),
        debug(),
    ]


def debug() -> click.Option:
    """The option --debug, which shows where an error comes from."""
    text = "Show tracebacks, and the messages of libraries."
    return click.Option(["--debug"], is_flag=True, help=text)


def _read_config(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Makes the options of a config file the defaults of the command."""
    if path is None:
        return
    from pipelines.commands.config import read_config

    group = ctx.parent.command if ctx.parent else None
    sections = group.commands if isinstance(group, click.Group) else ()
    try:
        ctx.default_map = read_config(path, ctx.command, sections)
    except OptionError as error:
        if ctx.get_parameter_source("config") is ParameterSource.ENVIRONMENT:
            raise _bad_variable(ctx, "config", str(error)) from error
        raise
