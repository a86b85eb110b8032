"""The work directory of a training: what it has done so far, so that a killed one goes on.

    .wordpiece.json        whose it is, and the run that is at work (`pipelines.files.owned`)
    count.json             what the word table was counted from; with `words/`, the table
    job.json               the word table's digest, the options, and what training begins with
    goal.json              the tokenizer that is extended, and by what options
    rounds/00001.parquet   what each finished round has decided: merges; of unigram the pieces
    splits/00002/RUN/      the splits of the words in a round, by ranges of the word table, unless
                           the driver may hold them all
    exchange/ID/           what a pipeline hands to its workers and to the driver

Every file is written under a temporary name and renamed, so that it is whole or not there. A round
is finished when the file of what it decided is there; what comes before that can be made again.
What workers write is in folders of the run or of the pipeline, which nobody else reads: it does not
matter if one of them runs on after the run was killed.

    released.json          the training is over: all else is to be deleted, but for a word table
                           that was counted for a call that failed

A training that was killed holds the directory: a call with other options is refused. One that
failed does not: what it counted is used again if the call fits, else deleted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pipelines.counting.word_table import MANIFEST, PART
from pipelines.files import outputs, storage
from pipelines.files.batches import one_batch
from pipelines.files.filesystems import join
from pipelines.files.owned import OwnedDirectory, new_id
from pipelines.files.publishing import STAGING, Publication
from wordpiece_core.declaration import named
from wordpiece_core.errors import InputError, OptionError, short
from wordpiece_core.options import ExtensionOptions
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.training.extension import Goal
from wordpiece_core.training.rounds import FinishedRound
from wordpiece_core.training.starting import Start, start_of_plain

COUNT, JOB, GOAL, RELEASED = "count.json", "job.json", "goal.json", "released.json"
WORDS, ROUNDS, SPLITS, EXCHANGE = "words", "rounds", "splits", "exchange"
STATUS, LAST, NOT_LAST = "status", "done", "round over"  # of a round, in the file with what it did
NAMES = "|".join(
    (
        *(COUNT, JOB, GOAL, RELEASED),
        rf"{WORDS}/(?:{PART}|{MANIFEST}|{STAGING}/(?:[^/]+/)?[^/]+)",
        rf"{ROUNDS}/\d{{5}}\.parquet",
        rf"{SPLITS}/\d{{5}}/[0-9a-f]{{16}}/\d{{9}}\.arrow",
        rf"{EXCHANGE}/[0-9a-f]{{16}}/[^/]+",
    )
)


@dataclass(frozen=True)
class TrainingWork:
    """A work directory. `run`: the id of the run that works in it."""

    path: str
    run: str = field(default_factory=new_id)

    @property
    def owned(self) -> OwnedDirectory:
        """The directory as one that the job owns."""
        return OwnedDirectory(self.path, "training", NAMES, self.run)

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
        self.owned.lease.check()
        self.owned.sweep(rf"{EXCHANGE}/.*")
        directory = join(self.path, EXCHANGE, new_id())
        storage.make_directory(directory)
        return directory

    def write(self, name: str, value: object) -> None:
        """Commits a JSON file. OutputError if another run has begun."""
        self.owned.lease.check()
        outputs.write_json(join(self.path, name), value)

    # --- Who holds it ----------------------------------------------------------------------------

    def check(self, counted_from: dict[str, Any], training: dict[str, Any]) -> None:
        """Raises OutputError if the directory holds what is not the job's, and OptionError if
        another training was killed in it: that one is to be finished first."""
        if self.owned.check() and self._released() is None:
            for name, identity in ((COUNT, counted_from), (JOB, training)):
                self._check_identity(identity, self._identity(name) or {})

    def claim(self, counted_from: dict[str, Any]) -> None:
        """Takes the directory, after `check`. Of what a released one holds only the word table
        stays, if that is of use."""
        released = self._released()
        self.owned.claim()
        if released is not None:
            self.owned.sweep(rf"{JOB}|{GOAL}|{ROUNDS}/.*")
            if not released.get(WORDS) or self._identity(COUNT) != counted_from:
                self.owned.sweep(rf"{COUNT}|{WORDS}/.*")
            storage.delete_file(join(self.path, RELEASED))
        self._tidy()

    def _tidy(self) -> None:
        """Of what a killed run was about, ends or deletes all that this one does not go on with."""
        Publication(self.words, MANIFEST, self.run).recover()
        self.owned.sweep(rf"{EXCHANGE}/.*|{SPLITS}/.*")

    def release(self) -> None:
        """Notes that the training failed, so that it holds the directory no more; deletes it if
        nothing of use is in it."""
        if self.is_counted():
            self.write(RELEASED, {WORDS: True})
        else:
            self.delete()

    def _released(self) -> dict[str, Any] | None:
        value = outputs.read_json(join(self.path, RELEASED))
        return value if value is None or isinstance(value, dict) else {}

    def _identity(self, name: str) -> dict[str, Any] | None:
        value = outputs.read_json(join(self.path, name))
        identity = value.get("identity") if isinstance(value, dict) else None
        if value is not None and not isinstance(identity, dict):
            raise InputError(
                f"{join(self.path, name)}: not as this program writes it; delete {self.path}"
            )
        return identity

    def _check_identity(self, identity: dict[str, Any], found: dict[str, Any]) -> None:
        if not found:
            return
        for key, value in identity.items():
            if found.get(key) != value:
                raise OptionError(
                    f"{self.path}: holds an unfinished training with {key}"
                    f" {short(found.get(key))}, not {short(value)};"
                    f" give the same options, another {named('work_dir')}, or delete it"
                )

    # --- Counting --------------------------------------------------------------------------------

    def begin_count(self, identity: dict[str, Any]) -> None:
        """Notes what the word table is counted from."""
        if self._identity(COUNT) is None:
            self.write(COUNT, {"identity": identity})

    def is_counted(self) -> bool:
        """Whether the word table is finished."""
        return storage.info(join(self.words, MANIFEST)) is not None

    # --- Rounds ----------------------------------------------------------------------------------

    def begin(self, identity: dict[str, Any], start: Start) -> None:
        """Notes what is trained, and what that begins with."""
        self.write(JOB, {"identity": identity, **start.plain()})

    def start(self) -> Start | None:
        """What the training begins with; None if it has not begun."""
        value = outputs.read_json(join(self.path, JOB))
        return None if value is None else start_of_plain(value)

    def write_goal(self, goal: Goal) -> None:
        """Notes what is extended, for workers and for a run that goes on."""
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

    def check_begun(self, identity: dict[str, Any]) -> None:
        """OptionError if another training has begun here."""
        self._check_identity(identity, self._identity(JOB) or {})

    def finish_round(self, number: int, done: FinishedRound) -> None:
        """Commits a round, then deletes what was kept before it. OutputError if another run has
        begun."""
        facts = {name: str(value) for name, value in done.facts.items()}
        metadata = {STATUS: LAST if done.is_last else NOT_LAST} | facts
        path = join(self.path, ROUNDS, f"{number:05}.parquet")
        decided = done.decided.replace_schema_metadata(metadata)

        def write() -> None:
            self.owned.lease.check()
            outputs.write_parquet(path, [decided], decided.schema)

        storage.again(write)
        self.owned.sweep(rf"{SPLITS}/{number - 1:05}/.*")

    def finished_rounds(self) -> list[FinishedRound]:
        """The rounds that are done, in order."""
        directory = join(self.path, ROUNDS)
        names = [name for name in outputs.list_directory(directory) if not name.startswith(".")]
        if names != [f"{number:05}.parquet" for number in range(1, len(names) + 1)]:
            raise InputError(f"{directory}: a round is missing; delete {self.path} and train again")
        return storage.in_parallel(_read_round, (join(directory, name) for name in names))

    def delete(self) -> None:
        """Deletes the directory, but for what is not the job's. It is released first, so that what
        is left when that is stopped is never taken for the work of another training."""
        self.write(RELEASED, {WORDS: False})
        self.owned.delete(last=RELEASED)


def _read_round(path: str) -> FinishedRound:
    table = outputs.read_parquet(path)
    facts = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    is_last = facts.pop(STATUS) == LAST
    numbers = {name: int(value) for name, value in facts.items()}
    return FinishedRound(one_batch(table), numbers, is_last)
