"""`make demo`: train and encode on text that is part of every Python installation."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import shlex
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.commands.cli import main as wordpiece
from pipelines.io import outputs
from wordpiece_core import Tokenizer
from wordpiece_core.uri import join

VOCAB_SIZE = 8000
FIRST_MERGES = 8
WORDS = ("interpreter", "deserialization", "unaffordable", "tokenizers", "naïveté", "pneumonia")


def main(output: str) -> None:
    """Train on Python's own documentation, encode it below `output`, and show the result."""
    folder = Path(output)
    text, tokenizer, dataset = (str(folder / name) for name in ("text", "tokenizer", "dataset"))
    if not (folder / "text" / "readmes.parquet").exists():
        print("collecting text: Python's help topics, docstrings, the READMEs of packages")
        collect_text(text)
    _run("train", text, "--output", tokenizer, "--vocab-size", str(VOCAB_SIZE))
    _run("encode", text, "--tokenizer", tokenizer, "--output", dataset)
    _show(tokenizer, dataset)


def _command(*args: str) -> str:
    """Return a command that can be typed here."""
    script = Path(sysconfig.get_path("scripts")) / "wordpiece"
    return shlex.join([_short(script) if script.exists() else "wordpiece", *args])


def _run(*args: str) -> None:
    """Print a command, and run it."""
    print("\n$", _command(*args), flush=True)
    try:
        wordpiece(args)
    except SystemExit as done:
        if done.code:
            raise


def _short(path: Path) -> str:
    """Return the shortest form of a path here."""
    return min(str(path), os.path.relpath(path), key=len)


def collect_text(directory: str) -> None:
    """Write a few MB of English as Parquet shards with the columns `source` and `text`."""
    shards = {"help_topics": _help_topics, "docstrings": _docstrings, "readmes": _readmes}
    for name, texts in shards.items():
        rows = [
            {"source": source, "text": paragraph}
            for source, text in texts()
            for paragraph in text.split("\n\n")
            if paragraph.strip()
        ]
        schema = pa.schema([("source", pa.string()), ("text", pa.string())])
        table = pa.Table.from_pylist(rows, schema=schema)
        outputs.write_parquet(join(directory, f"{name}.parquet"), table)


def _help_topics() -> Iterator[tuple[str, str]]:
    """Yield the texts of Python's `help()`."""
    from pydoc_data.topics import topics

    yield from sorted(topics.items())


def _docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstrings of the standard library."""
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library)
        if {"site-packages", "dist-packages", "test", "tests", "pydoc_data"} & set(name.parts):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield str(name), ast.get_docstring(node) or ""


def _readmes() -> Iterator[tuple[str, str]]:
    """Yield the READMEs of the installed packages."""
    found = importlib.metadata.distributions()
    for package in sorted(found, key=lambda package: package.metadata["Name"]):
        body = package.metadata.json.get("description")
        yield package.metadata["Name"], str(body or "")


def _show(tokenizer: str, dataset: str) -> None:
    """Show the tokenizer and the dataset."""
    tok = Tokenizer.load(tokenizer)
    merges = pq.read_table(f"{tokenizer}/merges.parquet")
    print(
        f"\nTraining made {merges.num_rows:,} merges. Each took the pair with the highest score"
        " (pair / (left x right),\nby how often they occur) of the pairs that occur often enough:"
        " very often at first,\nthen ever less. The first merges, in order:"
    )
    for number, row in enumerate(merges.slice(0, FIRST_MERGES).to_pylist(), 1):
        counts = f"{row['pair_count']:,} / ({row['left_count']:,} x {row['right_count']:,})"
        pair = f"{row['left']:>6} + {row['right']:<6}"
        print(f"  {number}. {pair} = {row['token']:<8} {row['score']:.3e} = {counts}")
    print(f"\nThe vocabulary has {len(tok):,} tokens. Some words and their pieces:")
    for word in WORDS:
        print(f"  {word:<16} {' '.join(tok.tokenize(word))}")
    manifest = outputs.read_json(f"{dataset}/.manifest.json")
    words = outputs.read_json(f"{tokenizer}/training.json")["corpus"]["words"]
    texts = manifest["rows"] - manifest["nulls"]
    tokens = manifest["word_tokens"]
    print(f"\nThe text has {words:,} words and {tokens:,} tokens: {tokens / words:.3f} per word.")
    print(
        f"The dataset has {manifest['tokens']:,} tokens: these, and a [CLS] and a [SEP] for each of"
        f" the {texts:,} texts."
    )
    row = pq.read_table(f"{dataset}/help_topics.parquet").slice(1, 1).to_pylist()[0]
    print(f"A row of the dataset: {row['text'][:60]!r}... {row['input_ids'][:12]}...")
    loads = "AutoTokenizer.from_pretrained" if find_spec("transformers") else "Tokenizer.load"
    print(f"\nTokenizer: {tokenizer}   ({loads} loads it)")
    print(f"Dataset:   {dataset}   (Parquet)")
    print("\nThe same with your own text, files or directories of .txt, .jsonl, .csv or .parquet:")
    print(" ", _command("train", "TEXTS", "--output", "my-tokenizer"))
    print(" ", _command("encode", "TEXTS", "--tokenizer", "my-tokenizer", "--output", "my-dataset"))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/demo")
