"""Locations: local paths, and URIs such as `s3://bucket/name?region=eu-1`. A URI contains no
credentials: they are in the environment, or in the files of the store's library."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote

from wordpiece_core.errors import InputError

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://")
_ONE_SLASH = re.compile(r"(?P<scheme>s3|gs|gcs|abfss?|hdfs|viewfs|hf|https?|file):/(?!/)")
_QUERY = re.compile(r"\?\w+=[^*?\[\]]*\Z")
_SECRET = re.compile(r"[?&]\w*(?:key|secret|token|passw|credential|sig)\w*=", re.IGNORECASE)
_KEY_FIRST = frozenset({"s3", "gs", "gcs"})
"""Schemes where a key can precede the @; in other schemes it is a user or a container."""
_AWS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials"
_GOOGLE = "set GOOGLE_APPLICATION_CREDENTIALS, or use gcloud auth application-default login"
_INSTEAD = {
    **{"s3": _AWS, "gs": _GOOGLE, "gcs": _GOOGLE, "hf": "set HF_TOKEN, or use hf auth login"},
    **dict.fromkeys(("abfs", "abfss"), "set AZURE_STORAGE_ACCOUNT_NAME and _KEY"),
}


def is_uri(path: str) -> bool:
    """Return True for a URI of a file system other than the local one."""
    return bool(_URI.match(path)) and not path.startswith("file://")


def lacks_slash(path: str) -> bool:
    """Return True for a path that would be a URI with one more slash."""
    return bool(_ONE_SLASH.match(path))


def split_query(path: str) -> tuple[str, str]:
    """Return a URI without its query (options of the file system), and the query with its `?`.
    Queries contain no characters of patterns, so a `?` in a pattern does not begin one.

    >>> split_query("s3://bucket/words?region=eu-1")
    ('s3://bucket/words', '?region=eu-1')
    """
    query = _QUERY.search(path) if is_uri(path) else None
    return (path[: query.start()], query.group()) if query else (path, "")


def credentials_in(path: str) -> str | None:
    """Return advice about the credentials in a URI, without showing them; None if it has none.

    >>> credentials_in("hf://user:SECRET@datasets")
    'hf: a location must not contain credentials; set HF_TOKEN, or use hf auth login'
    """
    found = _URI.match(path)
    if found is None or not is_uri(path):
        return None
    scheme, rest = found["scheme"].lower(), path[found.end() :]
    user, at, host = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")
    is_port = host.rpartition(":")[2].isdigit() and scheme not in _KEY_FIRST
    has_key = (
        ":" in user
        or (":" in host and not is_port)  # a key that contains a slash
        or (bool(at) and scheme in _KEY_FIRST and user != "anonymous")
    )
    if not has_key and not _SECRET.search(rest):
        return None
    instead = _INSTEAD.get(scheme, "set the environment variables of its library")
    return f"{scheme}: a location must not contain credentials; {instead}"


# --- Paths of either kind -------------------------------------------------------------------------


def local_path(path: str) -> str:
    """Return the absolute path of a local file or a `file://` URI."""
    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    return os.path.abspath(path)


def absolute(path: str) -> str:
    """Return a local path as an absolute path, which is the same in every process; a URI
    unchanged."""
    return path if is_uri(path) else local_path(path)


def join(path: str, *parts: str) -> str:
    """Return a path below a local path or URI. `parts`: plain names, which may contain slashes."""
    if not is_uri(path):
        return os.path.join(path, *parts)
    base, query = split_query(path)
    return "/".join([base.rstrip("/"), *(quote(part) for part in parts)]) + query


def sibling(path: str, ending: str) -> str:
    """Return a path next to another path: the same name followed by `ending`."""
    base, query = split_query(path)
    return base.rstrip("/") + ending + query


def parent(path: str) -> str:
    """Return the directory of a path."""
    base, query = split_query(path)
    return base.rstrip("/").rpartition("/")[0] + query


def inside(directory: str, name: object) -> str:
    """Return the path of a name from a file that may contain anything. Raises InputError unless the
    name is relative and stays inside the directory, also through links."""
    if not isinstance(name, str) or not is_plain_name(name):
        raise InputError(f"{directory}: a file in it refers to {name!r}, outside the directory")
    path = join(directory, name)
    if not is_uri(path):
        root, place = (os.path.realpath(local_path(each)) for each in (directory, path))
        if not place.startswith(root.rstrip("/") + "/"):
            raise InputError(f"{path}: the link leads out of {directory}; move it")
    return path


def is_plain_name(name: str) -> bool:
    """Return True for a relative name without parts that lead upwards."""
    parts = name.split("/")
    return "\0" not in name and all(part not in ("", ".", "..") for part in parts)
