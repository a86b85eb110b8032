"""JSON lines have the rows that Python reads, however they are split."""

import json
import re
from fractions import Fraction
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.io import json_input
from pipelines.io.inputs import Range, TextColumns, open_shard
from wordpiece_core.errors import InputError
from wordpiece_core.limits import Limits

from ...quick import parametrize
from ..shard_files import (
    COMPRESS,
    characters,
    fault,
    json_lines,
    new_file,
    rows_of,
    sizes,
    texts,
    texts_of,
    write,
)

values = st.none() | characters | st.sampled_from(["2020-01-01", "\n", '"}{', "12"])
json_rows = st.lists(
    st.fixed_dictionaries({}, optional={"text": values, "id": st.integers(-9, 9), "x": values})
    | st.none(),
    max_size=12,
).filter(lambda rows: rows.count(None) == len(rows) or any("text" in row for row in rows if row))


@given(json_rows, sizes, sizes, st.sampled_from(["\n", "\r\n", " \n"]))
def test_any_ranges_of_json_lines_give_its_texts(
    rows: list[dict[str, object] | None], size: int, block: int, end: str
) -> None:
    expected = [row.get("text") for row in rows if row is not None]
    with new_file(".jsonl", json_lines(rows, end)) as file:
        assert texts(file, range_bytes=size, limits=Limits(block_bytes=block)) == expected


@given(json_rows, sizes, st.sampled_from(["", ".gz", ".zst"]))
def test_encoding_reads_all_columns_of_json_lines(
    rows: list[dict[str, object] | None], block: int, ending: str
) -> None:
    names = dict.fromkeys(name for row in rows if row for name in row) or {"text": None}
    expected = [{name: row.get(name) for name in names} for row in rows if row is not None]
    limits = Limits(block_bytes=block)
    with new_file(f".jsonl{ending}", COMPRESS[ending](json_lines(rows))) as file:
        shard = open_shard(file, TextColumns(), limits=limits)
        assert shard.schema.names == list(names)
        assert rows_of(file, limits=limits) == expected
        assert [text for b in shard.batches() for text in b.texts.to_pylist()] == [
            row["text"] for row in expected
        ]


def test_json_types_match_the_whole_file(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "n": 1, "when": "2020-01-01", "tags": [], "meta": {"k": None}},
        {"text": None, "n": 1.5, "when": "soon", "tags": ["2021-05-05"], "meta": {"z": 1}},
        {"text": "2020-01-01", "late": True},
    ]
    file = write(tmp_path / "a.jsonl", json_lines(rows))
    shards = []
    for block in (1, 120, 1 << 20):
        limits = Limits(block_bytes=block)
        shard = open_shard(file, TextColumns(), limits=limits)
        shards.append((shard.schema, rows_of(file, limits=limits)))
    schema, read = shards[0]
    assert all(shard == shards[0] for shard in shards)
    assert schema == pa.schema(
        [
            ("text", pa.string()),
            ("n", pa.float64()),
            ("when", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("meta", pa.struct([("k", pa.null()), ("z", pa.int64())])),
            ("late", pa.bool_()),
        ]
    )
    assert [row["when"] for row in read] == ["2020-01-01", "soon", None]
    assert [row["meta"] for row in read] == [{"k": None, "z": None}, {"k": None, "z": 1}, None]


# --- Numbers --------------------------------------------------------------------------------------

LITERALS = st.one_of(
    st.integers(-(1 << 66), 1 << 66).map(str),
    st.sampled_from([53, 63, 64]).flatmap(
        lambda bits: st.integers((1 << bits) - 2, (1 << bits) + 2).map(str)
    ),
    st.integers(0, 9).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1e2", "1.0", "-0.0", "5e15", "1e16", "1" + "0" * 20, "9" * 309, "1e308"]),
)
PLACES = ["{}", "[{}]", "[1, {}]", '{{"deep": {}}}', '{{"deep": [{{"x": {}}}]}}', "[[{}], null]"]


def exactly(value: object) -> object:
    """A value in which equal numbers are equal whatever their types, and others never are."""
    if isinstance(value, dict):
        return {key: exactly(below) for key, below in value.items() if below is not None}
    if isinstance(value, list):
        return [exactly(below) for below in value]
    return Fraction(value) if isinstance(value, int | float) else value


@given(st.lists(LITERALS, min_size=1, max_size=8), st.sampled_from(PLACES), st.integers(1, 200))
def test_numbers_are_read_exactly_or_refused(literals: list[str], place: str, block: int) -> None:
    lines = [f'{{"text": "a", "n": {place.format(literal)}}}' for literal in literals]
    with new_file(".jsonl", "\n".join(lines).encode()) as file:
        try:
            found = rows_of(file, limits=Limits(block_bytes=block))
        except InputError:
            numbers = [json.loads(each) for each in [*literals, "1"]]  # PLACES have a 1
            integers = [number for number in numbers if isinstance(number, int)]
            assert len(integers) < len(numbers) or min(integers) < -(1 << 63) or max(integers) >> 63
        else:
            assert exactly(found) == exactly([json.loads(line) for line in lines])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["9007199254740993", "1.5"], "an integer that no common type of its values holds"),
        (["18446744073709551615"], "an integer that no common type of its values holds"),
        (["1", "1" * 30], "an integer that no common type of its values holds"),
        (
            ['{"a": {"id": 1.5}}', '{"a": {"id": 9007199254740993}}'],
            "an integer that no common type",
        ),
        (["1", "1e400"], "Number too big"),
        (['{"id": 1, "id": 2}'], "was specified twice"),
    ],
)
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_numbers_that_no_type_holds_are_refused(
    tmp_path: Path, values: list[str], reason: str, block: int
) -> None:
    lines = "".join(f'{{"text": "a", "x": {value}}}\n' for value in values)
    file = write(tmp_path / "a.jsonl", lines)
    limits = Limits(block_bytes=block)
    message = fault(lambda: rows_of(file, limits=limits))
    assert message.startswith(file.path)
    assert reason in message
    if "integer" in reason:
        assert "keep_columns" in message
        assert rows_of(file, ["text"], limits=limits) == [{"text": "a"}] * len(values)


def test_the_name_of_a_nested_text_is_no_column_to_keep(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"meta": {"body": "a"}, "x": 1}\n')
    message = fault(lambda: open_shard(file, TextColumns("meta.body"), ["meta.body"]))
    assert message == f"{file.path}: no column 'meta.body' to keep; it has 'meta', 'x'"
    own = write(tmp_path / "b.jsonl", '{"meta.body": "a", "x": 1}\n')
    (batch,) = open_shard(own, TextColumns("meta.body"), ["meta.body"]).batches()
    assert batch.table.to_pylist() == [{"meta.body": "a"}]


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_lone_surrogates_that_are_escaped_are_replaced_and_counted(
    tmp_path: Path, block: int
) -> None:
    values = [r"\ud83d", r"\ud83d\ude00", r"\\ud83d", r"\\\ude00"]
    values += [r"a\uDBFF\ud83d\udE00z", r"\udc00\ud800"]
    lines = "".join(f'{{"text": "{v}", "m": {{"x": "{v}"}}}}\n' for v in values)
    file = write(tmp_path / "a.jsonl", lines)
    wanted = ["\ufffd", "\U0001f600", r"\ud83d", "\\\ufffd", "a\ufffd\U0001f600z", "\ufffd\ufffd"]
    limits = Limits(block_bytes=block)
    assert texts(file, limits=limits) == wanted
    assert rows_of(file, limits=limits) == [{"text": value, "m": {"x": value}} for value in wanted]
    batches = list(open_shard(file, TextColumns(), limits=limits).batches())
    assert sum(batch.replaced for batch in batches) == 2 * 5


CONFLICT = [{"text": "a", "id": 1}, {"text": "b", "id": "x"}, {"text": "c", "id": [1]}]


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_a_column_that_changes_its_type_matters_only_if_it_is_kept(
    tmp_path: Path, block: int
) -> None:
    file = write(tmp_path / "a.jsonl", json_lines([{**row, "k": 1} for row in CONFLICT]))
    read = partial(rows_of, file, limits=Limits(block_bytes=block))
    assert texts(file, limits=Limits(block_bytes=block)) == ["a", "b", "c"]
    assert read(["k"]) == [{"k": 1}] * 3
    assert read(["text", "k"]) == [{"text": t, "k": 1} for t in "abc"]
    for columns in (None, ["id"]):
        message = fault(lambda columns=columns: read(columns))
        assert message.startswith(file.path)
        assert "id" in message


def test_empty_objects_cannot_be_kept(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "a", "meta": {"deep": [{}]}}\n')
    assert "column 'meta'" in fault(lambda: open_shard(file, TextColumns()))
    assert rows_of(file, ["text"]) == [{"text": "a"}]


def nested(levels: int, opening: str, closing: str) -> str:
    """Return an object with `levels` levels of nesting."""
    return f'{{"text": "a", "x": {opening * (levels - 1)}1{closing * (levels - 1)}}}'


@pytest.mark.parametrize("brackets", [("[", "]"), ('[{"a\\"]}": ', "}]")])
@pytest.mark.parametrize("lines_before", [0, 2000])
def test_values_nested_too_deeply_are_refused_for_encoding(
    tmp_path: Path, lines_before: int, brackets: tuple[str, str]
) -> None:
    each = brackets[0].count("[") + brackets[0].count("{")
    bracket_text = json.dumps({"text": '{["\\' * 1000, "y": [{}, {"a": 1}] * 500})
    before = [bracket_text, *["", '{"text": "b"}'] * lines_before][:lines_before]
    for levels in (15_000, json_input.MAX_DEPTH // each + 2):
        lines = [*before, nested(levels, *brackets), '{"text": "c"}']
        file = write(tmp_path / "a.jsonl", "\n".join(lines))
        for columns in (None, ["x"], ["y"]):
            message = fault(
                lambda file=file, columns=columns: open_shard(file, TextColumns(), columns)
            )
            assert message.startswith(file.path)
            assert re.search("nested more than 100 levels|recursion", message)


BAD_LINES = {
    '{"text": "c"': "not a JSON object|Missing a comma",
    "text": "not a JSON object|Invalid value",
    '{"text": "c"} {"text": "d"}': "not one JSON object on each line|Extra data",
    '{"text": "c", "text": "d"}': "twice",
    "null": "not a JSON object",
    '{"text": 3}': "'text' changed from (string to number|number to string)",
    '{"text": {"c": 1}}': "'text' changed from (string to object|object to string)",
}


@pytest.mark.parametrize("bad", BAD_LINES)
@parametrize("ending", ["", ".zst"], quick=1)
def test_a_bad_json_line_is_an_error_that_says_about_where(
    tmp_path: Path, bad: str, ending: str
) -> None:
    good = [f'{{"text": "line {i}"}}' for i in range(200)]
    for line, size in [(2, 1 << 20), (101, 50), (201, 333)]:
        lines = [*good[: line - 2], "", bad, *good[line:]]
        data = "\n".join(lines).encode()
        file = write(tmp_path / f"a.jsonl{ending}", COMPRESS[ending](data))
        limits = Limits(block_bytes=64)
        read = [partial(texts, file, range_bytes=size, limits=limits)]
        read += [partial(rows_of, file, c, limits=limits) for c in (None, ["text"], [])]
        messages = [fault(call) for call in read]
        for message in messages:
            assert message.startswith(file.path)
            assert re.search(BAD_LINES[bad], message), message
            found = re.search(r"after byte ([\d,]+) ", message)
            offset = len("\n".join(lines[: line - 1]))
            assert found is None or abs(int(found[1].replace(",", "")) - offset) < 200


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (json.dumps({"text": "a"}, indent=1), " line 1: a JSON object on several lines"),
        (json.dumps([{"text": "a"}]), " line 1: a JSON array"),
        ('{"text": "a"}\n{"x":\n{}}{}\n', "not a JSON object"),
        ("null\n", " line 1: not a JSON object"),
    ],
)
def test_json_that_is_not_lines_is_refused(tmp_path: Path, data: str, reason: str) -> None:
    file = write(tmp_path / "a.jsonl", data)
    assert reason in fault(lambda: texts(file))
    assert reason in fault(lambda: texts_of([Range(file, 0, None, 5)]))


@pytest.mark.parametrize(
    ("first", "second", "fault"),
    [
        ('"m": "a"', '"m": 1', "column 'm' changed from string to number"),
        ('"m": {"x": 1}', '"m": {"x": "a"}', "column 'm' changed from number to string"),
        ('"m": [1]', '"m": {"x": "a"}', "column 'm' changed from array to object"),
        ('"m": 1', '"m": 1e400', "Number too big"),
        ('"m": 1', '"m": 1..2', "Miss fraction part"),
        ('"m": 12345678901234567', '"m": 1.5', "'m' contains an integer that no common type"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1 << 20, 400])
def test_the_line_that_changes_a_column_is_named(
    tmp_path: Path, first: str, second: str, fault: str, block_bytes: int
) -> None:
    lines = [f'{{"text": "\xe9 {i}", {first}}}' for i in range(40)]
    lines[20] = f'{{"text": "x", {second}}}'
    file = write(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + "\n\n".join(lines).encode("latin-1"))
    integers = "integer" in fault
    line = 0 if integers else 20
    byte = 3 + sum(len(line) + 2 for line in lines[:line])
    limits = Limits(block_bytes=block_bytes)
    with pytest.raises(InputError) as raised:
        list(open_shard(file, TextColumns(), limits=limits).batches())
    message = str(raised.value)
    assert message.startswith(f"{file.path}: ")
    assert f"the line at byte {byte:,}" in message
    if block_bytes > 400:
        assert fault in message
    if "column" in fault:
        assert "`keep_columns`" in message
        list(open_shard(file, TextColumns(), ["text"], limits=limits).batches())
