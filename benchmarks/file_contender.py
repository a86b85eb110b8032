"""Encode by a `tokenizer.json` with one library, on one thread, as a script for any interpreter.

Arguments: library, tokenizer.json, file of the texts as a JSON list, number of calls, file for the
result as JSON: `version`; `seconds` of each call, the first one with an empty cache; `ids`, their
number and SHA-256.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import struct
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = {"wordpiece_core": "wordpiece-beam"}


def wordpiece_core(path: str, texts: list[str]) -> Any:
    """Encode all texts in one call, from an Arrow array."""
    import pyarrow as pa

    library = importlib.import_module("wordpiece_core")
    tokenizer, array = library.Tokenizer.load(path), pa.array(texts)
    options = library.EncodingOptions(add_special_tokens=False)
    tokenizer.encode_table([""], options=options)  # the kernel's tables are made at the first call
    return lambda: tokenizer.encode_table(array, options=options, threads=1)


def tokenizers(path: str, texts: list[str]) -> Any:
    """Encode all texts in one call, on RAYON_NUM_THREADS threads."""
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(path)
    return lambda: tokenizer.encode_batch(texts, add_special_tokens=False)


def snaptokens(path: str, texts: list[str]) -> Any:
    """Encode all texts in one call, on RAYON_NUM_THREADS threads."""
    tokenizer = importlib.import_module("snaptokens").Tokenizer.from_file(path)
    return lambda: tokenizer.encode_batch(texts)


def gigatoken(path: str, texts: list[str]) -> Any:
    """Encode all texts in one call, on this thread."""
    tokenizer = importlib.import_module("gigatoken").Tokenizer(path)
    return lambda: tokenizer.encode_batch(texts, parallel=False)


SLOW_SECONDS = 2.0  # after which two calls are enough
LIBRARIES = {made.__name__: made for made in (wordpiece_core, gigatoken, snaptokens, tokenizers)}


def main(library: str, path: str, texts_path: str, calls: int, result: str) -> None:
    """Encode the same texts several times, and write the result."""
    texts = json.loads(Path(texts_path).read_text())
    encode = LIBRARIES[library](path, texts)
    seconds: list[float] = []
    while len(seconds) < (calls if sum(seconds) < SLOW_SECONDS else 2):
        started = time.perf_counter()
        found = encode()
        seconds.append(time.perf_counter() - started)
    if library == "wordpiece_core":
        rows = found.table.column("input_ids").to_pylist()
    elif library == "gigatoken":
        rows = found.to_list()
    else:
        rows = [list(row.ids) for row in found]
    digest, number = hashlib.sha256(), 0
    for row in rows:
        number += len(row)
        digest.update(struct.pack(f"<{len(row) + 1}I", len(row), *row))
    value = {
        "version": version(PACKAGES.get(library, library)),
        "seconds": seconds,
        "ids": [number, digest.hexdigest()],
    }
    Path(result).write_text(json.dumps(value))


if __name__ == "__main__":
    library, path, texts_path = sys.argv[1:4]
    main(library, path, texts_path, int(sys.argv[4]), sys.argv[5])
