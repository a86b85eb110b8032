"""No result depends on the seeds of hash tables, which differ from process to process."""

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
import wordpiece_core as wp
from wordpiece_core import _kernel
TEXT = wp.TextOptions().for_kernel()
"""


def run(code: str) -> str:
    """Run a program in a new process, and return its output."""
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(code)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


@pytest.mark.soak
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
