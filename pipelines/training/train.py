"""The job `train`: count the words unless there is a word table, train in rounds, and write the
tokenizer directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipelines.counting.word_table import text_of
from pipelines.progress import Progress
from pipelines.training.coverage import (
    Coverage,
    coverage,
    long_words_warning,
    unknown_words_warning,
)
from pipelines.training.options import TrainOptions
from pipelines.training.result import NewTokenizer
from pipelines.training.rounds import train_in_rounds, train_superwords
from pipelines.training.words import (
    check_output,
    lowest_word_count,
    many_rounds_warning,
    open_words,
)
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.option_types import path
from wordpiece_core.options import TrainingOptions
from wordpiece_core.tokenizer.spec import tokens_in_texts
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.train import TrainingResult, fewer_tokens


@dataclass(frozen=True, repr=False)
class Trained(NewTokenizer):
    """The result of `pipelines.train`.

    >>> import pipelines
    >>> trained = pipelines.train("corpus/", output="tokenizer", vocab_size=14, quiet=True)
    >>> trained.rounds, trained.vocab[-1], round(trained.covered.tokens_per_word, 2)
    (1, 'hugs', 1.33)

    Attributes:
        result: Vocabulary and merges.
        training: The options of the training.
        more_warnings: Warnings about the result.
    """

    result: TrainingResult
    training: TrainingOptions
    more_warnings: Sequence[str] = ()

    @property
    def merges(self) -> pa.Table:
        """Training log with the columns of `merges.parquet`."""
        return self.result.merges

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return self.result.rounds

    def summary(self) -> dict[str, Any]:
        """Return the object that `wordpiece train --json` prints. Tokens and words are counted in
        the word table."""
        return self._summary({"merges": len(self.merges), "rounds": self.rounds}, {})

    def lines(self) -> list[str]:
        """Return the summary that `wordpiece train` prints."""
        merges = f", {len(self.merges):,} merges" if self.result.pieces is None else ""
        return self._lines(f"vocabulary: {len(self.vocab):,} tokens{merges}")

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        return [*self.table.warnings(), *self.more_warnings]


def train_job(options: TrainOptions, progress: Progress) -> Trained:
    """Train a tokenizer and write its directory. Locks the output and the work directory.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    options = options.checked()
    text, training = options.select(TextOptions), options.select(TrainingOptions)
    split_at = [] if options.split_special_tokens else tokens_in_texts(options.listed_tokens)
    known = options.recorded(training)
    identity: dict[str, Any] = {"training": known}
    if options.word_counts:  # the table may have been counted without rare words
        del known["min_word_count"]
    else:
        identity["text"] = text.to_dict()
    with open_words(options, progress, text, split_at, identity, known) as job:
        table = job.table
        text = text_of([table], text)
        lowest = lowest_word_count(table, training.min_word_count)
        training = replace(training, min_word_count=lowest)
        recorded = options.recorded(training)
        identity = {"text": text.to_dict(), "training": recorded, "word_table": table.digest}
        check_output(options, identity)
        long_words = long_words_warning(table, training)  # reads the words, so before long rounds
        if options.superwords:
            result, tokens = train_superwords(job, options, training, text)
            spec = result.tokenizer_spec(options.segments)
            covered = Coverage(table.totals["words"], tokens)
        else:
            result = train_in_rounds(job, training, training.word_marks(text), recorded)
            spec = result.tokenizer_spec(text)
            (covered,) = coverage(table, Tokenizer.from_spec(spec))
        budget = options.select(RoundBudget)
        took = budget.to_dict() | {"rounds": result.rounds}
        if result.estimates:
            took["estimates"] = result.estimates
        job.write(spec, identity, dict([result.log]), **took)
    warnings = (
        job.unsplit_warning(),
        unknown_words_warning(covered),
        long_words,
        fewer_tokens(len(result.vocab), training),
        many_rounds_warning(result.rounds, budget),
    )
    made = (path(options.output), table, spec, covered, job.seconds)
    return Trained(*made, result, training, [warning for warning in warnings if warning])
