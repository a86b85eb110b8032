"""Random cases until the time is up: the kernel against the plain reference, and, with
`--tokenizers`, against that too.

    python -m tests.fuzz_encoding --minutes 10
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from random import Random

import wordpiece_core as wp

from .wordpiece_core.encoding_cases import (
    Case,
    by_kernel,
    by_reference,
    by_tokenizers,
    differences,
    random_case,
)


def faults(case: Case, threads: int, tokenizers: bool) -> list[str]:
    """What the kernel does otherwise than it should."""
    expected = error = None
    try:
        expected = by_reference(case)
    except wp.WordpieceError as raised:
        error = raised
    try:
        found = by_kernel(case, threads)
    except wp.WordpieceError as raised:
        if error is None or type(raised) is not type(error) or "\n" in str(raised):
            return [f"raises {raised!r}, not {error!r}"]
        return []
    if expected is None:
        return [f"does not raise {error!r}"]
    found_faults = differences(found, expected)
    if tokenizers and case.unk_scope == "word":
        found_faults += differences(found, by_tokenizers(case))
    return found_faults


def smallest(case: Case, threads: int, tokenizers: bool) -> Case:
    """One text, and its pair, that shows a fault of the case; the case, if none does alone."""
    for i, text in enumerate(case.texts):
        alone = replace(case, texts=[text], pairs=case.pairs and [case.pairs[i]])
        if faults(alone, threads, tokenizers):
            return alone
    return case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="of the first case; default: time")
    parser.add_argument("--tokenizers", action="store_true", help="compare with `tokenizers` too")
    given = parser.parse_args()
    first = seed = time.time_ns() // 1000 if given.seed is None else given.seed
    end = time.monotonic() + given.minutes * 60
    rows = found = 0
    while time.monotonic() < end and found < 20:
        rng = Random(seed)
        case = random_case(rng, rng.choice([1, 2, 6, 20]))
        threads = rng.choice([1, 1, 1, 2, 3])
        rows += len(case.texts)
        if faults(case, threads, given.tokenizers):
            found += 1
            small = smallest(case, threads, given.tokenizers)
            print(f"seed {seed}: {small!a}")
            for fault in faults(small, threads, given.tokenizers)[:3]:
                print(f"    {fault}", flush=True)
        seed += 1
    print(f"{seed - first} cases from seed {first}, {rows} rows: {found} with faults")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
