"""The signatures of what `pipelines` and `wordpiece_core` export, for editors and type checkers,
from the options that are declared. This writes `pipelines/__init__.pyi` and
`wordpiece_core/keywords.py` again:

    python -m docs.site.signatures
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pipelines
import wordpiece_core
from pipelines import functions
from pipelines.transforms import CountWords, EncodeTexts
from wordpiece_core.options import ExtensionOptions, TextOptions, TrainingOptions

STUB = Path(pipelines.__file__).with_suffix(".pyi")
KEYWORDS = Path(wordpiece_core.__file__).with_name("keywords.py")
HEAD = '''\
# ruff: noqa: E501
# fmt: off
"""The jobs of wordpiece-beam as functions, and transforms for your own Beam pipelines.

Made by `python -m docs.site.signatures`.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal

import pyarrow as pa

from pipelines.comparing.check import Checked as Checked
from pipelines.counting.word_table import WordTable as WordTable
from pipelines.encoding.result import Encoded as Encoded
from pipelines.functions import JobWarning as JobWarning
from pipelines.reporting.report import Report as Report
from pipelines.training.extend import Extended as Extended
from pipelines.training.prune import Pruned as Pruned
from pipelines.training.train import Trained as Trained
from pipelines.transforms import CountWords as _CountWords
from pipelines.transforms import EncodeTexts as _EncodeTexts
from wordpiece_core import Tokenizer

__all__: list[str]
__version__: str
'''

HEAD_OF_KEYWORDS = '''\
# fmt: off
"""The types of options that are keyword arguments, for editors and type checkers.

Made by `python -m docs.site.signatures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict
'''
TYPED = (TextOptions, TrainingOptions, ExtensionOptions)


def keywords() -> str:
    """The text of `wordpiece_core.keywords`."""
    text = HEAD_OF_KEYWORDS
    for kind in TYPED:
        name = kind.__name__.replace("Options", "Keywords")
        text += f"\n\nclass {name}(TypedDict, total=False):\n"
        text += f'    """The fields of `{kind.__name__}`."""\n\n'
        text += "".join(f"    {option.name}: {option.annotation}\n" for option in kind.options())
    return text


def stub() -> str:
    """The text of the stub."""
    exported = ((name, getattr(functions, name, None)) for name in pipelines.__all__)
    jobs = {name: value for name, value in exported if inspect.isfunction(value)}
    lines = [line for name, job in jobs.items() for line in ("", *_function(name, job))]
    for kind in (CountWords, EncodeTexts):
        lines += ["", f"class {kind.__name__}(_{kind.__name__}):"]
        lines += [f"    {line}" for line in _function("__init__", kind.__init__)]
    return HEAD + "".join(line + "\n" for line in lines)


def _function(name: str, function: Callable[..., Any]) -> Iterator[str]:
    signature = inspect.signature(function)
    yield f"def {name}("
    is_positional = True
    for parameter in signature.parameters.values():
        if is_positional and parameter.kind is parameter.KEYWORD_ONLY:
            yield "    *,"
            is_positional = False
        kind = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        default = "" if parameter.default is parameter.empty else " = ..."
        yield f"    {parameter.name}{kind}{default},"
    yield f") -> {signature.return_annotation}: ..."


if __name__ == "__main__":
    STUB.write_text(stub())
    KEYWORDS.write_text(keywords())
