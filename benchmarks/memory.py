"""Peak memory of the jobs by the memory that they were asked to use (benchmarks/memory.md).

Text is made larger by copies that share no words (`write_copy`). A local run has its workers in the
same process, so the peak covers the complete job.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.measure import WORDPIECE, Row, number, run_process
from benchmarks.setting import Setting, megabytes, read_texts, write_copy
from wordpiece_core.option_types import LEAST_DRIVER_MEMORY, LEAST_WORKER_MEMORY
from wordpiece_core.sizes import show_size

TIMES = (1, 4)
VOCAB_SIZE = 8_000
WORKER_MEMORIES = (show_size(LEAST_WORKER_MEMORY), "64MiB", "512MiB")
DRIVER_MEMORIES = (show_size(LEAST_DRIVER_MEMORY), "256MiB", "4GiB")


@dataclass(frozen=True)
class Asked:
    """A job with a size of input. `memories`: from the least on, none for a job without such an
    option."""

    job: str
    size: str
    command: Sequence[str]
    option: str | None = None
    memories: Sequence[str] = ()


def memory(setting: Setting) -> Iterator[Row]:
    """Peak memory of the jobs by the memory asked, whole process, once each"""
    output = setting.work / "memory"
    for asked in cases(setting):
        first = 0.0
        for size in asked.memories or ("",):
            option = [asked.option, size] if asked.option else []
            command = [WORDPIECE, *asked.command, *option, "--output", str(output)]
            taken = run_process(command, setting.cores, os.environ)
            shutil.rmtree(output)
            first = first or taken.peak_bytes
            yield {
                "job": asked.job,
                "input": asked.size,
                "asked": f"{asked.option} {size}" if asked.option else "",
                "peak MB": number(taken.peak_bytes / 1e6),
                "to the least": number(taken.peak_bytes / first) if asked.option else "",
                "seconds": number(taken.seconds),
            }


def cases(setting: Setting) -> Iterator[Asked]:
    """The jobs, each at two sizes."""
    texts = read_texts(setting.groups[setting.main_group])
    copies = [write_copy(texts, k, setting.work / f"text-{k}.parquet") for k in range(max(TIMES))]
    sizes = {f"{number(n * megabytes(texts))} MB": list(map(str, copies[:n])) for n in TIMES}
    for size, paths in sizes.items():
        yield Asked("count", size, ["count", *paths], "--worker-memory", WORKER_MEMORIES)
        train = ["train", *paths, "--vocab-size", str(VOCAB_SIZE)]
        yield Asked("train", size, train, "--driver-memory", DRIVER_MEMORIES)
    for size, paths in sizes.items():
        yield Asked("encode", size, ["encode", *paths, "--tokenizer", str(setting.vocab)])
