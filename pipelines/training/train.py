"""The job `train`, from its inputs to the tokenizer directory: counts if need be, makes the rounds
(`pipelines.training.driver`), writes what they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from pipelines.counting.word_table import WordTable, text_of
from pipelines.running.progress import Progress
from pipelines.training.accents import accents_warning
from pipelines.training.continuing import Begun, begun
from pipelines.training.coverage import coverage, long_words_warning, unknown_words_warning
from pipelines.training.driver import Rounds
from pipelines.training.extend import Extended, extend_by_words
from pipelines.training.options import TrainCall
from pipelines.training.words_run import (
    MadeOfWords,
    WordsRun,
    check_same_text,
    least_word_count,
    many_rounds_warning,
    run_on_words,
)
from wordpiece_core import TextOptions, Tokenizer, TrainingOptions
from wordpiece_core.errors import InputError
from wordpiece_core.options import UNIGRAM, WORDPIECE
from wordpiece_core.training.extension import Goal
from wordpiece_core.training.train import TrainingResult, fewer_tokens


@dataclass(frozen=True, repr=False)
class Trained(MadeOfWords):
    """What a training made, and of what: the result of `pipelines.train`. `result`: vocabulary and
    merges; see also `MadeOfWords`.

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
        """The training log: the columns of `merges.parquet`."""
        return self.result.merges

    @property
    def rounds(self) -> int:
        """How often the counts were taken."""
        return self.result.rounds

    def summary(self) -> dict[str, Any]:
        """What `wordpiece train --json` prints. Tokens and words are of the word table."""
        return self._summary({"merges": len(self.merges), "rounds": self.rounds}, {})

    def warnings(self) -> list[str]:
        """What may be wrong in the result, a line each."""
        return [*self.table.warnings(), *self.more_warnings]


def train_job(
    call: TrainCall, *, beam_args: Sequence[str] = (), progress: Progress
) -> Trained | Extended:
    """Trains a tokenizer and writes its directory. Holds the output and the work directory. A
    training that continues with other words extends the vocabulary.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    run = ContinuedRun if call.continue_from else TrainRun
    return run_on_words(run, call, beam_args, progress)


class TrainRun(WordsRun[TrainCall, Trained]):
    def text(self) -> TextOptions:
        return self.call.counting.text

    def known(self) -> tuple[dict[str, Any], dict[str, Any]]:
        call = self.call
        identity: dict[str, Any] = {"training": call.training.plain()}
        if call.word_counts:  # the table may have been counted without rare words
            del identity["training"]["min_word_count"]
        else:
            identity["text"] = call.counting.text.plain()
        return identity, identity["training"]

    def make(self, table: WordTable) -> Trained:
        return self.train_on(table, self.call.training)

    def train_on(
        self, table: WordTable, options: TrainingOptions, earlier: Tokenizer | None = None
    ) -> Trained:
        """Trains on a word table. `earlier`: the tokenizer of the training that is continued."""
        text = text_of([table], self.text(), self.call.given)
        least = least_word_count(table, options.min_word_count, self.call)
        training = replace(options, min_word_count=least)
        identity = {"text": text.plain(), "training": training.plain(), "word_table": table.digest}
        self.check_output(identity)
        begun = {"word_table": table.digest} | training.plain()
        result = Rounds(table, training, begun, self).trained(training.word_marks(text))
        old = earlier.vocab if earlier else []
        if result.vocab[: len(old)] != old:
            raise InputError(
                f"{self.call.continue_from}: its vocabulary is not that of its training on these"
                " words; use wordpiece extend, or train anew"
            )
        spec, budget = result.spec(text), self.call.budget
        tokenizer = Tokenizer.of(spec)
        (covered,) = coverage(table, tokenizer)
        more_warnings = [
            unknown_words_warning(table, tokenizer, training, covered),
            long_words_warning(table, training),
            fewer_tokens(len(result.vocab), training),
            many_rounds_warning(result.rounds, budget),
        ]
        if not self.call.word_counts and earlier is None:
            more_warnings.append(accents_warning(self.files, self.call.counting))
        made = (self.call.output, table, spec, covered, self.seconds(), result, training)
        done = Trained(*made, [warning for warning in more_warnings if warning])
        took = asdict(budget) | {"rounds": result.rounds}
        if result.estimates:
            took["estimates"] = result.estimates
        self.write(done, identity, {}, dict([result.log]), **took)
        return done


class ContinuedRun(TrainRun):
    """A training that is continued. With the same words it is that training, made to the larger
    size; the earlier merges are made again. Other words extend the vocabulary, as any do of
    Unigram."""

    @cached_property
    def begun(self) -> Begun:
        return begun(self.call)

    def text(self) -> TextOptions:
        return self.begun.text

    def known(self) -> tuple[dict[str, Any], dict[str, Any]]:
        options = self.begun.training.plain()
        both = ["model", "vocab_size", "min_pair_count", "max_token_length"]
        both += ["criterion"] if options["model"] == WORDPIECE else []
        return {"text": self.begun.text.plain()}, {name: options[name] for name in both}

    def make(self, table: WordTable) -> Any:
        begun = self.begun
        check_same_text(table, begun.tokenizer.spec)
        if begun.word_table == table.digest and begun.training.model != UNIGRAM:
            return self.train_on(table, begun.training, begun.tokenizer)
        least = least_word_count(table, begun.training.min_word_count, self.call)
        options = replace(begun.extension, min_word_count=least)
        goal = Goal.of(begun.tokenizer.spec, options)
        training = replace(begun.training, min_word_count=least)
        return extend_by_words(self, table, goal, begun.tokenizer, training)
