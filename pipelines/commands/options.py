"""Options of the command line, made from their declarations (`wordpiece_core.declaration`)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

import click

from pipelines.running.call import JobCall
from wordpiece_core.declaration import Declared, Option, with_names
from wordpiece_core.option_kinds import Flag, Kind, Place, Places

D = TypeVar("D", bound=Declared)

DECLARED = "declared"  # of a parameter: the option that it is made from


class ConfigOption(click.Option):
    """An option that a command takes from a config file and the environment only."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """The command line does not have it."""


class Value(click.ParamType):  # type: ignore[type-arg]
    """A parameter type of click for a kind of values."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.name = kind.metavar

    def split_envvar_value(self, rv: str) -> list[str]:
        """The values in a variable of the environment, quoted as in a shell."""
        return shlex.split(rv)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        try:
            if isinstance(value, str):
                value = self.kind.parse(value)
            return self.kind.check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parameters(
    options: type[Declared], only: Collection[str] | None = None
) -> Iterator[click.Parameter]:
    """The parameters of a command, made from the options that a dataclass declares. `only`: the
    names of some of them."""
    bare: Sequence[str] = ()
    declared = [*options.options()]
    if issubclass(options, JobCall):
        bare, declared = options.ARGUMENTS, options.arguments_first()
    for option in declared:
        if only is None or option.name in only:
            parameter = _argument(option) if option.name in bare else _parameter(option)
            setattr(parameter, DECLARED, option)
            yield parameter


def parted(options: type[D], given: dict[str, Any]) -> D:
    """The dataclass with the values that click gives. Options that are not set keep their
    defaults."""
    values = {}
    for option in options.options():
        value = given.get(option.name)
        if value is not None and not (isinstance(option.kind, Places) and not value):
            values[option.name] = value
    return options.of(**values)


class Arguments(click.Argument):
    """Arguments that, like options, can be set by the environment."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        given = os.environ.get(f"{ctx.auto_envvar_prefix}_{self.name}".upper())
        return given or super().resolve_envvar_value(ctx)


def _argument(option: Option) -> click.Argument:
    if isinstance(option.kind, Places):
        metavar = f"[{option.kind.metavar}]"
        return Arguments([option.name], type=Value(Place()), nargs=-1, metavar=metavar)
    kind = Value(option.kind)
    return Arguments([option.name], type=kind, required=True, metavar=option.name.upper())


def _parameter(option: Option) -> click.Option:
    if option.in_config:
        is_flag = isinstance(option.kind, Flag)
        kind = click.BOOL if is_flag else Value(option.kind)
        return ConfigOption([option.name, f"--{option.name}"], type=kind, hidden=True)
    name, text = option.switch, with_names(option.help)
    shown = with_names(option.shown_default or "")
    if isinstance(option.kind, Flag):
        if option.default is False:
            return click.Option([option.name, name], is_flag=True, default=None, help=text)
        names = [option.name, f"{name}/{option.switch_off}"]
        return click.Option(names, default=None, show_default=shown or "yes", help=text)
    several, usual = isinstance(option.kind, Places), _usual(option)
    default: dict[str, Any] = {} if usual is None else {"default": usual}
    return click.Option(
        [option.name, name],
        type=Value(Place() if several else option.kind),
        multiple=several,
        required=option.is_required,
        show_default=shown or True,
        metavar=option.kind.metavar,
        help=text,
        **default,
    )


def _usual(option: Option) -> str | None:
    """The default as one would write it, or None if there is none to show."""
    if option.is_required or not option.default:
        return None
    return option.kind.show(option.default)
