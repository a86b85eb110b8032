"""The options of the jobs `train`, `extend` and `prune`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pipelines.comparing.options import LoadingOptions, TokenizerPath
from pipelines.counting.options import CountingOptions, ReadingOptions
from pipelines.options import InputOptions
from wordpiece_core.counting import joined_words
from wordpiece_core.declared import MAIN, OUTPUT, PERFORMANCE, RARE, Options
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.option_types import DriverMemory, Place, Tokens
from wordpiece_core.options import (
    ExtensionOptions,
    SegmentOptions,
    SuperwordOptions,
    TextOptions,
    TrainingOptions,
)
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.superwords import first_phase

DRIVER_MEMORY = 4 << 30  # bytes


@dataclass(frozen=True, kw_only=True)
class DriverOptions(RoundBudget, section=PERFORMANCE):
    """Memory of the driver of a job."""

    driver_memory: DriverMemory | None = DRIVER_MEMORY
    """Memory of the driver. The result does not depend on it."""


@dataclass(frozen=True, kw_only=True)
class WordsOptions(ReadingOptions, InputOptions, section=OUTPUT):
    """Options of a job that needs a word table: an existing one, or one of INPUT, which it counts
    first."""

    ALTERNATIVES = (("inputs", "word_counts"),)

    word_counts: Annotated[Place | None, MAIN] = None
    """Use this word table instead of `inputs`."""
    work_dir: Place | None = None
    """Directory of intermediate results; an interrupted run continues from it (default: `output`
    plus .work)."""
    split_special_tokens: bool = False
    """Train on special tokens in the text as on other text."""
    overwrite: bool = False
    """Replace a tokenizer that was trained with other options."""
    keep_work: Annotated[bool, RARE] = False
    """Keep the work directory when done."""

    def __post_init__(self) -> None:
        """Also check that the words come from one place."""
        super().__post_init__()
        if self.inputs and self.word_counts:
            raise OptionError(f"set either {opt.inputs} or {opt.word_counts}")
        if self.split_special_tokens and self.word_counts:
            raise OptionError(
                f"{opt.split_special_tokens}: set {opt.special_tokens} when you count the word"
                " table"
            )
        if self.group_column and self.word_counts:
            raise OptionError(f"{opt.group_column}: set it when you count the word table")
        self.check_inputs(self.word_counts)


@dataclass(frozen=True, kw_only=True)
class TrainOptions(
    DriverOptions,
    WordsOptions,
    SegmentOptions,
    SuperwordOptions,
    TrainingOptions,
    CountingOptions,
    InputOptions,
):
    """Train WordPiece, BPE or Unigram on INPUT and write a tokenizer directory.

    INPUT: files, globs or directories, as for wordpiece count; or set --word-counts.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.superwords:
            self._check_superwords()
        elif self.superword_pattern is not None:
            raise OptionError(f"{opt.superword_pattern}: also set {opt.superwords}")
        if not self.word_counts:
            self.word_marks(self)

    def _check_superwords(self) -> None:
        if self.word_counts:
            raise OptionError(
                f"{opt.superwords}: a word table has no spaces between words; pass {opt.inputs}"
                f" instead of {opt.word_counts}"
            )
        if self.smoothing_exponent != 1:
            raise OptionError(
                f"{opt.superwords}: not with {opt.smoothing_exponent}; repeat the texts of small"
                " groups instead"
            )
        first_phase(self.select(TrainingOptions), self.superwords)
        _ = self.segments

    @property
    def segments(self) -> TextOptions:
        """Options that split text into segments, on which superwords are trained."""
        return joined_words(self.select(TextOptions), self.superword_pattern)

    def recorded(self, training: TrainingOptions) -> dict[str, Any]:
        """Return the options of a training as values that JSON can hold, with superwords."""
        found = training.to_dict() | {"superwords": self.superwords}
        if self.superwords:
            found["max_superword_words"] = self.max_superword_words
            found["superword_pattern"] = self.superword_pattern
        return found


@dataclass(frozen=True, kw_only=True)
class TokenizerArgument(Options):
    """The tokenizer that a job changes."""

    tokenizer: TokenizerPath = field(kw_only=False)
    """Tokenizer directory, tokenizer file, or name on the Hub."""


@dataclass(frozen=True, kw_only=True)
class ChangeOptions(WordsOptions, LoadingOptions, TokenizerArgument):
    """Options of a job that changes a tokenizer by the words of INPUT."""


@dataclass(frozen=True, kw_only=True)
class ExtendOptions(DriverOptions, ExtensionOptions, ChangeOptions):
    """Add tokens for the words of INPUT to TOKENIZER. Existing ids do not change.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub. INPUT: files, globs or
    directories, as for wordpiece count; or set --word-counts.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_size()


@dataclass(frozen=True, kw_only=True)
class PruneOptions(ChangeOptions):
    """Remove the tokens of TOKENIZER that the words of INPUT need least.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub. INPUT: files, globs or
    directories, as for wordpiece count; or set --word-counts.
    """

    vocab_size: Annotated[Tokens, MAIN]
    """Number of tokens to keep."""
