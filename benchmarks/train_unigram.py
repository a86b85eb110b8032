"""Train a unigram language model next to sentencepiece, and evaluate both on held-out text.

Both get the same lines of text: lower case, single spaces, and only the characters that make up
99.95 % of it (sentencepiece's `character_coverage`), so that none is unknown. Each is a process
with two threads; the seconds are from text to pieces, without loading Python and modules. Both
models are evaluated by the same code in plain Python, with the probabilities of pieces normalized
to a sum of 1: the log-likelihood of held-out words over all segmentations, and the number of pieces
of the best segmentation. A tenth is held out, in blocks of adjacent rows.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import Comparison, Row, Taken, in_turn, number, run_process, versioned
from benchmarks.setting import Setting, read_texts

SIZES = (8000, 16_000)
COVERED = 0.9995  # of all characters
BLOCKS = 100  # blocks of adjacent rows; every tenth is held out
OURS, PEER = "wordpiece", "sentencepiece"
ROOT = Path(__file__).parent.parent


def train_unigram(setting: Setting) -> Iterator[Row]:
    """Unigram against sentencepiece (SP), on a tenth held out; %: nats, tokens more than SP's"""
    for name in setting.groups:
        training, held = split_text(setting, name)
        for size in SIZES:
            yield compared(setting, name, training, held, size)


def compare_unigram(setting: Setting) -> Iterator[Comparison]:
    """Training Unigram against sentencepiece."""
    training, _ = split_text(setting, setting.main_group)
    taken, _ = train_both(setting, setting.main_group, training, SIZES[0])
    size = training.stat().st_size / 1e6
    ours, theirs = (
        size / statistics.median(seconds for _, seconds in taken[tool]) for tool in (OURS, PEER)
    )
    peak = max(run.peak_bytes for run, _ in taken[OURS])
    name = f"train Unigram, {SIZES[0]:,} pieces"
    yield Comparison(name, "MB/s", ours, versioned(PEER), theirs, None, peak)


def split_text(setting: Setting, name: str) -> tuple[Path, Counter[str]]:
    """Write the lines to train on, and return them with the held-out words."""
    rows = [
        " ".join(text.lower().split())
        for text in read_texts(setting.groups[name]).to_pylist()
        if text
    ]
    blocks = np.arange(len(rows)) * BLOCKS // len(rows)
    known = common_characters(rows)
    rows = [" ".join("".join(c if c in known else " " for c in row).split()) for row in rows]
    training = setting.work / f"{name}.txt"
    lines = [row for row, block in zip(rows, blocks, strict=True) if block % 10 != 9]
    training.write_text("\n".join(lines) + "\n", encoding="utf-8")
    held = words_of(row for row, block in zip(rows, blocks, strict=True) if block % 10 == 9)
    return training, held


def common_characters(rows: Iterable[str]) -> set[str]:
    """Return the most frequent characters, without the mark of a space."""
    counts = Counter(c for row in rows for c in row)
    total, found = 0, set()
    for character, count in counts.most_common():
        if total >= COVERED * counts.total():
            break
        total += count
        found.add(character)
    return found - {"▁"}


def words_of(rows: Iterable[str]) -> Counter[str]:
    """Return words with their counts."""
    return Counter(word for row in rows for word in row.split())


def train_both(
    setting: Setting, name: str, training: Path, size: int
) -> tuple[dict[str, list[tuple[Taken, float]]], dict[str, dict[str, float]]]:
    """Train with both in turn. Return runs with their seconds, and pieces with scores."""
    made = {tool: setting.work / f"{name}-{size}-{tool}.json" for tool in (OURS, PEER)}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(tool: str) -> tuple[Taken, float]:
        module = [sys.executable, "-m", "benchmarks.unigram_contender"]
        command = [*module, tool, str(made[tool]), str(size), str(training)]
        done = run_process(command, setting.cores, environment)
        return done, json.loads(made[tool].read_text(encoding="utf-8"))["seconds"]

    taken = in_turn({tool: partial(run, tool) for tool in made}, setting.runs)
    models = {tool: json.loads(path.read_text("utf-8"))["pieces"] for tool, path in made.items()}
    return taken, models


def compared(setting: Setting, name: str, training: Path, held: Counter[str], size: int) -> Row:
    """Train with both, and evaluate the models."""
    taken, models = train_both(setting, name, training, size)
    seconds = {tool: statistics.median(took for _, took in runs) for tool, runs in taken.items()}
    peaks = {tool: max(run.peak_bytes for run, _ in runs) for tool, runs in taken.items()}
    words = known_words(held, models.values())
    judged = {tool: judge(model, words) for tool, model in models.items()}
    (mine, my_tokens), (theirs, their_tokens) = (judged[tool] for tool in (OURS, PEER))
    characters = sum(len(word) * count for word, count in words.items())
    return {
        "text": name,
        "MB": number(training.stat().st_size / 1e6),
        "pieces": f"{len(models[OURS]):,}",
        "nats/char": f"{mine / characters:.4f}",
        "%": f"{100 * (mine / theirs - 1):+.2f}",
        "tokens/word": f"{my_tokens / words.total():.4f}",
        "more %": f"{100 * (my_tokens / their_tokens - 1):+.2f}",
        "seconds": number(seconds[OURS]),
        "SP": number(seconds[PEER]),
        "times": number(seconds[PEER] / seconds[OURS]),
        "peak MB": number(peaks[OURS] / 1e6),
        "SP MB": number(peaks[PEER] / 1e6),
    }


def known_words(held: Counter[str], models: Iterable[dict[str, float]]) -> Counter[str]:
    """Return the words whose characters all models know: some are in held-out text only."""
    known = set.intersection(*({p for p in model if len(p) == 1} for model in models))
    return Counter({word: count for word, count in held.items() if known.issuperset(word)})


def judge(model: dict[str, float], words: Counter[str]) -> tuple[float, float]:
    """Return the negative log-likelihood of words, in nats, and their number of pieces."""
    total = math.log(math.fsum(map(math.exp, model.values())))
    scores = {piece: score - total for piece, score in model.items()}
    longest = max(map(len, scores))
    nats = tokens = 0.0
    for word, count in words.items():
        likelihood, pieces = judge_word("▁" + word, scores, longest)
        nats -= count * likelihood
        tokens += count * pieces
    return nats, tokens


def judge_word(word: str, scores: dict[str, float], longest: int) -> tuple[float, int]:
    """Return the log-likelihood of a word, and the number of pieces of its best segmentation."""
    forward = [0.0] + [-math.inf] * len(word)
    best = [(0.0, 0)] + [(-math.inf, 0)] * len(word)
    for end in range(1, len(word) + 1):
        ways = []
        for start in range(max(0, end - longest), end):
            score = scores.get(word[start:end])
            if score is not None:
                ways.append(forward[start] + score)
                if best[start][0] + score > best[end][0]:
                    best[end] = best[start][0] + score, best[start][1] + 1
        largest = max(ways, default=-math.inf)
        if largest > -math.inf:
            forward[end] = largest + math.log(math.fsum(math.exp(way - largest) for way in ways))
    return forward[-1], best[-1][1]
