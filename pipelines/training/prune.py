"""The job `prune`: remove the tokens of a tokenizer that the words need least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.progress import Progress
from pipelines.training.coverage import coverage
from pipelines.training.options import PruneOptions
from pipelines.training.passes import BeamExecutor
from pipelines.training.result import ChangedTokenizer
from pipelines.training.rounds import naming
from pipelines.training.tokenizer_directory import NO_MERGES, PRUNED_IDS
from pipelines.training.words import base_tokenizer, check_output, check_same_text, open_words
from wordpiece_core import Tokenizer
from wordpiece_core.option_types import path
from wordpiece_core.tokenizer.composing import text_options
from wordpiece_core.training.pruning import PruningResult, check_size, pruned
from wordpiece_core.training.train import MERGES


@dataclass(frozen=True, repr=False)
class Pruned(ChangedTokenizer):
    """The result of `pipelines.prune`.

    >>> import pipelines
    >>> tok = pipelines.train("corpus/", output="tokenizer", vocab_size=14, quiet=True)
    >>> fewer = pipelines.prune("tokenizer", "corpus/", output="fewer", vocab_size=13)
    >>> set(tok.vocab) - set(fewer.vocab), fewer.more_tokens
    ({'##ug'}, 1)

    Attributes:
        result: The kept tokens.
        vocab_size: The requested number of tokens.
    """

    result: PruningResult
    vocab_size: int

    @property
    def ids(self) -> pa.Table:
        """The columns of `pruned_ids.parquet`: `old_id`, `token`, `new_id`."""
        return self.result.ids

    @property
    def more_tokens(self) -> int:
        """Number of tokens by which the words became longer."""
        return self.covered.tokens - self.before.tokens

    def summary(self) -> dict[str, Any]:
        """Return the object that `wordpiece prune --json` prints. Tokens and words are counted in
        the word table."""
        dropped = len(self.result.base.vocab) - len(self.vocab)
        return self._summary({"dropped_tokens": dropped}, {"more_tokens": self.more_tokens})

    def lines(self) -> list[str]:
        """Return the summary that `wordpiece prune` prints."""
        base, before = len(self.result.base.vocab), self.before.tokens
        share = self.more_tokens / max(before, 1)
        return self._lines(
            f"vocabulary: {len(self.vocab):,} of {base:,} tokens",
            f"token difference: {self.more_tokens:,}, {share:.2%} of {before:,}",
        )

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        found = self.table.warnings()
        if len(self.vocab) > self.vocab_size:
            found.append(
                f"{len(self.vocab):,} tokens are left, not {self.vocab_size:,}: they are special,"
                " or characters of the words, or words would become [UNK] without them"
            )
        return found


def prune_job(options: PruneOptions, progress: Progress) -> Pruned:
    """Prune a tokenizer and write the directory of the new one. Locks the output and the work
    directory.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    options = options.checked()
    tokenizer, size = base_tokenizer(options), options.vocab_size
    spec, text = tokenizer.spec, text_options(tokenizer.spec)
    split_at = tokenizer.searched_tokens(split_special_tokens=options.split_special_tokens)
    check_size(spec, size)
    base = {"tokenizer": tokenizer.digest}
    identity: dict[str, Any] = {
        "text": text.to_dict(),
        "base": base,
        "pruning": {"vocab_size": size},
    }
    known = base | {"pruned_to": size}
    with open_words(options, progress, text, split_at, identity, known) as job:
        table = job.table
        check_same_text(table, spec)
        identity["word_table"] = table.digest
        check_output(options, identity)
        words = BeamExecutor(table.ranges, job.work, options.beam_args, options.limits)
        with naming(table), progress.stage("prune"):
            result = pruned(spec, size, words.each)
        job.write(result.spec, identity, {MERGES: NO_MERGES, PRUNED_IDS: result.ids})
        specs, scope = (spec, result.spec), tokenizer.unk_scope
        before, covered = coverage(table, *(Tokenizer.from_spec(each, scope) for each in specs))
    made = (path(options.output), table, result.spec, covered, job.seconds, before)
    return Pruned(*made, result, size)
