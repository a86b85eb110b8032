"""The alphabet of a training: which characters, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import OptionError
from wordpiece_core.options import TrainingOptions
from wordpiece_core.training.rounds import (
    WORDS,
    Adding,
    Batch,
    Output,
    Pass,
    facts_of,
    with_facts,
)


def symbol_passes(options: TrainingOptions) -> Sequence[Pass]:
    """The pass that counts the symbols of all words. Its fact `characters`: how many there are in
    the words that training takes, each word taken once."""

    def counted(words: Batch) -> Batch:
        symbols = _kernel.symbol_counts(
            words,
            first_rank=facts_of(words)["first_rank"],
            min_word_count=options.min_word_count,
            max_word_length=options.max_word_length,
        )
        return with_facts(symbols, characters=_characters(words, options))

    outputs = {"symbols": Output(lambda parts, _: iter([_add_symbols(list(parts))]))}
    return [Pass("symbols", WORDS, outputs, lambda _: Adding("symbols", counted, _add_symbols))]


def _characters(words: Batch, options: TrainingOptions) -> int:
    lengths = pc.utf8_length(words["word"])
    enough = pc.greater_equal(words["count"], options.min_word_count)
    taken = pc.and_(enough, pc.less_equal(lengths, options.max_word_length))
    return pc.sum(lengths.filter(taken)).as_py() or 0


def _add_symbols(batches: list[Batch]) -> Batch:
    sums = merge_symbols(batches)
    columns = [column.combine_chunks() for column in sums.columns]
    characters = sum(facts_of(batch)["characters"] for batch in batches)
    batch = pa.record_batch(columns, names=sums.column_names)
    return with_facts(batch, characters=characters)


def merge_symbols(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """One row per symbol, from the kernel's `symbol_counts` of all parts of a word table.

    Columns: `character`, `continuing`, `count`, `first_rank`, `first_offset`.
    """
    table = pa.Table.from_batches(list(batches))
    place = ["first_rank", "first_offset"]
    first = table.sort_by([(name, "ascending") for name in place])
    sums = first.group_by(["character", "continuing"], use_threads=False).aggregate(
        [("count", "sum"), ("first_rank", "first"), ("first_offset", "first")]
    )
    return sums.rename_columns(["character", "continuing", "count", *place])


@dataclass(frozen=True)
class InitialVocabulary:
    """The vocabulary before the first merge. `tokens`: the special tokens, then the alphabet, in id
    order. `alphabet`: the symbols of the alphabet and their ids. `by_longest_match`: words begin as
    greedy longest match cuts them, and not as the symbols of the alphabet: `tokens` are those of a
    vocabulary that is extended."""

    tokens: list[str]
    alphabet: list[tuple[str, int]]
    by_longest_match: bool = False


def initial_vocabulary(symbols: pa.RecordBatch, options: TrainingOptions) -> InitialVocabulary:
    """The vocabulary before the first merge.

    `symbols`: the result of `symbol_passes`. Raises OptionError if the vocabulary is too small for
    them.
    """
    kept = _kept_characters(symbols, options)
    prefix = options.continuing_prefix
    rows = sorted(symbols.to_pylist(), key=lambda row: (row["first_rank"], row["first_offset"]))
    seen = dict.fromkeys(
        prefix * row["continuing"] + row["character"] for row in rows if row["character"] in kept
    )
    wanted = {form for c in options.initial_alphabet for form in (c, prefix + c)}
    if options.alphabet_order == "first_seen":
        alphabet = [*seen, *sorted(wanted - seen.keys())]
    else:
        alphabet = sorted(wanted | seen.keys())
    ids = {token: i for i, token in enumerate(dict.fromkeys([*options.special_tokens, *alphabet]))}
    if len(ids) > options.vocab_size:
        raise OptionError(
            f"vocab_size: {options.vocab_size} is too small for {len(options.special_tokens)}"
            f" special tokens and an alphabet of {len(ids) - len(options.special_tokens)};"
            f" make it {len(ids)} or more, or set limit_alphabet"
        )
    return InitialVocabulary(list(ids), [(symbol, ids[symbol]) for symbol in alphabet])


def _kept_characters(symbols: pa.RecordBatch, options: TrainingOptions) -> set[str]:
    """The initial characters, then the commonest up to the limit (ties: lower code point)."""
    counts: dict[str, int] = {}
    for row in symbols.select(["character", "count"]).to_pylist():
        counts[row["character"]] = counts.get(row["character"], 0) + row["count"]
    initial = set(options.initial_alphabet)
    others = sorted(counts.keys() - initial, key=lambda c: (-counts[c], c))
    limit = options.limit_alphabet
    room = None if limit is None else max(0, limit - len(initial))
    return initial | set(others[:room])
