"""An engine of huggingface/tokbench, which compares tokenizers that give equal ids.

Copy this file to `engines/wordpiece-beam/run.py` there, and add a line to `scripted()` in
`driver/src/registry.rs`:

    ("wordpiece-beam", "engines/wordpiece-beam/run.py"),

tokbench calls an engine with one text at a time, on one thread. That is not how this one is meant
to be used, which takes batches of texts in Arrow, and the cost of each call is in its figures.
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import harness  # type: ignore[import-not-found]

import wordpiece_core as wp


def load(path: Path) -> wp.Tokenizer:
    """The tokenizer of a model. One that the library `tokenizers` would encode is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", wp.EncodedByLibraryWarning)
        return wp.Tokenizer.load(path)


def encode(tokenizer: wp.Tokenizer, text: str) -> memoryview:
    """The ids, which are not copied."""
    return memoryview(tokenizer.encode([text], add_special_tokens=False).values.to_numpy())


def main() -> None:
    args = harness.args_parser().parse_args()
    name = f"wordpiece-beam {version('wordpiece-beam')}"
    path = args.model / "tokenizer.json"
    try:
        harness.run("wordpiece-beam", name, "python", lambda: load(path), encode, args)
    except (wp.WordpieceError, wp.EncodedByLibraryWarning) as error:
        harness.unsupported(name, "python", str(error))


if __name__ == "__main__":
    main()
