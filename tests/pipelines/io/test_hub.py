"""Inputs on the Hub of Hugging Face, from a server on this machine that answers as the Hub does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from .. import hub
from ..corpora import (
    ONE_WORKER,
    done,
    english,
    files_below,
    process,
    train_tokenizer,
    wordpiece,
    write_shard,
)

TEXTS = english(60)
NAMES = ("data/a.parquet", "data/sub/b c.jsonl", "data/c.txt.gz", "data/d.arrow")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyarrow as pa

    root = tmp_path_factory.mktemp("hub")
    for i, name in enumerate(NAMES[:-1]):
        write_shard(root / name, TEXTS[15 * i : 15 * i + 15])
    table = pa.table({"text": TEXTS[45:]})
    with pa.ipc.new_stream(root / NAMES[-1], table.schema) as writer:
        writer.write_table(table)
    return root


@pytest.fixture(scope="module")
def endpoint(files: Path) -> Iterator[str]:
    with serving(files) as address:
        yield address


@contextmanager
def serving(files: Path) -> Iterator[str]:
    command = [sys.executable, hub.__file__, str(files)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def environment(endpoint: str, tmp_path: Path) -> dict[str, str]:
    return os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hf")}


def test_inputs_on_the_hub_are_read_as_local_ones(
    tmp_path: Path, files: Path, endpoint: str
) -> None:
    place = "hf://datasets/owner/name@main/data"
    env = environment(endpoint, tmp_path)
    far = process("count", place, "--output", tmp_path / "far", *ONE_WORKER, env=env)
    assert far.status == 0, far.err
    done("count", files / "data", "--output", tmp_path / "near")
    assert files_below(tmp_path / "far") == files_below(tmp_path / "near")
    tokenizer = train_tokenizer(tmp_path / "t", TEXTS, "--vocab-size", "80")
    args = ["--tokenizer", tokenizer, "--output"]
    far = process("encode", f"{place}/**/*.*", *args, tmp_path / "x", *ONE_WORKER, env=env)
    assert far.status == 0, far.err
    done("encode", files / "data", *args, tmp_path / "y")
    found, expected = (
        {path.name: pq.read_table(path) for path in (tmp_path / out).rglob("*.parquet")}
        for out in ("x", "y")
    )
    assert found == expected


@pytest.mark.soak
def test_a_name_missing_on_the_hub_is_one_line(tmp_path: Path, endpoint: str) -> None:
    env = environment(endpoint, tmp_path)
    for place in ("hf://datasets/owner/name/no.txt", "hf://datasets/owner/none/a.txt"):
        outcome = process("count", place, "--output", tmp_path / "out", env=env)
        assert outcome.fault.startswith(f"{place}: ")


@pytest.mark.soak
def test_a_hub_that_does_not_answer_is_a_fault_of_storage(tmp_path: Path) -> None:
    env = environment("http://127.0.0.1:9", tmp_path)
    place = "hf://datasets/owner/name/a.txt"
    outcome = process("count", place, "--output", tmp_path / "out", env=env)
    assert outcome.fault.startswith(f"{place}: cannot be reached")


@pytest.mark.soak
def test_outputs_on_the_hub_match_local_runs(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / ".gitattributes").write_text("*.parquet filter=lfs\n")  # as every repository has it
    shard = write_shard(tmp_path / "a.parquet", TEXTS)
    tokenizer = train_tokenizer(tmp_path / "t", TEXTS, "--vocab-size", "80")
    call = ["encode", shard, "--tokenizer", tokenizer, "--output"]
    done(*call, tmp_path / "near")
    with serving(files) as endpoint:
        for _ in range(2):  # the second run finds everything there
            env = environment(endpoint, tmp_path)
            far = process(*call, "hf://datasets/owner/name", *ONE_WORKER, env=env)
            assert (far.status, far.err) == (0, far.err)
    near, far_files = files_below(tmp_path / "near"), files_below(files)
    for name in (".gitattributes", ".manifest.json", ".run.json"):
        far_files.pop(name), near.pop(name, None)
    assert far_files == near


@pytest.mark.soak
def test_a_repository_that_does_not_exist_is_named(tmp_path: Path, endpoint: str) -> None:
    shard = write_shard(tmp_path / "a.txt", TEXTS)
    call = ["count", shard, "--output", "hf://datasets/owner/none"]
    outcome = process(*call, env=environment(endpoint, tmp_path))
    assert outcome.fault.startswith("hf://datasets/owner/none")
    assert "404" in outcome.fault


def test_addresses_of_the_web_are_not_written(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "a.txt", TEXTS)
    outcome = wordpiece("count", shard, "--output", "https://127.0.0.1/words")
    assert outcome.fault.startswith("--output: https://127.0.0.1/words is not writable")
