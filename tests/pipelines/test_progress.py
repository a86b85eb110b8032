"""Progress of a running job, for people."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from pipelines.io import inputs
from pipelines.io.inputs import TextColumns
from pipelines.progress import Progress, add_input, add_metrics, snapshot

from .corpora import done, english, train_tokenizer, write_shard

TEXTS = english(300)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("ending", [".jsonl.gz", ".txt.zst", ".jsonl", ".parquet"])
def test_progress_is_measured_in_what_is_read(tmp_path: Path, ending: str) -> None:
    path = write_shard(tmp_path / f"a{ending}", TEXTS)
    size = Path(path).stat().st_size
    text = sum(len(text.encode()) for text in TEXTS)
    wanted = size if ending.count(".") > 1 else text
    before = snapshot()
    done("count", path, "--output", tmp_path / "words")
    assert (snapshot() - before)["input"] == wanted
    tokenizer = train_tokenizer(tmp_path / "t", TEXTS, "--vocab-size", "80")
    before = snapshot()
    done("encode", path, "--tokenizer", tokenizer, "--output", tmp_path / "out")
    assert (snapshot() - before)["input"] == wanted


def test_compressed_bytes_are_reported_while_they_are_read(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.jsonl.gz", TEXTS * 200)
    (file,) = inputs.resolve([path])
    before, seen = snapshot(), []
    for _ in inputs.open_shard(file, TextColumns(), on_read=add_input).batches():
        seen.append((snapshot() - before)["input"])
    assert 0 < seen[0] < file.size
    assert seen[-1] == file.size


def test_a_narrow_terminal_shows_the_name_and_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    with Progress(stream).stage("segment words", "words", 2_000_000):
        add_metrics(words=1_000_000, bytes=10**9, rows=5_000_000, shards=1, truncated_rows=2)
    drawn = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()))
    last = [line for line in drawn if line.strip()][-1]
    assert "segment words" in last
    assert last.count("━") == 24
    assert "100%" in last
    assert re.search(r"[\d,]+ MB/s", last)
    lines = io.StringIO()
    with Progress(lines).stage("encode", "bytes"):
        add_metrics(shards=1, truncated_rows=2, rows=1)
    assert ", 1 row, 2 truncated rows, 1 shard, " in lines.getvalue()
