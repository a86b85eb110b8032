"""A job deletes only what it made, reads the whole of its input or fails, and takes no fault of
storage for bad data."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.io.columns import TextColumns
from pipelines.io.inputs import open_shard, read_texts, resolve
from pipelines.io.inputs import plan as plan_ranges
from wordpiece_core import storage
from wordpiece_core.errors import ChangedError, InputError, StorageError

from ..wordpiece_core.encrypted_files import write_encrypted
from .corpora import (
    ONE_WORKER,
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
from .faulty_store import Faults, install
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


@pytest.mark.parametrize("mine", ["x.txt", "words/part-00000.parquet", "job.json"])
def test_earlier_files_are_never_deleted(tmp_path: Path, corpus: Path, mine: str) -> None:
    file = tmp_path / "tok.work" / mine
    file.parent.mkdir(parents=True)
    file.write_text("precious")
    assert wordpiece("train", corpus, "--output", tmp_path / "tok", *SIZE).status == 1
    assert file.read_text() == "precious"
    assert not (tmp_path / "tok").exists()


@pytest.mark.parametrize("command", ["count", "train"])
def test_a_staging_directory_of_others_is_refused(
    tmp_path: Path, corpus: Path, command: str
) -> None:
    folder = "_staging/0123456789abcdef"
    file = tmp_path / "out" / folder / "part-00000.parquet"
    file.parent.mkdir(parents=True)
    file.write_text("precious")
    outcome = wordpiece(command, corpus, "--output", tmp_path / "out")
    assert outcome.status == 1
    assert f"{tmp_path}/out/_staging: contains " in outcome.fault
    assert files_below(tmp_path / "out") == {f"{folder}/part-00000.parquet": b"precious"}


def test_a_link_in_a_work_directory_is_not_followed(tmp_path: Path, corpus: Path) -> None:
    keeping = config(tmp_path, keep_work=True)
    done("train", corpus, "--output", tmp_path / "tok", *keeping, *SIZE)
    work = tmp_path / "tok.work"
    shutil.rmtree(work / "words")
    (work / "words").symlink_to(corpus)
    outcome = wordpiece("train", corpus, "--output", tmp_path / "tok", *SIZE)
    assert outcome.status == 1
    assert f"{work}: contains words, which does not belong to this job" in outcome.fault
    assert files_below(corpus).keys() == {"a.parquet"}


@pytest.mark.parametrize("place", ["error", "shard", "part"])
def test_names_in_manifests_lead_nowhere_else(
    tmp_path: Path, corpus: Path, tokenizer: str, place: str
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    for file in ("v", "v.bad", "v.json", "v.parquet"):
        (victim / file).write_text("precious")
    before = files_below(victim)
    name = "../../../victim/v"
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
    manifest_path(output).write_text(json.dumps(record))
    outcome = wordpiece(*call)
    assert outcome.status == 1
    assert outcome.fault.startswith(str(output))
    assert files_below(victim) == before


@pytest.mark.soak
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
    assert "tok: contains a tokenizer whose vocab.txt was changed after its training; set" in (
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


@pytest.mark.parametrize(
    ("ending", "change"),
    [(".txt", "truncated"), (".jsonl", "grown"), (".parquet", "written anew"), (".txt.gz", "gone")],
)
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
    with pytest.raises(ChangedError, match="since the job started; run the job again"):
        read_all(path, lambda: done_once or (done_once.append(1), midway()))


def test_a_file_of_another_time_is_read(tmp_path: Path, tokenizer: str) -> None:
    year = 13e9  # 2381, in nanoseconds more than 63 bits
    write_shard(tmp_path / "in" / "a.txt", TEXTS)
    os.utime(tmp_path / "in" / "a.txt", (year, year))
    done("count", tmp_path / "in", "--output", tmp_path / "words")
    assert manifest(tmp_path / "words")["rows"] == len(TEXTS)
    for follow in ([], ["--follow", "--poll", "0.1s", "--until-idle", "0s"]):
        shards = tmp_path / f"shards{len(follow)}"
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
    with pytest.raises(InputError, match=r"nothing\.txt: the link is broken"):
        resolve([str(source)])


def test_an_encrypted_column_is_named_and_the_other_shards_are_finished(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"text": TEXTS[:10], "id": range(10)})
    options: dict[str, Any] = {"plain_footer": True, "algorithm": "AES_GCM_V1"}
    write_shard(tmp_path / "in" / "good.parquet", TEXTS)
    write_encrypted(tmp_path / "in" / "e.parquet", table, ["text"], **options)
    monkeypatch.chdir(tmp_path)
    outcome = wordpiece("encode", "in", "--output", "out", "--tokenizer", tokenizer)
    assert outcome.status == 1
    assert f"{tmp_path}/in/e.parquet: column 'text' is encrypted" in outcome.err
    assert (tmp_path / "out" / "good.parquet").exists()

    write_encrypted(tmp_path / "in" / "e.parquet", table, ["id"], **options)
    kept = ["--keep-columns", "text", "--tokenizer", tokenizer]
    done("encode", tmp_path / "in", "--output", tmp_path / "other", *kept)


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Return the files of the store `faulty://`, which is `tmp_path`."""
    monkeypatch.setattr(storage, "STORES", {**storage.STORES})  # `install` changes both
    monkeypatch.setattr(storage, "DELAYS", storage.DELAYS)
    found = Faults()
    install(tmp_path, found)
    return found


@pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".jsonl.zst", ".parquet"])
def test_faults_of_storage_come_through_every_format_as_what_they_are(
    tmp_path: Path, faults: Faults, ending: str
) -> None:
    write_shard(tmp_path / "s" / f"a{ending}", TEXTS)
    (file,) = resolve([f"faulty://s/a{ending}"])
    faults.more = 10**9
    for call in (1, 2, 3):  # looking at the file, opening it, and reading it
        faults.first = next(faults.calls) + call
        with pytest.raises(StorageError, match=rf"a{ending}: cannot be rea.* \(\[Errno 5\] Input"):
            list(open_shard(file, TextColumns()).batches())


def test_a_fault_of_storage_is_tried_again_and_then_ends_the_job_with_nothing_skipped(
    tmp_path: Path, tokenizer: str, faults: Faults
) -> None:
    for name in "ab":
        write_shard(tmp_path / "s" / "in" / f"{name}.parquet", TEXTS)
    encode = ["encode", "faulty://s/in", "--tokenizer", tokenizer, "--on-error", "skip"]
    begin = next(faults.calls)
    done(*encode, "--output", "faulty://s/straight", *ONE_WORKER)
    half = (next(faults.calls) - begin) // 2
    for output, more, status in (("flaky", 2, 0), ("broken", 10**9, 1), ("broken", 0, 0)):
        faults.first, faults.more = next(faults.calls) + (half if more else 10**9), more
        outcome = wordpiece(*encode, "--output", f"faulty://s/{output}", *ONE_WORKER)
        assert outcome.status == status, outcome
        assert status == 0 or "(Input/output error" in outcome.fault or "Errno 5" in outcome.fault
    made = [files_below(tmp_path / "s" / name) for name in ("straight", "flaky", "broken")]
    assert made[0].keys() >= {"a.parquet", "b.parquet"}
    for files in made:
        del files[".run.json"]
    assert made[0] == made[1] == made[2]


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


def test_with_smoothing_words_match_the_text_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    groups = ["en"] * 50 + ["de"] * 10
    pq.write_table(pa.table({"text": TEXTS, "language": groups}), path)
    smooth = ["--group-column", "language", "--smoothing-exponent", "0.5"]
    outcome = done("train", path, "--output", tmp_path / "tok", *SIZE, *smooth)
    plain = done("train", path, "--output", tmp_path / "plain", *SIZE)
    words = [line for line in outcome.out.splitlines() if line.startswith("words: ")]
    assert words == [line for line in plain.out.splitlines() if line.startswith("words: ")]
    assert "tokens per pre-token (smoothed counts): " in outcome.out
    records = [
        json.loads((tmp_path / name / "training.json").read_text()) for name in ("tok", "plain")
    ]
    assert records[0]["corpus"] == records[1]["corpus"]


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
def test_invalid_utf8_in_kept_columns_is_kept_and_counted(
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
