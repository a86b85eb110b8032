"""Config files: YAML mappings from options of a command to values."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import click

from pipelines.commands.options import Value
from pipelines.io.yaml_text import parse_mapping
from pipelines.progress import write_line
from wordpiece_core.declared import parsed
from wordpiece_core.errors import OptionError, one_line

READY = Path(__file__).parents[1] / "configs"


def read_config(path: str, ctx: click.Context) -> dict[str, Any]:
    """Read the values that a config file sets for a command.

    Keys are option names, with - or _. A file may have sections, which are named like the commands.
    Keys of other commands are ignored, with a line, so that one file fits several commands.

    Raises OptionError for a file that cannot be read, an unknown option, a wrong value, and a key
    that is given twice.
    """
    command, value = ctx.command, _read(path)
    group: click.Group = ctx.parent.command  # type: ignore[union-attr, assignment]
    names = group.list_commands(ctx)
    found = {
        key
        for key in value.keys() & {*names}
        if key not in _options(command) or isinstance(value[key], dict)
    }
    for section in found:
        if not isinstance(value[section], dict):
            raise OptionError(f"{path}: {section}: not a mapping of options")
    own = {key: item for key, item in value.items() if key not in found}
    if command.name in found:
        own |= value[command.name]
    values: dict[str, Any] = {}
    of_others: list[str] = []
    for key, item in own.items():
        parameter = _option(command, str(key))
        others = filter(None, (group.get_command(ctx, name) for name in names))
        if parameter is None and any(_option(other, str(key)) for other in others):
            of_others.append(str(key))
            continue
        if parameter is None:
            raise _unknown(path, str(key), command)
        if parameter.name in values:
            raise OptionError(f"{path}: option {key!r} is given twice")
        try:
            values[parameter.name or ""] = None if item is None else _parsed(item, parameter)
        except ValueError as error:
            raise OptionError(f"{path}: option {key!r}: {error}") from error
    if of_others:
        write_line(f"wordpiece: {path}: not for {command.name}, ignored: {', '.join(of_others)}")
    return values


def config_file(path: str) -> Path:
    """Return the config file at a path, or else the built-in preset of this name."""
    ready = READY / f"{path}.yaml"
    is_name = re.fullmatch(r"[\w-]+", path) and not Path(path).is_file()
    return ready if is_name and ready.exists() else Path(path)


def _read(path: str) -> dict[str, Any]:
    try:
        data = config_file(path).read_bytes()
    except FileNotFoundError:
        names = ", ".join(sorted(file.stem for file in READY.glob("*.yaml")))
        raise OptionError(f"{path}: no such file; built-in presets are {names}") from None
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({one_line(error)})") from error
    return parse_mapping(path, data)


def _options(command: click.Command) -> dict[str, click.Parameter]:
    """Return the options of a command by their names in config files."""
    return {
        name.removeprefix("--").replace("-", "_"): parameter
        for parameter in command.params
        if parameter.name not in ("config", "debug", "help")
        for name in (*parameter.opts, parameter.name or "")
    }


def _option(command: click.Command, key: str) -> click.Parameter | None:
    """Return the option that a key names; None if the command has no such option."""
    return _options(command).get(key.replace("-", "_"))


def _unknown(path: str, key: str, command: click.Command) -> OptionError:
    close = difflib.get_close_matches(key.replace("-", "_"), _options(command), 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return OptionError(f"{path}: unknown option {key!r} for {command.name}{hint}")


def _parsed(value: Any, parameter: click.Parameter) -> Any:
    """Parse a value for a parameter. Raises ValueError."""
    is_list = parameter.multiple or parameter.nargs == -1
    kind = parameter.type.kind if isinstance(parameter.type, Value) else bool
    value = parsed(kind, value)
    return [value] if is_list else value
