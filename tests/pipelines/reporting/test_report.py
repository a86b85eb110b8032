"""`report`: the content of the page, the escaping of text in it, and when it is written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipelines
import wordpiece_core as wp
from pipelines.reporting.facts import GENERATOR
from pipelines.reporting.report import Report
from tests.pipelines.corpora import done, english, wordpiece, write_shard
from tests.pipelines.reporting.hostile import GROUPS, WORDS, hostile_report
from wordpiece_core import InputError, OptionError, OutputError
from wordpiece_core.measures import measure
from wordpiece_core.visible import visible

TEXTS = english(200)
VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(data.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.raw[self.open[-1]] = data
        else:
            self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    groups = ["news", "mail", None]
    rows = [{"text": text, "source": groups[i % 3]} for i, text in enumerate(TEXTS)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet", row_group_size=40)
    return folder


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    place = tmp_path_factory.mktemp("tokenizer") / "tok"
    pipelines.train(str(corpus), output=str(place), vocab_size=160, quiet=True)
    return place


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, corpus: Path, tokenizer: Path) -> Report:
    folder = tmp_path_factory.mktemp("report")
    small = pipelines.train(
        str(corpus), output=str(folder / "small"), vocab_size=90, criterion="frequency", quiet=True
    )
    (folder / "vocab.txt").write_text("\n".join(small.vocab) + "\n")
    return pipelines.report(
        str(tokenizer),
        on=str(corpus),
        group_column="source",
        compare_with=str(folder / "vocab.txt"),
        output=str(folder / "report.html"),
        quiet=True,
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return hostile_report(tmp_path_factory.mktemp("hostile"))


def page_of(done: Report) -> Page:
    return Page(Path(done.output).read_bytes())


# --- Content --------------------------------------------------------------------------------------


def test_the_metrics_match_the_text(full: Report, corpus: Path, tokenizer: Path) -> None:
    chunks = [chunk for text in TEXTS for chunk in text.split()]
    measures = measure(wp.Tokenizer.load(tokenizer), chunks, [1] * len(chunks))
    assert full.facts.on_text is not None
    text_bytes = sum(len(text.encode()) for text in TEXTS)
    assert full.facts.on_text.all == replace(measures, text_bytes=text_bytes)
    assert {*full.facts.on_text.groups} == {"news", "mail", None}
    text = page_of(full).text
    assert f"tokens per word {measures.tokens_per_word:.3f}" in text
    assert f"text of {measures.words:,} words" in text
    assert "news" in text
    assert "no group" in text


@pytest.mark.soak
def test_the_page_of_an_extended_or_pruned_tokenizer_says_so(
    corpus: Path, tokenizer: Path, tmp_path: Path
) -> None:
    write_shard(tmp_path / "domain" / "a.parquet", TEXTS[:20])
    more, fewer = str(tmp_path / "more"), str(tmp_path / "fewer")
    domain = str(tmp_path / "domain")
    pipelines.extend(str(tokenizer), domain, output=more, new_tokens=4, quiet=True)
    pipelines.prune(str(tokenizer), str(corpus), output=fewer, vocab_size=150, quiet=True)
    texts = {}
    for place in (more, fewer):
        page = pipelines.report(place, on=domain, output=place + ".html", quiet=True)
        texts[place] = page_of(page).text
        assert "alphabet alone" not in texts[place]
        assert "Options of the training" not in texts[place]
        assert "of the base tokenizer" in texts[place]
    assert re.search(r"tokens, extended with \d+ merges", texts[more])
    assert "Options of the extension" in texts[more]
    assert "vocabulary before the extension" in texts[more]
    assert "150 tokens, pruned from a larger one" in texts[fewer]
    assert "order of the merges of this tokenizer is not known" in texts[fewer]


def test_the_page_names_the_model(corpus: Path, tmp_path: Path, full: Report) -> None:
    place = str(tmp_path / "bpe")
    pipelines.train(str(corpus), output=place, model="bpe", vocab_size=90, quiet=True)
    text = page_of(pipelines.report(place, output=place + ".html", quiet=True)).text
    assert "a BPE vocabulary of 90 tokens" in text
    assert "a WordPiece vocabulary of 160 tokens" in page_of(full).text


def test_the_page_shows_superwords(corpus: Path, tmp_path: Path, full: Report) -> None:
    place = str(tmp_path / "superwords")
    options: dict[str, Any] = {"model": "bpe", "word_boundary": "bytes", "pre_tokenizer": "gpt2"}
    pipelines.train(corpus, output=place, vocab_size=330, superwords=30, quiet=True, **options)
    done = pipelines.report(place, on=str(corpus), output=place + ".html", quiet=True)
    text, vocab = page_of(done).text, wp.Tokenizer.load(place).vocab
    crossing = sum("Ġ" in token[1:].lstrip("Ġ") for token in vocab)
    assert re.search(rf"{crossing} tokens cross spaces. They are [\d.]+ % of the tokens", text)
    assert "superwords 30" in text
    assert all(" " not in row.word[1:] for row in done.facts.words.with_most_tokens)
    assert "cross spaces" not in page_of(full).text


def test_a_smaller_size_has_the_metrics_of_a_training_of_that_size(
    full: Report, corpus: Path, tmp_path: Path
) -> None:
    sizes = sorted(full.facts.at_sizes)
    assert sizes[-1] == 160
    assert len(sizes) > 3
    wanted = sizes[len(sizes) // 2]
    place = str(tmp_path / "tok")
    trained = pipelines.train(str(corpus), output=place, vocab_size=wanted, quiet=True)
    table = pipelines.compare([trained.tokenizer], on=str(corpus), quiet=True)
    measures = full.facts.at_sizes[wanted].all
    assert measures.tokens == table["tokens"][0].as_py()
    assert measures.used_tokens == table["used_tokens"][0].as_py()
    assert (
        f" {wanted:,} {measures.tokens_per_word:.3f} {measures.bytes_per_token:.3f} "
        in page_of(full).text
    )


def test_all_sections_are_there_with_text(full: Report) -> None:
    page = page_of(full)
    assert page.open == []
    ids = {attributes["id"] for attributes in page.of("section")}
    assert ids == {attributes["href"].removeprefix("#") for attributes in page.of("a")}  # type: ignore[union-attr]
    assert "needs a text" not in page.text
    assert len([a for a in page.of("svg") if a["class"] == "plot"]) == 3
    for part in ("cost the most tokens", "only in the other", "min_pair_count", "peak memory"):
        assert part.lower() in page.text.lower()


def test_without_text_or_log_the_page_says_what_it_needs(
    tokenizer: Path, corpus: Path, tmp_path: Path
) -> None:
    alone = pipelines.report(str(tokenizer), output=str(tmp_path / "a.html"), quiet=True)
    text = page_of(alone).text
    assert text.count("needs a text: use --on INPUT or --word-counts DIR.") == 4
    assert alone.facts.on_text is None
    assert alone.summary()["tokens_per_word"] is None
    vocab, output = str(tokenizer / "vocab.txt"), str(tmp_path / "b.html")
    bare = pipelines.report(vocab, on=str(corpus), output=output, quiet=True)
    page = page_of(bare)
    assert "The order of the merges of this tokenizer is not known" in page.text
    assert "no record of its training" in page.text
    assert bare.facts.at_sizes == {}
    assert page.of("input") == []


def test_a_word_table_gives_the_same_lists(full: Report, tokenizer: Path, tmp_path: Path) -> None:
    words = str(tmp_path / "words")
    write_shard(tmp_path / "a.txt", TEXTS)
    pipelines.count(str(tmp_path / "a.txt"), output=words, quiet=True)
    output = str(tmp_path / "a.html")
    done = pipelines.report(str(tokenizer), word_counts=words, output=output, quiet=True)
    assert done.facts.words is not None
    assert full.facts.words is not None
    ours = {name: of for name, of in full.facts.words.lists.items() if "fewer" not in name}
    assert done.facts.words.lists == ours


# --- Escaping -------------------------------------------------------------------------------------


def test_hostile_text_makes_no_elements(hostile: Report, full: Report) -> None:
    page, plain = page_of(hostile), page_of(full)
    assert page.open == []
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in plain.elements}
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert page.raw == plain.raw
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    for name in ("src", "href", "xlink:href", "action", "data"):
        places = [a[name] or "" for _, a in page.elements if name in a]
        assert [place for place in places if not place.startswith(("#", "data:,"))] == []


def test_hostile_text_is_shown_with_every_character_visible(hostile: Report) -> None:
    data = Path(hostile.output).read_text("utf-8")
    shown = page_of(hostile).text
    for word in WORDS:
        assert visible(word, 40) in shown
    for group in GROUPS:
        assert visible(group, 80) in shown
    hidden = re.compile("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2028\u2029\x00-\x08\x7f]")
    assert hidden.search(data) is None
    assert "\\u202e" in shown
    assert "◌\u0301" in shown


def test_the_policy_allows_the_style_and_the_script_and_nothing_else(hostile: Report) -> None:
    page = page_of(hostile)
    (policy,) = [a["content"] for a in page.of("meta") if "http-equiv" in a]
    rules = dict(rule.split(" ", 1) for rule in (policy or "").split("; "))
    assert rules["default-src"] == "'none'"
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"
    assert {*rules} == {
        *("default-src", "style-src", "script-src", "img-src", "base-uri", "form-action")
    }
    # nothing that the policy rules comes before it
    assert [tag for tag, _ in page.elements[:4]] == ["html", "head", "meta", "meta"]


# --- When it is written ---------------------------------------------------------------------------


def test_a_page_is_replaced_and_another_file_is_not(tokenizer: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    output.write_text("<p>my notes")
    with pytest.raises(
        OutputError, match=r"report.html: .*set `overwrite`, or choose another file"
    ):
        pipelines.report(str(tokenizer), output=str(output), quiet=True)
    assert output.read_text() == "<p>my notes"
    for overwrite in (True, False):
        pipelines.report(str(tokenizer), output=str(output), overwrite=overwrite, quiet=True)
        assert output.read_bytes().startswith(b"<!doctype html>")
    with pytest.raises(
        OptionError, match=r"is a directory; choose a file name, such as report\.html"
    ):
        pipelines.report(str(tokenizer), output=str(tmp_path), quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_failed_report_names_the_fix_and_leaves_the_earlier_page(
    tokenizer: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = str(tmp_path / "report.html")
    Path(output).write_bytes(GENERATOR.encode())

    def refused(kind: type[Exception], match: str, place: object = None, **options: Any) -> None:
        with pytest.raises(kind, match=match):
            pipelines.report(str(place or tokenizer), output=output, quiet=True, **options)

    refused(OptionError, "set either `on` or `word_counts`", on="a", word_counts="b")
    refused(OptionError, "group_column: .* pass the texts with `on`", group_column="source")
    refused(InputError, "'missing'", on=str(corpus), text_column="missing")
    refused(InputError, "no such file|no tokenizer|no file", place=tmp_path / "none")
    other = tmp_path / "tokenizer.json"
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    other.write_text(json.dumps({"version": "1.0", "model": model}))
    refused(InputError, "the kernel cannot run this tokenizer", place=other)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    refused(OptionError, r"needs jinja2: pip install jinja2 vl-convert-python")
    assert Path(output).read_bytes() == GENERATOR.encode()


def test_the_command_prints_what_it_wrote(tokenizer: Path, corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    printed = done("report", tokenizer, "--on", corpus, "--output", output)
    assert f"report: {output}, " in printed.out
    assert "tokens per word: " in printed.out
    summary = json.loads(done("report", tokenizer, "--output", output, "--json").out)
    assert summary["output"] == str(output)
    assert summary["bytes"] == output.stat().st_size
    failed = wordpiece("report", tokenizer, "--output", tokenizer / "vocab.txt")
    assert (failed.status, "--overwrite" in failed.fault) == (1, True)
    assert wordpiece("report").status == 2


def test_tokens_of_bytes_are_shown_as_text(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("日本語のテキスト 日本語 café\n" * 30)
    tok, text = str(tmp_path / "tok"), str(tmp_path / "t.txt")
    options = {"word_boundary": "bytes", "pre_tokenizer": "gpt2", "lowercase": False}
    pipelines.train(text, output=tok, model="bpe", vocab_size=300, **options, quiet=True)
    done = pipelines.report(tok, on=text, output=str(tmp_path / "report.html"), quiet=True)
    page = Path(done.output).read_text()
    assert "Ġ日本語" in page
    assert "Ġcafé" in page
    assert "æĹ" not in page
