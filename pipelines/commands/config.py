"""Config files: YAML mappings from options of a command to values."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from datetime import date
from typing import Any

import click
import yaml

from pipelines.commands.options import DECLARED
from wordpiece_core.declaration import Option
from wordpiece_core.errors import OptionError, one_line, shown
from wordpiece_core.option_kinds import Flag, Kind, Names, Places, Shares

MOST_BYTES = 256 << 10  # of a file
MOST_DEPTH = 16  # of its lists and mappings; options need 3

# What PyYAML raises for values that do not fit their tags: `2000-13-45`, `!!int x`.
BAD_VALUES = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)


class _Loader(yaml.SafeLoader):
    """A loader whose errors name the value that does not fit its tag, or what it looks like. Keys
    are texts: YAML takes a plain `on` for a truth value, and it is an option of `compare`."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except BAD_VALUES as error:
            kind = node.tag.rpartition(":")[2]
            fault = f"{shown(node.value)} is no {kind}; fix it, or put it in quotes"
            raise yaml.constructor.ConstructorError(None, None, fault, node.start_mark) from error


def read_config(path: str, command: click.Command, sections: Collection[str]) -> dict[str, Any]:
    """Reads the defaults that a config file sets for a command. Keys are option names, with - or _.
    A list stands for comma-separated values, or for an option that is repeated. A file may have
    sections, which are named like the commands.

    Raises OptionError for a file that cannot be read, an unknown option and a wrong value; also for
    anchors and aliases, and for a key that is given twice.
    """
    value = _parse(path, _read(path))
    if not isinstance(value, dict | None):
        raise OptionError(f"{path}: not a mapping of options")
    defaults: dict[str, Any] = {}
    for key, option in _own(path, value or {}, command, sections).items():
        parameter = _parameter(path, str(key), command)
        if parameter.name in defaults:
            raise OptionError(f"{path}: option {key!r} is given twice")
        defaults[parameter.name or ""] = _checked(path, key, option, parameter)
    return defaults


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({one_line(error)})") from error
    if len(data) > MOST_BYTES:
        raise OptionError(f"{path}: more than {MOST_BYTES >> 10} KiB is no config of options")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: not YAML (not UTF-8 at byte {error.start})") from error


def _parse(path: str, text: str) -> Any:
    """The value of a YAML text. A text that would become large or deeply nested is refused before
    any value is built. So is a key that is given twice, which YAML forbids but PyYAML accepts."""
    try:
        _check_events(path, yaml.parse(text, yaml.SafeLoader))
        root = yaml.compose(text, yaml.SafeLoader)
        if root is None:
            return None
        _check_keys(path, root)
        return _Loader("").construct_document(root)
    except yaml.MarkedYAMLError as error:  # without the line itself, where a secret may be
        mark = error.problem_mark or error.context_mark
        place = f" line {mark.line + 1}" if mark else ""
        said = ": ".join(filter(None, (error.context, error.problem)))
        raise OptionError(f"{path}{place}: not YAML ({said})") from None
    except yaml.YAMLError as error:
        raise OptionError(f"{path}: not YAML ({one_line(error)})") from error


def _check_events(path: str, events: Iterable[yaml.Event]) -> None:
    """OptionError for a value that is nested too deeply, a second document, or an anchor. Events
    are checked one by one, so memory does not grow with the value that they describe."""
    depth = documents = 0
    for event in events:
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        fault = None
        if depth > MOST_DEPTH:
            fault = f"more than {MOST_DEPTH} lists and mappings inside each other"
        elif documents > 1:
            fault = "a second document"
        elif isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            fault = f"an anchor or alias, {event.anchor!r}; write the value out"
        if fault is not None:
            raise OptionError(f"{path} line {_line(event)}: {fault}")


def _check_keys(path: str, node: yaml.Node) -> None:
    """OptionError for a key that is twice in a mapping."""
    if isinstance(node, yaml.ScalarNode):
        return
    seen: set[object] = set()
    for item in node.value:
        for child in item if isinstance(item, tuple) else (item,):
            _check_keys(path, child)
        key = item[0].value if isinstance(item, tuple) else None
        if isinstance(key, str):
            if key in seen:
                raise OptionError(
                    f"{path} line {_line(item[0])}: {key!r} is given twice; remove one"
                )
            seen.add(key)


def _line(part: yaml.Event | yaml.Node) -> int:
    return part.start_mark.line + 1 if part.start_mark else 0


def _own(
    path: str, value: dict[str, Any], command: click.Command, sections: Collection[str]
) -> dict[str, Any]:
    """The options outside all sections, and those in the section of the command. A key that names a
    section, and also an option of the command, is the option unless it is a mapping."""
    options = {parameter.name for parameter in command.params}
    found = {
        key
        for key in value.keys() & set(sections)
        if key not in options or isinstance(value[key], dict)
    }
    for section in found:
        if not isinstance(value[section], dict):
            raise OptionError(f"{path}: {section}: not a mapping of options")
    own = value.get(command.name, {}) if command.name in found else {}
    return {key: v for key, v in value.items() if key not in found} | own


def _parameter(path: str, key: str, command: click.Command) -> click.Parameter:
    """The option that a key names."""
    options = {
        name.removeprefix("--").replace("-", "_"): parameter
        for parameter in command.params
        if parameter.name not in ("config", "debug", "help")
        for name in (*parameter.opts, parameter.name or "")
    }
    found = options.get(key.replace("-", "_"))
    if found is None:
        close = difflib.get_close_matches(key.replace("-", "_"), options, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise OptionError(f"{path}: unknown option {key!r} for {command.name}{hint}")
    return found


def _checked(path: str, key: str, value: Any, parameter: click.Parameter) -> Any:
    """A value as the option takes it: by its kind, if it is declared; else a switch of the command
    itself."""
    declared: Option | None = getattr(parameter, DECLARED, None)
    if value is None and declared is not None and declared.default is None:
        return None
    try:
        if declared is None or isinstance(declared.kind, Flag):
            return Flag().check(value)
        return _of_kind(declared.kind, value)
    except ValueError as error:
        raise OptionError(f"{path}: option {key!r}: {error}") from error


def _of_kind(kind: Kind, value: Any) -> Any:
    """A value of a kind: a list, shares by name, or what one would write on the command line.
    ValueError for any other."""
    if isinstance(value, dict) and isinstance(kind, Shares):
        return kind.check(value)
    items = value if isinstance(value, list) else [value]
    plain = all(isinstance(item, str | int | float | date) for item in items)
    takes_lists = isinstance(kind, Names | Places)
    if not plain or any(isinstance(item, bool) for item in items):
        raise ValueError(f"{shown(value)} is not valid")
    if isinstance(value, list):
        if not takes_lists:
            raise ValueError(f"{shown(value)} is a list; give one value")
        return kind.check([str(item) for item in items])
    return kind.check(kind.parse(str(value)))
