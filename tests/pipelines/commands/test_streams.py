"""The command in a process of its own that lacks something: streams, a locale, memory."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pipelines

from ...quick import parametrize
from ..corpora import ONE_WORKER, process, wordpiece, write_shard


def count(tmp_path: Path) -> list[str]:
    shard = write_shard(tmp_path / "in.txt", ["hello world", "hello"])
    return ["count", shard, "--output", str(tmp_path / "out"), *ONE_WORKER]


def with_memory(megabytes: int) -> Callable[[], None]:
    size = megabytes << 20
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_too_little_memory_for_the_libraries_is_one_line(tmp_path: Path) -> None:
    outcome = process(*count(tmp_path), preexec_fn=with_memory(100))
    assert outcome.fault.startswith("not enough memory: ")
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1


def chained(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (pa.ArrowMemoryError("malloc of size 64 failed"), "not enough memory: malloc of size 64"),
        (RuntimeError("can't start new thread"), "not enough memory: can't start new thread"),
        (ImportError("libx.so: failed to map segment from shared object"), "not enough memory: li"),
        (chained(RuntimeError("step"), MemoryError()), "not enough memory"),
    ],
    ids=repr,
)
def test_too_little_memory_differs_from_other_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("pipelines.counting.count.count_job", fail)
    outcome = wordpiece(*count(tmp_path))
    assert outcome.status == 1
    assert outcome.fault.startswith(said)
    assert outcome.fault.endswith("; give the process more memory, or reduce the memory options")


@parametrize("streams", ["2>&-", "2>/dev/full", "<&- >&- 2>&-"], quick=1)
def test_a_job_does_not_need_standard_streams(tmp_path: Path, streams: str) -> None:
    command = shlex.join([sys.executable, "-m", "pipelines", *count(tmp_path)])
    assert subprocess.run(["sh", "-c", f"{command} {streams}"], check=False).returncode == 0
    assert (tmp_path / "out" / "_manifest.json").exists()


class OnlyWrites:
    """A stream without any other method, as some programs put in the place of standard error."""

    def write(self, text: str) -> None:
        assert text


@pytest.mark.parametrize("stream", [None, OnlyWrites()])
def test_functions_do_not_need_standard_error(
    tmp_path: Path, stream: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = write_shard(tmp_path / "in.txt", ["hello world", "hello"])
    monkeypatch.setattr(sys, "stderr", stream)
    assert pipelines.count(shard, output=tmp_path / "out").totals["rows"] == 2


@parametrize("locale", ["C", "POSIX"], quick=1)
def test_names_of_files_are_utf8_in_every_locale(tmp_path: Path, locale: str) -> None:
    shard = write_shard(tmp_path / "\xfcbung" / "\xe4.jsonl", ["hello world"])
    ascii_names = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for name in (shard, str(tmp_path / "\xfcbung"), f"{tmp_path}/*bung/*.jsonl"):
        call = ["count", name, "--output", str(tmp_path / "\xf6ut"), *ONE_WORKER]
        outcome = process(*call, env=os.environ | ascii_names)
        assert (outcome.status, outcome.out.splitlines()[0]) == (0, "read: 1 row, 0.0 MB of text")
