"""The fields that the results of `train`, `extend` and `prune` share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from pipelines.counting.word_table import WordTable
from pipelines.summary import corpus_lines
from pipelines.training.coverage import Coverage
from wordpiece_core import Tokenizer
from wordpiece_core.summary import Summarized
from wordpiece_core.tokenizer.spec import TokenizerSpec


@dataclass(frozen=True, repr=False)
class NewTokenizer(Summarized):
    """A tokenizer that a job has made from words.

    Attributes:
        output: The tokenizer directory.
        table: The words.
        spec: The tokenizer.
        covered: How the tokenizer segments the words.
        seconds: Seconds by stage.
    """

    output: str
    table: WordTable
    spec: TokenizerSpec
    covered: Coverage
    seconds: dict[str, float]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, ready to encode."""
        return Tokenizer.from_spec(self.spec)

    @property
    def vocab(self) -> list[str]:
        """The tokens in id order."""
        return list(self.spec.vocab)

    def _lines(self, *lines: str) -> list[str]:
        """Return lines about the words, these lines, and lines about the segmentation."""
        table, covered = self.table, self.covered
        found = [*corpus_lines(table.totals, table.min_word_count), *lines]
        if table.is_smoothed:
            found.append(f"tokens per pre-token (smoothed counts): {covered.tokens_per_word:.3f}")
        else:
            in_table = f" of the {covered.words:,} words in the table"
            found.append(
                f"word tokens{in_table * (table.min_word_count > 1)}: {covered.tokens:,},"
                f" {covered.tokens_per_word:.3f} per pre-token"
            )
        found.append(f"unknown words: {covered.unknown_share:.2%}")
        return [*found, f"tokenizer: {self.output}"]

    def _summary(self, counts: dict[str, int], change: dict[str, Any]) -> dict[str, Any]:
        return {
            "output": self.output,
            "vocab_size": len(self.vocab),
            **counts,
            "corpus": self.table.totals,
            **asdict(self.covered),
            "tokens_per_word": self.covered.tokens_per_word,
            **change,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, repr=False)
class ChangedTokenizer(NewTokenizer):
    """A tokenizer that a job has made from another tokenizer.

    Attributes:
        before: How the other tokenizer segments the words.
    """

    before: Coverage

    def _summary(self, counts: dict[str, int], change: dict[str, Any]) -> dict[str, Any]:
        before = {
            "tokens_before": self.before.tokens,
            "unknown_words_before": self.before.unknown_words,
        }
        return super()._summary(counts, before | change)
