"""The work directory of a training: what it has done so far, so that a killed one goes on.

    count.json             what the word table was counted from; with `words/`, the table
    job.json               the word table's digest, the options, and what training begins with
    rounds/00001.parquet   the merges of each finished round
    splits/00002/          the splits of the words in a round, by ranges of the word table
    exchange/              what a pipeline hands to the driver

Every file is written under a temporary name and renamed, so that it is whole or not there. A round
is finished when the file with its merges is there; what comes before that can be made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines import outputs
from pipelines.batches import one_batch
from pipelines.parquet_input import open_parquet
from pipelines.word_table import MANIFEST
from wordpiece_core.alphabet import InitialVocabulary
from wordpiece_core.errors import InputError, OptionError, OutputError

COUNT, JOB = "count.json", "job.json"
WORDS, ROUNDS, SPLITS, EXCHANGE = "words", "rounds", "splits", "exchange"


@dataclass(frozen=True)
class FinishedRound:
    """`merges`: of the round, as `Trainer.merges` gives them. `support`: after it. `status`: "round
    over", or "done". `split_tokens`: in all splits when it began, each word once."""

    merges: pa.RecordBatch
    support: int
    status: str
    split_tokens: int


@dataclass(frozen=True)
class TrainingWork:
    """A work directory."""

    path: str

    @property
    def words(self) -> str:
        """Where the word table is counted to."""
        return outputs.join(self.path, WORDS)

    def splits(self, number: int) -> str:
        """Where the splits of a round are."""
        return outputs.join(self.path, SPLITS, f"{number:05}")

    def exchange(self) -> str:
        """An empty directory for one pipeline."""
        directory = outputs.join(self.path, EXCHANGE)
        outputs.delete(directory)
        outputs.make_directory(directory)
        return directory

    def check(self) -> None:
        """OutputError if the directory holds what is no training's."""
        names = outputs.list_directory(self.path)
        foreign = [name for name in names if name not in (COUNT, JOB)]
        if foreign:
            raise OutputError(
                f"{self.path}: holds {foreign[0]}, no training's; give another --work-dir"
            )

    def claim_count(self, identity: dict[str, Any]) -> None:
        """Notes what the word table is counted from. OptionError if it was another thing."""
        path = outputs.join(self.path, COUNT)
        found = outputs.read_json(path)
        if found is None:
            outputs.make_directory(self.path)
            outputs.write_json(path, identity)
        else:
            self._check_identity(identity, found)

    def _check_identity(self, identity: dict[str, Any], found: dict[str, Any]) -> None:
        for key, value in identity.items():
            if found.get(key) != value:
                raise OptionError(
                    f"{self.path}: holds an unfinished training with {key}"
                    f" {_short(found.get(key))}, not {_short(value)};"
                    " give the same options, another --work-dir, or delete it"
                )

    def is_begun(self) -> bool:
        """Whether there is something to go on from."""
        return self.is_counted() or outputs.exists(outputs.join(self.path, JOB))

    def is_counted(self) -> bool:
        """Whether the word table is finished."""
        return outputs.exists(outputs.join(self.words, MANIFEST))

    def begin(
        self, identity: dict[str, Any], vocabulary: InitialVocabulary, split_tokens: int
    ) -> None:
        """Notes what is trained, and what that begins with."""
        value = {
            "identity": identity,
            "tokens": vocabulary.tokens,
            "alphabet": [list(symbol) for symbol in vocabulary.alphabet],
            "split_tokens": split_tokens,
        }
        outputs.make_directory(outputs.join(self.path, ROUNDS))
        outputs.write_json(outputs.join(self.path, JOB), value)

    def begun(self, identity: dict[str, Any] | None = None) -> tuple[InitialVocabulary, int] | None:
        """What training began with, and the tokens in all splits then; None if it has not begun.
        OptionError if another training did."""
        value = outputs.read_json(outputs.join(self.path, JOB))
        if value is None:
            return None
        self._check_identity(identity or {}, value["identity"])
        alphabet = [(symbol, number) for symbol, number in value["alphabet"]]
        return InitialVocabulary(value["tokens"], alphabet), value["split_tokens"]

    def finish_round(self, number: int, done: FinishedRound) -> None:
        """Notes a round, then deletes the splits before it."""
        facts = {"support": done.support, "split_tokens": done.split_tokens}
        metadata = {"status": done.status} | {key: str(value) for key, value in facts.items()}
        schema = done.merges.schema.with_metadata(metadata)
        path = outputs.join(self.path, ROUNDS, f"{number:05}.parquet")
        outputs.write_parquet(path, [done.merges.replace_schema_metadata(metadata)], schema)
        outputs.delete(self.splits(number - 1))

    def finished_rounds(self) -> list[FinishedRound]:
        """The rounds that are done, in order."""
        directory = outputs.join(self.path, ROUNDS)
        names = outputs.list_directory(directory)
        if names != [f"{number:05}.parquet" for number in range(1, len(names) + 1)]:
            raise InputError(f"{directory}: a round is missing; delete {self.path} and train again")
        return [_read_round(outputs.join(directory, name)) for name in names]

    def delete(self) -> None:
        """Deletes the directory."""
        outputs.delete(self.path)


def _read_round(path: str) -> FinishedRound:
    with open_parquet(path) as parquet:
        table = parquet.read()
    facts = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    support, split_tokens = int(facts["support"]), int(facts["split_tokens"])
    return FinishedRound(one_batch(table), support, facts["status"], split_tokens)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."
