"""What a training begins with, for any model: a pass over the words counts it, job and workers hand
it on, and the rounds are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from wordpiece_core.options import UNIGRAM, TrainingOptions
from wordpiece_core.training.alphabet import InitialVocabulary, initial_vocabulary, symbol_passes
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.merging import Merging
from wordpiece_core.training.rounds import Pass, RoundAlgorithm, Sum
from wordpiece_core.training.unigram import Characters, UnigramTraining, character_passes


class Start(Protocol):
    """What a training begins with."""

    def plain(self) -> dict[str, Any]:
        """As values that JSON can hold; `start_of_plain` makes it of them."""

    def algorithm(
        self,
        options: TrainingOptions,
        budget: RoundBudget,
        *,
        words: int,
        counting_memory: int | None = None,
        threads: int = 1,
    ) -> RoundAlgorithm:
        """The training before its first round. `words`: in the table; `counting_memory`: bytes for
        the tables of one worker; `threads`: of the driver."""


@dataclass(frozen=True)
class MergingStart:
    """What merging begins with. `split_tokens`: of all splits, each word's once."""

    vocabulary: InitialVocabulary
    split_tokens: int

    def plain(self) -> dict[str, Any]:
        """See `Start`."""
        return asdict(self.vocabulary) | {"split_tokens": self.split_tokens}

    def algorithm(
        self,
        options: TrainingOptions,
        budget: RoundBudget,
        *,
        words: int,
        counting_memory: int | None = None,
        threads: int = 1,
    ) -> Merging:
        """See `Start`."""
        return Merging(
            self.vocabulary,
            options,
            budget,
            split_tokens=self.split_tokens,
            words=words,
            counting_memory=counting_memory,
        )


@dataclass(frozen=True)
class UnigramStart:
    """What the training of a unigram language model begins with."""

    characters: Characters

    def plain(self) -> dict[str, Any]:
        """See `Start`."""
        return self.characters.plain()

    def algorithm(
        self,
        options: TrainingOptions,
        budget: RoundBudget,
        *,
        words: int,
        counting_memory: int | None = None,
        threads: int = 1,
    ) -> UnigramTraining:
        """See `Start`."""
        return UnigramTraining(
            self.characters,
            options,
            budget,
            words=words,
            counting_memory=counting_memory,
            threads=threads,
        )


def start_passes(options: TrainingOptions, marks: str | None) -> Sequence[Pass]:
    """The pass that counts what training begins with: its output is `symbols`. `marks`: see
    `word_marks`."""
    is_unigram = options.model == UNIGRAM
    return character_passes(options) if is_unigram else symbol_passes(options, marks)


def start_of(
    symbols: Sum, options: TrainingOptions, marks: str | None
) -> MergingStart | UnigramStart:
    """Of the output of `start_passes`. OptionError if the vocabulary is too small."""
    if options.model == UNIGRAM:
        return UnigramStart(Characters.of(symbols.batch, options))
    vocabulary = initial_vocabulary(symbols.batch, options, marks)
    return MergingStart(vocabulary, symbols.facts["symbols"])


def start_of_plain(value: Mapping[str, Any]) -> MergingStart | UnigramStart:
    """From what `plain` gives."""
    if "characters" in value:
        return UnigramStart(Characters.of_plain(value))
    vocabulary = InitialVocabulary(
        value["tokens"],
        [(symbol, number) for symbol, number in value["alphabet"]],
        by_longest_match=value.get("by_longest_match", False),
        marks=value.get("marks"),
    )
    return MergingStart(vocabulary, value["split_tokens"])
