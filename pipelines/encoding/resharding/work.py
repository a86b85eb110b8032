"""The work directory of a resharded dataset, `_layout` in the output.

manifest.json          the state of the output while it is not complete
encoded/               the encoded inputs, a directory of its own (`pipelines.encoding.directory`)
                       that is never complete
buckets-DIGEST/N.runs  with --shuffle, rows by the bucket of a random order
                       (`pipelines.encoding.resharding.shuffle`). DIGEST stands for the inputs and
                       the options
made-DIGEST/N-M.*      shards, until their number is known, and so their names: the files of the
                       shard M of the task N
made-DIGEST/N.json     the results of the shards of the task N, all of which are made
publish.json           names of the files in the output (`pipelines.files.publishing`)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipelines.encoding.directory.encoded_directory import (
    JOURNAL,
    LAYOUT,
    PLAN,
    SPEC,
    STATE,
    EncodedDirectory,
)
from pipelines.files.filesystems import join
from pipelines.files.publishing import STAGED

ENCODED = "encoded"
BUCKETS = r"buckets-[0-9a-f]{16}/[0-9]{5,}\.runs"
MADE = r"made-[0-9a-f]{16}/[0-9]{5,}(?:-[0-9]{5,}\.[a-z]+|\.json)"
IN_ENCODED = rf"{ENCODED}/(?:.+\.parquet|\.run\.json|_shards/.+)"
NAMES = "|".join((STATE, SPEC, JOURNAL, PLAN, STAGED, IN_ENCODED, BUCKETS, MADE))


def resharded_directory(path: str, job: dict[str, Any]) -> EncodedDirectory:
    """The output directory of a resharded dataset."""
    return EncodedDirectory(path, job, work_name=LAYOUT, work_files=NAMES)


@dataclass(frozen=True)
class WorkDirectory:
    """The work directory of a dataset. `digest`: of its inputs and options."""

    dataset: EncodedDirectory
    digest: str = ""

    @property
    def encoded(self) -> str:
        """The path of the encoded inputs."""
        return self.dataset.work.place(ENCODED)

    def encoded_shard(self, name: str) -> str:
        """The path of the encoded shard of an input."""
        return join(self.encoded, name)

    def buckets(self, number: int) -> str:
        """The path of a file of buckets."""
        return join(self.folder("buckets"), f"{number:05}.runs")

    def folder(self, kind: str) -> str:
        """The path of the directory of "buckets", or of what is "made"."""
        return self.dataset.work.place(self._name(kind))

    def made(self, name: str) -> str:
        """The path of a made file, relative to the work directory."""
        return f"{self._name('made')}/{name}"

    def _name(self, kind: str) -> str:
        return f"{kind}-{self.digest[:16]}"

    def sweep(self) -> None:
        """Deletes buckets, and what is made, of other inputs or options."""
        self.dataset.work.sweep(rf"(?:buckets|made)-(?!{self.digest[:16]}/).*")
