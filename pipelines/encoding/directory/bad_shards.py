"""Inputs that could not be encoded. With `--on-error skip` the manifest lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.encoding.directory.status import ShardError
from pipelines.io.input_files import InputFile
from wordpiece_core.errors import InputError, unspelled


@dataclass(frozen=True)
class BadShard:
    """An input that could not be read or encoded."""

    file: InputFile
    error: ShardError

    @property
    def message(self) -> str:
        """What is wrong, with the path of the file."""
        return self.file.path + unspelled(self.error.message.removeprefix(self.file.name))


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
