"""`wordpiece encode`: runs the job and prints the summary."""

from __future__ import annotations

from pipelines.commands.follow import CommandLog
from pipelines.commands.loading import load_tokenizer
from pipelines.commands.summary import finish, print_corpus, print_tokens, say
from pipelines.encoding.directory.bad_shards import ShardsError
from pipelines.encoding.encode import encode_job
from pipelines.encoding.options import EncodeOptions
from pipelines.encoding.result import Encoded
from pipelines.progress import Progress


def run_encode(options: EncodeOptions, *, as_json: bool) -> None:
    """Run `wordpiece encode`."""
    tokenizer = load_tokenizer(options)
    progress = Progress(quiet=options.quiet or options.follow)
    log = CommandLog(quiet=options.quiet, as_json=as_json) if options.follow else None
    try:
        done = encode_job(options, tokenizer, progress, log)
    except ShardsError as failed:
        for error in failed.errors if len(failed.errors) > 1 else []:
            say(f"error: {error.message}")
        raise
    finish(done, options, lambda: _print_encoded(done), as_json=as_json)


def _print_encoded(done: Encoded) -> None:
    manifest = done.manifest
    read = {name: manifest[name] for name in ("bytes", "nulls")}
    print_corpus(read | {"rows": manifest["input_rows"]})
    kept = f" ({done.kept} finished before)" if done.kept else ""
    others = f", {done.others} of them of inputs not given now" if done.others else ""
    print(f"shards: {len(done.shards):,}{kept}{others}")
    print_tokens(manifest)
    if manifest["options"].get("pack"):
        length, dropped = manifest["options"]["max_length"], manifest["dropped_tokens"]
        left_out = f", {dropped:,} tokens at shard ends were dropped" if dropped else ""
        print(f"sequences: {done.rows:,} of {length:,} ids{left_out}")
    print(f"dataset: {done.output}")
