"""Inputs that could not be encoded, and their quarantine in `_errors`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipelines.encoding.directory.encoded_directory import BAD_SHARDS, EncodedDirectory
from pipelines.encoding.directory.status import ShardError
from pipelines.files import outputs
from pipelines.files.input_files import InputFile
from pipelines.files.lease import MARKER
from wordpiece_core import storage
from wordpiece_core.errors import InputError, StorageError
from wordpiece_core.storage import in_parallel
from wordpiece_core.uri import inside

ENDINGS = (".bad", ".json")


@dataclass(frozen=True)
class BadShard:
    """An input that could not be read or encoded."""

    file: InputFile
    error: ShardError

    @property
    def message(self) -> str:
        """What is wrong, with the path of the file."""
        return self.file.path + self.error.message.removeprefix(self.file.name)


class ShardsError(InputError):
    """Some shards could not be encoded. `errors`: the bad shards."""

    def __init__(self, errors: Sequence[BadShard], shards: int) -> None:
        self.errors = list(errors)
        message = errors[0].message
        if len(errors) > 1:
            names = ", ".join(error.file.path for error in errors[:10])
            more = ", ..." if len(errors) > 10 else ""
            message = (
                f"{len(errors):,} of {shards:,} shards cannot be encoded: {names}{more}; a rerun"
                " keeps the others"
            )
        elif shards > 1:
            message += f" (1 of {shards:,} shards; a rerun keeps the others)"
        super().__init__(message)


def quarantine(directory: EncodedDirectory, errors: Sequence[BadShard]) -> None:
    """Copies inputs, and their errors, to quarantine. OutputError if another run has begun."""
    if not errors:
        return
    directory.work.lease.check()
    if not directory.errors.check():
        directory.errors.claim(directory.work.path)
    in_parallel(lambda bad: _copy(directory, bad), errors)


def _copy(directory: EncodedDirectory, bad: BadShard) -> None:
    error, file, scratch = bad.error, bad.file, directory.work.path
    copy, record = (_place(directory, error.input, ending) for ending in ENDINGS)
    copied = True
    try:
        outputs.copy(file.path, copy, scratch)
    except StorageError as fault:
        if fault.path != file.path:
            raise
        copied = False  # the disk of the input may be broken
        storage.delete_file(copy)
    about = {"row_group": error.row_group, "message": error.message, "copied": copied}
    outputs.write_json(record, {"input": error.input, **about}, scratch)


def _place(directory: EncodedDirectory, name: str, ending: str) -> str:
    return inside(directory.errors.place(BAD_SHARDS), name + ending)


def release(directory: EncodedDirectory, errors: Iterable[ShardError]) -> None:
    """Deletes inputs from quarantine that have none of these errors, and quarantine if it is
    empty."""
    owned, inputs = directory.errors, {error.input for error in errors}
    entries = storage.entries(owned.path)
    if not owned.check(entries):
        return
    names = [entry.name for entry in entries if entry.kind == "file" and entry.name != MARKER]
    kept = {f"{BAD_SHARDS}/{name}{ending}" for name in inputs for ending in ENDINGS}
    storage.delete_files(owned.place(name) for name in names if name not in kept)
    if kept.isdisjoint(names):
        owned.delete()
