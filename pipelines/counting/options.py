"""The options of counting, and a call of the job `count`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.running.call import Call, CsvOptions
from wordpiece_core.declaration import INPUT, MAIN, PERFORMANCE, group, option
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Column, Places, Share, Size, Whole
from wordpiece_core.options import (
    END_OF_TEXT,
    LEAST_WORKER_MEMORY,
    MOST_COUNT,
    SpecialTokens,
    TextOptions,
)
from wordpiece_core.symbols import SPECIAL_TOKENS


def usual_special_tokens(text: TextOptions) -> tuple[str, ...]:
    """Return the special tokens of a training on such words that names none."""
    return (END_OF_TEXT,) if text.holds_spaces else SPECIAL_TOKENS


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(CsvOptions):
    """Counting options, except for how text is split into words. `worker_memory`, in bytes, does
    not change the result."""

    SECTION = INPUT

    group_column: str | None = option(
        None,
        Column(),
        "Column with a group, such as a language, to smooth counts between groups.",
    )
    smoothing_exponent: float = option(
        1.0,
        Share(metavar="A"),
        "Smoothing: the share p of a group becomes p^A (multilingual BERT: 0.7).",
        shown_default="1: no smoothing",
    )
    worker_memory: int = option(
        512 << 20,
        Size(LEAST_WORKER_MEMORY),
        "Memory of a worker for counting.",
        section=PERFORMANCE,
    )
    text_column: str = option("text", Column(), "Column or key that holds the text.", section=MAIN)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoothing_exponent != 1 and self.group_column is None:
            raise OptionError("smoothing_exponent: also set `group_column`")


@dataclass(frozen=True, kw_only=True)
class CountOptions(ReadingOptions):
    """How words are counted, by `count` and before `train`."""

    text: TextOptions = group(TextOptions)


@dataclass(frozen=True, kw_only=True)
class CountCall(Call):
    """Count the words of INPUT into a word table.

    INPUT: files, globs or directories of .parquet, .arrow, .feather, .txt, .jsonl, .csv, .tsv (text
    also .gz, .zst, .bz2, .lz4, .xz), local, or on s3://, gs:// or any file system of fsspec.
    Optional with --merge.
    """

    merge: tuple[str, ...] = option(
        (), Places(), "Add the counts of this word table; repeatable.", section=MAIN
    )
    min_word_count: int = option(
        1, Whole(MOST_COUNT), "Minimum count of a word; rarer words are left out.", section=MAIN
    )
    special_tokens: Sequence[str] | str = option(
        None,
        SpecialTokens(metavar="LIST|bert"),
        "Tokens that split texts and are not counted, comma-separated.",
        shown_default="BERT's five; <|endoftext|> if words contain spaces",
        section=MAIN,
    )
    counting: CountOptions = group(CountOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_inputs(self.merge)
        if self.special_tokens is None:
            usual = usual_special_tokens(self.counting.text)
            object.__setattr__(self, "special_tokens", usual)
        if self.merge and self.counting.group_column is not None:
            raise OptionError("merge: a word table has no groups; remove `group_column`")
