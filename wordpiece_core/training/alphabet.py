"""The alphabet of a training: which characters, in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from wordpiece_core.errors import OptionError
from wordpiece_core.options import TrainingOptions


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
    """What training begins with. `tokens`: special tokens, then the alphabet, in id order.
    `alphabet`: its symbols and their ids."""

    tokens: list[str]
    alphabet: list[tuple[str, int]]


def initial_vocabulary(symbols: pa.Table, options: TrainingOptions) -> InitialVocabulary:
    """The vocabulary before the first merge.

    `symbols`: see `merge_symbols`. Raises OptionError if the vocabulary is too small for them.
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


def _kept_characters(symbols: pa.Table, options: TrainingOptions) -> set[str]:
    """The initial characters, then the commonest up to the limit (ties: lower code point)."""
    counts: dict[str, int] = {}
    for row in symbols.select(["character", "count"]).to_pylist():
        counts[row["character"]] = counts.get(row["character"], 0) + row["count"]
    initial = set(options.initial_alphabet)
    others = sorted(counts.keys() - initial, key=lambda c: (-counts[c], c))
    limit = options.limit_alphabet
    room = None if limit is None else max(0, limit - len(initial))
    return initial | set(others[:room])
