"""Loading the tokenizers to compare, from any file system or the Hub."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.files import storage
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError, OptionError, one_line
from wordpiece_core.tokenizer.by_class import FILES
from wordpiece_core.uri import is_uri

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def load_tokenizer(place: str | Tokenizer) -> Tokenizer:
    """Loads a tokenizer directory, a `vocab.txt`, a `tokenizer.json`, a model of sentencepiece,
    or a tokenizer of the Hub. A place on disk wins over a name on the Hub. Raises InputError, and
    OptionError where a library is missing."""
    if isinstance(place, Tokenizer):
        return place
    if not is_uri(place) and storage.info(place) is None and HUB_NAME.fullmatch(place):
        return _at(_from_hub(place), place)
    return _at(place, place)


def _at(place: str, name: str) -> Tokenizer:
    try:
        return Tokenizer.load(place)
    except InputError as error:
        if place.endswith(".json") and "the model None is not" in str(error):
            raise InputError(f"{name}: no model in it; give a tokenizer.json") from error
        if place != name:
            raise InputError(f"{name}: {one_line(error)}") from error
        raise


def _from_hub(name: str) -> str:
    """A directory with the files of a tokenizer of the Hub, from the cache if they are there."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise OptionError(
            f"{name}: no such file or directory; if it is a name on the Hub, install"
            " wordpiece-beam[hf]"
        ) from error
    try:
        return str(snapshot_download(name, allow_patterns=list(FILES)))
    except Exception as error:  # of many kinds: offline, not there, not allowed
        raise InputError(
            f"{name}: no such file or directory, and not available on the Hub"
            f" ({_reason(error)}); check the name, or the connection"
        ) from error


def _reason(error: Exception) -> str:
    """The first sentence: the library's messages are long."""
    return re.split(r"(?<=[a-z])\. |; ", one_line(error))[0].rstrip(".")


def names_of(places: Sequence[str | Tokenizer]) -> list[str]:
    """The names of the tokenizers: their places, and numbers for objects."""
    return [
        place if isinstance(place, str) else f"tokenizer {number}"
        for number, place in enumerate(places, 1)
    ]
