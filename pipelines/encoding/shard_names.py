"""Names of shards as on the Hub, and their splits."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.io.datasets_files import splits

TRAIN = "train"
PARQUET, MEGATRON, DS, NPY = "parquet", "megatron", "ds", "npy"
ENDINGS = {  # of the files of a shard; the first file has the ids
    PARQUET: [".parquet"],
    MEGATRON: [".bin", ".idx"],
    DS: [".ds", ".ds.index", ".ds.metadata"],
    NPY: [".npy", ".csv.gz"],
}
DOCUMENT_OFFSETS = "document_offsets"
"""The folder of offsets in the format npy, where no `*.npy` finds them among the files of ids."""
_SECOND_FILES = (".idx", ".index", ".metadata", ".csv.gz")


def shard_files(format: str, shard: str) -> list[str]:
    """Return the names of the files of a shard. The first file has the ids.

    >>> shard_files("npy", "data/train-00000-of-00001")[1:]
    ['data/train-00000-of-00001.csv.gz', 'data/document_offsets/train-00000-of-00001.npy']
    """
    names = [shard + ending for ending in ENDINGS[format]]
    if format == NPY:
        folder, slash, name = shard.rpartition("/")
        names.append(f"{folder}{slash}{DOCUMENT_OFFSETS}/{name}.npy")
    return names


def has_ids(name: str) -> bool:
    """Return True for the file of a shard that has the ids."""
    is_offsets = name.endswith(".npy") and name.split("/")[-2:-1] == [DOCUMENT_OFFSETS]
    return not is_offsets and not name.endswith(_SECOND_FILES)


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
