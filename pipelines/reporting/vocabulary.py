"""The facts of a tokenizer directory that need no text: its tokens, and the log of its training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pipelines.comparing.vocab_sizes import read_merge_log
from pipelines.io import outputs
from pipelines.training.tokenizer_directory import RUN, TRAINING
from wordpiece_core import storage
from wordpiece_core.symbols import SPECIAL_TOKENS
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.vocabulary import is_unused
from wordpiece_core.training.vocab_sizes import at_size, least_size, merged_tokens
from wordpiece_core.uri import join

CHANGES = ("extension", "pruning")  # of a vocabulary, as training.json names them
MOST_SIZES = 30  # vocabulary sizes that are measured
COARSE = (1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # times a power of 10
FINE = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0)


@dataclass(frozen=True)
class TrainingLog:
    """The records of `train`, `extend` or `prune` in a tokenizer directory: the tokens of the merge
    log if there is one, and the objects of `training.json` and `run.json`."""

    merged: list[str] | None = None
    training: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def made_by(self) -> str:
        """The origin of the vocabulary: a training, or an extension or pruning of another one."""
        return next((name for name in CHANGES if json_object(self.training, name)), "training")

    @property
    def options(self) -> dict[str, Any]:
        """The known options of the training, extension or pruning."""
        return json_object(self.training, self.made_by)


def json_object(value: Any, *names: str) -> dict[str, Any]:
    """The object at a path of names in a JSON value; empty if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def read_log(place: str) -> TrainingLog:
    """Read the records in a tokenizer directory; none for a file, and no merges after `prune`.

    Raises InputError if a file is not as `train` writes it.
    """
    entry = storage.info(place)
    if entry is None or entry.kind != "directory":
        return TrainingLog()
    training, run = (json_object(outputs.read_json(join(place, n))) for n in (TRAINING, RUN))
    return TrainingLog(read_merge_log(place), training, run)


def words_of_text(spec: TokenizerSpec) -> list[str]:
    """The tokens of words: all but the special ones and [unusedN], in id order."""
    special = {*SPECIAL_TOKENS, *spec.special_tokens}
    return [t for t in spec.vocab if t not in special and not is_unused(t)]


def smaller_sizes(spec: TokenizerSpec, log: TrainingLog) -> dict[int, TokenizerSpec]:
    """Return the tokenizer at some smaller vocabulary sizes, by size. Empty if the order of its
    merges is not known. After an extension, the sizes begin at the base tokenizer, and a smaller
    extension may also keep other tokens: steps towards longer ones."""
    merged = merged_tokens(spec, log.merged)
    if merged is None:
        return {}
    sizes = round_sizes(least_size(spec, merged), len(spec.vocab))
    return {size: at_size(spec, merged, size) for size in sizes[:-1]}


def round_sizes(least: int, most: int) -> list[int]:
    """Round numbers between the least and the most, and these: many close ones if there are not too
    many, otherwise some ten for each power of ten.

    >>> round_sizes(7_000, 9_100)
    [7000, 8000, 9000, 9100]
    """
    for numbers in (FINE, COARSE):
        rounds = {round(n * 10**power) for power in range(len(str(most))) for n in numbers}
        found = sorted({least, most} | {n for n in rounds if least < n < most})
        if len(found) <= MOST_SIZES:
            break
    return found
