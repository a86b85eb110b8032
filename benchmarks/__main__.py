"""Compare with the peers on the same text, in one table: `make bench`.

    python -m benchmarks [--only NAME] [--runs N] [--cores N] [CORPUS...]

Without `--only`, the table has one row for each comparison, and the exit status is 1 if ours is
more than 5 % slower than the best peer or the results differ. `--only` prints the table of one
benchmark.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from benchmarks.count_job import count_job
from benchmarks.encode_files import compare_encoders, encode_files
from benchmarks.encode_job import compare_datasets, encode_job
from benchmarks.held_out import held_out
from benchmarks.large_text import large_text
from benchmarks.measure import Comparison, Row, keep_temporary_files
from benchmarks.memory import memory
from benchmarks.packing import packing
from benchmarks.setting import Setting, find_groups
from benchmarks.superwords import superwords, superwords_of_1_gb
from benchmarks.train_bpe import compare_bpe, train_bpe
from benchmarks.train_job import compare_training, train_job
from benchmarks.train_unigram import compare_unigram, train_unigram

SUMMARY: tuple[Callable[[Setting], Iterator[Comparison]], ...] = (
    compare_encoders,
    compare_datasets,
    compare_training,
    compare_bpe,
    compare_unigram,
)
DETAILS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    benchmark.__name__: benchmark
    for benchmark in (
        *(encode_files, encode_job, train_job, train_bpe, train_unigram),
        *(count_job, held_out, memory, large_text),
        *(superwords, superwords_of_1_gb, packing),
    )
}
WIDTH = 240


@click.command()
@click.argument("corpus", nargs=-1)
@click.option("--only", type=click.Choice(list(DETAILS)), help="Print the details of this one.")
@click.option("--runs", default=3, show_default=True, help="Number of runs of each contender.")
@click.option("--cores", default=2, show_default=True, help="Number of cores for whole processes.")
def main(corpus: Sequence[str], only: str | None, runs: int, cores: int) -> None:
    """Compare with the peers on CORPUS: Parquet files with the column `text`, or directories of
    them, grouped by name (en-0, en-1: en). Without CORPUS: the documentation of Python's library.
    """
    with tempfile.TemporaryDirectory(prefix="wordpiece-bench-") as work:
        keep_temporary_files(Path(work))
        try:
            groups = find_groups(corpus, Path(work))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        setting = Setting(groups, runs, cores, Path(work))
        if only is not None:
            print(f"{only}: {DETAILS[only].__doc__}\n\n{table(list(DETAILS[only](setting)))}")
            return
        found: list[Comparison] = []
        for compare in SUMMARY:
            print(f"running {compare.__name__}", file=sys.stderr)
            found += compare(setting)
        print(table([comparison.row for comparison in found]))
    if not all(comparison.is_ahead for comparison in found):
        sys.exit(1)


def table(rows: list[Row]) -> str:
    """Return rows as a Markdown table, with figures aligned to the right."""
    made = Table(box=MARKDOWN)
    for heading in rows[0]:
        figures = any(row[heading].lstrip("+-")[:1].isdigit() for row in rows)
        made.add_column(heading, justify="right" if figures else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row.values())
    console = Console(width=WIDTH, highlight=False)
    with console.capture() as printed:
        console.print(made)
    return printed.get().strip()


if __name__ == "__main__":
    main()
