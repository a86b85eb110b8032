"""The suite of `make test-cluster`: jobs on Flink, Spark and Prism, with stores and with faults.

    python -m tests.cluster [--list] [--smoke] [--open] [WORD...]

runs the cases whose names contain all words, and prints a table of them. It exits with 1 if a case
fails or writes other bytes than a local run.

Everything runs in its own namespaces, whose only network is a loopback interface, because Beam's
job server listens on all interfaces. When the suite ends, or is killed, the kernel kills all
processes in them. `--open` runs without namespaces, for machines that lack them and that nobody
else can reach.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from . import cases, fetch, namespaces
from .cases import Bench, Case, Run
from .servers import Servers
from .stores import S3, S3_QUERY, STORES

ERROR = "test-cluster: "


def main() -> int:
    """Runs the suite. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster")
    parser.add_argument("--list", action="store_true", help="only say which cases there are")
    parser.add_argument("--smoke", action="store_true", help="one job on Prism, one on Flink")
    parser.add_argument("--open", action="store_true", help="run without namespaces")
    parser.add_argument("words", nargs="*", help="words in the names of the cases to run")
    given = parser.parse_args()
    known = cases.SMOKE if given.smoke else _all_cases()
    chosen = [case for case in known if all(word in case.name for word in given.words)]
    if given.list or not chosen:
        print("\n".join(case.name for case in chosen) or "no case has such a name")
        return 0 if chosen else 2
    try:
        if not namespaces.are_entered():
            fetch.check_tools()
            fetch.fetch_all()
        if not given.open:
            namespaces.enter("tests.cluster")
    except (fetch.MissingToolError, subprocess.CalledProcessError) as error:
        print(f"{ERROR}{error}", file=sys.stderr)
        return 1
    except namespaces.NoNamespacesError as error:
        print(
            f"{ERROR}{error}, and Beam's job server would listen on all interfaces; give --open"
            " (make test-cluster CASES=--open) if nobody else can reach this machine",
            file=sys.stderr,
        )
        return 1
    return _run(chosen)


def _all_cases() -> list[Case]:
    """Return the cases, ordered by cluster."""
    found = cases.all_cases()
    clusters = list(dict.fromkeys(case.cluster for case in found))
    return sorted(found, key=lambda case: clusters.index(case.cluster))


def _run(chosen: Sequence[Case]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    directory = Path(tempfile.mkdtemp(prefix="wordpiece-cluster-"))
    began = time.monotonic()
    servers = Servers(directory)
    failed = 0
    try:
        asked = {case.files for case in chosen}
        used = {S3 if files == S3_QUERY else files for files in asked & STORES.keys()}
        for store in sorted(used):
            servers.start_store(store)
        bench = Bench(directory, servers)
        bench.prepare(used)
        print(f"prepared in {time.monotonic() - began:.0f} s; logs in {directory}", flush=True)
        _print_row("command", "cluster and workers", "files", "fault", "seconds", "bytes equal")
        for case in chosen:
            servers.have_up(case.cluster, pool=case.workers == cases.EXTERNAL)
            seconds, fault = cases.timed(Run(case, bench))
            _print_row(*case.columns, f"{seconds:.1f}", "no" if fault else "yes")
            if fault:
                failed += 1
                print(f"    {fault}", flush=True)
    finally:
        servers.stop()
    if not failed:
        shutil.rmtree(directory, ignore_errors=True)
    taken = time.monotonic() - began
    print(f"{len(chosen)} cases, {failed} failed, {taken:.0f} s", flush=True)
    return 1 if failed else 0


def _print_row(*columns: str) -> None:
    widths = (15, 24, 15, 23, 7, 11)
    print("  ".join(f"{c:{w}}" for c, w in zip(columns, widths, strict=True)).rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
