"""Workers leave figures in files, which nothing depends on."""

from __future__ import annotations

import itertools
import os
import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.files import storage
from pipelines.files.owned import MARKER, OwnedDirectory
from pipelines.running import figure_files
from pipelines.running.figure_files import FigureFiles
from pipelines.running.figures import report
from wordpiece_core.errors import StorageError


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FigureFiles:
    """Files of a pipeline, in a process that is no driver, and does not wait for long."""
    made = FigureFiles(owned(tmp_path))
    made.owned.claim()
    monkeypatch.setattr(figure_files, "_driven", set())
    monkeypatch.setattr(figure_files, "LEAST_SECONDS", 0.01)
    copy: FigureFiles = pickle.loads(pickle.dumps(made))
    return copy


def owned(path: Path) -> OwnedDirectory:
    return OwnedDirectory(str(path / "work"), "work", "x")


def is_leaving(figures: FigureFiles) -> bool:
    """Whether there is a thread that leaves figures."""
    return any(figures.pipeline in thread.name for thread in threading.enumerate())


def wait_until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.01)


def test_a_worker_leaves_what_it_has_reported_for_this_pipeline(figures: FigureFiles) -> None:
    report(rows=5)
    figures.leave()
    figures.leave()  # as of the next bundle
    report(rows=1, bytes=10)
    wait_until(lambda: figures.read() == {"rows": 1, "bytes": 10})
    report(rows=1)
    wait_until(lambda: figures.read() == {"rows": 2, "bytes": 10})
    FigureFiles(figures.owned).delete()  # of another pipeline
    assert figures.read() == {"rows": 2, "bytes": 10}
    figures.delete()
    assert os.listdir(figures.owned.path) == [MARKER]


def test_figures_lie_in_a_store_too(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FigureFiles(OwnedDirectory(f"{store}/work?region=x", "work", "x"))
    made.owned.claim()
    monkeypatch.setattr(figure_files, "_driven", set())
    monkeypatch.setattr(figure_files, "LEAST_SECONDS", 0.01)
    made.leave()
    report(rows=1)
    wait_until(lambda: made.read() == {"rows": 1})
    made.owned.delete()
    assert made.read() == {}
    report(rows=1)
    wait_until(lambda: not is_leaving(made))
    assert not (tmp_path / "work").exists()


def test_a_driver_leaves_nothing_in_files(figures: FigureFiles) -> None:
    here = FigureFiles(figures.owned)
    here.leave()
    assert not is_leaving(here)


def test_a_worker_ends_to_leave_figures_when_it_works_for_another_pipeline(
    figures: FigureFiles,
) -> None:
    figures.leave()
    report(rows=1)
    wait_until(lambda: figures.read() == {"rows": 1})
    other = pickle.loads(pickle.dumps(FigureFiles(figures.owned)))
    figure_files._driven.clear()
    other.leave()
    report(rows=1)
    wait_until(lambda: other.read() == {"rows": 1})
    wait_until(lambda: not is_leaving(figures))
    assert figures.read() == {"rows": 1}


@pytest.mark.parametrize("is_over", [False, True])
def test_a_worker_leaves_nothing_when_another_run_has_begun_or_all_is_over(
    tmp_path: Path, figures: FigureFiles, is_over: bool
) -> None:
    figures.leave()
    report(rows=1)
    wait_until(lambda: figures.read() == {"rows": 1})
    figures.owned.delete() if is_over else owned(tmp_path).claim()
    assert figures.read() == {}
    report(rows=1)
    wait_until(lambda: not is_leaving(figures))
    assert os.listdir(tmp_path) == ([] if is_over else ["work"])
    assert is_over or os.listdir(figures.owned.path) == [MARKER]


def test_a_fault_of_the_storage_costs_a_figure_only_until_the_next_time(
    figures: FigureFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, write = itertools.count(), storage.overwrite

    def overwrite(path: str, data: bytes) -> None:
        if next(numbers) == 0:
            raise StorageError(path)
        write(path, data)

    monkeypatch.setattr(storage, "overwrite", overwrite)
    figures.leave()
    report(rows=1)
    wait_until(lambda: figures.read() == {"rows": 1})


def test_a_file_that_cannot_be_read_is_left_out(figures: FigureFiles) -> None:
    figures.leave()
    report(rows=1)
    wait_until(lambda: figures.read() == {"rows": 1})
    (Path(figures.owned.path) / f"{figures._names}{'0' * 16}").write_text('{"rows": ')
    assert figures.read() == {"rows": 1}
    assert FigureFiles(OwnedDirectory("nowhere://place", "work", "x")).read() == {}


def test_files_that_are_left_behind_are_no_hindrance(tmp_path: Path) -> None:
    late = FigureFiles(owned(tmp_path))
    left = tmp_path / "work" / f"{late._names}{'0' * 16}"
    left.parent.mkdir()
    left.write_text("{}")
    assert not owned(tmp_path).check()
    owned(tmp_path).claim()
    assert os.listdir(tmp_path / "work") == [MARKER]
