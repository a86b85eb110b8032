"""Standard input as INPUT `-`, in processes of their own."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import pytest

from ..corpora import (
    done,
    english,
    files_below,
    manifest,
    script,
    train_tokenizer,
    wordpiece,
    write_shard,
)

TEXTS = english(40)


def piped(data: bytes, *args: str | Path, temporary: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*script(), *map(str, args)],
        input=data,
        capture_output=True,
        check=False,
        env=os.environ | {"TMPDIR": str(temporary)},
    )


@pytest.mark.parametrize("ending", ["txt", "parquet"])
def test_standard_input_is_counted_as_a_file(tmp_path: Path, ending: str) -> None:
    shard = Path(write_shard(tmp_path / f"a.{ending}", TEXTS))
    more = [] if ending == "txt" else ["--stdin-format", ending]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    args = ["count", "-", "--output", tmp_path / "words", *more]
    ended = piped(shard.read_bytes(), *args, temporary=temporary)
    assert ended.returncode == 0, ended.stderr
    assert not [*temporary.iterdir()]
    done("count", shard, "--output", tmp_path / "expected")
    assert files_below(tmp_path / "words") == files_below(tmp_path / "expected")


def test_standard_input_is_encoded_beside_files_into_a_shard_of_its_own(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(tmp_path / "t", TEXTS, "--vocab-size", "80")
    shard = write_shard(tmp_path / "a.txt", TEXTS)
    args = ["encode", "-", shard, "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    data = gzip.compress("\n".join(TEXTS).encode())
    ended = piped(data, *args, "--stdin-format", "txt.gz", temporary=tmp_path)
    assert ended.returncode == 0, ended.stderr
    shards = {shard["name"]: shard["rows"] for shard in manifest(tmp_path / "out")["shards"]}
    assert shards == {"a.parquet": 40, "stdin.parquet": 40}
    again = piped(data, *args, "--stdin-format", "txt.gz", temporary=tmp_path)
    assert again.returncode == 2
    assert b"holds a shard stdin.parquet of" in again.stderr


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["-", "-"], "-: standard input can be read once; give it once"),
        (["-", "--follow"], "-: standard input cannot be followed; give a directory"),
        (["-", "--stdin-format", "doc"], "--stdin-format: 'doc' is no format; give one of parquet"),
        (["-", "--", "--runner=FlinkRunner"], "-: workers elsewhere cannot read standard input"),
    ],
)
def test_what_standard_input_cannot_be(tmp_path: Path, args: list[str], fault: str) -> None:
    outcome = wordpiece("count", "--output", tmp_path / "out", *args)
    assert outcome.status == 2
    assert outcome.fault.startswith(fault)
