"""Config files: YAML mappings whose keys are the options of a command."""

from __future__ import annotations

import difflib
from typing import Any

import click
import yaml

from wordpiece_core.errors import OptionError, one_line


def read_config(path: str, command: click.Command) -> dict[str, Any]:
    """The defaults that a config file sets for a command. Keys are option names, with - or _;
    lists stand for comma-separated values, or for an option that is repeated. One file may hold
    sections named for the commands.

    Raises OptionError for a file that cannot be read, an unknown option, or a mistyped value.
    """
    try:
        with open(path, encoding="utf-8") as file:
            value = yaml.safe_load(file)
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({one_line(error)})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: not YAML ({one_line(error)})") from error
    if not isinstance(value, dict | None):
        raise OptionError(f"{path}: not a mapping of options")
    defaults: dict[str, Any] = {}
    for key, option in _own(path, value or {}, command).items():
        parameter = _parameter(path, str(key), command)
        if parameter.name in defaults:
            raise OptionError(f"{path}: option {key!r} is given twice")
        defaults[parameter.name or ""] = _checked(path, key, option, parameter)
    return defaults


def _own(path: str, value: dict[str, Any], command: click.Command) -> dict[str, Any]:
    """The options outside any section and in the command's own."""
    from pipelines.cli import wordpiece

    sections = value.keys() & wordpiece.commands.keys()
    for section in sections:
        if not isinstance(value[section], dict):
            raise OptionError(f"{path}: {section}: not a mapping of options")
    own = value.get(command.name, {}) if command.name in sections else {}
    return {key: v for key, v in value.items() if key not in sections} | own


def _parameter(path: str, key: str, command: click.Command) -> click.Parameter:
    """The option that a key names."""
    options = {
        name.removeprefix("--").replace("-", "_"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in ("config", "debug")
        for name in parameter.opts
    }
    found = options.get(key.replace("-", "_"))
    if found is None:
        close = difflib.get_close_matches(key.replace("-", "_"), options, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise OptionError(f"{path}: unknown option {key!r} for {command.name}{hint}")
    return found


def _checked(path: str, key: str, value: Any, parameter: click.Parameter) -> Any:
    """A value as the option takes it."""
    if getattr(parameter, "multiple", False):
        return [str(item) for item in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        value = ",".join(map(str, value))
    is_flag = getattr(parameter, "is_flag", False)
    if value is None and parameter.default is None:
        return None
    if value is None or isinstance(value, dict) or isinstance(value, bool) != is_flag:
        raise OptionError(f"{path}: option {key!r}: {value!r} is not valid")
    try:
        with click.Context(click.Command("config")) as context:
            parameter.type.convert(str(value), parameter, context)
    except click.UsageError as error:
        raise OptionError(f"{path}: option {key!r}: {error.message}") from error
    return value
