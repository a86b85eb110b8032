"""Arrays that break Arrow's rules, for each entry point of the kernel that takes arrays.

`python -m tests.wordpiece_core.invalid_arrays` passes each array to each entry point of its kind,
in other processes, and prints as JSON: the entry point, the array, the expected outcome ("right",
"error", or "either" if the entry point accepts any value or column), and the outcome: "right",
"wrong answer", "not refused", "not made", "signal N", or the exception.

The arrays are generated: pyarrow makes a good one, then one of its buffers is overwritten.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from wordpiece_core import EncodingOptions, _kernel

TEXT = {
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": True,
    "lowercase": True,
    "pre_tokenizer": "bert",
}
FLAGS = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized", "special"), False)
VOCAB = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "a", "b", "ab", "##a", "##b"]


@dataclass(frozen=True)
class Case:
    """An array. `make`: the array, or an object that claims to be one. `right`: the values of a
    valid array; None: it must be refused, unless it is `possible`."""

    name: str
    make: Callable[[], Any]
    right: list[Any] | None = None
    possible: bool = False


# --- What may be wrong with an array --------------------------------------------------------------


class Gives:
    """An object whose `__arrow_c_array__` returns or raises this."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def int32s(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def int64s(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def view(length: int, head: bytes, buffer: int, offset: int) -> bytes:
    """Return a long view of a string."""
    return struct.pack("<i4sii", length, head, buffer, offset)


def short_view(data: bytes) -> bytes:
    return struct.pack("<i12s", len(data), data)


BEYOND = 1 << 30  # an address that is not mapped
LONG = b"a b ab a b ab a b ab"  # 20 bytes: no short view


def overwritten(
    kind: pa.DataType,
    rows: int,
    good: Sequence[bytes | None],
    number: int,
    bad: bytes,
    children: list[pa.Array] | None = None,
) -> pa.Array:
    """Return an array with a buffer that was overwritten after pyarrow has checked it."""
    memory = [None if data is None else bytearray(data) for data in good]
    buffers = [None if data is None else pa.py_buffer(data) for data in memory]
    array = pa.Array.from_buffers(kind, rows, buffers, children=children)
    memory[number][:] = bad  # type: ignore[index]
    return array


# --- Arrays of text -------------------------------------------------------------------------------

BYTE_KINDS = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
VIEW_KINDS = (pa.string_view(), pa.binary_view())
OFFSETS = (0, 1, 2, 4)
BAD_OFFSETS = (
    *((0, value) for value in (BEYOND, -BEYOND, -1, 3)),
    *((1, value) for value in (BEYOND, -BEYOND, -1, 4)),
    *((2, value) for value in (BEYOND, -BEYOND, -1, 0)),
    *((3, value) for value in (-BEYOND, -4, 0)),
)
"""The place of an offset, and a value that it must not have."""
BAD_VIEWS = (
    *(view(length, LONG[:4], 0, 0) for length in (-9, -1, 21, BEYOND)),
    *(view(20, LONG[:4], number, 0) for number in (-1, 1, 7, BEYOND)),
    *(view(20, LONG[:4], 0, at) for at in (-BEYOND, 1, BEYOND)),
)
"""Views of a text of 20 bytes in one buffer."""


def text_cases() -> Iterator[Case]:
    """Yield arrays of texts. Valid ones have the texts `a`, `b`, `ab`, or a long text."""
    for kind in (*BYTE_KINDS, *VIEW_KINDS):
        good = pa.array(["a", "b", "ab"], kind)
        for values in (["a", "b", "ab"], ["a", None, "ab"], [], ["a", LONG.decode()]):
            yield Case(f"{kind}: {values}", lambda v=values, k=kind: pa.array(v, k), values)
        yield Case(f"{kind}: a slice", lambda g=good: g[1:], ["b", "ab"])
    for kind in BYTE_KINDS:
        yield from offset_cases(
            kind,
            int64s
            if pa.types.is_large_unicode(kind) or (pa.types.is_large_binary(kind))
            else int32s,
        )
    for kind in VIEW_KINDS:
        yield from view_cases(kind)
    yield from object_cases()


def offset_cases(kind: pa.DataType, pack: Callable[..., bytes]) -> Iterator[Case]:
    for place, value in BAD_OFFSETS:
        bad = [*OFFSETS]
        bad[place] = value
        buffers = (None, pack(*OFFSETS), b"abab")
        make = partial(overwritten, kind, 3, buffers, 1, pack(*bad))
        yield Case(f"{kind}: offsets {bad}", make)
    shifted = [None, pa.py_buffer(b"\0" + pack(*OFFSETS)).slice(1), pa.py_buffer(b"abab")]
    misaligned = partial(pa.Array.from_buffers, kind, 3, shifted)
    yield Case(f"{kind}: misaligned", misaligned, ["a", "b", "ab"])


def view_cases(kind: pa.DataType) -> Iterator[Case]:
    short, last = short_view(b"a") + short_view(b"b"), view(20, LONG[:4], 0, 0)
    buffers = (None, short + last, LONG)
    right = ["a", "b", LONG.decode()]
    for name, third, answer in (
        ("whole", last, right),
        *((struct.unpack("<i4xii", bad), bad, None) for bad in BAD_VIEWS),
    ):
        make = partial(overwritten, kind, 3, buffers, 1, short + third)
        yield Case(f"{kind}: view {name}", make, answer)


def object_cases() -> Iterator[Case]:
    yield Case("an object that is no array", lambda: object())
    yield Case("a list", lambda: ["a", "b"])
    for value in (None, 7, (), (1, 2), ("a", "b", "c"), ValueError("no"), KeyError("no")):
        yield Case(f"an object that gives {value!r}", lambda value=value: Gives(value))
    yield Case("numbers", lambda: pa.array([1, 2, 3]))
    yield Case("a dictionary array", lambda: pa.array(["a"]).dictionary_encode())
    yield Case("a struct array with nulls", lambda: pa.array([{"a": 1}, None]))
    yield Case(
        "a union", lambda: pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    )


def counted(texts: Any) -> list[str]:
    counter = _kernel.WordCounter(TEXT)
    assert counter.count(texts) == counter.rows
    batches = [pa.record_batch(batch) for *_, batch in counter.take(1)]
    return [word for batch in batches for word in batch["word"].to_pylist()]


def counted_by_group(groups: Any) -> list[Any]:
    counter = _kernel.WordCounter(TEXT)
    texts = pa.array(["a"] * len(groups))
    counter.count(texts, groups)
    return sorted({group for _, group, *_ in counter.take(1)}, key=str)


def encoder() -> _kernel.Encoder:
    return _kernel.Encoder(
        VOCAB,
        TEXT,
        {
            "unk_token": "[UNK]",
            "continuing_prefix": "##",
            "max_word_length": 100,
            "unk_scope": "word",
            "added_tokens": [{"content": token} | FLAGS for token in VOCAB[:5]],
            "hidden": [],
        },
    )


def encoded(texts: Any, pairs: Any = None, threads: int = 1) -> list[Any]:
    options = EncodingOptions(add_special_tokens=False, columns=["offset_mapping", "word_ids"])
    layout = {"before": [], "between": [], "after": [], "types": (0, 1), "overflow_types": (0, 1)}
    how = options.values() | {"threads": threads, "layouts": [layout, layout]}
    batches, _, _ = encoder().encode(texts, pairs, how)
    return pa.Table.from_batches(map(pa.record_batch, batches))["input_ids"].to_pylist()


def ids_of(texts: list[str | None]) -> list[Any]:
    return [
        None if text is None else [VOCAB.index(word) for word in text.split()] for text in texts
    ]


def words_of(texts: list[str | None]) -> list[str]:
    return sorted({word for text in texts if text is not None for word in text.split()})


@dataclass(frozen=True)
class Entry:
    """An entry point, and its result for a valid array."""

    name: str
    call: Callable[[Any], Any]
    right: Callable[[list[Any]], Any]


TEXT_ENTRIES = (
    Entry("WordCounter.count", counted, words_of),
    Entry("WordCounter.count groups", counted_by_group, lambda v: sorted({*v}, key=str)),
    Entry("repair_utf8", lambda v: pa.array(_kernel.repair_utf8(v)[0]).to_pylist(), list),
    Entry(
        "pre_tokenize",
        lambda v: pa.array(_kernel.pre_tokenize(v, TEXT)).to_pylist(),
        lambda v: [None if text is None else text.split() for text in v],
    ),
    Entry("Encoder.encode", encoded, ids_of),
    Entry("Encoder.encode threads", lambda v: encoded(v, threads=2), ids_of),
    Entry(
        "Encoder.encode pairs",
        lambda v: encoded(pa.array(["a"] * len(v)), v),
        lambda v: [None if ids is None else [5, *ids] for ids in ids_of(v)],
    ),
)


# --- Lists of ids ---------------------------------------------------------------------------------


def list_cases() -> Iterator[Case]:
    """Yield lists of ids. Valid ones have `[5, 6], [7]`."""
    kind, right = pa.list_(pa.int32()), [[5, 6], [7]]
    good = pa.array(right, kind)
    yield Case("lists", lambda: good, right)
    yield Case("lists: a slice", lambda: pa.array([[1], *right], kind)[1:], right)
    ids = pa.array([5, 6, 7], pa.int32())
    for place, value in (
        *((0, value) for value in (-BEYOND, BEYOND)),
        *((1, value) for value in (-1, -9, 4, BEYOND)),
        *((2, value) for value in (-3, 1, 4, BEYOND)),
    ):
        bad = [0, 2, 3]
        bad[place] = value
        make = partial(overwritten, kind, 2, (None, int32s(0, 2, 3)), 1, int32s(*bad), [ids])
        yield Case(f"lists: offsets {bad}", make)
    for wrong in ([5, 6, 70], [5, -6, 7], [5, None, 7]):
        yield Case(f"lists of {wrong}", partial(pa.array, [wrong[:2], wrong[2:]], kind))
    yield Case("lists of another type", lambda: pa.array(right, pa.list_(pa.int64())))
    yield Case("lists of texts", lambda: pa.array([["a"]]))
    yield Case("no lists", lambda: pa.array([5, 6]))
    yield Case("no array", lambda: right)


def packed(ids: Any, window: int | None = None) -> list[Any]:
    special = {"cls_id": 1, "sep_id": 2, "pad_id": 3}
    packer = _kernel.Packer(
        window=window, length=8, own=[0, 0], vocab_size=10, id_type="int32", columns=[], **special
    )
    packer.add(ids, 0)
    return pa.record_batch(packer.finish())["input_ids"].to_pylist()


PACKED = [[1, 5, 6, 2, 7, 2, 3, 3]]
LIST_ENTRIES = (
    Entry("Packer.add", packed, lambda v: PACKED),
    Entry("Packer.add, best fit", lambda ids: packed(ids, 1 << 20), lambda v: PACKED),
)


# --- Record batches -------------------------------------------------------------------------------


def word_table() -> pa.RecordBatch:
    counts = pa.array([7, 5, 4, 2], pa.int64())
    return pa.record_batch({"word": ["aab", "ab", "ba", "baa"], "count": counts})


ALPHABET = [("a", 1), ("b", 2), ("##a", 3), ("##b", 4)]
TOKENS = ["[UNK]", *(symbol for symbol, _ in ALPHABET)]


def splitter(merges: Any = None) -> _kernel.Splitter:
    return _kernel.Splitter(
        ALPHABET, merges, continuing_prefix="##", min_word_count=1, max_word_length=100
    )


def trainer(min_pair_count: int | None = 1, criterion: str = "frequency") -> _kernel.Trainer:
    return _kernel.Trainer(
        TOKENS,
        vocab_size=12,
        criterion=criterion,
        min_pair_count=min_pair_count,
        max_token_length=100,
        continuing_prefix="##",
    )


class Good:
    """Valid batches of every kind, from one small training."""

    def __init__(self) -> None:
        self.words = word_table()
        self.splits = pa.record_batch(splitter().split(self.words, 0))
        counter = _kernel.PairCounter()
        counter.add_splits(self.splits)
        self.unigrams = pa.record_batch(counter.unigrams())
        ((_, pairs),) = counter.take_pairs(1)
        self.pairs = pa.record_batch(pairs)
        whole = trainer()
        self.largest = whole.largest(self.pairs)
        chosen, self.max_level = whole.candidates(
            self.unigrams, [self.pairs], largest=self.largest, most=2
        )
        self.candidates = pa.record_batch(chosen)
        sizes = _kernel.RunSizes(1000, self.max_level)
        sizes.add_splits(self.splits, self.levels)
        self.sample = pa.record_batch(sizes.sample())
        runs = _kernel.Runs()
        runs.add_splits(self.splits, self.levels, self.max_level)
        (self.runs,) = map(pa.record_batch, runs.take(100))
        whole.add_splits(self.splits)
        whole.start_whole_round()
        whole.run(100)
        self.merges, self.support = pa.record_batch(whole.merges()), whole.support
        self.pieces = pa.record_batch(
            {"piece": ["a", "ab", "b", "▁"], "score": [-1.0, -0.5, -1.5, -2.0]}
        )
        model = _kernel.UnigramModel(self.pieces)
        runs_of = _kernel.RunSplitter(None, min_word_count=1, max_run_length=16)
        expected = _kernel.RunSums(runs_of, model, "expected")
        expected.add(self.words)
        self.sums = pa.record_batch(expected.sums()[0])

    @property
    def levels(self) -> _kernel.PairLevels:
        return _kernel.PairLevels(self.candidates)

    def round(self, **given: Any) -> list[Any]:
        """Run a complete round with a budget, with some arguments replaced."""
        results = []
        for criterion, min_pair_count in (("pmi", 1), ("pmi", None), ("frequency", 1)):
            one = trainer(min_pair_count, criterion)
            parts = {
                "unigrams": self.unigrams,
                "candidates": self.candidates,
                "runs": self.runs,
            } | given
            one.add_splits(parts.pop("runs"))
            one.start_round(**parts, largest=self.largest, max_level=self.max_level)
            results.append(one.run(100))
        return results


BATCH_ENTRIES: dict[str, dict[str, Callable[[Good, Any], Any]]] = {
    "words": {
        "WordCounter.add": lambda good, v: _kernel.WordCounter(TEXT).add(v),
        "join_word_tables": lambda good, v: _kernel.join_word_tables([v]),
        "merge_sorted_words": lambda good, v: _kernel.merge_sorted_words([v, good.words]),
        "weigh_sorted_words": lambda good, v: _kernel.weigh_sorted_words(
            [v], [1 << 32], min_count=1
        ),
        "draw_words": lambda good, v: _kernel.draw_words(v, 1),
        "symbol_counts": lambda good, v: _kernel.symbol_counts(
            v, first_rank=0, min_word_count=1, max_word_length=100
        ),
        "Splitter.split": lambda good, v: splitter().split(v, 0),
    },
    "merges": {
        "Splitter": lambda good, v: splitter(v).split(good.words, 0),
        "Trainer.restore": lambda good, v: trainer().restore(v, good.support),
    },
    "splits": {
        "Splitter.merge": lambda good, v: splitter(good.merges).merge(v),
        "PairCounter.add_splits": lambda good, v: _kernel.PairCounter().add_splits(v),
        "RunSizes.add_splits": lambda good, v: _kernel.RunSizes(9, 3).add_splits(v, good.levels),
        "Runs.add_splits": lambda good, v: _kernel.Runs().add_splits(v, good.levels, 3),
        "Runs.add_runs": lambda good, v: _kernel.Runs().add_runs(v),
        "a whole round": lambda good, v: whole_round(v),
    },
    "runs": {"a round": lambda good, v: good.round(runs=v)},
    "sample": {"RunSizes.add_sample": lambda good, v: _kernel.RunSizes(9, 65535).add_sample(v)},
    "unigrams": {
        "add_unigrams": lambda good, v: _kernel.add_unigrams([v, v]),
        "a round": lambda good, v: good.round(unigrams=v),
        "Trainer.candidates": lambda good, v: trainer().candidates(
            v, [good.pairs], largest=good.largest, most=2
        ),
    },
    "pairs": {
        "add_pairs": lambda good, v: _kernel.add_pairs([v, v]),
        "Trainer.largest": lambda good, v: trainer().largest(v),
        "Trainer.candidates": lambda good, v: trainer().candidates(
            good.unigrams, [v], largest=good.largest, most=2
        ),
    },
    "pieces": {"UnigramModel": lambda good, v: _kernel.UnigramModel(v)},
    "sums": {
        "add_run_sums": lambda good, v: _kernel.add_run_sums([v, v]),
        "maximized": lambda good, v: _kernel.UnigramModel(good.pieces).maximized(v),
    },
    "candidates": {
        "PairLevels": lambda good, v: _kernel.PairLevels(v),
        "a round": lambda good, v: good.round(candidates=v),
    },
}


UNUSED = {"PairLevels": ("count", "first_rank", "first_offset"), "Splitter": ("nothing",)}
"""Columns of a batch that an entry point ignores."""


def whole_round(splits: Any) -> str:
    one = trainer()
    one.add_splits(splits)
    one.start_whole_round()
    return one.run(100)


def batch_cases(good: pa.RecordBatch) -> Iterator[Case]:
    """Yield invalid batches of a kind, and batches with values that only some entry points refuse.
    The right answer of a valid batch is the answer of the complete batch."""
    rows = len(good)
    yield Case("a slice", lambda: pa.concat_batches([good, good]).slice(rows, rows), [])
    yield Case("no columns", lambda: pa.record_batch([], names=[]))
    yield Case("not a batch", lambda: good.column(0))
    yield Case("nothing", lambda: None)
    for at, field in enumerate(good.schema):

        def put(column: Any, at: int = at, field: pa.Field = field) -> pa.RecordBatch:
            return good.set_column(at, field.name, column)

        values = good.column(at).to_pylist()
        kind = field.type
        yield Case(f"{field.name}: left out", lambda at=at: good.remove_column(at))
        yield Case(f"{field.name}: of another name", lambda at=at: renamed(good, at))
        for other in (pa.int8(), pa.bool_(), pa.list_(pa.int64()), pa.decimal128(9)):
            nulls = pa.array([None] * rows, other)
            yield Case(f"{field.name}: {other}", lambda p=put, nulls=nulls: p(nulls))
        some = pa.array([None, *values[1:]], kind)
        yield Case(f"{field.name}: a null", lambda p=put, some=some: p(some))
        if pa.types.is_integer(kind):
            most = 2 ** (kind.bit_width - pa.types.is_signed_integer(kind)) - 1
            for value in (-1, most - 1, most):
                if value >= 0 or pa.types.is_signed_integer(kind):
                    each = pa.array([value] * rows, kind)
                    bits = field.name in ("hash", "high", "low")
                    yield Case(
                        f"{field.name}: all {value}", partial(put, each), possible=bits or value > 0
                    )
        if pa.types.is_list(kind):
            yield from bad_lists(field.name, good.column(at), put)


def renamed(batch: pa.RecordBatch, at: int) -> pa.RecordBatch:
    names = [f"{name}{'?' * (at == n)}" for n, name in enumerate(batch.schema.names)]
    return pa.record_batch(batch.columns, names=names)


def bad_lists(name: str, lists: pa.Array, put: Callable[[Any], Any]) -> Iterator[Case]:
    rows, kind, values = len(lists), lists.type, lists.values
    good = (None, int32s(*[0] * (rows + 1)))
    for bad in (
        [0] + [3] * (rows - 1) + [1],
        [0] + [BEYOND] * (rows - 1) + [1],
        [0] * rows + [BEYOND],
        [-BEYOND] + [0] * rows,
    ):
        make = partial(overwritten, kind, rows, good, 1, int32s(*bad), [values])
        yield Case(f"{name}: offsets {bad}", lambda make=make: put(make()))
    ends = pa.array([0, *[1] * rows], pa.int32())
    for value in (2**32 - 2, 99, None):
        ids = pa.array([value], pa.uint32())
        make = partial(pa.ListArray.from_arrays, ends, ids)
        known = value is not None
        yield Case(f"{name}: lists of {value}", lambda make=make: put(make()), possible=known)


# --- Running them ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """An array for an entry point. `wanted`: the expected outcome; `right`: the correct result."""

    entry: str
    case: Case
    call: Callable[[Any], Any]
    wanted: str
    right: Any


def outcomes(trials: list[Trial]) -> list[str]:
    """Return the outcome of each trial, in other processes: one for all, and one for the rest after
    a crash."""
    found: list[str] = []
    while len(found) < len(trials):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            for trial in trials[len(found) :]:
                os.write(write, what_comes(trial.case.make, trial.call, trial.right) + b"\0")
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            found += pipe.read().decode().split("\0")[:-1]
        _, status = os.waitpid(child, 0)
        if status:
            found.append(f"signal {os.WTERMSIG(status)}")
    return found


def what_comes(make: Callable[[], Any], call: Callable[[Any], Any], right: Any) -> bytes:
    try:
        array = make()
    except Exception as error:
        return f"not made: {type(error).__name__}".encode()
    try:
        answer = call(array)
    except BaseException as error:
        return f"{type(error).__name__}: {error}".encode()
    if right is None:
        return b"not refused"
    return b"right" if right is ANY or answer == right else f"wrong answer: {answer!r}".encode()


ANY = object()  # any answer is right


def all_trials() -> Iterator[Trial]:
    """Return each array for each entry point of its kind."""
    for cases, entries in ((text_cases(), TEXT_ENTRIES), (list_cases(), LIST_ENTRIES)):
        for case in cases:
            for entry in entries:
                right = None if case.right is None else entry.right(case.right)
                wanted = "error" if case.right is None else "right"
                yield Trial(entry.name, case, entry.call, wanted, right)
    good = Good()
    for kind, calls in BATCH_ENTRIES.items():
        for case in batch_cases(getattr(good, kind)):
            named = replace(case, name=f"{kind}, {case.name}")
            for entry, call in calls.items():
                wanted, right = ("error", None) if case.right is None else ("right", ANY)
                if case.possible or case.name.startswith(UNUSED.get(entry, ())):
                    wanted = "either"
                yield Trial(entry, named, partial(call, good), wanted, right)


if __name__ == "__main__":
    given = list(all_trials())
    came = zip(given, outcomes(given), strict=True)
    json.dump([(t.entry, t.case.name, t.wanted, c) for t, c in came], sys.stdout)
