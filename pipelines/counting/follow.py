"""`count --follow`: the job, again and again. Each run of it adds the words of new files to the
table. Which files are in the table is in its manifest, so that a file is counted once, whatever is
killed and when."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

from pipelines.counting import count as counting
from pipelines.counting.options import CountCall
from pipelines.counting.word_table import (
    FILES,
    MANIFEST,
    WordTable,
    new_table,
    prepare,
    read_word_table,
    text_of,
)
from pipelines.files import inputs
from pipelines.files.inputs import InputFile
from pipelines.files.lease import one_run
from pipelines.running.checks import checked_call
from pipelines.running.following import FollowLog, follow, version
from wordpiece_core import storage
from wordpiece_core.errors import ChangedError, InputError, OptionError
from wordpiece_core.uri import join


def follow_count(
    call: CountCall, *, beam_args: Sequence[str] = (), log: FollowLog
) -> WordTable | None:
    """Counts files as they come, until it is stopped or idle. Returns the table; None if no file
    has come. Raises what `count` raises, and OptionError for a table that was made without
    `--follow`, or with another text column."""
    call = checked_call(call, beam_args)
    quoting = not call.counting.no_quoting

    def list_inputs() -> list[InputFile]:
        return inputs.resolve(call.inputs, [call.output], may_be_empty=True, quoting=quoting)

    with one_run(call.output):
        table = _FollowedTable(call, beam_args, log)
        follow(call.following, list_inputs, table.process)
        return table.table


class _FollowedTable:
    """The table, and what is counted into it."""

    def __init__(self, call: CountCall, beam_args: Sequence[str], log: FollowLog) -> None:
        prepare(call.output).abandon()
        there = storage.info(join(call.output, MANIFEST))
        self.table = None if there is None else read_word_table(call.output)
        tables = [] if self.table is None else [self.table]
        text = text_of(tables, call.counting.text, call.given)
        self.call = replace(call, counting=replace(call.counting, text=text))
        self.beam_args, self.log = beam_args, log
        column = self.call.counting.text_column
        self.followed: dict[str, Any] = {"text_column": column, FILES: {}}
        if self.table is not None:
            if self.table.followed is None:
                raise OptionError(
                    f"{call.output}: holds a word table that was made without `follow`,"
                    " and it is not known which files are in it; give another directory"
                )
            self.followed = self.table.followed
        if self.followed["text_column"] != column:
            raise OptionError(
                f"{call.output}: was counted with `text_column`"
                f" {self.followed['text_column']}; give that"
            )

    def process(self, files: Sequence[InputFile], _: Set[str]) -> None:
        """Adds new files to the table, or none if one changes meanwhile: the next listing has them
        again. InputError for a file that was counted and has other contents now."""
        known = self.followed[FILES]
        for file in files:
            if known.get(file.path, [*version(file)]) != [*version(file)]:
                raise InputError(
                    f"{file.path}: has changed since it was counted, and its words cannot be taken"
                    " back; restore it, or count into another directory"
                )
        new = [file for file in files if file.path not in known]
        if not new:
            return
        call, before = self.call, {} if self.table is None else self.table.totals
        tables = [] if self.table is None else [self.table]
        counted = known | {file.path: [*version(file)] for file in new}
        followed = self.followed | {FILES: counted}
        try:
            with new_table(call.output) as publication:
                ranges = counting.all_ranges(new, tables, call)
                counting.run(ranges, publication, call, self.beam_args)
                self.table = counting.finish_table(publication, call, tables, followed)
        except ChangedError as error:
            self.log.warn(f"{str(error).rpartition('; ')[0]}; it is read again")
            return
        self.followed = followed
        sums = {name: n - before.get(name, 0) for name, n in self.table.totals.items()}
        shown = ("rows", "bytes", "words", "distinct_words")
        self.log.commit({"files": len(new)} | {name: sums[name] for name in shown})
