"""`encode --follow`: shards of files as they come, in a directory that is always complete.

    new files ─▶ encoded, and recorded in journals ─▶ the manifest is replaced ─▶ .commits.jsonl

On a cluster one pipeline encodes for all commits (`pipelines.encoding.stream`).

The manifest alone says what is done, and has the last commit, so nothing is lost or done twice
whatever is killed and when. `.commits.jsonl` is written last; if it lacks the commit of the
manifest, that is added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from pipelines.encoding.directory import state
from pipelines.encoding.directory.bad_shards import BadShard, ShardsError
from pipelines.encoding.directory.card import card_warnings
from pipelines.encoding.directory.encoded_directory import MANIFEST
from pipelines.encoding.directory.state import Contents, read_contents
from pipelines.encoding.directory.status import (
    CHANGED,
    REFUSED,
    ShardError,
    ShardResult,
    is_of,
    source_of,
)
from pipelines.encoding.drift import drift
from pipelines.encoding.encode_step import EncodeShard, run_step, threads
from pipelines.encoding.options import SKIP
from pipelines.encoding.plan import PlannedShard, fits_no_file
from pipelines.encoding.result import Encoded
from pipelines.encoding.run import EncodeRun
from pipelines.files import outputs
from pipelines.files.input_files import above, covers, output_name
from pipelines.files.inputs import InputFile
from pipelines.files.lease import one_run
from pipelines.following import commits
from pipelines.following.commits import COMMITS
from pipelines.following.loop import FollowLog, changed_meanwhile, follow
from pipelines.following.watcher import FileWatcher, Listing, Version, version
from pipelines.running.runner import is_local, pipeline_options
from wordpiece_core.declaration import named
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.uri import is_uri, join

CHANGED_FILE = "reappeared with different content; its shard stays (give changed files new names)"
LONGEST_NAME = 255  # bytes, of a file on a disk
SHARD_FOLDER = ".parquet/"  # in a name: a directory that could have the name of a shard
FIELDS = commits.schema(
    dict.fromkeys(("rows", "bytes", "tokens", "unknown_tokens"), int) | {"tokens_per_word": float}
)

Encode = Callable[[Sequence[PlannedShard]], tuple[list[ShardResult], list[ShardError]]]


def follow_inputs(run: EncodeRun, log: FollowLog) -> Encoded:
    """Encodes files as they come, until it is stopped or idle. Raises what `encode` raises, but
    with `on_error` "fail" at the first bad file, after the commit of those that came with it."""
    call = run.call
    quoting = not call.shards.no_quoting
    watcher = FileWatcher(call.inputs, [call.output], call.following, quoting=quoting)
    with one_run(call.output):
        dataset = FollowedDataset(run, log)
        before = dataset.contents.results.keys()
        with dataset.encoding():
            follow(dataset, watcher, call.following)
        directory, contents = dataset.directory, dataset.contents
        directory.work.delete()
        manifest, warnings = state.manifest(directory, contents), card_warnings(directory)
    return Encoded(call.output, manifest, len(before & contents.results.keys()), 0, [], warnings)


class FollowedDataset:
    """The job: a commit adds shards to the dataset, or deletes some."""

    def __init__(self, run: EncodeRun, log: FollowLog) -> None:
        """Begins a run: commits what the directory holds, with what a killed run has finished."""
        self.run, self.call, self.directory, self.log = run, run.call, run.directory(), log
        self.encode: Encode
        self.listing: Listing | None = None  # the last one
        self.listed: set[str] = set()  # the paths of its files
        self.removed: set[str] = set()  # the paths of inputs that it does not have
        self.leaving: set[str] = set()  # shards that the next commit may delete
        self.refused: set[tuple[str, str, Version]] = set()  # names of shards, paths of files
        found = self._read()
        state.claim(self.directory, found, run.tokenizer)
        # Inputs that could not be encoded are tried again, unless they were skipped.
        errors = {
            name: error
            for name, error in found.errors.items()
            if error.cause == REFUSED or (name in found.skipped and name not in found.finished)
        }
        self.contents = replace(found, results=found.finished, errors=errors)
        self.paths = {found.source(name): name for name in self.contents.results}
        self.commits = self._read_commits()
        left = [found.results[name] for name in sorted(found.uncommitted)]
        if left and found.is_complete:  # and not what a killed run without --follow has finished
            self._commit(left)
        else:
            self._replace_state()

    def _read(self) -> Contents:
        """What the directory holds. InputError for a shard that has been changed."""
        found, output = read_contents(self.directory), self.call.output
        for name in sorted(found.changed):
            raise InputError(f"{join(output, name)}: has been changed; delete it")
        missing = found.results.keys() - found.sizes.keys() if found.is_complete else ()
        if missing:
            self.log.warn(
                f"missing in {output}: {len(missing):,} shards, as {min(missing)}; those whose"
                " inputs still exist are encoded again"
            )
        return found

    def _read_commits(self) -> pa.Table:
        """The commits, with that of the manifest if a kill has left it out."""
        found = commits.read(join(self.call.output, COMMITS), FIELDS)
        if self.contents.commit is None:
            return found
        try:
            last = outputs.table_of([self.contents.commit], FIELDS)
        except ValueError as error:
            raise outputs.damaged(join(self.call.output, MANIFEST)) from error
        if commits.last(last) > commits.last(found):
            found = pa.concat_tables([found, last]).combine_chunks()
            self._write_commits(found)
        return found

    def _write_commits(self, found: pa.Table) -> None:
        path, scratch = join(self.call.output, COMMITS), self.directory.work.path
        with outputs.atomic_writer(path, scratch) as stream:
            outputs.write_lines(stream, found)

    @contextmanager
    def encoding(self) -> Iterator[None]:
        """Encodes files while the block runs: in a pipeline for each commit, or in one for all
        where the runner is elsewhere."""
        beam_args = self.run.beam_args
        step = EncodeShard(self.directory, self.call.shards, threads(beam_args))
        if is_local(pipeline_options(beam_args)):
            self.encode = partial(run_step, step, beam_args=beam_args)
            yield
            return
        from pipelines.encoding.stream import Stream

        stream = Stream(step, beam_args)
        self.encode = stream.encode
        try:
            yield
        finally:
            stream.stop()

    def is_new(self, file: InputFile) -> bool:
        """Whether a file as it is now has neither a shard nor an error."""
        name, found = output_name(file), self.contents
        statuses = (found.results.get(name), found.errors.get(name))
        is_known = any(status is not None and is_of(status, file) for status in statuses)
        return not is_known and (name, file.path, version(file)) not in self.refused

    def commit(self, files: Sequence[InputFile], listing: Listing) -> bool:
        """Encodes new files, and commits their shards. A file whose shard exists already, of other
        bytes, is an error in the manifest. Shards are deleted first, because new files may have
        their names."""
        deleted: list[str] = []
        if listing is not self.listing:  # and not another part of the same one
            self.listing, self.listed = listing, {file.path for file in listing.files}
            if deleted := self._to_delete():
                self._commit(deleted=deleted)
            files = [*files, *filter(self._is_double, listing.files)]
        new, refused = self._parted([f for f in files if output_name(f) not in self.leaving])
        results, bad, waits = self._encode(new)
        if results:
            results = self._with_one_schema(results)
        fails = bool(bad) and self.call.on_error != SKIP
        errors = refused if fails else refused + bad
        if results or errors:
            self._commit(results, errors)
        if fails:
            raise ShardsError(bad, len(new))
        return bool(deleted or self.leaving or results or errors or waits)

    def _is_double(self, file: InputFile) -> bool:
        """Whether a file has the name, the size and the time of the input of a shard, and is
        another file: that input exists too. It is not new, but must not be skipped."""
        name, found = output_name(file), self.contents
        known, error = found.results.get(name), found.errors.get(name)
        if file.path in self.paths or known is None or not is_of(known, file):
            return False
        is_noted = error is not None and is_of(error, file)
        is_refused = is_noted or (name, file.path, version(file)) in self.refused
        return found.source(name) in self.listed and not is_refused

    def _parted(self, files: Sequence[InputFile]) -> tuple[dict[str, InputFile], list[BadShard]]:
        """The files to encode, by the names of their shards, and those that must not be."""
        new: dict[str, InputFile] = {}
        refused = []
        names = self.contents.results
        folders = {part for name in names if SHARD_FOLDER in name for part in above(name)}
        for file in files:
            name = output_name(file)
            if reason := self._refusal(file, name, new, folders):
                message = f"{file.name}: {reason}"
                error = ShardError(name, file.name, source_of(file), None, message, REFUSED)
                refused.append(BadShard(file, error))
                self.refused.add((name, file.path, version(file)))
            else:
                new[name] = file
                folders.update(above(name))
        return new, refused

    def _refusal(
        self, file: InputFile, name: str, new: Mapping[str, InputFile], folders: Collection[str]
    ) -> str | None:
        """Why a file has no place in the dataset, if so. `folders`: the directories of shards."""
        if self.paths.get(file.path, name) != name:
            raise OptionError(
                f"{file.path}: {self.call.output} holds a shard {self.paths[file.path]} of it; give"
                f" the {named('inputs')} of before, or another directory"
            )
        if not is_uri(self.call.output) and len(name.rpartition("/")[2].encode()) > LONGEST_NAME:
            return f"its shard would have a name of more than {LONGEST_NAME} bytes; rename it"
        known = self.contents.results.get(name)
        if known is not None and known.input == file.name:
            source = self.contents.source(name)
            if source == file.path or source not in self.listed:
                return CHANGED_FILE
        if known is not None or name in new:
            other = new[name].name if known is None else known.input
            which = f" of another {named('inputs')}" if other == file.name else ""
            return f"its shard would be named {name}, as that of {other}{which}; rename it"
        directory = next((d for d in above(name) if d in new or d in self.contents.results), None)
        if directory or name in folders:
            both = f"{directory or name} cannot be a shard and a directory"
            return f"its shard would be named {name}, but {both}; rename it"
        return None

    def _encode(
        self, new: Mapping[str, InputFile]
    ) -> tuple[list[ShardResult], list[BadShard], bool]:
        """Encodes files. Those that have changed meanwhile are left out, and listed again; the last
        value is whether there are any."""
        if not new:
            return [], [], False
        roots = {name: file.root for name, file in new.items()}
        self.contents = replace(self.contents, roots={**self.contents.roots, **roots})
        state.write_roots(self.directory, self.contents.roots)
        stage = f"commit {commits.last(self.commits) + 1}"
        with self.log.progress.stage(stage, "shards", len(new), passing=True):
            results, errors = self.encode([PlannedShard(file, name) for name, file in new.items()])
        bad = [BadShard(new[e.name], e) for e in errors if e.cause != CHANGED]
        if bad and not (self.contents.results or results) and fits_no_file(bad, len(new)):
            raise ShardsError(bad, len(new))
        changed = [error.input for error in errors if error.cause == CHANGED]
        if changed:
            self.log.warn(changed_meanwhile(changed))
        return results, bad, bool(changed)

    def _with_one_schema(self, results: Sequence[ShardResult]) -> list[ShardResult]:
        """The results once these and all other shards have one schema."""
        files = () if self.listing is None else self.listing.files
        given = {output_name(file): PlannedShard(file, output_name(file)) for file in files}
        shards = self.contents.results | {result.name: result for result in results}
        grown = replace(self.contents, results=shards)
        self.contents = self.run.with_one_schema(self.directory, grown, given)
        return [self.contents.results[result.name] for result in results]

    def _to_delete(self) -> list[str]:
        """The shards to delete, because two listings do not have their inputs. Those that this
        listing is the first not to have are in `leaving`, and what may take their places waits."""
        missing = self.paths.keys() - self.listed
        before, self.removed = self.removed, missing
        new = self._covered(missing - before)
        if self.call.delete_removed:
            self.leaving = {self.paths[path] for path in new}
            return [self.paths[path] for path in self._covered(missing & before)]
        if new:
            self.log.warn(
                f"removed: {len(new):,} files, as {min(new)}; their shards stay"
                f" ({named('delete_removed')} deletes them)"
            )
        return []

    def _covered(self, paths: Collection[str]) -> list[str]:
        """Those of the paths that would have been listed. What was in an input that lists no file
        is not among them: that may be a disk which is not mounted."""
        if not paths:
            return []
        inputs = [p for p in self.call.inputs if any(covers(p, path) for path in self.listed)]
        return [path for path in paths if any(covers(pattern, path) for pattern in inputs)]

    def _commit(
        self,
        results: Sequence[ShardResult] = (),
        bad: Sequence[BadShard] = (),
        deleted: Sequence[str] = (),
    ) -> None:
        """Commits, and logs it. `bad`: files that have no shard, or not of these bytes."""
        before = self.commits
        row = {"commit": commits.last(before) + 1, "time": commits.now(), **_sums(results)}
        self.commits = commits.with_row(before, row)
        self.contents = self._grown(results, bad, deleted)
        self._replace_state()
        self._write_commits(self.commits)
        self.paths = {self.contents.source(name): name for name in self.contents.results}
        for shard in bad:
            self.log.warn(shard.message)
        refused = sum(shard.error.cause == REFUSED for shard in bad)
        others = {"bad": len(bad) - refused, "refused": refused, "deleted": len(deleted)}
        self.log.commit(row | {name: many for name, many in others.items() if many})
        for warning in drift(before, row):
            self.log.warn(warning)

    def _replace_state(self) -> None:
        state.commit(self.directory, self.contents)
        self.contents = replace(
            self.contents, deleted=frozenset(), uncommitted=frozenset(), is_complete=True
        )

    def _grown(
        self, results: Sequence[ShardResult], bad: Sequence[BadShard], deleted: Sequence[str]
    ) -> Contents:
        """What the directory holds with one commit more."""
        found = self.contents
        shards = found.results | {result.name: result for result in results}
        shards = {name: result for name, result in shards.items() if name not in {*deleted}}
        if deleted:
            self.refused.clear()  # their shards may have room now
        errors = {
            name: error
            for name, error in found.errors.items()
            if (not deleted if error.cause == REFUSED else name not in shards)
        }
        errors |= {shard.error.name: shard.error for shard in bad}
        return replace(
            found,
            results=shards,
            errors=errors,
            deleted=found.deleted | {*deleted},
            commit=commits.last_row(self.commits),
        )


def _sums(results: Sequence[ShardResult]) -> dict[str, Any]:
    """What a commit has of shards."""
    names = ("rows", "bytes", "tokens", "unknown_tokens", "words", "word_tokens")
    sums = {name: sum(getattr(result, name) for result in results) for name in names}
    words, word_tokens = sums.pop("words"), sums.pop("word_tokens")
    per_word = word_tokens / words if words else None
    return {"files": len(results), **sums, "tokens_per_word": per_word}
