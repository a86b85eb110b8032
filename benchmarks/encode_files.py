"""Encoding in memory by one `tokenizer.json`, on one thread, and by other libraries, each run a
process: a BPE as Llama 3's, which is trained first, and a WordPiece as BERT's.

The environment variable PEERS_PYTHON names a second interpreter, for versions that cannot be
installed together, such as `tokenizers` 1.0 and 0.23. A file that a library does not read has
no row.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.encode_kernel import MOST_BYTES, first_bytes
from benchmarks.file_contender import LIBRARIES
from benchmarks.measure import Row, number, run_process
from benchmarks.setting import Setting, megabytes, read_texts

MODULE = Path(__file__).parent / "file_contender.py"
CALLS = 4  # the first one is cold
VOCAB_SIZE = 32_000


def encode_files(setting: Setting) -> Iterator[Row]:
    """Encoding by a tokenizer.json, one thread, MB/s; same: the ids are ours"""
    for kind, directory in setting.tokenizers(VOCAB_SIZE).items():
        path = directory / "tokenizer.json"
        for name, paths in setting.groups.items():
            texts = first_bytes(read_texts(paths).combine_chunks(), MOST_BYTES)
            listed = setting.work / "texts.json"
            listed.write_text(json.dumps(texts.to_pylist()))
            ours = None
            for python, library in contenders():
                found = [run(setting, python, library, path, listed) for _ in range(setting.runs)]
                if any(one is None for one in found):
                    continue
                speeds = [
                    [megabytes(texts) / seconds for seconds in one["seconds"]]
                    for one in found
                    if one is not None
                ]
                first: dict[str, Any] = found[0] or {}
                ours = ours or first["ids"]
                yield {
                    "tokenizer": kind,
                    "text": name,
                    "library": f"{library} {first['version']}",
                    "cold": number(statistics.median(one[0] for one in speeds)),
                    "warm": number(statistics.median(s for one in speeds for s in one[1:])),
                    "same": "yes" if first["ids"] == ours else "no",
                }


def contenders() -> list[tuple[str, str]]:
    """Interpreters and libraries: ours first."""
    other = os.environ.get("PEERS_PYTHON")
    found = [(sys.executable, library) for library in LIBRARIES]
    return found + [(other, name) for name in LIBRARIES if other and name != "wordpiece_core"]


def run(
    setting: Setting, python: str, library: str, path: Path, texts: Path
) -> dict[str, Any] | None:
    """What a library takes in a process of its own; None if it is not there, or fails."""
    result = setting.work / "result.json"
    result.unlink(missing_ok=True)
    command = [python, "-P", str(MODULE), library, str(path), str(texts), str(CALLS), str(result)]
    environment = os.environ | {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    try:
        run_process(command, setting.cores, environment)
    except RuntimeError:
        return None
    value: dict[str, Any] = json.loads(result.read_text())
    return value
