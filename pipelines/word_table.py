"""Word tables: directories of Parquet parts with the columns `word: string, count: int64`.

Rows are ordered by count (descending), then word (by code point), over all parts in name order. A
table is whole when it has its `_manifest.json`; until then its parts are in `_staging`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines import outputs
from pipelines.parquet_input import open_parquet
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.errors import InputError, OptionError, OutputError
from wordpiece_core.vocabulary import UNK

MANIFEST = "_manifest.json"
STAGING = "_staging"
READ = ("rows", "nulls", "bytes", "replaced")
TOTALS = ("rows", "nulls", "bytes", "words", "replaced")
ROWS_PER_GROUP = 65_536
SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64())])


@dataclass(frozen=True)
class WordTable:
    """A finished word table."""

    path: str
    parts: list[str]
    totals: dict[str, int] = field(default_factory=dict)
    """`rows`, `nulls`, `bytes`, `words`, `replaced` (invalid UTF-8 sequences), `distinct_words`;
    empty if `count` did not make the table."""
    text: TextOptions | None = None
    """How the words were cut; None if `count` did not make the table."""
    min_word_count: int = 1
    """Rarer words are not in the table."""
    smoothing: dict[str, Any] | None = None
    """If the text had groups: their `column`, the `exponent`, and the `groups` with their `name`
    (or null), the `words` counted, and the `weight` of each."""

    @property
    def is_smoothed(self) -> bool:
        """Whether the counts are not those of the text."""
        return self.smoothing is not None and self.smoothing["exponent"] != 1


@dataclass(frozen=True)
class WordRange:
    """A row group of a word table. `number`: the row groups of the table before it; `first_rank`:
    their rows."""

    path: str
    row_group: int
    number: int
    first_rank: int
    rows: int

    @property
    def name(self) -> str:
        """A name that no other range of the table has, in their order."""
        return f"{self.number:09}"


def prepare(output: str) -> str:
    """Checks that `output` holds an old table, which stays until `finish`, or nothing. Returns the
    directory into which parts are written."""
    names = outputs.list_directory(output)
    manifest = outputs.read_json(outputs.join(output, MANIFEST))
    staging = outputs.join(output, STAGING)
    ours = outputs.exists(staging) if manifest is None else _is_word_table(manifest)
    foreign = [name for name in names if name != MANIFEST and not _is_part(name)]
    if foreign or (names and not ours):
        raise OutputError(
            f"{output}: holds {(foreign or names)[0]}, which is not a word table's;"
            " give another directory"
        )
    outputs.delete(staging)
    outputs.remove_temporaries(output)  # of a manifest that was being written
    outputs.make_directory(staging)
    return staging


def part_name(part: int) -> str:
    """Names in the order of the parts."""
    return f"part-{part:05}.parquet"


def _is_word_table(manifest: Any) -> bool:
    """Whether a manifest is one of this module: encoded shards have another."""
    return isinstance(manifest, dict) and "parts" in manifest


def _is_part(name: str) -> bool:
    return name.startswith("part-") and name.endswith(".parquet")


def write_part(path: str, words: pa.RecordBatch) -> None:
    """Writes a part, in row groups of `ROWS_PER_GROUP`."""
    starts = range(0, max(len(words), 1), ROWS_PER_GROUP)
    groups = (words.slice(start, ROWS_PER_GROUP) for start in starts)
    outputs.write_parquet(path, groups, words.schema, compression="zstd")


def finish(
    output: str,
    totals: dict[str, int],
    text: TextOptions,
    *,
    min_word_count: int = 1,
    smoothing: dict[str, Any] | None = None,
) -> WordTable:
    """Puts the parts from staging in the place of an old table's, then writes the manifest. What
    the arguments are: `WordTable`."""
    staging = outputs.join(output, STAGING)
    parts = [name for name in outputs.list_directory(staging) if _is_part(name)]
    if not parts:  # no word at all
        parts = [part_name(0)]
        write_part(outputs.join(staging, parts[0]), pa.RecordBatch.from_pylist([], SCHEMA))
    for name in (MANIFEST, *filter(_is_part, outputs.list_directory(output))):
        outputs.delete(outputs.join(output, name))
    for name in parts:
        outputs.move(outputs.join(staging, name), outputs.join(output, name))
    rows = sum(part.rows for part in word_ranges(WordTable(output, parts)))
    totals = {key: totals.get(key, 0) for key in TOTALS} | {"distinct_words": rows}
    made = {"min_word_count": min_word_count, "smoothing": smoothing}
    manifest = {"parts": parts, "text": asdict(text), **made, **totals}
    outputs.write_json(outputs.join(output, MANIFEST), manifest)
    outputs.delete(staging)
    return WordTable(output, parts, totals, text, min_word_count, smoothing)


def read_word_table(path: str) -> WordTable:
    """A table that `count` has finished, or any directory of Parquet files with its columns."""
    names = outputs.list_directory(path)
    manifest = outputs.read_json(outputs.join(path, MANIFEST))
    if manifest is not None:
        if not _is_word_table(manifest):
            raise InputError(f"{path}: no word table; give a directory that wordpiece count wrote")
        parts = manifest.pop("parts")
        missing = sorted(set(parts) - set(names))
        if missing:
            raise InputError(f"{path}: part {missing[0]} is missing; run wordpiece count again")
        text = TextOptions(**manifest.pop("text"))
        min_word_count, smoothing = (
            manifest.pop("min_word_count", 1),
            manifest.pop("smoothing", None),
        )
        return WordTable(path, parts, manifest, text, min_word_count, smoothing)
    if outputs.exists(outputs.join(path, STAGING)):
        raise InputError(f"{path}: the word table is not finished; run wordpiece count again")
    parts = [name for name in names if name.endswith(".parquet") and name[0] not in "._"]
    if not parts:
        raise InputError(f"{path}: no word table; give a directory that `wordpiece count` wrote")
    return WordTable(path, parts)


def text_of(tables: Sequence[WordTable], text: TextOptions) -> TextOptions:
    """How the words of tables were cut, which is how text must be cut that goes with them. Tables
    that differ, and options other than the default that say otherwise, are an OptionError; of a
    table of unknown origin `text` is believed."""
    known = [(table.path, table.text) for table in tables if table.text is not None]
    for path, cut in known:
        for name, value in asdict(cut).items():
            (first_path, first), given = known[0], getattr(text, name)
            if value != getattr(first, name):
                other = f"{first_path} with {getattr(first, name)}"
                raise OptionError(f"{name}: {path} was counted with {value}, but {other}")
            if given not in (value, getattr(TextOptions(), name)):
                raise OptionError(f"{name}: {given}, but {path} was counted with {value}")
    return known[0][1] if known else text


def word_ranges(table: WordTable) -> list[WordRange]:
    """The row groups of a table, in order. Checks the columns of each part."""
    ranges: list[WordRange] = []
    rank = 0
    for name in table.parts:
        path = outputs.join(table.path, name)
        with open_parquet(path) as parquet:
            _check_columns(path, parquet.schema_arrow)
            for group in range(parquet.metadata.num_row_groups):
                rows = parquet.metadata.row_group(group).num_rows
                ranges.append(WordRange(path, group, len(ranges), rank, rows))
                rank += rows
    return ranges


def read_words(part: WordRange) -> pa.RecordBatch:
    """The rows of a range."""
    with open_parquet(part.path) as parquet:
        table = parquet.read_row_group(part.row_group, columns=["word", "count"])
    columns = [table["word"].combine_chunks(), table["count"].combine_chunks()]
    return pa.record_batch(columns, names=["word", "count"])


def _check_columns(path: str, schema: pa.Schema) -> None:
    for name, types in (("word", ("string", "large_string")), ("count", ("int64",))):
        kinds = [str(field.type) for field in schema if field.name == name]
        if len(kinds) != 1 or kinds[0] not in types:
            has = kinds[0] if kinds else "missing"
            raise InputError(f"{path}: column {name!r} is {has}, not {types[0]}: no word table")


@dataclass(frozen=True)
class Coverage:
    """What a tokenizer makes of the words of a table, each as often as it was counted."""

    words: int = 0
    tokens: int = 0
    unknown_words: int = 0

    @property
    def tokens_per_word(self) -> float:
        """0 if there are no words."""
        return self.tokens / max(self.words, 1)

    @property
    def unknown_share(self) -> float:
        """Of the words."""
        return self.unknown_words / max(self.words, 1)


def coverage(table: WordTable, tokenizer: Tokenizer) -> Coverage:
    """Encodes the words of a table, a row group at a time."""
    total = tokens = unknown = 0
    for words in map(read_words, word_ranges(table)):
        ids = tokenizer.encode(words["word"], add_special_tokens=False)
        is_unknown = pc.equal(ids.flatten(), tokenizer.ids[UNK])
        rows = pc.unique(pc.list_parent_indices(ids).filter(is_unknown))
        total += _sum(words["count"])
        tokens += _sum(pc.multiply(ids.value_lengths(), words["count"]))
        unknown += _sum(words["count"].take(rows))
    return Coverage(total, tokens, unknown)


def _sum(numbers: pa.Array) -> int:
    return pc.sum(numbers).as_py() or 0


def table_digest(table: WordTable) -> str:
    """SHA-256 of a table's rows, however they are cut into parts: each word and each count, with a
    line end after both."""
    digest = hashlib.sha256()
    for words in map(read_words, word_ranges(table)):
        counts = pc.cast(words["count"], pa.string())
        lines = pc.binary_join_element_wise(words["word"].cast(pa.string()), counts, "", "\n")
        _, offsets, data = lines.buffers()
        if data is not None:
            ends = memoryview(offsets).cast("i")
            digest.update(memoryview(data)[ends[lines.offset] : ends[lines.offset + len(lines)]])
    return digest.hexdigest()
