"""JSON of any origin: read with errors on one line, and written in one form."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, TypeVar

from wordpiece_core.declared import is_utf8
from wordpiece_core.errors import InputError, shown

Json = dict[str, Any]
T = TypeVar("T")

MOST_DEPTH = 32  # of lists and objects; tokenizers have 6
TOO_DEEP = f"more than {MOST_DEPTH} lists and objects inside each other"


def written(value: object) -> bytes:
    """Return the bytes of a JSON file."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def parse(text: str, path: str) -> Json:
    """Return the JSON object of a text. Raises InputError, which names `path`, for anything
    else."""
    try:
        value = json.loads(text, parse_float=as_tokenizers)
    except RecursionError as error:
        raise InputError(f"{path}: {TOO_DEEP}") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: not a JSON object")
    _check_depth(value, path)
    if "\\u" in text and not is_utf8(json.dumps(value, ensure_ascii=False)):
        raise InputError(
            f"{path}: a string contains half a surrogate pair (\\ud800 to \\udfff); fix it"
        )
    return value


def as_tokenizers(number: str) -> float:
    """Return a number as `tokenizers` reads it (serde_json): the digits that fit into 64 bits as a
    float, divided by a power of ten. This is not always the nearest float, and the last bit decides
    between two segmentations with the same score."""
    digits, _, exponent = number.lower().partition("e")
    whole, _, part = digits.lstrip("-").partition(".")
    kept, power = whole + part, int(exponent or 0)
    zeros = len(kept) - len(kept.lstrip("0"))
    count = min(len(kept), zeros + 20)  # 2**64 has 20 digits
    count -= int(kept[:count]) >= 2**64
    found = int(kept[:count] or 0)
    power -= max(count - len(whole), 0)
    if count < len(kept):
        power += max(len(whole) - count, 0)
    if abs(power) > 308:
        return float(number)
    value = float(found) * 10.0**power if power >= 0 else float(found) / 10.0**-power
    return -value if number.startswith("-") else value


def _check_depth(value: Json, path: str) -> None:
    """Raise InputError for a value that is nested too deeply, which could overflow the stack
    later."""
    values: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        objects = chain.from_iterable(v.values() for v in values if isinstance(v, dict))
        lists = chain.from_iterable(v for v in values if isinstance(v, list))
        values = [*objects, *lists]
        if not values:
            return
    raise InputError(f"{path}: {TOO_DEEP}")


def get(value: Json, name: str, kind: type[T], path: str, default: T | None = None) -> T:
    """Return an entry of a JSON object. Raises InputError for another type, and if it is missing
    without a default."""
    found = value.get(name, default)
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        wanted = {dict: "an object", list: "a list", str: "a string", int: "a whole number"}
        raise InputError(
            f"{path}: {name} is {shown(found)}, not {wanted.get(kind, 'true or false')}"
        )
    return found
