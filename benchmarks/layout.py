"""What it costs to lay a dataset out: whole processes, beside `encode` alone; and the sizes of the
shards, and the tokens left out by packing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import WORDPIECE, Row, Taken, in_turn, process_columns, run_process
from benchmarks.setting import Setting, megabytes, read_texts
from benchmarks.small_files import FILES, write_files
from pipelines.encoding.directory.encoded_directory import SECOND_FILES

SIZE = 8 << 20
PACK = ("--pack", "--max-length", "512")
SHUFFLE = ("--shuffle", "1")
SPLITS = ("--splits", "train=0.98,validation=0.02")
LAYOUTS: dict[str, Sequence[str]] = {
    "alone": (),
    "--shard-size": (),
    "--pack": PACK,
    "--shuffle": SHUFFLE,
    "--splits": SPLITS,
    "--shuffle --pack --splits": (*SHUFFLE, *PACK, *SPLITS),
    "--format megatron": ("--format", "megatron"),
    "--format bin": ("--format", "bin"),
}


def layout(setting: Setting) -> Iterator[Row]:
    """Resharding in shards of about 8 MiB, whole processes"""
    paths = setting.groups[setting.main_group]
    texts = read_texts(paths)
    small = write_files(texts, FILES, setting.work)
    output = setting.work / "laid out"
    sources = {f"{len(paths)} files": [*map(str, paths)], f"{FILES:,} files": [str(small)]}
    sized = ("--shard-size", str(SIZE))
    calls = {key: (*args, *(sized if key != "alone" else ())) for key, args in LAYOUTS.items()}
    found: dict[str, str] = {}

    def run(key: str, source: Sequence[str]) -> Taken:
        shutil.rmtree(output, ignore_errors=True)
        args = [*source, "--tokenizer", str(setting.vocab), "--output", str(output), *calls[key]]
        taken = run_process([WORDPIECE, "encode", *args], setting.cores, os.environ)
        found[key] = sizes_of(output)
        return taken

    for name, source in sources.items():
        contenders = {key: partial(run, key, source) for key in calls}
        for key, runs in in_turn(contenders, setting.runs).items():
            yield {
                f"{megabytes(texts):.0f} MB": name,
                "encode": key,
                **process_columns(runs, megabytes(texts)),
                "shards, tokens left out": found[key],
            }


def sizes_of(output: Path) -> str:
    """How many shards there are, their least and greatest sizes, and what packing has left out."""
    manifest = json.loads((output / ".manifest.json").read_text())
    sizes: dict[str, int] = {}
    for shard in manifest["shards"]:
        name = shard["name"].rpartition(".")[0]
        sizes[name] = sizes.get(name, 0) + shard["output_bytes"]
    train = [size for name, size in sizes.items() if not name.startswith("validation")]
    dropped = manifest["dropped_tokens"] / max(manifest["tokens"], 1)
    shards = sum(not shard["name"].endswith(SECOND_FILES) for shard in manifest["shards"])
    return f"{shards:,} of {min(train) / 1e6:.2f} to {max(train) / 1e6:.2f} MB" + (
        f", {dropped:.4%}" if manifest["options"]["pack"] else ""
    )
