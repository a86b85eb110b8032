"""`wordpiece inspect DATASET`: rows of a dataset as text, its tokenizer, its counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.commands.options import build
from pipelines.encoding.dataset import MANIFEST, WORK, kept_tokenizer
from pipelines.encoding.options import TokenizerOptions
from pipelines.encoding.shard_names import has_ids
from pipelines.encoding.shards import LATER, SUMS
from pipelines.io.inputs import open_parquet
from pipelines.io.outputs import damaged, read_json
from pipelines.summary import counted, token_lines
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.storage import as_planned
from wordpiece_core.tokenizer.hub_names import hub_name
from wordpiece_core.uri import inside, join
from wordpiece_core.visible import visible

IDS = "input_ids"
_ROWS_AT_ONCE = 1024


def manifest_of(path: str) -> dict[str, Any] | None:
    """The manifest of the dataset at a path; None if there is no dataset. InputError if it is
    damaged, or if the dataset is not finished."""
    place = join(path, MANIFEST)
    found = read_json(place)
    if isinstance(found, dict) and {"tokenizer", "shards"} <= found.keys():
        if not _is_whole(found):
            raise damaged(place)
        return found
    if storage.info(join(path, WORK)):
        raise InputError(f"{path}: the dataset is incomplete; run encode again")
    return None


def _is_whole(manifest: dict[str, Any]) -> bool:
    """Return True if a manifest has the fields that are printed."""
    shards = manifest["shards"]
    return (
        isinstance(manifest["tokenizer"], str)
        and isinstance(shards, list)
        and all(isinstance(shard, dict) and isinstance(shard.get("name"), str) for shard in shards)
        and all(isinstance(manifest.get(name), int) for name in SUMS if name not in LATER)
    )


def inspected_dataset(
    given: dict[str, Any],
    texts: Sequence[str],
    rows: int,
    tokenizer: str | None,
    *,
    as_json: bool,
) -> bool:
    """Prints what is at the place `tokenizer` of the arguments `given`, if that is a dataset.
    Otherwise returns False. `tokenizer`: the one given for a dataset. OptionError for texts."""
    path = given["tokenizer"]
    manifest = None if hub_name(path) else manifest_of(path)
    if manifest is None:
        if tokenizer is not None:
            raise OptionError(f"--tokenizer: {path} is not a dataset")
        return False
    if texts:
        raise OptionError(f"{path}: TEXT is only for tokenizers; remove it")
    loaded = None
    if tokenizer is not None:
        loaded = build(TokenizerOptions, given | {"tokenizer": tokenizer}).load_tokenizer()
    run_inspect_dataset(path, manifest, rows, loaded, as_json=as_json)
    return True


def run_inspect_dataset(
    path: str, manifest: dict[str, Any], rows: int, tokenizer: Tokenizer | None, *, as_json: bool
) -> None:
    """Print the figures and the first rows of a dataset. `tokenizer`: replaces the tokenizer of the
    dataset."""
    tokenizer = tokenizer or kept_tokenizer(path)
    if tokenizer is None:
        raise OptionError(f"{path}: the dataset stores no tokenizer; set --tokenizer")
    if tokenizer.digest != manifest["tokenizer"]:
        raise OptionError(
            f"--tokenizer: {tokenizer.digest[:12]} differs from the tokenizer of the dataset,"
            f" {manifest['tokenizer'][:12]}"
        )
    show = _print_json if as_json else _print_lines
    show(path, manifest, _rows(path, manifest, rows), tokenizer)


def _print_json(
    path: str, manifest: dict[str, Any], rows: Iterator[tuple[str, int, Any]], tokenizer: Tokenizer
) -> None:
    """Prints an object for the dataset, and one for each row."""
    known = ("tokenizer", "options", *SUMS)
    about = {name: manifest.get(name) for name in known}
    print(json.dumps({"dataset": path, "shards": _number_of_shards(manifest), **about}))
    for shard, row, ids in rows:
        text = None if ids is None else _text(ids, tokenizer)
        print(json.dumps({"shard": shard, "row": row, IDS: ids, "text": text}))


def _print_lines(
    path: str, manifest: dict[str, Any], rows: Iterator[tuple[str, int, Any]], tokenizer: Tokenizer
) -> None:
    """Prints lines for people."""
    print(f"dataset: {path}, {counted(_number_of_shards(manifest), 'shard')}")
    print(f"tokenizer: {manifest['tokenizer']}, {counted(len(tokenizer), 'token')}")
    print(f"rows: {manifest['rows']:,}, {manifest['nulls']:,} of them null")
    print("\n".join(token_lines(manifest)))
    layout = manifest["options"].get("layout") or {}
    if layout.get("format", "parquet") != "parquet":
        print(f"rows are shown of Parquet only, not of --format {layout['format']}")
    for shard, row, ids in rows:
        if ids is None:
            print(f"\n{_plain(shard)} row {row}: null")
        else:
            text = _plain(_text(ids, tokenizer))
            print(f"\n{_plain(shard)} row {row}, {len(ids):,} ids:\n{text}")


def _number_of_shards(manifest: dict[str, Any]) -> int:
    """Return the number of shards, without their second files."""
    return sum(has_ids(shard["name"]) for shard in manifest["shards"])


def _text(ids: list[int], tokenizer: Tokenizer) -> str:
    """Return the text of a row with special tokens, without the padding at its end."""
    pad = tokenizer.pad_id
    end = len(ids)
    while end and ids[end - 1] == pad:
        end -= 1
    return tokenizer.decode(ids[:end], skip_special_tokens=False)


def _plain(text: str) -> str:
    """A text in which nothing acts on the terminal."""
    return visible(text, len(text))


# --- Rows -----------------------------------------------------------------------------------------


def _rows(
    path: str, manifest: dict[str, Any], most: int
) -> Iterator[tuple[str, int, list[int] | None]]:
    """The first rows of Parquet shards: the name of the shard, the number in it, and the ids; None
    for a null. Of other formats none: their readers show them."""
    left = most
    for name in (shard["name"] for shard in manifest["shards"]):
        if left <= 0:
            return
        if name.endswith(".parquet"):
            for row, found in enumerate(_parquet_rows(inside(path, name), left)):
                yield name, row, found
                left -= 1


def _parquet_rows(place: str, most: int) -> Iterator[list[int] | None]:
    with open_parquet(as_planned(place)) as file:
        if IDS not in file.schema_arrow.names:
            raise damaged(place)
        for batch in file.iter_batches(min(most, _ROWS_AT_ONCE), columns=[IDS]):
            yield from batch.column(0).slice(0, most).to_pylist()
            most -= len(batch)
            if most <= 0:
                return
