"""Tokenizers at the smaller vocabulary sizes that `--vocab-sizes` names."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.io import outputs
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.training.train import MERGES
from wordpiece_core.training.vocab_sizes import at_size, merged_tokens
from wordpiece_core.uri import join


def read_merge_log(place: str) -> list[str] | None:
    """Read the tokens of the merge log of a tokenizer directory, in the order of training. Return
    None if there is no log, or an empty one, as `prune` writes it.

    Raises InputError if the file is not a merge log.
    """
    path = join(place, MERGES)
    entry = storage.info(place)
    if entry is None or entry.kind != "directory" or storage.info(path) is None:
        return None
    merges = outputs.read_parquet(path)
    if "token" not in merges.column_names:
        raise InputError(f"{path}: not a merge log (no column token); delete it")
    return merges["token"].to_pylist() or None


def at_vocab_sizes(
    names: Sequence[str],
    places: Sequence[str | Tokenizer],
    tokenizers: Sequence[Tokenizer],
    sizes: Sequence[int],
) -> tuple[list[tuple[str, Tokenizer]], list[str]]:
    """Return each tokenizer with its name, followed by the same tokenizer at each size; and
    warnings. The complete tokenizer is left out of the sizes.

    Raises OptionError for a size that a tokenizer cannot have, and if no tokenizer has smaller
    sizes.
    """
    if not sizes:  # so that no merge log is read
        return list(zip(names, tokenizers, strict=True)), []
    found, unknown = [], []
    for name, place, tokenizer in zip(names, places, tokenizers, strict=True):
        found.append((name, tokenizer))
        merged = merged_tokens(tokenizer.spec, read_merge_log(place) if place == name else None)
        if merged is None:
            unknown.append(name)
            continue
        for size in sizes:
            if size != tokenizer.vocab_size:
                found.append((name, _at_size(name, tokenizer, merged, size)))
    if len(unknown) == len(names):
        raise OptionError(
            f"{opt.vocab_sizes}: the order of the merges of {unknown[0]} is unknown; use a BPE"
            " tokenizer, or a WordPiece directory that wordpiece train wrote"
        )
    return found, [
        f"{name}: the order of its merges is not known, so it has no smaller sizes"
        for name in unknown
    ]


def _at_size(name: str, tokenizer: Tokenizer, merged: Sequence[str], size: int) -> Tokenizer:
    try:
        return Tokenizer.from_spec(at_size(tokenizer.spec, merged, size), tokenizer.unk_scope)
    except OptionError as error:
        raise OptionError(f"{error.template} of {name}") from error
