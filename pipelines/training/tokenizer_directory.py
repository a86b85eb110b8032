"""The directory of a trained tokenizer.

    tokenizer.json, tokenizer_config.json, special_tokens_map.json, and depending on the model
    vocab.txt, or vocab.json and merges.txt, or spiece.model
                        the tokenizer
    merges.parquet      the training log; pieces.parquet for Unigram
    pruned_ids.parquet  after `prune`, the new ids by old id
    run.json            what the run took
    training.json       what a training needs to give the same bytes again

Either all files are of one training or none: `training.json` is published last.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from pipelines.io import outputs
from pipelines.io.publishing import STAGING, Publication
from wordpiece_core import storage
from wordpiece_core.errors import InputError, OptionError, OutputError, opt, short
from wordpiece_core.options import (
    ExtensionOptions,
    SuperwordOptions,
    TextOptions,
    TrainingOptions,
    defaults,
)
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.writing import TOKENIZER_FILES, tokenizer_files
from wordpiece_core.training.extension import NEW_TOKENS
from wordpiece_core.training.train import MERGES, PIECES
from wordpiece_core.uri import join

TRAINING, RUN = "training.json", "run.json"
PRUNED_IDS = "pruned_ids.parquet"
FILES = (*sorted(TOKENIZER_FILES), MERGES, PIECES, PRUNED_IDS, NEW_TOKENS)
"""Files that a new tokenizer replaces. `training.json` has the digests of the written files."""
DEFAULTS = {
    "text": defaults(TextOptions),
    "training": defaults(TrainingOptions) | defaults(SuperwordOptions),
    "extension": defaults(ExtensionOptions),
}
"""The keys of `training.json` with options. A missing option had its default."""
NO_MERGES = pa.schema(
    [
        *(("step", pa.int64()), ("left", pa.string()), ("right", pa.string())),
        *(("token", pa.string()), ("score", pa.float64()), ("pair_count", pa.int64())),
        *(("left_count", pa.int64()), ("right_count", pa.int64())),
    ]
).empty_table()
"""The training log of a tokenizer without merges of its own."""


def check_tokenizer_directory(output: str, identity: Mapping[str, Any], *, overwrite: bool) -> None:
    """Check that a tokenizer may be written to a directory.

    Args:
        identity: The known keys of `training.json`.

    Raises:
        OptionError: Unless `overwrite` is set, for a tokenizer that was trained with other options,
            or whose files were changed.
        OutputError: For other files.
    """
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
    """Describe the first difference between this training and a recorded one."""
    for key, wanted in identity.items():
        found = record.get(key)
        if isinstance(wanted, dict) and isinstance(found, dict):
            found = DEFAULTS.get(key, {}) | found
            for name, value in wanted.items():
                if found.get(name) != value:
                    return f"trained with {name} {short(found.get(name))}, not {short(value)}"
        elif found != wanted and (found or wanted):  # options at their defaults are not recorded
            if key == "split_special_tokens":
                return f"trained {'with' if found else 'without'} {key}"
            return "trained on other words" if key == "word_table" else "of another version"
    return None


def _changed_file(output: str, record: dict[str, Any]) -> str | None:
    """Describe the first file that has changed since the training."""
    files = record.get("files")
    if not isinstance(files, dict):
        return "of another version"
    for name, digest in files.items():
        if name not in FILES:
            place = join(output, TRAINING)
            raise InputError(f"{place}: names {name!r}, which is not a tokenizer file")
        try:
            if outputs.digest(join(output, name)) != digest:
                return f"whose {name} was changed after its training"
        except storage.MissingError:
            continue
    return None


def write_tokenizer(
    output: str,
    spec: TokenizerSpec,
    tables: Mapping[str, pa.Table],
    record: dict[str, Any],
    run: dict[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Write a tokenizer directory after `check_tokenizer_directory`: all files, or none.

    Args:
        tables: Parquet files by name.
        overwrite: Delete the files of another tokenizer that are not written.
    """
    publication = Publication(output, TRAINING)
    publication.recover()
    publication.begin()
    try:
        files = tokenizer_files(spec)
        for name, data in files.items():
            publication.stage(name, data)
        for name, table in tables.items():
            write = partial(outputs.write_tables, data=table, compression="zstd")
            publication.write(name, write)
        names = [*files, *tables]
        digests = {name: outputs.digest(publication.place(name)) for name in names}
        publication.stage_json(RUN, run)
        publication.stage_json(TRAINING, record | {"files": digests})
        publication.publish([*names, RUN, TRAINING], FILES if overwrite else ())
    except Exception:
        publication.discard()
        raise
