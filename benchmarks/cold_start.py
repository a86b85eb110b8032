"""From a vocabulary file to the first ids, in a process that has just been started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks.measure import Row, Spread, in_turn
from benchmarks.setting import Setting

OURS = """
import time
import wordpiece_core
wordpiece_core.Tokenizer
started = time.perf_counter()
tokenizer = wordpiece_core.Tokenizer.load({vocab!r}, lowercase=True)
tokenizer.encode(["A first sentence, to be encoded."])
print(time.perf_counter() - started)
"""
PEER = """
import time
from transformers import BertTokenizerFast
started = time.perf_counter()
tokenizer = BertTokenizerFast(vocab={vocab!r}, do_lower_case=True)
tokenizer(["A first sentence, to be encoded."])
print(time.perf_counter() - started)
"""
PROCESSES = 5  # in each run


def cold_start(setting: Setting) -> Iterator[Row]:
    """Loading a vocabulary and encoding one sentence, ms beyond importing"""
    scripts = {"wordpiece_core": OURS, "transformers": PEER}
    runs = {
        name: process(script.format(vocab=str(setting.vocab))) for name, script in scripts.items()
    }
    for name, seconds in in_turn(runs, setting.runs * PROCESSES).items():
        taken = Spread.of([1000 * run for run in seconds])
        yield {"tool": name, "ms": str(taken), "runs": str(len(seconds))}


def process(script: str) -> Callable[[], float]:
    """Runs a script in a process of its own; what it prints."""

    def run() -> float:
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
        return float(done.stdout)

    return run
