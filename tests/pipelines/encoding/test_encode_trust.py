"""A job that can be trusted: bad shards, damaged outputs, kills at any moment."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.encoding.dataset import UNFINISHED
from wordpiece_core.limits import Limits

from ..corpora import (
    Outcome,
    done,
    english,
    files_below,
    manifest,
    train_tokenizer,
    wordpiece,
    write_shard,
    write_shards,
)
from ..stopping import stopped_before
from ..test_bad_input import corrupt_page, truncated

TEXTS = english(200)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), TEXTS, "--vocab-size", "200")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Four shards of Parquet."""
    return Path(write_shards(tmp_path / "in", TEXTS, 4, ".parquet"))


@pytest.fixture
def encode(tmp_path: Path, tokenizer: str, source: Path) -> Callable[..., Outcome]:
    """Runs the job on the shards, into `out`."""
    args = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    return lambda *more: wordpiece(*args, *more)


def without_text(path: Path) -> None:
    pq.write_table(pa.table({"body": ["x"]}), path)


def no_json(path: Path) -> None:
    path.write_text('{"text": "a"}\n{\n')


def identities(directory: Path) -> dict[str, tuple[int, int]]:
    """Return the inode and the modification time of each shard."""
    paths = [path for path in directory.rglob("*.parquet") if path.name != UNFINISHED]
    stats = {path: path.stat() for path in paths}
    return {
        str(path.relative_to(directory)): (stat.st_ino, stat.st_mtime_ns)
        for path, stat in stats.items()
    }


BAD = {
    "no text column": ("001.parquet", without_text, "no column 'text'", None),
    "corrupt row group": ("001.parquet", corrupt_page, "row group 1: cannot be read", 1),
    "not JSON": ("sub/bad.jsonl", no_json, "the line at byte 14 cannot be read", None),
}


# --- Shards that cannot be read -------------------------------------------------------------------


@pytest.mark.parametrize(("name", "spoil", "reason", "row_group"), BAD.values(), ids=BAD)
def test_a_bad_shard_is_named_or_skipped_and_stops_no_other(
    tmp_path: Path,
    source: Path,
    encode: Callable[..., Outcome],
    name: str,
    spoil: Callable[[Path], None],
    reason: str,
    row_group: int | None,
) -> None:
    output = tmp_path / "out"
    (source / name).parent.mkdir(exist_ok=True)
    spoil(source / name)
    outcome = encode()
    assert outcome.status == 1
    assert outcome.fault.startswith(f"{source / name}")
    assert reason in outcome.fault
    others = identities(output)
    assert len(others) == (4 if "sub" in name else 3)
    assert not (output / ".manifest.json").exists()

    outcome = encode("--on-error", "skip")
    assert f"warning: skipped: {source / name}" in outcome.lines[-1]
    (listed,) = manifest(output)["errors"]
    assert (listed["input"], listed["row_group"]) == (name, row_group)
    assert reason in listed["message"]
    assert not (output / ".shards").exists()

    write_shard(source / name, ["fixed"])
    assert encode().status == 0
    after = identities(output)
    assert {name: after[name] for name in others} == others
    assert len(after) == len(others) + 1


def test_if_no_shard_can_be_read_all_are_named_or_skipped(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome]
) -> None:
    for path in source.iterdir():
        truncated(path)
    outcome = encode()
    assert outcome.status == 1
    assert all(f"error: {path}" in outcome.err for path in source.iterdir())
    assert not (tmp_path / "out").exists()
    assert encode("--on-error", "skip").status == 0
    assert len(manifest(tmp_path / "out")["errors"]) == 4
    assert manifest(tmp_path / "out")["shards"] == []


@pytest.mark.parametrize("option", ["--text-column", "--keep-columns"])
def test_options_that_fit_no_file_are_a_wrong_call(
    tmp_path: Path, encode: Callable[..., Outcome], option: str
) -> None:
    outcome = encode(option, "body", "--on-error", "skip")
    assert outcome.status == 1
    assert "no column 'body'" in outcome.err
    assert option in outcome.err or "it has 'id', 'text'" in outcome.err
    assert not (tmp_path / "out" / ".manifest.json").exists()


def test_files_of_others_stay(tmp_path: Path, source: Path, encode: Callable[..., Outcome]) -> None:
    output = tmp_path / "out"
    for name in (".shards/manifest.json", "mine.parquet"):
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text("precious")
        folder, _, file = name.rpartition("/")
        assert f"{output / folder if folder else output}: contains {file}, " in encode().fault
        assert (output / name).read_text() == "precious"
        shutil.rmtree(output)
    assert encode().status == 0
    (output / "c.parquet").write_text("precious")
    write_shard(source / "c.parquet", ["to be written where a file of others is"])
    outcome = encode()
    assert outcome.status == 2
    assert f"{source}/c.parquet: {output} contains c.parquet" in outcome.fault
    assert (output / "c.parquet").read_text() == "precious"


def test_records_may_be_in_many_files(tmp_path: Path, tokenizer: str) -> None:
    write_shards(tmp_path / "in", english(60), 40, ".txt")
    args = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output"]
    done(*args, tmp_path / "usual")
    limits = Limits(records_per_file=10, waiting_shards=3)
    assert "shards: 40\n" in done(*args, tmp_path / "out", limits=limits).out
    assert files_below(tmp_path / "out") == files_below(tmp_path / "usual")


def test_skipped_inputs_are_tried_again(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    for name in ("000.parquet", "002.parquet"):
        corrupt_page(source / name)
    assert encode("--on-error", "skip").status == 0
    first = files_below(tmp_path / "out")
    assert encode("--on-error", "skip").status == 0
    assert files_below(tmp_path / "out") == first

    write_shard(source / "000.parquet", ["fixed"])
    assert encode("--on-error", "skip").status == 0
    assert [bad["name"] for bad in manifest(tmp_path / "out")["errors"]] == ["002.parquet"]
    assert encode().status == 1
    assert encode("--on-error", "skip").status == 0

    write_shard(source / "002.parquet", ["fixed too"])
    assert encode().status == 0
    args = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "straight"]
    done(*args)
    assert files_below(tmp_path / "out") == files_below(tmp_path / "straight")


def test_errors_of_inputs_not_given_now_stay(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    corrupt_page(source / "001.parquet")
    assert encode("--on-error", "skip").status == 0
    before = files_below(tmp_path / "out")
    good = [source / "000.parquet", "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    done("encode", *good)
    assert files_below(tmp_path / "out") == before


def test_a_full_disk_stops_everything_at_once(
    tmp_path: Path, encode: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    outcome = encode("--on-error", "skip", "--", "--direct_num_workers=1")
    assert outcome.status == 1
    assert "cannot be written ([Errno 28] No space left on device)" in outcome.fault
    assert not identities(tmp_path / "out")


def test_no_shard_stays_of_an_input_that_went_bad_and_then_away(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome]
) -> None:
    output = tmp_path / "out"
    assert encode().status == 0
    corrupt_page(source / "001.parquet")
    assert encode("--on-error", "skip").status == 0
    (source / "001.parquet").unlink()
    assert encode().status == 0
    listed = {shard["name"] for shard in manifest(output)["shards"]}
    assert listed == {"000.parquet", "002.parquet", "003.parquet"} == identities(output).keys()


def test_a_file_that_changes_while_the_job_runs_is_no_bad_one(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    args = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    with stopped_before(1, r"written .*/plan-", *args, "--on-error", "skip") as go_on:
        write_shard(source / "001.parquet", ["changed"])
        status, said = go_on()
    assert status == 1
    changed = f"{source}/001.parquet: the file has changed since the job started; run the job again"
    assert changed in said.splitlines()[-1]
    assert len(identities(tmp_path / "out")) == 3
    assert encode("--on-error", "skip").status == 0
    assert manifest(tmp_path / "out")["errors"] == []


def test_a_changed_shard_whose_input_is_gone_is_named_and_stays(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome]
) -> None:
    shard = tmp_path / "out" / "001.parquet"
    assert encode().status == 0
    (source / "001.parquet").unlink()
    pq.write_table(pq.read_table(shard), shard, compression="none")
    changed = shard.read_bytes()
    outcome = encode()
    assert outcome.status == 1
    assert outcome.fault == (
        f"{shard}: was modified; delete it, or pass {source}/001.parquet again"
    )
    assert shard.read_bytes() == changed
    shard.unlink()
    assert encode().status == 0
    assert len(manifest(tmp_path / "out")["shards"]) == 3


def test_names_of_any_length_and_script_are_noted(tmp_path: Path, tokenizer: str) -> None:
    names = ["日" * 80, "x" * 246, "deep/" * 60 + "y", "a b%20#?"]
    for name in names:
        write_shard(tmp_path / "in" / f"{name}.parquet", ["a text"])
    corrupt_page(tmp_path / "in" / f"{names[0]}.parquet")
    args = ["--tokenizer", tokenizer, "--output", tmp_path / "out", "--on-error", "skip"]
    done("encode", tmp_path / "in", *args)
    assert identities(tmp_path / "out").keys() == {f"{name}.parquet" for name in names[1:]}
    assert "(3 finished before)" in done("encode", tmp_path / "in", *args).out


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: {**found, "errors": {}},
        lambda found: {**found, "shards": [{**found["shards"][0], "rows": "7"}]},
    ],
)
def test_a_damaged_manifest_is_named(
    tmp_path: Path, encode: Callable[..., Outcome], damage: Callable[[Any], Any]
) -> None:
    assert encode().status == 0
    path = tmp_path / "out" / ".manifest.json"
    path.write_text(json.dumps(damage(json.loads(path.read_text()))))
    before = files_below(tmp_path / "out")
    outcome = encode()
    assert outcome.status == 1
    assert outcome.fault.startswith(f"{path}: not as this program writes it; ")
    assert files_below(tmp_path / "out") == before


def test_a_manifest_of_another_version_is_refused(
    tmp_path: Path, encode: Callable[..., Outcome]
) -> None:
    assert encode().status == 0
    path = tmp_path / "out" / ".manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    assert encode().status == 2
    assert "contains shards of another version of wordpiece-beam" in encode().fault


@pytest.mark.parametrize("layout", [(), ("--format", "megatron"), ("--shuffle", "1")])
def test_a_run_that_finished_no_shard_does_not_bind_the_next_one(
    layout: tuple[str, ...], tokenizer: str, tmp_path: Path
) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out"
    source.write_text('{"body": "some text"}\n{"body": "more"}\n')
    command = ("encode", source, "--tokenizer", tokenizer, "--output", output, *layout)
    assert wordpiece(*command).status == 1  # there is no key text
    done(*command, "--text-column", "body")
    again = tmp_path / "again"
    done(*command[:4], "--output", again, *layout, "--text-column", "body")
    names = sorted(path.name for path in output.iterdir() if not path.name.startswith("."))
    assert names == sorted(path.name for path in again.iterdir() if path.name[0] != ".")
    assert [(output / n).read_bytes() for n in names] == [(again / n).read_bytes() for n in names]
