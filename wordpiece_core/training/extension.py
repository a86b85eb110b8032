"""Extending a vocabulary: more merges, from the words as the tokenizer segments them.

The words of a table start as the tokens of the tokenizer, and the rounds are the rounds of any
training (`merging`). The new merges of BPE follow the old ones, so encoding repeats the rounds. A
new token of Unigram scores a little more than its two parts together, so it replaces them wherever
they are adjacent, and changes nothing else. Greedy longest match of WordPiece does not use all
merged tokens, so rounds continue until enough of them are used. `tests/oracle/extension.py`,
`bpe_training.py` and `unigram_training.py` are the specification.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wordpiece_core import _kernel
from wordpiece_core.declared import Form, job
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.options import BPE, UNIGRAM, ExtensionOptions, TrainingOptions
from wordpiece_core.summary import Summarized
from wordpiece_core.symbols import BYTES, byte_tokens
from wordpiece_core.text_parts import GPT2
from wordpiece_core.tokenizer.composing import text_options
from wordpiece_core.tokenizer.models import Bpe, Unigram, WordPiece, in_model, model_name
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.tokenizer import Tokenizer
from wordpiece_core.tokenizer.vocabulary import is_unused
from wordpiece_core.training.alphabet import InitialVocabulary, merge_symbols
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.merging import Merging, split_tokens, splitter
from wordpiece_core.training.rounds import (
    WORDS,
    Adding,
    Batch,
    InMemory,
    Output,
    Pass,
    facts_of,
    make_round,
    with_facts,
)
from wordpiece_core.training.train import (
    MERGES,
    FewerTokensWarning,
    WordCounts,
    parts_of,
    training_result,
    word_batch,
)

NEW_TOKENS = "new_tokens.parquet"
PARTS = ("left", "right", "token")  # columns of merges
MORE_THAN_PARTS, DECIMALS = 1e-9, 12
"""Difference of the scores of a new token of Unigram and its parts: more than rounding errors, and
less than the difference of two segmentations, unless they are equal. The decimals of scores are few
enough that `tokenizers` reads the written number."""
Each = Callable[[Callable[[Batch], Batch]], Iterable[Batch]]
"""Function that calls a function with the words of each part of a table."""


# --- Goal -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """The goal of an extension.

    Attributes:
        slots: Ids of the tokens that new tokens replace; none if new tokens are appended.
        new_tokens: Number of new tokens.
    """

    base: TokenizerSpec
    options: ExtensionOptions
    new_tokens: int
    slots: Sequence[int]

    @classmethod
    def of(cls, base: TokenizerSpec, options: ExtensionOptions) -> Goal:
        """Return the goal for these options. Raises OptionError if the tokenizer cannot be
        extended."""
        options.check_size()
        if isinstance(base.model, Bpe | Unigram):
            _check_model(base, options)
            options = replace(options, criterion="frequency")
        else:
            check_is_wordpiece(base, "extended")
        if options.into == "unused":
            slots = unused_slots(base)
            wanted = len(slots) if options.new_tokens is None else options.new_tokens
            if not slots:
                raise OptionError(f"{opt.into}: the tokenizer has no free [unusedN] tokens")
            if wanted > len(slots):
                raise OptionError(
                    f"{opt.new_tokens}: {wanted:,}, but only {len(slots):,} [unusedN] tokens are"
                    f" free; set fewer, or use {opt.into} append"
                )
            return cls(base, options, wanted, slots[:wanted])
        if options.new_tokens is not None:
            return cls(base, options, options.new_tokens, ())
        size, wanted = len(base.vocab), options.vocab_size or 0
        if wanted <= size:
            raise OptionError(
                f"{opt.vocab_size}: {wanted:,} is not more than the current {size:,} tokens"
            )
        return cls(base, options, wanted - size, ())

    @property
    def training(self) -> TrainingOptions:
        """The options of the rounds."""
        base, options = self.base, self.options
        boundary: Any = base.word_boundary
        if isinstance(base.model, Bpe | Unigram):
            return TrainingOptions(
                vocab_size=len(base.vocab) + self.new_tokens,
                model=BPE,
                word_boundary=boundary,
                min_pair_count=options.min_pair_count,
                min_word_count=options.min_word_count,
                max_token_length=options.max_token_length,
                max_word_length=base.max_word_length,
            )
        return TrainingOptions(
            vocab_size=len(base.vocab) + self.new_tokens,
            criterion=options.criterion,
            min_pair_count=options.min_pair_count,
            min_word_count=options.min_word_count,
            special_tokens=tuple(base.special_tokens),
            max_token_length=options.max_token_length,
            max_word_length=base.max_word_length,
            continuing_prefix=base.continuing_prefix,
        )

    @property
    def recorded(self) -> TrainingOptions:
        """The options with which a training of the same model continues."""
        done, base = self.training, self.base
        if not isinstance(base.model, Unigram):
            return done
        unk = base.roles["unk_token"]
        return TrainingOptions(
            model=UNIGRAM,
            vocab_size=done.vocab_size,
            min_word_count=done.min_word_count,
            special_tokens=tuple(dict.fromkeys([unk, *base.special_tokens])),
            unk_token=unk,
            max_token_length=done.max_token_length,
            max_word_length=done.max_word_length,
        )

    def vocabulary(self, new_tokens: Sequence[str]) -> list[str]:
        """Return the vocabulary with new tokens: in the slots first, and the rest at the end."""
        extended = list(self.base.vocab)
        for slot, token in zip(self.slots, new_tokens, strict=False):
            extended[slot] = token
        return extended + list(new_tokens[len(self.slots) :])

    def longest_match(self, tokens: Sequence[str]) -> _kernel.LongestMatch:
        """Return the segmentation of words by a vocabulary with these tokens."""
        return _kernel.LongestMatch(
            tokens,
            continuing_prefix=self.base.continuing_prefix,
            min_word_count=self.options.min_word_count,
            max_word_length=self.base.max_word_length,
        )


def is_wordpiece(base: TokenizerSpec) -> bool:
    """Return True for WordPiece with words that text options give. Other tokenizers cannot be
    changed."""
    return isinstance(base.model, WordPiece) and base.words.is_by_options


def _check_model(base: TokenizerSpec, options: ExtensionOptions) -> None:
    """Raise OptionError if a BPE or Unigram tokenizer cannot be extended, or not with these
    options."""
    text = text_options(base)
    if base.of_sentencepiece:
        raise OptionError(
            f"{opt.tokenizer}: a sentencepiece model cannot be extended; use its tokenizer.json"
        )
    if base.word_boundary is None or (base.word_boundary == BYTES) != text.holds_spaces:
        raise OptionError(
            f"{opt.tokenizer}: only BPE with a word-boundary marker can be extended; train a new"
            " tokenizer"
        )
    for name, is_given in (
        ("criterion", options.criterion != "pmi"),
        ("new_characters", options.new_characters != 0),
        ("into", options.into != "append"),
    ):
        if is_given:
            raise OptionError(f"{opt[name]}: only for WordPiece; remove it")


def check_is_wordpiece(base: TokenizerSpec, what: str) -> None:
    """Raise OptionError if a tokenizer is not WordPiece. `what`: the impossible change."""
    if not is_wordpiece(base):
        raise OptionError(
            f"tokenizer: only WordPiece can be {what}, and this is {model_name(base.model)};"
            f" train a new tokenizer"
            if not isinstance(base.model, WordPiece)
            else "tokenizer: its normalizer or pre-tokenizer differs from BERT's, so it cannot be"
            f" {what}; train a new tokenizer"
        )


def unused_slots(spec: TokenizerSpec) -> list[int]:
    """Return the ids of the [unusedN] tokens of a BERT vocabulary, without added tokens, which are
    in use."""
    special = {*spec.special_tokens}
    found = (i for i, token in enumerate(spec.vocab) if is_unused(token))
    return [i for i in found if spec.vocab[i] not in special]


# --- New symbols ----------------------------------------------------------------------------------


def missing_symbol_passes(goal: Goal) -> Sequence[Pass]:
    """Return the pass that counts the symbols at which the segmentation of words ends. Its fact
    `split_tokens` is the number of tokens of all segmentations, with each word counted once. BPE
    and Unigram have no such symbols."""
    if isinstance(goal.base.model, Bpe | Unigram):
        of_model = splitter(_vocabulary_of_model(goal), goal.training)

        def only_split(words: Batch) -> Batch:
            tokens = split_tokens(of_model, words, facts_of(words)["first_rank"])
            no_symbols = _kernel.symbol_counts(
                words.slice(0, 0), first_rank=0, min_word_count=1, max_word_length=1
            )
            return with_facts(no_symbols, split_tokens=tokens)

        return _symbol_passes(only_split)
    longest = goal.longest_match(goal.base.vocab)

    def counted(words: Batch) -> Batch:
        symbols, tokens = longest.missing_symbols(words, facts_of(words)["first_rank"])
        return with_facts(symbols, split_tokens=tokens)

    return _symbol_passes(counted)


def _symbol_passes(counted: Callable[[Batch], Batch]) -> Sequence[Pass]:
    outputs = {"symbols": Output(lambda parts, _: iter([_add_symbols(list(parts))]))}
    return [Pass("symbols", WORDS, outputs, lambda _: Adding("symbols", counted, _add_symbols))]


def _add_symbols(batches: list[Batch]) -> Batch:
    sums = merge_symbols(batches)
    columns = [column.combine_chunks() for column in sums.columns]
    tokens = sum(facts_of(batch)["split_tokens"] for batch in batches)
    return with_facts(pa.record_batch(columns, names=sums.column_names), split_tokens=tokens)


def vocabulary_to_extend(symbols: Batch, goal: Goal) -> InitialVocabulary:
    """Return the vocabulary at the start of the rounds, with new symbols. `symbols`: the result of
    `missing_symbol_passes`. Raises OptionError for more symbols than new tokens."""
    if isinstance(goal.base.model, Bpe | Unigram):
        return _vocabulary_of_model(goal)
    counts: dict[str, int] = {}
    for row in symbols.select(["character", "count"]).to_pylist():
        counts[row["character"]] = counts.get(row["character"], 0) + row["count"]
    wanted = goal.options.new_characters
    most = None if isinstance(wanted, str) else wanted
    kept = {*sorted(counts, key=lambda c: (-counts[c], c))[:most]}
    prefix = goal.base.continuing_prefix
    rows = symbols.to_pylist()
    new = {prefix * row["marked"] + row["character"] for row in rows if row["character"] in kept}
    if len(new) > goal.new_tokens:
        raise OptionError(
            f"{opt.new_tokens}: {goal.new_tokens:,} are too few for {len(new):,} new characters, at"
            f" word starts and inside words; increase it, or reduce {opt.new_characters}"
        )
    return InitialVocabulary([*goal.base.vocab, *sorted(new)], [], by_longest_match=True)


def _vocabulary_of_model(goal: Goal) -> InitialVocabulary:
    base, tokens = goal.base, list(goal.base.vocab)
    hidden, of_bytes = {*base.special_tokens}, base.word_boundary == BYTES
    if not of_bytes:
        hidden |= {*base.roles.values(), *byte_tokens(True)}
    ids = [i for i, token in enumerate(tokens) if token in hidden]
    if of_bytes:
        assert isinstance(base.model, Bpe)
        return InitialVocabulary(tokens, [], model=base.model, hidden=ids, marks=GPT2)
    tokenizer, marks = Tokenizer.from_spec(base), base.word_boundary
    return InitialVocabulary(tokens, [], hidden=ids, tokenizer=tokenizer, marks=marks)


# --- New tokens -----------------------------------------------------------------------------------


def extended(
    merging: Merging, goal: Goal, make_rounds: Callable[[], None], each: Each
) -> list[str]:
    """Return the new tokens of a training that starts with `vocabulary_to_extend`. `make_rounds`:
    run rounds until the training has enough tokens, or no pair is left."""
    old = merging.vocabulary.tokens
    symbols = old[len(goal.base.vocab) :]
    room = wanted = goal.new_tokens - len(symbols)
    while True:
        merging.aim_at(len(old) + wanted)
        if merging.trainer.vocab_size < len(old) + wanted:
            make_rounds()
        made = merging.trainer.tokens[len(old) : len(old) + wanted]
        if merging.vocabulary.is_sealed:
            return made
        kept = kept_tokens(old, made, room, goal, each)
        if len(kept) == room or len(made) < wanted:
            return [*symbols, *kept]
        wanted += room - len(kept)


def kept_tokens(
    old: Sequence[str], made: Sequence[str], most: int, goal: Goal, each: Each
) -> list[str]:
    """Return the new tokens that greedy longest match uses, at most `most`, without tokens that
    prevent the segmentation of words that the old tokens can segment."""
    while True:
        uses, is_harmful = _uses([*old, *made], len(old), goal, each)
        used = [
            token
            for token, uses_of, harmful in zip(made, uses, is_harmful, strict=True)
            if uses_of and not harmful
        ]
        kept = used[:most]
        # Without unused tokens, all words are segmented as before.
        if len(kept) == len(used) and not any(is_harmful):
            return kept
        made = kept


def _uses(tokens: Sequence[str], old: int, goal: Goal, each: Each) -> tuple[list[bool], list[bool]]:
    """Return for each new token if a word uses it, and if it prevents the segmentation of a
    word."""
    longest = goal.longest_match(tokens)
    uses = is_harmful = pa.array([False] * (len(tokens) - old), pa.bool_())
    for batch in each(lambda words: pa.record_batch(longest.uses(words, old))):
        uses = pc.or_(uses, pc.greater(batch["uses"][old:], 0))
        is_harmful = pc.or_(is_harmful, batch["is_harmful"][old:])
    return uses.to_pylist(), is_harmful.to_pylist()


# --- In memory ------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ExtensionResult(Summarized):
    """An extended vocabulary.

    Attributes:
        vocab: Tokens in id order.
        new_tokens: Added tokens: first new characters, then merged tokens in order.
        merges: Log of all merges, as in `TrainingResult`, including unused tokens.
        spec: Specification of the extended tokenizer.
        base: Specification of the old tokenizer.

    >>> result = extend(Tokenizer(["[UNK]", "a", "##b"]), {"ab": 3}, new_tokens=1)
    >>> result.vocab, result.new_tokens
    (['[UNK]', 'a', '##b', 'ab'], ['ab'])
    """

    vocab: list[str]
    new_tokens: list[str]
    merges: pa.Table
    rounds: int
    spec: TokenizerSpec
    base: TokenizerSpec

    def summary(self) -> dict[str, int]:
        """Return the numbers of tokens and of added tokens."""
        return {"vocab_size": len(self.vocab), "new_tokens": len(self.new_tokens)}

    @property
    def replaced(self) -> pa.Table:
        """A row for each new token: `new_id`, `token`, and the old tokens that it replaces, as
        `old_ids` and `old_tokens`. The mean of their embeddings is a good initial embedding. A
        new character replaces the unknown token.

        >>> extend(Tokenizer(["[UNK]", "a", "##b"]), {"ab": 3}, new_tokens=1).replaced.to_pylist()
        [{'new_id': 3, 'token': 'ab', 'old_ids': [1, 2], 'old_tokens': ['a', '##b']}]
        """
        base, ids = self.base, {token: i for i, token in enumerate(self.vocab)}
        known, unk = {*base.vocab}, base.roles.get("unk_token")
        parts: dict[str, list[str]] = {}

        def parts_of(token: str) -> list[str]:
            unknown = [unk] if unk is not None else []
            return [token] if token in known else parts.get(token, unknown)

        for row in self.merges.select(["left", "right", "token"]).to_pylist():
            parts.setdefault(row["token"], parts_of(row["left"]) + parts_of(row["right"]))
        old_tokens = [parts_of(token) for token in self.new_tokens]
        old_ids = {token: i for i, token in enumerate(base.vocab)}
        return pa.table(
            {
                "new_id": pa.array([ids[token] for token in self.new_tokens], pa.int32()),
                "token": pa.array(self.new_tokens, pa.string()),
                "old_ids": pa.array(
                    [[old_ids[t] for t in tokens] for tokens in old_tokens], pa.list_(pa.int32())
                ),
                "old_tokens": pa.array(old_tokens, pa.list_(pa.string())),
            }
        )

    def tokenizer(self) -> Tokenizer:
        """Return the extended tokenizer."""
        return Tokenizer.from_spec(self.spec)

    def save(self, directory: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write the tokenizer, the log, `merges.parquet`, and `new_tokens.parquet` with the columns
        of `replaced`. Returns the paths."""
        paths = self.tokenizer().save(directory)
        tables = {MERGES: self.merges, NEW_TOKENS: self.replaced}
        for name, table in tables.items():
            pq.write_table(table, os.path.join(directory, name), compression="zstd")
        return (*paths, *(os.path.join(directory, name) for name in tables))


@dataclass(frozen=True, kw_only=True)
class InMemoryExtension(RoundBudget, ExtensionOptions):
    """Arguments of `extend`."""

    tokenizer: Annotated[Tokenizer, Form("", check=lambda value: value)] = field(kw_only=False)
    """The tokenizer to extend."""
    word_counts: WordCounts = field(kw_only=False)
    """Words with their counts, as the tokenizer splits text; see `train`."""


@job(InMemoryExtension)
def extend(options: InMemoryExtension) -> ExtensionResult:
    """Add tokens for the words of a domain to a vocabulary. All old tokens keep their ids, and
    texts without new tokens keep their ids.

    Raises:
        OptionError: For a wrong option.
        InputError: For a table without words and counts.

    >>> tok = Tokenizer(["[UNK]", "h", "p", "##u", "##g", "##n"])
    >>> result = extend(tok, {"hug": 10, "pug": 5, "pun": 12}, new_tokens=2, min_pair_count=1)
    >>> result.new_tokens, result.tokenizer().tokenize("hug pun")
    (['hug', 'pu'], ['hug', 'pu', '##n'])
    >>> result.merges["token"].to_pylist()  # 'hu' was only on the way to 'hug'
    ['hu', 'hug', 'pu']
    """
    goal = Goal.of(options.tokenizer.spec, options.select(ExtensionOptions))
    budget, words = options.select(RoundBudget), word_batch(options.word_counts)
    parts = partial(parts_of, words)
    (symbols,) = InMemory(parts).run(partial(missing_symbol_passes, goal))["symbols"]
    merging = Merging(
        vocabulary_to_extend(symbols.batch, goal),
        goal.training,
        budget,
        split_tokens=symbols.facts["split_tokens"],
        words=len(words),
    )
    executor = InMemory(parts, merging.first_kept)
    rounds = 0

    def make_rounds() -> None:
        nonlocal rounds
        is_over = False
        while not is_over:
            done = make_round(merging, executor, lambda merges, tokens: None)
            rounds, is_over = rounds + 1, done.is_last

    new_tokens = extended(merging, goal, make_rounds, executor.each)
    result = extension_result(merging, goal, new_tokens, rounds)
    fewer = fewer_new_tokens(result, goal)
    if fewer:
        warnings.warn(fewer, FewerTokensWarning, stacklevel=3)
    return result


def extension_result(
    merging: Merging, goal: Goal, new_tokens: list[str], rounds: int
) -> ExtensionResult:
    """Return the result of a finished extension."""
    vocab = goal.vocabulary(new_tokens)
    merges, base = training_result(merging, rounds).merges, goal.base
    spec = replace(base, vocab=vocab)
    if isinstance(base.model, Bpe | Unigram):
        model = _extended_model(base.model, base.vocab, vocab, merges)
        # All of them are tokens of the model. Otherwise `tokenizers` gives them higher ids.
        spec = replace(spec, model=model, added_tokens=in_model(base.added_tokens))
    return ExtensionResult(vocab, new_tokens, merges, rounds, spec, base)


def _extended_model(
    model: Bpe | Unigram, old: Sequence[str], vocab: Sequence[str], merges: pa.Table
) -> Bpe | Unigram:
    """Return the model with the new merges, or with the scores of merged tokens. `old`: its
    vocabulary."""
    parts = zip(*(merges[side].to_pylist() for side in PARTS), strict=True)
    if isinstance(model, Bpe):
        ids = {token: i for i, token in enumerate(vocab)}
        new = dict.fromkeys((ids[left], ids[right]) for left, right, _ in parts)
        return replace(model, merges=[*model.merges, *new])
    scores = dict(zip(old, model.scores, strict=True))
    for left, right, token in parts:
        score = scores[left] + scores[right] + MORE_THAN_PARTS
        scores.setdefault(token, round(score, DECIMALS))
    return replace(model, scores=[scores[token] for token in vocab])


def fewer_new_tokens(result: ExtensionResult, goal: Goal) -> str | None:
    """Return the warning if no pair was left before there were enough tokens, else None."""
    made = len(result.new_tokens)
    if made == goal.new_tokens:
        return None
    return f"{made:,} new tokens, not {goal.new_tokens:,}: no pair is left to merge"
