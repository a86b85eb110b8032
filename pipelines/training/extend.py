"""The job `extend`: more tokens for a tokenizer, by the words of INPUT or of a word table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipelines.counting.word_table import WordTable
from pipelines.progress import Progress
from pipelines.training.coverage import MANY_UNKNOWN, coverage, used_tokens
from pipelines.training.driver import Rounds
from pipelines.training.options import ExtendOptions
from pipelines.training.words_run import (
    Changed,
    TokenizerRun,
    check_same_text,
    least_word_count,
    many_rounds_warning,
    run_on_words,
)
from wordpiece_core import Tokenizer
from wordpiece_core.options import ExtensionOptions
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.extension import (
    NEW_TOKENS,
    ExtensionResult,
    Goal,
    fewer_new_tokens,
)
from wordpiece_core.training.train import MERGES


@dataclass(frozen=True, repr=False)
class Extended(Changed):
    """The result of `pipelines.extend`. `before`, `covered`: how the old and the new tokenizer
    segment the words. `result`: new tokens and merges. `used_new_tokens`: number of new tokens that
    the words use; with BPE, some are only steps towards longer tokens.

    >>> import pipelines
    >>> tok = pipelines.train("corpus/", output="tokenizer", vocab_size=12, quiet=True)
    >>> more = pipelines.extend("tokenizer", "corpus/", output="more", new_tokens=1)
    >>> more.new_tokens, more.vocab[:12] == tok.vocab, more.saved_tokens
    (['hug'], True, 7)
    """

    result: ExtensionResult
    goal: Goal
    budget: RoundBudget
    used_new_tokens: int
    unsplit: str | None

    @property
    def new_tokens(self) -> list[str]:
        """Added tokens: new characters first, then other tokens in the order of their merges."""
        return self.result.new_tokens

    @property
    def merges(self) -> pa.Table:
        """Log of the new merges with the columns of `merges.parquet`."""
        return self.result.merges

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return self.result.rounds

    @property
    def saved_tokens(self) -> int:
        """Number of tokens by which the words became shorter."""
        return self.before.tokens - self.covered.tokens

    @property
    def saved_share(self) -> float:
        """`saved_tokens` as a share of the tokens before."""
        return self.saved_tokens / max(self.before.tokens, 1)

    def summary(self) -> dict[str, Any]:
        """Return the object that `wordpiece extend --json` prints. Tokens and words are counted in
        the word table."""
        return self._summary(
            {
                "new_tokens": len(self.new_tokens),
                "used_new_tokens": self.used_new_tokens,
                "merges": len(self.merges),
                "rounds": self.rounds,
            },
            {"saved_tokens": self.saved_tokens, "saved_share": self.saved_share},
        )

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        unknown, share = None, self.covered.unknown_share
        if share > MANY_UNKNOWN:
            unknown = (
                f"{share:.1%} of the words are [UNK]: characters that the tokenizer lacks are only"
                " added by new_characters"
            )
        slow = many_rounds_warning(self.rounds, self.budget)
        more = (self.unsplit, unknown, fewer_new_tokens(self.result, self.goal), slow)
        return [*self.table.warnings(), *filter(None, more)]


def extend_job(options: ExtendOptions, progress: Progress) -> Extended:
    """Extend a tokenizer and write the directory of the new one. Locks the output and the work
    directory.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    return run_on_words(ExtendRun, options, progress)


class ExtendRun(TokenizerRun[ExtendOptions, Extended]):
    def known(self) -> tuple[dict[str, Any], dict[str, Any]]:
        options = self.options.select(ExtensionOptions)
        extension = Goal.of(self.tokenizer.spec, options).options.to_dict()
        if self.options.word_counts:  # the table may have been counted without rare words
            del extension["min_word_count"]
        base = {"tokenizer": self.tokenizer.digest}
        identity = {"text": self.text().to_dict(), "base": base, "extension": extension}
        return identity, base | extension

    def make(self, table: WordTable) -> Extended:
        least = least_word_count(table, self.options.min_word_count)
        options = replace(self.options.select(ExtensionOptions), min_word_count=least)
        goal = Goal.of(self.tokenizer.spec, options)
        check_same_text(table, goal.base)
        extension, training = goal.options.to_dict(), goal.recorded
        identity = {
            "text": self.text().to_dict(),
            "base": {"tokenizer": self.tokenizer.digest, "vocab_size": len(goal.base.vocab)},
            "extension": extension,
            "training": training.to_dict(),
            "word_table": table.digest,
        }
        self.check_output(identity)
        begun = {
            "word_table": table.digest,
            "tokenizer": self.tokenizer.digest,
            "model": training.model,
        }
        begun |= extension
        result = Rounds(table, goal.training, begun, self).extended(goal)
        specs = (goal.base, result.spec)
        before, covered = coverage(
            table, *(Tokenizer.of(s, self.tokenizer.unk_scope) for s in specs)
        )
        used = used_tokens(table, Tokenizer.of(result.spec, self.tokenizer.unk_scope))
        new = {*result.new_tokens}
        used_new = sum(result.spec.vocab[i] in new for i in used)
        made = (self.output, table, result.spec, covered, self.seconds(), before)
        unsplit = self.unsplit_warning(table)
        budget = self.options.select(RoundBudget)
        done = Extended(*made, result, goal, budget, used_new, unsplit)
        change = {"new_tokens": len(result.new_tokens), "saved_tokens": done.saved_tokens}
        self.write(
            done,
            identity,
            change,
            {MERGES: result.merges, NEW_TOKENS: result.replaced},
            **budget.to_dict(),
            rounds=result.rounds,
        )
        return done
