"""A text file has the lines that a few lines of plain Python read, however it is split."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from wordpiece_core.limits import Limits

from ..shard_files import fault, new_file, rows_of, sizes, texts, write

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
def test_any_ranges_of_a_text_file_give_its_lines(data: bytes, size: int, block: int) -> None:
    with new_file(".txt", data) as file:
        assert texts(file, range_bytes=size, limits=Limits(block_bytes=block)) == lines_of(data)


@given(text_bytes, sizes)
def test_encoding_reads_the_lines_of_a_text_file_block_by_block(data: bytes, block: int) -> None:
    with new_file(".txt", data) as file:
        assert rows_of(file, limits=Limits(block_bytes=block)) == [
            {"text": line} for line in lines_of(data)
        ]


def test_a_line_too_long_for_an_array_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", b"abc\n" + b"d" * 200)
    message = fault(lambda: texts(file, limits=Limits(max_block_bytes=100)))
    assert message.startswith(f"{file.path}: a line of more than 2 GiB")
