"""Inputs that could not be encoded, and their quarantine in `_errors`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pipelines.encoding.directory.encoded_directory import BAD_SHARDS, EncodedDirectory
from pipelines.encoding.directory.journals import Journal
from pipelines.encoding.directory.status import ShardError
from pipelines.files import outputs, storage
from pipelines.files.filesystems import inside
from pipelines.files.input_files import InputFile
from pipelines.files.lease import MARKER
from pipelines.files.storage import in_parallel
from wordpiece_core.errors import InputError, StorageError


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
        first = errors[0].message
        if shards == 1:
            message = first
        elif len(errors) == 1:
            message = f"{first} (1 of {shards:,} shards; a rerun keeps the others)"
        else:
            names = ", ".join(error.file.path for error in errors[:10])
            more = ", ..." if len(errors) > 10 else ""
            message = (
                f"{len(errors):,} of {shards:,} shards cannot be encoded: {names}{more}; a rerun"
                " keeps the others"
            )
        super().__init__(message)


def quarantine(directory: EncodedDirectory, errors: Sequence[BadShard]) -> None:
    """Copies inputs, and their errors, to quarantine. They are recorded first, so that a later run
    can delete them from there. OutputError if another run has begun."""
    if not errors:
        return
    directory.work.lease.check()
    Journal().record(directory, [bad.error for bad in errors])
    if not directory.errors.check():
        directory.errors.claim(directory.work.path)
    in_parallel(lambda bad: _copy(directory, bad), errors)


def _copy(directory: EncodedDirectory, bad: BadShard) -> None:
    error, file, scratch = bad.error, bad.file, directory.work.path
    copied = True
    copy = _place(directory, error.input, ".bad")
    try:
        outputs.copy(file.path, copy, scratch)
    except StorageError as fault:
        if fault.path != file.path:
            raise
        copied = False  # the disk of the input may be broken
        storage.delete_file(copy)
    record = {
        "input": error.input,
        "row_group": error.row_group,
        "message": error.message,
        "copied": copied,
    }
    outputs.write_json(_place(directory, error.input, ".json"), record, scratch)


def _place(directory: EncodedDirectory, name: str, ending: str) -> str:
    return inside(directory.errors.place(BAD_SHARDS), name + ending)


def release(directory: EncodedDirectory, names: Collection[str]) -> None:
    """Deletes inputs from quarantine, by their relative names, and quarantine if it is empty."""
    errors = directory.errors
    if not errors.check():
        return
    endings = (".bad", ".json")
    storage.delete_files(_place(directory, name, end) for name in sorted(names) for end in endings)
    if outputs.list_directory(errors.path, recursive=True) == [MARKER]:
        errors.delete()
