"""What the tasks of a layout have made, and how it becomes the shards of the dataset.

How many shards there are is known when all are made, and their names say it. So they are made in
the work directory. A task is done when it has its file of notes. Then the notes of all shards are
written to the output, with their names, and the files are moved there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.logs import write_notes
from pipelines.encoding.directory.notes import ShardResult, of_object, plain
from pipelines.encoding.options import ShardOptions
from pipelines.files import outputs, storage
from pipelines.files.filesystems import join
from pipelines.layout.deal import ShardTask, shard_name
from pipelines.layout.formats import ENDING_BESIDE
from pipelines.layout.rows import Rows
from wordpiece_core.uri import is_uri

MADE_JSON = "{:05}.json"
MOST_MOVED = 5 << 30  # bytes of a file that a store gives another name


@dataclass(frozen=True)
class Layout:
    """How shards are made. `options`: as they were asked for; `format`: of the files; `size`: the
    most bytes of a shard of more than one row; `splits`: their names; `digest`: of the inputs and
    options, which the notes of shards hold."""

    dataset: EncodedDirectory
    options: ShardOptions
    format: str
    size: int
    splits: Sequence[str]
    digest: str
    rows: Rows

    @property
    def endings(self) -> list[str]:
        """What the names of the files of a shard end with. The first one has the ids."""
        if self.format == "parquet":
            return [".parquet"]
        return [".bin", ENDING_BESIDE[self.format]]


def made_name(task: int, number: int, ending: str) -> str:
    """The name of a file in the work directory."""
    return f"{task:05}-{number:05}{ending}"


def made_json(made: Sequence[Sequence[ShardResult]]) -> dict[str, Any]:
    """The contents of the file of notes of a task: for each shard, the notes of its files."""
    return {"shards": [[plain(note) for note in notes] for notes in made]}


def read_made(folder: str, task: int) -> list[list[ShardResult]]:
    """The notes of the shards of a task that is done."""
    path = join(folder, MADE_JSON.format(task))
    found = outputs.read_json(path, of_object)
    shards = found.get("shards") if isinstance(found, dict) else None
    if not isinstance(shards, list) or not shards:
        raise outputs.damaged(path)
    for notes in shards:
        if not isinstance(notes, list) or not all(isinstance(note, ShardResult) for note in notes):
            raise outputs.damaged(path)
    return shards


def noted_made(notes: Iterable[ShardResult], layout: Layout) -> dict[int, list[list[ShardResult]]]:
    """By the numbers of tasks, the notes of their shards, from those of shards that have their
    names. Tasks of which a shard is missing are left out."""
    found: dict[int, dict[int, dict[str, ShardResult]]] = defaultdict(lambda: defaultdict(dict))
    shards: dict[int, int] = {}
    for note in notes:
        if note.source.get("layout") == layout.digest:
            task, number, shards[task] = note.source["place"]
            ending = note.name[note.name.rindex(".") :]
            found[task][number][ending] = replace(note, name="", input="", source={})
    return {
        task: [[files[ending] for ending in layout.endings] for _, files in sorted(of_task.items())]
        for task, of_task in found.items()
        if sum(map(len, of_task.values())) == shards[task] * len(layout.endings)
    }


@dataclass(frozen=True)
class MadeFile:
    """A file of a shard. `made`: its name in the work directory; `note`: has that in the output."""

    task: int
    made: str
    note: ShardResult


def made_files(
    tasks: Sequence[ShardTask], made: Mapping[int, Sequence[Sequence[ShardResult]]], layout: Layout
) -> list[MadeFile]:
    """The files of the dataset. Shards without rows are left out, unless there would be none."""
    shards = [
        (task, number, notes)
        for task in tasks
        for number, notes in enumerate(made[task.number])
        if notes[0].rows
    ]
    if tasks and not shards and layout.format == "parquet":
        shards = [(tasks[0], 0, made[tasks[0].number][0])]
    of_tasks = Counter(task.number for task, *_ in shards)
    of_splits = Counter(task.split for task, *_ in shards)
    before: Counter[int] = Counter()
    files = []
    for task, number, notes in shards:
        split = layout.splits[task.split]
        name = shard_name(split, before[task.split], of_splits[task.split])
        before[task.split] += 1
        place = [task.number, number, of_tasks[task.number]]
        for ending, note in zip(layout.endings, notes, strict=True):
            source = {"layout": layout.digest, "place": place}
            noted = replace(note, name=name + ending, input=name + ending, source=source)
            files.append(MadeFile(task.number, made_name(task.number, number, ending), noted))
    return files


def publish(files: Sequence[MadeFile], layout: Layout) -> None:
    """Notes all files, and gives those in the work directory their names. It can be done again."""
    dataset, folder = layout.dataset, layout.rows.work.folder("made")
    write_notes(dataset, *(file.note for file in files))
    there = outputs.file_sizes(folder)

    def move(file: MadeFile) -> None:
        source, target = join(folder, file.made), dataset.place(file.note.name)
        if is_uri(target) and file.note.output_bytes > MOST_MOVED:
            outputs.copy(source, target)
            storage.delete_file(source)
        else:
            storage.move(source, target)

    storage.in_parallel(move, [file for file in files if file.made in there])
    storage.sync(dataset.path)
