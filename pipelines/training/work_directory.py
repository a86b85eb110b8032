"""The work directory of a training, from which a killed training resumes.

    .wordpiece.json        marks the directory as the job's (`pipelines.io.owned`)
    words/                 the word table, if the training counts one
    count.json             the inputs and options that `words/` was counted from
    job.json               the options of the current training, the digest of the word table, and
                           the start of the rounds
    goal.json              the tokenizer to extend, and the options of the extension
    rounds/00001.parquet   the decisions of each finished round: merges, or the pieces of Unigram
    splits/00002/RUN/      the segmentation of the words in a round, by word range, unless the
                           driver may hold all of them
    exchange/ID/           sums that workers write for later passes and the driver
    superwords/            the same for superwords, whose words are segments of the text

While `job.json` exists, a call with other options is refused. It is the first file to be deleted
when the training is finished or has failed. Without it only the word table is used again, if
`count.json` fits the call, and all other files are deleted. (`count.json` is deleted before
`words/`.)

A round is finished when its file exists, and all later files can be made again. Workers write to
folders of the run or of the pipeline, which nobody else reads, so a worker that outlives a killed
run does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.counting.options import CountingOptions
from pipelines.counting.word_table import MANIFEST, PART
from pipelines.io import outputs
from pipelines.io.batches import one_batch
from pipelines.io.lock import LOCK
from pipelines.io.owned import OwnedDirectory, new_id
from pipelines.io.publishing import STAGING, Publication
from wordpiece_core import storage
from wordpiece_core.errors import InputError, OptionError, opt, short
from wordpiece_core.options import (
    ExtensionOptions,
    SuperwordOptions,
    TrainingOptions,
    defaults,
)
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.training.extension import Goal
from wordpiece_core.training.rounds import FinishedRound
from wordpiece_core.training.starting import Start, start_from_dict
from wordpiece_core.uri import join

COUNT, JOB, GOAL = "count.json", "job.json", "goal.json"
WORDS, ROUNDS, SPLITS, EXCHANGE = "words", "rounds", "splits", "exchange"
SUPERWORDS = "superwords"
STATUS, LAST, NOT_LAST = "status", "done", "round over"  # metadata of the file of a round
_NAMES = "|".join(
    (
        *(COUNT, JOB, GOAL),
        rf"{WORDS}/(?:{PART}|{MANIFEST}|{re.escape(LOCK)}|{STAGING}/(?:[^/]+/)?[^/]+)",
        rf"{ROUNDS}/\d{{5}}\.parquet",
        rf"{SPLITS}/\d{{5}}/[0-9a-f]{{16}}/\d{{9}}\.arrow",
        rf"{EXCHANGE}/[0-9a-f]{{16}}/[^/]+",
    )
)
_PHASE = rf"(?:{SUPERWORDS}/)?"
NAMES = rf"{_PHASE}(?:{_NAMES})"

DEFAULTS = {
    **defaults(CountingOptions),
    **defaults(TrainingOptions),
    **defaults(SuperwordOptions),
    **defaults(ExtensionOptions),
}
"""Values of options that a file lacks, because an earlier version wrote it."""


class HeldError(OptionError):
    """The work directory contains an unfinished training with other options."""


@dataclass(frozen=True)
class TrainingWork:
    """A work directory.

    Attributes:
        run: The id of this run.
    """

    path: str
    run: str = field(default_factory=new_id)

    @property
    def owned(self) -> OwnedDirectory:
        """The directory, with the names of the files that the job may delete."""
        return OwnedDirectory(self.path, "training", NAMES)

    @property
    def words(self) -> str:
        """The path of the word table."""
        return join(self.path, WORDS)

    @property
    def of_superwords(self) -> TrainingWork:
        """The directory of the second phase, when superwords are trained."""
        return replace(self, path=join(self.path, SUPERWORDS))

    def splits(self, number: int) -> str:
        """Return the directory of the segmentations of a round in this run."""
        return join(self.path, SPLITS, f"{number:05}", self.run)

    def exchange(self) -> str:
        """Create a directory for the sums of one pipeline, and delete older ones."""
        self.owned.sweep(rf"{EXCHANGE}/.*")
        directory = join(self.path, EXCHANGE, new_id())
        storage.make_directory(directory)
        return directory

    # --- Checks ----------------------------------------------------------------------------------

    def check(self, counted_from: Mapping[str, Any], training: Mapping[str, Any]) -> None:
        """Raise OutputError if the directory has files that are not the job's, and HeldError if it
        contains an unfinished training with other options."""
        self.owned.check()
        if self._identity(JOB):
            self._compare(COUNT, counted_from)
            self._compare(JOB, training)

    def check_started(self, identity: Mapping[str, Any]) -> None:
        """Raise HeldError if another training has started here."""
        self._compare(JOB, identity)

    def _compare(self, name: str, identity: Mapping[str, Any]) -> None:
        found = self._identity(name)
        for key, value in identity.items() if found else ():
            known = found.get(key, DEFAULTS.get(key))
            if known != value:
                raise HeldError(
                    f"{self.path}: contains an unfinished training with {key} {short(known)}, not"
                    f" {short(value)}; use the same options, choose another {opt.work_dir}, or"
                    " delete it"
                )

    def _identity(self, name: str) -> dict[str, Any]:
        """Read the values of a file that a run must share; none if there is no file."""
        path = join(self.path, name)
        value = outputs.read_json(path)
        identity = value.get("identity") if isinstance(value, dict) else value
        if identity is not None and not isinstance(identity, dict):
            raise InputError(f"{path}: not written by this program, or damaged; delete {self.path}")
        return identity or {}

    # --- Start and end ---------------------------------------------------------------------------

    def claim(self, counted_from: Mapping[str, Any]) -> None:
        """Prepare the directory after `check`, and delete files that this run does not use."""
        self.owned.claim()
        left = [rf"{_PHASE}{EXCHANGE}/.*", rf"{_PHASE}{SPLITS}/.*"]
        if not self._identity(JOB):
            left += [GOAL, rf"{ROUNDS}/.*", rf"{SUPERWORDS}/.*"]
            known = self._identity(COUNT)
            if DEFAULTS | known != {**DEFAULTS, **counted_from}:
                if known:
                    self._delete_first(COUNT)
                left.append(rf"{WORDS}/.*")
        self.owned.sweep("|".join(left))
        Publication(self.words, MANIFEST, self.run).recover()

    def release(self) -> None:
        """End a training that has failed, and keep its word table."""
        self._delete_first(JOB)
        if not self.is_counted():
            self.delete()

    def delete(self) -> None:
        """Delete the directory, except files that are not the job's."""
        self._delete_first(JOB)
        self._delete_first(COUNT)
        self.owned.delete()

    def _delete_first(self, name: str) -> None:
        """Delete a file before the files that are valid only with it."""
        storage.delete_file(join(self.path, name))
        storage.sync(self.path)

    # --- Counting --------------------------------------------------------------------------------

    def start_count(self, identity: Mapping[str, Any]) -> None:
        """Record the inputs and options that the word table is counted from."""
        outputs.write_json(join(self.path, COUNT), {"identity": identity})

    def is_counted(self) -> bool:
        """Return True if the word table is finished."""
        return storage.info(join(self.words, MANIFEST)) is not None

    # --- Rounds ----------------------------------------------------------------------------------

    def start_training(self, identity: Mapping[str, Any], start: Start) -> None:
        """Record a training and the start of its rounds."""
        outputs.write_json(join(self.path, JOB), {"identity": identity, **start.to_dict()})

    def start(self) -> Start | None:
        """Read the start of the rounds; None if the training has not started."""
        value = outputs.read_json(join(self.path, JOB))
        return None if value is None else start_from_dict(value)

    def write_goal(self, goal: Goal) -> None:
        """Record the goal of an extension, for workers and for a run that resumes."""
        value = {
            "base": goal.base.to_dict(),
            "options": goal.options.to_dict(),
            "new_tokens": goal.new_tokens,
            "slots": goal.slots,
        }
        outputs.write_json(join(self.path, GOAL), value)

    def goal(self) -> Goal:
        """Read the goal of an extension."""
        value = outputs.read_json(join(self.path, GOAL))
        return Goal(
            TokenizerSpec.from_dict(value["base"]),
            ExtensionOptions(**value["options"]),
            value["new_tokens"],
            value["slots"],
        )

    def finish_round(self, number: int, done: FinishedRound) -> None:
        """Commit a round, and delete the segmentations of the round before."""
        facts = {name: str(value) for name, value in done.facts.items()}
        metadata = {STATUS: LAST if done.is_last else NOT_LAST} | facts
        path = join(self.path, ROUNDS, f"{number:05}.parquet")
        decided = done.decided.replace_schema_metadata(metadata)
        outputs.write_parquet(path, [decided], decided.schema)
        self.owned.sweep(rf"{SPLITS}/{number - 1:05}/.*")

    def finished_rounds(self) -> list[FinishedRound]:
        """Read the finished rounds in order."""
        directory = join(self.path, ROUNDS)
        names = [name for name in outputs.list_directory(directory) if not name.startswith(".")]
        if names != [f"{number:05}.parquet" for number in range(1, len(names) + 1)]:
            raise InputError(f"{directory}: a round is missing; delete {self.path} and train again")
        return storage.in_parallel(_read_round, (join(directory, name) for name in names))


def _read_round(path: str) -> FinishedRound:
    table = outputs.read_parquet(path)
    facts = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    is_last = facts.pop(STATUS) == LAST
    numbers = {name: int(value) for name, value in facts.items()}
    return FinishedRound(one_batch(table), numbers, is_last)
