"""Training from a word table in memory to a vocabulary, beside the peers, each run a process.

Ours: the seconds of `wordpiece_core.train` on an Arrow table, everything from cutting words into
characters to the training log. The peers take text, not counts: they get each word as often as it
is counted, cut at spaces. Their merge stage is the time for that less the time for a vocabulary of
alphabet size from the same text, so neither counting words nor (in `tokenizers`) the first count of
pairs is held against them. `rustbpe` merges bytes, as often as our `frequency` merges. Ours merges
on one thread; the peers use as many as they like of the cores given.

Peak memory is that of the process, whole and less that of the same process which has imported the
trainer and read the table, and then ends. `B/word`: the latter by distinct words.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.count_job import count_in_memory
from benchmarks.measure import Row, Spread, number, run_process
from benchmarks.merge_contender import TRAINERS
from benchmarks.setting import Setting, read_texts

SCRIPT = str(Path(__file__).with_name("merge_contender.py"))
OURS = ("pmi", "likelihood", "frequency")
ALPHABET = {"tokenizers": 1, "rustbpe": 256}
"""The vocabulary size at which a peer counts but does not merge."""
BYTES = 256
LANGUAGES_SIZE = 120_000
WORDS_OF_A_LANGUAGE = 1_000_000
"""How many running words each language of `wordfreq` stands for."""


@dataclass(frozen=True)
class Run:
    """What a run took. `seconds`: from the table to the vocabulary."""

    seconds: float
    peak: float
    tokens: int
    merges: int


def merge_loop(setting: Setting) -> Iterator[Row]:
    """Word table in, vocabulary out; stage s: less counting; times: to the stage of tokenizers"""
    tables: dict[str, tuple[Callable[[], pa.Table], int]] = {
        setting.main_group: (lambda: corpus_words(setting), 30_522),
        "wordfreq": (language_words, LANGUAGES_SIZE),
    }
    for name, (make, size) in tables.items():
        try:
            words = make()
        except ImportError:
            continue
        path = setting.work / f"{name}.parquet"
        pq.write_table(words, path)
        yield from rows_of(name, words.num_rows, path, size, setting)


def rows_of(name: str, words: int, path: Path, size: int, setting: Setting) -> Iterator[Row]:
    """The rows of one table."""
    tools = [tool for tool in TRAINERS if is_there(tool)]
    bases = {tool: run(tool, path, 0, setting).peak for tool in tools}
    runs: dict[str, list[Run]] = {tool: [] for tool in tools}
    counting: dict[str, list[float]] = {tool: [] for tool in tools}
    for _ in range(setting.runs):
        for tool in tools:
            wanted = size
            if tool == "rustbpe":
                wanted = BYTES + runs["frequency"][-1].merges
            if tool in ALPHABET:
                counting[tool].append(run(tool, path, ALPHABET[tool], setting).seconds)
            runs[tool].append(run(tool, path, wanted, setting))
    stage = {
        tool: statistics.median(one.seconds for one in runs[tool])
        - (statistics.median(counting[tool]) if counting[tool] else 0)
        for tool in tools
    }
    for tool in tools:
        peak = statistics.median(one.peak for one in runs[tool])
        yield {
            "table": f"{name}, {words:,}",
            "trainer": f"ours, {tool}" if tool in OURS else tool,
            "tokens": f"{runs[tool][0].tokens:,}",
            "seconds": str(Spread.of([one.seconds for one in runs[tool]])),
            "stage s": number(stage[tool]),
            "times": number(stage["tokenizers"] / stage[tool]),
            "peak MB": number(peak),
            "less base": number(peak - bases[tool]),
            "B/word": number(1e6 * (peak - bases[tool]) / words),
        }


def is_there(tool: str) -> bool:
    """Whether a trainer is installed."""
    try:
        TRAINERS[tool]()
    except ImportError:
        return False
    return True


def run(tool: str, path: Path, size: int, setting: Setting) -> Run:
    """One trainer on a table, in a process of its own."""
    result = setting.work / "result.json"
    command = [sys.executable, SCRIPT, tool, str(path), str(size), str(result)]
    taken = run_process(command, setting.cores, os.environ)
    made: dict[str, Any] = json.loads(result.read_text())
    return Run(made["seconds"], taken.peak_bytes / 1e6, made["tokens"], made["merges"])


def corpus_words(setting: Setting) -> pa.Table:
    """The word table of the main text."""
    texts = read_texts(setting.groups[setting.main_group])
    return pa.Table.from_batches([count_in_memory(texts)])


def language_words() -> pa.Table:
    """The words of all languages of `wordfreq`: a million running words each, and every word at
    least once. Its lists hold the words of one frequency, rounded to a hundredth of its logarithm.

    Raises ImportError if the package is not installed.
    """
    import wordfreq

    counts: Counter[str] = Counter()
    for language in wordfreq.available_languages("best"):
        for hundredths, words in enumerate(wordfreq.get_frequency_list(language, "best")):
            count = max(1, round(WORDS_OF_A_LANGUAGE * 10 ** (-hundredths / 100)))
            counts.update({word: count for word in words if not any(map(str.isspace, word))})
    table = pa.table({"word": list(counts), "count": pa.array(counts.values(), pa.int64())})
    order = pc.sort_indices(table, [("count", "descending"), ("word", "ascending")])
    return table.take(order)
