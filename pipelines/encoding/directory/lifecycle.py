"""A run begins in an output directory and ends, with a manifest: then the directory is complete."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.encoding.directory.bad_shards import release
from pipelines.encoding.directory.card import dataset_card, laid_out_splits, write_card
from pipelines.encoding.directory.contents import Contents, inputs_of, read_contents
from pipelines.encoding.directory.encoded_directory import (
    FORMAT,
    GONE,
    JOB,
    MANIFEST,
    RUN,
    EncodedDirectory,
)
from pipelines.encoding.directory.notes import OF_SHARDS, SUMS, plain
from pipelines.files import outputs, storage
from pipelines.files.reading import bad_data
from pipelines.files.storage import StoredFile
from wordpiece_core import Tokenizer
from wordpiece_core.errors import OutputError


def begin(
    directory: EncodedDirectory,
    tokenizer: Tokenizer,
    planned: Collection[str],
    roots: dict[str, str],
) -> None:
    """Begins a run. Until `finish` the directory is not complete. `planned`: the names of the
    shards that will be encoded or are bad; old files of these names are deleted. `roots`: as in
    `Contents`, for all inputs."""
    directory.notes.claim()
    # It is read now, when no worker of an earlier run can rename a shard any more.
    found = read_contents(directory)
    directory.write_tokenizer(tokenizer)
    again = {*planned} & found.results.keys() & found.sizes.keys()
    there = [name for name in sorted(found.results) if name in found.sizes]
    job = {
        "format": FORMAT,
        **directory.job,
        "run": directory.run,
        "planned": sorted(again),
        "bad": sorted(found.bad),
        "commit": found.commit,
        "shards": [plain(found.results[name]) for name in there],
        "errors": [plain(found.errors[name]) for name in sorted(found.errors)],
        **inputs_of(found.roots | roots),
    }
    outputs.write_json(directory.notes.place(JOB), job)
    if found.is_whole:
        storage.delete_file(directory.place(MANIFEST))
        storage.sync(directory.path)
    storage.delete_files(map(directory.notes.place, found.logs))
    storage.delete_files(map(directory.place, sorted(again)))
    delete_gone(directory, found.gone)


def finish(directory: EncodedDirectory, found: Contents) -> dict[str, Any]:
    """Deletes from quarantine what is no longer an error, then writes the manifest and returns it.
    `found`: what the directory holds. OutputError for a shard that has changed since it was
    written, and if another run has begun."""
    changed = found.results.keys() - found.finished.keys()
    if changed:
        path = directory.place(min(changed))
        raise OutputError(f"{path}: is not as it was written; run the job again")
    written = write_manifest(directory, found)
    directory.notes.delete()
    return written


def restore(directory: EncodedDirectory, found: Contents, tokenizer: Tokenizer) -> None:
    """Writes the dataset card and the tokenizer of a complete directory that has lost them.
    OutputError if another run has begun."""
    directory.notes.claim()
    directory.write_tokenizer(tokenizer)
    write_manifest(directory, found)
    directory.notes.delete()


def manifest(directory: EncodedDirectory, found: Contents) -> dict[str, Any]:
    """The manifest of what the directory holds."""
    shards = [plain(found.results[name]) for name in sorted(found.results)]
    errors = [plain(found.errors[name]) for name in sorted(found.errors)]
    totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
    sources = {}
    if found.sources is not None:
        sources = {"sources": [plain(note) for note in found.sources]}
        for name in totals.keys() - OF_SHARDS:
            totals[name] = sum(getattr(note, name) for note in found.sources)
    commit = {} if found.commit is None else {"commit": found.commit}
    return {
        "format": FORMAT,
        **directory.job,
        **totals,
        **commit,
        **sources,
        "shards": shards,
        "errors": errors,
    }


def write_manifest(
    directory: EncodedDirectory, found: Contents, gone: Collection[str] = ()
) -> dict[str, Any]:
    """Writes the tokenizer, the dataset card and then the manifest, after deleting from quarantine
    what is no longer an error. `gone`: shards that the manifest which is there has, and the new one
    has not."""
    written = manifest(directory, found)
    release(directory, found.bad - {error.input for error in found.errors.values()})
    directory.notes.lease.check()
    write_run(directory, found, gone)
    if not found.has_tokenizer:
        directory.keep_tokenizer()
    card = dataset_card(written, _columns(directory, found), laid_out_splits(written))
    write_card(directory, card)
    outputs.write_json(directory.place(MANIFEST), written, directory.notes.path)
    return written


def _columns(directory: EncodedDirectory, found: Contents) -> pa.Schema | None:
    """The columns of the first shard, which `datasets` takes for those of all."""
    name = min(found.results, default="")
    if not name.endswith(".parquet"):
        return None
    path = directory.place(name)
    with StoredFile(path) as file, bad_data(path, mend=outputs.MEND):
        return pq.read_schema(file.arrow())


def write_run(directory: EncodedDirectory, found: Contents, gone: Collection[str] = ()) -> None:
    """Writes where the inputs are of all shards that are noted, and of those that are `gone`."""
    noted = {*found.results, *found.errors, *gone}
    roots = {name: root for name, root in found.roots.items() if name in noted}
    outputs.write_json(directory.place(RUN), inputs_of(roots), directory.notes.path)


def delete_gone(directory: EncodedDirectory, names: Collection[str]) -> None:
    """Deletes shards, and then the file that says so."""
    if names:
        storage.delete_files(map(directory.place, sorted(names)))
        storage.delete_file(directory.notes.place(GONE))
