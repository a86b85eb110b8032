"""Tables of options for the reference pages, from the dataclasses of options.

A line `<!-- options of wordpiece train -->` becomes the table of a command, and a line
`<!-- options of wordpiece_core.TextOptions -->` the table of a class of options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from pydoc import locate
from typing import Any

import click

from pipelines.commands.job_command import JOBS
from pipelines.commands.options import switch
from pipelines.commands.program import options_class, wordpiece
from pipelines.encoding.options import TokenizerOptions
from wordpiece_core.declared import OTHER, SECTIONS, Ge, Option, Options, declared, helps, parts
from wordpiece_core.options import EncodingOptions

MARK = re.compile(r"^<!-- options of ([\w. ]+) -->$", re.MULTILINE)
DECLARED: dict[str, list[type[Options]]] = {name: [options_class(name)] for name in JOBS}
DECLARED["inspect"] = [TokenizerOptions, EncodingOptions]
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
    assert issubclass(options, Options), f"{name} declares no options"
    return options_table(options)


def command_table(name: str) -> str:
    """Return the help of a command and the table of its options."""
    command = wordpiece.get_command(None, name)
    assert command is not None
    known = {option.name: (kind, option) for kind in DECLARED[name] for option in declared(kind)}
    heads = ["Option", "Values", "Default", "Meaning"] + [JOB_NAMES] * (name in JOBS)
    rows = []
    for parameter in sorted(command.params, key=_section):
        switches = f"`{parameter.make_metavar(click.Context(wordpiece))}`"
        if isinstance(parameter, click.Option):
            names = (*parameter.opts, *parameter.secondary_opts)
            switches = " ".join(f"`{switch}`" for switch in names)
        if parameter.name in known:
            cells = _cells(*known[parameter.name], with_switches=True)
        else:
            cells = _cells_of_click(parameter)
        job_name = [_job_name(parameter, parameter.name in known)] * (name in JOBS)
        rows.append([switches, *cells, *job_name])
    return f"{_plain(inspect.cleandoc(command.help or ''))}\n\n{_table(heads, rows)}"


def options_table(options: type[Options]) -> str:
    """Return the table of the options of a class."""
    heads = ["Name", "Values", "Default", "Meaning"]
    return _table(heads, ([f"`{o.name}`", *_cells(options, o)] for o in declared(options)))


def _cells(kind: type[Options], option: Option, with_switches: bool = False) -> list[str]:
    """Return values, default and meaning of an option."""
    text = " ".join(helps(kind)[option.name].split())
    text, _, default = text.removesuffix(").").partition(" (default: ")
    text = text + "." * bool(default and not text.endswith("."))
    if with_switches:
        text, default = (
            re.sub(r"`(\w+)`", lambda found: switch(found[1]), part) for part in (text, default)
        )
    return [_values(option), _plain(default) or _default(option), _plain(text)]


def _cells_of_click(parameter: click.Parameter) -> list[str]:
    """Return the cells of a parameter of the command line alone."""
    if not isinstance(parameter, click.Option):
        return ["texts", "none", "See above."]
    text = parameter.help or ""
    if parameter.is_flag:
        return ["yes or no", "no", text]
    return [_code(parameter.metavar or ""), "none", text]


def _values(option: Option) -> str:
    """Return the values of an option."""
    if option.is_flag:
        return "yes or no"
    if option.form.is_path or option.form.metavar.startswith("TOKENIZER"):
        return "paths" if option.is_list else _code(option.form.metavar)
    choices = "" if option.form.check else ", ".join(map(_code, option.choices))
    found = [*parts(option.kind)]
    if option.form.check or (int not in found and float not in found):
        return choices or _code(option.metavar)
    if option.metavar == "TIME":
        return "seconds, or a time like `5s`, `2m` or `1h`"
    if float in found:
        return "number from 0 to 1"
    bounds: list[Any] = [part.ge for part in found if isinstance(part, Ge)]
    if option.is_list:
        return "whole numbers"
    noun, least = "whole number", str(max(bounds))
    if option.form.show is not None:
        noun, least = "size", option.form.show(max(bounds))
    return f"{noun}, {least} or more" + f", or {choices}" * bool(choices)


def _section(parameter: click.Parameter) -> int:
    """Return the place of a parameter in the help."""
    if isinstance(parameter, click.Argument):
        return -1
    return SECTIONS.index(getattr(parameter, "section", OTHER))


def _default(option: Option) -> str:
    if option.is_required:
        return "required"
    if option.is_flag:
        return "yes" if option.default else "no"
    if option.default is False:  # a flag that may have a value
        return "no"
    return "none" if option.default in (None, (), "") else _code(option.show(option.default))


def _job_name(parameter: click.Parameter, is_declared: bool) -> str:
    """Return the key in a config file (as `pipelines.commands.config` finds it). Functions have an
    argument of the same name, unless the option is of the command line alone."""
    if is_declared:
        return _code(parameter.name or "")
    key = parameter.opts[0].removeprefix("--").replace("-", "_")
    return "" if key in NO_KEY else f"{_code(key)}, in YAML only"


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line).replace("||", "") + " |" for line in lines)


def _code(text: str) -> str:
    return f"`{text.replace('|', ' ')}`" if text else ""


def _plain(text: str) -> str:
    """Return a help text with options and names as code."""
    return re.sub(r"(`\w+`|--[a-z-]+|\[[A-Z]+\]|\b_\w+/|\b\w+_\w+\b|\"[^\"]*\")", _as_code, text)


def _as_code(found: re.Match[str]) -> str:
    return f"`{found[0].strip('`')}`"
