"""Start of a training, for any model: a pass over the words counts it, the job and its workers
share it, and the rounds begin with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from wordpiece_core.options import UNIGRAM, TrainingOptions
from wordpiece_core.tokenizer.models import Bpe
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.tokenizer import Tokenizer
from wordpiece_core.training.alphabet import InitialVocabulary, initial_vocabulary, symbol_passes
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.merging import Merging
from wordpiece_core.training.rounds import Pass, RoundAlgorithm, Sum
from wordpiece_core.training.unigram import Characters, UnigramTraining, character_passes


@dataclass(frozen=True)
class MergingStart:
    """Start of merging. `split_tokens`: number of tokens of all segmentations, with each word
    counted once."""

    vocabulary: InitialVocabulary
    split_tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can hold."""
        tokenizer, model = self.vocabulary.tokenizer, self.vocabulary.model
        of_objects = {
            "model": model and vars(model),
            "tokenizer": tokenizer and tokenizer.spec.to_dict(),
            "split_tokens": self.split_tokens,
        }
        return vars(self.vocabulary) | of_objects

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> MergingStart:
        """Return the start from the result of `to_dict`."""
        spec = value["tokenizer"]
        vocabulary = InitialVocabulary(
            value["tokens"],
            [(symbol, number) for symbol, number in value["alphabet"]],
            by_longest_match=value["by_longest_match"],
            model=None if value["model"] is None else Bpe(**value["model"]),
            hidden=value["hidden"],
            tokenizer=None if spec is None else Tokenizer.from_spec(TokenizerSpec.from_dict(spec)),
            marks=value["marks"],
            max_words=value.get("max_words"),
        )
        return cls(vocabulary, value["split_tokens"])


Start: TypeAlias = MergingStart | Characters
"""Start of a training: of merging, or of a unigram language model."""


def start_passes(options: TrainingOptions, marks: str | None) -> Sequence[Pass]:
    """Return the pass that counts the start of a training as its output `symbols`. `marks`: see
    `TrainingOptions.word_marks`."""
    is_unigram = options.model == UNIGRAM
    return character_passes(options) if is_unigram else symbol_passes(options, marks)


def start_of(symbols: Sum, options: TrainingOptions, marks: str | None) -> Start:
    """Return the start from the output of `start_passes`. Raises OptionError if the vocabulary is
    too small."""
    if options.model == UNIGRAM:
        return Characters.of(symbols.batch, options)
    vocabulary = initial_vocabulary(symbols.batch, options, marks)
    return MergingStart(vocabulary, symbols.facts["symbols"])


def start_from_dict(value: Mapping[str, Any]) -> Start:
    """Return the start from the result of `to_dict`."""
    kind = Characters if "characters" in value else MergingStart
    return kind.from_dict(value)


def algorithm_of(
    start: Start,
    options: TrainingOptions,
    budget: RoundBudget,
    *,
    words: int,
    counting_memory: int | None = None,
    threads: int = 1,
) -> RoundAlgorithm:
    """Return the algorithm before its first round.

    Args:
        words: Number of words in the table.
        counting_memory: Bytes for the tables of one worker.
        threads: Number of threads of the driver.
    """
    if isinstance(start, MergingStart):
        return Merging(
            start.vocabulary,
            options,
            budget,
            split_tokens=start.split_tokens,
            words=words,
            counting_memory=counting_memory,
        )
    return UnigramTraining(
        start, options, budget, words=words, counting_memory=counting_memory, threads=threads
    )
