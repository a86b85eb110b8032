"""Extending a vocabulary: more merges, from the words as it tokenizes them.

The words of a table begin as the tokenizer splits them; from there the rounds are those of any
training (`merging`). Of BPE the new merges come behind the old ones, so that its encoding does just
what the rounds did. Of Unigram a new token scores as its two parts do together, and a little more:
so it replaces them wherever they stand, and changes nothing else. Of WordPiece not every token that
they make is of use to greedy longest match: so the rounds go on until enough of them are.
`tests/oracle/extension.py`, `bpe_training.py` and `unigram_training.py` say exactly
how.
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
from wordpiece_core.training.merging import Merging, splitter
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
PARTS = ("left", "right", "token")  # of a merge
MORE_THAN_PARTS, DECIMALS = 1e-9, 12
"""By how much a new token of Unigram scores more than its parts: more than rounding makes of sums
of scores, and less than two ways to split a word differ by, unless they are equal. And the decimals
of its score, few enough that `tokenizers` reads the number that is written."""
Each = Callable[[Callable[[Batch], Batch]], Iterable[Batch]]
"""Calls a function with the words of each part of a table."""


# --- What is wanted -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """What an extension is to make of a tokenizer. `slots`: ids of tokens that new ones replace,
    none if they are appended. `new_tokens`: how many are wanted."""

    base: TokenizerSpec
    options: ExtensionOptions
    new_tokens: int
    slots: Sequence[int]

    @classmethod
    def of(cls, base: TokenizerSpec, options: ExtensionOptions) -> Goal:
        """The goal of an extension by options. OptionError if the tokenizer does not allow it."""
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
        """The options with which a training of the model of the tokenizer goes on."""
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
        """Segments words by tokens of such a vocabulary."""
        return _kernel.LongestMatch(
            tokens,
            continuing_prefix=self.base.continuing_prefix,
            min_word_count=self.options.min_word_count,
            max_word_length=self.base.max_word_length,
        )


def is_wordpiece(base: TokenizerSpec) -> bool:
    """Whether a tokenizer is WordPiece and splits text as BERT does: others cannot be changed."""
    return isinstance(base.model, WordPiece) and base.words.is_by_options


def _check_model(base: TokenizerSpec, options: ExtensionOptions) -> None:
    """OptionError if a BPE or Unigram tokenizer cannot be extended, or not by such options."""
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
    """OptionError if a tokenizer is not WordPiece. `what`: what cannot be done to it."""
    if not is_wordpiece(base):
        raise OptionError(
            f"tokenizer: only WordPiece can be {what}, and this is {model_name(base.model)};"
            f" train a new tokenizer"
            if not isinstance(base.model, WordPiece)
            else "tokenizer: its normalizer or pre-tokenizer differs from BERT's, so it cannot be"
            f" {what}; train a new tokenizer"
        )


def unused_slots(spec: TokenizerSpec) -> list[int]:
    """The ids of the [unusedN] tokens, as BERT's vocabularies have them, without those that the
    tokenizer looks for in texts: they are in use."""
    special = {*spec.special_tokens}
    found = (i for i, token in enumerate(spec.vocab) if is_unused(token))
    return [i for i in found if spec.vocab[i] not in special]


# --- New symbols ----------------------------------------------------------------------------------


def missing_symbol_passes(goal: Goal) -> Sequence[Pass]:
    """The pass that counts the symbols at which the segmentation of words ends. Its fact
    `split_tokens`: into how many symbols words are split, each word once. Of BPE and Unigram it
    finds none."""
    if isinstance(goal.base.model, Bpe | Unigram):
        of_model = splitter(_vocabulary_of_model(goal), goal.training)

        def only_split(words: Batch) -> Batch:
            counter = _kernel.PairCounter()
            counter.add_splits(of_model.split(words, facts_of(words)["first_rank"]))
            no_symbols = _kernel.symbol_counts(
                words.slice(0, 0), first_rank=0, min_word_count=1, max_word_length=1
            )
            return with_facts(no_symbols, split_tokens=counter.symbols)

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
    """What the rounds begin with: the vocabulary and its new symbols. `symbols`: what
    `missing_symbol_passes` gives. OptionError if there are more symbols than new tokens."""
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
    """The new tokens, from a training that begins with `vocabulary_to_extend`. `make_rounds` makes
    rounds until as many tokens are there as it aims at, or no pair is left."""
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
    """Those of the new tokens that greedy longest match uses, at most so many, without those that
    are in the way of words that the old tokens can segment."""
    while True:
        uses, is_harmful = _uses([*old, *made], len(old), goal, each)
        used = [
            token
            for token, uses_of, harmful in zip(made, uses, is_harmful, strict=True)
            if uses_of and not harmful
        ]
        kept = used[:most]
        # Without tokens that no word uses, all words are segmented as before.
        if len(kept) == len(used) and not any(is_harmful):
            return kept
        made = kept


def _uses(tokens: Sequence[str], old: int, goal: Goal, each: Each) -> tuple[list[bool], list[bool]]:
    """Of each new token, whether a word uses it, and whether it is in the way of one."""
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

    `vocab`: all tokens, in id order. `new_tokens`: those that were added: first new characters,
    then the others in the order they were made. `merges`: the log of the merges, as in
    `TrainingResult`, also of those whose token was not kept. `spec`: the tokenizer. `base`: the one
    that was extended.

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
        """Writes the tokenizer, the log, `merges.parquet`, and `new_tokens.parquet`, the columns of
        `replaced`. Returns the paths."""
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
    """Words, as the tokenizer splits text, with their counts: as for `train`."""


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
    """The result of an extension that is over."""
    vocab = goal.vocabulary(new_tokens)
    merges, base = training_result(merging, rounds).merges, goal.base
    spec = replace(base, vocab=vocab)
    if isinstance(base.model, Bpe | Unigram):
        model = _extended_model(base.model, base.vocab, vocab, merges)
        # All are in the model: else `tokenizers` numbers added tokens behind those of the model.
        spec = replace(spec, model=model, added_tokens=in_model(base.added_tokens))
    return ExtensionResult(vocab, new_tokens, merges, rounds, spec, base)


def _extended_model(
    model: Bpe | Unigram, old: Sequence[str], vocab: Sequence[str], merges: pa.Table
) -> Bpe | Unigram:
    """The model with the merges, or with the scores of what they make. `old`: its vocabulary."""
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
    """The warning if no pair was left to merge before there were enough tokens, else None."""
    made = len(result.new_tokens)
    if made == goal.new_tokens:
        return None
    return f"{made:,} new tokens, not {goal.new_tokens:,}: no pair is left to merge"
