"""The examples in docstrings and the commands of all pages run, in a directory with small texts."""

from __future__ import annotations

import doctest
import json
import pkgutil
import re
import shlex
import shutil
from contextlib import chdir
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipelines
import wordpiece_core
from docs.site import reference

from .pipelines.corpora import done, english

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "templates" not in page.parts),
]
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
    """Create the directory with `corpus/a.txt`."""
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
    (block,) = blocks("python")
    exec(block, {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert printed[1].split()[0] == "3"


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the texts and tokenizers that the pages name."""
    folder = tmp_path_factory.mktemp("documented")
    texts = english(800)
    for name in ("corpus", "held-out", "more", "domain", "german", "arriving", "bert"):
        (folder / name).mkdir()
    pq.write_table(pa.table({"text": texts[:300]}), folder / "corpus/a.parquet")
    (folder / "corpus/b.txt").write_text("\n".join(texts[300:500]))
    for name in ("held-out", "more", "domain", "german", "arriving"):
        (folder / name / "a.txt").write_text("\n".join(texts[500:600]))
    rows = ({"text": text, "lang": "en" if i % 3 else "fr"} for i, text in enumerate(texts[600:]))
    (folder / "languages.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with chdir(folder):
        done("train", "corpus", "--output", "my-tokenizer", "--vocab-size", "400")
        done("train", "corpus", "--output", "llm", "--config", "llm-bpe", "--vocab-size", "340")
        done("count", "corpus", "--output", "words")
        done("encode", "corpus", "--tokenizer", "my-tokenizer", "--output", "dataset")
    vocab = [*(f"[unused{n}]" for n in range(9)), *tokens_of(folder / "my-tokenizer")]
    for name in ("bert", "bert-base-uncased", "bert-base-multilingual-cased"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab))
    return folder


def tokens_of(tokenizer: Path) -> list[str]:
    return (tokenizer / "vocab.txt").read_text().splitlines()


def for_small_texts(command: str) -> str:
    """Return a documented command with sizes and times that fit the texts of the test."""
    command = re.sub(r"(--superwords \d+)000\b", r"\1", command)
    command = re.sub(r"\b(\d+)000\b", lambda size: str(300 + int(size[1])), command)
    return command.replace("--until-idle 10s", "--until-idle 1s --poll 0.2s")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(
    page: Path, documented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks marked `sh` run here. Blocks marked `bash` need a cluster, a store, the Hub or pip."""
    lines = [
        line
        for block in blocks("sh", page.read_text("utf-8"))
        for line in block.splitlines()
        if line and not line.startswith(("make ", "pip install"))
    ]
    if not lines:
        return
    folder = tmp_path / "documented"
    shutil.copytree(documented, folder)
    monkeypatch.chdir(folder)
    for line in lines:
        program, *words = shlex.split(for_small_texts(line))
        if program == "export":
            monkeypatch.setenv(*words[0].split("=", 1))
            continue
        assert program == "wordpiece", line
        if "--output" in words:  # the page writes what the fixture has prepared for other pages
            shutil.rmtree(words[words.index("--output") + 1], ignore_errors=True)
        done(*words)


def test_the_reference_pages_are_up_to_date() -> None:
    """`python -m docs.site.reference` writes them."""
    templates = sorted(reference.TEMPLATES.glob("*.md"))
    assert len(templates) == 3
    for template in templates:
        written = (reference.PAGES / template.name).read_text("utf-8")
        assert written == reference.page(template), template.name


def test_the_pages_that_the_readme_links_to_are_there() -> None:
    links = re.findall(r"\]\((?!https?://|../../actions)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
