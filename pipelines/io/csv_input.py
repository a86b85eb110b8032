"""Read CSV and TSV: rows of strings under the names in the first row.

Every value is an unchanged string, and no value is null, so columns do not depend on guesses from
the first rows. A quoted field may contain line breaks, so a file is one range. Quotes follow RFC
4180, in TSV too, unless quoting is turned off.

Arrow parses blocks of complete rows, whose ends the kernel finds.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

import pyarrow as pa
import pyarrow.csv as pc

from pipelines.io.columns import check_once
from pipelines.io.decompression import Stream, check_text, decompressed
from pipelines.io.line_input import BYTE_ORDER_MARK
from pipelines.io.reader import Range, Reader, Rows
from pipelines.io.reading import bad_data, open_planned
from wordpiece_core._kernel import CsvRows, repair_utf8
from wordpiece_core.errors import InputError, opt

DELIMITERS = {"csv": ",", "tsv": "\t"}
_FIELDS = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


class CsvReader(Reader):
    """Reader of columns of strings."""

    @cached_property
    def names(self) -> list[str]:
        """Names of all columns. Raises ColumnError if a column of texts is missing."""
        with self._blocks() as blocks:
            first = next(blocks, (b"", 0))[0]
        text = io.StringIO(first.decode(errors="surrogateescape"), newline="")
        quote = '"' if self.file.quoting else None
        rows = csv.reader(text, delimiter=DELIMITERS[self.file.format], quotechar=quote)
        with bad_data(self.file.path):
            found = next(filter(None, rows), [])
            names = [name.encode(errors="surrogateescape").decode() for name in found]
        if not names:
            raise InputError(
                f"{self.file.path}: the file is empty; the first row must contain the column names"
            )
        for name in self.columns.names:
            if name not in names:
                raise self.columns.missing(self.file.path, name, names)
        check_once(self.file.path, names, *self.columns.names)
        return names

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """Return the columns in the first row."""
        check_once(self.file.path, self.names, *self.kept_columns(self.names, kept))
        return pa.schema([(name, pa.string()) for name in self.names])

    def ranges(self, range_bytes: int) -> list[Range]:
        """Return the only range."""
        return self.one_range() if self.names else []

    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """Yield the rows in order."""
        names = [name for name in self.names if name in {*kept.names, *self.columns.names}]
        with self._blocks(self.on_read) as blocks:
            for block, before in blocks:
                table = self._parsed(block, names, before)
                yield _repaired(table if before else table.slice(1))

    @contextmanager
    def _blocks(
        self, on_read: Callable[[int], object] | None = None
    ) -> Iterator[Iterator[tuple[bytes, int]]]:
        """Yield blocks of complete rows without byte order mark, and the number of rows before."""
        with open_planned(self.file) as stored, bad_data(self.file.path):
            check_text(self.file, stored)
            yield self._complete_rows(decompressed(self.file, stored, on_read))

    def _complete_rows(self, stream: Stream) -> Iterator[tuple[bytes, int]]:
        size, longest = self.limits.block_bytes, self.limits.longest_csv_row
        rows = CsvRows(DELIMITERS[self.file.format], quoting=self.file.quoting)
        before, pieces = 0, list[bytes]()
        mark = _read(stream, len(BYTE_ORDER_MARK))
        chunk = mark.removeprefix(BYTE_ORDER_MARK) or _read(stream, size)
        try:
            while chunk:
                end = rows.scan(chunk)
                pieces.append(chunk[: end or None])
                if end:
                    yield b"".join(pieces), before
                    before, pieces = rows.rows, [chunk[end:]]
                elif sum(map(len, pieces)) > longest:
                    raise InputError(
                        f"row {rows.rows + 1}: more than {longest >> 20} MiB; a quote may be"
                        " unclosed"
                    )
                chunk = _read(stream, size)
            rows.finish()
        except InputError as error:
            fix = f"; set {opt.no_quoting} if quotes are text" * self.file.quoting
            raise InputError(f"{self.file.path} {error}{fix}") from error
        if any(pieces):
            yield b"".join(pieces), before

    def _parsed(self, block: bytes, names: list[str], before: int) -> pa.Table:
        """Parse columns of a block of complete rows as bytes."""
        # Names may occur twice, so columns are named by their numbers.
        wanted = [str(self.names.index(name)) for name in names]
        try:
            table = pc.read_csv(
                pa.BufferReader(block),
                pc.ReadOptions(
                    use_threads=False,
                    block_size=len(block),
                    column_names=[str(number) for number in range(len(self.names))],
                ),
                pc.ParseOptions(
                    delimiter=DELIMITERS[self.file.format],
                    quote_char='"' if self.file.quoting else False,
                    newlines_in_values=True,
                ),
                pc.ConvertOptions(
                    check_utf8=False,
                    column_types=dict.fromkeys(wanted, pa.binary()),
                    include_columns=wanted,
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            found = _FIELDS.match(str(error))
            if not found:
                raise
            row, expected, actual = found.groups()
            raise InputError(
                f"{self.file.path} row {before + int(row)}: {actual} fields, but the first row"
                f" has {expected}"
            ) from error
        return table.rename_columns(names)


def _read(stream: Stream, size: int) -> bytes:
    """Read `size` bytes, or fewer at the end."""
    pieces = []
    while size and (data := stream.read(size)):
        pieces.append(data)
        size -= len(data)
    # Arrow's parser searches quotes with instructions that stop at a zero byte, and would miss
    # some. A byte that is not UTF-8 becomes U+FFFD later, and is counted.
    return b"".join(pieces).replace(b"\0", b"\xff")


def _repaired(table: pa.Table) -> Rows:
    """Return the columns as valid strings."""
    columns, replaced = [], 0
    for column in table.columns:
        texts, invalid = repair_utf8(column.combine_chunks())
        columns.append(pa.array(texts))
        replaced += invalid
    return Rows(pa.table(columns, names=table.column_names), replaced)
