"""Compare ids and offsets with `tokenizers` and `sentencepiece`.

    python -m tests.parity random --minutes 60      # random tokenizers, or --cases 1600
    python -m tests.parity reference --minutes 60   # random texts and options, and the oracle
    python -m tests.parity points                   # every code point in contexts
    python -m tests.parity bert CORPUS...           # every row of a corpus: published vocabularies,
    python -m tests.parity models CORPUS...         # and BPE and Unigram
    python -m tests.parity faults                   # of the trainers of `tokenizers`

Each exits with status 1 if anything differs. CORPUS: Parquet files with a column `text`, or
directories of them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import click

import wordpiece_core as wp

from ..wordpiece_core import encoding_cases
from . import reference as kernel_and_reference
from .bert import corpus_parity, point_parity
from .corpus import texts_by_language
from .models import model_parity
from .random_cases import difference, random_case
from .random_sentencepiece import sentencepiece_difference
from .trainer_faults import faults

MOST = 20  # differences, after which a random check ends

corpus = click.argument("corpus", nargs=-1, required=True)
vocabularies = click.option(
    "--vocabularies",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="A directory of directories with vocab.txt; one with -cased in its name is cased.",
)


@click.group()
def main() -> None:
    """Compares with `tokenizers` and `sentencepiece`."""


# --- Corpora --------------------------------------------------------------------------------------


def show(found: Iterator[tuple[str, int, int]]) -> None:
    """Prints what was compared, and exits with 1 if anything differs."""
    total = differ = 0
    for what, count, wrong in found:
        total, differ = total + count, differ + wrong
        print(f"{what}: {count} compared, {wrong} differ", flush=True)
    print(f"all: {total} compared, {differ} differ")
    sys.exit(1 if differ else 0)


@main.command()
def points() -> None:
    """Every code point, among neighbours of every kind."""
    show(point_parity())


@main.command()
@corpus
@vocabularies
def bert(corpus: Sequence[str], vocabularies: Path) -> None:
    """Every column of every row of a corpus, with published vocabularies."""
    show(corpus_parity(texts_by_language(corpus), sorted(vocabularies.glob("*/vocab.txt"))))


@main.command()
@corpus
@click.option("--vocab-size", default=8_000, show_default=True)
def models(corpus: Sequence[str], vocab_size: int) -> None:
    """The ids of every text of a corpus, with BPE and Unigram."""
    with tempfile.TemporaryDirectory() as work:
        show(model_parity(texts_by_language(corpus), vocab_size, Path(work)))


# --- Random cases ---------------------------------------------------------------------------------


def until_the_end(
    check: Callable[[int], str], seed: int | None, minutes: float, cases: int
) -> None:
    """Run `check` with one seed after the other. A case differs if its result begins with
    "different"."""
    first = time.time_ns() // 1000 if seed is None else seed
    end = time.monotonic() + minutes * 60
    counts: Counter[str] = Counter()
    for number in range(first, first + cases):
        counts[check(number)] += 1
        if counts["different"] >= MOST or time.monotonic() > end:
            break
    print(f"from seed {first}: {dict(counts)}")
    sys.exit(1 if counts["different"] else 0)


def random_check(check: Callable[[int], str]) -> click.Command:
    """A command with the options of random checks."""

    @click.option("--minutes", default=10.0, show_default=True)
    @click.option(
        "--cases", default=sys.maxsize, help="At most; default: as many as there is time."
    )
    @click.option("--seed", type=int, help="The first one; default: from the time.")
    def command(minutes: float, cases: int, seed: int | None) -> None:
        until_the_end(check, seed, minutes, cases)

    return main.command(check.__name__, help=check.__doc__)(command)


@random_check
def reference(seed: int) -> str:
    """Random texts, vocabularies and options: the kernel, the reference, and `tokenizers`."""
    rng = Random(seed)
    case = encoding_cases.random_case(rng, rng.choice([1, 2, 6, 20]))
    threads = rng.choice([1, 1, 1, 2, 3])
    if not kernel_and_reference.faults(case, threads):
        return "equal"
    small = kernel_and_reference.smallest(case, threads)
    print(f"seed {seed}: {small!a}")
    for fault in kernel_and_reference.faults(small, threads)[:3]:
        print(f"    {fault}", flush=True)
    return "different"


@random_check
def random(seed: int) -> str:
    """Random tokenizers of `tokenizers`, and every eighth time a model of `sentencepiece`."""
    if seed % 8 == 0 and (found := sentencepiece_difference(seed)):
        print(f"seed {seed}: sentencepiece: {found}", flush=True)
        return "different"
    try:
        found = difference(*random_case(seed))
    except wp.InputError:
        return "refused"
    if found:
        report(seed, found)
    return "different" if found else "equal"


def report(seed: int, found: str) -> None:
    """Prints a difference with the smallest texts that show it."""
    value, texts, pairs, options = random_case(seed)
    other: str | None
    for i in range(len(texts)):
        pair = None if pairs is None else [pairs[i]]
        if one := difference(value, [texts[i]], pair, options):
            text, other = shortened(seed, texts[i], pair[0] if pair else None)
            found = difference(value, [text], pair, options) or one
            print(f"seed {seed}: {text!a} {other!a}: {found}")
            break
    else:
        print(f"seed {seed}: {found}")
    parts = {name: part for name, part in value.items() if name not in ("model", "decoder")}
    print("   ", json.dumps(parts)[:1500])
    model = {name: part for name, part in value["model"].items() if name not in ("vocab", "merges")}
    print("   ", json.dumps(model), options, flush=True)


def shortened(seed: int, text: str, pair: str | None) -> tuple[str, str | None]:
    """Leaves out characters as long as the difference stays."""
    value, _, _, options = random_case(seed)
    i = 0
    while i < len(text):
        less = text[:i] + text[i + 1 :]
        if difference(value, [less], None if pair is None else [pair], options):
            text = less
        else:
            i += 1
    return text, pair


@main.command("faults")
def faults_command() -> None:
    """Reproduces faults of the trainers of `tokenizers`."""
    for line in faults():
        print(line, flush=True)


if __name__ == "__main__":
    main()
