"""The alphabet of a training: its characters and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.options import TrainingOptions
from wordpiece_core.symbols import BYTES, SPACE_MARK
from wordpiece_core.text_parts import GPT2
from wordpiece_core.tokenizer.models import Bpe
from wordpiece_core.tokenizer.tokenizer import Tokenizer
from wordpiece_core.training.exact_sums import EXACT, as_counts
from wordpiece_core.training.rounds import (
    WORDS,
    Adding,
    Batch,
    Output,
    Pass,
    facts_of,
    with_facts,
)


def symbol_passes(options: TrainingOptions, marks: str | None) -> Sequence[Pass]:
    """Return the pass that counts the symbols of all words. Its fact `symbols` is the number of
    symbols of the words that training uses, with each word counted once. `marks`: see
    `TrainingOptions.word_marks`."""

    def counted(words: Batch) -> Batch:
        symbols = _kernel.symbol_counts(
            words,
            first_rank=facts_of(words)["first_rank"],
            min_word_count=options.min_word_count,
            max_word_length=options.max_word_length,
            word_marks=marks,
        )
        return with_facts(symbols, symbols=_symbols(words, options, marks))

    outputs = {"symbols": Output(lambda parts, _: iter([_add_symbols(list(parts))]))}
    return [Pass("symbols", WORDS, outputs, lambda _: Adding("symbols", counted, _add_symbols))]


def _symbols(words: Batch, options: TrainingOptions, marks: str | None) -> int:
    lengths = pc.utf8_length(words["word"])
    enough = pc.greater_equal(words["count"], options.min_word_count)
    short = pc.and_(pc.greater(lengths, 0), pc.less_equal(lengths, options.max_word_length))
    taken = words["word"].filter(pc.and_(enough, short))
    length = pc.binary_length if marks in (BYTES, GPT2) else pc.utf8_length
    symbols = int(pc.sum(length(taken)).as_py() or 0)
    mark = {BYTES: " ", SPACE_MARK: SPACE_MARK}.get(marks or "")  # before words that lack it
    has_mark = pc.sum(pc.starts_with(taken, mark)).as_py() or 0 if mark else len(taken)
    return symbols + len(taken) - has_mark


def _add_symbols(batches: list[Batch]) -> Batch:
    sums = merge_symbols(batches)
    columns = [column.combine_chunks() for column in sums.columns]
    symbols = sum(facts_of(batch)["symbols"] for batch in batches)
    batch = pa.record_batch(columns, names=sums.column_names)
    return with_facts(batch, symbols=symbols)


def merge_symbols(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return one row per symbol, from `symbol_counts` of the kernel for all parts of a word table.

    Columns: `character`, `marked`, `count`, `first_rank`, `first_offset`. Raises InputError if a
    count exceeds 2^63 - 1.
    """
    table = pa.Table.from_batches(list(batches))
    at = table.schema.get_field_index("count")
    table = table.set_column(at, "count", table["count"].cast(EXACT))
    place = ["first_rank", "first_offset"]
    first = table.sort_by([(name, "ascending") for name in place])
    sums = first.group_by(["character", "marked"], use_threads=False).aggregate(
        [("count", "sum"), ("first_rank", "first"), ("first_offset", "first")]
    )
    sums = sums.rename_columns(["character", "marked", "count", *place])
    at = sums.schema.get_field_index("count")
    return sums.set_column(at, "count", as_counts(sums["count"]))


@dataclass(frozen=True)
class InitialVocabulary:
    """The vocabulary before the first merge.

    Attributes:
        tokens: Special tokens, then the alphabet, in id order.
        alphabet: Symbols of the alphabet with their ids.
        by_longest_match: True if words start as tokens of greedy longest match, not as symbols of
            the alphabet. `tokens` is then a vocabulary that is extended.
        model: Model of the initial tokens, for byte-pair encoding. New pairs must not build its
            tokens.
        hidden: Ids of tokens that no word becomes.
        tokenizer: Tokenizer of the initial tokens, for other models. Words with a hidden token are
            ignored.
        marks: See `TrainingOptions.word_marks`.
        max_words: Maximum number of words of a token, for superwords; then new pairs may build
            existing tokens, and ties go to the smaller ids.
    """

    tokens: list[str]
    alphabet: list[tuple[str, int]]
    by_longest_match: bool = False
    model: Bpe | None = None
    hidden: Sequence[int] = ()
    tokenizer: Tokenizer | None = None
    marks: str | None = None
    max_words: int | None = None

    @property
    def is_sealed(self) -> bool:
        """True if new pairs must not build existing tokens."""
        extends = self.model is not None or self.tokenizer is not None
        return extends and self.max_words is None


def initial_vocabulary(
    symbols: pa.RecordBatch, options: TrainingOptions, marks: str | None
) -> InitialVocabulary:
    """Return the vocabulary before the first merge. `symbols`: the result of `symbol_passes`.
    Raises OptionError if the vocabulary is too small for them."""
    counts = Counter[str]()
    for row in symbols.select(["character", "count"]).to_pylist():
        counts[row["character"]] += row["count"]
    kept = kept_characters(counts, options)
    rows = sorted(symbols.to_pylist(), key=lambda row: (row["first_rank"], row["first_offset"]))
    seen = dict.fromkeys(
        options.symbol(row["character"], row["marked"]) for row in rows if row["character"] in kept
    )
    wanted = options.wanted_symbols()
    if options.alphabet_order == "first_seen":
        alphabet = [*seen, *sorted(wanted - seen.keys())]
    else:
        alphabet = sorted(wanted | seen.keys())
    reserved = reserved_tokens(options)
    ids = {token: i for i, token in enumerate(dict.fromkeys([*reserved, *alphabet]))}
    check_size(len(ids) - len(reserved), options)
    alphabet_ids = [(symbol, ids[symbol]) for symbol in alphabet]
    return InitialVocabulary(list(ids), alphabet_ids, marks=marks)


def kept_characters(counts: Mapping[str, int], options: TrainingOptions) -> set[str]:
    """Return the initial characters, and the most frequent others up to the limit (ties: lower code
    point). Marks of words and characters of bytes are always kept."""
    initial = set(options.initial_alphabet)
    always = set(options.base_alphabet)
    others = sorted(counts.keys() - initial - always, key=lambda c: (-counts[c], c))
    limit = options.limit_alphabet
    room = None if limit is None else max(0, limit - len(initial - always))
    return always | initial | set(others[:room])


def reserved_tokens(options: TrainingOptions) -> list[str]:
    """Return the tokens before the alphabet in id order: special tokens, then byte tokens."""
    return list(dict.fromkeys([*options.listed_tokens, *options.byte_tokens]))


def check_size(alphabet: int, options: TrainingOptions) -> None:
    """Raise OptionError if the vocabulary is too small for the reserved tokens and an alphabet of
    this size."""
    least = len(reserved_tokens(options)) + alphabet
    if least > options.vocab_size:
        and_bytes = ", 256 bytes" if options.byte_fallback else ""
        raise OptionError(
            f"{opt.vocab_size}: {options.vocab_size} is too small for {len(options.listed_tokens)}"
            f" special tokens{and_bytes} and an alphabet of {alphabet};"
            f" make it {least} or more, or set {opt.limit_alphabet}"
        )
