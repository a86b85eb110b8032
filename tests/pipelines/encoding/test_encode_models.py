"""`wordpiece encode` with BPE and Unigram: every way to make a dataset gives the ids that
`tokenizers` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Peer

import pipelines
import wordpiece_core as wp
from tests.oracle import count_words
from wordpiece_core.options import ENCODING_COLUMNS

from ..corpora import (
    ONE_WORKER,
    column,
    done,
    english,
    ids_by_peer,
    multilingual,
    write_shard,
)
from ..id_files import read_ds

# The text is small: not all of them reach their size.
pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has", "ignore:.*of the tokens are")

TEXTS = english(60) + multilingual(60)
MODELS: dict[str, dict[str, Any]] = {
    "word_end": {"model": "bpe", "vocab_size": 400},
    "mark": {"model": "bpe", "word_boundary": "▁", "vocab_size": 400},
    "gpt2": {"model": "bpe", "word_boundary": "bytes", "vocab_size": 400},
    "unigram": {"model": "unigram", "vocab_size": 400},
}


class Trained:
    """A tokenizer directory, another reader of it, and the arguments of `encode` for it."""

    def __init__(self, place: Path, kind: str) -> None:
        self.place, self.kind = place, kind
        cut = {"pre_tokenizer": "gpt2"} if kind == "gpt2" else {}
        special = {"special_tokens": ["[UNK]", "<|endoftext|>"]} if kind == "gpt2" else {}
        made = wp.train(count_words(TEXTS, **cut), **MODELS[kind], **cut, **special)
        made.save(place)
        self.peer = Peer.from_file(str(place / "tokenizer.json"))
        self.plain = ["--no-add-special-tokens"] if kind == "gpt2" else []

    def call(self, source: Path, output: Path, *more: str) -> list[str | Path]:
        place = ["--tokenizer", self.place, "--output", output]
        return ["encode", source, *place, *self.plain, *more, *ONE_WORKER]

    def ids(self, texts: list[str]) -> list[list[int] | None]:
        return ids_by_peer(self.peer, texts, add_special_tokens=not self.plain)


@pytest.fixture(scope="module", params=list(MODELS))
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(tmp_path_factory.mktemp("tokenizer"), request.param)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_shard(tmp_path / "in" / "a.txt", TEXTS[:50])
    write_shard(tmp_path / "in" / "b.parquet", TEXTS[50:])
    return tmp_path / "in"


def test_ids_alone_in_a_random_order_match_the_texts(
    trained: Trained, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    more = ("--format", "ds", "--shuffle", "7", "--splits", "train=0.7,test=0.3")
    done(*trained.call(source, out, *more))
    rows = []
    for path in out.glob("*.ds"):
        rows += read_ds(path)
    assert sorted(rows) == sorted(row for row in trained.ids(TEXTS) if row)


def test_every_column_matches_the_tokenizer(trained: Trained, source: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_length": 12, "stride": 3, "columns": ENCODING_COLUMNS}
    options |= {"padding": trained.kind != "gpt2", "add_special_tokens": not trained.plain}
    place, out = str(trained.place), tmp_path / "out"
    pipelines.encode(source, tokenizer=place, output=out, quiet=True, **options)
    wanted = wp.Tokenizer.load(place).encode_table(TEXTS, options=wp.EncodingOptions(**options))
    for name in ("input_ids", *ENCODING_COLUMNS):
        assert column(out, name) == wanted.table[name].to_pylist()


def test_a_dataset_is_shown_as_text(trained: Trained, source: Path, tmp_path: Path) -> None:
    done(*trained.call(source, tmp_path / "out"))
    shown = done("inspect", tmp_path / "out", "--rows", "1").out.splitlines()
    tok = wp.Tokenizer.load(trained.place)
    ids = trained.ids(TEXTS[:1])[0]
    assert shown[-1] == tok.decode(ids, skip_special_tokens=False)
    assert TEXTS[0] in shown[-1]
