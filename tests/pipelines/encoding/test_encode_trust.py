"""A job that can be trusted: bad shards, damaged outputs, kills at any moment, dry runs."""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import wordpiece_core as wp
from pipelines.encoding.directory import state
from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.shards import Journal, NewShard, finish_shards
from pipelines.encoding.directory.state import read_contents
from pipelines.encoding.directory.status import ShardResult
from pipelines.files import inputs, storage
from pipelines.files.lease import Lease, one_run
from pipelines.files.outputs import NewFile
from wordpiece_core.errors import StorageError

from ..corpora import (
    ONE_WORKER,
    Outcome,
    done,
    english,
    files_below,
    manifest,
    process,
    train_tokenizer,
    wordpiece,
    write_shard,
    write_shards,
)
from ..faulty_store import Faults, install
from ..stopping import HANGS, killing_a_worker
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
    """Which file each shard is, and when it was written."""
    stats = {path: path.stat() for path in directory.rglob("*.parquet")}
    return {
        str(path.relative_to(directory)): (stat.st_ino, stat.st_mtime_ns)
        for path, stat in stats.items()
    }


BAD = {
    "truncated footer": ("001.parquet", truncated, "cannot be read", None),
    "no text column": ("001.parquet", without_text, "no column 'text'", None),
    "corrupt row group": ("001.parquet", corrupt_page, "row group 1: cannot be read", 1),
    "empty file": ("001.parquet", lambda path: path.write_bytes(b""), "cannot be read", None),
    "not JSON": ("sub/bad.jsonl", no_json, "line 2: not JSON", None),
}
bad_shards = pytest.mark.parametrize(
    ("name", "spoil", "reason", "row_group"), BAD.values(), ids=BAD
)


# --- Shards that cannot be read -------------------------------------------------------------------


@bad_shards
def test_a_bad_shard_stops_no_other_and_is_named(
    tmp_path: Path,
    source: Path,
    encode: Callable[..., Outcome],
    name: str,
    spoil: Callable[[Path], None],
    reason: str,
    row_group: int | None,
) -> None:
    (source / name).parent.mkdir(exist_ok=True)
    spoil(source / name)
    outcome = encode()
    assert outcome.status == 1
    assert outcome.fault.startswith(f"{source / name}")
    assert reason in outcome.fault
    total = 5 if "sub" in name else 4
    assert outcome.fault.endswith(f" (1 of {total} shards; a rerun keeps the others)")
    others = identities(tmp_path / "out")
    assert len(others) == total - 1
    assert not (tmp_path / "out" / ".manifest.json").exists()

    write_shard(source / name, ["fixed"])
    outcome = encode()
    assert f"shards: {total} ({total - 1} finished before)" in outcome.out
    after = identities(tmp_path / "out")
    assert {name: after[name] for name in others} == others
    assert len(after) == total


def test_more_than_one_bad_shard_are_all_named(
    source: Path, encode: Callable[..., Outcome]
) -> None:
    corrupt_page(source / "000.parquet")
    truncated(source / "002.parquet")
    outcome = encode()
    lines = [line.removeprefix("wordpiece: ") for line in outcome.lines[1:]]
    assert outcome.status == 1
    assert lines[0].startswith(f"error: {source / '000.parquet'} row group 1: cannot be read (")
    assert lines[1].startswith(f"error: {source / '002.parquet'}: cannot be read (")
    bad = f"{source / '000.parquet'}, {source / '002.parquet'}"
    assert lines[2] == f"2 of 4 shards cannot be encoded: {bad}; a rerun keeps the others"
    assert len(lines) == 3


@bad_shards
def test_quarantine_keeps_the_bytes_and_the_reason(
    tmp_path: Path,
    source: Path,
    encode: Callable[..., Outcome],
    name: str,
    spoil: Callable[[Path], None],
    reason: str,
    row_group: int | None,
) -> None:
    (source / name).parent.mkdir(exist_ok=True)
    spoil(source / name)
    outcome = encode("--on-error", "quarantine")
    assert outcome.status == 0
    warning = outcome.lines[-1]
    assert warning.startswith(f"wordpiece: warning: in quarantine: {source / name}")
    errors = tmp_path / "out" / "_errors" / "__shards__"
    assert (errors / f"{name}.bad").read_bytes() == (source / name).read_bytes()
    note = json.loads((errors / f"{name}.json").read_text())
    assert reason in note.pop("message")
    assert note == {"input": name, "row_group": row_group, "copied": True}
    (listed,) = manifest(tmp_path / "out")["errors"]
    assert (listed["input"], listed["row_group"]) == (name, row_group)
    assert len(manifest(tmp_path / "out")["shards"]) == (4 if "sub" in name else 3)
    assert not (tmp_path / "out" / "_shards").exists()


def test_what_is_in_quarantine_is_tried_again(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    for name in ("000.parquet", "002.parquet"):
        corrupt_page(source / name)
    assert encode("--on-error", "quarantine").status == 0
    first = files_below(tmp_path / "out")
    assert encode("--on-error", "quarantine").status == 0
    assert files_below(tmp_path / "out") == first

    write_shard(source / "000.parquet", ["fixed"])
    assert encode("--on-error", "quarantine").status == 0
    names = files_below(tmp_path / "out" / "_errors").keys()
    bad = {"__shards__/002.parquet.bad", "__shards__/002.parquet.json"}
    assert names == {".wordpiece.json", *bad}
    assert encode().status == 1
    assert encode("--on-error", "quarantine").status == 0

    write_shard(source / "002.parquet", ["fixed too"])
    assert encode().status == 0
    args = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "straight"]
    done(*args)
    assert files_below(tmp_path / "out") == files_below(tmp_path / "straight")


def test_a_shard_that_was_good_before_does_not_stay_beside_its_error(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome]
) -> None:
    assert encode().status == 0
    corrupt_page(source / "001.parquet")
    assert encode("--on-error", "quarantine").status == 0
    assert not (tmp_path / "out" / "001.parquet").exists()
    assert len(manifest(tmp_path / "out")["shards"]) == 3


def test_errors_of_inputs_not_given_now_stay(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    corrupt_page(source / "001.parquet")
    assert encode("--on-error", "quarantine").status == 0
    before = files_below(tmp_path / "out")
    good = [source / "000.parquet", "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    done("encode", *good)
    assert files_below(tmp_path / "out") == before


@pytest.mark.parametrize("mode", ["fail", "quarantine"])
def test_options_that_fit_no_file_are_a_wrong_call(
    tmp_path: Path, encode: Callable[..., Outcome], mode: str
) -> None:
    outcome = encode("--text-column", "body", "--on-error", mode)
    assert outcome.status == 1
    assert "4 of 4 shards cannot be encoded" in outcome.err
    assert "no column 'body'; it has 'id', 'text' (choose with --text-column)" in outcome.err
    assert not (tmp_path / "out").exists()
    outcome = encode("--keep-columns", "x", "--on-error", mode)
    assert outcome.status == 1
    assert "no column 'x' to keep" in outcome.err
    assert not (tmp_path / "out" / ".manifest.json").exists()


def test_when_no_shard_can_be_read_quarantine_holds_them_all(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome]
) -> None:
    for path in source.iterdir():
        truncated(path)
    assert encode().status == 1
    assert not (tmp_path / "out").exists()
    assert encode("--on-error", "quarantine").status == 0
    assert len(manifest(tmp_path / "out")["errors"]) == 4
    assert manifest(tmp_path / "out")["shards"] == []


def test_a_full_disk_stops_everything_at_once(
    tmp_path: Path, encode: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    outcome = encode("--on-error", "quarantine", "--", "--direct_num_workers=1")
    assert outcome.status == 1
    assert "cannot be written ([Errno 28] No space left on device)" in outcome.fault
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_a_damaged_output_is_made_again(tmp_path: Path, encode: Callable[..., Outcome]) -> None:
    output = tmp_path / "out"
    assert encode().status == 0
    whole, before = files_below(output), identities(output)
    (output / "000.parquet").unlink()
    data = (output / "002.parquet").read_bytes()
    (output / "002.parquet").write_bytes(data[:-1])
    outcome = encode()
    assert "shards: 4 (2 finished before)" in outcome.out
    assert files_below(output) == whole
    after = identities(output)
    assert {name for name in after if after[name] == before[name]} == {"001.parquet", "003.parquet"}


@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_no_shard_stays_of_an_input_that_went_bad_and_then_away(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome], on_error: str
) -> None:
    output = tmp_path / "out"
    assert encode().status == 0
    corrupt_page(source / "001.parquet")
    assert encode("--on-error", on_error).status == (1 if on_error == "fail" else 0)
    (source / "001.parquet").unlink()
    assert encode().status == 0
    listed = {shard["name"] for shard in manifest(output)["shards"]}
    assert listed == {"000.parquet", "002.parquet", "003.parquet"} == identities(output).keys()


def test_no_shard_stays_of_an_input_that_changed_and_then_went_away(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    output = tmp_path / "out"
    for step in (
        "encode_step.run_step",
        "plan.EncodePlan.bad_shards",
    ):  # before any shard is made, and after
        assert encode().status == 0
        write_shard(source / "001.parquet", ["changed"] * len(step))
        with monkeypatch.context() as patch:
            patch.setattr(f"pipelines.encoding.{step}", killed)
            assert encode().status == 130
        (source / "001.parquet").unlink()
        assert encode().status == 0
        if "run_step" in step:
            assert "001.parquet" not in identities(output)
        listed = {shard["name"] for shard in manifest(output)["shards"]}
        assert listed == identities(output).keys()
        write_shard(source / "001.parquet", ["back"])


def test_a_file_has_one_shard_in_a_directory(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    assert encode().status == 0
    before = files_below(tmp_path / "out")
    outcome = wordpiece(
        *["encode", tmp_path / "*" / "000.parquet", "--tokenizer", tokenizer],
        *["--output", tmp_path / "out"],
    )
    assert outcome.status == 2
    assert outcome.fault == (
        f"{source}/000.parquet: {tmp_path}/out holds a shard 000.parquet of it;"
        " give another directory"
    )
    assert files_below(tmp_path / "out") == before


def test_a_file_that_changes_while_the_job_runs_is_no_bad_one(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = state.begin

    def change(*args: Any) -> Any:
        write_shard(source / "001.parquet", ["changed"])
        return begin(*args)

    with monkeypatch.context() as patch:
        patch.setattr(state, "begin", change)
        outcome = encode("--on-error", "quarantine")
    assert outcome.status == 1
    assert outcome.fault.startswith(
        f"{source}/001.parquet: it has changed since the job began; run the job again"
    )
    assert len(identities(tmp_path / "out")) == 3
    assert encode("--on-error", "quarantine").status == 0
    assert manifest(tmp_path / "out")["errors"] == []


def test_files_of_others_stay(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    output = tmp_path / "out"
    corrupt_page(source / "001.parquet")
    for begun in (False, True):
        for name in ("_shards/manifest.json", "_errors/mine.txt", "mine.parquet"):
            if begun:
                assert encode("--on-error", "quarantine").status == 0
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).write_text("precious")
            if begun and name == "mine.parquet":
                continue
            outcome = encode()
            assert outcome.status in (1, 2)
            folder, _, file = name.rpartition("/")
            assert f"{output / folder if folder else output}: holds {file}, " in outcome.fault
            assert (output / name).read_text() == "precious"
            shutil.rmtree(output)

    assert encode("--on-error", "quarantine").status == 0
    (output / "c.parquet").write_text("precious")
    write_shard(source / "001.parquet", ["fixed"])
    assert encode().status == 0
    assert not (output / "_errors" / "__shards__" / "001.parquet.bad").exists()

    write_shard(source / "c.parquet", ["to be written where a file of others is"])
    outcome = encode()
    assert outcome.status == 2
    assert outcome.fault == (
        f"{source}/c.parquet: {output} holds c.parquet, which is no shard of this job;"
        " give another directory"
    )
    assert (output / "c.parquet").read_text() == "precious"


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
        f"{shard}: has been changed; delete it, or give {source}/001.parquet again"
    )
    assert shard.read_bytes() == changed
    shard.unlink()
    assert encode().status == 0
    assert len(manifest(tmp_path / "out")["shards"]) == 3


def test_what_is_in_quarantine_is_not_replaced_by_a_namesake(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    corrupt_page(source / "001.parquet")
    assert encode("--on-error", "quarantine").status == 0
    before = files_below(tmp_path / "out")
    write_shard(tmp_path / "other" / "001.parquet", ["a namesake"])
    args = ["--tokenizer", tokenizer, "--output", tmp_path / "out"]
    outcome = wordpiece("encode", tmp_path / "other", *args)
    assert outcome.status == 2
    assert f"holds a shard 001.parquet of {source}/001.parquet; give another" in outcome.fault
    assert files_below(tmp_path / "out") == before


def test_names_of_any_length_and_script_are_noted(tmp_path: Path, tokenizer: str) -> None:
    names = ["日" * 80, "x" * 246, "deep/" * 60 + "y", "a b%20#?"]
    for name in names:
        write_shard(tmp_path / "in" / f"{name}.parquet", ["a text"])
    corrupt_page(tmp_path / "in" / f"{names[0]}.parquet")
    args = ["--tokenizer", tokenizer, "--output", tmp_path / "out", "--on-error", "quarantine"]
    done("encode", tmp_path / "in", *args)
    assert identities(tmp_path / "out").keys() == {f"{name}.parquet" for name in names[1:]}
    assert "(3 finished before)" in done("encode", tmp_path / "in", *args).out


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: [found],
        lambda found: {**found, "shards": 1},
        lambda found: {**found, "errors": {}},
        lambda found: {**found, "shards": [{}]},
        lambda found: {**found, "shards": [{**found["shards"][0], "new": 1}]},
        lambda found: {**found, "shards": [{**found["shards"][0], "rows": "7"}]},
        lambda found: {**found, "shards": ["000.parquet"]},
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
    assert "holds shards of another version of this program" in encode().fault


def directory_of(output: str, tok: wp.Tokenizer) -> EncodedDirectory:
    return EncodedDirectory(output, {"tokenizer": tok.digest, "options": {}})


def begun(output: str, tok: wp.Tokenizer) -> EncodedDirectory:
    """A run that is to encode `a.parquet`."""
    run = directory_of(output, tok)
    state.begin(run, read_contents(run), tok, {"a.parquet": "in"})
    return run


def written(run: EncodedDirectory, data: bytes = b"a shard") -> NewShard:
    """`a.parquet`, which has no name yet."""

    file = NewFile(run.place("a.parquet"), run.work.path)
    file.write(data)
    source = {"bytes": 1, "modified": 1}
    return NewShard(ShardResult("a.parquet", "a.txt", source, output_bytes=len(data)), file)


def test_of_two_runs_that_no_lock_keeps_apart_the_first_records_nothing_more(
    tmp_path: Path, tokenizer: str
) -> None:
    tok, output = wp.Tokenizer.load(tokenizer), str(tmp_path / "out")
    first = begun(output, tok)
    shard = written(first)
    begun(output, tok)
    with pytest.raises(wp.OutputError, match="another run has begun there; wait for it to end"):
        finish_shards(first, [shard], (), Journal())
    assert not (tmp_path / "out" / "a.parquet").exists()


def test_a_run_whose_directory_another_has_changed_since_it_looked_does_nothing(
    tmp_path: Path, tokenizer: str
) -> None:
    tok, output = wp.Tokenizer.load(tokenizer), str(tmp_path / "out")
    late = directory_of(output, tok)
    found = read_contents(late)
    first = begun(output, tok)
    finish_shards(first, [written(first)], (), Journal())
    with pytest.raises(wp.OutputError, match="another run has just written there"):
        state.begin(late, found, tok, {"a.parquet": "in"})
    assert list(read_contents(late).finished) == ["a.parquet"]


def test_a_worker_of_an_earlier_run_that_looked_before_this_one_began_renames_nothing(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok, output = wp.Tokenizer.load(tokenizer), str(tmp_path / "out")
    first = begun(output, tok)
    look = Lease.check

    def then_another_begins(lease: Lease) -> None:
        look(lease)
        monkeypatch.setattr(Lease, "check", look)
        second.append(begun(output, tok))

    second: list[EncodedDirectory] = []
    shard = written(first, b"of the earlier run")
    monkeypatch.setattr(Lease, "check", then_another_begins)
    with pytest.raises(StorageError, match="cannot be written"):
        finish_shards(first, [shard], (), Journal())
    assert not (tmp_path / "out" / "a.parquet").exists()
    finish_shards(second[0], [written(second[0])], (), Journal())
    assert (tmp_path / "out" / "a.parquet").read_bytes() == b"a shard"
    assert list(read_contents(second[0]).finished) == ["a.parquet"]


def test_a_shard_of_an_earlier_run_that_appears_late_is_of_the_job(
    tmp_path: Path, tokenizer: str, store_that_closes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok, output = wp.Tokenizer.load(tokenizer), f"{store_that_closes}/out"
    first = begun(output, tok)
    second = begun(output, tok)
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "check", lambda _: None)  # it looked before
        finish_shards(first, [written(first, b"late")], (), Journal())
    finish_shards(second, [written(second)], (), Journal())
    assert list(read_contents(second).finished) == ["a.parquet"]

    third = begun(output, tok)
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "check", lambda _: None)
        finish_shards(second, [written(second, b"late")], (), Journal())
    assert list(read_contents(third).finished) == ["a.parquet"]
    assert list(read_contents(begun(output, tok)).results) == []


def test_a_file_of_others_that_appears_while_the_job_runs_is_not_replaced(
    tmp_path: Path, tokenizer: str
) -> None:
    run = begun(str(tmp_path / "out"), wp.Tokenizer.load(tokenizer))
    shard = tmp_path / "out" / "a.parquet"
    shard.write_text("precious")
    with pytest.raises(wp.OutputError, match="was not there when the job began; move or delete it"):
        finish_shards(run, [written(run)], (), Journal())
    assert shard.read_text() == "precious"


def test_plans_and_journals_of_many_shards_are_a_few_files(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path / "in", english(60), 40, ".txt")
    args = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output"]
    done(*args, tmp_path / "usual")
    monkeypatch.setattr("pipelines.running.plan.LINES_AT_ONCE", 7)
    monkeypatch.setattr("pipelines.running.plan.MOST_PLACES", 6)
    monkeypatch.setattr("pipelines.encoding.directory.shards.JOURNAL_LINES", 10)
    monkeypatch.setattr("pipelines.encoding.encode_step.WAITING_SHARDS", 3)
    monkeypatch.setattr("pipelines.encoding.encode.SAMPLE", 4)
    monkeypatch.setattr("pipelines.encoding.encode.quarantine", lambda *_: sys.exit(9))
    assert wordpiece(*args, tmp_path / "out", *ONE_WORKER).status == 9
    names = [path.name for path in (tmp_path / "out" / "_shards").iterdir()]
    assert sum(name.startswith("plan-") for name in names) == 1
    assert len(names) == 3 + 1 + 4  # the marker, state, tokenizer; the plan; 12 shards at most each
    monkeypatch.undo()
    assert "shards: 40 (40 finished before)" in done(*args, tmp_path / "out").out
    assert files_below(tmp_path / "out") == files_below(tmp_path / "usual")


@pytest.mark.parametrize("place", ["store", "store?region=x", "store_that_closes?region=x"])
def test_stores_have_the_bytes_of_a_local_run(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    source: Path,
    tokenizer: str,
    encode: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    corrupt_page(source / "001.parquet")
    assert encode("--on-error", "quarantine").status == 0
    kind, *query = place.partition("?")
    store = request.getfixturevalue(kind)
    places = [f"{store}/{name}{''.join(query)}" for name in ("in", "far")]
    args = ["encode", places[0], "--tokenizer", tokenizer, "--output", places[1]]
    args += ["--on-error", "quarantine"]
    monkeypatch.setattr("pipelines.files.outputs.MEMORY_BYTES", 1000)  # most files are larger
    assert "shards: 3\n" in done(*args).out
    assert "shards: 3 (3 finished before)" in done(*args).out
    local = files_below(tmp_path / "out")
    far = files_below(tmp_path / "far")
    assert far.pop(".run.json") != local.pop(".run.json")
    for files in (far, local):  # stores give times in seconds
        files[".manifest.json"] = re.sub(rb'"modified": \d+', b"", files[".manifest.json"])
    assert far == local


def test_a_rerun_with_nothing_to_do_makes_no_more_calls_for_more_shards(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fs, "FileSystem", fs.FileSystem)  # `install` replaces both
    monkeypatch.setattr(storage, "DELAYS", storage.DELAYS)
    calls = []
    for shards in (3, 30):
        root, faults = tmp_path / str(shards), Faults()
        write_shards(root / "store" / "in", english(60), shards, ".txt")
        install(root, faults)
        args = ["--tokenizer", tokenizer, "--output", "faulty://store/out"]
        done("encode", "faulty://store/in", *args)
        before = next(faults.calls)
        assert f"({shards} finished before)" in done("encode", "faulty://store/in", *args).out
        calls.append(next(faults.calls) - before)
    assert calls[0] == calls[1] < 15


# --- Kills ----------------------------------------------------------------------------------------


def test_a_worker_process_that_is_killed_ends_the_job(tmp_path: Path, tokenizer: str) -> None:
    for i in range(6):
        write_shard(tmp_path / "in" / f"{i}.parquet", english(30))
    args = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output"]
    beam = ["--", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    output = tmp_path / "killed"
    environment = killing_a_worker(
        tmp_path / "site", r"written .*/_shards/[0-9a-f]+-[0-9a-f]+\.jsonl"
    )
    outcome = process(*args, output, *beam, env=environment, timeout=HANGS)
    assert outcome.fault.startswith("a worker process ended before its work")
    assert outcome.status == 1
    done(*args, output)
    done(*args, tmp_path / "straight")
    assert files_below(output) == files_below(tmp_path / "straight")


def test_two_runs_do_not_write_to_one_directory(
    tmp_path: Path, source: Path, encode: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    with one_run(str(output)):
        outcome = encode()
        assert outcome.fault == (
            f"{output}: another run is writing there; wait for it, or give another directory"
        )
        assert outcome.status == 1
        assert not list(output.iterdir())
        assert encode("--dry-run").status == 0
    assert encode().status == 0
    whole = files_below(output)

    # One that begins while another one plans.
    measure = inputs.measure
    write_shard(source / "000.parquet", ["changed"])
    ran: list[Outcome] = []

    def slow(*args: Any) -> Any:
        monkeypatch.setattr(inputs, "measure", measure)
        ran.append(encode())
        return measure(*args)

    monkeypatch.setattr(inputs, "measure", slow)
    outcome = encode()
    assert [other.status for other in ran] == [1]  # the first one has the lock
    assert outcome.status == 0
    assert files_below(output).keys() == whole.keys()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_leaves_no_trace(
    tmp_path: Path, tokenizer: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = write_shard(tmp_path / "shard.parquet", english(500), rows_per_group=400)
    monkeypatch.setattr("pipelines.encoding.pieces.PIECE_SIZE", 1000)
    args = ["encode", shard, "--tokenizer", tokenizer, "--columns", "attention_mask,num_tokens"]
    done(*args, "--output", tmp_path / "usual")
    monkeypatch.setattr("pipelines.encoding.encode_step.local_cores", lambda: threads)
    done(*args, "--output", tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "usual")


# --- Dry runs -------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_run_and_touches_nothing(
    tmp_path: Path, source: Path, tokenizer: str, encode: Callable[..., Outcome]
) -> None:
    outcome = encode("--dry-run")
    assert outcome.status == 0
    assert not (tmp_path / "out").exists()
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"{source / '000.parquet'} -> 000.parquet: to encode, ")
    assert lines[4].startswith("options: text_column=text, ")
    assert lines[6].startswith("to encode: 4 of 4 shards, 0.0 MB")

    assert encode().status == 0
    digest = manifest(tmp_path / "out")["tokenizer"]
    truncated(source / "001.parquet")
    write_shard(source / "002.parquet", ["changed"])
    before = files_below(tmp_path / "out")
    lines = encode("--dry-run").out.splitlines()
    assert ": finished, kept, " in lines[0]
    assert "001.parquet: cannot be read (" in lines[1]
    assert lines[2].endswith("002.parquet: to encode, 1 rows, 0.0 MB of text")
    assert lines[5] == f"tokenizer: {digest}"
    assert lines[6] == "to encode: 1 of 4 shards, 0.0 MB, 1 cannot be read"
    assert files_below(tmp_path / "out") == before
    assert encode("--dry-run", "--text-column", "x").status == 2
    fresh = ["--output", tmp_path / "fresh", "--dry-run"]
    lines = encode(*fresh, "--keep-columns", "id,x").out.splitlines()
    assert lines[0].endswith("000.parquet: no column 'x' to keep; it has 'id', 'text'")
    assert lines[-2] == "to encode: 0 of 4 shards, 0.0 MB, 4 cannot be read"


# --- Loading --------------------------------------------------------------------------------------


def loaded(tmp_path: Path, *args: Any, **options: Any) -> datasets.Dataset:
    cache = str(tmp_path / f"cache-{random.random()}")
    return datasets.load_dataset(*args, split="train", cache_dir=cache, **options)


def test_datasets_loads_the_directory_whatever_is_in_quarantine(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    source, output = tmp_path / "in", tmp_path / "out"
    write_shard(source / "a.parquet", TEXTS[:5])
    write_shard(source / "sub" / "b.parquet", TEXTS[5:9])
    for name in ("1.parquet", "2.parquet", "sub/3.jsonl", "sub/4.jsonl", "5.jsonl"):
        (truncated if "parquet" in name else no_json)(source / name)
    args = ["--tokenizer", tokenizer, "--max-length", "16", "--padding"]
    done("encode", source, "--output", output, *args, "--on-error", "quarantine")
    directory = str(output)
    everything = loaded(tmp_path, directory)
    assert sorted(everything["text"][:]) == sorted(TEXTS[:9])
    for same in (
        loaded(tmp_path, "parquet", data_files=f"{directory}/**/*.parquet"),
        loaded(tmp_path, "parquet", data_dir=directory, on_bad_files="skip"),
    ):
        assert sorted(same["text"][:]) == sorted(TEXTS[:9])
    batch = everything.with_format("numpy")[0:9]
    assert batch["input_ids"].shape == (9, 16)
