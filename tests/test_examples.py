"""The examples in docstrings and in the README are run, in a directory with a small corpus."""

from __future__ import annotations

import doctest
import json
import pkgutil
import re
import shlex
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import pipelines
import wordpiece_core

from .pipelines.corpora import done, english

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECIPES = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
MODULES = [
    module.name
    for package in (wordpiece_core, pipelines)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith(("__main__", "._kernel"))
]
PUBLIC = {
    name: thing
    for package in (wordpiece_core, pipelines)
    for name in package.__all__
    if callable(thing := getattr(package, name))
    and not (isinstance(thing, type) and issubclass(thing, Exception))
}


@pytest.fixture(autouse=True)
def in_a_directory_with_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `corpus/a.txt` is."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("hug hugs hug\nhug pug pun hugs\nhug hugs\n")
    monkeypatch.chdir(tmp_path)


def blocks(language: str, page: str = README) -> list[str]:
    """The code in a page that is marked with a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["wordpiece_core", "pipelines", *MODULES])
def test_the_examples_in_the_docstrings_of(name: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for example in doctest.DocTestFinder(exclude_empty=True).find(import_module(name)):
        runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_batches_of_packed_rows_have_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples")
    packed_rows = import_module("packed_rows")
    assert doctest.testmod(packed_rows).failed == 0
    done("train", "corpus", "--output", "tokenizer", "--vocab-size", "14")
    args = ["--tokenizer", "tokenizer", "--pack", "--max-length", "7", "--shuffle", "1"]
    done("encode", "corpus", *args, "--output", "packed", "--padding")
    rows = [
        row for path in Path("packed").glob("*.parquet") for row in pq.read_table(path).to_pylist()
    ]
    batch = packed_rows.packed_batch(rows)
    tokens = batch["input_ids"].reshape(-1)
    texts = [text for row in rows for text in row["document_rows"]]
    bounds = pairwise(batch["cu_seqlens"])
    found: dict[int, str] = {}
    tokenizer = wordpiece_core.Tokenizer.load("tokenizer")
    for text, (start, end) in zip(texts, bounds, strict=True):
        part = tokenizer.decode(tokens[start:end].tolist(), skip_special_tokens=True)
        found[text] = found.get(text, "") + part.replace(" ", "").replace("##", "")
    lines = Path("corpus/a.txt").read_text().splitlines()
    assert found == {number: line.replace(" ", "") for number, line in enumerate(lines)}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_functions_and_classes_have_examples(name: str) -> None:
    found = doctest.DocTestFinder().find(PUBLIC[name], name)
    assert any(example.examples for example in found)


@pytest.mark.filterwarnings("ignore:the vocabulary has")  # the corpus is small
def test_the_python_lines_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(blocks("python")) == 2
    for block in blocks("python"):
        exec(block, {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3
    assert printed[1].split()[0] == "3"
    assert printed[2] == "['hug', 'pu', '##n'] [[2, 11, 3], [2, 12, 6, 3]]"


def test_the_commands_of_the_readme_run() -> None:
    Path("configs").symlink_to(ROOT / "configs")
    Path("corpus/b.txt").write_text("\n".join(english(400)))
    lines = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    commands = [words[1:] for words in lines if words[0] == "wordpiece"]
    assert [words[0] for words in commands[:2]] == ["train", "encode"]
    assert {words[0] for words in commands} == {"count", "train", "encode", "inspect"}
    for words in commands:
        done(*words)


@pytest.mark.filterwarnings("ignore:the vocabulary has")  # the corpus is small
def test_the_commands_of_the_recipes_run() -> None:
    texts = english(800)
    Path("corpus/b.txt").write_text("\n".join(texts[:400]))
    rows = ({"text": text, "lang": "en" if i % 3 else "fr"} for i, text in enumerate(texts[400:]))
    Path("corpus/languages.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    commands = [shlex.split(line) for block in blocks("sh", RECIPES) for line in block.splitlines()]
    for program, *words in commands:
        assert program == "wordpiece"
        done(*words)


def test_the_pages_that_the_readme_links_to_are_there() -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
