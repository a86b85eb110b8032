"""What a tokenizer directory tells without any text: its tokens, and the log of its training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipelines.files import outputs, storage
from pipelines.files.filesystems import join
from pipelines.reporting.scripts import scripts_of
from pipelines.training.tokenizer_directory import RUN, TRAINING
from wordpiece_core.errors import InputError
from wordpiece_core.reference import SPECIAL_TOKENS
from wordpiece_core.reference.marks import WORD_END
from wordpiece_core.reference.training import lower_support
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.models import Bpe
from wordpiece_core.tokenizer.vocabulary import is_unused
from wordpiece_core.tokenizer.word_pieces import PREFIX, word_pieces
from wordpiece_core.training.train import MERGES

LOG = {
    "step": pa.int64(),
    "left": pa.string(),
    "right": pa.string(),
    "token": pa.string(),
    "score": pa.float64(),
    "pair_count": pa.int64(),
    "left_count": pa.int64(),
    "right_count": pa.int64(),
}
"""The columns of `merges.parquet`."""
CHANGES = ("extension", "pruning")  # of a vocabulary, as training.json names them
SAMPLE = 24  # characters of a script that are shown
MOST_SIZES = 30  # at which a vocabulary is looked at
COARSE = (1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # times a power of 10
FINE = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0)


@dataclass(frozen=True)
class TrainingLog:
    """What `train`, `extend` or `prune` left in a tokenizer directory. `merges`: the columns of
    `LOG`, or None; the others: JSON objects, or None."""

    merges: pa.Table | None = None
    training: dict[str, Any] | None = None
    run: dict[str, Any] | None = None

    @property
    def made_by(self) -> str:
        """What made the vocabulary: a training, or an extension or pruning of another one."""
        return next((name for name in CHANGES if self._object(name)), "training")

    @property
    def options(self) -> dict[str, Any]:
        """The options of that, as far as they are known."""
        return self._object(self.made_by)

    @property
    def base(self) -> dict[str, Any]:
        """What is known of the tokenizer that was extended or pruned."""
        return self._object("base")

    def _object(self, name: str) -> dict[str, Any]:
        found = (self.training or {}).get(name)
        return found if isinstance(found, dict) else {}


def read_log(place: str) -> TrainingLog:
    """The log in a tokenizer directory; empty for a file. That of `prune`, without merges, is as
    none. InputError if it is not as `train` writes it."""
    entry = storage.info(place)
    if entry is None or entry.kind != "directory":
        return TrainingLog()
    merges = None
    if storage.info(join(place, MERGES)) is not None:
        merges = outputs.read_parquet(join(place, MERGES))
        if any(name not in merges.column_names for name in LOG):
            raise InputError(f"{join(place, MERGES)}: not the log of a training; move it")
        merges = merges.select(list(LOG)).cast(pa.schema(list(LOG.items())))
    training, run = (outputs.read_json(join(place, name)) for name in (TRAINING, RUN))
    log = TrainingLog(
        merges,
        training if isinstance(training, dict) else None,
        run if isinstance(run, dict) else None,
    )
    return replace(log, merges=None) if log.made_by == "pruning" else log


def minimum_pair_counts(log: TrainingLog) -> list[int] | None:
    """The support at each step: how often a pair had to occur to be merged. None if that is not
    known.

    With `min_pair_count: auto` it starts at the largest count of a pair, which the first merge has,
    and falls only when no pair reaches it. So it is always the largest number of its sequence that
    no merge so far was below.
    """
    rule = log.options.get("min_pair_count")
    if log.merges is None or rule is None:
        return None
    counts = log.merges["pair_count"].to_pylist()
    if isinstance(rule, int):
        return [rule] * len(counts)
    found: list[int] = []
    support = counts[0] if counts else 1
    for count in counts:
        while support > max(count, 1):
            support = lower_support(support)
        found.append(support)
    return found


def words_of_text(spec: TokenizerSpec) -> list[str]:
    """The tokens that words are cut into: all but the special ones and [unusedN], in id order."""
    special = {*SPECIAL_TOKENS, *spec.special_tokens}
    return [t for t in spec.vocab if t not in special and not is_unused(t)]


@dataclass(frozen=True)
class Lengths:
    """How many tokens have so many characters: those that begin a word, and those that continue
    one, without their prefix."""

    begin: Counter[int]
    go_on: Counter[int]

    @property
    def longest(self) -> int:
        """The most characters of a token."""
        return max([*self.begin, *self.go_on], default=0)


def lengths(spec: TokenizerSpec) -> Lengths:
    """How long the tokens of a vocabulary are."""
    found = Lengths(Counter(), Counter())
    for token, continues in _bare(spec):
        (found.go_on if continues else found.begin)[len(token)] += 1
    return found


def _bare(spec: TokenizerSpec) -> Iterator[tuple[str, bool]]:
    """The tokens that words are cut into, without prefixes and marks, and whether they continue a
    word."""
    prefix = spec.continuing_prefix
    written = dict(zip(spec.vocab, word_pieces(spec), strict=True))
    for token in words_of_text(spec):
        if spec.model is None:
            continues = bool(prefix) and token.startswith(prefix) and token != prefix
            yield (token.removeprefix(prefix) if continues else token), continues
        else:
            piece = written[token].removesuffix(WORD_END)
            continues = piece.startswith(PREFIX) and token != piece
            yield piece.removeprefix(PREFIX) if continues else piece, continues


@dataclass(frozen=True)
class OfScript:
    """The characters of one script, and the tokens with a character of it. `sample`: some of the
    characters."""

    script: str
    characters: int
    tokens: int
    sample: list[str]


def alphabet(spec: TokenizerSpec) -> list[OfScript]:
    """The characters of a vocabulary by script, the script with the most tokens first."""
    tokens = [token for token, _ in _bare(spec)]
    scripts = scripts_of(set("").union(*tokens))
    characters: dict[str, list[str]] = {}
    for c, script in scripts.items():
        characters.setdefault(script, []).append(c)
    of_tokens: Counter[str] = Counter()
    for token in tokens:
        of_tokens.update({scripts[c] for c in token})
    rows = [
        OfScript(script, len(found), of_tokens[script], found[:SAMPLE])
        for script, found in characters.items()
    ]
    return sorted(rows, key=lambda row: (-row.tokens, row.script))


def at_sizes(spec: TokenizerSpec, log: TrainingLog) -> list[list[str]]:
    """The vocabulary as it was at some sizes while it grew, from the alphabet, or from the
    tokenizer that was extended, to all of it. Empty without a log.

    A training that stops sooner makes the same merges up to there, so these are the vocabularies it
    would have given. An extension that stops sooner may keep other tokens too, which were only on
    the way to longer ones.
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
    """The tokenizer as it was when it had only these of its tokens. Its merges are those before the
    first that made another token."""
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
