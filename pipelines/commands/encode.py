"""`wordpiece encode`: from the command line to the job, and what is said at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.commands.loading import load_tokenizer
from pipelines.commands.summary import check_call, comma_separated, print_corpus, say
from pipelines.encoding.encode import Encoded, Plan, PlannedShard, encode, plan
from pipelines.encoding.encoded_directory import ShardsError
from pipelines.encoding.options import EncodeOptions
from pipelines.running.progress import Progress
from wordpiece_core import EncodingOptions

MANY_UNKNOWN = 0.01  # of tokens: more is worth a warning
MANY_DROPPED = 0.01  # of tokens, with --pack


def run_encode(
    inputs: Sequence[str],
    beam_args: Sequence[str],
    *,
    output: str,
    tokenizer: str,
    unk_scope: str,
    lowercase: bool | None,
    text_column: str,
    text_pair_column: str | None,
    keep_columns: str | None,
    columns: str,
    pack: bool,
    compression: str,
    on_error: str,
    dry_run: bool,
    quiet: bool = False,
    config: str | None = None,
    debug: bool = False,
    **encoding: Any,
) -> dict[str, Any] | None:
    """`wordpiece encode`: the manifest, or None of a dry run"""
    check_call(inputs, beam_args, output)
    loaded = load_tokenizer(tokenizer, unk_scope=unk_scope, lowercase=lowercase)
    options = EncodeOptions(
        text_column=text_column,
        text_pair_column=text_pair_column,
        keep_columns=None if keep_columns is None else tuple(comma_separated(keep_columns)),
        pack=pack,
        compression=compression,
        encoding=EncodingOptions(columns=tuple(comma_separated(columns)), **encoding),
    )
    if dry_run:
        _print_plan(plan(inputs, output, loaded, options))
        return None
    try:
        encoded = encode(
            inputs,
            output,
            loaded,
            options,
            on_error=on_error,
            beam_args=beam_args,
            progress=Progress(quiet=quiet),
        )
    except ShardsError as failed:
        for error in failed.errors if len(failed.errors) > 1 else []:
            say(f"error: {error.message}")
        raise
    if not quiet:
        _print_encoded(encoded, output)
    _warn_of_encoding(encoded)
    return encoded.manifest


def _print_encoded(encoded: Encoded, output: str) -> None:
    manifest = encoded.manifest
    print_corpus(manifest | {"rows": manifest["input_rows"]})
    kept = f" ({encoded.kept} finished before)" if encoded.kept else ""
    others = f", {encoded.others} of them of inputs not given now" if encoded.others else ""
    print(f"shards: {len(manifest['shards']):,}{kept}{others}")
    print(f"tokens: {manifest['tokens']:,}, {_unknown_share(manifest):.2%} of them unknown")
    if manifest["options"]["pack"]:
        dropped = f", {manifest['dropped_tokens']:,} tokens of the shards' ends left out"
        print(f"sequences: {manifest['rows']:,}{dropped if manifest['dropped_tokens'] else ''}")
    print(f"dataset: {output}")


def _warn_of_encoding(encoded: Encoded) -> None:
    if not encoded.manifest["bytes"]:
        say("warning: the inputs hold no text")
    share = _unknown_share(encoded.manifest)
    if share > MANY_UNKNOWN:
        say(f"warning: {share:.1%} of the tokens are [UNK]; does the tokenizer fit the text?")
    share = encoded.manifest["dropped_tokens"] / max(encoded.manifest["tokens"], 1)
    if share > MANY_DROPPED:
        say(
            f"warning: {share:.1%} of the tokens were left out, at the ends of the shards;"
            " give --padding, larger input files, or a smaller --max-length"
        )
    if encoded.manifest["invalid"]:
        say(
            f"warning: {encoded.manifest['invalid']:,} invalid UTF-8 sequences in kept columns are"
            " kept as they are; some readers refuse them (--keep-columns leaves columns out)"
        )
    for error in encoded.errors:
        say(f"warning: in quarantine: {error.message}")


def _unknown_share(manifest: dict[str, Any]) -> float:
    return float(manifest["unknown_tokens"] / max(manifest["tokens"], 1))


def _print_plan(found: Plan) -> None:
    """What `wordpiece encode --dry-run` shows."""
    for shard in found.shards:
        print(f"{shard.file.path} -> {shard.name}: {_planned(shard)}")
    job = found.directory.job
    given = {name: value for name, value in job["options"].items() if value not in (None, [])}
    print(f"options: {', '.join(f'{name}={value}' for name, value in given.items())}")
    print(f"tokenizer: {job['tokenizer']}")
    waiting = found.to_run
    megabytes = sum(shard.bytes for shard in waiting) / 1e6
    bad = f", {len(found.errors):,} cannot be read" if found.errors else ""
    print(f"to encode: {len(waiting):,} of {len(found.shards):,} shards, {megabytes:,.1f} MB{bad}")
    print(f"dataset: {found.directory.path}, untouched by this dry run")


def _planned(shard: PlannedShard) -> str:
    if shard.error:
        return shard.error.message
    state = "finished, kept" if shard.finished else "to encode"
    rows = "" if shard.rows is None else f", {shard.rows:,} rows"
    return f"{state}{rows}, {shard.bytes / 1e6:,.1f} MB of text"
