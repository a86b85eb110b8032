"""`check`: every kind of tokenizer next to the library that it belongs to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer as Peer
from tokenizers import models, normalizers, pre_tokenizers

import pipelines
from pipelines.comparing import check
from tests.pipelines.corpora import done, multilingual, wordpiece
from tests.wordpiece_core.tokenizer.peers import TEXTS as ODD_TEXTS
from tests.wordpiece_core.tokenizer.peers import sentencepiece_model, trained
from tests.wordpiece_core.tokenizer.test_tiktoken_ranks import RANKS, tekken, text_of
from wordpiece_core import InputError
from wordpiece_core.tokenizer.original_library import OriginalLibrary, original_library

TEXTS = [*multilingual(120, seed=5), *ODD_TEXTS, None]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    table = pa.table({"text": TEXTS})
    pq.write_table(table.slice(0, 60), folder / "a.parquet", row_group_size=25)
    pq.write_table(table.slice(60), folder / "b.parquet")
    return folder


def vocab_txt(folder: Path) -> Path:
    result = pipelines.train(
        word_counts=None, inputs=str(folder / "t.txt"), output=folder / "tok", vocab_size=260
    )
    assert len(result.vocab) == 260
    return folder / "tok" / "vocab.txt"


def by_library(folder: Path) -> Path:
    """A `tokenizer.json` with a part that the kernel does not have."""
    peer = Peer(models.BPE({"a": 0, "b": 1, "c": 2, "ab": 3}, [("a", "b")]))
    peer.normalizer = normalizers.Replace("x", "a")
    peer.pre_tokenizer = pre_tokenizers.UnicodeScripts()
    peer.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def written(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
        return folder / name

    return write


KINDS: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "vocab.txt": (vocab_txt, "tokenizers", "kernel"),
    "directory": (lambda folder: vocab_txt(folder).parent, "transformers", "kernel"),
    **{
        kind: (written("tokenizer.json", json.dumps(trained(kind))), "tokenizers", "kernel")
        for kind in ("word_end", "unigram", "gpt2", "roberta")
    },
    "sentencepiece": (written("spm.model", sentencepiece_model()), "sentencepiece", "kernel"),
    "ranks": (written("cl100k_base.tiktoken", text_of(RANKS)), "tiktoken", "kernel"),
    "tekken": (written("tekken.json", json.dumps(tekken(30, 500))), "tiktoken", "kernel"),
    "library": (by_library, "tokenizers", "library"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_the_ids_of_its_library(kind: str, corpus: Path, tmp_path: Path) -> None:
    make, library, encoder = KINDS[kind]
    (tmp_path / "t.txt").write_text("\n".join(multilingual(60)))
    found = pipelines.check(str(make(tmp_path)), on=corpus, quiet=True)
    assert (found.rows, found.differing_rows) == (len(TEXTS) - 1, 0)
    assert found.first_difference is None
    assert found.bytes == sum(len(text.encode()) for text in TEXTS if text is not None)
    assert (found.library.split()[0], found.encoder) == (library, encoder)
    assert found.mb_per_second > 0
    assert found.library_mb_per_second > 0


def test_merges_files_have_the_ids_of_their_library(corpus: Path, tmp_path: Path) -> None:
    model = trained("gpt2")["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    lines = [" ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"]]
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{p}\n" for p in lines))
    for place in (tmp_path, tmp_path / "vocab.json"):
        found = pipelines.check(str(place), on=corpus, quiet=True)
        assert (found.library.split()[0], found.differing_rows) == ("transformers", 0)


def test_rows_that_differ_are_shown_and_end_with_status_1(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = written("tokenizer.json", json.dumps(trained("gpt2")))(tmp_path)

    def changed(*args: Any) -> OriginalLibrary:
        """The library, which gives other ids from row 61 on: row 1 of the second file."""
        library, seen = original_library(*args), 0

        def ids(encoded: Any) -> list[list[int]]:
            nonlocal seen
            rows = library.ids(encoded)
            changed = [[*row[:2], 7777] if seen + i > 60 else row for i, row in enumerate(rows)]
            seen += len(rows)
            return changed

        return replace(library, ids=ids)

    monkeypatch.setattr(check, "original_library", changed)
    outcome = wordpiece("check", place, "--on", corpus)
    texts = len(TEXTS) - 1
    assert outcome.status == 1
    assert f"rows that differ: {texts - 61}" in outcome.out
    assert f"first difference: {corpus}/b.parquet, row 1, id 2\n" in outcome.out, outcome.out
    assert " 7777\n" in outcome.out
    assert f"{texts - 61} of {texts} rows have other ids than tokenizers" in outcome.fault
    found = pipelines.check(str(place), on=corpus, quiet=True)
    assert found.first_difference is not None
    assert found.first_difference.text == TEXTS[61]
    assert found.summary()["first_difference"]["library_ids"][2] == 7777


def test_a_sample_is_read_from_every_file(corpus: Path, tmp_path: Path) -> None:
    place = written("tokenizer.json", json.dumps(trained("gpt2")))(tmp_path)
    sizes = [check_bytes(place, corpus, sample) for sample in (1, 2_000, 1_000_000)]
    assert sizes == sorted(set(sizes))
    assert sizes[1] < 2_000 + 2 * max(len(text.encode()) for text in TEXTS if text)
    rows = json.loads(done("check", place, "--on", corpus, "--sample", "2kB", "--json").out)
    assert 2 <= rows["rows"] < 60


def check_bytes(place: Path, corpus: Path, sample: int) -> int:
    found = pipelines.check(str(place), on=corpus, sample=sample, quiet=True)
    return int(found.bytes)


def test_wrong_calls_are_one_line(corpus: Path, tmp_path: Path) -> None:
    place = written("tokenizer.json", json.dumps(trained("gpt2")))(tmp_path)
    outcome = wordpiece("check", place, "--on", corpus, "--", "--runner=FlinkRunner")
    assert (outcome.status, "remove the arguments after --" in outcome.fault) == (2, True)
    assert "--on" in wordpiece("check", place).fault
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"text": null}\n')
    with pytest.raises(InputError, match="no text in the sample"):
        pipelines.check(str(place), on=empty, quiet=True)


def test_a_library_that_is_missing_is_named(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = written("spm.model", sentencepiece_model())(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    outcome = wordpiece("check", place, "--on", corpus)
    assert outcome.status == 2
    assert "belongs to the library sentencepiece: pip install sentencepiece" in outcome.fault
