"""Files as earlier versions of this program named them, in a directory that has those of today.

What is deleted is known to be of this program: by what is in it, and by the manifest beside it.
"""

from __future__ import annotations

from collections.abc import Collection

from pipelines.encoding.directory.encoded_directory import (
    CARD,
    EARLIER,
    FORMAT,
    MANIFEST,
    RUN,
    EncodedDirectory,
)
from pipelines.files import storage
from pipelines.files.outputs import read_json, read_parquet
from pipelines.following.commits import COMMITS
from wordpiece_core.errors import InputError

CARD_OF_STREAMS = b"""\
configs:
- config_name: default
  data_files:
  - split: train
    path: "**/[!_]*.parquet"
"""  # what `encode --follow` wrote, for `datasets`
COLUMNS_OF_COMMITS = ["epoch", "committed", "files"]  # and others


def delete_earlier(directory: EncodedDirectory, names: Collection[str]) -> None:
    """Deletes those of the files that this program has written, and the manifest last."""
    names = {name for name in names if _is_ours(directory, name)}
    manifest = names & {EARLIER[MANIFEST]}
    storage.delete_files(directory.place(name) for name in sorted(names - manifest))
    storage.delete_files(map(directory.place, manifest))


def _is_ours(directory: EncodedDirectory, name: str) -> bool:
    path = directory.place(name)
    if name == EARLIER[CARD]:
        return storage.read_bytes(path) == CARD_OF_STREAMS
    try:
        if name == EARLIER[COMMITS]:
            columns: list[str] = read_parquet(path).column_names
            return columns[:3] == COLUMNS_OF_COMMITS
        found = read_json(path)
    except InputError:
        return False
    if not isinstance(found, dict):
        return False
    if name == EARLIER[RUN]:
        return found.keys() == {"inputs"}
    same = {"format": FORMAT, **directory.job}
    return all(found.get(key) == value for key, value in same.items()) and "shards" in found
