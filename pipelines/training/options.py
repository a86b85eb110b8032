"""The calls of the jobs `train`, `extend` and `prune`."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.comparing.options import TokenizerOptions
from pipelines.counting.options import CountOptions, ReadingOptions
from pipelines.running.call import INPUTS, Call
from wordpiece_core.declaration import MAIN, OUTPUT, REQUIRED, checked, group, option
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Flag, Place, Size, Whole
from wordpiece_core.options import (
    LEAST_DRIVER_MEMORY,
    MOST_TOKENS,
    ExtensionOptions,
    TrainingOptions,
)
from wordpiece_core.training.budget import RoundBudget

DRIVER_MEMORY = 4 << 30  # bytes


@dataclass(frozen=True, kw_only=True)
class WordsCall(Call):
    """A call of a job that needs a word table: one that is there, or one of INPUT, which it counts
    first."""

    SECTION = OUTPUT
    ALTERNATIVES = (("inputs", "word_counts"),)

    word_counts: str | None = option(
        None, Place(), "Use this word table instead of `inputs`.", section=MAIN
    )
    work_dir: str | None = option(
        None,
        Place(),
        "Directory of intermediate results; an interrupted run continues from it.",
        shown_default="`output` plus .work",
    )
    split_special_tokens: bool = option(
        False,
        Flag(),
        "Train on special tokens in the text as on other text, instead of splitting there.",
    )
    keep_work: bool = option(False, Flag(), "Keep the work directory when done.", in_config=True)
    overwrite: bool = option(
        False, Flag(), "Replace a tokenizer that was trained with other options."
    )

    def check_words(self, reading: ReadingOptions) -> None:
        """OptionError unless it says where the words come from, and no more than that."""
        if self.inputs and self.word_counts:
            raise OptionError("set either `inputs` or `word_counts`")
        if self.split_special_tokens and self.word_counts:
            raise OptionError(
                "split_special_tokens: set special_tokens when you count the word table"
            )
        if reading.group_column and self.word_counts:
            raise OptionError("group_column: set it when you count the word table")
        self.check_inputs(self.word_counts)


def check_driver_memory(budget: RoundBudget) -> None:
    """OptionError if the memory of the rounds is too little."""
    if budget.driver_memory is not None:
        checked(Size(LEAST_DRIVER_MEMORY), "driver_memory", budget.driver_memory)


@dataclass(frozen=True, kw_only=True)
class TrainCall(WordsCall):
    """Train WordPiece, BPE or Unigram on INPUT and write a tokenizer directory.

    INPUT: files, globs or directories, as for wordpiece count; or set --word-counts.
    """

    training: TrainingOptions = group(TrainingOptions)
    budget: RoundBudget = group(RoundBudget, driver_memory=DRIVER_MEMORY)
    counting: CountOptions = group(CountOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_words(self.counting)
        check_driver_memory(self.budget)
        if not self.word_counts:
            self.training.word_marks(self.counting.text)


@dataclass(frozen=True, kw_only=True)
class TokenizerWordsCall(WordsCall):
    """A call of a job that changes a tokenizer, by the words of INPUT."""

    ARGUMENTS = ("tokenizer", INPUTS)

    tokenizer: str = option(
        REQUIRED, Place(), "Tokenizer directory, tokenizer file, or name on the Hub."
    )
    reading: TokenizerOptions = group(TokenizerOptions)
    counting: ReadingOptions = group(ReadingOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_words(self.counting)


@dataclass(frozen=True, kw_only=True)
class ExtendCall(TokenizerWordsCall):
    """Add tokens for the words of INPUT to TOKENIZER. Existing ids do not change.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub. INPUT: files, globs or
    directories, as for wordpiece count; or set --word-counts.
    """

    extension: ExtensionOptions = group(ExtensionOptions)
    budget: RoundBudget = group(RoundBudget, driver_memory=DRIVER_MEMORY)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.extension.check_size()
        check_driver_memory(self.budget)


@dataclass(frozen=True, kw_only=True)
class PruneCall(TokenizerWordsCall):
    """Remove the tokens of TOKENIZER that the words of INPUT need least.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub. INPUT: files, globs or
    directories, as for wordpiece count; or set --word-counts.
    """

    vocab_size: int = option(
        REQUIRED, Whole(MOST_TOKENS), "Number of tokens to keep.", section=MAIN
    )
