"""The facts of a tokenizer directory that need no text: its tokens, and the log of its training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from pipelines.files import outputs
from pipelines.training.tokenizer_directory import NO_MERGES, RUN, TRAINING
from wordpiece_core import storage
from wordpiece_core.errors import InputError
from wordpiece_core.symbols import SPECIAL_TOKENS
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.models import Bpe
from wordpiece_core.tokenizer.vocabulary import is_unused
from wordpiece_core.training.train import MERGES
from wordpiece_core.uri import join

CHANGES = ("extension", "pruning")  # of a vocabulary, as training.json names them
MOST_SIZES = 30  # vocabulary sizes that are measured
COARSE = (1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # times a power of 10
FINE = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0)


@dataclass(frozen=True)
class TrainingLog:
    """What `train`, `extend` or `prune` recorded in a tokenizer directory: the table of merges if
    there is one, and the objects of `training.json` and `run.json`."""

    merges: pa.Table | None = None
    training: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def made_by(self) -> str:
        """What made the vocabulary: a training, or an extension or pruning of another one."""
        return next((name for name in CHANGES if json_object(self.training, name)), "training")

    @property
    def options(self) -> dict[str, Any]:
        """The options of the training, extension or pruning, as far as they are known."""
        return json_object(self.training, self.made_by)


def json_object(value: Any, *names: str) -> dict[str, Any]:
    """The object at a path of names in a JSON value; empty if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def read_log(place: str) -> TrainingLog:
    """The log in a tokenizer directory; empty for a file, and without merges after `prune`.
    InputError if it is not as `train` writes it."""
    entry = storage.info(place)
    if entry is None or entry.kind != "directory":
        return TrainingLog()
    training, run = (json_object(outputs.read_json(join(place, n))) for n in (TRAINING, RUN))
    log = TrainingLog(None, training, run)
    path = join(place, MERGES)
    if log.made_by == "pruning" or storage.info(path) is None:
        return log
    merges = outputs.read_parquet(path)
    schema = NO_MERGES.schema
    if not {*schema.names} <= {*merges.column_names}:
        raise InputError(f"{path}: not the log of a training; move it")
    return replace(log, merges=merges.select(schema.names).cast(schema))


def words_of_text(spec: TokenizerSpec) -> list[str]:
    """The tokens of words: all but the special ones and [unusedN], in id order."""
    special = {*SPECIAL_TOKENS, *spec.special_tokens}
    return [t for t in spec.vocab if t not in special and not is_unused(t)]


def at_sizes(spec: TokenizerSpec, log: TrainingLog) -> list[list[str]]:
    """The vocabulary at some sizes during training or extension, up to the complete one. Empty
    without a log.

    Training with a smaller size makes the same merges up to it, so these are the vocabularies of
    such trainings. A smaller extension may also keep other tokens: steps towards longer ones.
    """
    if log.merges is None:
        return []
    special = {*spec.special_tokens}
    made = [t for t in dict.fromkeys(log.merges["token"].to_pylist()) if t not in special]
    step = {token: number for number, token in enumerate(made)}
    least = sum(token not in step for token in spec.vocab)
    vocab = {*spec.vocab}
    known = [token for token in made if token in vocab]
    found = []
    for size in round_sizes(least, len(spec.vocab)):
        kept = {*known[: size - least]}
        found.append([t for t in spec.vocab if t in kept or t not in step])
    return found


def with_vocabulary(spec: TokenizerSpec, vocab: list[str]) -> TokenizerSpec:
    """The tokenizer with only these of its tokens, and the merges before the first one that made
    another token."""
    if not isinstance(spec.model, Bpe):
        return replace(spec, vocab=vocab)
    ids = {token: i for i, token in enumerate(vocab)}
    merges = []
    for pair in spec.model.merges:
        left, right = (spec.vocab[token] for token in pair)
        if left + right not in ids:
            break
        merges.append((ids[left], ids[right]))
    return replace(spec, vocab=vocab, model=replace(spec.model, merges=merges))


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
