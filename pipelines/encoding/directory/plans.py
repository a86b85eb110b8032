"""Plans of `encode`: the shards to encode, in files (`pipelines.running.plan`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.notes import ShardError
from pipelines.files.input_files import InputFile
from pipelines.files.outputs import damaged
from pipelines.files.storage import in_parallel
from pipelines.running import plan
from pipelines.running.plan import Plan


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """A shard as it was found before the job. `rows`: their number, if it is known. `bytes`: the
    approximate size of the text. `finished`: whether an earlier run finished it. `error`: why it
    cannot be encoded."""

    file: InputFile
    name: str
    rows: int | None = None
    bytes: int = 0
    finished: bool = False
    error: ShardError | None = None


def write_plan(
    directory: EncodedDirectory,
    shards: Sequence[PlannedShard],
    number: int = 0,
    stores: Sequence[str] = (),
) -> Plan:
    """Writes the shards to encode, which have no errors. `number`: how many plans of this run there
    are already. `stores`: see `pipelines.running.plan.write_plan`. OutputError if another run has
    begun."""
    path = directory.notes.place(f"plan-{directory.run}-{number:06}.jsonl")
    return plan.write_plan(path, directory.notes.lease, shards, lambda s: 1 + s.file.size, stores)


def planned(fields: dict[str, Any]) -> PlannedShard:
    """The shard of an element of a plan."""
    return PlannedShard(InputFile(**fields.pop("file")), **fields)


def planned_roots(directory: EncodedDirectory, names: Sequence[str]) -> dict[str, str]:
    """The directories of the inputs of planned shards, by the names of the shards. `names`: those
    of the plans. InputError for one that is damaged."""

    def read(name: str) -> list[PlannedShard]:
        path = directory.notes.place(name)
        try:
            return [planned(fields) for fields in plan.read_plan(path, directory.notes.lease)]
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(path) from error

    shards = chain.from_iterable(in_parallel(read, names))
    return {shard.name: shard.file.root for shard in shards}
