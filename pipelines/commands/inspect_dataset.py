"""`wordpiece inspect DATASET`: rows of a dataset as text, its tokenizer, its counts."""

from __future__ import annotations

import io
import json
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any

import pyarrow as pa

from pipelines.commands.loading import load_tokenizer
from pipelines.commands.options import parted
from pipelines.encoding.directory.encoded_directory import (
    MANIFEST,
    SECOND_FILES,
    WORK,
    kept_tokenizer,
)
from pipelines.encoding.directory.status import SUMS
from pipelines.encoding.options import TokenizerChoice
from pipelines.encoding.resharding.formats import MEGATRON_CODES, MEGATRON_HEADER, MEGATRON_MAGIC
from pipelines.files.inputs import open_parquet
from pipelines.files.outputs import damaged, read_json
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.storage import MissingError, StoredFile, as_planned
from wordpiece_core.tokenizer.hub_names import hub_name
from wordpiece_core.uri import inside, join, sibling
from wordpiece_core.visible import visible

IDS = "input_ids"
_MEGATRON_TYPES = {code: kind for kind, code in MEGATRON_CODES.items()}
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
        raise InputError(f"{path}: this dataset is not finished; run encode again")
    return None


def _is_whole(manifest: dict[str, Any]) -> bool:
    """Whether a manifest has what is shown."""
    shards = manifest["shards"]
    return (
        isinstance(manifest["tokenizer"], str)
        and isinstance(shards, list)
        and all(isinstance(shard, dict) and isinstance(shard.get("name"), str) for shard in shards)
        and all(isinstance(manifest.get(name), int) for name in SUMS)
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
    print(f"dataset: {path}, {_number_of_shards(manifest):,} shards")
    print(f"tokenizer: {manifest['tokenizer']}, {len(tokenizer):,} tokens")
    unknown = manifest["unknown_tokens"] / max(manifest["tokens"], 1)
    print(f"rows: {manifest['rows']:,}, {manifest['nulls']:,} of them null")
    print(f"tokens: {manifest['tokens']:,}, {unknown:.2%} of them unknown")
    if manifest["truncated_rows"]:
        tokens = manifest["truncated_tokens"]
        print(f"truncated: {manifest['truncated_rows']:,} rows, by {tokens:,} tokens")
    for shard, row, ids in rows:
        if ids is None:
            print(f"\n{_plain(shard)} row {row}: null")
        else:
            text = _plain(_text(ids, tokenizer))
            print(f"\n{_plain(shard)} row {row}, {len(ids):,} ids:\n{text}")


def _number_of_shards(manifest: dict[str, Any]) -> int:
    """How many shards there are; files beside them do not count."""
    return sum(not shard["name"].endswith(SECOND_FILES) for shard in manifest["shards"])


def _text(ids: list[int], tokenizer: Tokenizer) -> str:
    """The text of a row, with special tokens as they are named; without the padding at its end."""
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
    """The first rows: the name of the shard, the number in it, and the ids; None for a null."""
    left = most
    for shard in manifest["shards"]:
        if left <= 0:
            return
        name = shard["name"]
        if name.endswith(SECOND_FILES):
            continue  # it is read with the shard that it is beside
        place = inside(path, name)
        if name.endswith(".parquet"):
            ids = _parquet_rows(place, left)
        else:
            ids = _flat_rows(place, path, name, left)
        for row, found in enumerate(ids):
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


def _flat_rows(place: str, path: str, name: str, most: int) -> Iterator[list[int]]:
    """The rows of a `.bin` or `.ds`, whose places are in the file beside it."""
    bare = join(path, name.removesuffix(".bin"))
    with StoredFile(place) as file:
        try:
            if name.endswith(".ds"):
                kind, ends = _ends_of_numbers(sibling(bare, ".index"), file.size(), 0)
            else:
                kind, ends = _ends_of_numbers(sibling(bare, ".offsets"), file.size(), 1)
        except MissingError:
            kind, ends = _ends_of_megatron(sibling(bare, ".idx"))
        start, size = 0, kind.bit_width // 8
        for end in islice(ends, most):
            file.seek(start * size)
            data = file.read(max(end - start, 0) * size)
            if not data or len(data) != (end - start) * size:
                raise damaged(place)
            found: list[int] = _numbers(data, kind).to_pylist()
            yield found
            start = end


def _ends_of_numbers(place: str, ids_bytes: int, first: int) -> tuple[pa.DataType, Iterator[int]]:
    """The type of the ids of a shard, and where its rows end, in ids. `ids_bytes`: the size of the
    ids. `first`: how many numbers there are before the first end."""
    with StoredFile(place) as file:
        rows, rest = divmod(file.size(), 8)
        file.seek(max(rows - 1, 0) * 8)
        last = _numbers(file.read(8), pa.int64()).to_pylist() if rows and not rest else [-1]
    for kind in (pa.uint16(), pa.uint32()):
        if ids_bytes == last[0] * kind.bit_width // 8:
            return kind, _read_numbers(place, 8 * first, rows - first, pa.int64())
    raise damaged(place)


def _ends_of_megatron(place: str) -> tuple[pa.DataType, Iterator[int]]:
    """The same of a shard with an index of Megatron."""
    with StoredFile(place) as file:
        head = file.read(MEGATRON_HEADER.size)
    if len(head) < MEGATRON_HEADER.size:
        raise damaged(place)
    magic, _, code, sequences, documents = MEGATRON_HEADER.unpack(head)
    if magic != MEGATRON_MAGIC or code not in _MEGATRON_TYPES:
        raise InputError(f"{place}: no index of Megatron")
    lengths = _read_numbers(place, MEGATRON_HEADER.size, sequences, pa.int32())
    ends: Iterator[int] = accumulate(lengths)
    if documents != sequences + 1:  # some have several sequences
        start = MEGATRON_HEADER.size + (4 + 8) * sequences
        ends = _ends_of_documents(ends, _read_numbers(place, start, documents, pa.int64()))
    return _MEGATRON_TYPES[code], ends


def _ends_of_documents(ends: Iterator[int], documents: Iterator[int]) -> Iterator[int]:
    """Where documents end, in ids. `ends`: of their sequences; `documents`: before which of these
    each document ends, from 0."""
    for before, after in pairwise(documents):
        yield from deque(islice(ends, after - before), 1)


def _read_numbers(place: str, start: int, count: int, kind: pa.DataType) -> Iterator[int]:
    """Numbers of a file from a byte on, some at a time."""
    size = kind.bit_width // 8
    with StoredFile(place) as file:
        file.seek(start)
        while count > 0:
            wanted = min(count, _ROWS_AT_ONCE)
            data = file.read(wanted * size)
            if len(data) != wanted * size:
                raise damaged(place)
            yield from _numbers(data, kind).to_pylist()
            count -= wanted


def _numbers(data: bytes, kind: pa.DataType) -> pa.Array:
    count = len(data) // (kind.bit_width // 8)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)])
