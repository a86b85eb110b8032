"""The work directory of a training: what it has done so far, so that a killed one continues.

    .wordpiece.json        whose it is, and the run that is at work (`pipelines.io.owned`)
    words/                 the word table, if the training counts one
    count.json             what `words/` was counted from
    job.json               a training is under way: its options, the digest of the word table, and
                           what it begins with
    goal.json              the tokenizer that is extended, and by what options
    rounds/00001.parquet   what each finished round has decided: merges, or the pieces of Unigram
    splits/00002/RUN/      the splits of the words in a round, by ranges of the word table, unless
                           the driver may hold them all
    exchange/ID/           what a pipeline gives to its workers and to the driver

While `job.json` is there, a call with other options is refused. It is the first file that is
deleted when the training is done or has failed. Of a directory without it, only a word table is
used again, if the call fits `count.json`; the rest is deleted. (`count.json` is deleted before
`words/`.)

A round is finished when its file is there; what comes after it can be made again. What workers
write is in folders of the run or of the pipeline, which nobody else reads: it does not matter if
one of them continues after the run was killed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pipelines.counting.options import CountingOptions
from pipelines.counting.word_table import MANIFEST, PART
from pipelines.io import outputs
from pipelines.io.batches import one_batch
from pipelines.io.owned import OwnedDirectory, new_id
from pipelines.io.publishing import STAGING, Publication
from wordpiece_core import storage
from wordpiece_core.errors import InputError, OptionError, opt, short
from wordpiece_core.options import ExtensionOptions, TrainingOptions, defaults
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.training.extension import Goal
from wordpiece_core.training.rounds import FinishedRound
from wordpiece_core.training.starting import Start, start_of_plain
from wordpiece_core.uri import join

COUNT, JOB, GOAL = "count.json", "job.json", "goal.json"
WORDS, ROUNDS, SPLITS, EXCHANGE = "words", "rounds", "splits", "exchange"
STATUS, LAST, NOT_LAST = "status", "done", "round over"  # of a round, in the file with what it did
NAMES = "|".join(
    (
        *(COUNT, JOB, GOAL),
        rf"{WORDS}/(?:{PART}|{MANIFEST}|{STAGING}/(?:[^/]+/)?[^/]+)",
        rf"{ROUNDS}/\d{{5}}\.parquet",
        rf"{SPLITS}/\d{{5}}/[0-9a-f]{{16}}/\d{{9}}\.arrow",
        rf"{EXCHANGE}/[0-9a-f]{{16}}/[^/]+",
    )
)

USUAL = defaults(CountingOptions) | defaults(TrainingOptions) | defaults(ExtensionOptions)
"""Values of options that a file lacks: an earlier version that wrote it did not have them."""


class HeldError(OptionError):
    """Another training was killed in the work directory, and is to be finished first."""


@dataclass(frozen=True)
class TrainingWork:
    """A work directory. `run`: the id of the run that works in it."""

    path: str
    run: str = field(default_factory=new_id)

    @property
    def owned(self) -> OwnedDirectory:
        """The directory as one that the job owns."""
        return OwnedDirectory(self.path, "training", NAMES)

    @property
    def words(self) -> str:
        """Where the word table is counted to."""
        return join(self.path, WORDS)

    def splits(self, number: int) -> str:
        """Where the splits of a round are, as this run makes them."""
        return join(self.path, SPLITS, f"{number:05}", self.run)

    def exchange(self) -> str:
        """A new directory for one pipeline. What is left of an earlier pipeline, and still writes,
        does not know it."""
        self.owned.sweep(rf"{EXCHANGE}/.*")
        directory = join(self.path, EXCHANGE, new_id())
        storage.make_directory(directory)
        return directory

    def write(self, name: str, value: object) -> None:
        """Commits a JSON file."""
        outputs.write_json(join(self.path, name), value)

    # --- Who holds it ----------------------------------------------------------------------------

    def check(self, counted_from: dict[str, Any], training: dict[str, Any]) -> None:
        """Raises OutputError if the directory has files that are not the job's, and HeldError if
        another training was killed in it."""
        self.owned.check()
        if self._identity(JOB):
            self._compare(COUNT, counted_from)
            self._compare(JOB, training)

    def claim(self, counted_from: dict[str, Any]) -> None:
        """Acquire the directory after `check`, and delete files that this run does not use."""
        self.owned.claim()
        left = [rf"{EXCHANGE}/.*", rf"{SPLITS}/.*"]
        if not self._identity(JOB):
            left += [GOAL, rf"{ROUNDS}/.*"]
            known = self._identity(COUNT)
            if USUAL | known != USUAL | counted_from:
                if known:
                    self._delete_first(COUNT)
                left.append(rf"{WORDS}/.*")
        self.owned.sweep("|".join(left))
        Publication(self.words, MANIFEST, self.run).recover()

    def release(self) -> None:
        """Ends a training that has failed. What it has counted stays."""
        self._delete_first(JOB)
        if not self.is_counted():
            self.delete()

    def delete(self) -> None:
        """Deletes the directory, except files that are not the job's."""
        self._delete_first(JOB)
        self._delete_first(COUNT)
        self.owned.delete()

    def _delete_first(self, name: str) -> None:
        """Deletes a file before those that count only together with it."""
        storage.delete_file(join(self.path, name))
        storage.sync(self.path)

    def check_begun(self, identity: dict[str, Any]) -> None:
        """HeldError if another training has begun here."""
        self._compare(JOB, identity)

    def _identity(self, name: str) -> dict[str, Any]:
        """What a file says that a run must have in common with it; empty if there is no file."""
        path = join(self.path, name)
        value = outputs.read_json(path)
        identity = value.get("identity") if isinstance(value, dict) else value
        if identity is not None and not isinstance(identity, dict):
            raise InputError(f"{path}: not written by this program, or damaged; delete {self.path}")
        return identity or {}

    def _compare(self, name: str, identity: dict[str, Any]) -> None:
        """Raise HeldError if a file has another value."""
        found = self._identity(name)
        for key, value in identity.items() if found else ():
            known = found.get(key, USUAL.get(key))
            if known != value:
                raise HeldError(
                    f"{self.path}: contains an unfinished training with {key} {short(known)}, not"
                    f" {short(value)}; use the same options, choose another {opt.work_dir}, or"
                    " delete it"
                )

    # --- Counting --------------------------------------------------------------------------------

    def begin_count(self, identity: dict[str, Any]) -> None:
        """Records what the word table is counted from."""
        self.write(COUNT, {"identity": identity})

    def is_counted(self) -> bool:
        """Whether the word table is finished."""
        return storage.info(join(self.words, MANIFEST)) is not None

    # --- Rounds ----------------------------------------------------------------------------------

    def begin(self, identity: dict[str, Any], start: Start) -> None:
        """Records what is trained, and what that begins with."""
        self.write(JOB, {"identity": identity, **start.plain()})

    def start(self) -> Start | None:
        """What the training begins with; None if it has not begun."""
        value = outputs.read_json(join(self.path, JOB))
        return None if value is None else start_of_plain(value)

    def write_goal(self, goal: Goal) -> None:
        """Records what is extended, for workers and for a run that continues."""
        self.write(GOAL, asdict(goal) | {"base": goal.base.plain()})

    def goal(self) -> Goal:
        """What is extended."""
        value = outputs.read_json(join(self.path, GOAL))
        return Goal(
            TokenizerSpec.of_plain(value["base"]),
            ExtensionOptions(**value["options"]),
            value["new_tokens"],
            value["slots"],
        )

    def finish_round(self, number: int, done: FinishedRound) -> None:
        """Commits a round, then deletes what was kept before it."""
        facts = {name: str(value) for name, value in done.facts.items()}
        metadata = {STATUS: LAST if done.is_last else NOT_LAST} | facts
        path = join(self.path, ROUNDS, f"{number:05}.parquet")
        decided = done.decided.replace_schema_metadata(metadata)
        outputs.write_parquet(path, [decided], decided.schema)
        self.owned.sweep(rf"{SPLITS}/{number - 1:05}/.*")

    def finished_rounds(self) -> list[FinishedRound]:
        """The rounds that are done, in order."""
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
