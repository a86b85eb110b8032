"""Locations: local paths, and URIs such as `s3://bucket/name?region=eu-1`. A URI holds no
credentials: the environment does, or the files of the store's library."""

from __future__ import annotations

import re

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://")
_ONE_SLASH = re.compile(r"(?P<scheme>s3|gs|gcs|abfss?|hdfs|viewfs|hf|https?|file):/(?!/)")
_QUERY = re.compile(r"\?\w+=[^*?\[\]]*\Z")
_SECRET = re.compile(r"[?&]\w*(?:key|secret|token|passw|credential|sig)\w*=", re.IGNORECASE)
_KEY_FIRST = frozenset({"s3", "gs", "gcs"})
"""Schemes where a key can stand before the @; elsewhere it is the name of a user or a container."""
_AWS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials"
_GOOGLE = "set GOOGLE_APPLICATION_CREDENTIALS, or use gcloud auth application-default login"
_INSTEAD = {
    **{"s3": _AWS, "gs": _GOOGLE, "gcs": _GOOGLE, "hf": "set HF_TOKEN, or use hf auth login"},
    **dict.fromkeys(("abfs", "abfss"), "set AZURE_STORAGE_ACCOUNT_NAME and _KEY"),
}


def is_uri(path: str) -> bool:
    """Whether a path is a URI of another file system than the local one."""
    return bool(_URI.match(path)) and not path.startswith("file://")


def lacks_slash(path: str) -> bool:
    """Whether a path would be a URI with one slash more."""
    return bool(_ONE_SLASH.match(path))


def split_query(path: str) -> tuple[str, str]:
    """A URI without its query (options of the file system), and the query with its `?`. A query has
    none of the characters of a pattern, so that `?` in a pattern is not the beginning of one.

    >>> split_query("s3://bucket/words?region=eu-1")
    ('s3://bucket/words', '?region=eu-1')
    """
    query = _QUERY.search(path) if is_uri(path) else None
    return (path[: query.start()], query.group()) if query else (path, "")


def credentials_in(path: str) -> str | None:
    """What to do about the credentials in a URI, without them; None if it has none.

    >>> credentials_in("hf://user:SECRET@datasets")
    'hf: a location holds no credentials; set HF_TOKEN, or use hf auth login'
    """
    found = _URI.match(path)
    if found is None or not is_uri(path):
        return None
    scheme, rest = found["scheme"].lower(), path[found.end() :]
    user, at, host = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")
    is_port = host.rpartition(":")[2].isdigit() and scheme not in _KEY_FIRST
    has_key = (
        ":" in user
        or (":" in host and not is_port)  # a key that holds a slash
        or (bool(at) and scheme in _KEY_FIRST and user != "anonymous")
    )
    if not has_key and not _SECRET.search(rest):
        return None
    instead = _INSTEAD.get(scheme, "give them to its library by the environment")
    return f"{scheme}: a location holds no credentials; {instead}"
