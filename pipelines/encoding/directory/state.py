"""A run begins in an output directory, and commits its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.encoding.directory.card import dataset_card, is_replaceable, split_shards
from pipelines.encoding.directory.contents import (
    DELETED,
    Contents,
    inputs_of,
    read_version,
)
from pipelines.encoding.directory.encoded_directory import (
    CARD,
    FORMAT,
    JOURNAL,
    MANIFEST,
    PLAN,
    RUN,
    STATE,
    TOKENIZER,
    EncodedDirectory,
)
from pipelines.encoding.directory.journals import list_journals
from pipelines.encoding.directory.quarantine import release
from pipelines.encoding.directory.status import OF_SHARDS, SUMS, plain
from pipelines.files import outputs, storage
from pipelines.files.reading import bad_data
from pipelines.files.storage import StoredFile
from wordpiece_core import Tokenizer
from wordpiece_core.errors import OutputError


def claim(directory: EncodedDirectory, found: Contents, tokenizer: Tokenizer) -> None:
    """Takes a directory for this run, and writes its state if it has none. OutputError if another
    run has changed it since `found` was read, which a lock prevents where there are locks."""
    directory.work.claim()
    if read_version(directory) != found.version or list_journals(directory) != [*found.journals]:
        raise OutputError(
            f"{directory.path}: another run has just written there; run this one again"
        )
    directory.write_tokenizer(tokenizer)
    if not found.is_complete:
        outputs.write_json(directory.work.place(STATE), manifest(directory, found))


def begin(
    directory: EncodedDirectory, found: Contents, tokenizer: Tokenizer, roots: Mapping[str, str]
) -> Contents:
    """Begins a run that completes the directory at its end. `roots`: the directories of the inputs
    to encode, by the names of their shards; older shards of these names are deleted."""
    claim(directory, found, tokenizer)
    results = {name: r for name, r in found.finished.items() if name not in roots}
    outdated = (found.results.keys() & found.sizes.keys()) - results.keys()
    begun = replace(
        found,
        results=results,
        deleted=found.deleted | outdated,
        roots={**found.roots, **roots},
    )
    commit(directory, begun, complete=False)
    sizes = {name: size for name, size in begun.sizes.items() if name not in begun.deleted}
    return replace(
        begun, sizes=sizes, uncommitted=frozenset(), deleted=frozenset(), is_complete=False
    )


def restore(directory: EncodedDirectory, found: Contents, tokenizer: Tokenizer) -> None:
    """Writes the dataset card and the tokenizer of a complete directory that has lost them."""
    claim(directory, found, tokenizer)
    commit(directory, found)


def commit(
    directory: EncodedDirectory,
    contents: Contents,
    *,
    complete: bool = True,
) -> dict[str, Any]:
    """Replaces the state of a directory, which is complete then unless `complete` is False, and
    deletes the journals. Shards to delete are named in the state first, and then deleted. Returns
    the state. OutputError if another run has begun."""
    state = manifest(directory, contents)
    directory.work.lease.check()
    if complete:
        known = {*contents.results, *contents.errors, *contents.deleted}
        write_roots(directory, {n: root for n, root in contents.roots.items() if n in known})
        release_good(directory, contents)
        for name, data in sidecars(directory, contents, state, _columns(directory, state)).items():
            outputs.write_bytes(directory.place(name), data, directory.work.path)
        outputs.write_json(directory.place(MANIFEST), state, directory.work.path)
    else:
        write_roots(directory, contents.roots)
        outputs.write_json(directory.work.place(STATE), state)
        if contents.is_complete:
            storage.delete_file(directory.place(MANIFEST))
            storage.sync(directory.path)
    directory.work.sweep(rf"{JOURNAL}|{PLAN}")
    if contents.deleted:
        storage.delete_files(map(directory.place, sorted(contents.deleted)))
        return commit(directory, replace(contents, deleted=frozenset()), complete=complete)
    return state


def sidecars(
    directory: EncodedDirectory,
    contents: Contents,
    state: dict[str, Any],
    columns: pa.Schema | None,
) -> dict[str, bytes]:
    """The files that a complete directory with this state lacks, by name: its tokenizer and its
    dataset card. `columns`: of the shards, if they are Parquet."""
    files = {} if contents.has_tokenizer else {TOKENIZER: directory.tokenizer_bytes()}
    card = dataset_card(state, columns, split_shards(state))
    return files | ({CARD: card} if is_replaceable(directory, card) else {})


def release_good(directory: EncodedDirectory, contents: Contents) -> None:
    """Deletes inputs from quarantine that have no error any more."""
    release(directory, contents.bad - {error.input for error in contents.errors.values()})


def write_roots(directory: EncodedDirectory, roots: Mapping[str, str]) -> None:
    """Writes where the inputs are."""
    outputs.write_json(directory.place(RUN), inputs_of(roots), directory.work.path)


def manifest(directory: EncodedDirectory, contents: Contents) -> dict[str, Any]:
    """The state of a directory with these contents."""
    shards = [plain(contents.results[name]) for name in sorted(contents.results)]
    errors = [plain(contents.errors[name]) for name in sorted(contents.errors)]
    totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
    more: dict[str, Any] = {}
    if contents.commit is not None:
        more["commit"] = contents.commit
    if contents.sources is not None:
        more["sources"] = [plain(source) for source in contents.sources]
        for name in totals.keys() - OF_SHARDS:
            totals[name] = sum(getattr(source, name) for source in contents.sources)
    if contents.deleted:
        more[DELETED] = sorted(contents.deleted)
    return {
        "format": FORMAT,
        **directory.job,
        **totals,
        **more,
        "shards": shards,
        "errors": errors,
    }


def _columns(directory: EncodedDirectory, state: dict[str, Any]) -> pa.Schema | None:
    """The columns of the first shard, which `datasets` takes for those of all shards."""
    name = state["shards"][0]["name"] if state["shards"] else ""
    return read_columns(directory.place(name)) if name.endswith(".parquet") else None


def read_columns(path: str) -> pa.Schema:
    """The columns of a shard of Parquet."""
    with StoredFile(path) as file, bad_data(path, fix=outputs.FIX):
        return pq.read_schema(file.arrow())
