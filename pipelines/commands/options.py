"""Parameters of click from dataclasses of options, and back (`wordpiece_core.declared`)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource as Source

from pipelines.options import RunOptions
from wordpiece_core.declared import OTHER, Option, Options, declared, parsed
from wordpiece_core.errors import OptionError, Spelling, opt, spelled

T = TypeVar("T", bound=Options)
NEAREST = [Source.COMMANDLINE, Source.ENVIRONMENT, Source.DEFAULT_MAP]
CONFIG = "config"
"""The key of a context's `meta` that holds the path of the config file."""
_NAME = re.compile(r"`(\w+)`")


class Value(click.ParamType):  # type: ignore[type-arg]
    """A parameter type of click for the values of an option."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.name = "value"

    def split_envvar_value(self, rv: str) -> list[str]:
        """Split the value of a variable of the environment as a shell does."""
        try:
            return shlex.split(rv)
        except ValueError as error:
            raise click.BadParameter(f"{error}; quote values as in a shell") from error

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Parse a text. The values of a config file are parsed already."""
        if not isinstance(value, str):
            return value
        try:
            return parsed(self.kind, value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SectionOption(click.Option):
    """An option in a section of the help."""

    def __init__(self, names: Sequence[str], *, section: str = OTHER, **more: Any) -> None:
        super().__init__(names, **more)
        self.section = section

    def describe(self, text: str) -> None:
        """Set the help. A default that the text explains is not shown again."""
        self.help = _NAME.sub(lambda found: switch(found[1]), " ".join(text.split()))
        if "default:" in text:
            self.show_default = False

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the default without brackets: click adds its own around words."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra


class Arguments(click.Argument):
    """Arguments that, like options, can be set by the environment."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        given = os.environ.get(variable(ctx, self.name))
        return given or super().resolve_envvar_value(ctx)


def parameters(
    options: type[Options], only: Collection[str] | None = None
) -> list[click.Parameter]:
    """Return the parameters of a command for the fields of a dataclass, or `only` for some."""
    return [
        _argument(option) if option.is_positional else _option(option)
        for option in declared(options)
        if option.name != "beam_args" and (only is None or option.name in only)
    ]


def _argument(option: Option) -> click.Argument:
    if option.is_list:
        metavar = f"[{option.metavar}]"
        return Arguments([option.name], type=Value(option.kind), nargs=-1, metavar=metavar)
    return Arguments([option.name], type=Value(option.kind), required=True, metavar=option.metavar)


def _option(option: Option) -> SectionOption:
    name, default = option.name.replace("_", "-"), option.default
    more: dict[str, Any] = {"show_default": False, "required": option.is_required}
    if option.is_flag:
        names = f"--{name}" if default is False else f"--{name}/--no-{name}"
        more |= {"is_flag": True, "default": None, "show_default": "yes" if default else False}
    else:
        names = f"--{name}"
        more |= {"type": Value(option.kind), "multiple": option.is_list, "metavar": option.metavar}
        if default and not option.is_required:
            more["show_default"] = option.show(default)
    return SectionOption([option.name, names], section=option.section, **more)


def with_values(options: Sequence[type[Options]], args: Sequence[str]) -> list[str]:
    """Return arguments in which an option that may have a value has one: `--pack` before INPUT
    becomes `--pack=true`."""
    known = (option for kind in options for option in declared(kind))
    bare = {switch(o.name): o.choices for o in known if o.may_be_bare}
    end = args.index("--") if "--" in args else len(args)
    found = list(args)
    for at, arg in enumerate(args[:end]):
        has_value = at + 1 < end and args[at + 1] in bare.get(arg, ())
        if arg in bare and not has_value:
            found[at] = f"{arg}=true"
    return found


def variable(ctx: click.Context, name: str | None) -> str:
    """Return the variable of the environment that sets an option of a command."""
    return f"{ctx.auto_envvar_prefix}_{name}".upper()


def switch(name: str) -> str:
    """Return what the help calls an option."""
    return "INPUT" if name == "inputs" else f"--{name.replace('_', '-')}"


def build(options: type[T], given: dict[str, Any], **more: Any) -> T:
    """Build a dataclass from the values that click gives. Options that are None keep their
    defaults."""
    values = {}
    for option in declared(options):
        value = given.get(option.name)
        if value is not None:
            values[option.name] = _joined(value) if option.is_list else value
        elif option.is_list and option.is_required:
            values[option.name] = ()
        elif option.is_required:  # it is null in a config file
            raise OptionError(f"{opt[option.name]}: required")
    return options(**values | more)


def _joined(items: Sequence[Any]) -> Any:
    """Join the lists that were given one by one. An item may be a list or a name."""
    if len(items) == 1:
        return items[0]
    return tuple(part for item in items for part in (item if isinstance(item, tuple) else [item]))


def nearest(options: type[RunOptions], given: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are set, without alternatives of a value that is set nearer: on the
    command line, then in the environment, then in a config file."""
    source = click.get_current_context().get_parameter_source
    ranks = {name: NEAREST.index(place) for name in given if (place := source(name)) in NEAREST}
    for names in options.ALTERNATIVES:
        found = [name for name in names if name in ranks and given[name]]
        best = min((ranks[name] for name in found), default=0)
        ranks = {n: rank for n, rank in ranks.items() if n not in found or rank == best}
    return {name: given[name] for name in ranks}


def spelling(ctx: click.Context | None) -> Spelling:
    """Return a function that spells options as they were given: `--max-length`, a variable of the
    environment, or the key of a config file. It is for `wordpiece_core.errors.spelled`."""

    def spell(name: str, value: str) -> str:
        if name == "beam_args":
            return "arguments after --"
        source = ctx.get_parameter_source(name) if ctx else None
        if ctx and source is Source.ENVIRONMENT:
            return variable(ctx, name)
        if ctx and source is Source.DEFAULT_MAP:
            return f"{name} ({ctx.meta[CONFIG]})"
        known = {parameter.name: parameter for parameter in ctx.command.params} if ctx else {}
        if isinstance(known.get(name), click.Argument):
            return str(known[name].metavar).strip("[].")
        return switch(name).replace("--", "--no-" if value else "--", 1)

    return spell


def spelled_here(message: str) -> str:
    """Return a message with the names of options as they were given to the current command."""
    return spelled(message, spelling(click.get_current_context(silent=True)))
