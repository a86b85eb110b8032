"""The work directory of a layout, `_layout` in the output: what is encoded and not laid out yet.

encoded/             the shards of the inputs, with their notes (`pipelines.encoding.directory`);
                     it never has a manifest
runs-DIGEST/N.runs   with --shuffle, rows in random order (`pipelines.layout.scatter`). DIGEST
                     stands for the inputs and the options
made-DIGEST/N-M.*    shards that are made, until their number is known, and so their names: the
                     files of the shard M of the task N
made-DIGEST/N.json   the notes of the shards of the task N, all of which are made
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.encoding.directory.encoded_directory import LAYOUT, EncodedDirectory
from pipelines.files.filesystems import join
from pipelines.files.owned import OwnedDirectory

ENCODED = "encoded"
RUNS = r"runs-[0-9a-f]{16}/[0-9]{5,}\.runs"
MADE = r"made-[0-9a-f]{16}/[0-9]{5,}(?:-[0-9]{5,}\.[a-z]+|\.json)"


@dataclass(frozen=True)
class WorkDirectory:
    """The work directory of a dataset. `digest`: of its inputs and options."""

    dataset: EncodedDirectory
    digest: str = ""

    @property
    def owned(self) -> OwnedDirectory:
        """The directory, which the job owns."""
        names = rf"{ENCODED}/(?:.+\.parquet|_shards/.+)|{RUNS}|{MADE}"
        return OwnedDirectory(self.dataset.place(LAYOUT), "layout", names, self.dataset.run)

    @property
    def encoded(self) -> str:
        """The path of what is encoded."""
        return self.owned.place(ENCODED)

    def encoded_shard(self, name: str) -> str:
        """The path of the encoded shard of an input."""
        return join(self.encoded, name)

    def runs(self, number: int) -> str:
        """The path of the runs of some inputs."""
        return join(self.folder("runs"), f"{number:05}.runs")

    def folder(self, kind: str) -> str:
        """The path of the directory of "runs", or of what is "made"."""
        return self.owned.place(f"{kind}-{self.digest[:16]}")

    def sweep(self) -> None:
        """Deletes runs, and what is made, of other inputs or options."""
        self.owned.sweep(rf"(?:runs|made)-(?!{self.digest[:16]}/).*")
