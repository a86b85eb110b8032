"""What the documentation of Python names needs to be told beside the source."""

from __future__ import annotations

import inspect
import re
from pydoc import locate
from typing import Any

from griffe import Extension, Function, Object, Parameter, ParameterKind, Parameters

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$|[A-Z]\w+:$).*)*", re.MULTILINE)
SKIP = re.compile(r" *# doctest: \+SKIP$", re.MULTILINE)


class Docstrings(Extension):
    """Griffe calls this with everything that it finds in the source."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        """The jobs have their arguments from declarations when they are imported."""
        if any(str(made.value).startswith("_documented(") for made in func.decorators):
            job: Any = locate(func.path)
            given = inspect.signature(job).parameters.values()
            func.parameters = Parameters(*map(_parameter, given))
            assert func.docstring is not None
            func.docstring.value = fenced(job.__doc__)

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Markdown would take examples (`>>>`) for quotations."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """A docstring with its examples as blocks of code."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{SKIP.sub('', found[0])}\n```", docstring)


def _parameter(given: inspect.Parameter) -> Parameter:
    kind = ParameterKind[given.kind.name.lower()]
    has_default = given.default is not inspect.Parameter.empty
    annotation = None if given.annotation is inspect.Parameter.empty else given.annotation
    default = repr(given.default) if has_default else None
    return Parameter(given.name, kind=kind, annotation=annotation, default=default)
