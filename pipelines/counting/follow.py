"""`count --follow`: a word table that is kept up to date with files as they come.

    files that have arrived ─▶ counted, and added to the words of the table ─▶ published as one:
                                       the new table, the files that are in it, the row of the epoch

The table is that of counting all these files at once. Which files are in it is published with it,
in `_files.parquet`, so a file is in the table once, whatever is killed and when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.counting import count as counting
from pipelines.counting.options import CountCall
from pipelines.counting.steps import bytes_of
from pipelines.counting.word_table import (
    FILES,
    MANIFEST,
    WordTable,
    prepare,
    read_word_table,
    text_of,
    word_ranges,
)
from pipelines.files import outputs, storage
from pipelines.files.filesystems import join
from pipelines.files.input_files import covers
from pipelines.files.inputs import InputFile
from pipelines.files.owned import one_run
from pipelines.following import epochs
from pipelines.following.arrivals import Arrivals, Look, Version, version
from pipelines.following.epochs import EPOCHS
from pipelines.following.loop import Log, follow
from pipelines.running.checks import checked_call
from wordpiece_core.errors import ChangedError, OptionError, OutputError
from wordpiece_core.uri import split_query

COLUMN = b"wordpiece.text_column"  # in the metadata of the record
RECORD = pa.schema(
    [
        ("file", pa.string()),  # the path or URI, without a query
        ("bytes", pa.int64()),
        ("modified", pa.int64()),  # nanoseconds since 1970
        ("epoch", pa.int64()),
        ("counted", pa.bool_()),  # False for other bytes of a file that is in the table already
    ]
)
READ = ("rows", "bytes", "words")
SCHEMA = epochs.schema(dict.fromkeys((*READ, "distinct_words", "changed"), int))


def follow_count(call: CountCall, *, beam_args: Sequence[str] = (), log: Log) -> WordTable | None:
    """Counts files as they come, until it is stopped or idle. Returns the table; None if no file
    has come. Raises what `count` raises, and OptionError for a table that was made without
    `--follow`, or with another text column."""
    call = checked_call(call, beam_args)
    arrivals = Arrivals(call.inputs, [call.output], call.following)
    with one_run(call.output):
        job = FollowedTable(call, beam_args, log)
        follow(job, arrivals, call.following)
        return job.state.table


@dataclass(frozen=True)
class State:
    """What is published: the table, the record of its files, and the epochs."""

    table: WordTable | None = None
    record: pa.Table = field(default_factory=RECORD.empty_table)
    epochs: pa.Table = field(default_factory=SCHEMA.empty_table)

    @classmethod
    def read(cls, output: str) -> State:
        """The state of an output. OptionError for a table without a record."""
        if storage.info(join(output, MANIFEST)) is None:
            return cls()
        table = read_word_table(output)
        if storage.info(join(output, FILES)) is None:
            raise OptionError(
                f"{output}: holds a word table that was made without --follow, and it is not known"
                " which files are in it; give another directory"
            )
        record = outputs.read_rows(join(output, FILES), RECORD)
        return cls(table, record, epochs.read(join(output, EPOCHS), SCHEMA))

    @property
    def next_epoch(self) -> int:
        """The number of the next epoch, also if the table of epochs was deleted."""
        return max(epochs.last(self.epochs), pc.max(self.record["epoch"]).as_py() or 0) + 1

    def versions(self) -> dict[str, set[Version]]:
        """The versions of each file that are on record."""
        columns = (self.record[name].to_pylist() for name in ("file", "bytes", "modified"))
        found: dict[str, set[Version]] = {}
        for path, size, modified in zip(*columns, strict=True):
            found.setdefault(path, set()).add((size, modified))
        return found

    def grown(
        self, table: WordTable, new: Sequence[InputFile], changed: Sequence[InputFile]
    ) -> State:
        """The state after one epoch more. `new`: the files that were counted. `changed`: those that
        were not, because other bytes of them had been."""
        number = self.next_epoch
        files = [(file, True) for file in new] + [(file, False) for file in changed]
        rows = [(_key(f), f.size, f.modified, number, counted) for f, counted in files]
        added = [dict(zip(RECORD.names, row, strict=True)) for row in rows]
        before = self.table.totals if self.table else {}
        row: dict[str, Any] = {"epoch": number, "committed": epochs.now(), "files": len(new)}
        row |= {name: table.totals[name] - before.get(name, 0) for name in READ}
        row |= {"distinct_words": table.totals["distinct_words"], "changed": len(changed)}
        record = pa.concat_tables([self.record, pa.Table.from_pylist(added, RECORD)])
        return State(table, record.combine_chunks(), epochs.with_row(self.epochs, row))


class FollowedTable:
    """The job: an epoch adds files to the table."""

    def __init__(self, call: CountCall, beam_args: Sequence[str], log: Log) -> None:
        """Brings the output into its state before or after a publication that was killed."""
        publication = prepare(call.output)
        try:
            self.state = State.read(call.output)
            tables = [self.state.table] if self.state.table else []
            text = text_of(tables, call.counting.text, call.given)
            _check_column(call, self.state.record)
        finally:
            publication.abandon()
        self.call = replace(call, counting=replace(call.counting, text=text))
        self.beam_args, self.log = beam_args, log
        self.versions = self.state.versions()
        self.gone: set[str] = set()

    def is_new(self, file: InputFile) -> bool:
        """Whether the record lacks this version of the file."""
        return version(file) not in self.versions.get(_key(file), ())

    def commit(self, files: Sequence[InputFile], look: Look) -> bool:
        """Adds new files to the table. Of files that are in it, with other bytes, it puts on record
        that they have come again."""
        self._say_gone(look.files)
        changed = [file for file in files if _key(file) in self.versions]
        new = [file for file in files if _key(file) not in self.versions]
        if not files:
            return False
        if not self._publish(new, changed):
            return True  # it is still to be done
        for file in changed:
            self.log.warn(
                f"{file.path}: has come again with other bytes, which are not counted; those that"
                " came first stay in the table (give changed files new names)"
            )
        for file in files:
            self.versions.setdefault(_key(file), set()).add(version(file))
        self.log.epoch(epochs.last_row(self.state.epochs))
        return True

    def _say_gone(self, files: Sequence[InputFile]) -> None:
        gone = self.versions.keys() - {_key(file) for file in files}
        inputs = self.call.inputs
        new = [path for path in gone - self.gone if any(covers(place, path) for place in inputs)]
        if new:
            self.log.warn(f"gone: {len(new):,} files, as {min(new)}; their words stay counted")
        self.gone = gone

    def _publish(self, new: Sequence[InputFile], changed: Sequence[InputFile]) -> bool:
        """Publishes the state after one epoch more. False if a file has changed meanwhile, which is
        looked at again."""
        call, before = self.call, self.state
        publication = prepare(call.output)
        try:
            if not State.read(call.output).record.equals(before.record):
                raise OutputError(f"{call.output}: another run has written there; run this again")
            ranges = [
                *counting.text_ranges(new, call.counting.text_column, call.counting.group_column),
                *(word_ranges(before.table) if before.table else ()),
            ]
            total = sum(map(bytes_of, ranges))
            epoch = f"epoch {before.next_epoch}"
            with self.log.progress.stage(epoch, "bytes", total, passing=True):
                counting.run(ranges, publication, call, self.beam_args)
            metadata = {COLUMN: call.counting.text_column.encode()}

            def stage(table: WordTable) -> None:
                self.state = state = before.grown(table, new, changed)
                record = state.record.replace_schema_metadata(metadata)
                for name, rows in ((FILES, record), (EPOCHS, state.epochs)):
                    publication.write(name, partial(_write, table=rows))

            counting.finish_table(publication, call, [before.table] if before.table else [], stage)
        except ChangedError as error:
            publication.abandon()
            self.log.warn(f"{str(error).rpartition('; ')[0]}; it is looked at again")
            return False
        except Exception:
            publication.abandon()
            raise
        return True


def _write(stream: outputs.NewFile, table: pa.Table) -> None:
    outputs.write_tables(stream, table, compression="zstd")


def _key(file: InputFile) -> str:
    """What a file is known by: its path, without options of the file system."""
    return split_query(file.path)[0]


def _check_column(call: CountCall, record: pa.Table) -> None:
    """OptionError if the table was counted from another column."""
    column = call.counting.text_column
    before = (record.schema.metadata or {}).get(COLUMN, column.encode()).decode()
    if before != column:
        raise OptionError(f"{call.output}: was counted with --text-column {before}; give that")
