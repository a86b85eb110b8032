"""`wordpiece check`: runs the check and prints the result."""

from __future__ import annotations

from pipelines.commands.summary import finish
from pipelines.comparing.check import Checked, Difference, check_job
from pipelines.comparing.options import CheckOptions
from pipelines.progress import Progress
from wordpiece_core.errors import DifferentIdsError
from wordpiece_core.visible import LONGEST, visible

SPEED_BYTES = 100_000  # of a sample; the speed on less is not shown
LONGEST_PATH = 4_096
SHOWN_IDS = 5  # before the first other id, and from it on


def run_check(options: CheckOptions, *, as_json: bool) -> None:
    """Run `wordpiece check`.

    Raises DifferentIdsError if a row has other ids.
    """
    done = check_job(options, Progress(quiet=options.quiet))
    finish(done, options, lambda: _print_checked(done), as_json=as_json)
    if done.differing_rows:
        raise DifferentIdsError(
            f"{done.differing_rows:,} of {done.rows:,} rows have other ids than {done.library}"
            " gives; please report it with the tokenizer and the first of these texts"
        )


def _print_checked(done: Checked) -> None:
    size = f"{done.bytes / 1e6:,.1f} MB" if done.bytes >= SPEED_BYTES else f"{done.bytes:,} bytes"
    print(f"rows compared: {done.rows:,} ({size} of text, {done.tokens:,} ids)")
    print(f"rows that differ: {done.differing_rows:,}")
    if done.first_difference is not None:
        _print_difference(done.first_difference, done.library)
    by = "the kernel" if done.encoder == "kernel" else "the library tokenizers"
    if done.bytes < SPEED_BYTES:
        print(f"encoded by {by} (the sample is too small to measure speed)")
        return
    print(f"encoded by {by}: {done.mb_per_second:,.1f} MB/s on one core")
    print(f"{done.library}: {done.library_mb_per_second:,.1f} MB/s on one core")


def _print_difference(first: Difference, library: str) -> None:
    place = f"row {first.row}, id {first.position}"
    print(f"first difference: {visible(first.file, LONGEST_PATH)}, {place}")
    print(f"  text: {visible(first.text, 4 * LONGEST)}")
    for name, ids in (("wordpiece", first.ids), (library, first.library_ids)):
        start = max(first.position - SHOWN_IDS, 0)
        some = ids[start : first.position + SHOWN_IDS]
        dots = "... " * (start > 0), " ..." * (first.position + SHOWN_IDS < len(ids))
        print(f"  {name}: {dots[0]}{' '.join(map(str, some))}{dots[1]}")
