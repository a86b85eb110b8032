"""The command in a process of its own that lacks something: streams, a locale, memory."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ..corpora import ONE_WORKER, Outcome, process, script, table_rows, wordpiece, write_shard

ROWS = [("hello", 2), ("world", 1)]


def count(tmp_path: Path) -> list[str]:
    shard = write_shard(tmp_path / "in.txt", ["hello world", "hello"])
    return ["count", shard, "--output", str(tmp_path / "out"), *ONE_WORKER]


def in_shell(redirection: str, *args: str, **options: Any) -> Outcome:
    command = ["bash", "-c", f'"$@" {redirection}', "bash", *script(), *args]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


def test_a_full_standard_output_is_an_error_on_one_line(tmp_path: Path) -> None:
    outcome = in_shell(">/dev/full", *count(tmp_path))
    assert outcome.status == 1
    assert "No space left on device" in outcome.fault
    assert table_rows(tmp_path / "out") == ROWS


def test_a_reader_that_has_gone_is_no_message(tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    for args in (["--help"], count(tmp_path), ["inspect", str(vocab), "a b"]):
        outcome = in_shell("| true; exit ${PIPESTATUS[0]}", *args)
        assert "wordpiece" not in outcome.err
    assert table_rows(tmp_path / "out") == ROWS


def with_memory(megabytes: int) -> Callable[[], None]:
    size = megabytes << 20
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize("command", ["count", "train", "encode"])
def test_too_little_memory_for_the_libraries_is_said_on_one_line(
    tmp_path: Path, command: str
) -> None:
    args = [command, *count(tmp_path)[1:4]]
    args += ["--tokenizer", str(tmp_path)] if command == "encode" else []
    outcome = process(*args, preexec_fn=with_memory(100))
    assert outcome.fault.startswith("not enough memory: ")
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1


def chained(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "not enough memory"),
        (pa.ArrowMemoryError("malloc of size 64 failed"), "not enough memory: malloc of size 64"),
        (RuntimeError("can't start new thread"), "not enough memory: can't start new thread"),
        (ImportError("libx.so: failed to map segment from shared object"), "not enough memory: li"),
        (OSError(12, "Cannot allocate memory"), "not enough memory: [Errno 12] Cannot allocate"),
        (chained(RuntimeError("step"), MemoryError()), "not enough memory"),
        (RuntimeError("pyarrow.lib.ArrowMemoryError: realloc of size 9"), "not enough memory: py"),
    ],
    ids=repr,
)
def test_too_little_memory_is_told_from_other_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("pipelines.commands.count.run_count", fail)
    outcome = wordpiece(*count(tmp_path))
    assert outcome.status == 1
    assert outcome.fault.startswith(said)
    assert outcome.fault.endswith("; give the command more, or less to hold")
