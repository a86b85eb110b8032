"""The job `prune`: a tokenizer without the tokens that words need least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.counting.word_table import WordTable
from pipelines.progress import Progress
from pipelines.training.coverage import coverage
from pipelines.training.driver import naming
from pipelines.training.options import PruneOptions
from pipelines.training.rounds import OnBeam
from pipelines.training.tokenizer_directory import NO_MERGES, PRUNED_IDS
from pipelines.training.words_run import Changed, TokenizerRun, check_same_text, run_on_words
from wordpiece_core import Tokenizer
from wordpiece_core.training.pruning import PruningResult, check_size, pruned
from wordpiece_core.training.train import MERGES


@dataclass(frozen=True, repr=False)
class Pruned(Changed):
    """The result of `pipelines.prune`. `before`, `covered`: how the old and the new tokenizer
    segment the words. `result`: the kept tokens. `vocab_size`: the requested number of tokens.

    >>> import pipelines
    >>> tok = pipelines.train("corpus/", output="tokenizer", vocab_size=14, quiet=True)
    >>> fewer = pipelines.prune("tokenizer", "corpus/", output="fewer", vocab_size=13)
    >>> set(tok.vocab) - set(fewer.vocab), fewer.more_tokens
    ({'##ug'}, 1)
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

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        said = self.table.warnings()
        if len(self.vocab) > self.vocab_size:
            said.append(
                f"{len(self.vocab):,} tokens are left, not {self.vocab_size:,}: they are special,"
                " or characters of the words, or words would become [UNK] without them"
            )
        return said


def prune_job(options: PruneOptions, progress: Progress) -> Pruned:
    """Prune a tokenizer and write the directory of the new one. Locks the output and the work
    directory.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    return run_on_words(PruneRun, options, progress)


class PruneRun(TokenizerRun[PruneOptions, Pruned]):
    def known(self) -> tuple[dict[str, Any], dict[str, Any]]:
        size = self.options.vocab_size
        check_size(self.tokenizer.spec, size)
        base = {"tokenizer": self.tokenizer.digest}
        identity = {"text": self.text().to_dict(), "base": base, "pruning": {"vocab_size": size}}
        return identity, base | {"pruned_to": size}

    def make(self, table: WordTable) -> Pruned:
        spec, size = self.tokenizer.spec, self.options.vocab_size
        check_same_text(table, spec)
        identity = self.known()[0] | {"word_table": table.digest}
        self.check_output(identity)
        words = OnBeam(table.ranges, self.work, self.options.beam_args)
        with naming(table), self.progress.stage("prune"):
            result = pruned(spec, size, words.each)
        specs = (spec, result.spec)
        unk_scope = self.tokenizer.unk_scope
        before, covered = coverage(table, *(Tokenizer.of(s, unk_scope) for s in specs))
        made = (self.output, table, result.spec, covered, self.seconds(), before)
        done = Pruned(*made, result, size)
        tables = {MERGES: NO_MERGES, PRUNED_IDS: result.ids}
        self.write(done, identity, {"more_tokens": done.more_tokens}, tables)
        return done
