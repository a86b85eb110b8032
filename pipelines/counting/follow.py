"""`count --follow`: a word table that is kept up to date with files as they come.

    files that have arrived ─▶ counted, and added to the words of the table ─▶ published as one:
                                       the new table, the files that are in it, the commits

The table is that of counting all these files at once. Which files are in it is published with it,
in `.files.jsonl`, so a file is in the table once, whatever is killed and when.
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
    new_table,
    prepare,
    read_word_table,
    text_of,
)
from pipelines.files import outputs
from pipelines.files.input_files import covers
from pipelines.files.inputs import InputFile
from pipelines.files.lease import one_run
from pipelines.following import commits
from pipelines.following.commits import COMMITS
from pipelines.following.loop import FollowLog, follow
from pipelines.following.watcher import FileWatcher, Listing, Version, version
from pipelines.running.checks import checked_call
from wordpiece_core import storage
from wordpiece_core.declaration import named
from wordpiece_core.errors import ChangedError, OptionError, OutputError
from wordpiece_core.uri import join, split_query

RECORD = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),  # the path or URI, without a query
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("modified", pa.int64()),  # nanoseconds since 1970
        pa.field("text_column", pa.string(), nullable=False),
        pa.field("commit", pa.int64(), nullable=False),
        # False for other bytes of a file that is in the table already.
        pa.field("counted", pa.bool_(), nullable=False),
    ]
)
READ = ("rows", "bytes", "words")
FIELDS = commits.schema(dict.fromkeys((*READ, "distinct_words"), int))


def follow_count(
    call: CountCall, *, beam_args: Sequence[str] = (), log: FollowLog
) -> WordTable | None:
    """Counts files as they come, until it is stopped or idle. Returns the table; None if no file
    has come. Raises what `count` raises, and OptionError for a table that was made without
    `--follow`, or with another text column."""
    call = checked_call(call, beam_args)
    quoting = not call.counting.no_quoting
    watcher = FileWatcher(call.inputs, [call.output], call.following, quoting=quoting)
    with one_run(call.output):
        job = FollowedTable(call, beam_args, log)
        follow(job, watcher, call.following)
        return job.state.table


@dataclass(frozen=True)
class State:
    """What is published: the table, the record of its files, and the commits."""

    table: WordTable | None = None
    record: pa.Table = field(default_factory=RECORD.empty_table)
    commits: pa.Table = field(default_factory=FIELDS.empty_table)

    @classmethod
    def read(cls, output: str) -> State:
        """The state of an output. OptionError for a table without a record."""
        if storage.info(join(output, MANIFEST)) is None:
            return cls()
        table = read_word_table(output)
        if storage.info(join(output, FILES)) is None:
            raise OptionError(
                f"{output}: holds a word table that was made without {named('follow')}, and it is"
                " not known which files are in it; give another directory"
            )
        record = outputs.read_lines(join(output, FILES), RECORD)
        return cls(table, record, commits.read(join(output, COMMITS), FIELDS))

    @property
    def next_commit(self) -> int:
        """The number of the next commit, also if the file of commits was deleted."""
        return max(commits.last(self.commits), pc.max(self.record["commit"]).as_py() or 0) + 1

    def versions(self) -> dict[str, set[Version]]:
        """The versions of each file that are on record."""
        columns = (self.record[name].to_pylist() for name in ("file", "bytes", "modified"))
        found: dict[str, set[Version]] = {}
        for path, size, modified in zip(*columns, strict=True):
            found.setdefault(path, set()).add((size, modified))
        return found

    def grown(
        self,
        table: WordTable,
        text_column: str,
        new: Sequence[InputFile],
        changed: Sequence[InputFile],
    ) -> State:
        """The state after one commit more. `new`: the files that were counted. `changed`: those
        that were not, because other bytes of them had been."""
        number = self.next_commit
        files = [(file, True) for file in new] + [(file, False) for file in changed]
        rows = [(_key(f), f.size, f.modified, text_column, number, c) for f, c in files]
        added = [dict(zip(RECORD.names, row, strict=True)) for row in rows]
        before = self.table.totals if self.table else {}
        row: dict[str, Any] = {"commit": number, "time": commits.now(), "files": len(new)}
        row |= {name: table.totals[name] - before.get(name, 0) for name in READ}
        row |= {"distinct_words": table.totals["distinct_words"]}
        record = pa.concat_tables([self.record, pa.Table.from_pylist(added, RECORD)])
        return State(table, record.combine_chunks(), commits.with_row(self.commits, row))


class FollowedTable:
    """The job: a commit adds files to the table."""

    def __init__(self, call: CountCall, beam_args: Sequence[str], log: FollowLog) -> None:
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
        self.removed: set[str] = set()

    def is_new(self, file: InputFile) -> bool:
        """Whether the record lacks this version of the file."""
        return version(file) not in self.versions.get(_key(file), ())

    def commit(self, files: Sequence[InputFile], listing: Listing) -> bool:
        """Adds new files to the table. Of files that are in it, with other bytes, it puts on record
        that they have come again."""
        self._warn_of_removed(listing.files)
        changed = [file for file in files if _key(file) in self.versions]
        new = [file for file in files if _key(file) not in self.versions]
        if not files:
            return False
        if not self._publish(new, changed):
            return True  # it is still to be done
        for file in changed:
            self.log.warn(
                f"{file.path}: reappeared with different content, which is not counted; the"
                " words of the first version stay in the table (give changed files new names)"
            )
        for file in files:
            self.versions.setdefault(_key(file), set()).add(version(file))
        row = commits.last_row(self.state.commits)
        self.log.commit(row | {"changed": len(changed)} if changed else row)
        return True

    def _warn_of_removed(self, files: Sequence[InputFile]) -> None:
        removed = self.versions.keys() - {_key(file) for file in files}
        inputs = self.call.inputs
        new = [p for p in removed - self.removed if any(covers(place, p) for place in inputs)]
        if new:
            self.log.warn(f"removed: {len(new):,} files, as {min(new)}; their words stay counted")
        self.removed = removed

    def _publish(self, new: Sequence[InputFile], changed: Sequence[InputFile]) -> bool:
        """Publishes the state after one commit more. False if a file has changed meanwhile, which
        is read again."""
        call, before = self.call, self.state
        column = call.counting.text_column
        tables = [before.table] if before.table else []

        def stage(table: WordTable) -> None:
            self.state = state = before.grown(table, column, new, changed)
            for name, rows in ((FILES, state.record), (COMMITS, state.commits)):
                publication.write(name, partial(outputs.write_lines, table=rows))

        try:
            with new_table(call.output) as publication:
                if not State.read(call.output).record.equals(before.record):
                    raise OutputError(
                        f"{call.output}: another run has written there; run this again"
                    )
                ranges = counting.all_ranges(new, tables, call)
                total = sum(map(bytes_of, ranges))
                name = f"commit {before.next_commit}"
                with self.log.progress.stage(name, "bytes", total, passing=True):
                    counting.run(ranges, publication, call, self.beam_args)
                counting.finish_table(publication, call, tables, stage)
        except ChangedError as error:
            self.log.warn(f"{str(error).rpartition('; ')[0]}; it is read again")
            return False
        return True


def _key(file: InputFile) -> str:
    """What a file is known by: its path, without options of the file system."""
    return split_query(file.path)[0]


def _check_column(call: CountCall, record: pa.Table) -> None:
    """OptionError if the table was counted from another column."""
    column = call.counting.text_column
    before = pc.unique(record["text_column"]).to_pylist()
    if before not in ([], [column]):
        raise OptionError(
            f"{call.output}: was counted with {named('text_column')} {before[0]}; give that"
        )
