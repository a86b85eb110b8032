"""Parts of files to read, and batches of their rows and texts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.files.input_files import InputFile
from wordpiece_core._kernel import Chunks
from wordpiece_core.declaration import named
from wordpiece_core.errors import ColumnError, OptionError


def warnings_of_text(replaced: int) -> list[str]:
    """The warning for a number of invalid UTF-8 sequences, in a list; none for 0."""
    return [f"{replaced:,} invalid UTF-8 sequences were replaced by U+FFFD"] if replaced else []


@dataclass(frozen=True)
class Range:
    """A part of a file. For Parquet, the row groups [start, end), or the rows [first, last) of one
    row group; for other formats, the lines that start in the bytes [start, end). A file that was
    not looked into has one range, without an `end`. `bytes`: the estimated size of its text,
    uncompressed."""

    file: InputFile
    start: int
    end: int | None
    bytes: int
    rows: tuple[int, int] | None = None


@dataclass(frozen=True)
class TextBatch:
    """Texts as strings, with nulls kept; the number of invalid UTF-8 sequences that were replaced;
    the bytes of the texts; and the group of each text, if groups were asked for."""

    texts: pa.Array
    replaced: int
    bytes: int
    groups: pa.Array | None = None


@dataclass(frozen=True)
class ShardBatch:
    """Consecutive rows of a file: the kept columns, the texts as in `TextBatch`, and the second
    text of each row, if pairs were asked for. `begins`: whether the batch begins a row group, or
    the file. `invalid`: the number of invalid UTF-8 sequences in the kept columns, where they
    stay. `chunks`: with the first batch of a row group, what of it can be copied as it is."""

    table: pa.Table
    texts: pa.Array
    replaced: int
    bytes: int
    pairs: pa.Array | None = None
    begins: bool = True
    invalid: int = 0
    chunks: Chunks | None = None


@dataclass(frozen=True)
class Shard:
    """A file opened for encoding: the schema of the kept columns, in the order of the file, and
    `batches()`, which reads the file from the beginning."""

    schema: pa.Schema
    batches: Callable[[], Iterator[ShardBatch]]


@dataclass(frozen=True)
class TextColumns:
    """The columns, or keys, to read: the text, the second text of a pair, and the group that
    each text belongs to. `keeps_texts`: whether texts are kept if nothing says what is."""

    text: str = "text"
    group: str | None = None
    pair: str | None = None
    keeps_texts: bool = True

    @property
    def names(self) -> list[str]:
        """Those there are, each once."""
        return list(dict.fromkeys(name for name in (self.text, self.pair, self.group) if name))

    def option(self, name: str) -> str:
        """The option that chose a column."""
        if name == self.text:
            return named("text_column")
        return named("text_pair_column") if name == self.pair else named("group_column")

    def check_plain_text(self, path: str) -> None:
        """OptionError if a file of plain text cannot have the columns."""
        if self.names != [self.text]:
            option = self.option(self.names[-1])
            raise OptionError(f"{option}: {path} has no columns; give .parquet, .jsonl or .csv")


def text_batch(valid: object, replaced: int, groups: pa.Array | None = None) -> TextBatch:
    """A batch of texts. `valid`: a string array of pyarrow or of the kernel."""
    texts = pa.array(valid)
    return TextBatch(texts, replaced, text_bytes(texts), groups)


def shard_batch(table: pa.Table, texts: dict[str, TextBatch], columns: TextColumns) -> ShardBatch:
    """A batch of the kept columns and of the texts that were found in `columns`."""
    return ShardBatch(
        table,
        texts[columns.text].texts,
        sum(batch.replaced for batch in texts.values()),
        sum(batch.bytes for batch in texts.values()),
        texts[columns.pair].texts if columns.pair else None,
    )


def text_bytes(texts: pa.Array | pa.ChunkedArray) -> int:
    """The bytes of all texts, string or binary."""
    return pc.sum(pc.binary_length(texts)).as_py() or 0


def kept_columns(
    file: InputFile, names: list[str], columns: list[str] | None, texts: TextColumns
) -> list[str]:
    """The names of the columns to keep, in the order of the file. `columns`: those that were asked
    for; None for the default ones."""
    for name in columns or []:
        if name not in names:
            raise ColumnError(f"{file.path}: no column {name!r} to keep; {it_has(names)}")
    if columns is None:
        held = {name if name in names else name.partition(".")[0] for name in texts.names}
        columns = [name for name in names if texts.keeps_texts or name not in held]
    return [name for name in names if name in columns]


def it_has(names: Sequence[str]) -> str:
    """The columns of a file, for messages."""
    listed = ", ".join(repr(name) for name in names[:20]) or "no columns"
    return f"it has {listed}" + (", ..." if len(names) > 20 else "")
