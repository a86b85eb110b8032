"""However a text file is cut, its lines are those of a few lines of plain Python."""

from itertools import pairwise
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.files import line_input
from pipelines.files.inputs import TextColumns, open_shard, plan, read_texts

from ..shard_files import COMPRESS, fault, new_file, rows_of, sizes, texts, texts_of, write

ATOMS = [b"a", b"bc ", b"\n", b"\n", b"\r\n", b"\r", b"\xff", b"\xe2\x82", "é".encode(), b"\x00"]
text_bytes = st.builds(
    lambda atoms, start: start + b"".join(atoms),
    st.lists(st.sampled_from(ATOMS), max_size=40),
    st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"]),
)


def lines_of(data: bytes) -> list[str]:
    """The specification."""
    lines = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    return [line.decode(errors="replace") for line in lines]


@given(text_bytes, sizes, sizes)
def test_any_ranges_of_a_text_file_give_its_lines(data: bytes, cut: int, block: int) -> None:
    with new_file(".txt", data) as file, mock.patch.object(line_input, "BLOCK_BYTES", block):
        assert texts(file, range_bytes=cut) == lines_of(data)


@given(text_bytes, st.lists(st.integers(0, 100), max_size=3), st.sampled_from([".gz", ".zst"]))
def test_concatenated_compressed_files_are_read_whole(
    data: bytes, cuts: list[int], ending: str
) -> None:
    bounds = [0, *sorted(cuts), len(data)]
    packed = b"".join(COMPRESS[ending](data[a:b]) for a, b in pairwise(bounds))
    with new_file(f".txt{ending}", packed) as file:
        assert texts(file) == lines_of(data)


@given(text_bytes, sizes)
def test_encoding_reads_the_lines_of_a_text_file_block_by_block(data: bytes, block: int) -> None:
    with new_file(".txt", data) as file, mock.patch.object(line_input, "BLOCK_BYTES", block):
        assert rows_of(file) == [{"text": line} for line in lines_of(data)]


@pytest.mark.parametrize("ending", COMPRESS)
def test_replaced_utf8_and_text_bytes_are_counted(tmp_path: Path, ending: str) -> None:
    data = "né\n".encode() + b"\xffa\xe2\x82\n"
    file = write(tmp_path / f"a.txt{ending}", COMPRESS[ending](data))
    counted = list(read_texts(plan([file], "text")[0], "text"))
    encoded = list(open_shard(file, TextColumns()).batches())
    for batches in (counted, encoded):
        assert [text for b in batches for text in b.texts.to_pylist()] == ["né", "�a�"]
        assert [(b.replaced, b.bytes) for b in batches] == [(2, 3 + 7)]


def test_a_line_longer_than_any_block_is_one_text(tmp_path: Path) -> None:
    line = b"word " * 20_000_000
    file = write(tmp_path / "a.txt", b"first\n" + line + b"\nlast")
    ranges = plan([file], "text")
    batches = [batch for part in ranges for batch in read_texts(part, "text")]
    assert len(ranges) == 6
    assert sum(len(batch.texts) for batch in batches) == 3
    assert max(batch.bytes for batch in batches) >= len(line)
    assert texts_of([ranges[-1]]) == ["last"]


def test_a_line_too_long_for_an_array_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", b"abc\n" + b"d" * 200)
    with mock.patch.object(line_input, "MAX_BLOCK_BYTES", 100):
        assert fault(lambda: texts(file)).startswith(f"{file.path}: a line of more than 2 GiB")
