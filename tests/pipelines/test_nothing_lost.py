"""A job deletes only what it made, reads the whole of its input or fails, and takes no fault of
storage for bad data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.files.columns import TextColumns
from pipelines.files.inputs import open_shard, read_texts, resolve
from pipelines.files.inputs import plan as plan_ranges
from wordpiece_core import storage
from wordpiece_core.errors import ChangedError, InputError, StorageError

from ..wordpiece_core.encrypted_files import write_encrypted
from .corpora import (
    Outcome,
    config,
    done,
    english,
    files_below,
    manifest,
    manifest_path,
    train_tokenizer,
    wordpiece,
    write_shard,
)
from .test_bad_input import corrupt_page

TEXTS = english(60)
SIZE = ["--vocab-size", "80"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), TEXTS, *SIZE)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A directory that holds nothing but a directory with a corpus."""
    write_shard(tmp_path / "data" / "corpus" / "a.parquet", TEXTS)
    return tmp_path / "data" / "corpus"


# --- A job deletes only what it can prove it made -------------------------------------------------


def test_a_directory_of_directories_is_no_work_directory(corpus: Path) -> None:
    data = corpus.parent
    before = files_below(data)
    outcome = wordpiece("train", corpus, "--output", data / "tok", "--work-dir", data, *SIZE)
    assert outcome.status == 1
    assert outcome.fault == (
        f"{data}: holds corpus/a.parquet, which is not of this job; move it, or give another"
        " directory"
    )
    assert files_below(data) == before
    assert not (data / "tok").exists()


@pytest.mark.parametrize("mine", ["x.txt", "words/part-00000.parquet", "job.json"])
@pytest.mark.parametrize("call", ["fails at once", "works"])
def test_what_was_there_before_the_work_is_never_deleted(
    tmp_path: Path, corpus: Path, mine: str, call: str
) -> None:
    file = tmp_path / "tok.work" / mine
    file.parent.mkdir(parents=True)
    file.write_text("precious")
    source = tmp_path / "nosuch.parquet" if call == "fails at once" else corpus
    assert wordpiece("train", source, "--output", tmp_path / "tok", *SIZE).status == 1
    assert file.read_text() == "precious"
    assert not (tmp_path / "tok").exists()


@pytest.mark.parametrize("folder", ["_staging", "_staging/0123456789abcdef"])
@pytest.mark.parametrize("command", ["count", "train"])
def test_a_staging_directory_of_others_is_refused(
    tmp_path: Path, corpus: Path, command: str, folder: str
) -> None:
    file = tmp_path / "out" / folder / "part-00000.parquet"
    file.parent.mkdir(parents=True)
    file.write_text("precious")
    outcome = wordpiece(command, corpus, "--output", tmp_path / "out")
    assert outcome.status == 1
    assert f"{tmp_path}/out/_staging: holds " in outcome.fault
    assert files_below(tmp_path / "out") == {f"{folder}/part-00000.parquet": b"precious"}


def test_a_link_in_a_work_directory_is_not_followed(tmp_path: Path, corpus: Path) -> None:
    keeping = config(tmp_path, keep_work=True)
    done("train", corpus, "--output", tmp_path / "tok", *keeping, *SIZE)
    work = tmp_path / "tok.work"
    shutil.rmtree(work / "words")
    (work / "words").symlink_to(corpus)
    outcome = wordpiece("train", corpus, "--output", tmp_path / "tok", *SIZE)
    assert outcome.status == 1
    assert f"{work}: holds words, which is not of this job" in outcome.fault
    assert files_below(corpus).keys() == {"a.parquet"}


@pytest.mark.parametrize("name", ["../../../victim/v", "/VICTIM/v", "link/v"])
@pytest.mark.parametrize("place", ["error", "shard", "part"])
def test_names_in_manifests_lead_nowhere_else(
    tmp_path: Path, corpus: Path, tokenizer: str, name: str, place: str
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    for file in ("v", "v.bad", "v.json", "v.parquet"):
        (victim / file).write_text("precious")
    before = files_below(victim)
    name = name.replace("/VICTIM", str(victim))
    output = tmp_path / "out"
    if place == "part":
        call = ["count", str(corpus), "--output", str(output)]
        done(*call)
        record = manifest(output) | {"parts": [name]}
    else:
        write_shard(corpus / "b.parquet", TEXTS)
        corrupt_page(corpus / "b.parquet")
        call = ["encode", str(corpus), "--tokenizer", tokenizer, "--output", str(output)]
        done(*call, "--on-error", "skip")
        record = manifest(output)
        key = {"error": "errors", "shard": "shards"}[place]
        record[key][0] |= {"name": name, "input": name}
        write_shard(corpus / "b.parquet", ["fixed"])
    (output / "link").symlink_to(victim)
    manifest_path(output).write_text(json.dumps(record))
    outcome = wordpiece(*call)
    assert outcome.status == 1
    assert outcome.fault.startswith(str(output))
    assert files_below(victim) == before


def test_a_failed_call_does_not_block_the_next(tmp_path: Path, corpus: Path) -> None:
    train = ["train", corpus, "--output", tmp_path / "tok"]
    assert wordpiece(*train, "--vocab-size", "7").status == 2
    work = tmp_path / "tok.work"
    words = (work / "words" / "part-00000.parquet").stat().st_mtime_ns
    outcome = done(*train, *SIZE, *config(tmp_path, keep_work=True))
    assert "count: done" not in outcome.err  # what was counted is of use
    assert (work / "words" / "part-00000.parquet").stat().st_mtime_ns == words
    shutil.rmtree(work)
    shutil.rmtree(tmp_path / "tok")
    assert wordpiece(*train, "--vocab-size", "7").status == 2
    done(*train, *SIZE, "--no-lowercase")
    done("train", corpus, "--output", tmp_path / "straight", *SIZE, "--no-lowercase")
    vocab = [(tmp_path / name / "vocab.txt").read_bytes() for name in ("tok", "straight")]
    assert vocab[0] == vocab[1]
    assert not work.exists()


def test_files_beside_a_tokenizer_stay_and_changed_ones_are_not_replaced(
    tmp_path: Path, corpus: Path
) -> None:
    train = ["train", corpus, "--output", tmp_path / "tok", *SIZE]
    done(*train)
    (tmp_path / "tok" / "model.safetensors").write_text("precious")
    done(*train)
    (tmp_path / "tok" / "vocab.txt").write_text("mine\n")
    outcome = wordpiece(*train)
    assert outcome.status == 2
    assert "tok: holds a tokenizer whose vocab.txt was changed after its training; give" in (
        outcome.fault
    )
    assert (tmp_path / "tok" / "vocab.txt").read_text() == "mine\n"
    done(*train, "--overwrite")
    assert (tmp_path / "tok" / "model.safetensors").read_text() == "precious"
    done("train", corpus, "--output", tmp_path / "straight", *SIZE)
    vocab = [(tmp_path / name / "vocab.txt").read_bytes() for name in ("tok", "straight")]
    assert vocab[0] == vocab[1]


# --- The whole input, or an error -----------------------------------------------------------------


def read_all(path: Path, midway: Callable[[], object]) -> None:
    """Reads a file as counting and encoding do; calls `midway` after the first batch."""
    file = resolve([str(path)])[0]
    for part in plan_ranges([file], "text"):
        for i, _ in enumerate(read_texts(part, "text")):
            if i == 0:
                midway()
    midway()


BIG = [f"{number} " + "words " * 1000 for number in range(4000)]  # batches of 8 MB


@pytest.mark.parametrize("ending", [".txt", ".jsonl", ".parquet", ".txt.gz"])
@pytest.mark.parametrize("change", ["truncated", "grown", "written anew", "gone"])
def test_a_file_that_changes_while_it_is_read_is_an_error(
    tmp_path: Path, ending: str, change: str
) -> None:
    path = tmp_path / f"a{ending}"
    write_shard(path, BIG)

    def midway() -> None:
        if change == "truncated":
            os.truncate(path, path.stat().st_size // 2)
        elif change == "grown":
            path.write_bytes(path.read_bytes() + b"more\n")
        elif change == "written anew":
            os.utime(path, ns=(0, 0))
        else:
            path.unlink()

    done_once: list[int] = []
    with pytest.raises(ChangedError, match="since the job began; run the job again"):
        read_all(path, lambda: done_once or (done_once.append(1), midway()))


def test_a_text_file_truncated_in_the_middle_of_encoding_is_no_shard(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    write_shard(path, BIG)
    read = storage.StoredFile.read

    def truncating(self: storage.StoredFile, size: int | None = -1) -> bytes:
        data = read(self, size)
        if self.path == str(path) and self.position > 9_000_000:
            os.truncate(path, 9_000_000)
        return data

    monkeypatch.setattr(storage.StoredFile, "read", truncating)
    out = tmp_path / "out"
    args = ["--tokenizer", tokenizer, "--output", out, "--on-error", "skip"]
    outcome = wordpiece("encode", path, *args)
    assert outcome.status == 1
    assert outcome.fault == f"{path}: it has changed since the job began; run the job again"
    assert not list(out.rglob("*.parquet"))
    assert not (out / ".manifest.json").exists()


@pytest.mark.parametrize("year", [-1e9, 13e9])  # 1938; 2381, in nanoseconds more than 63 bits
def test_a_file_of_another_time_is_read(tmp_path: Path, tokenizer: str, year: float) -> None:
    write_shard(tmp_path / "in" / "a.txt", TEXTS)
    os.utime(tmp_path / "in" / "a.txt", (year, year))
    for follow in ([], ["--follow", "--poll", "0.1s", "--until-idle", "0s"]):
        words, shards = tmp_path / f"words{len(follow)}", tmp_path / f"shards{len(follow)}"
        done("count", tmp_path / "in", "--output", words, *follow)
        assert manifest(words)["rows"] == len(TEXTS)
        done("encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", shards, *follow)
        assert manifest(shards)["rows"] == len(TEXTS)


def test_links_are_files_of_their_own_and_loops_are_not_followed(
    tmp_path: Path,
) -> None:
    source = tmp_path / "in"
    for name in ("a.txt", "b/c.txt"):
        write_shard(source / name, ["x"])
    (source / "loop").symlink_to(source)
    (source / "b" / "up").symlink_to("..")
    (source / "again").symlink_to(source / "b")
    (source / "0.txt").symlink_to(source / "a.txt")
    os.link(source / "a.txt", source / "z.txt")
    found = [file.name for file in resolve([str(source), str(source / "*.txt")])]
    assert found == ["0.txt", "a.txt", "again/c.txt", "b/c.txt", "z.txt"]


def test_links_of_two_inputs_to_one_file_have_a_shard_each(tmp_path: Path, tokenizer: str) -> None:
    write_shard(tmp_path / "blobs" / "x", ["x"])  # as in the cache of the Hub
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.txt").symlink_to("../blobs/x")
    output = tmp_path / "out"
    done("encode", tmp_path / "a", tmp_path / "b", "--tokenizer", tokenizer, "--output", output)
    assert sorted(str(f.relative_to(output)) for f in output.glob("*/*.parquet")) == [
        "a/train.parquet",
        "b/train.parquet",
    ]


def test_links_to_files_elsewhere_are_read_and_links_to_nothing_are_named(tmp_path: Path) -> None:
    source = tmp_path / "in"
    write_shard(tmp_path / "elsewhere" / "x.txt", ["x"])
    source.mkdir()
    (source / "there").symlink_to(tmp_path / "elsewhere")
    assert [file.name for file in resolve([str(source)])] == ["there/x.txt"]
    (source / "nothing.txt").symlink_to(tmp_path / "nothing.txt")
    with pytest.raises(InputError, match=r"nothing\.txt: a link to a file that is not there"):
        resolve([str(source)])


@pytest.mark.parametrize("command", ["count", "encode"])
def test_an_encrypted_column_is_named_and_the_other_shards_are_finished(
    tmp_path: Path, tokenizer: str, command: str
) -> None:
    table = pa.table({"text": TEXTS[:10], "id": range(10)})
    options: dict[str, Any] = {"plain_footer": True, "algorithm": "AES_GCM_V1"}
    write_encrypted(tmp_path_in(tmp_path) / "e.parquet", table, ["text"], **options)
    write_shard(tmp_path / "in" / "good.parquet", TEXTS)
    args = [sys.executable, "-m", "pipelines.commands.cli", command, "in", "--output", "out"]
    args += ["--tokenizer", tokenizer] if command == "encode" else []
    ended = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f"{tmp_path}/in/e.parquet: column 'text' is encrypted" in ended.stderr
    assert (tmp_path / "out" / "good.parquet").exists() == (command == "encode")

    write_encrypted(tmp_path / "in" / "e.parquet", table, ["id"], **options)
    kept = ["--keep-columns", "text", "--tokenizer", tokenizer] if command == "encode" else []
    done(command, tmp_path / "in", "--output", tmp_path / "other", *kept)


def tmp_path_in(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


# --- A fault of storage is not bad data -----------------------------------------------------------


@pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".jsonl.zst", ".parquet"])
def test_faults_of_storage_come_through_every_format_as_what_they_are(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{ending}"
    write_shard(path, TEXTS)
    monkeypatch.setattr(storage, "DELAYS", (0.0, 0.0))
    file = resolve([str(path)])[0]
    calls = []

    def broken(self: storage.StoredFile, size: int) -> bytes:
        calls.append(size)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(storage.StoredFile, "_read_at", broken)
    with pytest.raises(StorageError, match=f"a{ending}: cannot be read"):
        list(open_shard(file, TextColumns()).batches())
    assert len(calls) == 3  # tried again


def test_a_fault_of_storage_is_tried_again_and_then_ends_the_job_with_nothing_skipped(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        write_shard(tmp_path / "in" / f"{name}.parquet", TEXTS)
    monkeypatch.setattr(storage, "DELAYS", (0.0, 0.0))
    read_at = storage.StoredFile._read_at
    args = ["--tokenizer", tokenizer, "--on-error", "skip", "--output"]

    def encode(output: str, failing: int) -> Outcome:
        """Every read of b fails, so often."""
        left = iter(range(failing))

        def flaky(self: storage.StoredFile, size: int) -> bytes:
            if self.path.endswith("b.parquet") and next(left, None) is not None:
                raise OSError("AWS Error SLOW_DOWN: HTTP response code 503")
            return read_at(self, size)

        with monkeypatch.context() as patch:
            patch.setattr(storage.StoredFile, "_read_at", flaky)
            return wordpiece("encode", tmp_path / "in", *args, tmp_path / output)

    assert encode("flaky", 2).status == 0
    assert encode("straight", 0).status == 0
    assert files_below(tmp_path / "flaky") == files_below(tmp_path / "straight")
    outcome = encode("broken", 10**9)
    assert outcome.status == 1
    assert "in/b.parquet: cannot be read (AWS Error SLOW_DOWN" in outcome.fault
    assert encode("broken", 0).status == 0
    assert files_below(tmp_path / "broken") == files_below(tmp_path / "straight")


# --- No silent change of meaning ------------------------------------------------------------------


def test_manifests_hold_no_absolute_paths(tmp_path: Path, tokenizer: str) -> None:
    source = tmp_path / "in"
    write_shard(source / "de" / "a.parquet", TEXTS)
    write_shard(source / "b.parquet", TEXTS)
    corrupt_page(source / "b.parquet")
    args = ["--tokenizer", tokenizer, "--on-error", "skip"]
    done("encode", source, "--output", tmp_path / "out", *args)
    done("train", source / "de", "--output", tmp_path / "tok", *SIZE)
    done("count", source / "de", "--output", tmp_path / "words")
    for directory in ("out", "tok", "words"):
        for name, data in files_below(tmp_path / directory).items():
            assert (str(tmp_path).encode() in data) == name.endswith("run.json"), name
    assert manifest(tmp_path / "out")["shards"][0]["input"] == "de/a.parquet"
    run = json.loads((tmp_path / "out" / ".run.json").read_text())
    assert run["inputs"] == {str(source): ["b.parquet", "de/a.parquet"]}


def test_a_corpus_that_was_moved_is_known_again(tmp_path: Path, tokenizer: str) -> None:
    write_shard(tmp_path / "in" / "a.parquet", TEXTS)
    encode = ["--tokenizer", tokenizer, "--output", tmp_path / "out"]
    done("encode", tmp_path / "in", *encode)
    (tmp_path / "in").rename(tmp_path / "moved")
    outcome = done("encode", tmp_path / "moved", *encode)
    assert "shards: 1 (1 finished before)" in outcome.out


def test_with_smoothing_words_are_those_of_the_text_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    groups = ["en"] * 50 + ["de"] * 10
    pq.write_table(pa.table({"text": TEXTS, "language": groups}), path)
    smooth = ["--group-column", "language", "--smoothing-exponent", "0.5"]
    outcome = done("train", path, "--output", tmp_path / "tok", *SIZE, *smooth)
    plain = done("train", path, "--output", tmp_path / "plain", *SIZE)
    words = [line for line in outcome.out.splitlines() if line.startswith("words: ")]
    assert words == [line for line in plain.out.splitlines() if line.startswith("words: ")]
    assert "tokens per word, by the smoothed counts: " in outcome.out
    records = [
        json.loads((tmp_path / name / "training.json").read_text()) for name in ("tok", "plain")
    ]
    assert records[0]["corpus"] == records[1]["corpus"]
    assert records[0]["coverage"]["words"] != records[0]["corpus"]["words"]


def test_merges_and_tokens_are_the_same_on_the_bar_in_the_summary_and_in_the_log(
    tmp_path: Path, corpus: Path
) -> None:
    args = ["--output", tmp_path / "tok", "--vocab-size", "120", "--min-pair-count", "1"]
    outcome = done("train", corpus, *args)
    merges = pq.read_metadata(tmp_path / "tok" / "merges.parquet").num_rows
    tokens = len((tmp_path / "tok" / "vocab.txt").read_text().splitlines())
    assert f"vocabulary: {tokens:,} tokens, {merges:,} merges" in outcome.out
    assert f"merge: done, {tokens:,} tokens, {merges:,} merges, " in outcome.err


def invalid_strings() -> pa.Array:
    """Two strings that are not UTF-8, with three faults."""
    return pa.Array.from_buffers(pa.string(), 2, pa.array([b"a\xff", b"\xfe\xc3"]).buffers())


KEPT = {
    "plain": invalid_strings(),
    "list": pa.ListArray.from_arrays([0, 1, 2], invalid_strings()),
    "struct": pa.StructArray.from_arrays([invalid_strings()], ["a"]),
    "map": pa.MapArray.from_arrays([0, 1, 2], pa.array(["a", "b"]), invalid_strings()),
}


@pytest.mark.parametrize("kind", KEPT)
def test_invalid_utf8_in_kept_columns_is_kept_counted_and_said(
    tmp_path: Path, tokenizer: str, kind: str
) -> None:
    table = pa.table({"text": ["a", "b"], "other": KEPT[kind], "number": [1, 2]})
    pq.write_table(table, tmp_path / "a.parquet")
    encode = ["encode", tmp_path / "a.parquet", "--tokenizer", tokenizer, "--output"]
    outcome = done(*encode, tmp_path / "out")
    assert "warning: 3 invalid UTF-8 sequences in kept columns are kept as they are" in outcome.err
    assert manifest(tmp_path / "out")["invalid"] == 3
    kept = pq.read_table(tmp_path / "out" / "a.parquet")["other"].combine_chunks()
    assert kept.cast(table["other"].type).equals(table["other"].combine_chunks())
    outcome = done(*encode, tmp_path / "without", "--keep-columns", "text,number")
    assert "invalid" not in outcome.err
