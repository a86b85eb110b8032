"""Calls of `compare` and `check`, and which tokenizers they take."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.running.call import CsvOptions, JobCall
from wordpiece_core.declaration import (
    INPUT,
    MAIN,
    PERFORMANCE,
    REQUIRED,
    TOKENIZER,
    Declared,
    group,
    option,
)
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Choice, Column, Flag, Place, Places, Size, Wholes, refusal
from wordpiece_core.options import ENCODING_NAMES, LEAST_WORKER_MEMORY, MOST_TOKENS

if TYPE_CHECKING:
    from wordpiece_core import Tokenizer


@dataclass(frozen=True)
class TokenizerPlace(Place):
    """The place of a tokenizer, or its name on the Hub. From Python, it can be a `Tokenizer`."""

    annotation = "str | PathLike[str] | Tokenizer"
    metavar: str = "TOKENIZER"

    def check(self, value: Any) -> Any:
        if isinstance(value, str | os.PathLike):
            return super().check(value)
        from wordpiece_core import Tokenizer  # it loads Arrow, for which help need not wait

        if not isinstance(value, Tokenizer):
            raise refusal(value, "a path or a Tokenizer")
        return value


@dataclass(frozen=True)
class Tokenizers(Places):
    """Tokenizers; from Python, one alone is a list of one."""

    annotation = "str | PathLike[str] | Tokenizer | Sequence[str | PathLike[str] | Tokenizer]"
    are_paths = False

    def check(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, str | os.PathLike) or not isinstance(value, Sequence | Iterator):
            value = [value]
        return tuple(map(TokenizerPlace().check, value))


@dataclass(frozen=True, kw_only=True)
class TokenizerOptions(Declared):
    """What the files of a tokenizer do not say, or say otherwise."""

    SECTION = TOKENIZER

    lowercase: bool | None = option(
        None,
        Flag(),
        "Override how the tokenizer lowercases. A vocab.txt is cased if its tokens have capitals.",
        shown_default="as the tokenizer says",
    )
    encoding: str | None = option(
        None,
        Choice(ENCODING_NAMES, "NAME"),
        "tiktoken encoding, for example llama3.",
        shown_default="from the file name",
    )

    def load(self, place: str, unk_scope: str = "word") -> Tokenizer:
        """Loads the tokenizer, with a TakenAsCasedWarning if it is taken as cased."""
        from wordpiece_core import Tokenizer

        return Tokenizer.load(
            place, unk_scope=unk_scope, lowercase=self.lowercase, encoding=self.encoding
        )


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(CsvOptions):
    """How texts are read to measure tokenizers on them. `worker_memory`, in bytes, does not change
    the result."""

    SECTION = PERFORMANCE

    group_column: str | None = option(
        None,
        Column(),
        "Column that names a group, such as a language; each group is measured separately.",
        section=INPUT,
    )
    text_column: str = option("text", Column(), "Column or key that holds the text.", section=INPUT)
    worker_memory: int = option(
        512 << 20, Size(LEAST_WORKER_MEMORY), "Memory of a worker for counting."
    )
    work_dir: str | None = option(
        None,
        Place(),
        "Directory for temporary results that workers on other machines can access.",
        shown_default="a temporary directory for local runs",
    )


def check_texts(on: Sequence[str], word_counts: str | None, options: MeasureOptions) -> None:
    """OptionError for texts and a word table, and for groups without texts."""
    if on and word_counts:
        raise OptionError("set either `on` or `word_counts`")
    if options.group_column is not None and not on:
        raise OptionError("group_column: a word table has no groups; pass the texts with `on`")


EACH_TEXT = "set `on` before each file, or quote the glob"
TEXT_ENDINGS = (".parquet", ".arrow", ".jsonl", ".csv", ".tsv", ".gz", ".zst", ".bz2", ".xz")


@dataclass(frozen=True, kw_only=True)
class CompareCall(JobCall):
    """Compare tokenizers on the same text.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub.
    """

    SECTION = MAIN
    ARGUMENTS = ("tokenizers",)
    ALTERNATIVES = (("on", "word_counts"),)

    tokenizers: tuple[str | Tokenizer, ...] = option(
        (),
        Tokenizers("TOKENIZER..."),
        "Tokenizers to compare; the first is the reference.",
        on="TOKENIZER",
    )
    on: tuple[str, ...] = option(
        (),
        Places("INPUT"),
        "Text to measure on: a file, a glob or a directory, as for count; repeatable.",
    )
    word_counts: str | None = option(None, Place(), "Measure on this word table instead of texts.")
    vocab_sizes: tuple[int, ...] = option(
        (),
        Wholes(MOST_TOKENS),
        "Also measure each tokenizer at these smaller sizes: BPE, or WordPiece trained here.",
        shown_default="none",
    )
    measuring: MeasureOptions = group(MeasureOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tokenizers:
            raise OptionError("set `tokenizers`: tokenizer directories, files, or names on the Hub")
        for path in self.tokenizers:
            if isinstance(path, str) and path.lower().endswith(TEXT_ENDINGS):
                raise OptionError(f"{path}: a file of texts, not a tokenizer; {EACH_TEXT}")
        if not self.on and not self.word_counts:
            raise OptionError("set either `on` or `word_counts`")
        check_texts(self.on, self.word_counts, self.measuring)


@dataclass(frozen=True, kw_only=True)
class CheckCall(CsvOptions, JobCall):
    """Compare the ids and the speed of a tokenizer with its original library.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub. The library is
    transformers for a directory, and tokenizers, sentencepiece or tiktoken for a file; it must be
    installed. The exit status is 1 if any row has other ids.
    """

    SECTION = MAIN
    ARGUMENTS = ("tokenizer",)

    tokenizer: str = option(REQUIRED, Place(), "The tokenizer to check.")
    on: tuple[str, ...] = option(
        (),
        Places("INPUT"),
        "Text to encode: a file, a glob or a directory, as for count; repeatable.",
    )
    sample: int = option(
        10 << 20, Size(), "Size of the sample, read from the beginning of each file."
    )
    text_column: str = option("text", Column(), "Column or key that holds the text.", section=INPUT)
    reading: TokenizerOptions = group(TokenizerOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.on:
            raise OptionError("set `on`: texts to encode")
