"""Memory that is not there, and memory that changes, never end the process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


BEGIN = """
import numpy as np
import pyarrow as pa
import wordpiece_core as wp
from wordpiece_core import EncodingOptions, Tokenizer, _kernel
from wordpiece_core.options import ENCODING_COLUMNS
TEXT = wp.TextOptions().for_kernel()
"""


def run(code: str) -> str:
    """What a program prints, in a process of its own that may die."""
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(code)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="only there the limit is that of all memory")
@pytest.mark.parametrize(
    "work",
    [
        "tok.encode_batch(texts, options=EncodingOptions(max_length=2**24, padding=True), "
        "threads=2)",
        "tok.encode_batch(texts, options=EncodingOptions(max_length=2**24, padding=True, "
        "columns=ENCODING_COLUMNS, id_type='uint16'))",
        "tok.encode(pa.array(['a' * 25_000_000]))",
        "_kernel.WordCounter(TEXT).count(pa.array(['x' * 2 * 10**8]))",
    ],
)
def test_more_memory_than_there_is_raises_memory_error(work: str) -> None:
    code = f"""
            import resource
            tok = Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a"], max_word_length=10**9)
            texts = ["a"] * 100
            tok.encode(texts)
            pages = int(open("/proc/self/statm").read().split()[0])
            most = pages * resource.getpagesize() + 2**28
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            try:
                {work}
            except MemoryError as error:
                print(type(error).__name__)
            assert tok.encode(texts).to_pylist()[0] == [2, 4, 3]
        """
    assert run(code) == "MemoryError\n"


def test_arrays_that_change_while_they_are_read_do_no_harm() -> None:
    """Another thread writes into offsets, views and bytes; what was read is of no interest."""
    code = """
            import threading
            texts = ["a b ab " * (n % 9) + "é日" * (n % 3) for n in range(2000)]
            tok = wp.Tokenizer(["[UNK]", "[CLS]", "[SEP]", "a", "b", "##b", "日"])

            def shared(kind):
                made = pa.array(texts, kind)
                memory = [b and np.frombuffer(b, np.uint8).copy() for b in made.buffers()]
                buffers = [None if m is None else pa.py_buffer(m) for m in memory]
                changed = [m for m in memory if m is not None]
                return pa.Array.from_buffers(kind, len(made), buffers), changed

            def change(memory, stop):
                rng = np.random.default_rng(1)
                while not stop.is_set():
                    for bytes in memory:
                        at = rng.integers(0, len(bytes), 50)
                        before = bytes[at].copy()
                        bytes[at] = rng.integers(0, 256, 50, np.uint8)
                        bytes[at] = before

            done = 0
            for kind in (pa.string(), pa.large_string(), pa.string_view()):
                array, memory = shared(kind)
                words = pa.record_batch({"word": array, "count": pa.array(range(len(array)))})
                calls = [
                    lambda: tok.encode_batch(array),
                    lambda: tok.encode_batch(array, threads=2),
                    lambda: _kernel.WordCounter(TEXT).count(array),
                    lambda: _kernel.WordCounter(TEXT).count(array, array),
                    lambda: _kernel.pre_tokenize(array, TEXT),
                    lambda: _kernel.hash_texts(array, b"key"),
                    lambda: _kernel.join_word_tables([words]),
                    lambda: _kernel.symbol_counts(
                        words, first_rank=0, min_word_count=1, max_word_length=100),
                ]
                stop = threading.Event()
                thread = threading.Thread(target=change, args=(memory, stop))
                thread.start()
                for call in calls * 30:
                    try:
                        call()
                        done += 1
                    except wp.WordpieceError:
                        pass
                stop.set()
                thread.join()
            print(done > 0)
        """
    assert run(code) == "True\n"


def test_arrays_of_classes_of_ones_own_are_checked() -> None:
    """An extension array whose class has another module, and its own idea of what is valid."""
    code = """

            class Kind(pa.ExtensionType):
                def __init__(self):
                    super().__init__(pa.string(), "own")
                def __arrow_ext_serialize__(self):
                    return b""
                @classmethod
                def __arrow_ext_deserialize__(cls, storage, data):
                    return cls()
                def __arrow_ext_class__(self):
                    return Texts

            class Texts(pa.ExtensionArray):
                def validate(self, *, full=False):
                    pass
                def buffers(self):
                    return []

            offsets = np.array([0, 1], np.int32)
            storage = pa.Array.from_buffers(
                pa.string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])
            array = pa.ExtensionArray.from_storage(Kind(), storage)
            batch = pa.record_batch([array, pa.array([1])], names=["word", "count"])
            offsets[1] = 1 << 30
            for call in (
                lambda: _kernel.repair_utf8(array),
                lambda: _kernel.hash_texts(array, b""),
                lambda: _kernel.join_word_tables([batch]),
            ):
                try:
                    call()
                except wp.InputError as error:
                    print("buffer 2 has 2 bytes, not 1073741824" in str(error))
            good = pa.ExtensionArray.from_storage(Kind(), pa.array(["a", "b"]))
            print(pa.array(_kernel.repair_utf8(good)[0]).to_pylist())
        """
    assert run(code) == "True\n" * 3 + "['a', 'b']\n"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="of Linux")
def test_seeds_of_hash_tables_change_no_result() -> None:
    """Tables are read in another order in each process; what comes of them is the same."""
    code = """
        import hashlib

        words = {f"w{n * 7919 % 1000:x}ab{n % 17}": 1 + n % 13 for n in range(600)}
        made = []
        for options in (
            dict(), dict(round_budget=.3), dict(criterion="frequency", round_budget=.3),
            dict(model="bpe", word_boundary="</w>"), dict(model="unigram"),
        ):
            result = wp.train(words, vocab_size=140, **options)
            made.append(result.vocab)
        counter = _kernel.WordCounter(TEXT)
        counter.count(pa.array([" ".join(words), "日本 " + "x" * 50]), pa.array(["a", "b"]))
        for number, group, total, batch in counter.take(3):
            made.append((number, group, total, pa.record_batch(batch).to_pydict()))
        print(hashlib.sha256(repr(made).encode()).hexdigest())
        """
    assert len({run(code) for _ in range(4)}) == 1
