"""Word tables: directories of Parquet parts with the columns `word: string, count: int64`.

Rows are sorted by count (descending), then by word (by code point), over all parts in the order of
their names. A table is complete when it has its `_manifest.json`, which names its parts
(`pipelines.io.publishing`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.io import outputs
from pipelines.io.lock import LOCK
from pipelines.io.owned import OF_REPOSITORIES
from pipelines.io.parquet_input import open_parquet
from pipelines.io.publishing import STAGING, Publication
from pipelines.io.reader import warnings_of_text
from pipelines.summary import corpus_lines
from wordpiece_core import TextOptions, storage
from wordpiece_core.counting import with_text
from wordpiece_core.errors import InputError, OptionError, OutputError, one_line, opt
from wordpiece_core.summary import Summarized
from wordpiece_core.uri import join

MANIFEST = "_manifest.json"

PART = r"part-\d{5,}\.parquet"
SUMS = ("rows", "nulls", "bytes", "words", "replaced")
SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64())])


@dataclass(frozen=True, repr=False)
class WordTable(Summarized):
    """A finished word table, the result of `pipelines.count`.

    >>> import pipelines
    >>> table = pipelines.count("corpus/", output="words")
    >>> table.totals["distinct_words"], table.read().column_names
    (4, ['word', 'count'])
    """

    path: str
    parts: list[str]
    totals: dict[str, int] = field(default_factory=dict)
    """`rows`, `nulls`, `bytes`, `words`, `replaced` (invalid UTF-8 sequences), `distinct_words`;
    empty if `count` did not make the table."""
    text: TextOptions | None = None
    """Options that split text into words; None if `count` did not make the table."""
    min_word_count: int = 1
    """Words with a smaller count are not in the table."""
    smoothing: dict[str, Any] | None = None
    """If the text had groups: their `column`, the `exponent`, and the `groups` with their `name`
    (or null), the `words` counted, and the `weight` of each."""
    special_tokens: Sequence[str] = ()
    """The tokens that split the text and are not counted."""

    @property
    def is_smoothed(self) -> bool:
        """True if smoothing has changed the counts."""
        return self.smoothing is not None and self.smoothing["exponent"] != 1

    @property
    def text_bytes(self) -> int | None:
        """Bytes of the text, white space included; None unless all its words have their counts."""
        is_complete = self.min_word_count == 1 and not self.is_smoothed
        return self.totals.get("bytes") if is_complete else None

    @cached_property
    def ranges(self) -> list[WordRange]:
        """Row groups at the time of the first call. Reading a part that has changed since is an
        error."""
        return word_ranges(self)

    @property
    def rows(self) -> int:
        """Number of distinct words."""
        return sum(part.rows for part in self.ranges)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the rows, independent of their division into parts. Each row is hashed as
        the word, the count and a line end."""
        digest = hashlib.sha256()
        for words in map(read_words, self.ranges):
            counts = pc.cast(words["count"], pa.string())
            lines = pc.binary_join_element_wise(words["word"].cast(pa.string()), counts, "", "\n")
            _, offsets, data = lines.buffers()
            if data is not None:
                ends = memoryview(offsets).cast("i")
                end = ends[lines.offset + len(lines)]
                digest.update(memoryview(data)[ends[lines.offset] : end])
        return digest.hexdigest()

    def read(self) -> pa.Table:
        """Read all rows as a table with the columns `word` and `count`, which carries the text
        options for `wordpiece_core.train`."""
        batches = map(read_words, self.ranges)
        words = pa.Table.from_batches([batch.cast(SCHEMA) for batch in batches], SCHEMA)
        return words if self.text is None else with_text(words, self.text)

    def summary(self) -> dict[str, Any]:
        """Return the object that `wordpiece count --json` prints."""
        return {"output": self.path, **self.totals, "min_word_count": self.min_word_count}

    def lines(self) -> list[str]:
        """Return the summary that `wordpiece count` prints."""
        return [*corpus_lines(self.totals, self.min_word_count), f"word table: {self.path}"]

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        return warnings_of_text(self.totals.get("replaced", 0))


@dataclass(frozen=True)
class WordRange:
    """A row group of a word table.

    Attributes:
        path: The part.
        size: Size of the part when the job was planned.
        modified: Modification time of the part when the job was planned.
        number: Number of row groups of the table before this one.
        first_rank: Number of rows of the table before this one.
    """

    path: str
    size: int
    modified: int | None
    row_group: int
    number: int
    first_rank: int
    rows: int

    @property
    def name(self) -> str:
        """Name that is unique in the table. Names sort in the order of the ranges."""
        return f"{self.number:09}"


def prepare(output: str) -> Publication:
    """Prepare a new table. An old table stays until the new one is published.

    Raises OutputError if the directory contains other files.
    """
    publication = Publication(output, MANIFEST)
    if storage.info(join(output, STAGING)) is not None:
        publication.recover()
    own = files_of(output)
    names = [entry.name for entry in storage.entries(output, recursive=False)]
    known = {*own, STAGING, OF_REPOSITORIES, LOCK}
    foreign = [name for name in names if name not in known]
    if foreign:
        raise OutputError(
            f"{output}: contains {foreign[0]}, which is not part of a word table; choose"
            " another directory"
        )
    publication.begin()
    return publication


@contextmanager
def new_table(output: str) -> Iterator[Publication]:
    """Prepare a new table, which is discarded if the block ends with an exception."""
    publication = prepare(output)
    try:
        yield publication
    except Exception:
        publication.discard()
        raise


def files_of(output: str) -> list[str]:
    """Return the names of the files of a table; none if there is no table."""
    manifest = outputs.read_json(join(output, MANIFEST))
    if not _is_table(manifest):
        return []
    return [MANIFEST, *_read_manifest(output, manifest).parts]


def part_name(part: int) -> str:
    """Return the name of a part. Names sort in the order of the parts."""
    return f"part-{part:05}.parquet"


def _is_table(manifest: Any) -> bool:
    """Return True for the manifest of a word table, not of another directory."""
    return isinstance(manifest, dict) and "parts" in manifest


def write_part(publication: Publication, part: int, words: pa.RecordBatch, group_rows: int) -> None:
    """Write a part into staging, in row groups of `group_rows`."""
    publication.write(part_name(part), lambda stream: write_words(stream, words, group_rows))


def write_words(stream: pa.NativeFile, words: pa.RecordBatch, group_rows: int) -> None:
    """Write words as a Parquet file, in row groups of `group_rows`."""
    starts = range(0, max(len(words), 1), group_rows)
    groups = (words.slice(start, group_rows) for start in starts)
    outputs.write_tables(stream, groups, words.schema, compression="zstd")


def read_word_table(path: str) -> WordTable:
    """Open a finished word table, or any directory of Parquet files with the same columns."""
    names = outputs.list_directory(path)
    manifest = outputs.read_json(join(path, MANIFEST))
    if manifest is not None:
        if not _is_table(manifest):
            raise InputError(
                f"{path}: not a word table; choose a directory that wordpiece count wrote"
            )
        table = _read_manifest(path, manifest)
        missing = sorted(set(table.parts) - set(names))
        if missing:
            raise _missing_part(path, missing[0])
        return table
    if storage.info(join(path, STAGING)) is not None:
        raise InputError(f"{path}: the word table is incomplete; run wordpiece count again")
    parts = [name for name in names if name.endswith(".parquet") and name[0] not in "._"]
    if not parts:
        raise InputError(
            f"{path}: not a word table; choose a directory that `wordpiece count` wrote"
        )
    return WordTable(path, parts)


def _read_manifest(directory: str, manifest: dict[str, Any]) -> WordTable:
    """Return the table that a manifest describes. Raises InputError for other JSON."""
    try:
        parts = list(manifest["parts"])
        for part in parts:
            if not re.fullmatch(PART, part):
                raise ValueError(f"{part!r} is not part of a word table")
        totals = {name: index(manifest.get(name, 0)) for name in (*SUMS, "distinct_words")}
        text, least = TextOptions(**manifest["text"]), index(manifest.get("min_word_count", 1))
        smoothing = manifest.get("smoothing")
        if smoothing is not None:
            float(smoothing["exponent"])
        special = [str(token) for token in manifest.get("special_tokens", [])]
    except (KeyError, TypeError, ValueError, OptionError) as error:
        place = join(directory, MANIFEST)
        fault = f"not as wordpiece count writes it ({one_line(error)}); run it again"
        raise InputError(f"{place}: {fault}") from error
    return WordTable(directory, parts, totals, text, least, smoothing, special)


def text_of(tables: Sequence[WordTable], text: TextOptions) -> TextOptions:
    """Return the text options that the tables were counted with, or `text` for tables of unknown
    origin.

    Raises OptionError if the tables differ, or if they differ from an option that is set in `text`.
    """
    known = [(table.path, table.text) for table in tables if table.text is not None]
    wanted = text.resolved()
    # The pre-tokenizer first, because gpt2 decides the other options too.
    names = sorted(wanted, key=lambda name: name != "pre_tokenizer")
    for path, options in known:
        first_path, first = known[0]
        for name in names:
            value, other = options.resolved()[name], first.resolved()[name]
            if value != other:
                raise OptionError(
                    f"{opt[name]}: {path} was counted with {value}, but {first_path} with"
                    f" {other}; count both texts with the same options"
                )
            if getattr(text, name) not in (None, ()) and wanted[name] != value:
                raise OptionError(
                    f"{opt[name]}: {wanted[name]}, but {path} was counted with {value}; remove"
                    " it, or count the text again with it"
                )
    return known[0][1] if known else text


def word_ranges(table: WordTable) -> list[WordRange]:
    """Return the row groups of a table in order. Checks the columns of each part, and the number of
    rows."""
    ranges: list[WordRange] = []
    rank = 0
    for file, groups in storage.in_parallel(lambda name: _row_groups(table, name), table.parts):
        for group, rows in enumerate(groups):
            place = (file.path, file.size, file.modified, group)
            ranges.append(WordRange(*place, len(ranges), rank, rows))
            rank += rows
    if rank != table.totals.get("distinct_words", rank):
        raise InputError(
            f"{table.path}: has {rank:,} words, not {table.totals['distinct_words']:,} as its"
            " manifest says; run wordpiece count again"
        )
    return ranges


def _row_groups(table: WordTable, name: str) -> tuple[storage.Found, list[int]]:
    """Return a part and the number of rows in each of its row groups."""
    path = join(table.path, name)
    try:
        file = storage.as_planned(path)
    except storage.MissingError:
        raise _missing_part(table.path, name) from None
    with open_parquet(file) as parquet:
        _check_columns(path, parquet.schema_arrow)
        groups = range(parquet.metadata.num_row_groups)
        return file, [parquet.metadata.row_group(group).num_rows for group in groups]


def read_words(part: WordRange) -> pa.RecordBatch:
    """Read the rows of a range."""
    with open_parquet(part) as parquet:
        table = parquet.read_row_group(part.row_group, columns=["word", "count"])
    columns = [table["word"].combine_chunks(), table["count"].combine_chunks()]
    return pa.record_batch(columns, names=["word", "count"])


def _missing_part(table: str, name: str) -> InputError:
    return InputError(f"{table}: part {name} is missing; run wordpiece count again")


def _check_columns(path: str, schema: pa.Schema) -> None:
    for name, types in (("word", ("string", "large_string")), ("count", ("int64",))):
        kinds = [str(field.type) for field in schema if field.name == name]
        if len(kinds) != 1 or kinds[0] not in types:
            has = kinds[0] if kinds else "missing"
            raise InputError(
                f"{path}: column {name!r} is {has}, not {types[0]}; this is not a word table"
            )
