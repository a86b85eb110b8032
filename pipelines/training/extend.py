"""The job `extend`: add tokens for the words of a text to a tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipelines.progress import Progress
from pipelines.training.coverage import MANY_UNKNOWN, coverage, used_tokens
from pipelines.training.options import ExtendOptions
from pipelines.training.result import ChangedTokenizer
from pipelines.training.rounds import extend_in_rounds
from pipelines.training.words import (
    base_tokenizer,
    check_output,
    check_same_text,
    lowest_word_count,
    many_rounds_warning,
    open_words,
)
from wordpiece_core import Tokenizer
from wordpiece_core.option_types import path
from wordpiece_core.options import ExtensionOptions
from wordpiece_core.tokenizer.composing import text_options
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.extension import (
    NEW_TOKENS,
    ExtensionResult,
    Goal,
    fewer_new_tokens,
)
from wordpiece_core.training.train import MERGES


@dataclass(frozen=True, repr=False)
class Extended(ChangedTokenizer):
    """The result of `pipelines.extend`.

    >>> import pipelines
    >>> tok = pipelines.train("corpus/", output="tokenizer", vocab_size=12, quiet=True)
    >>> more = pipelines.extend("tokenizer", "corpus/", output="more", new_tokens=1)
    >>> more.new_tokens, more.vocab[:12] == tok.vocab, more.saved_tokens
    (['hug'], True, 7)

    Attributes:
        result: New tokens and merges.
        used_new_tokens: Number of new tokens that the words use. With BPE, other new tokens are
            steps towards longer tokens.
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

    def lines(self) -> list[str]:
        """Return the summary that `wordpiece extend` prints."""
        new, saved, before = len(self.new_tokens), self.saved_tokens, self.before.tokens
        return self._lines(
            f"vocabulary: {len(self.vocab):,} tokens, {new:,} of them new",
            f"new tokens that the words use: {self.used_new_tokens:,}",
            f"tokens saved: {saved:,} of {before:,}, {self.saved_share:.2%}",
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
    options = options.checked()
    tokenizer, extension = base_tokenizer(options), options.select(ExtensionOptions)
    spec, text = tokenizer.spec, text_options(tokenizer.spec)
    split_at = tokenizer.searched_tokens(split_special_tokens=options.split_special_tokens)
    base = {"tokenizer": tokenizer.digest}
    known = Goal.of(spec, extension).options.to_dict()
    if options.word_counts:  # the table may have been counted without rare words
        del known["min_word_count"]
    identity: dict[str, Any] = {"text": text.to_dict(), "base": base, "extension": known}
    with open_words(options, progress, text, split_at, identity, base | known) as job:
        table = job.table
        lowest = lowest_word_count(table, extension.min_word_count)
        goal = Goal.of(spec, replace(extension, min_word_count=lowest))
        check_same_text(table, goal.base)
        identity |= {
            "base": base | {"vocab_size": len(goal.base.vocab)},
            "extension": goal.options.to_dict(),
            "training": goal.recorded.to_dict(),
            "word_table": table.digest,
        }
        check_output(options, identity)
        result = extend_in_rounds(job, goal, base | {"model": goal.recorded.model})
        budget = options.select(RoundBudget)
        tables = {MERGES: result.merges, NEW_TOKENS: result.replaced}
        took = budget.to_dict() | {"rounds": result.rounds}
        job.write(result.spec, identity | {"new_tokens": len(result.new_tokens)}, tables, **took)
        scope = tokenizer.unk_scope
        extended = Tokenizer.from_spec(result.spec, scope)
        before, covered = coverage(table, Tokenizer.from_spec(goal.base, scope), extended)
        new = {*result.new_tokens}
        used_new = sum(result.spec.vocab[i] in new for i in used_tokens(table, extended))
    made = (path(options.output), table, result.spec, covered, job.seconds, before)
    return Extended(*made, result, goal, budget, used_new, job.unsplit_warning())
