"""Random tokenizers against `tokenizers` and `sentencepiece`, until the time is up.

python -m tests.parity --minutes 60
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter

import wordpiece_core as wp

from .compare import difference, random_case
from .random_sentencepiece import sentencepiece_difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="the first one; default: of the time")
    parser.add_argument("--cases", type=int, help="how many, whatever the time")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    first = seed = time.time_ns() // 1000 if given.seed is None else given.seed
    end = time.monotonic() + given.minutes * 60
    counts: Counter[str] = Counter()
    while time.monotonic() < end and seed - first != given.cases:
        if seed % 8 == 0 and (found := sentencepiece_difference(seed)):
            counts["different from sentencepiece"] += 1
            print(f"seed {seed}: sentencepiece: {found}", flush=True)
        value, texts, pairs, options = random_case(seed)
        try:
            found = difference(value, texts, pairs, options)
        except wp.InputError as error:
            counts["refused"] += 1
            if given.verbose:
                print(f"seed {seed}: refused: {error}")
        else:
            counts["different" if found else "equal"] += 1
            if found:
                report(seed, found)
        seed += 1
        if counts["different"] >= 20:
            break
    print(f"from seed {first}: {dict(counts)}")
    sys.exit(any(name.startswith("different") for name in counts))


def report(seed: int, found: str) -> None:
    """Prints a difference with the smallest texts that show it."""
    value, texts, pairs, options = random_case(seed)
    for i in range(len(texts)):
        pair = None if pairs is None else [pairs[i]]
        if one := difference(value, [texts[i]], pair, options):
            text, other = shortened(seed, texts[i], pair and pair[0])
            found = difference(value, [text], other and [other], options) or one
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
        if difference(value, [less], pair and [pair], options):
            text = less
        else:
            i += 1
    return text, pair


if __name__ == "__main__":
    main()
