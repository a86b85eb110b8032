"""`encode --follow`: shards of files as they come, and a manifest that is always true.

    files that have arrived ─▶ encoded, with notes ─▶ the manifest is replaced ─▶ _epochs.parquet

On a cluster one pipeline encodes for all epochs (`pipelines.encoding.stream`).

What is done is in the manifest alone, with the row of the last epoch, so nothing is lost or done
twice whatever is killed and when: a shard is a function of its file, and a note says that it is
whole. `_epochs.parquet` is written last; if it lacks the row of the manifest, that is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa

from pipelines.encoding.directory import lifecycle
from pipelines.encoding.directory.bad_shards import BadShard, ShardsError, quarantine
from pipelines.encoding.directory.contents import Contents, read_contents
from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.following import begin_following, commit_epoch
from pipelines.encoding.directory.logs import notes_made
from pipelines.encoding.directory.notes import (
    AGAIN,
    CHANGED,
    ShardError,
    ShardResult,
    source_of,
)
from pipelines.encoding.directory.plans import PlannedShard
from pipelines.encoding.drift import drift
from pipelines.encoding.encode import Encoded, fits_no_file, run, threads
from pipelines.encoding.encode_shard import EncodeShard
from pipelines.encoding.options import EncodeCall
from pipelines.encoding.shard_encoder import check_fit
from pipelines.files import outputs
from pipelines.files.filesystems import join
from pipelines.files.input_files import covers, output_name
from pipelines.files.inputs import InputFile
from pipelines.files.owned import one_run
from pipelines.following import epochs
from pipelines.following.arrivals import Arrivals, Look, Version, version
from pipelines.following.epochs import EPOCHS
from pipelines.following.loop import Log, follow
from pipelines.running.runner import checked_call, is_local, pipeline_options
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError, OptionError

SCHEMA = epochs.schema(
    dict.fromkeys(("rows", "bytes", "tokens", "unknown_tokens"), int)
    | {"unknown_rate": float, "words": int, "tokens_per_word": float}
    | dict.fromkeys(("bad", "refused", "pruned"), int)
)


def follow_encode(
    call: EncodeCall, tokenizer: Tokenizer, *, beam_args: Sequence[str] = (), log: Log
) -> Encoded:
    """Encodes files as they come, until it is stopped or idle. Raises what `encode` raises, but
    with `on_error` "fail" at the first epoch with a bad file, after its other files."""
    call = checked_call(call, beam_args)
    check_fit(call.shards, tokenizer)
    arrivals = Arrivals(call.inputs, [call.output], call.following)
    job = {"tokenizer": tokenizer.digest, "options": call.shards.plain()}
    directory = EncodedDirectory(call.output, job)
    with one_run(call.output):
        dataset = FollowedDataset(call, directory, tokenizer, beam_args, log)
        before = dataset.found.results.keys()
        with dataset.encoding():
            follow(dataset, arrivals, call.following)
        directory.notes.delete()
        manifest = lifecycle.manifest(directory, dataset.found)
    return Encoded(call.output, manifest, len(before & dataset.found.results.keys()), 0, [])


class FollowedDataset:
    """The job: an epoch adds shards to the dataset, or takes some away."""

    def __init__(
        self,
        call: EncodeCall,
        directory: EncodedDirectory,
        tokenizer: Tokenizer,
        beam_args: Sequence[str],
        log: Log,
    ) -> None:
        """Brings the directory into the state of a commit, with what a killed run has finished."""
        self.call, self.directory, self.beam_args, self.log = call, directory, beam_args, log
        self.encode: Callable[[Sequence[PlannedShard]], None]
        found = read_contents(directory)
        for name in sorted((found.results.keys() & found.sizes.keys()) - found.finished.keys()):
            raise InputError(f"{join(call.output, name)}: has been changed; delete it")
        self.found = begin_following(directory, tokenizer)
        self.epochs = self._epochs()
        self.paths = {self.found.source(name): name for name in self.found.results}
        self.gone: set[str] = set()
        self.refused: set[tuple[str, Version]] = set()

    def _epochs(self) -> pa.Table:
        """The table of epochs, with the row of the manifest if a kill has left it out."""
        table = outputs.read_rows(join(self.call.output, EPOCHS), SCHEMA)
        row = self.found.epoch
        if row is not None and row["epoch"] > epochs.last(table):
            table = epochs.with_row(
                table, row | {"committed": datetime.fromisoformat(row["committed"])}
            )
            self._write_epochs(table)
        return table

    def _write_epochs(self, table: pa.Table) -> None:
        path, scratch = join(self.call.output, EPOCHS), self.directory.notes.path
        outputs.write_file(
            path, lambda stream: outputs.write_tables(stream, table, compression="zstd"), scratch
        )

    @contextmanager
    def encoding(self) -> Iterator[None]:
        """Lets files be encoded while the block runs: in a pipeline for each epoch, or in one for
        all where the runner is elsewhere."""
        step = EncodeShard(self.directory, self.call.shards, threads(self.beam_args))
        if is_local(pipeline_options(self.beam_args)):
            self.encode = partial(run, step, beam_args=self.beam_args)
            yield
            return
        from pipelines.encoding.stream import Stream

        stream = Stream(step, self.beam_args)
        self.encode = stream.encode
        try:
            yield
        finally:
            stream.stop()

    def is_new(self, file: InputFile) -> bool:
        """Whether there is neither a shard of a file as it is now, nor an error."""
        if (file.path, version(file)) in self.refused:
            return False
        name, found = output_name(file), self.found
        notes = (found.results.get(name), found.errors.get(name))
        own = (file.name, source_of(file))
        return all(note is None or (note.input, note.source) != own for note in notes)

    def commit(self, files: Sequence[InputFile], look: Look) -> bool:
        """Encodes new files, and commits their shards. A file whose shard there is already, of
        other bytes, is an error in the manifest."""
        gone = self._gone(look.files)
        new, refused = self._parted(files)
        results, bad = self._encode(new)
        fails = bool(bad) and self.call.on_error != "quarantine"
        errors = refused if fails else refused + bad
        if results or errors or gone:
            self._commit(results, errors, gone, [*new.values(), *self._uncommitted(look.files)])
        if fails:
            raise ShardsError(bad, len(new))
        return bool(results or errors or gone)

    def _uncommitted(self, files: Sequence[InputFile]) -> list[InputFile]:
        """The inputs of the shards that a killed run has left uncommitted."""
        names = self.found.uncommitted
        return [file for file in files if names and output_name(file) in names]

    def _parted(self, files: Sequence[InputFile]) -> tuple[dict[str, InputFile], list[BadShard]]:
        """The files to encode, by the names of their shards, and those that must not be."""
        new: dict[str, InputFile] = {}
        refused = []
        for file in files:
            name = output_name(file)
            if reason := self._refusal(file, name, new):
                message = f"{file.name}: {reason}"
                error = ShardError(name, file.name, source_of(file), None, message, AGAIN)
                refused.append(BadShard(file, error))
                self.refused.add((file.path, version(file)))
            else:
                new[name] = file
        return new, refused

    def _refusal(self, file: InputFile, name: str, new: Mapping[str, InputFile]) -> str | None:
        """Why a file has no place in the dataset, if so."""
        if self.paths.get(file.path, name) != name:
            raise OptionError(
                f"{file.path}: {self.call.output} holds a shard {self.paths[file.path]} of it; give"
                " the INPUT of before, or another directory"
            )
        known = self.found.results.get(name)
        if known is not None and known.input == file.name:
            return "has come again with other bytes; its shard stays (give changed files new names)"
        if known is not None or name in new:
            other = new[name].name if known is None else known.input
            return f"its shard would be named {name}, as that of {other}; rename it"
        return None

    def _encode(self, new: Mapping[str, InputFile]) -> tuple[list[ShardResult], list[BadShard]]:
        """Encodes files. Those that have changed meanwhile are left out, and looked at again. The
        results are also those that a killed run has left uncommitted."""
        if new:
            self.encode([PlannedShard(file, name) for name, file in new.items()])
        uncommitted = self.found.uncommitted
        if not (new or uncommitted):
            return [], []
        results, errors = notes_made(self.directory, new.keys())
        results += [self.found.results[name] for name in uncommitted]
        bad = [BadShard(new[e.name], e) for e in errors if e.cause != CHANGED]
        if bad and not (self.found.results or results) and fits_no_file(bad, len(new)):
            raise ShardsError(bad, len(new))
        if bad and self.call.on_error == "quarantine":
            quarantine(self.directory, bad)
        return results, bad

    def _gone(self, files: Sequence[InputFile]) -> list[str]:
        """The shards to delete, because their inputs have been. What was in an input that lists no
        file is not gone: that may be a disk which is not there."""
        listed = {file.path for file in files}
        missing = self.paths.keys() - listed
        looked_at = missing if self.call.prune else missing - self.gone
        self.gone = missing
        if not looked_at:
            return []
        inputs = [p for p in self.call.inputs if any(covers(p, path) for path in listed)]
        gone = [path for path in looked_at if any(covers(pattern, path) for pattern in inputs)]
        if self.call.prune:
            return [self.paths[path] for path in gone]
        if gone:
            self.log.warn(
                f"gone: {len(gone):,} files, as {min(gone)}; their shards stay (--prune deletes"
                " them)"
            )
        return []

    def _commit(
        self,
        results: Sequence[ShardResult],
        bad: Sequence[BadShard],
        gone: Sequence[str],
        files: Sequence[InputFile],
    ) -> None:
        """Commits an epoch, and says so. `bad`: files that have no shard, or not of these bytes.
        `files`: those of the results."""
        number = epochs.last(self.epochs) + 1
        row = {"epoch": number, "committed": epochs.now(), **_figures(results)}
        row["refused"] = sum(shard.error.cause == AGAIN for shard in bad)
        row |= {"bad": len(bad) - row["refused"], "pruned": len(gone)}
        before, self.epochs = self.epochs, epochs.with_row(self.epochs, row)
        self.found = self._grown(results, bad, gone, files)
        commit_epoch(self.directory, self.found, gone)
        self._write_epochs(self.epochs)
        self.paths = {path: name for path, name in self.paths.items() if name not in {*gone}}
        self.paths |= {self.found.source(result.name): result.name for result in results}
        for shard in bad:
            self.log.warn(shard.message)
        self.log.epoch(epochs.last_row(self.epochs))
        for warning in drift(before, row):
            self.log.warn(warning)

    def _grown(
        self,
        results: Sequence[ShardResult],
        bad: Sequence[BadShard],
        gone: Sequence[str],
        files: Sequence[InputFile],
    ) -> Contents:
        """What the directory holds with one epoch more."""
        shards = self.found.results | {result.name: result for result in results}
        errors = {n: e for n, e in self.found.errors.items() if e.cause == AGAIN or n not in shards}
        errors |= {shard.error.name: shard.error for shard in bad}
        roots = self.found.roots | {output_name(file): file.root for file in files}
        for name in gone:
            shards.pop(name)
            errors.pop(name, None)
        row = epochs.last_row(self.epochs)
        epoch = {**row, "committed": row["committed"].isoformat()}
        return replace(
            self.found,
            results=shards,
            errors=errors,
            roots=roots,
            bad=self.found.bad | {error.input for error in errors.values()},
            uncommitted=frozenset(),
            epoch=epoch,
        )


def _figures(results: Sequence[ShardResult]) -> dict[str, Any]:
    """The figures of an epoch."""
    names = ("rows", "bytes", "tokens", "unknown_tokens", "words", "word_tokens")
    sums = {name: sum(getattr(result, name) for result in results) for name in names}
    tokens, words, word_tokens = sums["tokens"], sums["words"], sums.pop("word_tokens")
    return {
        "files": len(results),
        **sums,
        "unknown_rate": sums["unknown_tokens"] / tokens if tokens else None,
        "tokens_per_word": word_tokens / words if words else None,
    }
