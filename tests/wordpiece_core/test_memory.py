"""Memory that is not there never ends the process; and no result depends on a process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


BEGIN = """
import pyarrow as pa
import pyarrow.compute as pc
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
        "_kernel.WordCounter(TEXT).count(long)",
    ],
)
def test_more_memory_than_there_is_raises_memory_error(work: str) -> None:
    code = f"""
            import resource
            tok = Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a"], max_word_length=10**9)
            texts = ["a"] * 100
            tok.encode(texts)
            long = pc.binary_repeat(pa.array(["x"]), 3 * 10**8)
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
