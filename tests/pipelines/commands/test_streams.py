"""The command in a process of its own that lacks something: streams, a locale, memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
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


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_do_no_harm(tmp_path: Path, closed: str) -> None:
    outcome = in_shell(closed, *count(tmp_path))
    assert outcome.status == 0, outcome.err
    assert "wordpiece" not in outcome.err
    assert bool(outcome.out) == (closed in ("2>&-", "<&-"))
    assert table_rows(tmp_path / "out") == ROWS


def test_no_file_gets_the_descriptor_of_a_closed_stream(tmp_path: Path) -> None:
    """Or it would get what a library writes there."""
    path = tmp_path / "data"
    code = (
        "import os\nos.closerange(0, 3)\n"
        "from pipelines.commands import streams\nstreams.prepare()\n"
        f"with open({str(path)!r}, 'w') as file: file.write(str(file.fileno()))\n"
        "os.write(1, b'noise')\nos.write(2, b'noise')\nassert os.read(0, 1) == b''\n"
        "assert all(map(os.get_inheritable, range(3)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert int(path.read_text()) > 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_an_error_on_one_line(tmp_path: Path, unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[UNK]\n[CLS]\n[SEP]\n")
    for args in (["--help"], ["inspect", str(vocab), "x"], count(tmp_path)):
        outcome = in_shell(">/dev/full", *args, env=environment)
        assert outcome.fault == "standard output: cannot be written (No space left on device)"
        assert outcome.status == 1
    assert table_rows(tmp_path / "out") == ROWS
    assert in_shell("2>/dev/full", *count(tmp_path), env=environment).status == 0


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_error(tmp_path: Path, unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    vocab, shard = tmp_path / "vocab.txt", tmp_path / "in.txt"
    vocab.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    compare = ["compare", str(vocab), str(vocab), "--on", str(shard)]
    for args in (["--help"], count(tmp_path), compare, ["inspect", str(vocab), "a b"]):
        reader, writer = os.pipe()
        os.close(reader)
        command = [*script(), *args]
        ended = subprocess.run(
            command,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment,
        )
        os.close(writer)
        assert ended.returncode == 0
        assert "wordpiece" not in ended.stderr
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
