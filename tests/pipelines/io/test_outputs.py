"""A file is there complete or not at all, wherever it is written."""

import gc
import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from pipelines.io import outputs
from pipelines.io.publishing import Publication
from wordpiece_core import storage
from wordpiece_core.errors import InputError, OptionError, OutputError, StorageError
from wordpiece_core.limits import LIMITS
from wordpiece_core.storage import open_filesystem
from wordpiece_core.uri import inside, join

from ...quick import parametrize


@pytest.fixture(params=["local", "store", "store?region=x", "store_that_closes"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A directory to write to: a local path, or a URI."""
    kind, *query = request.param.partition("?")
    return str(tmp_path) if kind == "local" else request.getfixturevalue(kind) + "".join(query)


def read(path: str) -> bytes:
    filesystem, inner = open_filesystem(path)
    return filesystem.open_input_stream(inner, compression=None).read()


def everything(directory: str) -> list[str]:
    return outputs.list_directory(directory, recursive=True)


def test_a_file_is_there_when_its_writer_has_ended_and_not_before(directory: str) -> None:
    path = join(directory, "a b%.txt")
    with outputs.atomic_writer(path) as stream:
        stream.write(b"one ")
        assert storage.info(path) is None
        stream.write(b"two")
    assert read(path) == b"one two"
    assert everything(directory) == ["a b%.txt"]


def write_half(path: str, error: type[BaseException], size: int) -> None:
    with outputs.atomic_writer(path) as stream:
        stream.write(b"x" * size)
        raise error


@pytest.mark.parametrize("size", [4, LIMITS.held_bytes + 1])
@parametrize("error", [ValueError, KeyboardInterrupt, InputError], quick=2)
def test_a_writer_that_fails_leaves_what_was_there(
    directory: str, error: type[BaseException], size: int
) -> None:
    path = join(directory, "a.txt")
    outputs.write_json(path, 1)
    with pytest.raises(error):
        write_half(path, error, size)
    gc.collect()
    assert read(path) == b"1\n"
    assert everything(directory) == ["a.txt"]


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Files cannot grow beyond 10,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_is_an_error_that_names_the_path_and_leaves_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    noise = pa.table({"a": pa.array([os.urandom(1000) for _ in range(100)], pa.binary())})
    with pytest.raises(StorageError) as caught:
        outputs.write_parquet(path, [noise, noise], noise.schema)
    assert caught.value.lasting
    assert str(caught.value).startswith(f"{path}: cannot be written (")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_bytes(b"")
    for name, place in (("file/a.json", "file"), ("full", "full")):
        with pytest.raises(StorageError) as caught:
            outputs.write_json(str(tmp_path / name), {})
        assert str(caught.value).startswith(f"{tmp_path / place}: cannot be ")
        assert "\n" not in str(caught.value)
    with pytest.raises(StorageError, match="file/b: cannot be made"):
        storage.make_directory(str(tmp_path / "file" / "b"))
    assert everything(str(tmp_path)) == ["file", "full/x"]


def test_tables_become_row_groups_and_batches_too(directory: str) -> None:
    path = join(directory, "a.parquet")
    table = pa.table({"a": range(10)})
    parts = [table[:3], table[3:3], *table[3:].to_batches()]
    assert outputs.write_parquet(path, iter(parts), table.schema, compression="zstd") == 10
    parquet = pq.ParquetFile(pa.BufferReader(read(path)))
    groups = [parquet.metadata.row_group(i) for i in range(parquet.num_row_groups)]
    assert [group.num_rows for group in groups if group.num_rows] == [3, 7]
    assert {group.column(0).compression for group in groups} == {"ZSTD"}
    assert parquet.read() == table


def test_json_is_written_for_people_and_read_back(directory: str) -> None:
    path = join(directory, "a.json")
    value = {"z": ["é", 1], "a": None}
    outputs.write_json(path, value)
    assert read(path).decode() == '{\n  "z": [\n    "é",\n    1\n  ],\n  "a": null\n}\n'
    assert outputs.read_json(path) == value
    assert outputs.read_json(join(directory, "deep", "no.json")) is None
    outputs.write_bytes(path, b'{"a":')
    with pytest.raises(InputError, match="not JSON"):
        outputs.read_json(path)


def test_the_bytes_of_a_file_are_read_as_they_are(directory: str) -> None:
    path = join(directory, "a b.gz")
    with outputs.atomic_writer(path) as stream:
        stream.write(b"\x00\xff\n")
    assert storage.read_bytes(path) == b"\x00\xff\n"
    for name in ("no", "a b.gz/no"):
        missing = join(directory, name)
        with pytest.raises(storage.MissingError) as caught:
            storage.read_bytes(missing)
        assert str(caught.value).startswith(f"{missing}: cannot be read (")
        assert "\n" not in str(caught.value)


def test_a_writer_killed_midway_leaves_a_temporary_file_only(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with outputs.atomic_writer(str(tmp_path / "a.txt")) as stream:
            stream.write(b"half" * LIMITS.held_bytes)
            os._exit(9)
    os.waitpid(child, 0)
    (name,) = os.listdir(tmp_path)
    assert re.fullmatch(outputs.TEMPORARY, name)


def test_paths_and_uris_are_joined_alike() -> None:
    assert join("out/dir/", "de", "a b.txt") == "out/dir/de/a b.txt"
    assert join("s3://bucket/dir/", "de/a b.txt") == "s3://bucket/dir/de/a%20b.txt"
    assert join("s3://bucket?region=x", "a", "b") == "s3://bucket/a/b?region=x"


def test_a_process_has_one_client_for_each_bucket(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, opened = [], storage.STORES["store"]

    def counting(bucket: str, options: dict[str, Any]) -> fs.FileSystem:
        made.append(bucket)
        return opened(bucket, options)

    monkeypatch.setitem(storage.STORES, "store", counting)
    bucket = store.partition("://")[2]
    for query in ("", "?region=x"):
        for name in ("a", "deep/a%20b.txt", "a~(1),b@c", "deep/"):
            inner = f"{bucket}/{name.replace('%20', ' ').rstrip('/')}"
            assert open_filesystem(f"{store}/{name}{query}")[1] == inner
    assert len(made) == 2
    child = os.fork()
    if child == 0:
        open_filesystem(f"{store}/a")
        os._exit(len(made))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3  # it has a client of its own


def test_fsspec_opens_all_other_schemes() -> None:
    for uri, reason in (
        ("nonesuch://a/b", "Protocol not known: nonesuch"),
        ("s3://b/a?nonesuch=1&region=x", "unexpected keyword argument"),
    ):
        with pytest.raises(OptionError, match=reason):
            open_filesystem(uri)
    place = "memory://corpora/a b.txt"
    outputs.write_bytes(place, b"some text")
    assert storage.read_bytes(place) == b"some text"
    assert [entry.name for entry in storage.entries("memory://corpora")] == ["a b.txt"]


@pytest.mark.parametrize(
    "name",
    ["../v", "a/../../v", "/etc/v", "", ".", "a//b", "a/./b", "a\0", 3, None, ["a"], "link/v"],
)
def test_names_from_a_file_that_lead_out_of_their_directory_are_refused(
    tmp_path: Path, name: Any
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "link")
    with pytest.raises(InputError, match=r"outside the directory|leads out of"):
        inside(str(tmp_path / "out"), name)
    if name != "link/v":
        with pytest.raises(InputError):
            inside("s3://bucket/out?region=x", name)
    assert inside(str(tmp_path / "out"), "a b/..c") == str(tmp_path / "out" / "a b" / "..c")
    assert inside("s3://bucket/out?region=x", "a b") == "s3://bucket/out/a%20b?region=x"


def published_and_killed(directory: str) -> Publication:
    """Return a publication of two files before any file is moved."""
    publication = Publication(directory, "last")
    publication.begin()
    for name in ("first", "last"):
        publication.stage(name, name.encode())
    with (
        mock.patch.object(Publication, "_move"),
        mock.patch.object(type(publication.staging), "delete"),
    ):
        publication.publish(["first", "last"], ())
    return publication


def test_a_staged_file_that_is_missing_is_an_error_that_changes_nothing(directory: str) -> None:
    for name in ("first", "last"):
        outputs.write_bytes(join(directory, name), b"old")
    killed = published_and_killed(directory)
    storage.delete_file(killed.place("first"))
    with pytest.raises(OutputError, match=r"first.*: is missing; run the job again"):
        killed.recover()
    assert storage.read_bytes(join(directory, "last")) == b"old"
    again = Publication(directory, "last")
    again.recover()
    again.begin()
    again.stage("last", b"new")
    with pytest.raises(OutputError, match=r"first.*: is missing; run the job again"):
        again.publish(["first", "last"], ())
    again.recover()
    again.begin()
    for name in ("first", "last"):
        again.stage(name, name.encode())
    again.publish(["first", "last"], ())
    assert everything(directory) == ["first", "last"]
    assert storage.read_bytes(join(directory, "first")) == b"first"


def test_a_file_that_was_moved_is_not_missing(directory: str) -> None:
    killed = published_and_killed(directory)
    storage.delete_file(killed.place("first"))
    outputs.write_bytes(join(directory, "first"), b"first")  # as if it had been moved
    Publication(directory, "last").recover()
    assert everything(directory) == ["first", "last"]


def test_a_table_that_is_damaged_is_told_from_one_that_is_missing(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]})
    path = str(tmp_path / "a.parquet")
    with pytest.raises(storage.MissingError):
        outputs.read_parquet(path)
    outputs.write_parquet(path, table)
    assert outputs.read_parquet(path) == table
    Path(path).write_bytes(b"no table")
    fix = "; restore it, or delete the directory"
    with pytest.raises(InputError, match=rf"a.parquet: cannot be read \(.*\){fix}$"):
        outputs.read_parquet(path)
