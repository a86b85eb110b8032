"""The job `compare`: measure tokenizers on the same text. To add a measure, add it to
`wordpiece_core.measures.Measures`, to `SCHEMA`, and to `pipelines.comparing.table.COLUMNS`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.comparing.measuring import Measured, measure_all
from pipelines.comparing.options import CompareOptions, MeasureOptions, tokenizers_of
from pipelines.comparing.vocab_sizes import at_vocab_sizes
from pipelines.counting.totals import Group
from pipelines.counting.word_table import WordTable, read_word_table
from pipelines.io import inputs
from pipelines.io.reader import warnings_of_text
from pipelines.progress import Progress
from wordpiece_core import TakenAsCasedWarning, TextOptions, Tokenizer
from wordpiece_core.errors import InputError, collected_warnings, opt
from wordpiece_core.measures import Measures, overlap, parity, tokens_of
from wordpiece_core.option_types import path, paths
from wordpiece_core.text_parts import WHITESPACE

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("tokenizer", "group")),
        *((name, pa.int64()) for name in ("words", "tokens")),
        *((name, pa.float64()) for name in ("tokens_per_word", "characters_per_token")),
        *((name, pa.float64()) for name in ("bytes_per_token", "tokens_per_byte")),
        *((name, pa.float64()) for name in ("whole_words", "continued_words")),
        *((name, pa.float64()) for name in ("unknown_words", "dropped_characters")),
        *((name, pa.int64()) for name in ("used_tokens", "rare_tokens")),
        *((name, pa.float64()) for name in ("renyi_efficiency", "overlap", "parity")),
        ("vocab_size", pa.int64()),
    ]
)
"""The columns of a comparison, which docs/guides/compare.md defines."""
OTHERS = ("tokenizer", "group", "overlap", "parity")  # columns without a field of `Measures`
SHARES = {
    "whole_words": "whole_share",
    "continued_words": "continued_share",
    "unknown_words": "unknown_share",
    "dropped_characters": "dropped_share",
}


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        table: A row over all text for each tokenizer, with a null `group`, followed by a row for
            each group.
    """

    table: pa.Table
    more_warnings: Sequence[str] = ()

    def summary(self) -> list[dict[str, Any]]:
        """Return the rows that `wordpiece compare --json` prints."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    def lines(self) -> list[str]:
        """Return the table that `wordpiece compare` prints."""
        from pipelines.comparing.table import table_lines

        return table_lines(self.summary())

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        return list(self.more_warnings)


def compare_job(options: CompareOptions, progress: Progress) -> Comparison:
    """Measure the tokenizers on texts or on a word table.

    Raises InputError, StorageError and OptionError.
    """
    places = tokenizers_of(options.tokenizers)
    loaded, more_warnings = load_all(places)
    at_sizes = at_vocab_sizes(names_of(places), places, loaded, options.vocab_sizes)
    names, tokenizers = map(list, zip(*at_sizes[0], strict=True))
    more_warnings += at_sizes[1]
    options = options.checked()
    measuring = options.select(MeasureOptions)
    how: Any = {"beam_args": options.beam_args, "progress": progress}
    if options.word_counts:
        table = read_word_table(path(options.word_counts))
        measured = measure_all(tokenizers, table, measuring, **how)
        for name, tokenizer in zip(names_of(places), loaded, strict=True):
            more_warnings += warnings_on_table(table, name, tokenizer)
    else:
        files = inputs.resolve(paths(options.on), quoting=not options.no_quoting)
        measured = measure_all(tokenizers, files, measuring, **how)
        more_warnings += warnings_of_text(measured.replaced)
    more_warnings += _warnings_on_words(measured, options)
    rows = list(_rows(names, tokenizers, measured))
    return Comparison(pa.Table.from_pylist(rows, SCHEMA), tuple(dict.fromkeys(more_warnings)))


def load_all(places: Sequence[str | Tokenizer]) -> tuple[list[Tokenizer], list[str]]:
    """Load tokenizers. Returns them, and warnings about how they were read."""
    with collected_warnings() as notable:
        tokenizers = [place if isinstance(place, Tokenizer) else _load(place) for place in places]
    override = "; to override, put it into a directory with a tokenizer_config.json"
    return tokenizers, [
        warning.fact + override * isinstance(warning, TakenAsCasedWarning) for warning in notable
    ]


def _load(place: str) -> Tokenizer:
    try:
        return Tokenizer.load(place)
    except InputError as error:
        if not place.lower().endswith(".txt"):
            raise
        raise InputError(f"{error.template}; or if it is a text, set {opt.on} before it") from error


def names_of(places: Sequence[str | Tokenizer]) -> list[str]:
    """Return the names of tokenizers: their places, or numbers for objects."""
    return [
        place if isinstance(place, str) else f"tokenizer {number}"
        for number, place in enumerate(places, 1)
    ]


def _rows(
    names: Sequence[str], tokenizers: Sequence[Tokenizer], measured: Measured
) -> Iterator[dict[str, Any]]:
    first = tokens_of(tokenizers[0])
    for number, (name, tokenizer) in enumerate(zip(names, tokenizers, strict=True)):
        shared = overlap(tokens_of(tokenizer), first)
        groups = {g: m for (n, g), m in measured.groups.items() if n == number and g is not None}
        relative = parity({group: m.tokens_per_word for group, m in groups.items()})
        parts: list[tuple[Group, Measures]] = [(None, measured.total[number]), *groups.items()]
        for group, measures in parts:
            row = {"tokenizer": name, "group": group, "overlap": shared}
            row |= {n: getattr(measures, SHARES.get(n, n)) for n in SCHEMA.names if n not in OTHERS}
            yield row | {"parity": relative.get(group)}


def _warnings_on_words(measured: Measured, options: CompareOptions) -> Iterator[str]:
    if not measured.total[0].words:
        if options.word_counts:
            yield f"the word table {options.word_counts} is empty; choose another one"
        else:
            yield f"no words in the text; check {opt.text_column}"
    left = measured.groups.get((0, None))
    if options.group_column is not None and left is not None and left.words:
        yield (f"{left.words:,} words have no group (null) and count only in the row of all text")


def warnings_on_table(table: WordTable, name: str, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield warnings if the words of a table differ from the text that a tokenizer would see."""
    if table.min_word_count > 1:
        yield f"{table.path}: counted with {opt.min_word_count}, so rare words are missing"
    if table.is_smoothed:
        yield f"{table.path}: its counts are smoothed, so the metrics differ from the text"
    lost = list(_lost(table.text, tokenizer)) if table.text else []
    if lost:
        done = " and ".join(filter(None, (", ".join(lost[:-1]), lost[-1])))
        not_done = "may not do" if tokenizer.spec.library else "does not do"
        yield (
            f"{table.path}: its words are {done}, which {name} {not_done}; pass the text with"
            f" {opt.on} for its exact metrics"
        )


def _lost(of_table: TextOptions, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield the normalization and pre-tokenization of a table that a tokenizer lacks; all of it for
    a tokenizer that the library `tokenizers` runs."""
    spec = tokenizer.spec
    own, done = spec.text.resolved(), of_table.resolved()
    for option, text in {
        "lowercase": "lowercased",
        "strip_accents": "stripped of accents",
        "clean_text": "without control characters",
        "handle_chinese_chars": "split at each CJK character",
    }.items():
        if done[option] and not own[option]:
            yield text
    if of_table.pre_tokenizer == WHITESPACE:  # as in measuring
        return
    if of_table.pre_tokenizer != own["pre_tokenizer"]:
        yield f"split as {opt.pre_tokenizer} {of_table.pre_tokenizer} splits text"
