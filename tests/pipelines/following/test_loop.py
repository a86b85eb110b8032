"""The loop of a job that follows its inputs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pipelines.files.inputs import InputFile
from pipelines.following.loop import follow
from pipelines.following.options import FollowOptions
from pipelines.following.watcher import FileWatcher, Listing
from pipelines.running.signals import SIGNALS


class Noted:
    """A job that only notes what it is given. `then`: what it does in each commit."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.commits: list[list[str]] = []
        self.then = then

    def is_new(self, file: InputFile) -> bool:
        return all(file.name not in names for names in self.commits)

    def commit(self, files: Sequence[InputFile], look: Listing) -> bool:
        if files:
            self.commits.append([file.name for file in files])
            self.then()
        return bool(files)


def run(directory: Path, job: Noted, **options: object) -> None:
    chosen = FollowOptions.of(follow=True, poll=0.1, **options)
    follow(job, FileWatcher([str(directory)], [], chosen), chosen)


def write(directory: Path, names: str) -> None:
    for i, name in enumerate(names):
        path = directory / f"{name}.txt"
        path.write_text("some")
        os.utime(path, ns=(i, i))


def test_it_ends_when_nothing_has_come_for_long_enough(tmp_path: Path) -> None:
    write(tmp_path, "ab")
    more = iter(["c", "d"])
    job = Noted(lambda: write(tmp_path, next(more, "")))
    run(tmp_path, job, until_idle="0s")
    assert job.commits == [["a.txt", "b.txt"], ["c.txt"], ["d.txt"]]


def test_a_commit_has_so_many_files_at_most(tmp_path: Path) -> None:
    write(tmp_path, "abcde")
    job = Noted()
    run(tmp_path, job, until_idle="0s", max_files=2)
    assert job.commits == [["a.txt", "b.txt"], ["c.txt", "d.txt"], ["e.txt"]]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_it_after_the_commit_that_is_at_work(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, "abc")
    before = signal.getsignal(number)
    job = Noted(lambda: os.kill(os.getpid(), number))
    run(tmp_path, job, max_files=2)  # for ever, otherwise
    assert job.commits == [["a.txt", "b.txt"]]
    assert signal.getsignal(number) == before


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    write(tmp_path, "a")

    def interrupt_twice() -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Noted(interrupt_twice))
