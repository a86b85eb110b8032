"""The reference pages, from option declarations, signatures and docstrings:

    python -m docs.site.reference

It writes docs/reference/NAME.md for each template in docs/site/templates. In a template, a line
`<!-- options of wordpiece train -->` becomes the option table of a command, and a line
`::: wordpiece_core.train` the signature and the docstring of a Python name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from pydoc import locate
from typing import Any

from docs.site.option_tables import with_tables

TEMPLATES = Path(__file__).parent / "templates"
PAGES = Path(__file__).parents[1] / "reference"
NAME = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$|[A-Z]\w+:$).*)*", re.MULTILINE)
SKIP = re.compile(r" *# doctest: \+SKIP$", re.MULTILINE)
SECTION = re.compile(
    r"^(Args|Attributes|Returns|Raises|Yields):\n((?:[ ]+.*\n?|\n)*)", re.MULTILINE
)
ENTRY = re.compile(r"^([\w.`*]+)(?: \([^)]*\))?: (.*)$", re.DOTALL)
WIDTH = 90


def page(template: Path) -> str:
    """Return the text of a page."""
    text = NAME.sub(lambda found: documented(found[1]), template.read_text("utf-8"))
    return with_tables(text)


def documented(path: str) -> str:
    """Return the documentation of a function or a class, with the members of the class."""
    thing: Any = locate(path)
    assert thing is not None, f"{path}: no such name"
    name = path.rpartition(".")[2]
    parts = [f"### {name}", *described(name, thing)]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for member, value in members(thing):
            parts += [f"#### {name}.{member}", *described(member, value)]
    return "\n\n".join(parts)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class that have docstrings."""
    for name, value in vars(kind).items():
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        is_member = callable(plain) or isinstance(plain, property | cached_property)
        if is_member and inspect.getdoc(plain) and not name.startswith("_"):
            yield name, plain


def described(name: str, thing: Any) -> Iterator[str]:
    """Yield the signature and the docstring."""
    if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
        yield f"```python\n{signature(name, thing)}\n```"
    yield markdown(inspect.getdoc(thing) or "")


def signature(name: str, thing: Callable[..., Any]) -> str:
    """Return a signature, with one parameter per line if it is long."""
    found = inspect.signature(thing)
    returns = "" if found.return_annotation is found.empty else f" -> {found.return_annotation}"
    parameters, keyword = [], False
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            keyword = True
            parameters.append("*")
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword = True
        if parameter.name not in ("self", "cls"):
            parameters.append(declaration(parameter))
    text = f"{name}({', '.join(parameters)}){returns}"
    if len(text) <= WIDTH:
        return text
    return "\n".join([f"{name}(", *(f"    {each}," for each in parameters), f"){returns}"])


def declaration(parameter: inspect.Parameter) -> str:
    """Return a parameter as in source code."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {parameter.annotation}"
    if parameter.default is parameter.empty:
        return text
    default = "..." if " at 0x" in repr(parameter.default) else repr(parameter.default)
    return f"{text} = {default}"


def markdown(docstring: str) -> str:
    """Return a docstring in Google's style as Markdown."""
    text = EXAMPLE.sub(lambda found: f"```pycon\n{SKIP.sub('', found[0])}\n```", docstring)
    return SECTION.sub(lambda found: f"**{found[1]}**\n\n{entries(found[2])}\n\n", text).strip()


def entries(block: str) -> str:
    """Return the entries of a section as a list."""
    found: list[str] = []
    indent = len(block) - len(block.lstrip(" "))
    for line in block.rstrip().split("\n"):
        if line[:indent].strip() == "" and line[indent : indent + 1].strip():
            found.append(line.strip())
        elif line.strip():
            found[-1] += " " + line.strip()
    return "\n".join(
        f"- `{match[1].strip('`')}`: {match[2]}" if (match := ENTRY.match(entry)) else f"- {entry}"
        for entry in found
    )


if __name__ == "__main__":
    for template in sorted(TEMPLATES.glob("*.md")):
        PAGES.joinpath(template.name).write_text(page(template), "utf-8")
