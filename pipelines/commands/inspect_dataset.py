"""`wordpiece inspect DATASET`: rows of a dataset as text, its tokenizer, its counts."""

from __future__ import annotations

import io
import json
import struct
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa

from pipelines.commands.loading import load_tokenizer
from pipelines.commands.options import parted
from pipelines.encoding.directory.encoded_directory import (
    BESIDE,
    EARLIER,
    MANIFEST,
    kept_tokenizer,
)
from pipelines.encoding.directory.notes import SUMS, TRUNCATED
from pipelines.encoding.options import TokenizerChoice
from pipelines.files.filesystems import inside, join
from pipelines.files.inputs import open_parquet
from pipelines.files.outputs import damaged, read_json
from pipelines.files.reading import bad_data
from pipelines.files.storage import MissingError, StoredFile, as_planned, read_bytes
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError, OptionError

IDS = "input_ids"
_MEGATRON = struct.Struct("<9sQBQQ")
_MEGATRON_TYPES = {4: pa.int32(), 8: pa.uint16()}


def manifest_of(path: str) -> dict[str, Any] | None:
    """The manifest of the dataset at a path; None if there is no dataset."""
    for name in (MANIFEST, EARLIER[MANIFEST]):
        found = read_json(join(path, name))
        if isinstance(found, dict) and {"tokenizer", "shards"} <= found.keys():
            return found
    return None


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
    manifest = manifest_of(path)
    if manifest is None:
        if tokenizer is not None:
            raise OptionError(f"--tokenizer: {path} is no dataset")
        return False
    if texts:
        raise OptionError(f"{path}: a dataset has no use for TEXT; leave it out")
    loaded = None
    if tokenizer is not None:
        loaded = load_tokenizer(parted(TokenizerChoice, given | {"tokenizer": tokenizer}))
    run_inspect_dataset(path, manifest, rows, loaded, as_json=as_json)
    return True


def run_inspect_dataset(
    path: str, manifest: dict[str, Any], rows: int, tokenizer: Tokenizer | None, *, as_json: bool
) -> None:
    """Prints a dataset: its figures, and its first rows. `tokenizer`: the one that was given;
    otherwise that of the dataset."""
    tokenizer = tokenizer or kept_tokenizer(path)
    if tokenizer is None:
        raise OptionError(f"{path}: keeps no tokenizer; give it with --tokenizer")
    if tokenizer.digest != manifest["tokenizer"]:
        raise OptionError(
            f"--tokenizer: {tokenizer.digest[:12]} is not that of the dataset,"
            f" {manifest['tokenizer'][:12]}"
        )
    if isinstance(sys.stdout, io.TextIOWrapper):  # which need not be UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")
    show = _print_json if as_json else _print_lines
    show(path, manifest, _rows(path, manifest, rows), tokenizer)


def _print_json(
    path: str, manifest: dict[str, Any], rows: Iterator[tuple[str, int, Any]], tokenizer: Tokenizer
) -> None:
    """Prints an object for the dataset, and one for each row."""
    known = ("tokenizer", "options", *SUMS, *TRUNCATED)
    about = {name: manifest.get(name) for name in known}
    print(json.dumps({"dataset": path, "shards": _number_of_shards(manifest), **about}))
    for shard, row, ids in rows:
        text = None if ids is None else _text(ids, tokenizer)
        print(json.dumps({"shard": shard, "row": row, IDS: ids, "text": text}))


def _print_lines(
    path: str, manifest: dict[str, Any], rows: Iterator[tuple[str, int, Any]], tokenizer: Tokenizer
) -> None:
    """Prints lines for people."""
    print(f"dataset: {path}, {_number_of_shards(manifest):,} shards")
    print(f"tokenizer: {manifest['tokenizer']}, {len(tokenizer):,} tokens")
    unknown = manifest["unknown_tokens"] / max(manifest["tokens"], 1)
    print(f"rows: {manifest['rows']:,}, {manifest['nulls']:,} of them null")
    print(f"tokens: {manifest['tokens']:,}, {unknown:.2%} of them unknown")
    if manifest.get("truncated_rows"):
        cut = manifest["truncated_tokens"]
        print(f"truncated: {manifest['truncated_rows']:,} rows, {cut:,} tokens cut off")
    for shard, row, ids in rows:
        if ids is None:
            print(f"\n{_plain(shard)} row {row}: null")
        else:
            text = _plain(_text(ids, tokenizer))
            print(f"\n{_plain(shard)} row {row}, {len(ids):,} ids:\n{text}")


def _number_of_shards(manifest: dict[str, Any]) -> int:
    """How many shards there are; files beside them do not count."""
    return sum(not shard["name"].endswith(BESIDE) for shard in manifest["shards"])


def _text(ids: list[int], tokenizer: Tokenizer) -> str:
    """The text of a row, with special tokens as they are named; without the padding at its end."""
    pad = tokenizer.ids.get("[PAD]")
    end = len(ids)
    while end and ids[end - 1] == pad:
        end -= 1
    return tokenizer.decode(ids[:end], skip_special_tokens=False)


def _plain(text: str) -> str:
    """A text in which nothing acts on the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


# --- Rows -----------------------------------------------------------------------------------------


def _rows(
    path: str, manifest: dict[str, Any], most: int
) -> Iterator[tuple[str, int, list[int] | None]]:
    """The first rows: the name of the shard, the number in it, and the ids; None for a null."""
    left = most
    for shard in manifest["shards"]:
        if left <= 0:
            return
        name = shard["name"]
        if name.endswith(BESIDE):
            continue  # it is read with the shard that it is beside
        place = inside(path, name)
        ids = _parquet_rows(place, left) if name.endswith(".parquet") else _flat_rows(place, left)
        for row, found in enumerate(ids):
            yield name, row, found
            left -= 1


def _parquet_rows(place: str, most: int) -> Iterator[list[int] | None]:
    with open_parquet(as_planned(place)) as file:
        if IDS not in file.schema_arrow.names:
            raise damaged(place)
        for batch in file.iter_batches(min(most, 1024), columns=[IDS]):
            yield from batch.column(0).slice(0, most).to_pylist()
            most -= len(batch)
            if most <= 0:
                return


def _flat_rows(place: str, most: int) -> Iterator[list[int]]:
    """The rows of a `.bin`, whose places are in the file beside it."""
    kind, starts = _places(place.removesuffix(".bin"))
    size = kind.bit_width // 8
    with StoredFile(place) as file:
        for start, end in islice(pairwise(starts), most):
            file.seek(start * size)
            data = file.read((end - start) * size)
            if len(data) != (end - start) * size:
                raise damaged(place)
            found: list[int] = _numbers(data, kind).to_pylist()
            yield found


def _places(base: str) -> tuple[pa.DataType, list[int]]:
    """The type of the ids, and where each row begins, in ids; at last, where the last one ends."""
    try:
        data, kind = read_bytes(f"{base}.offsets"), None
    except MissingError:
        data, kind = read_bytes(f"{base}.idx"), _MEGATRON
    with bad_data(base):
        if kind is None:
            starts = _numbers(data, pa.int64()).to_pylist()
            with StoredFile(f"{base}.bin") as file:
                wide = file.size() > 2 * starts[-1]
            return (pa.uint32() if wide else pa.uint16()), starts
        if len(data) < kind.size:
            raise damaged(f"{base}.idx")
        magic, _, code, rows, _ = kind.unpack_from(data)
        if magic != b"MMIDIDX\0\0" or code not in _MEGATRON_TYPES:
            raise InputError(f"{base}.idx: no index of Megatron")
        starts = [0]
        for length in _numbers(data[kind.size : kind.size + 4 * rows], pa.int32()).to_pylist():
            starts.append(starts[-1] + length)
        return _MEGATRON_TYPES[code], starts


def _numbers(data: bytes, kind: pa.DataType) -> pa.Array:
    count = len(data) // (kind.bit_width // 8)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)])
