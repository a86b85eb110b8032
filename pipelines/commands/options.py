"""Options of the command line, made from their declarations (`wordpiece_core.declaration`)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import click

from pipelines.running.call import JobCall
from wordpiece_core.declaration import OTHER, Declared, Option, for_command
from wordpiece_core.option_kinds import Flag, Kind, Places

D = TypeVar("D", bound=Declared)


class Value(click.ParamType):  # type: ignore[type-arg]
    """A parameter type of click for a kind of values."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.name = kind.metavar

    def split_envvar_value(self, rv: str) -> list[str]:
        """The values in a variable of the environment, quoted as in a shell."""
        try:
            return shlex.split(rv)
        except ValueError as error:
            raise click.BadParameter(f"{error}; quote values as in a shell") from error

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        try:
            return self.kind.check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SectionOption(click.Option):
    """An option in a section of the help. `in_config`: the command takes it from a config file and
    the environment only."""

    def __init__(
        self, names: Sequence[str], *, section: str = OTHER, in_config: bool = False, **more: Any
    ) -> None:
        super().__init__(names, hidden=in_config, **more)
        self.section, self.in_config = section, in_config

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the default without brackets: click adds its own around words."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        if not self.in_config:
            super().add_to_parser(parser, ctx)


class Arguments(click.Argument):
    """Arguments that, like options, can be set by the environment."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        given = os.environ.get(f"{ctx.auto_envvar_prefix}_{self.name}".upper())
        return given or super().resolve_envvar_value(ctx)


def parameters(
    options: type[Declared], only: Collection[str] | None = None
) -> list[click.Parameter]:
    """The parameters of a command, made from the options that a dataclass declares. `only`: the
    names of some of them."""
    bare: Sequence[str] = ()
    declared = [*options.options()]
    if issubclass(options, JobCall):
        bare, declared = options.ARGUMENTS, options.arguments_first()
    return [
        _argument(option) if option.name in bare else _parameter(option)
        for option in declared
        if only is None or option.name in only
    ]


def parted(options: type[D], given: dict[str, Any]) -> D:
    """Build the dataclass from the values that click gives. Options that are None keep their
    defaults."""
    known = {option.name: option for option in options.options()}
    values = {k: v for k, v in given.items() if k in known and v is not None}
    for name, value in list(values.items()):
        if known[name].kind.is_list and not known[name].in_config:
            values[name] = _joined(value)
    return options.of(**values)


def _joined(items: Sequence[str | tuple[Any, ...]]) -> Any:
    """Join the lists that were given one by one. An item may be a list or a name."""
    if len(items) == 1:
        return items[0]
    return tuple(part for item in items for part in (item if isinstance(item, tuple) else [item]))


def _argument(option: Option) -> click.Argument:
    if isinstance(option.kind, Places):
        metavar = f"[{option.kind.metavar}]"
        return Arguments([option.name], type=Value(option.kind), nargs=-1, metavar=metavar)
    kind = Value(option.kind)
    return Arguments([option.name], type=kind, required=True, metavar=option.name.upper())


def _parameter(option: Option) -> SectionOption:
    is_flag, several = isinstance(option.kind, Flag), option.kind.is_list
    more: dict[str, Any]
    if option.in_config:
        kind = click.BOOL if is_flag else Value(option.kind)
        return SectionOption([option.name, f"--{option.name}"], in_config=True, type=kind)
    name, shown = option.switch, for_command(option.shown_default or "")
    if is_flag:
        names = name if option.default is False else f"{name}/{option.switch_off}"
        more = {"is_flag": True, "default": None}
        if option.default is not False:
            more["show_default"] = shown or "yes"
    else:
        names = name
        more = {
            "type": Value(option.kind),
            "multiple": several,
            "required": option.is_required,
            "show_default": shown or True,
            "metavar": option.kind.metavar,
        }
        if option.default and not option.is_required:
            default = option.kind.show(option.default)
            more["default"] = [default] if several else default
    text = for_command(option.help)
    return SectionOption([option.name, names], section=option.section, help=text, **more)
