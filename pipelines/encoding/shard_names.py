"""Names of shards as on the Hub, and their splits."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.io.datasets_files import splits

TRAIN = "train"
SECOND_FILES = (".idx", ".index", ".metadata")  # endings of files that accompany a file of ids


def shard_name(split: str, number: int, shards: int) -> str:
    """Return the name of a shard without its ending.

    >>> shard_name("train", 0, 4)
    'train-00000-of-00004'
    """
    return f"{split}-{number:05}-of-{shards:05}"


def split_of_shard(name: str) -> str:
    """Return the split of a shard by its name.

    >>> split_of_shard("data/train-00000-of-00004.parquet")
    'train'
    """
    return name.rpartition("/")[2].rpartition("-of-")[0].rpartition("-")[0]


def splits_of_shards(names: Sequence[str]) -> list[str]:
    """Return the split of each shard as `load_dataset` finds it; `train` if its name has no split.

    >>> splits_of_shards(["test-1.parquet", "more.parquet"])
    ['test', 'train']
    """
    return [split or TRAIN for split in splits(names)]
