"""Runs the benchmarks and prints a table of each."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from benchmarks.compare_job import compare_job
from benchmarks.count_growth import count_growth, count_large
from benchmarks.count_job import count_compressed, count_job
from benchmarks.count_kernel import count_kernel
from benchmarks.encode_files import encode_files
from benchmarks.encode_job import encode_job, encode_large, id_encodings
from benchmarks.encode_kernel import encode_kernel
from benchmarks.encode_peers import encode_peers
from benchmarks.extend import extend_ids, extend_job, extend_others, prune_sizes
from benchmarks.formats import formats
from benchmarks.heaps import heaps
from benchmarks.held_out import held_out
from benchmarks.hundred_gigabytes import hundred_gigabytes
from benchmarks.large_text import large_text
from benchmarks.layout import layout
from benchmarks.many_shards import many_shards
from benchmarks.many_words import hundred_million, ten_million
from benchmarks.measure import Row, keep_temporary_files
from benchmarks.memory import memory
from benchmarks.merge_loop import merge_loop
from benchmarks.rounds import rounds
from benchmarks.setting import SHARED, Setting, find_groups
from benchmarks.small_files import small_files
from benchmarks.start_up import start_up
from benchmarks.three_models import three_models
from benchmarks.train_bpe import train_bpe
from benchmarks.train_job import train_job
from benchmarks.train_unigram import train_unigram

BENCHMARKS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    benchmark.__name__: benchmark
    for benchmark in (
        *(encode_kernel, encode_peers, encode_files, start_up),
        *(encode_job, encode_large, large_text, small_files, layout, many_shards, id_encodings),
        *(train_job, train_bpe, merge_loop, rounds, ten_million, hundred_million),
        *(count_job, count_kernel, count_compressed, count_growth, count_large),
        *(hundred_gigabytes, heaps, held_out, memory, formats),
        *(extend_ids, extend_others, extend_job, prune_sizes),
        *(three_models, train_unigram, compare_job),
    )
}
ONLY_WHEN_NAMED = (
    *("ten_million", "hundred_million", "many_shards", "count_large", "large_text"),
    "hundred_gigabytes",
)
PACKAGES = (
    *("apache-beam", "pyarrow", "tokenizers", "transformers", "datasets"),
    *("flash-tokenizer", "blingfire", "nanotoken", "tokie", "splintr-rs", "rustbpe", "wordfreq"),
    *("sentencepiece", "gigatoken", "gigabpe", "ffbpe", "snaptokens"),
)
BERT = SHARED / "vocab" / "bert-base-uncased" / "vocab.txt"
WIDTH = 160


@click.command()
@click.argument("corpus", nargs=-1)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(BENCHMARKS)),
    help=f"Run this one; {', '.join(ONLY_WHEN_NAMED)} take minutes or more, and run only so.",
)
@click.option(
    "--vocab",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An uncased vocab.txt to encode with.",
)
@click.option("--runs", default=3, show_default=True, help="Of each contender, in turn.")
@click.option("--cores", default=2, show_default=True, help="For whole processes.")
def main(
    corpus: Sequence[str], only: Sequence[str], vocab: Path | None, runs: int, cores: int
) -> None:
    """Compares with the peers, side by side, on CORPUS: Parquet files with the column `text`, or
    directories of them, grouped by name (en-0, en-1: en). Figures are medians (least to most)."""
    given_vocab = vocab or (BERT if BERT.exists() else None)
    with tempfile.TemporaryDirectory(prefix="wordpiece-bench-") as work:
        keep_temporary_files(Path(work))
        try:
            groups = find_groups(corpus, Path(work))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        print(about(groups, runs, cores), flush=True)
        setting = Setting(groups, given_vocab, runs, cores, Path(work))
        for name, benchmark in BENCHMARKS.items():
            if name in only or not (only or name in ONLY_WHEN_NAMED):
                print(f"running {name}", file=sys.stderr)
                show(name, benchmark.__doc__ or "", list(benchmark(setting)))


def about(groups: dict[str, list[Path]], runs: int, cores: int) -> str:
    """What the figures depend on, in two lines."""
    versions = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {package}")
    files = ", ".join(f"{name} ({len(paths)})" for name, paths in groups.items())
    return f"{', '.join(versions)}\ntext (files): {files}; {runs} runs in turn; {cores} cores"


def show(name: str, title: str, rows: list[Row]) -> None:
    """Prints a table; figures stand to the right."""
    table = Table(box=MARKDOWN)
    for heading in rows[0]:
        values = [row[heading] for row in rows]
        figures = any(value.lstrip("+-")[:1].isdigit() for value in values)
        table.add_column(heading, justify="right" if figures else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    console = Console(width=WIDTH, highlight=False)
    with console.capture() as printed:
        console.print(table)
    print(f"\n{name}: {title}\n\n{printed.get().strip()}", flush=True)


if __name__ == "__main__":
    main()
