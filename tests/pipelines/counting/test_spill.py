"""Tables that steps hand to each other: in files in staging in local runs, elsewhere as bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.counting import spill as module
from pipelines.counting.spill import Spill, Table
from pipelines.files import storage
from pipelines.files.publishing import Publication
from wordpiece_core.errors import OutputError

from ..corpora import done, files_below, write_shards
from .test_count import rare_words


def words(*names: str) -> pa.RecordBatch:
    return pa.record_batch({"word": pa.array(names), "count": pa.array([1] * len(names))})


@pytest.fixture
def publication(tmp_path: Path) -> Publication:
    begun = Publication(str(tmp_path / "words"), "last")
    begun.begin()
    return begun


def by_name(publication: Publication) -> tuple[Spill, list[tuple[int, Table]]]:
    spill = Spill.in_run(publication, is_local=True)
    return spill, list(spill.give([(7, words("b", "a")), (3, words()), (7, words("c"))]))


@pytest.mark.usefixtures("store")
def test_elsewhere_elements_are_the_tables(
    publication: Publication, store: str, tmp_path: Path
) -> None:
    remote = Publication(f"{store}/remote", "last")
    for spill in (
        Spill.in_run(publication, is_local=False),
        Spill.in_run(remote, is_local=True),
    ):
        ((_, table),) = spill.give([(0, words("a"))])
        assert isinstance(table, bytes)
        assert Spill().take(table) == words("a")
    assert not storage.entries(publication.place(""))
    assert not (tmp_path / "remote").exists()


def test_a_run_that_has_lost_its_output_says_so(publication: Publication) -> None:
    spill, given = by_name(publication)
    after = Publication(publication.output, "last")
    after.recover()
    after.begin()
    with pytest.raises(OutputError, match="another run has begun"):
        spill.take(given[0][1])
    with pytest.raises(OutputError, match="another run has begun"):
        list(spill.give([(0, words("a"))]))
    assert [entry.name for entry in storage.entries(after.staging.path)] == [".wordpiece.json"]


@pytest.mark.usefixtures("tiny_tables")
@pytest.mark.parametrize("memory", ["64KiB", "512MiB"])
def test_the_table_is_the_same_whichever_way_its_parts_are_handed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    shards = write_shards(tmp_path / "in", rare_words(600), 3, ".txt")
    given: list[Table] = []
    give = Spill.give

    def noted(spill: Spill, tables: object) -> object:
        for key, table in give(spill, tables):  # type: ignore[arg-type]
            given.append(table)
            yield key, table

    monkeypatch.setattr(Spill, "give", noted)
    command = ["count", shards, "--worker-memory", memory, "--output"]
    done(*command, tmp_path / "by name")
    assert given
    assert all(isinstance(table, tuple) for table in given)
    given.clear()
    monkeypatch.setattr(module, "is_uri", lambda _: True)
    done(*command, tmp_path / "as bytes")
    assert given
    assert all(isinstance(table, bytes) for table in given)
    made = files_below(tmp_path / "by name")
    assert made == files_below(tmp_path / "as bytes")
    assert sorted(made)[0] == "_manifest.json"
    assert all(name.startswith("part-") for name in sorted(made)[1:])


def test_by_name_a_table_is_handed_on_before_it_takes_all_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, publication: Publication
) -> None:
    assert Spill.in_run(publication, is_local=False).most_bytes(1 << 30) == 1 << 30
    assert Spill.in_run(publication, is_local=True).most_bytes(1 << 30) == module.TABLE_BYTES
    assert Spill.in_run(publication, is_local=True).most_bytes(1 << 20) == 1 << 20
    shards = write_shards(tmp_path / "in", rare_words(600), 1, ".txt")
    done("count", shards, "--output", tmp_path / "whole")
    monkeypatch.setattr(module, "TABLE_BYTES", 64 << 10)
    files: list[str] = []
    write = Publication.write_passing
    monkeypatch.setattr(
        Publication,
        "write_passing",
        lambda *args: (files.append(args[1]), write(*args)),
    )
    done("count", shards, "--output", tmp_path / "parts")
    assert len(files) > 10
    assert files_below(tmp_path / "parts") == files_below(tmp_path / "whole")
