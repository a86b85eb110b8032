"""Files of Arrow and Parquet that are several files, one after the other, as `cat` joins them.

The footer of such a file is at its end, and counts places from the beginning. So the footer of the
last file is read with the data of the first one, and all other data is passed over. Readers do not
notice, unless what they find there cannot be read at all.
"""

from __future__ import annotations

import struct

import pyarrow.parquet as pq

from wordpiece_core.errors import InputError
from wordpiece_core.storage import StoredFile

ARROW, PARQUET = b"ARROW1", b"PAR1"  # what such files begin and end with
MOST_SLACK = 64  # bytes between the data and the footer: ends of streams, and what aligns them
_LEAST_PARQUET = 12  # bytes: the magic number twice, and the length of the footer
_SEARCHED_BYTES = 8 << 20  # at a time
_DICTIONARIES, _BATCHES = 2, 3  # the lists of blocks in an Arrow footer


def check_arrow(path: str, stored: StoredFile) -> None:
    """InputError if an Arrow file, which can be opened, has more data than its footer names."""
    start, length = _footer(stored, ARROW)
    stored.seek(start)
    footer = stored.read(length)
    stored.seek(8)
    word, length = struct.unpack("<II", stored.read(8))
    # Before version 0.15 the length came first.
    end_of_schema = 16 + length if word == 0xFFFFFFFF else 12 + word
    blocks = (*_blocks(footer, _DICTIONARIES), *_blocks(footer, _BATCHES))
    if start - max((end_of_schema, *blocks)) > MOST_SLACK:
        raise _joined(path)


def _blocks(footer: bytes, field: int) -> list[int]:
    """Where the blocks of a list end. A footer is a table of FlatBuffers."""
    table = _number(footer, 0)
    fields = table - struct.unpack_from("<i", footer, table)[0]
    size = struct.unpack_from("<H", footer, fields)[0]
    place = 4 + 2 * field
    offset = struct.unpack_from("<H", footer, fields + place)[0] if place < size else 0
    if not offset:
        return []
    blocks = table + offset + _number(footer, table + offset)
    found = (
        struct.unpack_from("<qi4xq", footer, blocks + 4 + 24 * number)
        for number in range(_number(footer, blocks))
    )
    return [sum(block) for block in found]


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def check_parquet(path: str, stored: StoredFile, metadata: pq.FileMetaData) -> None:
    """InputError if a Parquet file, which can be opened, is several. Indexes and anything else may
    lie between the data that its footer names and the footer. If that is room for another file, it
    is looked for where it would end. `metadata`: without encrypted columns, which would crash."""
    start, _ = _footer(stored, PARQUET)
    room = start - _end_of_data(metadata)
    if room < _LEAST_PARQUET:
        return
    left, held = room + len(PARQUET), b""
    stored.seek(0)
    while left and (more := stored.read(min(_SEARCHED_BYTES, left))):
        if 2 * PARQUET in held + more:
            raise _joined(path)
        left, held = left - len(more), more[1 - 2 * len(PARQUET) :]


def _end_of_data(metadata: pq.FileMetaData) -> int:
    """Where the last chunk ends; not behind that, if the metadata is not right."""
    if not metadata.num_row_groups:
        return len(PARQUET)
    group = metadata.row_group(metadata.num_row_groups - 1)
    chunks = (group.column(column) for column in range(group.num_columns))
    ends = (
        min(filter(None, (c.dictionary_page_offset, c.data_page_offset)), default=0)
        + c.total_compressed_size
        for c in chunks
    )
    return max(ends, default=len(PARQUET))


def _footer(stored: StoredFile, magic: bytes) -> tuple[int, int]:
    """Where the footer begins, and its length."""
    end = stored.length - len(magic) - 4
    stored.seek(end)
    length = int.from_bytes(stored.read(4), "little")
    return end - length, length


def _joined(path: str) -> InputError:
    return InputError(
        f"{path}: several files one after the other, of which only a part would be read; give each"
        " as a file of its own"
    )
