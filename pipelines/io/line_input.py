"""Read text files, and blocks of complete lines of text files and JSON lines.

A byte range contains the lines that start in it. A compressed file is not split.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pyarrow as pa

from pipelines.io.decompression import Stream, check_text, decompressed
from pipelines.io.input_files import InputFile
from pipelines.io.reader import Range, Reader, Rows
from pipelines.io.reading import bad_data, open_planned
from wordpiece_core._kernel import split_lines
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.limits import Limits

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineReader(Reader):
    """Reader of a file that can be split at any line."""

    def ranges(self, range_bytes: int) -> list[Range]:
        """Return ranges of bytes."""
        if self.file.compression:
            return self.one_range()
        bounds = [*range(0, self.file.size, range_bytes), self.file.size]
        return [Range(self.file, a, b, b - a) for a, b in pairwise(bounds)]


class TextReader(LineReader):
    """Reader of plain text: each line is a text."""

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """Return the only column."""
        if self.columns.names != [self.columns.text]:
            option = self.columns.option(self.columns.names[-1])
            raise OptionError(
                f"{option}: {self.file.path} has no columns; use .parquet, .jsonl or .csv"
            )
        return pa.schema([(self.columns.text, pa.string())])

    def ranges(self, range_bytes: int) -> list[Range]:
        """Return ranges of bytes."""
        self.schema(None)
        return super().ranges(range_bytes)

    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """Yield the lines."""
        schema = self.schema(None)
        for _, block in blocks(part, self.limits, self.on_read):
            lines, replaced = split_lines(block)
            yield Rows(pa.table([pa.array(lines)], schema=schema), replaced)


def blocks(
    part: Range, limits: Limits, on_read: Callable[[int], object] | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of complete lines of about `block_bytes`, with their offsets: the lines that
    start in the range, or all lines of a compressed file. A byte order mark is left out.
    `on_read`: see `decompressed`."""
    file, end = part.file, part.file.size if part.end is None else part.end
    with open_planned(file) as stored, bad_data(file.path):
        if part.start == 0:
            check_text(file, stored)
        stream = decompressed(file, stored, on_read)
        if file.compression:
            lines = _complete_lines(file, stream, 0, None, limits)
        else:
            first = _line_start(stream, part.start, end)
            stream.seek(first)
            lines = _complete_lines(file, stream, first, end, limits)
        for offset, block in lines:
            if offset == 0 and block.startswith(BYTE_ORDER_MARK):
                offset, block = len(BYTE_ORDER_MARK), block[len(BYTE_ORDER_MARK) :]
            if block:
                yield offset, block


def _line_start(stream: Stream, start: int, end: int) -> int:
    """Return the position of the first line that starts in [start, end), or `end`."""
    if start == 0:
        return 0
    position = start - 1
    stream.seek(position)
    while position < end:
        chunk = stream.read(min(1 << 16, end - position))
        newline: int = chunk.find(b"\n")
        if newline >= 0:
            return position + newline + 1
        if not chunk:
            break
        position += len(chunk)
    return end


def _complete_lines(
    file: InputFile,
    stream: Stream,
    offset: int,
    end: int | None,
    limits: Limits,
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of complete lines that start before `end`. The stream is at `offset`, the start
    of a line. The last block may be empty."""
    pieces: list[bytes] = []  # parts of an incomplete line
    position, size = offset, limits.block_bytes
    while end is None or offset < end:
        # Past `end` only the rest of the last line is needed: first a little is read, then more.
        want = size if end is None else min(size, max(abs(end - position), 1 << 16))
        chunk = stream.read(want)
        last = len(chunk) if end is None else max(end - 1 - position, 0)
        newline = chunk.find(b"\n", last)
        if newline < 0:
            newline = chunk.rfind(b"\n")
        split = newline + 1 or len(chunk)
        if position + split - offset > limits.max_block_bytes:
            raise InputError(f"{file.path}: a line of more than 2 GiB at byte {offset}; split it")
        pieces.append(chunk[:split])
        position += len(chunk)
        if newline >= 0 or not chunk:
            block = b"".join(pieces)
            yield offset, block
            offset += len(block)
            pieces = [chunk[split:]]
        if not chunk:
            return
