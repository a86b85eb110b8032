"""Plans of `encode`: the shards to encode, in files (`pipelines.running.plan`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.status import ShardError
from pipelines.files.input_files import InputFile
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
    path = directory.work.place(f"plan-{directory.run}-{number:06}.jsonl")
    return plan.write_plan(path, directory.work.lease, shards, lambda s: 1 + s.file.size, stores)


def planned(fields: dict[str, Any]) -> PlannedShard:
    """The shard of an element of a plan."""
    return PlannedShard(InputFile(**fields.pop("file")), **fields)
