"""Locations: local paths, and URIs on file systems that Arrow reads: `s3://bucket/name?region=eu`.

A URI can hold secrets: keys, passwords, signatures. A `Location` is a text without them, so that
they are in nothing that is printed, stored or compared; only who opens it asks for its `uri`.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Self
from urllib.parse import unquote

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)(?P<slashes>://)")
_ONE_SLASH = re.compile(
    r"(?P<scheme>s3|gs|gcs|abfss?|hdfs|viewfs|hf|https?|file)(?P<slashes>:/)(?!/)"
)
_QUERY = re.compile(r"\?\w+=[^*?\[\]]*\Z")
_WITH_SECRET = re.compile(
    r"\?(?=\w+=)(?=.*?(?:sig|secret|token|passw|credential|key)\w*=)", re.IGNORECASE | re.DOTALL
)
_SHOWN = frozenset(
    (
        *("region", "scheme", "endpoint_override", "allow_bucket_creation", "role_arn"),
        *("allow_bucket_deletion", "allow_delayed_open", "force_virtual_addressing"),
        *("check_directory_existence_before_creation", "smart_defaults", "background_writes"),
        *("tls_ca_file_path", "tls_ca_dir_path", "tls_verify_certificates", "load_frequency"),
        *("retry_limit_seconds", "project_id", "default_bucket_location", "enable_tls"),
        *("blob_storage_authority", "dfs_storage_authority", "blob_storage_scheme"),
        *("dfs_storage_scheme", "credential_kind", "tenant_id", "client_id"),
        *("replication", "buffer_size", "default_block_size"),
    )
)
"""The options of file systems, in a query, that are no secrets."""
_NAMES_FIRST = frozenset({"abfs", "abfss", "hdfs", "viewfs"})
"""Schemes where what stands before the @ is the name of a container, or a user."""
_NO_PORTS = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hf"})
_LEAST_HIDDEN = 4  # characters of a secret that is looked for in messages
HIDDEN = "***"


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


class Location(str):
    """A local path or a URI, without the secrets in it. What is made of it (`+`, `replace`, ...) is
    a plain text without them; `beside` makes another place in the same store.

    >>> location = Location("s3://KEY:SECRET@bucket/words?region=eu-1&session_token=SECRET")
    >>> location
    's3://bucket/words?region=eu-1'
    >>> location.uri
    's3://KEY:SECRET@bucket/words?region=eu-1&session_token=SECRET'
    """

    _user: str  # what stands before the name of the host, with its @
    _hidden: str  # the parts of the query that are not shown

    def __new__(cls, text: str) -> Self:
        if isinstance(text, cls):
            return text
        shown, user, hidden = _parted(text)
        return cls._made(shown, user, hidden)

    @classmethod
    def _made(cls, shown: str, user: str, hidden: str) -> Self:
        location = super().__new__(cls, shown)
        location._user, location._hidden = user, hidden
        return location

    def __reduce__(self) -> tuple[object, tuple[str, str, str]]:
        return type(self)._made, (str(self), *self.secrets)

    @property
    def secrets(self) -> tuple[str, str]:
        """What is not shown. Places of one store that have the same are opened alike."""
        return self._user, self._hidden

    @property
    def is_secret(self) -> bool:
        """Whether more is in the URI than is shown."""
        return any(self.secrets)

    @cached_property
    def uri(self) -> str:
        """The whole of it, for who opens it."""
        if not self.is_secret:
            return str(self)
        base, query = split_query(self)
        scheme, slashes, rest = _begin(base)
        rest = rest.removeprefix(_shown_user(scheme, self._user))
        parts = [part for part in (query.removeprefix("?"), self._hidden) if part]
        return scheme + slashes + self._user + rest + "?" * bool(parts) + "&".join(parts)

    def beside(self, shown: str) -> Location:
        """Another place in the same store, which is opened with the same secrets."""
        return Location._made(shown, *self.secrets)

    def hide(self, text: str) -> str:
        """A text, such as a library's message, without the secrets."""
        if not self.is_secret:
            return text
        user = self._user.rstrip("@")
        values = [user, *user.split(":", 1)]
        values += [part.partition("=")[2] for part in self._hidden.split("&")]
        found = {*values, *map(unquote, values)} - {_shown_user(_begin(self)[0], self._user)[:-1]}
        text = text.replace(self.uri, self)
        for secret in sorted((s for s in found if len(s) >= _LEAST_HIDDEN), key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text


def same_store(place: str, shown: str) -> str:
    """A path as another in the same store as `place`: with its secrets, if it has any."""
    return place.beside(shown) if isinstance(place, Location) and place.is_secret else shown


def without_secrets(text: str) -> str:
    """A text, such as a message, in which URIs are as a `Location` shows them."""
    return _URI_IN_TEXT.sub(lambda uri: Location(uri[0]), text) if ":/" in text else text


_URI_IN_TEXT = re.compile(
    r"""(?:[A-Za-z][A-Za-z0-9+.-]*://|\b(?:s3|gs|gcs|abfss?|hdfs|hf|https?):/)[^\s'"<>]*"""
)


def _parted(text: str) -> tuple[str, str, str]:
    """What is shown of a text; and of the rest, what stands before the host and in the query."""
    if not _begin(text)[1]:
        return text, "", ""
    base, query = split_query(text)
    if not query and (hidden := _WITH_SECRET.search(text)):  # a secret may have any character
        base, query = text[: hidden.start()], text[hidden.start() :]
    scheme, slashes, rest = _begin(base)
    user = _user(scheme, rest)
    parts = query.removeprefix("?").split("&") if query else []
    shown = [part for part in parts if _is_shown(part)]
    hidden_parts = [part for part in parts if not _is_shown(part)]
    rest = _shown_user(scheme, user) + rest[len(user) :]
    query = "?" + "&".join(shown) if shown else ""
    if _shown_user(scheme, user) == user:
        user = ""
    return f"{scheme}{slashes}{rest}{query}", user, "&".join(hidden_parts)


def _begin(text: str) -> tuple[str, str, str]:
    """The scheme of a URI, its slashes, and the rest. Without slashes it is none. (One slash, which
    makes a local path of it, may be a mistake.)"""
    found = _URI.match(text) or _ONE_SLASH.match(text)
    return (found["scheme"], found["slashes"], text[found.end() :]) if found else ("", "", text)


def _user(scheme: str, rest: str) -> str:
    """What stands before the host, with its @. A secret may hold a `/`, which a URI should have as
    %2F; that is taken for a part of it, too."""
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    if at:
        return user + at
    colon, is_port = ":" in authority.rstrip(":"), authority.rpartition(":")[2].isdigit()
    if colon and not (is_port and scheme.lower() not in _NO_PORTS):
        return rest[: rest.rfind("@") + 1] or authority
    return ""


def _shown_user(scheme: str, user: str) -> str:
    name = user.rstrip("@").partition(":")[0]
    is_name = name == "anonymous" or scheme.lower() in _NAMES_FIRST
    return f"{name}@" if is_name and name and user.endswith("@") else ""


def _is_shown(part: str) -> bool:
    name, _, value = part.partition("=")
    return name in _SHOWN and "@" not in unquote(value)
