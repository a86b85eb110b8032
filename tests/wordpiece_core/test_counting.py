"""The kernel counts the words that `tokenizers` finds, each once, whatever holds the text."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import oracle
from wordpiece_core import _kernel
from wordpiece_core.tokenizer.spec import tokens_in_texts

from .strategies import odd_text, word_tables
from .test_text import COMBINATIONS, SWITCHES, UNCASED, Switches, words_by_tokenizers

STRING_TYPES = [pa.string(), pa.large_string(), pa.string_view()]
BINARY_TYPES = [pa.binary(), pa.large_binary()]

# Invalid UTF-8: incomplete or overlong sequences, surrogates, beyond U+10FFFF, stray bytes.
BROKEN = [b"\xff", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0\x80"]
BROKEN += [b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xf8\x88\x80\x80\x80"]

SOUND = [b"a", b" b", "é".encode(), "\ufffd".encode()]

broken_bytes = st.lists(st.sampled_from(BROKEN + SOUND) | st.binary(max_size=4), max_size=8).map(
    b"".join
)


def replacements(texts: list[bytes | None]) -> int:
    """Return the number of U+FFFD that Python's decoder inserts."""
    kept = [text for text in texts if text is not None]
    found = sum(text.decode(errors="replace").count("\ufffd") for text in kept)
    return found - sum(text.count("\ufffd".encode()) for text in kept)


def counter(switches: Switches = UNCASED, pre_tokenizer: str = "bert") -> _kernel.WordCounter:
    options: dict[str, Any] = dict(zip(SWITCHES, switches, strict=True))
    return _kernel.WordCounter(options | {"pre_tokenizer": pre_tokenizer})


def rows(batch: Any) -> list[tuple[str, int]]:
    table = pa.record_batch(batch)
    assert table.schema.names == ["word", "count"]
    assert table.schema.types == [pa.string(), pa.int64()]
    return list(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))


def take(words: _kernel.WordCounter, partitions: int = 1) -> dict[str, int]:
    """All counts of a counter; fails if a word comes twice."""
    found = [row for *_, batch in words.take(partitions) for row in rows(batch)]
    counts = dict(found)
    assert len(counts) == len(found)
    return counts


def count(*arrays: Any) -> dict[str, int]:
    words = counter()
    for array in arrays:
        words.count(array)
    return take(words)


def expected(
    texts: list[str], switches: Switches = UNCASED, pre_tokenizer: str = "bert"
) -> Counter[str]:
    found = words_by_tokenizers(texts, switches, pre_tokenizer)
    return Counter(word for words in found for word in words)


any_texts = st.lists(odd_text(), max_size=10)
plain_texts = st.lists(st.text("abC é.", max_size=30), max_size=10)


@given(
    any_texts | plain_texts,
    st.sampled_from(COMBINATIONS),
    st.sampled_from(["bert", "whitespace"]),
    st.sampled_from(STRING_TYPES),
)
def test_the_counts_match_the_words_of_tokenizers(
    texts: list[str], switches: Switches, pre_tokenizer: str, type_: pa.DataType
) -> None:
    words = counter(switches, pre_tokenizer)
    words.count(pa.array(texts, type_))
    assert take(words) == expected(texts, switches, pre_tokenizer)


@given(plain_texts, st.lists(st.integers(0, 10), max_size=4), st.integers(1, 40))
def test_every_word_is_counted_once_for_any_batches(
    texts: list[str], cuts: list[int], partitions: int
) -> None:
    words = counter()
    array = pa.array(texts, pa.string())
    starts = [0, *sorted(cuts)]
    for start, end in zip(starts, [*sorted(cuts), len(texts)], strict=True):
        words.count(array[start : max(start, end)])
    taken = words.take(partitions)
    assert all(0 <= partition < partitions for partition, *_ in taken)
    found = Counter({word: n for *_, batch in taken for word, n in rows(batch)})
    assert found.total() == sum(total for _, _, total, _ in taken)
    assert found == expected(texts)
    assert sum(len(rows(batch)) for *_, batch in taken) == len(found)


@given(plain_texts, plain_texts, st.integers(1, 40))
def test_the_partition_of_a_word_does_not_depend_on_the_words_around_it(
    some: list[str], others: list[str], partitions: int
) -> None:
    def partition_of(texts: list[str]) -> dict[str, int]:
        words = counter()
        words.count(pa.array(texts, pa.string()))
        return {word: i for i, *_, batch in words.take(partitions) for word, _ in rows(batch)}

    first, second = partition_of(some), partition_of(some + others)
    assert first.items() <= second.items()


def test_words_spread_over_all_partitions() -> None:
    words = counter()
    words.count(pa.array([" ".join(f"w{i}" for i in range(6400))]))
    sizes = {partition: len(rows(batch)) for partition, *_, batch in words.take(64)}
    assert set(sizes) == set(range(64))
    assert max(sizes.values()) < 200  # 100 on average


def test_taking_empties_the_table() -> None:
    words = counter()
    empty = words.memory
    words.count(pa.array([" ".join(f"word{i}" for i in range(100_000))]))
    full = words.memory
    assert full > empty + 1_000_000
    assert len(take(words, 8)) == 100_000
    assert words.memory < full / 10
    assert take(words) == {}
    words.count(pa.array(["a a"]))
    assert take(words) == {"a": 2}


def test_totals_match_all_batches() -> None:
    words = counter()
    words.count(pa.array(["ab é", None, ""]))
    words.count(pa.array([b"\xffa", None, b"b\xe2\x82!"], pa.binary()))
    assert sum(take(words, 3).values()) == 5
    assert (words.rows, words.nulls, words.replaced) == (6, 2, 2)
    assert words.bytes == len("ab é".encode() + b"\xffa" + b"b\xe2\x82!")


@pytest.mark.parametrize("type_", STRING_TYPES)
def test_a_slice_counts_its_own_rows_and_skips_its_nulls(type_: pa.DataType) -> None:
    texts = ["a", None, "b beyond the inline size", "c c", None, "d", "e"]
    array = pa.array(texts, type_)
    for start in range(len(texts)):
        for end in range(start, len(texts) + 1):
            kept = [text for text in texts[start:end] if text is not None]
            assert count(array[start:end]) == expected(kept)


@pytest.mark.parametrize("type_", [*STRING_TYPES, *BINARY_TYPES])
def test_arrays_without_rows_or_of_nulls_count_nothing(type_: pa.DataType) -> None:
    assert count(pa.array([], type_)) == {}
    assert count(pa.nulls(3, type_)) == {}
    assert count(pa.array(["", " "], type_)) == {}


@given(st.lists(st.none() | broken_bytes, max_size=6), st.sampled_from(BINARY_TYPES))
@example(BROKEN, pa.binary())
@example([b"a" * 20 + broken + b"b" * 20 for broken in BROKEN], pa.binary())
def test_bytes_count_as_python_decodes_them(texts: list[bytes | None], type_: pa.DataType) -> None:
    words = counter((False, False, False, False), "whitespace")
    words.count(pa.array(texts, type_))
    decoded = [text.decode(errors="replace") for text in texts if text is not None]
    assert take(words) == expected(decoded, (False, False, False, False), "whitespace")
    assert words.replaced == replacements(texts)


@given(st.lists(st.none() | broken_bytes, max_size=6), st.sampled_from(BINARY_TYPES))
@example(BROKEN, pa.binary())
def test_repaired_bytes_are_as_python_decodes_them(
    texts: list[bytes | None], type_: pa.DataType
) -> None:
    repaired, replaced = _kernel.repair_utf8(pa.array(texts, type_))
    array = pa.array(repaired)
    array.validate(full=True)
    decoded = [None if text is None else text.decode(errors="replace") for text in texts]
    assert array.to_pylist() == decoded
    assert replaced == replacements(texts)


@given(st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]) | broken_bytes, max_size=12).map(b"".join))
@example(b"")
@example(b"\n")
@example(b"a\r\nb\r\r\n\x0b\xe2\x80\xa8\nc\r")
def test_lines_end_at_newlines_alone_and_are_repaired(block: bytes) -> None:
    lines, replaced = _kernel.split_lines(block)
    *ended, rest = block.split(b"\n")  # only a \r before \n belongs to the line's end
    expected_lines = [line.removesuffix(b"\r") for line in ended] + [rest] * bool(rest)
    assert pa.array(lines).to_pylist() == [line.decode(errors="replace") for line in expected_lines]
    assert replaced == replacements([*expected_lines])


def test_a_table_that_is_not_text_is_refused() -> None:
    with pytest.raises(Exception, match=r"(?i)int64"):
        counter().count(pa.array([1, 2]))


def test_long_words_are_counted_whole() -> None:
    lengths = [1, 15, 16, 17, 255, 256, 65_535, 65_536, 3_000_000]
    texts = [f"{'x' * n} {'é' * n} {'x' * n}" for n in lengths]
    words = counter((False, False, False, False))
    words.count(pa.array(texts))
    counts = {"x" * n: 2 for n in lengths} | {"é" * n: 1 for n in lengths}
    assert take(words, 5) == counts


@given(word_tables(), st.integers(1, 5))
def test_joined_tables_are_ordered_by_count_and_then_by_code_point(
    table: dict[str, int], number: int
) -> None:
    ordered = sorted(table.items(), key=lambda row: (-row[1], row[0]))
    assert rows(_kernel.join_word_tables([batch(ordered[n::number]) for n in range(number)])) == (
        ordered
    )


def test_joined_tables_have_counts_of_64_bits_and_are_not_ordered_by_utf16() -> None:
    first = batch([("z", 2**33), ("\uffee", 2**33)])
    second = batch([("no", 2**40), ("é", 2**33), ("\U0001f600", 2**33)]).slice(1)
    joined = rows(_kernel.join_word_tables([first, second]))
    assert joined == [(word, 2**33) for word in ("z", "é", "\uffee", "\U0001f600")]


def batch(table: list[tuple[str, int]]) -> pa.RecordBatch:
    """A word table as a record batch."""
    words, counts = [word for word, _ in table], [count for _, count in table]
    return pa.record_batch(
        {"word": pa.array(words, pa.string()), "count": pa.array(counts, pa.int64())}
    )


@given(
    st.lists(st.text("ab <|e>é.", max_size=30), max_size=6),
    st.lists(st.text("ab<|e>é ", max_size=4), max_size=4),
)
@example(["the cat<|e|>the dog<|e|>"], ["<|e|>"])
@example(["aab ab"], ["a", "ab", ""])
def test_texts_are_split_at_special_tokens(texts: list[str], special: list[str]) -> None:
    options = dict(zip(SWITCHES, UNCASED, strict=True)) | {"pre_tokenizer": "bert"}
    split_at = [token.for_kernel() for token in tokens_in_texts([*dict.fromkeys(special)])]
    words = _kernel.WordCounter(options, split_at=split_at)
    words.count(pa.array(texts, pa.string()))
    assert take(words) == oracle.count_words(texts, special_tokens=special)
