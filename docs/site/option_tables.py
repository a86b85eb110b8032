"""Tables of options for the reference pages, from their declarations.

A line `<!-- options of wordpiece train -->` becomes the table of a command, and a line
`<!-- options of wordpiece_core.TextOptions -->` the table of a class of options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from pydoc import locate

import click

from pipelines.commands.options import SectionOption
from pipelines.commands.program import wordpiece
from pipelines.comparing.options import CheckCall, CompareCall
from pipelines.counting.options import CountCall
from pipelines.encoding.options import EncodeCall, TokenizerChoice
from pipelines.functions import RUN_ARGUMENTS
from pipelines.reporting.options import ReportCall
from pipelines.training.options import ExtendCall, PruneCall, TrainCall
from wordpiece_core.declaration import Declared, Option, for_command
from wordpiece_core.option_kinds import Choice, Duration, Flag, Places, Share, Size, Whole, Wholes
from wordpiece_core.options import EncodingOptions
from wordpiece_core.sizes import show_size

MARK = re.compile(r"^<!-- options of ([\w. ]+) -->$", re.MULTILINE)

JOBS: dict[str, list[type[Declared]]] = {
    "count": [CountCall],
    "train": [TrainCall],
    "extend": [ExtendCall],
    "prune": [PruneCall],
    "encode": [EncodeCall],
    "check": [CheckCall],
    "compare": [CompareCall],
    "report": [ReportCall],
}
"""The commands that are also functions and take a config file."""

DECLARED = JOBS | {"inspect": [TokenizerChoice, EncodingOptions]}
"""The declarations of the options of each command."""

NO_KEY = ("config", "debug")  # of a command line alone
JOB_NAMES = "YAML key and Python name"


def with_tables(markdown: str) -> str:
    """Replace the marks of a page by tables."""
    return MARK.sub(lambda mark: _of(mark[1]), markdown)


def _of(name: str) -> str:
    if name.startswith("wordpiece "):
        return command_table(name.removeprefix("wordpiece "))
    options = locate(name)
    assert isinstance(options, type), f"{name} is no class"
    assert issubclass(options, Declared), f"{name} declares no options"
    return options_table(options)


def command_table(name: str) -> str:
    """Return the help of a command and the table of its options."""
    command = wordpiece.commands[name]
    declared = {option.name: option for kind in DECLARED[name] for option in kind.options()}
    heads = ["Option", "Values", "Default", "Meaning"] + [JOB_NAMES] * (name in JOBS)
    rows = []
    for parameter in command.params:
        row = [_switches(parameter), *map(for_command, _described(parameter, declared))]
        rows.append(row + [_job_name(parameter, declared)] * (name in JOBS))
    return f"{_plain(inspect.cleandoc(command.help or ''))}\n\n{_table(heads, rows)}"


def options_table(options: type[Declared]) -> str:
    """Return the table of the options of a class."""
    heads = ["Name", "Values", "Default", "Meaning"]
    return _table(heads, ([f"`{o.name}`", *_cells(o)] for o in options.options()))


def _switches(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return f"`{parameter.make_metavar(click.Context(wordpiece))}`"
    if isinstance(parameter, SectionOption) and parameter.in_config:
        return "(none)"
    return " ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _described(parameter: click.Parameter, declared: dict[str, Option]) -> tuple[str, str, str]:
    """Values, default and meaning of an option, declared or of the command line alone."""
    if parameter.name in declared:
        return _cells(declared[parameter.name])
    if isinstance(parameter, click.Option):
        flag, text = parameter.is_flag, parameter.help or ""
        return ("yes or no", "no", text) if flag else (_code(parameter.metavar or ""), "none", text)
    return "texts", "none", "See above."


def _cells(option: Option) -> tuple[str, str, str]:
    return _values(option), _default(option), _plain(option.help)


def _values(option: Option) -> str:
    """Return the values of an option."""
    kind = option.kind
    if isinstance(kind, Flag):
        return "yes or no"
    if isinstance(kind, Choice):
        return ", ".join(map(_code, kind.values))
    if isinstance(kind, Whole):
        or_word = f", or `{kind.word}`" if kind.word else ""
        return f"whole number, {kind.least} or more{or_word}"
    if isinstance(kind, Size):
        least = f", {show_size(kind.least)} or more" if kind.least > 1 else ""
        return f"size{least}"
    if isinstance(kind, Duration):
        return "seconds, or a time like `5s`, `2m` or `1h`"
    if isinstance(kind, Share):
        return "number from 0 to 1"
    if isinstance(kind, Places):
        return "paths"
    if isinstance(kind, Wholes):
        return "whole numbers"
    return _code(kind.metavar)


def _default(option: Option) -> str:
    default = option.default
    if option.is_required:
        return "required"
    if option.shown_default:
        return _plain(option.shown_default)
    if isinstance(option.kind, Flag):
        return "yes" if default else "no"
    if default is None or default == () or default == "":
        return "none"
    return _code(option.kind.show(default))


def _job_name(parameter: click.Parameter, declared: dict[str, Option]) -> str:
    """The key in a config file (as `pipelines.commands.config` finds it), which is the name of the
    argument of the function too, if that has it."""
    if parameter.name in declared:
        return _code(parameter.name)
    key = parameter.opts[0].removeprefix("--").replace("-", "_")
    if key in NO_KEY:
        return ""
    return _code(key) if key in RUN_ARGUMENTS else f"{_code(key)}, in YAML only"


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _plain(text: str) -> str:
    """Return a help text with options and names as code."""
    return re.sub(r"(--[a-z-]+|\[[A-Z]+\]|\b_\w+/|\b\w+_\w+\b|\"[^\"]*\")", r"`\1`", text)
