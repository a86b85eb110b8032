"""What the tasks of a resharding have made, and the names of the shards.

The name of a shard says how many there are, which is known when all are made. So they are made in
the work directory. A task is done when the file with its results is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipelines.encoding.directory.status import ShardResult, checked, of_object, plain
from pipelines.encoding.resharding.assign import ShardTask
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.shard_names import shard_name
from pipelines.io import outputs
from wordpiece_core.uri import join

MADE_JSON = "{:05}.json"


def made_name(task: int, number: int, ending: str) -> str:
    """The name of a file in the work directory."""
    return f"{task:05}-{number:05}{ending}"


def made_path(folder: str, task: int) -> str:
    """The path of the results of a task."""
    return join(folder, MADE_JSON.format(task))


def write_made(folder: str, task: int, made: Sequence[Sequence[ShardResult]]) -> None:
    """Writes the results of a task, for each shard those of its files: then the task is done."""
    shards = [[plain(result) for result in results] for results in made]
    outputs.write_json(made_path(folder, task), {"shards": shards})


def read_made(folder: str, task: int) -> list[list[ShardResult]]:
    """The results of the shards of a task that is done."""
    path = made_path(folder, task)
    found = outputs.read_json(path, of_object)
    shards = found.get("shards") if isinstance(found, dict) else None
    if not isinstance(shards, list) or not shards:
        raise outputs.damaged(path)
    return [checked(results, path, ShardResult) for results in shards]


def is_complete(
    task: int, made: Sequence[Sequence[ShardResult]], sizes: Mapping[str, int], target: Target
) -> bool:
    """Whether all files of a task exist. `sizes`: of all files that are made, by name."""
    return all(
        sizes.get(made_name(task, number, ending)) == result.output_bytes
        for number, results in enumerate(made)
        for ending, result in zip(target.endings, results, strict=True)
    )


def named_shards(
    tasks: Sequence[ShardTask], made: Mapping[int, Sequence[Sequence[ShardResult]]], target: Target
) -> dict[str, ShardResult]:
    """The results of the files of a dataset, with their names there, by the names of the files that
    are made. Shards without rows are left out, unless there would be none."""
    shards = [
        (task, number, results)
        for task in tasks
        for number, results in enumerate(made[task.number])
        if results[0].rows
    ]
    if tasks and not shards and target.format == "parquet":
        shards = [(tasks[0], 0, made[tasks[0].number][0])]
    of_splits = Counter(task.split for task, *_ in shards)
    before: Counter[int] = Counter()
    files = {}
    for task, number, results in shards:
        name = shard_name(target.splits[task.split], before[task.split], of_splits[task.split])
        name = target.directory + name
        before[task.split] += 1
        for ending, result in zip(target.endings, results, strict=True):
            file = replace(result, name=name + ending, input=name + ending)
            files[made_name(task.number, number, ending)] = file
    return files
