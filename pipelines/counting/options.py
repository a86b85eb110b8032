"""The options of counting, and of the job `count`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pipelines.options import CsvOptions, InputOptions
from wordpiece_core.declared import INPUT, MAIN, PERFORMANCE, Form
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.option_types import Column, Count, Inputs, Share, WorkerMemory
from wordpiece_core.options import END_OF_TEXT, SpecialTokens, TextOptions
from wordpiece_core.symbols import SPECIAL_TOKENS


def usual_special_tokens(text: TextOptions) -> tuple[str, ...]:
    """Return the special tokens of a training that does not name any."""
    return (END_OF_TEXT,) if text.holds_spaces else SPECIAL_TOKENS


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(CsvOptions, section=INPUT):
    """Counting options, except for how text is split into words. `worker_memory`, in bytes, does
    not change the result."""

    text_column: Annotated[Column, MAIN] = "text"
    """Column or key that holds the text."""
    group_column: Column | None = None
    """Column with a group, such as a language, to smooth counts between groups."""
    smoothing_exponent: Annotated[Share, Form("A", show="{:g}".format)] = 1.0
    """Smoothing: the share p of a group becomes p^A (1: none; multilingual BERT: 0.7)."""
    worker_memory: Annotated[WorkerMemory, PERFORMANCE] = 512 << 20
    """Memory of a worker for counting."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoothing_exponent != 1 and self.group_column is None:
            raise OptionError(f"{opt.smoothing_exponent}: also set {opt.group_column}")


@dataclass(frozen=True, kw_only=True)
class CountingOptions(ReadingOptions, TextOptions, section=INPUT):
    """Options of counting words, for `count` and before `train`."""


@dataclass(frozen=True, kw_only=True)
class CountOptions(CountingOptions, InputOptions):
    """Count the words of INPUT into a word table.

    INPUT: files, globs or directories of .parquet, .arrow, .feather, .txt, .jsonl, .csv, .tsv (text
    also .gz, .zst, .bz2, .lz4, .xz), local, or on s3://, gs:// or any file system of fsspec.
    Optional with --merge.
    """

    merge: Annotated[Inputs, Form("DIR"), MAIN] = ()
    """Add the counts of this word table; repeatable."""
    min_word_count: Annotated[Count, MAIN] = 1
    """Minimum count of a word; rarer words are left out."""
    special_tokens: Annotated[SpecialTokens | None, MAIN] = None
    """Tokens that split texts and are not counted, comma-separated (default: BERT's five;
    <|endoftext|> if words contain spaces)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_inputs(self.merge)
        if self.special_tokens is None:
            object.__setattr__(self, "special_tokens", usual_special_tokens(self))
        if self.merge and self.group_column is not None:
            raise OptionError(f"{opt.merge}: a word table has no groups; remove {opt.group_column}")
