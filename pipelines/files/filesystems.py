"""Local paths and URIs: how they are opened and joined, and which names in files can be trusted."""

import os
from urllib.parse import quote

from wordpiece_core.errors import InputError
from wordpiece_core.filesystems import HUB, open_filesystem
from wordpiece_core.uri import is_uri, split_query

COMPLETE_WHEN_CLOSED = {"s3", "gcs"}
"""Arrow's names of the file systems where a file appears when it is closed, and not before."""


def is_read_only(path: str) -> bool:
    """Whether nothing can be written there."""
    return path.startswith(HUB)


def appears_when_closed(path: str) -> bool:
    """Whether a file there is complete as soon as it can be seen: it appears when it is closed."""
    return is_uri(path) and open_filesystem(path)[0].type_name in COMPLETE_WHEN_CLOSED


def absolute(path: str) -> str:
    """A local path as seen from the root, which means the same in every process; a URI as it is."""
    return path if is_uri(path) else open_filesystem(path)[1]


def join(path: str, *parts: str) -> str:
    """A path below a local path or URI. `parts` are plain names, which may have slashes."""
    if not is_uri(path):
        return os.path.join(path, *parts)
    base, query = split_query(path)
    return "/".join([base.rstrip("/"), *(quote(p) for p in parts)]) + query


def beside(path: str, ending: str) -> str:
    """A path next to another: the same name followed by `ending`."""
    base, query = split_query(path)
    return base.rstrip("/") + ending + query


def parent(path: str) -> str:
    """The directory that a path is in."""
    base, query = split_query(path)
    return base.rstrip("/").rpartition("/")[0] + query


def inside(directory: str, name: object) -> str:
    """The path of a name that was read from a file, where it could be anything. Raises InputError
    unless it is a relative name that stays inside the directory, also through links."""
    if not isinstance(name, str) or not is_plain_name(name):
        raise InputError(f"{directory}: a file in it names {name!r}, which is no name in there")
    path = join(directory, name)
    if not is_uri(path):
        root, place = (os.path.realpath(open_filesystem(p)[1]) for p in (directory, path))
        if not place.startswith(root.rstrip("/") + "/"):
            raise InputError(f"{path}: a link that leads out of {directory}; move it")
    return path


def is_plain_name(name: str) -> bool:
    """Whether a name is relative and has no part that leads upwards."""
    parts = name.split("/")
    return "\0" not in name and all(part not in ("", ".", "..") for part in parts)
