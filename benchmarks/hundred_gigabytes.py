"""100 GB of text through all jobs: time, peak memory and disk; and that the same text in other
files gives the same bytes.

The text is 104 copies of the corpus that share no words (`benchmarks.count_growth`), each under 16
names. Encoding is done in parts of a quarter, of which one is shuffled: so 60 GB of disk will do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.count_growth import write_copy
from benchmarks.measure import WORDPIECE, Row, number, run_process
from benchmarks.setting import Setting, megabytes, read_texts

COPIES, NAMES, PARTS = 104, 16, 4
VOCAB_SIZE = 30_522
OTHER = ", other files"
LAYOUT = ("--shuffle", "1", "--pack", "--max-length", "512")


def hundred_gigabytes(setting: Setting) -> Iterator[Row]:
    """100 GB (copies that share no words), whole processes, once each"""
    texts = read_texts(setting.groups[setting.main_group])
    total = COPIES * NAMES * megabytes(texts)
    whole, divided = setting.work / "whole", setting.work / "divided"
    for k in range(COPIES):
        _write(texts, k, whole, divided)
    parts = [sorted(whole.glob(f"{part}-*")) for part in range(PARTS)]
    part_of_divided = sorted(divided.glob("0-*"))
    train = ["train", "--vocab-size", str(VOCAB_SIZE), "--word-counts"]
    encode = ["encode", "--tokenizer", str(setting.work / "train")]
    jobs: dict[str, tuple[float, Sequence[str]]] = {
        "count": (total, ["count", str(whole)]),
        f"count{OTHER}": (total, ["count", str(divided)]),
        "train": (total, [*train, str(setting.work / "count")]),
        f"train{OTHER}": (total, [*train, str(setting.work / f"count{OTHER}")]),
    }
    size = total / PARTS
    for n, part in enumerate(parts):
        jobs[f"encode, part {n + 1}"] = size, [*encode, *map(str, part)]
    jobs[f"encode, part 1{OTHER}"] = size, [*encode, *map(str, part_of_divided)]
    jobs["encode, part 1, shuffled, packed"] = size, [*encode, *map(str, parts[0]), *LAYOUT]
    digests: dict[str, str] = {}
    for name, (read, command) in jobs.items():
        output = setting.work / name
        with _Disk(output) as disk:
            run = [WORDPIECE, *command, "--output", str(output)]
            taken = run_process(run, setting.cores, os.environ)
        digests[name] = _digest(output)
        if command[0] == "encode":
            shutil.rmtree(output)
        same = digests.get(name.removesuffix(OTHER)) == digests[name]
        yield {
            "job": name,
            "GB": number(read / 1000),
            "seconds": number(taken.seconds),
            "MB/s": number(read / taken.seconds),
            "peak MB": number(taken.peak_bytes / 1e6),
            "output, GB": number(disk.left / 1e9),
            "peak disk, GB": number(disk.peak / 1e9),
            "same bytes": ("yes" if same else "NO") if name.endswith(OTHER) else "",
        }


def _write(texts: pa.ChunkedArray, k: int, whole: Path, divided: Path) -> None:
    """A copy, in one file and divided into two, each under all its names."""
    for folder in (whole, divided):
        folder.mkdir(exist_ok=True)
    made = write_copy(texts, k, whole.with_name(f"copy-{k}.parquet"))
    table = pq.read_table(made)
    third = len(table) // 3
    files = {"": made}
    for part, rows in (("a", table.slice(0, third)), ("b", table.slice(third))):
        files[part] = made.with_name(f"copy-{k}-{part}.parquet")
        pq.write_table(rows, files[part], compression="zstd")
    for part, file in files.items():
        for name in range(NAMES):
            folder = divided if part else whole
            (folder / f"{k % PARTS}-{k:03}-{name:02}{part}.parquet").hardlink_to(file)


def _digest(output: Path) -> str:
    """Of a word table or a tokenizer; of a dataset, of its ids in the order of the names of its
    shards."""
    digest = hashlib.sha256()
    shards = sorted(output.glob("*.parquet"))
    for path in shards:
        if "input_ids" not in pq.read_schema(path).names:
            digest.update(path.read_bytes())
            continue
        for batch in pq.ParquetFile(path).iter_batches(columns=["input_ids"]):
            digest.update(batch.column(0).flatten().to_numpy())
    for path in sorted(output.glob("*.txt")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Disk:
    """How much disk a directory takes: at most, while the block runs, and `left` at its end."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.peak, self.left = directory, 0, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self) -> _Disk:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        self.left = self._size()
        self.peak = max(self.peak, self.left)

    def _watch(self) -> None:
        while not self.ended.wait(1):
            self.peak = max(self.peak, self._size())

    def _size(self) -> int:
        size = 0
        for folder, _, names in os.walk(self.directory):
            for name in names:
                try:
                    size += os.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:  # it was a temporary file
                    continue
        return size
