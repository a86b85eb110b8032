"""The job `train`, from its inputs to the tokenizer directory: counts if need be, makes the rounds
(`pipelines.training.driver`), writes what they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipelines.counting.word_table import WordTable, text_of
from pipelines.progress import Progress
from pipelines.training.coverage import coverage, long_words_warning, unknown_words_warning
from pipelines.training.driver import Rounds
from pipelines.training.options import TrainOptions
from pipelines.training.words_run import (
    MadeOfWords,
    WordsRun,
    least_word_count,
    many_rounds_warning,
    run_on_words,
)
from wordpiece_core import TextOptions, Tokenizer, TrainingOptions
from wordpiece_core.tokenizer.files import tokens_in_texts
from wordpiece_core.tokenizer.models import AddedToken
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.train import TrainingResult, fewer_tokens


@dataclass(frozen=True, repr=False)
class Trained(MadeOfWords):
    """The result of `pipelines.train`. `result`: vocabulary and merges; see also `MadeOfWords`.

    >>> import pipelines
    >>> trained = pipelines.train("corpus/", output="tokenizer", vocab_size=14, quiet=True)
    >>> trained.rounds, trained.vocab[-1], round(trained.covered.tokens_per_word, 2)
    (1, 'hugs', 1.33)
    """

    result: TrainingResult
    training: TrainingOptions
    more_warnings: Sequence[str] = ()
    """What may be wrong in it, a sentence each."""

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

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        return [*self.table.warnings(), *self.more_warnings]


def train_job(options: TrainOptions, progress: Progress) -> Trained:
    """Train a tokenizer and write its directory. Locks the output and the work directory.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    return run_on_words(TrainRun, options, progress)


class TrainRun(WordsRun[TrainOptions, Trained]):
    def text(self) -> TextOptions:
        return self.options.select(TextOptions)

    def split_at(self) -> list[AddedToken]:
        if self.options.split_special_tokens:
            return []
        return tokens_in_texts(self.options.listed_tokens)

    def known(self) -> tuple[dict[str, Any], dict[str, Any]]:
        training = self.options.select(TrainingOptions).to_dict()
        identity: dict[str, Any] = {"training": training}
        if self.options.word_counts:  # the table may have been counted without rare words
            del training["min_word_count"]
        else:
            identity["text"] = self.text().to_dict()
        return identity, training

    def make(self, table: WordTable) -> Trained:
        options = self.options.select(TrainingOptions)
        text = text_of([table], self.text())
        least = least_word_count(table, options.min_word_count)
        training = replace(options, min_word_count=least)
        recorded = training.to_dict()
        identity = {"text": text.to_dict(), "training": recorded, "word_table": table.digest}
        self.check_output(identity)
        begun = {"word_table": table.digest} | recorded
        long_words = long_words_warning(table, training)  # before hours of rounds: it reads words
        result = Rounds(table, training, begun, self).trained(training.word_marks(text))
        spec, budget = result.spec(text), self.options.select(RoundBudget)
        (covered,) = coverage(table, Tokenizer.of(spec))
        more_warnings = [
            self.unsplit_warning(table),
            unknown_words_warning(covered),
            long_words,
            fewer_tokens(len(result.vocab), training),
            many_rounds_warning(result.rounds, budget),
        ]
        made = (self.output, table, spec, covered, self.seconds(), result, training)
        done = Trained(*made, [warning for warning in more_warnings if warning])
        took = budget.to_dict() | {"rounds": result.rounds}
        if result.estimates:
            took["estimates"] = result.estimates
        self.write(done, identity, {}, dict([result.log]), **took)
        return done
