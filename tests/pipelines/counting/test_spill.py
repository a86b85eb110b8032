"""Tables that steps pass to each other: in files in staging in local runs, elsewhere as bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.counting.spill import Spill
from pipelines.files.publishing import Publication
from wordpiece_core import storage
from wordpiece_core.errors import OutputError

from ..corpora import done, files_below, write_shards
from .test_count import rare_words


@pytest.fixture
def publication(tmp_path: Path) -> Publication:
    begun = Publication(str(tmp_path / "words"), "last")
    begun.begin()
    return begun


WORDS = pa.record_batch({"word": ["a", "b"], "count": [2, 1]})


def test_without_a_common_disk_elements_are_the_tables(
    publication: Publication, store: str, tmp_path: Path
) -> None:
    remote = Publication(f"{store}/remote", "last")
    for spill in (
        Spill.in_run(publication, is_local=False),
        Spill.in_run(remote, is_local=True),
    ):
        ((_, table),) = spill.give([(0, WORDS)])
        assert Spill().take(table) == WORDS
    assert not storage.entries(publication.place(""))
    assert not (tmp_path / "remote").exists()


def test_a_run_that_has_lost_its_output_says_so(publication: Publication) -> None:
    spill = Spill.in_run(publication, is_local=True)
    ((_, table),) = spill.give([(0, WORDS)])
    after = Publication(publication.output, "last")
    after.recover()
    after.begin()
    with pytest.raises(OutputError, match="another run has begun"):
        spill.take(table)
    with pytest.raises(OutputError, match="another run has begun"):
        list(spill.give([(0, WORDS)]))
    assert [entry.name for entry in storage.entries(after.staging.path)] == [".wordpiece.json"]


@pytest.mark.usefixtures("tiny_tables")
@pytest.mark.parametrize("memory", ["64KiB", "512MiB"])
def test_the_table_is_the_same_whichever_way_its_parts_are_passed(
    tmp_path: Path, store: str, memory: str
) -> None:
    shards = write_shards(tmp_path / "in", rare_words(600), 3, ".txt")
    count = ["count", shards, "--worker-memory", memory, "--output"]
    done(*count, tmp_path / "in files")
    done(*count, f"{store}/as-bytes")
    made = files_below(tmp_path / "in files")
    assert made == files_below(tmp_path / "as-bytes")
    assert all(name == "_manifest.json" or name.startswith("part-") for name in made)
