"""The dataset card, `README.md`, which the Hub shows, and in which `load_dataset(DIR)` finds the
splits.

The last line has a digest of the rest, so that a card that a user has changed or written is
recognized, and stays.
"""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from pipelines.encoding.shard_names import (
    TRAIN,
    has_ids,
    split_of_shard,
    splits_of_shards,
)
from wordpiece_core import storage
from wordpiece_core.storage import MissingError

CARD = "README.md"
KEPT = f"{CARD} is not as this program wrote it, and stays; see that its `configs` name the shards"
LAST_LINE = "<!-- Made by `wordpiece encode`, which replaces it unless it is changed: {} -->\n"
_DIGEST = re.compile(re.escape(LAST_LINE).replace(r"\{\}", "([0-9a-f]{64})"))


@dataclass(frozen=True)
class Split:
    """A split of a dataset.

    Attributes:
        paths: Names of its shards, or patterns for `datasets`.
        rows: Number of rows.
    """

    paths: Sequence[str]
    rows: int


def dataset_card(manifest: Mapping[str, Any]) -> bytes:
    """Return the dataset card, with splits by the names of the shards."""
    splits = _splits(manifest)
    text = _text(manifest, splits)
    if splits:
        files = [{"split": name, "path": list(split.paths)} for name, split in splits.items()]
        front = {"configs": [{"config_name": "default", "data_files": files}]}
        header = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000)
        text = f"---\n{header}---\n\n{text}"
    data = f"{text}\n".encode()
    return data + LAST_LINE.format(hashlib.sha256(data).hexdigest()).encode()


def _splits(manifest: Mapping[str, Any]) -> dict[str, Split]:
    """Return the splits by name. `datasets` refuses splits without rows, and other formats."""
    layout, shards = manifest["options"].get("layout"), manifest["shards"]
    names = [shard["name"] for shard in shards]
    found = {*splits_of_shards(names)}
    if layout is None and len(found) < 2:
        hidden = [
            shard["name"]
            for shard in shards
            if any(part.startswith((".", "__")) for part in shard["name"].split("/"))
        ]
        paths = ["**/*.parquet", *map(glob.escape, hidden)]
        return {min(found, default=TRAIN): Split(paths, manifest["rows"])}
    if layout is None:
        return _splits_by_names(shards)
    has_rows = any(shard["rows"] for shard in shards)
    splits: dict[str, Split] = {}
    known = dict.fromkeys(map(split_of_shard, names))
    for name in (layout["splits"] or known) if layout["format"] == "parquet" else ():
        of_split = [shard for shard in shards if split_of_shard(shard["name"]) == name]
        rows = sum(shard["rows"] for shard in of_split)
        if of_split and (rows or not has_rows):
            folder = of_split[0]["name"].rpartition("/")[0]
            splits[name] = Split([f"{folder}{'/' * bool(folder)}{name}-*.parquet"], rows)
    return splits


def _splits_by_names(shards: Sequence[Mapping[str, Any]]) -> dict[str, Split]:
    """Return the splits by the names of the inputs."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    of_shards = splits_of_shards([shard["name"] for shard in shards])
    for shard, split in zip(shards, of_shards, strict=True):
        found.setdefault(split, []).append(shard)
    return {
        split: Split([glob.escape(s["name"]) for s in some], sum(s["rows"] for s in some))
        for split, some in sorted(found.items())
    }


def _text(manifest: Mapping[str, Any], splits: Mapping[str, Split]) -> str:
    """Return the text: a sentence, and tables of counts and options."""
    is_packed = manifest["options"].get("pack", False)
    figures = {
        "rows": manifest["rows"],
        "tokens of texts" if is_packed else "tokens, with special tokens": manifest["tokens"],
        "word tokens": manifest["word_tokens"],
        "unknown tokens": manifest["unknown_tokens"],
        "rows truncated to `max_length`": manifest["truncated_rows"],
        "truncated tokens": manifest["truncated_tokens"],
        "tokens of the longest text": manifest["longest_text"],
        "padding": f"{manifest['padding_share']:.2%}" if manifest["padding_tokens"] else "",
        "bytes of text": manifest["bytes"],
        "shards": sum(has_ids(shard["name"]) for shard in manifest["shards"]),
    }
    sizes = {name: _shown(value) for name, value in figures.items() if value}
    given = dict(manifest["options"])
    given |= given.pop("layout", None) or {}
    if "dtype" in manifest:  # files of ids are not compressed
        given |= {"compression": None, "id_type": manifest["dtype"]}
    options = {
        f"`{name}`": f"`{_shown(value)}`"
        for name, value in given.items()
        if value is not False and value not in (None, [], "")
    }
    lines = [
        "# Token ids",
        "",
        "Texts as token ids, made by `wordpiece encode`.",
        "",
        *_table("", "", sizes | {"tokenizer (SHA-256)": f"`{manifest['tokenizer']}`"}),
    ]
    if len(splits) > 1:
        rows = {name: _shown(split.rows) for name, split in splits.items()}
        lines += ["", *_table("split", "rows", rows)]
    return "\n".join([*lines, "", *_table("option", "value", options)])


def _table(left: str, right: str, rows: Mapping[str, str]) -> list[str]:
    cells = (f"| {name} | {value.replace('|', chr(92) + '|')} |" for name, value in rows.items())
    return [f"| {left} | {right} |", "|---|---|", *cells]


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, Mapping):
        value = [f"{name}={of_name}" for name, of_name in value.items()]
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return re.sub(r"[\x00-\x20`]+", " ", text)


# --- The file -------------------------------------------------------------------------------------


def is_replaceable(path: str, card: bytes, *, is_wanted: bool) -> bool:
    """Return True if the card has to be written: there is none and the job asks for one, or there
    is an older card of this program."""
    found = _read(path)
    return is_wanted if found is None else found != card and _is_ours(found)


def card_warnings(path: str, is_wanted: bool) -> list[str]:
    """Return a warning, in a list, if the job asks for a card, but another card stays."""
    found = _read(path) if is_wanted else None
    return [KEPT] if found is not None and not _is_ours(found) else []


def _read(path: str) -> bytes | None:
    try:
        return storage.read_bytes(path)
    except MissingError:
        return None


def _is_ours(data: bytes) -> bool:
    """Return True for an unchanged card of `dataset_card`."""
    text = data[: data.rfind(b"\n", 0, -1) + 1]
    found = _DIGEST.fullmatch(data[len(text) :].decode(errors="replace"))
    return found is not None and found.group(1) == hashlib.sha256(text).hexdigest()
