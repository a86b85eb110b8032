"""Weights for languages: one vocabulary for all languages of the text, with and without smoothing.

Nine tenths of each language are counted by `wordpiece count --group-column`, once with the counts
as they are and once smoothed; a vocabulary is trained on each table; and the words of the other
tenths are encoded with it. What is held out is as in `benchmarks.held_out`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import wordpiece_core as wp
from benchmarks.count_job import count_in_memory
from benchmarks.held_out import BLOCKS
from benchmarks.measure import WORDPIECE, Row, number, run_process
from benchmarks.setting import COLUMN, Setting, megabytes, read_texts
from pipelines.counting.word_table import WordTable, read_word_table, read_words, word_ranges

SIZE = 30_522
EXPONENTS = (1.0, 0.7)
GROUP = "language"


def groups(setting: Setting) -> Iterator[Row]:
    """One vocabulary for all languages: tokens per word by language, on text held out"""
    held_out: dict[str, pa.RecordBatch] = {}
    sizes: dict[str, float] = {}
    for language, paths in setting.groups.items():
        texts = read_texts(paths)
        is_rest = np.arange(len(texts)) * BLOCKS // len(texts) % 10 == 9
        training = texts.filter(pa.array(~is_rest))
        columns = {GROUP: pa.repeat(language, len(training)), COLUMN: training}
        pq.write_table(pa.table(columns), setting.work / f"group-{language}.parquet")
        held_out[language] = count_in_memory(texts.filter(pa.array(is_rest)))
        sizes[language] = megabytes(training)
    tables = {exponent: count(setting, exponent) for exponent in EXPONENTS}
    results = {
        exponent: {name: tokens_per_word(vocab, words) for name, words in held_out.items()}
        for exponent, vocab in ((exponent, train(table)) for exponent, table in tables.items())
    }
    before, after = (results[exponent] for exponent in EXPONENTS)
    weights = (tables[EXPONENTS[1]].smoothing or {})["groups"]
    for group in sorted(weights, key=lambda group: group["weight"]):
        name = group["name"]
        yield {
            "language": name,
            "MB": number(sizes[name]),
            "words": f"{group['words']:,}",
            f"weight, A = {EXPONENTS[1]}": f"{group['weight']:.3f}",
            "tokens per word, A = 1": f"{before[name]:.4f}",
            f"A = {EXPONENTS[1]}": f"{after[name]:.4f}",
            "%": f"{100 * (after[name] / before[name] - 1):+.2f}",
        }


def count(setting: Setting, exponent: float) -> WordTable:
    """The word table of all languages, smoothed."""
    output = str(setting.work / f"smoothed-{exponent}")
    command = [WORDPIECE, "count", str(setting.work / "group-*.parquet"), "--output", output]
    smoothing = ["--group-column", GROUP, "--smoothing-exponent", str(exponent)]
    run_process([*command, *smoothing], setting.cores, os.environ)
    return read_word_table(output)


def train(table: WordTable) -> list[str]:
    """A vocabulary by the default criterion."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wp.FewerTokensWarning)
        words = pa.Table.from_batches(map(read_words, word_ranges(table)))
        return wp.train(words, vocab_size=SIZE).vocab


def tokens_per_word(vocab: list[str], words: pa.RecordBatch) -> float:
    """Each word as often as it occurs."""
    ids = wp.Tokenizer(vocab).encode(words["word"], add_special_tokens=False)
    tokens = pc.sum(pc.multiply(ids.value_lengths(), words["count"])).as_py()
    return float(tokens / pc.sum(words["count"]).as_py())
