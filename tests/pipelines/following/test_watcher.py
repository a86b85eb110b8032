"""Which files have arrived: those that stand still, that a marker names, or that a store lists."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from pipelines.files.input_files import covers
from pipelines.files.inputs import InputFile
from pipelines.following import watcher
from pipelines.following.options import FollowOptions
from pipelines.following.watcher import FileWatcher, Listing
from wordpiece_core.errors import OptionError


class Looks:
    """Looks at a directory of which nothing is known, by a clock of its own."""

    def __init__(self, *patterns: str | Path, **options: object) -> None:
        self.clock = 0.0
        chosen = FollowOptions(follow=True, **{"poll": 5.0} | options)  # type: ignore[arg-type]
        self.watcher = FileWatcher([str(p) for p in patterns], [], chosen, lambda: self.clock)

    def after(self, seconds: float) -> list[str]:
        """The names of the files that have arrived by then."""
        return [file.name for file in self.list_inputs(seconds).ready]

    def list_inputs(self, seconds: float = 0.0, known: frozenset[str] = frozenset()) -> Listing:
        self.clock += seconds

        def is_new(file: InputFile) -> bool:
            return file.name not in known

        return self.watcher.list_inputs(is_new)


def test_a_file_has_arrived_when_it_has_stood_still_for_one_poll(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    assert looks.after(0) == []  # an empty directory is no error
    (tmp_path / "a.txt").write_text("some")
    assert looks.after(5) == []
    assert looks.after(4.9) == []
    assert looks.after(0.2) == ["a.txt"]
    assert looks.list_inputs(known=frozenset(["a.txt"])).ready == []


def test_a_file_that_grows_or_is_touched_waits(tmp_path: Path) -> None:
    looks, path = Looks(tmp_path), tmp_path / "a.txt"
    for text in ("one", "one two"):
        path.write_text(text)
        look = looks.list_inputs(6)
        assert (look.ready, look.unsettled) == ([], {str(path)})
    os.utime(path, ns=(1, 1))
    assert looks.after(6) == []
    assert looks.after(6) == ["a.txt"]


def test_objects_of_a_store_have_arrived_when_they_are_listed(
    tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "appears_when_closed", lambda path: path.startswith("store:"))
    looks = Looks(f"{store}/in", f"{store}/other/*.txt")
    assert looks.after(0) == []  # a store has no empty directories
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b.txt").write_text("some")
    assert looks.after(0) == ["a b.txt"]


@pytest.mark.parametrize(
    ("marker", "name"),
    [("NAME._SUCCESS", "a.txt._SUCCESS"), (".NAME.ok", ".a.txt.ok"), ("_SUCCESS", "_SUCCESS")],
)
@pytest.mark.parametrize("remote", [False, True])
def test_with_a_marker_a_file_waits_for_it(
    tmp_path: Path, store: str, marker: str, name: str, remote: bool
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("some")
    looks = Looks(f"{store}/in" if remote else tmp_path, marker=marker)
    found = "a.txt" if remote else "in/a.txt"
    assert looks.after(0) == looks.after(99) == []
    assert not looks.list_inputs().unsettled  # it may never come
    (tmp_path / "in" / name).write_text("")
    assert looks.after(0) == [found]


def test_a_file_that_is_renamed_while_it_is_listed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".a.txt", "b.txt", "c.txt", "sub/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("some")
    looks = Looks(tmp_path)
    looks.list_inputs()
    scandir = os.scandir

    def scan(path: str) -> Any:
        with scandir(path) as items:
            read = list(items)
        with suppress(FileNotFoundError):  # some is gone before it is looked at
            (tmp_path / ".a.txt").rename(tmp_path / "a.txt")
            (tmp_path / "sub" / "d.txt").unlink()
            (tmp_path / "sub").rmdir()
        return nullcontext(read)

    monkeypatch.setattr(os, "scandir", scan)
    assert looks.after(5) == ["b.txt", "c.txt"]


@pytest.mark.parametrize("marker", ["NAME", "", "a/NAME", ".."])
def test_a_marker_is_a_name_beside_the_file(marker: str) -> None:
    with pytest.raises(OptionError, match=r"NAME\._SUCCESS"):
        FollowOptions(follow=True, marker=marker)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/in", "/in/a.txt", True),
        ("/in/", "/in/b/a.txt", True),
        ("/in", "/in/_b/a.txt", False),
        ("/in", "/inner/a.txt", False),
        ("/in/a.txt", "/in/a.txt", True),
        ("/in/*.txt", "/in/a.txt", True),
        ("/in/*.txt", "/in/b/a.txt", False),
        ("/in/**/*.txt", "/in/b/c/a.txt", True),
        ("s3://b/in?region=x", "s3://b/in/a%20b.txt?region=y", True),
        ("s3://b/in/a b*", "s3://b/in/a%20b.txt", True),
        ("s3://b/in", "/in/a.txt", False),
    ],
)
def test_a_pattern_covers_the_paths_that_it_would_name(
    pattern: str, path: str, expected: bool
) -> None:
    assert covers(pattern, path) is expected
