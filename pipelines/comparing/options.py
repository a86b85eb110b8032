"""The options of `compare` and `check`, and the tokenizers that they take."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any

from pipelines.options import BeamOptions, CsvOptions, RunOptions
from wordpiece_core.declared import (
    INPUT,
    MAIN,
    PERFORMANCE,
    TOKENIZER,
    Form,
    Options,
    refusal,
)
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.option_types import Column, Inputs, Place, Size, Tokens, WorkerMemory, path
from wordpiece_core.options import EncodingName, UnkScope

if TYPE_CHECKING:
    from wordpiece_core import Tokenizer
else:  # loading Arrow takes longer than the help of a command

    class Tokenizer:
        """Stand-in for `wordpiece_core.Tokenizer` in types that are read at run time."""


def _tokenizer(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        return path(value)
    from wordpiece_core import Tokenizer

    if not isinstance(value, Tokenizer):
        raise refusal(value, "a path or a Tokenizer")
    return value


def tokenizers_of(value: Any) -> tuple[Any, ...]:
    """Return paths of tokenizers as text, and tokenizers. A single one is a list of one."""
    if isinstance(value, str | os.PathLike) or not isinstance(value, Sequence | Iterator):
        value = [value]
    return tuple(map(_tokenizer, value))


AnyTokenizer = str | PathLike[str] | Tokenizer
TokenizerPath = Annotated[str | PathLike[str], Form("TOKENIZER", check=path)]
"""A path of a tokenizer, or its name on the Hub."""
TokenizerPlace = Annotated[AnyTokenizer, Form("TOKENIZER", check=_tokenizer)]
"""A path of a tokenizer, its name on the Hub, or, in Python, a `Tokenizer`."""
Tokenizers = Annotated[
    AnyTokenizer | Sequence[AnyTokenizer],
    Form("TOKENIZER...", check=tokenizers_of),
]


@dataclass(frozen=True, kw_only=True)
class LoadingOptions(Options, section=TOKENIZER):
    """Settings that the files of a tokenizer lack, or that override them."""

    lowercase: bool | None = None
    """Override how the tokenizer lowercases. A vocab.txt is cased if its tokens have capitals
    (default: as the tokenizer says)."""
    encoding: Annotated[EncodingName | None, Form("NAME")] = None
    """tiktoken encoding, for example llama3 (default: from the file name)."""

    def load(self, place: str | PathLike[str], unk_scope: UnkScope = "word") -> Tokenizer:
        """Load the tokenizer, with a TakenAsCasedWarning if it is taken as cased."""
        from wordpiece_core import Tokenizer

        return Tokenizer.load(
            place, unk_scope=unk_scope, lowercase=self.lowercase, encoding=self.encoding
        )


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(CsvOptions, section=PERFORMANCE):
    """Options of measuring tokenizers on texts. `worker_memory`, in bytes, does not change the
    result."""

    text_column: Annotated[Column, INPUT] = "text"
    """Column or key that holds the text."""
    group_column: Annotated[Column | None, INPUT] = None
    """Column that names a group, such as a language; each group is measured separately."""
    worker_memory: WorkerMemory = 512 << 20
    """Memory of a worker for counting."""
    work_dir: Place | None = None
    """Directory for temporary results that workers on other machines can access (default: a
    temporary directory for local runs)."""


@dataclass(frozen=True, kw_only=True)
class OnTextOptions(BeamOptions, MeasureOptions, section=MAIN):
    """Texts or a word table to measure tokenizers on."""

    ALTERNATIVES = (("on", "word_counts"),)

    on: Annotated[Inputs, Form("INPUT"), MAIN] = ()
    """Text to measure on: a file, a glob or a directory, as for count; repeatable."""
    word_counts: Annotated[Place | None, MAIN] = None
    """Measure on this word table instead of texts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on and self.word_counts:
            raise OptionError(f"set either {opt.on} or {opt.word_counts}")
        if self.group_column is not None and not self.on:
            raise OptionError(
                f"{opt.group_column}: a word table has no groups; pass the texts with {opt.on}"
            )


def _is_text(place: str) -> bool:
    """Return True for the name of a file of texts, unless tokenizer files have such names too."""
    from pipelines.io.input_files import ENDINGS  # imports pyarrow

    return place.lower().endswith(tuple(ENDINGS.keys() - {".json", ".txt"}))


@dataclass(frozen=True, kw_only=True)
class CompareOptions(OnTextOptions, section=MAIN):
    """Compare tokenizers on the same text.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub.
    """

    tokenizers: Tokenizers = field(kw_only=False)
    """Tokenizers to compare; the first is the reference."""
    vocab_sizes: Annotated[Sequence[Tokens], Form("N,N")] = ()
    """Also measure each tokenizer at these smaller sizes: BPE, or WordPiece trained here (default:
    none)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tokenizers:
            raise OptionError(
                f"set {opt.tokenizers}: tokenizer directories, files, or names on the Hub"
            )
        for place in tokenizers_of(self.tokenizers):
            if isinstance(place, str) and _is_text(place):
                raise OptionError(
                    f"{place}: a file of texts, not a tokenizer; set {opt.on} before each file, or"
                    " quote the glob"
                )
        if not self.on and not self.word_counts:
            raise OptionError(f"set either {opt.on} or {opt.word_counts}")


@dataclass(frozen=True, kw_only=True)
class CheckOptions(CsvOptions, LoadingOptions, RunOptions, section=MAIN):
    """Compare the ids and the speed of a tokenizer with its original library.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub. The library is
    transformers for a directory, and tokenizers, sentencepiece or tiktoken for a file; it must be
    installed. The exit status is 1 if any row has other ids.
    """

    tokenizer: TokenizerPath = field(kw_only=False)
    """The tokenizer to check."""
    on: Annotated[Inputs, Form("INPUT")]
    """Text to encode: a file, a glob or a directory, as for count; repeatable."""
    sample: Size = 10 << 20
    """Size of the sample, read from the beginning of each file."""
    text_column: Annotated[Column, INPUT] = "text"
    """Column or key that holds the text."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.on:
            raise OptionError(f"set {opt.on}: texts to encode")
