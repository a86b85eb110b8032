"""Names of the shards of a resharded dataset, as on the Hub."""


def shard_name(split: str, number: int, shards: int) -> str:
    """The name of a shard, without its ending.

    >>> shard_name("train", 0, 4)
    'train-00000-of-00004'
    """
    return f"{split}-{number:05}-of-{shards:05}"


def split_of_shard(name: str) -> str:
    """The split of a shard by its name.

    >>> split_of_shard("data/train-00000-of-00004.parquet")
    'train'
    """
    return name.rpartition("/")[2].rpartition("-of-")[0].rpartition("-")[0]
