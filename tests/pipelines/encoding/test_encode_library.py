"""`wordpiece encode` with a tokenizer that the library `tokenizers` runs: the same datasets as with
any other, with the ids of that library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Peer

import pipelines
import wordpiece_core as wp
from wordpiece_core.options import ENCODING_COLUMNS

from ..corpora import (
    ONE_WORKER,
    column,
    done,
    english,
    files_below,
    ids_by_peer,
    manifest,
    multilingual,
    wordpiece,
    write_shard,
)
from ..id_files import read_ds
from ..stopping import killed_before

TEXTS = english(60) + multilingual(60)
FOLLOW = ("--follow", "--poll", "0.1s", "--until-idle", "0s")


@pytest.fixture(scope="module")
def peer() -> Any:
    """BPE with a pre-tokenizer that is not known here."""
    made = Peer(models.BPE(unk_token="<unk>"))
    made.normalizer = normalizers.Sequence([normalizers.Replace("e", "é"), normalizers.NFD()])
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.UnicodeScripts(),
            pre_tokenizers.Split(Regex(r"\s+|\w{1,5}"), "isolated"),
        ]
    )
    special = ["<unk>", "<pad>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    made.train_from_iterator(TEXTS, trainer)
    made.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "<s> $A </s> $B </s>", [("<s>", 2), ("</s>", 3)]
    )
    return made


@pytest.fixture
def source(tmp_path: Path, peer: Any) -> Path:
    peer.save(str(tmp_path / "tokenizer.json"))
    write_shard(tmp_path / "in" / "a.txt", TEXTS[:50])
    write_shard(tmp_path / "in" / "b.parquet", [*TEXTS[50:], None])
    return tmp_path / "in"


def call(source: Path, output: Path, *more: str) -> list[str | Path]:
    tokenizer = source.parent / "tokenizer.json"
    return ["encode", source, "--tokenizer", tokenizer, "--output", output, *more, *ONE_WORKER]


def test_ids_match_the_library_and_one_line_says_what_is_slow(
    source: Path, peer: Any, tmp_path: Path
) -> None:
    outcome = done(*call(source, tmp_path / "out"))
    assert column(tmp_path / "out") == [*ids_by_peer(peer, TEXTS, add_special_tokens=True), None]
    said = [line for line in outcome.err.splitlines() if "the library tokenizers" in line]
    assert said == [
        f"wordpiece: tokenizer {tmp_path}/tokenizer.json is encoded by the library tokenizers, at"
        " its lower speed: pre_tokenizer: unknown type `UnicodeScripts`"
    ]
    again = done(*call(source, tmp_path / "out"))
    assert "shards: 2 (2 finished before)" in again.out


def test_a_dataset_that_was_killed_is_completed_with_the_same_bytes(
    source: Path, tmp_path: Path
) -> None:
    done(*call(source, tmp_path / "whole"))
    killed_before(1, r"written .*/\.manifest\.json", *call(source, tmp_path / "out"))
    done(*call(source, tmp_path / "out"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")


def test_a_followed_dataset_matches_a_batch_run(source: Path, tmp_path: Path) -> None:
    done(*call(source, tmp_path / "out", *FOLLOW))
    done(*call(source, tmp_path / "batch"))
    assert column(tmp_path / "out") == column(tmp_path / "batch")
    assert manifest(tmp_path / "out") == manifest(tmp_path / "batch")


def test_packed_and_shuffled_rows_have_all_tokens(source: Path, peer: Any, tmp_path: Path) -> None:
    done(*call(source, tmp_path / "packed", "--pack", "--max-length", "32", "--padding"))
    rows = column(tmp_path / "packed")
    assert {(len(row), row[0]) for row in rows} == {(32, 2)}
    bodies = [i for row in rows for i in row[1:-1] if i not in (1, 3)]
    plain = ids_by_peer(peer, TEXTS, add_special_tokens=False)
    assert bodies == [i for row in plain if row for i in row]
    done(*call(source, tmp_path / "ds", "--format", "ds", "--shuffle", "7"))
    found = [row for path in (tmp_path / "ds").glob("*.ds") for row in read_ds(path)]
    theirs = ids_by_peer(peer, TEXTS, add_special_tokens=True)
    assert sorted(row for row in found if row) == sorted(row for row in theirs if row)


@pytest.mark.filterwarnings("ignore::wordpiece_core.EncodedByLibraryWarning")
def test_every_column_matches_the_tokenizer(source: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_length": 12, "stride": 3, "columns": ENCODING_COLUMNS}
    options |= {"padding": True, "id_type": "uint16"}
    place, out = str(tmp_path / "tokenizer.json"), tmp_path / "out"
    pipelines.encode(source, tokenizer=place, output=out, quiet=True, **options)
    tokenizer = wp.Tokenizer.load(place)
    wanted = tokenizer.encode_table([*TEXTS, None], options=wp.EncodingOptions(**options))
    for name in ("input_ids", *ENCODING_COLUMNS):
        assert column(out, name) == wanted.table[name].to_pylist()
    shown = done("inspect", out, "--rows", "1").out.replace("◌", "")
    assert tokenizer.decode(column(out)[0], skip_special_tokens=False) in shown


@pytest.mark.filterwarnings("ignore::wordpiece_core.EncodedByLibraryWarning")
def test_a_transform_encodes_with_it(source: Path, peer: Any, tmp_path: Path) -> None:
    step = pipelines.EncodeTexts(tokenizer=str(tmp_path / "tokenizer.json"), text_column="text")
    with TestPipeline() as pipeline:
        rows = pipeline | beam.Create([{"text": text} for text in TEXTS[:5]]) | step
        ids = rows | beam.Map(lambda row: tuple(row["input_ids"]))
        theirs = ids_by_peer(peer, TEXTS[:5], add_special_tokens=True)
        assert_that(ids, equal_to([tuple(row or ()) for row in theirs]))


def test_options_of_other_tokenizers_are_refused_in_one_line(source: Path, tmp_path: Path) -> None:
    place = tmp_path / "tokenizer.json"
    out = ("--output", tmp_path / "out")
    for args, text in (
        (("encode", source, "--tokenizer", place, *out, "--lowercase"), "lowercase"),
        (("extend", place, source, *out, "--new-tokens", "5"), "only WordPiece can be extended"),
        (("report", place, *out), "the kernel cannot run this tokenizer"),
    ):
        outcome = wordpiece(*args)
        assert outcome.status != 0
        *warned, fault = outcome.err.splitlines()
        assert text in fault
        assert len(warned) <= 1
