"""Files that the library `datasets` reads in a directory, and the splits in their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

STATE, INFO, DICT = "state.json", "dataset_info.json", "dataset_dict.json"
NO_DATA = frozenset({"config.json", INFO, "dataset_infos.json", DICT})
"""Names of files that describe data. They are read only if they are given by name."""
_CACHE = re.compile(r"cache-[^/]*\.arrow|indices\.arrow")
"""Caches that `map`, `filter` and `shuffle` leave next to the data. They repeat its rows."""
_KEYWORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
USUAL_SPLITS = tuple(_KEYWORDS)
_SEPARATOR = "[-._ 0-9]"
_SHARDED = re.compile(r"data/(?P<split>[^/]*)-[0-9]{5}-of-[0-9]{5}[^/]*\.[^/]*")


def _patterns(template: str) -> dict[str, re.Pattern[str]]:
    return {
        split: re.compile(template.format(keyword="|".join(words), sep=_SEPARATOR))
        for split, words in _KEYWORDS.items()
    }


_IN_DIRECTORY = _patterns("(?:.*/)?(?:[^/]*{sep})?(?:{keyword})(?:{sep}[^/]*)?/.*")
_IN_FILE = _patterns("(?:.*/)?(?:[^/]*{sep})?(?:{keyword}){sep}[^/]*")


def not_data(
    names: Iterable[str], read_json: Callable[[str], Any], *, wants_caches: bool = False
) -> set[str]:
    """Return the files in a directory that `datasets` does not read as data. Of a directory that
    `save_to_disk` wrote, `load_from_disk` reads only the files that are listed.

    Args:
        names: The relative names of all files in the directory.
        read_json: Returns the JSON of a file by its name; None if it is not JSON.
        wants_caches: Caches are data, because they were asked for by name.
    """
    known, found = {*names}, set[str]()
    for name in known:
        folder, file = _split(name)
        if _CACHE.fullmatch(file) and not wants_caches:
            found.add(name)
        if file == STATE and folder + INFO in known:
            found |= {name} | _unlisted(known, folder, read_json(name))
        if file == DICT:
            found |= _other_splits(known, folder, read_json(name))
    return found


def _unlisted(known: set[str], folder: str, state: Any) -> set[str]:
    """Return the files of a saved dataset that its state does not list."""
    listed = state.get("_data_files") if isinstance(state, dict) else None
    if not isinstance(listed, list):
        return set()
    data = {folder + str(file.get("filename")) for file in listed if isinstance(file, dict)}
    return {name for name in known if _split(name)[0] == folder} - data


def _other_splits(known: set[str], folder: str, value: Any) -> set[str]:
    """Return the files of saved datasets that are in no split of a saved `DatasetDict`."""
    splits = value.get("splits") if isinstance(value, dict) else None
    if not isinstance(splits, list):
        return set()
    saved = {_split(name)[0] for name in known if _split(name)[1] == STATE}
    others = {f for f in saved if f.startswith(folder) and f != folder}
    others -= {f"{folder}{split}/" for split in splits}
    return {name for name in known if _split(name)[0] in others}


def _split(name: str) -> tuple[str, str]:
    """Return the directory of a file, with its slash, and the name in it."""
    folder, slash, file = name.rpartition("/")
    return folder + slash, file


def splits(names: Sequence[str]) -> list[str | None]:
    """Return the split of each file, as `load_dataset(DIR)` finds it in the names of all files.

    Names like `data/NAME-00000-of-00004.parquet` come first, then directories with a keyword such
    as `train` or `test`, then files with one. None: the name of the file says no split.

    >>> splits(["train.jsonl", "x/test-1.jsonl", "more.jsonl"])
    ['train', 'test', None]
    >>> splits(["data/books-00000-of-00001.parquet", "train.parquet"])
    ['books', None]
    """
    sharded = [_SHARDED.fullmatch(name) for name in names]
    if any(sharded):
        return [match["split"] if match else None for match in sharded]
    for patterns in (_IN_DIRECTORY, _IN_FILE):
        found = [
            next((split for split, pattern in patterns.items() if pattern.fullmatch(name)), None)
            for name in names
        ]
        if any(found):
            return found
    return [None] * len(names)
