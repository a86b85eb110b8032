"""Find inputs: files, globs and directories, and the names of their shards."""

import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import accumulate
from typing import Any
from urllib.parse import quote, unquote

from pipelines.io.datasets_files import NO_DATA, STATE, not_data, splits
from wordpiece_core import storage
from wordpiece_core.errors import InputError, SkippedFilesWarning
from wordpiece_core.storage import Entry, open_filesystem
from wordpiece_core.uri import is_uri, join, split_query

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # value of a key that is null
PIPE = "because it is a pipe or a device; write its content to a file"
NOT_READ_BY_DATASETS = "because they are caches or no part of the dataset that was saved"
_TEXTS = {
    **dict.fromkeys(("txt", "text"), "text"),
    **dict.fromkeys(("jsonl", "ndjson", "jsonlines", "json"), "jsonl"),
    "csv": "csv",
    "tsv": "tsv",
}
_COMPRESSIONS = {
    "": None,
    **dict.fromkeys((".gz", ".gzip"), "gzip"),
    **dict.fromkeys((".zst", ".zstd"), "zstd"),
    ".bz2": "bz2",
    ".lz4": "lz4",
    ".xz": "xz",
}
ENDINGS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), ("parquet", None)),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ("arrow", None)),
    **{
        f".{name}{ending}": (kind, compression)
        for name, kind in _TEXTS.items()
        for ending, compression in _COMPRESSIONS.items()
    },
}
"""Formats and compressions of files by the endings of their names."""

SMALL_BYTES = 1 << 20  # smaller files are read and encoded on one thread, which starts faster
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class InputFile:
    """A file to read. Its shard is named after `name`, its relative name."""

    path: str  # absolute, or a URI
    name: str
    format: str  # "parquet", "arrow", "text", "jsonl", "csv" or "tsv"
    compression: str | None  # "gzip", "zstd", "bz2", "lz4" or "xz"
    size: int  # bytes
    modified: int | None  # nanoseconds since 1970; of stores, whole seconds
    quoting: bool = True  # True if fields of CSV and TSV may be quoted
    keys: tuple[tuple[str, str | int | None], ...] = ()
    """Keys and values in the names of its directories, such as `lang=de`."""

    def __post_init__(self) -> None:
        keys = tuple((name, value) for name, value in self.keys)  # JSON has lists
        object.__setattr__(self, "keys", keys)

    @property
    def is_small(self) -> bool:
        """True if several threads would take longer for the file than one."""
        return self.size <= SMALL_BYTES

    @property
    def root(self) -> str:
        """Directory that `name` is relative to."""
        base, query = split_query(self.path)
        if not is_uri(self.path):
            return base.removesuffix(self.name).rstrip("/") or "/"
        return base.removesuffix(quote(self.name)).rstrip("/") + query


def resolve(
    patterns: Sequence[str],
    own: Sequence[str] = (),
    *,
    may_be_empty: bool = False,
    quoting: bool = True,
) -> list[InputFile]:
    """Return the files that paths, globs (`*`, `?`, `[]`, `**`) and directories name, sorted by
    path. They may be local paths or URIs. Each path is listed once; two links to one file are two
    files.

    Directories and globs skip names that start with `_` or `.`, and with a SkippedFilesWarning
    unknown endings and files that `datasets` does not read as data.

    Args:
        own: Directories that the job writes. Files below are skipped, unless the pattern itself
            leads there.
        may_be_empty: True if a directory or a glob may have no files yet.
        quoting: False if quotes in CSV and TSV are text.

    Raises InputError for a broken link, and for a pattern without files.
    """
    found: dict[str, InputFile] = {}
    realpath: Callable[[str], str] = cache(os.path.realpath)
    found_by = storage.in_parallel(lambda pattern: _matches(pattern, may_be_empty), patterns)
    for pattern, (files, *_) in zip(patterns, found_by, strict=True):
        apart = tuple(_plain(path) for path in own if not leads_into(pattern, path))
        others = [file for file in files if not _is_own(file.path, apart, realpath)]
        if not others and not may_be_empty:
            raise InputError(f"{pattern}: contains only output of this job; choose its inputs")
        for file in others:
            known = found.get(file.path)
            if known is None or len(known.name) < len(file.name):
                found[file.path] = file
    skipped = sorted(path for _, others, _ in found_by for path in others)
    if skipped:
        warnings.warn(SkippedFilesWarning(skipped), stacklevel=2)
    caches = sorted(path for *_, others in found_by for path in others if path not in found)
    if caches:
        warnings.warn(SkippedFilesWarning(caches, NOT_READ_BY_DATASETS), stacklevel=2)
    files = [replace(file, quoting=quoting) for file in found.values()]
    return sorted(with_keys(files), key=lambda file: file.path)


def with_keys(files: Sequence[InputFile]) -> list[InputFile]:
    """Return files with the keys in the names of their directories. As in pyarrow, a key is an
    integer if all its values have 32 bits.

    >>> name = "year=2024/lang=de/a.txt"
    >>> with_keys([InputFile(f"/in/{name}", name, "text", None, 1, 1)])[0].keys
    (('year', 2024), ('lang', 'de'))
    """
    parts = [
        [part.partition("=") for part in file.name.split("/")[:-1] if part.find("=") > 0]
        for file in files
    ]
    if not any(parts):
        return list(files)
    read = [{unquote(key): unquote(value) for key, _, value in some} for some in parts]
    found: dict[str, list[str]] = {}
    for keys in read:
        for key, value in keys.items():
            found.setdefault(key, []).append(value)
    integers = {key for key, values in found.items() if all(map(_is_int32_or_none, values))}

    def of_type(key: str, value: str) -> str | int | None:
        return None if value == NO_VALUE else int(value) if key in integers else value

    return [
        replace(file, keys=tuple((key, of_type(key, value)) for key, value in keys.items()))
        for file, keys in zip(files, read, strict=True)
    ]


def _is_int32_or_none(value: str) -> bool:
    if value == NO_VALUE:
        return True
    return bool(re.fullmatch(r"-?[0-9]+", value)) and -(2**31) <= int(value) < 2**31


def with_splits_in_names(files: Sequence[InputFile]) -> list[InputFile]:
    """Return the files. If only the given directories name splits, like `train/` and `test/`, the
    names of files begin with these directories."""
    longer = [_with_one_more(file) for file in files]
    of_names, of_longer = ({*splits([file.name for file in some])} for some in (files, longer))
    return longer if len(of_names) == 1 < len(of_longer) else list(files)


def output_name(file: InputFile) -> str:
    """Return the name of the shard of a file: the name of the file with the ending `.parquet`."""
    return file.name[: -len(_ending(file.name) or "")] + ".parquet"


def disambiguated(files: Sequence[InputFile]) -> list[InputFile]:
    """Return the files with distinct names: equal names begin with as many directories as
    necessary. `x.txt` of two inputs `a` and `b` becomes `a/x.txt` and `b/x.txt`."""
    found = list(files)
    while True:
        names = Counter(file.name for file in found)
        longer = [_with_one_more(file) if names[file.name] > 1 else file for file in found]
        if longer == found:
            return found
        found = longer


def _with_one_more(file: InputFile) -> InputFile:
    """Return the file with one more directory in its name, if there is one."""
    place = split_query(file.root)[0]
    above, _, last = place.rpartition("/")
    if not last or (is_uri(place) and above.endswith(("/", ":"))):  # not the bucket
        return file
    last = unquote(last) if is_uri(place) else last
    return replace(file, name=f"{last}/{file.name}")


def output_names(files: Sequence[InputFile]) -> dict[str, str]:
    """Return the names of shards by the paths of files. Files whose names differ only in their
    endings keep these: `x.csv.parquet`.

    Raises InputError if two shards would have the same name.
    """
    owners: dict[str, str] = {}
    plain = Counter(map(output_name, files))
    for file in files:
        name = output_name(file)
        if plain[name] > 1:
            name = f"{file.name}.parquet"
        if name in owners:
            raise InputError(
                f"{file.path}: its shard would have the name {name}, like the shard of"
                f" {owners[name]}; rename one, or encode them separately"
            )
        owners[name] = file.path
    for name, path in owners.items():
        for parent in owners.keys() & set(above(name)):
            raise InputError(
                f"{path}: its shard would be in the directory {parent}, which is also the name"
                f" of the shard of {owners[parent]}; rename one, or encode them separately"
            )
    return {path: name for name, path in owners.items()}


def is_input_name(name: str) -> bool:
    """Return True if a file of this name in a directory is read."""
    return _is_data(name) and not _hidden(name)


def above(name: str) -> list[str]:
    """Return the relative names of the directories above a relative name."""
    return list(accumulate(name.split("/")[:-1], "{}/{}".format))


Matches = tuple[list[InputFile], list[str], list[str]]
"""Files of a pattern, paths with unknown endings, and paths that `datasets` skips."""


def _matches(pattern: str, may_be_empty: bool) -> Matches:
    """Return the files of a pattern. Raises InputError without files, unless it may be empty."""
    base, query = split_query(pattern)
    base = base.rstrip("/") if is_uri(pattern) else open_filesystem(pattern)[1]
    if _WILDCARD.search(base) and (is_uri(pattern) or not os.path.lexists(base)):
        return _glob(pattern, base, query, may_be_empty)
    place = base + query
    entry = storage.info(place)
    if entry is None and may_be_empty and is_uri(pattern):  # stores have no empty directories
        return [], [], []
    if entry is None:
        raise InputError(f"{pattern}: no such file or directory")
    if entry.kind == "directory":
        return _directory(pattern, place, may_be_empty)
    if entry.kind != "file":
        raise InputError(
            f"{pattern}: neither a file nor a directory, but a pipe or a device; write its"
            " content to a file"
        )
    if not _ending(entry.name):
        raise InputError(f"{pattern}: unknown file ending; expected {_one_of_the_endings()}")
    return [_input_file(place, os.path.basename(entry.name), entry)], [], []


def _directory(pattern: str, place: str, may_be_empty: bool) -> Matches:
    visible = [
        (path, entry)
        for path, entry in _listing(place, recursive=True)
        if not any(_hidden(part) for part in entry.name.split("/"))
    ]
    files, skipped, caches = _data_files(visible, visible)
    if not files and not may_be_empty:
        only = "only caches of datasets, no" if caches else "no"
        raise InputError(f"{pattern}: the directory contains {only} {_one_of_the_endings()} file")
    return files, skipped, caches


def _data_files(
    found: Sequence[tuple[str, Entry]],
    listed: Sequence[tuple[str, Entry]],
    *,
    wants_caches: bool = False,
) -> Matches:
    """Return the files to read, and the paths of other files. `listed`: all existing files."""
    paths = {entry.name: path for path, entry in listed}
    others = not_data(paths, lambda name: _json(paths[name]), wants_caches=wants_caches)
    files = [
        _input_file(path, e.name, e)
        for path, e in found
        if _is_data(e.name) and e.name not in others
    ]
    caches = [
        path
        for path, e in found
        if e.name in others and _is_data(e.name) and e.name.rpartition("/")[2] != STATE
    ]
    return files, [path for path, entry in found if not _ending(entry.name)], caches


def _json(path: str) -> Any:
    try:
        return json.loads(storage.read_bytes(path))
    except (ValueError, RecursionError):
        return None


def _split_glob(base: str) -> tuple[str, list[str]]:
    """Return the directory in which a glob begins, and the components of the glob below it."""
    parts = base.split("/")
    first = next(i for i, part in enumerate(parts) if _WILDCARD.search(part))
    return "/".join(parts[:first]) or "/", parts[first:]


def _glob(pattern: str, base: str, query: str, may_be_empty: bool) -> Matches:
    root, wanted = _split_glob(base)
    recursive = len(wanted) > 1 or wanted == ["**"]
    listed = _listing(root + query, recursive=recursive)
    matching = [(path, e) for path, e in listed if _glob_match(e.name.split("/"), wanted)]
    if not matching and not may_be_empty:
        raise InputError(f"{pattern}: matches no file{_directories_hint(root + query, wanted)}")
    wants_caches = wanted[-1].startswith(("cache-", "indices"))
    files, skipped, caches = _data_files(matching, listed, wants_caches=wants_caches)
    if not files and not may_be_empty:
        raise InputError(f"{pattern}: matches no {_one_of_the_endings()} file")
    return files, skipped, caches


def _directories_hint(root: str, wanted: list[str]) -> str:
    """Return the advice for a glob that matches directories."""
    found = storage.entries(root, recursive=len(wanted) > 1, follow_links=True)
    directories = (entry for entry in found if entry.kind == "directory")
    if any(_glob_match(entry.name.split("/"), wanted) for entry in directories):
        return ", only directories; end it with /** for the files in them"
    return ""


def _listing(root: str, *, recursive: bool) -> list[tuple[str, Entry]]:
    """Return the paths of the files below a directory, and their entries. Raises InputError for a
    broken link."""
    found = []
    for entry in storage.entries(root, recursive=recursive, follow_links=True):
        path = join(root, entry.name)
        if entry.kind == "file":
            found.append((path, entry))
        elif _is_broken_link(path, entry):
            raise InputError(f"{path}: the link is broken; remove it")
        elif entry.kind == "other" and is_input_name(os.path.basename(entry.name)):
            warnings.warn(SkippedFilesWarning([path], PIPE), stacklevel=2)
    return found


def _is_broken_link(path: str, entry: Entry) -> bool:
    is_input = is_input_name(os.path.basename(entry.name))
    return entry.kind == "other" and is_input and os.path.islink(path)


def _glob_match(parts: list[str], wanted: list[str]) -> bool:
    """Return True if the components of a relative name match a glob."""
    if not wanted or not parts:
        return not parts and all(want == "**" for want in wanted)
    if wanted[0] == "**":
        skip = not _hidden(parts[0]) and _glob_match(parts[1:], wanted)
        return skip or _glob_match(parts, wanted[1:])
    if _hidden(parts[0]) and wanted[0][0] != parts[0][0]:
        return False
    return fnmatchcase(parts[0], wanted[0]) and _glob_match(parts[1:], wanted[1:])


def _is_own(path: str, directories: Sequence[str], realpath: Callable[[str], str]) -> bool:
    """Return True if a file is in one of the directories, which are results of `_plain`.
    `realpath`: `os.path.realpath` with a cache."""
    if not is_uri(path) and not os.path.islink(path):
        directory, name = os.path.split(path)
        plain = os.path.join(realpath(directory), name)
    else:
        plain = _plain(path)
    return any(_is_below(plain, directory) for directory in directories)


def leads_into(pattern: str, directory: str) -> bool:
    """Return True if a pattern is a directory or leads into it."""
    return _is_below(_plain(pattern), _plain(directory))


def _is_below(path: str, directory: str) -> bool:
    """Return True if a path is a directory or inside it. Both are results of `_plain`."""
    return f"{path}/".startswith(f"{directory}/")


def _plain(path: str) -> str:
    """Return a path without its query and links."""
    plain = split_query(path)[0] if is_uri(path) else os.path.realpath(open_filesystem(path)[1])
    return plain.rstrip("/")


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _is_data(name: str) -> bool:
    """Return True for a name of data in a directory."""
    return bool(_ending(name)) and name.rpartition("/")[2] not in NO_DATA


def _ending(name: str) -> str | None:
    """Return the ending of a file name in its spelling; None if it is not known."""
    known = next((ending for ending in ENDINGS if name.lower().endswith(ending)), None)
    return known and name[-len(known) :]


def _one_of_the_endings() -> str:
    return ".parquet, .arrow, .feather, .txt, .jsonl, .csv or .tsv (texts also compressed)"


def _input_file(path: str, name: str, entry: Entry) -> InputFile:
    file_format, compression = ENDINGS[(_ending(name) or "").lower()]
    return InputFile(path, name, file_format, compression, entry.size, entry.modified)
