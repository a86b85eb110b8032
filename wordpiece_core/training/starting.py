"""What a training begins with, for any model: a pass over the words counts it, job and workers hand
it on, and the rounds are made of it."""

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
    """What merging begins with. `split_tokens`: of all splits, each word's once."""

    vocabulary: InitialVocabulary
    split_tokens: int

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        tokenizer, model = self.vocabulary.tokenizer, self.vocabulary.model
        of_objects = {
            "model": model and vars(model),
            "tokenizer": tokenizer and tokenizer.spec.to_dict(),
            "split_tokens": self.split_tokens,
        }
        return vars(self.vocabulary) | of_objects

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> MergingStart:
        """From what `to_dict` returns."""
        spec = value["tokenizer"]
        vocabulary = InitialVocabulary(
            value["tokens"],
            [(symbol, number) for symbol, number in value["alphabet"]],
            by_longest_match=value["by_longest_match"],
            model=None if value["model"] is None else Bpe(**value["model"]),
            hidden=value["hidden"],
            tokenizer=None if spec is None else Tokenizer.from_spec(TokenizerSpec.from_dict(spec)),
            marks=value["marks"],
        )
        return cls(vocabulary, value["split_tokens"])


Start: TypeAlias = MergingStart | Characters
"""What a training begins with: merging, or that of a unigram language model."""


def start_passes(options: TrainingOptions, marks: str | None) -> Sequence[Pass]:
    """The pass that counts what training begins with: its output is `symbols`. `marks`: see
    `word_marks`."""
    is_unigram = options.model == UNIGRAM
    return character_passes(options) if is_unigram else symbol_passes(options, marks)


def start_of(symbols: Sum, options: TrainingOptions, marks: str | None) -> Start:
    """Of the output of `start_passes`. OptionError if the vocabulary is too small."""
    if options.model == UNIGRAM:
        return Characters.of(symbols.batch, options)
    vocabulary = initial_vocabulary(symbols.batch, options, marks)
    return MergingStart(vocabulary, symbols.facts["symbols"])


def start_from_dict(value: Mapping[str, Any]) -> Start:
    """From what `plain` of either gives."""
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
    """The training before its first round. `words`: in the table; `counting_memory`: bytes for the
    tables of one worker; `threads`: of the driver."""
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
