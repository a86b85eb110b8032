"""What `encode --follow` does in an output directory, which is complete all the time: a run begins,
and shards are committed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pipelines.encoding.directory.bad_shards import quarantined
from pipelines.encoding.directory.contents import Contents, read_contents
from pipelines.encoding.directory.encoded_directory import (
    GONE,
    JOB,
    LOG,
    PLAN,
    EncodedDirectory,
)
from pipelines.encoding.directory.lifecycle import delete_gone, write_manifest, write_run
from pipelines.encoding.directory.notes import AGAIN
from pipelines.files import outputs
from wordpiece_core import Tokenizer


def begin_following(directory: EncodedDirectory, tokenizer: Tokenizer) -> Contents:
    """Begins a run that follows its inputs: the directory is complete, with the shards that are
    finished, and stays so. Inputs that could not be encoded, but are not in quarantine, are met
    again. Returns what the directory holds; what is uncommitted waits for a commit."""
    directory.notes.claim()
    found = read_contents(directory)
    directory.write_tokenizer(tokenizer)
    kept = quarantined(directory, found.errors.values())
    errors = {n: e for n, e in found.errors.items() if e.cause == AGAIN or e.input in kept}
    found = replace(found, results=found.finished, errors=errors)
    committed = {k: v for k, v in found.results.items() if k not in found.uncommitted}
    write_manifest(directory, replace(found, results=committed))
    delete_gone(directory, found.gone)
    directory.notes.sweep(rf"{JOB}|{GONE}" if found.uncommitted else rf"{JOB}|{GONE}|{LOG}|{PLAN}")
    return replace(found, has_tokenizer=True)


def commit(directory: EncodedDirectory, found: Contents, gone: Collection[str]) -> None:
    """Replaces the manifest. `gone`: shards to delete, which `found` has not. OutputError if
    another run has begun."""
    if gone:
        outputs.write_json(directory.notes.place(GONE), {"shards": sorted(gone)})
    write_manifest(directory, found, gone)
    if gone:
        write_run(directory, found)
        delete_gone(directory, gone)
    directory.notes.sweep(rf"{LOG}|{PLAN}")
