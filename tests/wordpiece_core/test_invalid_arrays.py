"""No array makes the kernel crash, whatever rules it breaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError

from .invalid_arrays import Gives, Good, splitter

ROOT = Path(__file__).parents[2]
RAISED = ("InputError", "TypeError", "not made")
"""Allowed outcomes for an invalid array. pyarrow cannot make some of them."""
OWN = ("an object that gives ValueError", "an object that gives KeyError")
"""Producers with errors of their own, which are let through."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each array needs a process that may die")
def test_every_array_gives_a_right_answer_or_an_error_of_one_line() -> None:
    command = [sys.executable, "-m", "tests.wordpiece_core.invalid_arrays"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert len({array for _, array, wanted, _ in outcomes if wanted != "right"}) > 400
    wrong = defaultdict(list)
    for entry, array, wanted, came in outcomes:
        kind = came.split(":")[0]
        if wanted == "right":
            fine = kind == "right"
        elif array.startswith(OWN):
            fine = kind in array or kind == "TypeError"
        else:
            fine = kind in RAISED or (wanted == "either" and kind in ("OptionError", "not refused"))
        if not fine or "\n" in came:
            wrong[array].append((entry, came))
    assert not wrong


def test_an_error_says_what_is_wrong() -> None:
    words = pa.record_batch({"word": ["a"], "count": pa.array([1], pa.int32())})
    with pytest.raises(InputError, match='"count"'):
        _kernel.join_word_tables([words])
    invalid = pa.record_batch({"word": [b"a", b"\xff"], "count": [1, 1]})
    with pytest.raises(InputError, match="row 1 of the word table has no valid word or count"):
        _kernel.join_word_tables([invalid])
    good = Good()
    unknown = pa.record_batch({"token": pa.array([99], pa.uint32()), "count": [1]})
    with pytest.raises(InputError, match="99"):
        good.round(unigrams=unknown)
    with pytest.raises(InputError, match="a pair is twice among the candidates"):
        good.round(candidates=pa.concat_batches([good.candidates] * 2))
    with pytest.raises(InputError, match="sums over other pieces"):
        _kernel.add_run_sums([good.sums, good.sums[1:]])
    with pytest.raises(InputError, match=r"2\^63"):
        _kernel.add_pairs([with_column(good.pairs, "count", 2**63 - 1)] * 2)
    with pytest.raises(InputError, match='column "offset"'):
        _kernel.PairCounter().add_splits(with_column(good.splits, "offset", 2**32 - 1))


def with_column(batch: pa.RecordBatch, name: str, value: int) -> pa.RecordBatch:
    """The batch with this value in every row of a column."""
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, name, pa.array([value] * len(batch), batch.schema.field(at).type))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()]
)
def test_words_are_read_from_any_type_of_text(kind: pa.DataType) -> None:
    words = pa.record_batch({"word": ["é", "a", ""], "count": [1 << 62, 3, 0]})
    given = words.set_column(0, "word", words["word"].cast(kind))
    assert pa.record_batch(_kernel.join_word_tables([given])) == words


def test_a_slice_of_splits_has_its_own_symbols() -> None:
    good = Good()
    for first in range(len(good.splits) + 1):
        rows = good.splits[first:]
        assert pa.record_batch(splitter().merge(rows)) == rows


def test_a_batch_that_begins_behind_its_last_row_is_empty() -> None:
    words = pa.record_batch({"word": ["a", "b"], "count": [2, 1]})
    behind = pa.record_batch(words.slice(2))  # as pyarrow imports it: an offset, and no buffers
    assert pa.record_batch(_kernel.join_word_tables([behind])).num_rows == 0
    joined = pa.record_batch(_kernel.join_word_tables([behind, words, words.slice(1, 0)]))
    assert joined.to_pylist() == words.to_pylist()


def test_an_array_can_be_taken_once() -> None:
    given = Gives(pa.array(["a"]).__arrow_c_array__())
    assert len(_kernel.repair_utf8(given)[0]) == 1
    with pytest.raises(InputError, match="an Arrow array that was taken before"):
        _kernel.repair_utf8(given)


def test_an_empty_array_has_no_buffers_that_count() -> None:
    nothing = pa.py_buffer(b"")
    empty = pa.Array.from_buffers(pa.string(), 0, [None, nothing, nothing], offset=1 << 40)
    assert _kernel.repair_utf8(empty)[1] == 0
    words = pa.record_batch({"word": empty, "count": pa.array([], pa.int64())})
    assert pa.record_batch(_kernel.join_word_tables([words])).num_rows == 0


def test_columns_that_are_not_read_do_not_matter() -> None:
    nulls = pa.field("other", pa.int64(), nullable=False)
    fields = [pa.field("word", pa.string()), pa.field("count", pa.int64()), nulls]
    columns = [pa.array(["a"]), pa.array([1]), pa.array([None], pa.int64())]
    words = pa.record_batch(columns, schema=pa.schema(fields))
    assert pa.record_batch(_kernel.join_word_tables([words])).num_rows == 1


def test_an_array_of_many_levels_is_refused() -> None:
    array = pa.array(["a"])
    for _ in range(3000):
        array = pa.StructArray.from_arrays([array], ["a"])
    with pytest.raises(InputError, match="an Arrow array of more than 256 levels"):
        _kernel.repair_utf8(array)
