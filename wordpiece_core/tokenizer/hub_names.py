"""Names of tokenizers on the Hub: `openai-community/gpt2`, `gpt2`, with a revision after an `@`, or
`hf://openai-community/gpt2`."""

from __future__ import annotations

import os
import re

from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.tokenizer.by_class import FILES
from wordpiece_core.uri import is_uri

SCHEME = "hf://"
_NAME = re.compile(
    r"(?!(?:datasets|spaces)/)(?P<repo>\w[\w.-]*(?:/\w[\w.-]*)?)(?:@(?P<revision>[^@]+))?"
)
_FILE = re.compile(r"\.(?:json|txt|model|tiktoken)\Z")


def hub_name(path: str) -> re.Match[str] | None:
    """Return the name on the Hub with its `repo` and `revision`, unless the path exists on disk."""
    if not path.startswith(SCHEME) and (is_uri(path) or os.path.lexists(path)):
        return None
    return None if _FILE.search(path) else _NAME.fullmatch(path.removeprefix(SCHEME).rstrip("/"))


def local_place(path: str) -> str:
    """Return the path of a tokenizer. For a name on the Hub it is the directory of its files, which
    are downloaded unless they are in the cache. A path on disk wins over a name.

    Raises OptionError if `huggingface_hub` is not installed, and InputError if the Hub has no such
    name or cannot be reached.
    """
    name = hub_name(path)
    if name is None:
        return path
    missing = "" if path.startswith(SCHEME) else "no such file or directory, and "
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise OptionError(
            f"{path}: {missing}names on the Hub need the library huggingface_hub: pip"
            " install huggingface_hub"
        ) from error
    try:
        return str(snapshot_download(name["repo"], revision=name["revision"], allow_patterns=FILES))
    except Exception as error:  # of many classes: offline, not found, not allowed
        reason = re.split(r"(?<=[a-z])\. |; |\n", str(error).strip())[0].rstrip(".")
        raise InputError(
            f"{path}: {missing}not available on the Hub ({reason}); check the name, or the"
            " connection"
        ) from error
