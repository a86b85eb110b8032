"""A word table of made-up words: `python -m benchmarks.generate WORDS DIR`.

Words are put together from morphemes: prefixes, one or two stems, suffixes, each drawn from an
inventory of its kind by Zipf's law. A million words are drawn at a time; those that are new get the
next ranks, the ones drawn most often first. So short words of common morphemes are the frequent
ones, and a long tail shares their parts, as in text. The counts follow the law of Zipf and
Mandelbrot, (N + b) / (rank + b); half of the words occur once.

The same number gives the same files everywhere: random bits come from PCG64 with a fixed seed, and
what follows is integers, or sums and quotients that IEEE 754 defines. Memory holds eight bytes of
every word, and the words that occur once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.counting.word_table import SCHEMA, part_name, write_words
from pipelines.files.outputs import atomic_writer

SEED = 20_251_121
DRAWS = 1_000_000  # words drawn at a time
PART_ROWS = 1_000_000
SHIFT = 3  # Mandelbrot's b, for words and morphemes
FACTOR = np.uint64(1_099_511_628_211)  # of the hash of a string
ONSETS = [
    *"bcdfghklmnprstv",
    "br",
    "ch",
    "cl",
    "dr",
    "fl",
    "gr",
    "pl",
    "pr",
    "sh",
    "sp",
    "st",
    "th",
]
VOWELS = [*"aeiou", *"aeioe", "ai", "ea", "ee", "ou", "io"]
CODAS = ["", "", "", *"nrstlmdx", "ck", "nd", "ng", "nt", "rd", "rm", "st"]

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Morphemes:
    """An inventory. A slot of a word draws from it: nothing with probability `absent`, else a
    morpheme, the first ones most."""

    def __init__(self, texts: list[str], absent: float) -> None:
        self.texts = pa.array(["", *texts])
        self.hashes = np.array([string_hash(text) for text in ["", *texts]], np.uint64)
        lengths = np.array([0, *map(len, texts)], np.int64)
        self.powers = np.array([pow(int(FACTOR), int(n), 1 << 64) for n in lengths], np.uint64)
        shares = 1.0 / np.arange(1 + SHIFT, len(texts) + 1 + SHIFT)
        present = np.cumsum(shares) * ((1.0 - absent) / np.cumsum(shares)[-1])
        self.bounds = np.concatenate([[absent], absent + present])

    def draw(self, rng: np.random.Generator, size: int) -> Numbers:
        """Numbers of morphemes; 0 is none."""
        drawn = np.searchsorted(self.bounds, rng.random(size), side="right")
        return np.minimum(drawn, len(self.texts) - 1)


def string_hash(text: str) -> int:
    """A polynomial in the characters, modulo 2^64: that of a concatenation follows from those of
    its parts."""
    value = 0
    for character in text:
        value = (value * int(FACTOR) + ord(character)) % (1 << 64)
    return value


def syllables(rng: np.random.Generator, size: int, most: int) -> list[str]:
    """Distinct strings of one to `most` syllables, shorter ones rather first."""
    found: dict[str, None] = {}
    while len(found) < size:
        text = ""
        for _ in range(1 + int(rng.integers(most))):
            parts = (letters[int(rng.integers(len(letters)))] for letters in (ONSETS, VOWELS))
            text += "".join(parts)
        found[text + CODAS[int(rng.integers(len(CODAS)))]] = None
    return sorted(found, key=lambda text: len(text) + int(rng.integers(4)))


def endings(rng: np.random.Generator, size: int) -> list[str]:
    """Distinct suffixes: a vowel, a coda, and often a vowel more."""
    found: dict[str, None] = {}
    while len(found) < size:
        kinds = (VOWELS, CODAS, ["", "", *VOWELS[:5]])
        found["".join(letters[int(rng.integers(len(letters)))] for letters in kinds)] = None
    return sorted(found, key=lambda text: len(text) + int(rng.integers(3)))


def slots(rng: np.random.Generator) -> list[Morphemes]:
    """What a word is made of, in order."""
    prefixes, stems = syllables(rng, 120, 1), syllables(rng, 60_000, 3)
    suffixes = endings(rng, 300)
    parts = [(prefixes, 0.95), (prefixes, 0.75), (stems, 0.0), (stems, 0.85)]
    parts += [(suffixes, 0.4), (suffixes, 0.7), (suffixes, 0.93)]
    return [Morphemes(texts, absent) for texts, absent in parts]


def distinct_words(size: int) -> Iterator[pa.StringArray]:
    """So many words, none twice, in the order of their ranks."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    parts = slots(rng)
    seen = np.zeros(0, np.uint64)  # sorted
    while len(seen) < size:
        drawn = [part.draw(rng, DRAWS) for part in parts]
        hashes = np.zeros(DRAWS, np.uint64)
        for part, numbers in zip(parts, drawn, strict=True):
            hashes = hashes * part.powers[numbers] + part.hashes[numbers]
        _, firsts, times = np.unique(hashes, return_index=True, return_counts=True)
        firsts = firsts[np.lexsort((firsts, -times))]
        places = np.searchsorted(seen, hashes[firsts])
        known = np.append(seen, np.uint64(0))[places] == hashes[firsts]
        new = firsts[~known | (places == len(seen))][: size - len(seen)]
        seen = merge_sorted(seen, np.sort(hashes[new]))
        texts = [
            part.texts.take(pa.array(numbers[new]))
            for part, numbers in zip(parts, drawn, strict=True)
        ]
        yield pc.binary_join_element_wise(*texts, "")


def merge_sorted(some: Hashes, others: Hashes) -> Hashes:
    """Two sorted arrays as one."""
    return np.insert(some, np.searchsorted(some, others), others)


def table_parts(size: int) -> Iterator[pa.RecordBatch]:
    """The rows of the table in order, in batches that hold all words of each of their counts."""
    waiting: list[pa.StringArray] = []
    ends = iter(batch_ends(size))
    start, end = 0, next(ends)
    for words in distinct_words(size):
        waiting.append(words)
        while sum(map(len, waiting)) >= end - start:
            held = pa.concat_arrays(waiting)
            yield ordered(held.slice(0, end - start), start, size)
            waiting = [held.slice(end - start)]
            start, end = end, next(ends, size)
            if start == size:
                return


def batch_ends(size: int) -> Iterator[int]:
    """The ranks, from 0, at which batches end: where a count does, a part's rows later at least."""
    start = 0
    while start < size:
        least = word_count(min(start + PART_ROWS, size) - 1, size)
        # The last rank with this count: (size + b) // (rank + 1 + b) >= least.
        start = min(size, (size + SHIFT) // least - SHIFT)
        yield start


def word_count(rank: int, size: int) -> int:
    """The count of the word with a rank, from 0."""
    return (size + SHIFT) // (rank + 1 + SHIFT)


def ordered(words: pa.StringArray, start: int, size: int) -> pa.RecordBatch:
    """Words of the ranks from `start`, with their counts: the largest first, then by the word."""
    counts = (size + SHIFT) // np.arange(start + 1 + SHIFT, start + len(words) + 1 + SHIFT)
    batch = pa.record_batch([words, pa.array(counts, pa.int64())], schema=SCHEMA)
    return batch.take(pc.sort_indices(batch, [("count", "descending"), ("word", "ascending")]))


def write_table(size: int, directory: Path) -> None:
    """Writes the table's parts."""
    directory.mkdir(parents=True)
    numbers = itertools.count()
    for batch in table_parts(size):
        for start in range(0, len(batch), PART_ROWS):
            path = directory / part_name(next(numbers))
            with atomic_writer(str(path)) as stream:
                write_words(stream, batch.slice(start, PART_ROWS))


@click.command()
@click.argument("words", type=click.IntRange(1))
@click.argument("directory", type=click.Path(path_type=Path))
def main(words: int, directory: Path) -> None:
    """Writes a word table of so many distinct WORDS into DIRECTORY, which must not be there yet."""
    if directory.exists():
        raise click.UsageError(f"{directory}: is there already; give another directory")
    write_table(words, directory)


if __name__ == "__main__":
    main()
