"""Arrays that break Arrow's rules, and each entry point of the kernel that takes arrays.

`python -m tests.wordpiece_core.invalid_arrays` hands every array to every entry point that takes
its kind, in other processes, and prints as JSON of each: the entry point, the array, what is to
come of it ("right", "error", or "either" where the entry point may have no use for what is wrong)
and what came: "right", "wrong answer", "not refused", "not made", "signal N", or the exception.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from wordpiece_core import _kernel

TEXT = {
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": True,
    "lowercase": True,
    "pre_tokenizer": "bert",
}
VOCAB = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "a", "b", "ab", "##a", "##b"]


@dataclass(frozen=True)
class Case:
    """`make`: the array, or an object that says to be one. `right`: what the values of a harmless
    one are; None: it must be refused."""

    name: str
    make: Callable[[], Any]
    right: list[Any] | None = None


# --- Arrays made by hand, through the C data interface --------------------------------------------


class CArray(ctypes.Structure):
    """Arrow's struct ArrowArray."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset")),
        *((name, ctypes.c_int64) for name in ("n_buffers", "n_children")),
        *((name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary")),
        *((name, ctypes.c_void_p) for name in ("release", "private_data")),
    )


class CSchema(ctypes.Structure):
    """Arrow's struct ArrowSchema."""

    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("format", "name", "metadata")),
        *((name, ctypes.c_int64) for name in ("flags", "n_children")),
        *((name, ctypes.c_void_p) for name in ("children", "dictionary")),
        *((name, ctypes.c_void_p) for name in ("release", "private_data")),
    )


KEPT: list[Any] = []  # what C structures point to
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@RELEASE
def release_array(pointer: int) -> None:
    CArray.from_address(pointer).release = None


@RELEASE
def release_schema(pointer: int) -> None:
    CSchema.from_address(pointer).release = None


def pointers(addresses: list[int | None]) -> int | None:
    """A C array of pointers."""
    array = (ctypes.c_void_p * len(addresses))(*addresses)
    KEPT.append(array)
    return ctypes.addressof(array)


def keep(data: bytes | None) -> int | None:
    """The address of a buffer, with room behind it, so that reading on is no fault by itself."""
    if data is None:
        return None
    buffer = ctypes.create_string_buffer(data + bytes(64))
    KEPT.append(buffer)
    return ctypes.addressof(buffer)


def c_array(
    length: int,
    buffers: list[bytes | None],
    children: list[CArray] | None = None,
    **fields: Any,
) -> CArray:
    """A struct ArrowArray; `fields` are set as given, right or not."""
    array = CArray(length=length, n_buffers=len(buffers))
    array.buffers = pointers([keep(data) for data in buffers])
    if children:
        array.n_children = len(children)
        array.children = pointers([ctypes.addressof(child) for child in children])
    array.release = ctypes.cast(release_array, ctypes.c_void_p).value
    for name, value in fields.items():
        setattr(array, name, value)
    KEPT.append((array, children))
    return array


def c_schema(
    format: str | bytes | None, children: list[CSchema] | None = None, **fields: Any
) -> CSchema:
    """A struct ArrowSchema."""
    schema = CSchema(name=b"", flags=2)
    schema.format = format.encode() if isinstance(format, str) else format
    if children:
        schema.n_children = len(children)
        schema.children = pointers([ctypes.addressof(child) for child in children])
    schema.release = ctypes.cast(release_schema, ctypes.c_void_p).value
    for name, value in fields.items():
        setattr(schema, name, value)
    KEPT.append((schema, children))
    return schema


def capsule(structure: ctypes.Structure, name: bytes) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    KEPT.append(name)
    return make(ctypes.addressof(structure), name, None)


class Producer:
    """An object with an Arrow array, or something that it says is one."""

    def __init__(self, schema: CSchema, array: CArray, names: tuple[bytes, bytes] | None = None):
        first, second = names or (b"arrow_schema", b"arrow_array")
        self.capsules = (capsule(schema, first), capsule(array, second))
        self.length = array.length

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.capsules

    def __len__(self) -> int:
        return min(max(self.length, 0), 9)


class Gives:
    """An object whose `__arrow_c_array__` gives this, or raises it."""

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
    """A long view of a string."""
    return struct.pack("<i4sii", length, head, buffer, offset)


def short_view(data: bytes) -> bytes:
    return struct.pack("<i12s", len(data), data)


BEYOND = 1 << 30  # far enough to be a fault
LONG = b"a b ab a b ab a b ab"  # 20 bytes: no short view


# --- Arrays of text -------------------------------------------------------------------------------


def text_cases() -> Iterator[Case]:
    """Arrays of texts; those that are harmless have the texts `a`, `b`, `ab`."""
    right = ["a", "b", "ab"]
    for format, pack in (("u", int32s), ("z", int32s), ("U", int64s), ("Z", int64s)):
        yield from byte_cases(format, pack, right)
    for format in ("vu", "vz"):
        yield from view_cases(format, right)
    yield from structure_cases(right)
    yield from pyarrow_cases(right)
    yield from object_cases()


def byte_cases(format: str, pack: Callable[..., bytes], right: list[Any]) -> Iterator[Case]:
    def case(name: str, offsets: tuple[int, ...], right: Any = None, **fields: Any) -> Case:
        buffers = [fields.pop("bitmap", None), pack(*offsets), b"abab"]
        length = fields.pop("length", 3)
        return Case(
            f"{format}: {name}",
            lambda: Producer(c_schema(format), c_array(length, buffers, **fields)),
            right,
        )

    yield case("whole", (0, 1, 2, 4), right)
    yield case("a slice", (7, 0, 1, 2, 4), right, offset=1)
    yield case("empty, with any offset", (9,), [], length=0)
    yield case("nulls", (0, 1, 2, 4), ["a", None, "ab"], bitmap=b"\x05", null_count=1)
    yield case("nulls not counted", (0, 1, 2, 4), ["a", None, "ab"], bitmap=b"\x05", null_count=-1)
    yield case("decreasing offsets", (0, 4, 2, 4))
    yield case("far decreasing offsets", (0, BEYOND, 2, 4))
    yield case("a negative offset", (0, -1, 2, 4))
    yield case("a negative first offset", (-BEYOND, 1, 2, 4))
    yield case("a negative last offset", (0, 1, 2, -4))
    yield case("a last offset below all", (0, 1, 2, 0))
    yield case("a negative length", (0, 1, 2, 4), length=-3)
    yield case("too large a length", (0, 1, 2, 4), length=1 << 62)
    yield case("a negative position", (0, 1, 2, 4), offset=-1)
    yield case("too large a position", (0, 1, 2, 4), offset=(1 << 63) - 2)
    yield case("too few buffers", (0, 1, 2, 4), n_buffers=2)
    yield case("no buffers", (0, 1, 2, 4), n_buffers=0)
    yield case("less than no buffers", (0, 1, 2, 4), n_buffers=-1)
    yield case("no list of buffers", (0, 1, 2, 4), buffers=None)
    yield case("nulls without a bitmap", (0, 1, 2, 4), null_count=1)
    yield case("more nulls than rows", (0, 1, 2, 4), bitmap=b"\x05", null_count=9)
    yield case("a child", (0, 1, 2, 4), n_children=1)
    yield Case(
        f"{format}: empty, without buffers",
        lambda: Producer(c_schema(format), c_array(0, [None, None, None])),
        [],
    )
    yield case("released", (0, 1, 2, 4), release=None)
    for name, offsets, data in (
        ("no offsets", None, b"abab"),
        ("no data", pack(0, 1, 2, 4), None),
    ):
        buffers = [None, offsets, data]
        yield Case(
            f"{format}: {name}",
            lambda buffers=buffers: Producer(c_schema(format), c_array(3, buffers)),
        )


def view_cases(format: str, right: list[Any]) -> Iterator[Case]:
    good = short_view(b"a") + short_view(b"b")

    def case(name: str, third: bytes, right: Any = None, **fields: Any) -> Case:
        lengths = fields.pop("lengths", int64s(len(LONG)))
        buffers = [fields.pop("bitmap", None), good + third, LONG, lengths]
        return Case(
            f"{format}: {name}",
            lambda: Producer(c_schema(format), c_array(3, buffers, **fields)),
            right,
        )

    whole = view(len(LONG), LONG[:4], 0, 0)
    yield case("short", short_view(b"ab"), right)
    yield case("long", whole, ["a", "b", LONG.decode()])
    yield case("another head", view(len(LONG), b"xxxx", 0, 0), ["a", "b", LONG.decode()])
    yield case(
        "a bad view of a null",
        view(99, b"", 9, BEYOND),
        ["a", "b", None],
        bitmap=b"\3",
        null_count=1,
    )
    yield case("a buffer that is not there", view(20, LONG[:4], 1, 0))
    yield case("a buffer far away", view(20, LONG[:4], BEYOND, 0))
    yield case("a negative buffer", view(20, LONG[:4], -1, 0))
    yield case("a negative length", view(-1, LONG[:4], 0, 0))
    yield case("too long", view(21, LONG[:4], 0, 0))
    yield case("far too long", view(BEYOND, LONG[:4], 0, 0))
    yield case("a place too far", view(20, LONG[:4], 0, 1))
    yield case("a place far away", view(20, LONG[:4], 0, BEYOND))
    yield case("a negative place", view(20, LONG[:4], 0, -BEYOND))
    yield case("a buffer of negative length", whole, lengths=int64s(-1))
    yield case("no lengths", whole, lengths=None)
    yield case("too few buffers", whole, n_buffers=2)
    yield case("no buffers", whole, n_buffers=0)


def structure_cases(right: list[Any]) -> Iterator[Case]:
    def texts() -> CArray:
        return c_array(3, [None, int32s(0, 1, 2, 4), b"abab"])

    def made(name: str, schema: Callable[[], CSchema], array: Callable[[], CArray]) -> Case:
        return Case(name, lambda: Producer(schema(), array()))

    yield made("a format that is none", lambda: c_schema("?"), texts)
    yield made("no format", lambda: c_schema(None), texts)
    yield made("a format that is not UTF-8", lambda: c_schema(b"\xff"), texts)
    yield made("a released schema", lambda: c_schema("u", release=None), texts)
    yield made("a list without a child in its schema", lambda: c_schema("+l"), texts)
    yield made("a dictionary", lambda: c_schema("i", dictionary=0), texts)
    yield made("texts as numbers", lambda: c_schema("l"), texts)
    yield made(
        "a list without a child",
        lambda: c_schema("+l", [c_schema("i")]),
        lambda: c_array(1, [None, int32s(0, 1)]),
    )
    yield made(
        "a struct without children",
        lambda: c_schema("+s", [c_schema("i")]),
        lambda: c_array(1, [None]),
    )


def pyarrow_cases(right: list[Any]) -> Iterator[Case]:
    def case(name: str, kind: pa.DataType, length: int, *buffers: Any, **more: Any) -> Case:
        given = [None if data is None else pa.py_buffer(data) for data in buffers]
        right = more.pop("right", None)
        return Case(
            f"pyarrow: {name}",
            lambda: pa.Array.from_buffers(kind, length, given, **more),
            right,
        )

    for kind, pack in (
        *((kind, int32s) for kind in (pa.string(), pa.binary())),
        *((kind, int64s) for kind in (pa.large_string(), pa.large_binary())),
    ):
        yield case(f"{kind}, decreasing", kind, 3, None, pack(0, 3, 2, 4), b"abab")
        yield case(f"{kind}, far decreasing", kind, 3, None, pack(0, BEYOND, 2, 4), b"abab")
        yield case(f"{kind}, negative", kind, 3, None, pack(0, -BEYOND, 2, 4), b"abab")
        yield case(f"{kind}, too short data", kind, 3, None, pack(0, 1, 2, 9), b"abab")
        yield case(f"{kind}, too few offsets", kind, 3, None, pack(0, 1, 2), b"abab")
        yield case(f"{kind}, too short a bitmap", kind, 3, b"", pack(0, 1, 2, 4), b"abab")
        yield misaligned(kind, pack, right)
    for kind in (pa.string_view(), pa.binary_view()):
        good = short_view(b"a") + short_view(b"b")
        for name, bad in (
            ("a place far away", view(20, LONG[:4], 0, BEYOND)),
            ("a buffer that is not there", view(20, LONG[:4], 7, 0)),
            ("far too long", view(BEYOND, LONG[:4], 0, 0)),
            ("a negative length", view(-9, LONG[:4], 0, 0)),
        ):
            yield case(f"{kind}, {name}", kind, 3, None, good + bad, LONG)
        yield case(f"{kind}, too few views", kind, 3, None, good, LONG)


def misaligned(kind: pa.DataType, pack: Callable[..., bytes], right: list[Any]) -> Case:
    offsets = pa.py_buffer(b"\0" + pack(0, 1, 2, 4)).slice(1)
    buffers = [None, offsets, pa.py_buffer(b"abab")]
    return Case(
        f"pyarrow: {kind}, misaligned", lambda: pa.Array.from_buffers(kind, 3, buffers), right
    )


def object_cases() -> Iterator[Case]:
    def good(names: tuple[bytes, bytes] | None = None) -> Producer:
        array = c_array(3, [None, int32s(0, 1, 2, 4), b"abab"])
        return Producer(c_schema("u"), array, names)

    def used() -> Producer:
        producer = good()
        _kernel.repair_utf8(producer)
        return producer

    swapped = (b"arrow_array", b"arrow_schema")
    yield Case("a capsule used twice", used)
    yield Case("capsules in the wrong order", lambda: good(swapped))
    yield Case("capsules of other names", lambda: good((b"schema", b"array")))
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
    counter = _kernel.WordCounter(**TEXT)
    assert counter.count(texts) == counter.rows
    batches = [pa.record_batch(batch) for *_, batch in counter.take(1)]
    return [word for batch in batches for word in batch["word"].to_pylist()]


def counted_by_group(groups: Any) -> list[Any]:
    counter = _kernel.WordCounter(**TEXT)
    texts = pa.array(["a"] * len(groups))
    counter.count(texts, groups)
    return sorted({group for _, group, *_ in counter.take(1)}, key=str)


def encoder() -> _kernel.Encoder:
    return _kernel.Encoder(
        VOCAB,
        **TEXT,
        unk_token="[UNK]",
        continuing_prefix="##",
        max_word_length=100,
        unk_scope="word",
        added_tokens=[(token, False, False) for token in VOCAB[:5]],
        hidden=[],
    )


def encoded(texts: Any, pairs: Any = None, threads: int = 1) -> list[Any]:
    batches, _, _ = encoder().encode(
        texts,
        pairs,
        add_special_tokens=False,
        max_length=None,
        truncation="longest_first",
        stride=None,
        padding=False,
        columns=["offset_mapping", "word_ids"],
        id_type="int32",
        threads=threads,
    )
    return pa.Table.from_batches(map(pa.record_batch, batches))["input_ids"].to_pylist()


def ids_of(texts: list[str | None]) -> list[Any]:
    return [
        None if text is None else [VOCAB.index(word) for word in text.split()] for text in texts
    ]


def words_of(texts: list[str | None]) -> list[str]:
    return sorted({word for text in texts if text is not None for word in text.split()})


@dataclass(frozen=True)
class Entry:
    """An entry point, and what it gives for an array that is in order."""

    name: str
    call: Callable[[Any], Any]
    right: Callable[[list[Any]], Any]


TEXT_ENTRIES = (
    Entry("WordCounter.count", counted, words_of),
    Entry("WordCounter.count groups", counted_by_group, lambda v: sorted({*v}, key=str)),
    Entry("repair_utf8", lambda v: pa.array(_kernel.repair_utf8(v)[0]).to_pylist(), list),
    Entry(
        "pre_tokenize",
        lambda v: pa.array(_kernel.pre_tokenize(v, **TEXT)).to_pylist(),
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
    """Lists of ids; those that are harmless have `[5, 6], [7]`."""

    def case(name: str, offsets: tuple[int, ...], right: Any = None, **fields: Any) -> Case:
        child = fields.pop("child", {})
        length = fields.pop("length", 2)

        def make() -> Producer:
            ids = c_array(**{"length": 3, "buffers": [None, int32s(5, 6, 7)], **child})
            buffers = [fields.pop("bitmap", None), int32s(*offsets)]
            return Producer(
                c_schema("+l", [c_schema("i")]), c_array(length, buffers, [ids], **fields)
            )

        return Case(f"lists: {name}", make, right)

    right = [[5, 6], [7]]
    yield case("whole", (0, 2, 3), right)
    yield case("a slice", (3, 0, 2, 3), right, offset=1)
    yield case("decreasing", (0, 3, 2))
    yield case("far decreasing", (0, BEYOND, 3))
    yield case("negative", (0, -1, 3))
    yield case("negative first", (-BEYOND, 2, 3))
    yield case("negative last", (0, 2, -3))
    yield case("beyond the child", (0, 2, 4))
    yield case("far beyond the child", (0, 2, BEYOND))
    yield case("a child too short", (0, 2, 3), child={"length": 2})
    yield case("a child of negative length", (0, 2, 3), child={"length": -1})
    yield case("a child without values", (0, 2, 3), child={"buffers": [None, None]})
    yield case("a child of one buffer", (0, 2, 3), child={"buffers": [None]})
    yield case("a released child", (0, 2, 3), child={"release": None})
    yield case(
        "nulls in the child",
        (0, 2, 3),
        child={"buffers": [b"\5", int32s(5, 6, 7)], "null_count": 1},
    )
    yield case("no pointer to the child", (0, 2, 3), children=None)
    yield case("no list of buffers", (0, 2, 3), buffers=None)
    yield case("too large a length", (0, 2, 3), length=1 << 61)
    yield case(
        "an id beyond the vocabulary", (0, 2, 3), child={"buffers": [None, int32s(5, 6, 70)]}
    )
    yield case("a negative id", (0, 2, 3), child={"buffers": [None, int32s(5, -6, 7)]})
    values = pa.array([5, 6, 7], pa.int32())
    for name, offsets in (
        ("decreasing", (0, 3, 2)),
        ("far", (0, BEYOND, 3)),
        ("below", (0, -9, 3)),
    ):
        buffers = [None, pa.py_buffer(int32s(*offsets))]
        yield Case(
            f"pyarrow lists: {name}",
            lambda buffers=buffers: pa.Array.from_buffers(
                pa.list_(pa.int32()), 2, buffers, children=[values]
            ),
        )
    short = pa.Array.from_buffers(pa.int32(), 0, [None, None])
    yield Case(
        "pyarrow lists: of an empty child",
        lambda: pa.Array.from_buffers(
            pa.list_(pa.int32()), 2, [None, pa.py_buffer(int32s(0, 2, 3))], children=[short]
        ),
    )
    yield Case("lists of another type", lambda: pa.array([[5, 6], [7]], pa.list_(pa.int64())))
    yield Case("lists of texts", lambda: pa.array([["a"]]))
    yield Case("no lists", lambda: pa.array([5, 6]))
    yield Case("no array", lambda: [[5, 6], [7]])


def packed(ids: Any) -> list[Any]:
    packer = _kernel.Packer(
        length=8, cls_id=1, sep_id=2, pad_id=3, vocab_size=10, id_type="int32", columns=[]
    )
    packer.add(ids, 0)
    return pa.record_batch(packer.finish())["input_ids"].to_pylist()


LIST_ENTRIES = (Entry("Packer.add", packed, lambda v: [[1, 5, 6, 2, 7, 2, 3, 3]]),)


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


def trainer(min_pair_count: int | None = 1, criterion: str = "likelihood") -> _kernel.Trainer:
    return _kernel.Trainer(
        TOKENS,
        vocab_size=12,
        criterion=criterion,
        min_pair_count=min_pair_count,
        max_token_length=100,
        continuing_prefix="##",
    )


class Good:
    """Batches of every kind that are in order, of one small training."""

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
        self.limits = pa.record_batch(
            whole.limits(
                self.unigrams, [self.pairs], candidates=self.candidates, largest=self.largest
            )
        )
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

    @property
    def levels(self) -> _kernel.PairLevels:
        return _kernel.PairLevels(self.candidates, True)

    def round(self, **given: Any) -> list[Any]:
        """A whole round under a budget, some of what it is given being replaced."""
        results = []
        for criterion, min_pair_count in (("likelihood", 1), ("pmi", None), ("frequency", 1)):
            one = trainer(min_pair_count, criterion)
            parts = {
                "unigrams": self.unigrams,
                "candidates": self.candidates,
                "limits": self.limits,
                "runs": self.runs,
            } | given
            one.add_splits(parts.pop("runs"))
            one.start_round(**parts, largest=self.largest, max_level=self.max_level)
            results.append(one.run(100))
        return results


BATCH_ENTRIES: dict[str, dict[str, Callable[[Good, Any], Any]]] = {
    "words": {
        "WordCounter.add": lambda good, v: _kernel.WordCounter(**TEXT).add(v),
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
        "Trainer.limits": lambda good, v: trainer().limits(
            v, [good.pairs], candidates=good.candidates, largest=good.largest
        ),
    },
    "pairs": {
        "add_pairs": lambda good, v: _kernel.add_pairs([v, v]),
        "Trainer.largest": lambda good, v: trainer().largest(v),
        "Trainer.candidates": lambda good, v: trainer().candidates(
            good.unigrams, [v], largest=good.largest, most=2
        ),
        "Trainer.limits": lambda good, v: trainer().limits(
            good.unigrams, [v], candidates=good.candidates, largest=good.largest
        ),
    },
    "candidates": {
        "PairLevels": lambda good, v: _kernel.PairLevels(v, True),
        "a round": lambda good, v: good.round(candidates=v),
        "Trainer.limits": lambda good, v: trainer().limits(
            good.unigrams, [good.pairs], candidates=v, largest=good.largest
        ),
    },
    "limits": {
        "join_limits": lambda good, v: _kernel.join_limits([v, v]),
        "a round": lambda good, v: good.round(limits=v),
    },
}


def whole_round(splits: Any) -> str:
    one = trainer()
    one.add_splits(splits)
    one.start_whole_round()
    return one.run(100)


def batch_cases(good: pa.RecordBatch) -> Iterator[Case]:
    """Batches of a kind that are not in order; of some columns, any value will do. The right
    answer of a harmless one is that of the whole."""
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
                    yield Case(f"{field.name}: all {value}", lambda p=put, each=each: p(each))
        if pa.types.is_list(kind):
            yield from bad_lists(field.name, good.column(at), put)
    yield Case("columns of several lengths", lambda: uneven(good))
    yield Case("children too short", lambda: short_children(good))


def renamed(batch: pa.RecordBatch, at: int) -> pa.RecordBatch:
    names = [f"{name}{'?' * (at == n)}" for n, name in enumerate(batch.schema.names)]
    return pa.record_batch(batch.columns, names=names)


def bad_lists(name: str, lists: pa.Array, put: Callable[[Any], Any]) -> Iterator[Case]:
    rows, kind, values = len(lists), lists.type, lists.values
    for what, offsets in (
        ("decreasing", [0] + [3] * (rows - 1) + [1]),
        ("far", [0] + [BEYOND] * (rows - 1) + [1]),
        ("beyond", [0] * rows + [BEYOND]),
        ("negative", [-BEYOND] + [0] * rows),
    ):
        buffers = [None, pa.py_buffer(int32s(*offsets))]
        yield Case(
            f"{name}: lists {what}",
            lambda buffers=buffers: put(
                pa.Array.from_buffers(kind, rows, buffers, children=[values])
            ),
        )
    ends = pa.array([0, *[1] * rows], pa.int32())
    for value in (2**32 - 2, 99):
        ids = pa.array([value], pa.uint32())
        yield Case(
            f"{name}: lists of {value}",
            lambda ids=ids: put(pa.ListArray.from_arrays(ends, ids)),
        )
    ids = pa.array([None], pa.uint32())
    yield Case(f"{name}: lists of nulls", lambda: put(pa.ListArray.from_arrays(ends, ids)))


def exported(batch: pa.RecordBatch) -> tuple[CSchema, CArray]:
    """The C structures of a batch, to be changed."""
    schema, array = CSchema(), CArray()
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    KEPT.append((schema, array))
    return schema, array


def children_of(array: CArray) -> list[CArray]:
    addresses = (ctypes.c_void_p * array.n_children).from_address(array.children)
    return [CArray.from_address(address) for address in addresses]


def uneven(batch: pa.RecordBatch) -> Producer:
    schema, array = exported(batch)
    children_of(array)[-1].length -= 1
    return Producer(schema, array)


def short_children(batch: pa.RecordBatch) -> Producer:
    schema, array = exported(batch)
    array.length += 1
    return Producer(schema, array)


# --- Running them ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """An array for an entry point. `wanted`: what is to come of it; `right`: the right answer."""

    entry: str
    case: Case
    call: Callable[[Any], Any]
    wanted: str
    right: Any


def outcomes(trials: list[Trial]) -> list[str]:
    """What comes of each, in other processes: one for all, and where it dies one for the rest."""
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
    """Every array for every entry point that takes its kind."""
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
                wanted, right = ("either", None) if case.right is None else ("right", ANY)
                yield Trial(entry, named, partial(call, good), wanted, right)


if __name__ == "__main__":
    given = list(all_trials())
    came = zip(given, outcomes(given), strict=True)
    json.dump([(t.entry, t.case.name, t.wanted, c) for t, c in came], sys.stdout)
