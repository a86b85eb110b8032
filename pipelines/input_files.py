"""Which files: what paths, globs and directories name, and how the encoded shards are called."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from urllib.parse import quote

from pyarrow import fs

from pipelines.filesystems import is_uri, open_filesystem, reading, split_query
from wordpiece_core.errors import InputError

ENDINGS = {
    ".parquet": ("parquet", None),
    ".txt": ("text", None),
    ".txt.gz": ("text", "gzip"),
    ".txt.zst": ("text", "zstd"),
    ".jsonl": ("jsonl", None),
    ".jsonl.gz": ("jsonl", "gzip"),
    ".jsonl.zst": ("jsonl", "zstd"),
}

_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class InputFile:
    """A file to read. `name` is its relative name, from which the output shard is named."""

    path: str  # absolute, or a URI
    name: str
    format: str  # "parquet", "text" or "jsonl"
    compression: str | None  # "gzip" or "zstd"
    size: int  # bytes
    modified: int | None  # nanoseconds since 1970


def resolve(patterns: Sequence[str], own: Sequence[str] = ()) -> list[InputFile]:
    """The files that paths, globs (`*`, `?`, `[]`, `**`) and directories name, sorted by path,
    each once. Local paths and URIs. In directories and globs, names starting with `_` or `.`
    and unknown endings are passed over; so is what is below `own`, directories that a job writes,
    unless the pattern leads there. InputError for a pattern that names nothing to read."""
    found: dict[str, InputFile] = {}
    for pattern in patterns:
        apart = [path for path in own if not _is_below(pattern, path)]
        files = _matches(pattern)
        others = [file for file in files if not any(_is_below(file.path, path) for path in apart)]
        if not others:
            raise InputError(f"{pattern}: holds only what this job writes itself; give its inputs")
        for file in others:
            known = found.get(file.path)
            if known is None or len(known.name) < len(file.name):
                found[file.path] = file
    return [found[path] for path in sorted(found)]


def output_names(files: Sequence[InputFile]) -> dict[str, str]:
    """From a file's path to the relative name of its encoded shard: its name, with `.parquet`
    for an ending. InputError when two files would have the same."""
    owners: dict[str, str] = {}
    for file in files:
        name = file.name[: -len(_ending(file.name) or "")] + ".parquet"
        if name in owners:
            raise InputError(
                f"{file.path}: its shard would be named {name}, as that of {owners[name]}; "
                "rename one, or encode them apart"
            )
        owners[name] = file.path
    for name, path in owners.items():
        parents = name.split("/")[:-1]
        above = ["/".join(parts) for parts in accumulate([part] for part in parents)]
        for parent in owners.keys() & set(above):
            raise InputError(
                f"{path}: its shard would be in a directory {parent}, which is the name of the"
                f" shard of {owners[parent]}; rename one, or encode them apart"
            )
    return {path: name for name, path in owners.items()}


def _matches(pattern: str) -> list[InputFile]:
    """The files of one pattern. InputError when there are none."""
    base, query = split_query(pattern)
    base = base.rstrip("/") if is_uri(pattern) else open_filesystem(pattern)[1]
    if _WILDCARD.search(base) and (is_uri(pattern) or not os.path.lexists(base)):
        return _glob(pattern, base, query)
    with reading(pattern):
        filesystem, path = open_filesystem(base + query)
        info = filesystem.get_file_info(path)
    if info.type == fs.FileType.Directory:
        return _directory(pattern, base, query)
    if info.type == fs.FileType.NotFound:
        raise InputError(f"{pattern}: no such file or directory")
    if info.type != fs.FileType.File:
        raise InputError(f"{pattern}: neither a file nor a directory")
    if not _ending(path):
        raise InputError(f"{pattern}: unknown ending; give {_one_of_the_endings()}")
    return [_input_file(base + query, os.path.basename(path), info)]


def _directory(pattern: str, base: str, query: str) -> list[InputFile]:
    files = [
        _input_file(path, name, info)
        for path, name, info in _listing(pattern, base, query, recursive=True)
        if _ending(name) and not any(_hidden(part) for part in name.split("/"))
    ]
    if not files:
        raise InputError(f"{pattern}: the directory holds no {_one_of_the_endings()} file")
    return files


def _glob(pattern: str, base: str, query: str) -> list[InputFile]:
    parts = base.split("/")
    first = next(i for i, part in enumerate(parts) if _WILDCARD.search(part))
    root, wanted = "/".join(parts[:first]) or "/", parts[first:]
    recursive = len(wanted) > 1 or wanted == ["**"]
    matching = [
        (path, name, info)
        for path, name, info in _listing(pattern, root, query, recursive=recursive)
        if _glob_match(name.split("/"), wanted)
    ]
    if not matching:
        raise InputError(f"{pattern}: matches no file")
    files = [_input_file(*match) for match in matching if _ending(match[1])]
    if not files:
        raise InputError(f"{pattern}: matches no {_one_of_the_endings()} file")
    return files


def _listing(
    pattern: str, root: str, query: str, *, recursive: bool
) -> Iterator[tuple[str, str, fs.FileInfo]]:
    """Path, name relative to `root`, and information of every file below `root`."""
    with reading(pattern):
        filesystem, base = open_filesystem(root + query)
        infos = filesystem.get_file_info(
            fs.FileSelector(base, recursive=recursive, allow_not_found=True)
        )
    for info in infos:
        if info.type == fs.FileType.File:
            name = info.path.removeprefix(base).lstrip("/")
            uri = f"{root.rstrip('/')}/{quote(name)}{query}" if is_uri(root) else info.path
            yield uri, name, info


def _glob_match(parts: list[str], wanted: list[str]) -> bool:
    """Whether the components of a relative name match those of a glob."""
    if not wanted or not parts:
        return not parts and all(want == "**" for want in wanted)
    if wanted[0] == "**":
        skip = not _hidden(parts[0]) and _glob_match(parts[1:], wanted)
        return skip or _glob_match(parts, wanted[1:])
    if _hidden(parts[0]) and wanted[0][0] != parts[0][0]:
        return False
    return fnmatchcase(parts[0], wanted[0]) and _glob_match(parts[1:], wanted[1:])


def _is_below(path: str, directory: str) -> bool:
    """Whether a path is that of a directory or of something in it."""
    inner, outer = (_plain(place).rstrip("/") + "/" for place in (path, directory))
    return inner.startswith(outer)


def _plain(path: str) -> str:
    return split_query(path)[0] if is_uri(path) else os.path.realpath(open_filesystem(path)[1])


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _ending(name: str) -> str | None:
    """The known ending of a file name, as it is written there."""
    known = next((ending for ending in ENDINGS if name.lower().endswith(ending)), None)
    return known and name[-len(known) :]


def _one_of_the_endings() -> str:
    *others, last = ENDINGS
    return f"{', '.join(others)} or {last}"


def _input_file(path: str, name: str, info: fs.FileInfo) -> InputFile:
    file_format, compression = ENDINGS[(_ending(name) or "").lower()]
    return InputFile(path, name, file_format, compression, info.size, info.mtime_ns)
