"""Plans: what is to be encoded, in files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.files import outputs, storage
from pipelines.files.input_files import InputFile
from pipelines.files.storage import in_parallel

PLANNED_AT_ONCE = 1000  # shards in a file of the plan


def write_plan(
    directory: EncodedDirectory, shards: Sequence[tuple[InputFile, str]], first: int = 0
) -> list[str]:
    """Writes what is to be encoded: the inputs and the names of their shards. Returns the names of
    the files, for `read_plan`. `first`: the number of the first one. OutputError if another run has
    begun."""
    notes = directory.notes
    notes.check_lease()
    starts = range(0, len(shards), PLANNED_AT_ONCE)

    def write(start: int) -> str:
        name = f"plan-{directory.run}-{first + start // PLANNED_AT_ONCE:06}.jsonl"
        some = shards[start : start + PLANNED_AT_ONCE]
        lines = (json.dumps([vars(file), shard], ensure_ascii=False) for file, shard in some)
        outputs.write_bytes(notes.place(name), "".join(f"{x}\n" for x in lines).encode())
        return name

    return in_parallel(write, starts)


def read_plan(
    name: str, directory: EncodedDirectory, may_be_gone: bool = False
) -> Iterator[tuple[InputFile, str]]:
    """The inputs and the names of their shards in a file of the plan. OutputError if another run
    has begun. `may_be_gone`: the file is deleted when its shards have been committed."""
    try:
        data = storage.read_bytes(directory.notes.place(name))
    except storage.MissingError:
        directory.notes.check_lease()
        if may_be_gone:
            return
        raise
    for line in data.splitlines():
        file, shard = json.loads(line)
        yield InputFile(**file), shard
