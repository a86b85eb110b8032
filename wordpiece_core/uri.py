"""Paths that are URIs, on file systems that Arrow reads: `s3://bucket/name?region=eu-1`."""

from __future__ import annotations

import re

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_QUERY = re.compile(r"\?\w+=[^*?\[\]]*\Z")


def is_uri(path: str) -> bool:
    """Whether a path is a URI of another file system than the local one."""
    return bool(_URI.match(path)) and not path.startswith("file://")


def split_query(path: str) -> tuple[str, str]:
    """A URI without its query (options of the file system), and the query with its `?`. A query has
    none of the characters of a pattern, so that `?` in a pattern is not the beginning of one.

    >>> split_query("s3://bucket/words?region=eu-1")
    ('s3://bucket/words', '?region=eu-1')
    """
    query = _QUERY.search(path) if is_uri(path) else None
    return (path[: query.start()], query.group()) if query else (path, "")
