"""The directory that `train` writes: a tokenizer, the log of its training, and what it was made of.

    tokenizer.json, tokenizer_config.json, special_tokens_map.json; and, by model, vocab.txt, or
    vocab.json and merges.txt, or spiece.model
                    the tokenizer
    merges.parquet  the log; of unigram instead pieces.parquet, which is about each piece
    pruned_ids.parquet  of a tokenizer that was pruned: its new ids, by the old ones
    run.json        what this run took
    training.json   what it takes to get the same bytes again

Either all files are those of one training or none is: `training.json` is published last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pipelines.io import outputs
from pipelines.io.publishing import STAGING, Publication
from wordpiece_core import storage
from wordpiece_core.errors import InputError, OptionError, OutputError, opt, short
from wordpiece_core.options import ExtensionOptions, TextOptions, TrainingOptions, defaults
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.writing import TOKENIZER_FILES, tokenizer_files
from wordpiece_core.training.extension import NEW_TOKENS
from wordpiece_core.training.train import MERGES, PIECES
from wordpiece_core.uri import join

TRAINING, RUN = "training.json", "run.json"
PRUNED_IDS = "pruned_ids.parquet"
FILES = (*sorted(TOKENIZER_FILES), MERGES, PIECES, PRUNED_IDS, NEW_TOKENS)
"""The files that a new tokenizer replaces. `training.json` has the digests of those written."""
OPTIONS = {"text": TextOptions, "training": TrainingOptions, "extension": ExtensionOptions}
"""The keys of `training.json` with options. An option that it lacks had its default."""
NO_MERGES = pa.schema(
    [
        *(("step", pa.int64()), ("left", pa.string()), ("right", pa.string())),
        *(("token", pa.string()), ("score", pa.float64()), ("pair_count", pa.int64())),
        *(("left_count", pa.int64()), ("right_count", pa.int64())),
    ]
).empty_table()
"""The log of a tokenizer for which nothing was merged."""


def check_tokenizer_directory(output: str, identity: Mapping[str, Any], *, overwrite: bool) -> None:
    """Raises OptionError if the directory holds a tokenizer that was trained otherwise, or whose
    files were changed since, unless that is to be overwritten; OutputError if it holds anything
    but a tokenizer that was trained here. `identity`: as far as it is known, keys of
    `training.json`."""
    publication = Publication(output, TRAINING)
    if storage.info(join(output, STAGING)) is not None:
        publication.recover()
    entries = storage.entries(output, recursive=False)
    names = [e.name for e in entries if not e.name.startswith(".") and e.name != STAGING]
    if not names:
        return
    record = outputs.read_json(join(output, TRAINING))
    if not isinstance(record, dict):
        raise OutputError(
            f"{output}: contains {names[0]}, which wordpiece train did not write; choose an"
            " empty directory"
        )
    difference = _difference(identity, record) or _changed_file(output, record)
    if difference and not overwrite:
        raise OptionError(
            f"{output}: contains a tokenizer {difference}; set {opt.overwrite}, or choose"
            " another directory"
        )


def _difference(identity: Mapping[str, Any], record: dict[str, Any]) -> str | None:
    for key, wanted in identity.items():
        found = record.get(key)
        if isinstance(wanted, dict) and isinstance(found, dict):
            found = defaults(OPTIONS[key]) | found if key in OPTIONS else found
            for name, value in wanted.items():
                if found.get(name) != value:
                    return f"trained with {name} {short(found.get(name))}, not {short(value)}"
        elif found != wanted and (found or wanted):  # options at their defaults are not recorded
            if key == "split_special_tokens":
                return f"trained {'with' if found else 'without'} {key}"
            return "trained on other words" if key == "word_table" else "of another version"
    return None


def _changed_file(output: str, record: dict[str, Any]) -> str | None:
    """Which of the files is not as it was written."""
    files = record.get("files")
    if not isinstance(files, dict):
        return "of another version"
    for name, digest in files.items():
        try:
            if outputs.digest(_place(output, name)) != digest:
                return f"whose {name} was changed after its training"
        except storage.MissingError:
            continue
    return None


def _place(output: str, name: str) -> str:
    if name not in FILES:
        raise InputError(f"{join(output, TRAINING)}: names {name!r}, which is not a tokenizer file")
    return join(output, name)


def write_tokenizer(
    output: str,
    spec: TokenizerSpec,
    tables: Mapping[str, pa.Table],
    record: dict[str, Any],
    run: dict[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Write the tokenizer directory, after `check_tokenizer_directory`: all files, or none.

    Args:
        tables: The Parquet files by name.
        overwrite: Another tokenizer may be there, so delete its files that are not written.
    """
    publication = Publication(output, TRAINING)
    publication.recover()
    publication.begin()
    try:
        digests = {}
        for name, data in tokenizer_files(spec).items():
            publication.stage(name, data)
            digests[name] = outputs.digest(publication.place(name))
        for name, table in tables.items():
            _stage_table(publication, name, table)
            digests[name] = outputs.digest(publication.place(name))
        publication.stage_json(RUN, run)
        publication.stage_json(TRAINING, record | {"files": digests})
        publication.publish([*digests, RUN, TRAINING], FILES if overwrite else ())
    except Exception:
        publication.abandon()
        raise


def _stage_table(publication: Publication, name: str, table: pa.Table) -> None:
    publication.write(name, lambda stream: outputs.write_tables(stream, table, compression="zstd"))
