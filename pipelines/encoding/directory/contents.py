"""What an output directory holds: its listing, the manifest, and the notes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from pipelines.encoding.directory.encoded_directory import (
    BAD_SHARDS,
    CARD,
    ERRORS,
    GONE,
    JOB,
    LAYOUT,
    LOG,
    MANIFEST,
    NOTES,
    PLAN,
    RUN,
    TOKENIZER,
    EncodedDirectory,
)
from pipelines.encoding.directory.logs import logs_of, read_logs
from pipelines.encoding.directory.notes import (
    Note,
    ShardError,
    ShardResult,
    all_notes,
    read_object,
)
from pipelines.encoding.directory.plans import planned_roots
from pipelines.files import outputs, storage
from pipelines.files.filesystems import inside, is_plain_name, join
from pipelines.files.storage import Entry
from pipelines.following.commits import COMMITS
from wordpiece_core.errors import OptionError


@dataclass(frozen=True)
class Contents:
    """What a directory holds.

    `results`, `errors`: the notes, by the name of the shard, no matter if the shard is there.
    `bad`: the relative names of the inputs that may be in quarantine. `roots`: by the name of the
    shard, the directory of its input, if it is known. `sizes`: the sizes in bytes of all files
    except those of the job itself. `logs`: the names of the files of notes and plans. `is_whole`:
    whether there is a manifest. `has_notes`: whether there is a directory of notes. `version`: it
    is another one if another run has begun since. `uncommitted`: the shards that are finished, but
    not in the manifest that is there. `gone`: the shards that were to be deleted. `commit`: the
    last one of a run that followed its inputs. `has_card`, `has_tokenizer`: whether there is a
    dataset card, and the tokenizer. `sources`: of a dataset that is laid out, the notes of its
    inputs."""

    sizes: dict[str, int]
    logs: list[str]
    is_whole: bool
    has_notes: bool
    version: object
    results: dict[str, ShardResult] = field(default_factory=dict)
    errors: dict[str, ShardError] = field(default_factory=dict)
    bad: frozenset[str] = frozenset()
    roots: dict[str, str] = field(default_factory=dict)
    uncommitted: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    commit: dict[str, Any] | None = None
    has_card: bool = False
    has_tokenizer: bool = False
    sources: list[ShardResult] | None = None

    def has(self, shard: ShardResult) -> bool:
        """Whether a shard is there as it was written."""
        return self.sizes.get(shard.name) == shard.output_bytes

    def source(self, name: str) -> str:
        """The path of the input of a shard that has a note, as far as it is known."""
        note = self.results.get(name) or self.errors[name]
        return join(self.roots[name], note.input) if name in self.roots else note.input

    @property
    def finished(self) -> dict[str, ShardResult]:
        """The shards that have a note, and that are there as they were written."""
        return {name: result for name, result in self.results.items() if self.has(result)}


def read_contents(directory: EncodedDirectory) -> Contents:
    """Reads what is there, with one listing. OptionError unless the directory is empty or holds
    only shards of this job."""
    entries = storage.entries(directory.path)
    noted, bad = _below(entries, NOTES), _below(entries, ERRORS)
    directory.notes.check(noted)
    directory.errors.check(bad)
    own = (f"{NOTES}/", f"{ERRORS}/", f"{LAYOUT}/")
    files = {entry.name: entry for entry in entries if entry.kind == "file"}
    whole = files.get(MANIFEST)
    found = Contents(
        sizes={name: file.size for name, file in files.items() if not name.startswith(own)},
        logs=[entry.name for entry in noted if re.fullmatch(f"{LOG}|{PLAN}", entry.name)],
        is_whole=whole is not None,
        has_notes=any(entry.name == NOTES for entry in entries) or bool(noted),
        version=_version(whole, directory.notes.lease.holder() if noted else None),
        has_card=CARD in files,
        has_tokenizer=TOKENIZER in files,
    )
    path = directory.place(MANIFEST) if whole else directory.notes.place(JOB)
    common = read_object(path) if whole or noted else None
    if found.sizes and common is None:
        raise OptionError(
            f"{directory.path}: holds {next(iter(found.sizes))}, no shards of this job; give an"
            " empty one"
        )
    if common is not None:
        directory.check_same(common)
        found = _with_notes(directory, found, common, path)
        _check_names(directory, found, entries)
    if any(entry.name == GONE for entry in noted):
        found = replace(found, gone=_read_gone(directory) - found.results.keys())
    for name in (MANIFEST, RUN, CARD, TOKENIZER, COMMITS, *found.gone):
        found.sizes.pop(name, None)
    return found


def read_version(directory: EncodedDirectory) -> object:
    """The version of what the directory holds, as in `Contents`."""
    return _version(storage.info(directory.place(MANIFEST)), directory.notes.lease.holder())


def _version(manifest: Entry | None, holder: str | None) -> object:
    return manifest and (manifest.size, manifest.modified), holder


@dataclass
class _Noted:
    """The notes, while they are gathered. The names are those of `Contents`."""

    results: dict[str, ShardResult]
    errors: dict[str, ShardError]
    bad: set[str]
    uncommitted: set[str] = field(default_factory=set)

    def take(self, note: Note) -> None:
        """Takes a note that is newer than what is known of its shard."""
        if isinstance(note, ShardResult):
            self.results[note.name] = note
            self.errors.pop(note.name, None)
        else:
            self.errors[note.name] = note
            self.results.pop(note.name, None)
            self.bad.add(note.input)


def _with_notes(
    directory: EncodedDirectory, found: Contents, common: dict[str, Any], path: str
) -> Contents:
    """Adds what is noted: in a manifest, or in job.json, changed by the notes written since then.
    `common`: what is in the one of these that is at `path`."""
    lists = [all_notes(common.pop(name, []), path) for name in ("shards", "errors")]
    if any(isinstance(note, ShardError) for note in lists[0]):
        raise outputs.damaged(path)
    results = {note.name: note for note in lists[0] if isinstance(note, ShardResult)}
    errors = {note.name: note for note in lists[1] if isinstance(note, ShardError)}
    bad = {error.input for error in errors.values()} | {*common.get("bad", [])}
    noted = _Noted(results, errors, bad)
    roots = roots_of(read_object(directory.place(RUN)) if RUN in found.sizes else None)
    if found.is_whole:
        _add_uncommitted(directory, found, noted)
        roots |= _roots_of_uncommitted(directory, found, noted)
    else:
        roots |= roots_of(common)
        _apply_logs(directory, found, common, noted)
    return replace(
        found,
        results=noted.results,
        errors=noted.errors,
        bad=frozenset(noted.bad),
        roots=roots,
        uncommitted=frozenset(noted.uncommitted),
        commit=common.get("commit"),
        sources=_sources(common.get("sources"), path),
    )


def _sources(values: Any, path: str) -> list[ShardResult] | None:
    if values is None:
        return None
    notes = [note for note in all_notes(values, path) if isinstance(note, ShardResult)]
    if len(notes) < len(values):
        raise outputs.damaged(path)
    return notes


def _add_uncommitted(directory: EncodedDirectory, found: Contents, noted: _Noted) -> None:
    """Adds the shards that a run which follows its inputs has finished since its last commit. Other
    notes beside a manifest are in it already."""
    for note in read_logs(directory, logs_of(found.logs)):
        if isinstance(note, ShardError):
            noted.bad.add(note.input)
        elif note.name not in noted.results and found.has(note):
            noted.take(note)
            noted.uncommitted.add(note.name)


def _roots_of_uncommitted(
    directory: EncodedDirectory, found: Contents, noted: _Noted
) -> dict[str, str]:
    """The directories of the inputs of shards that are not in the manifest, from their plans."""
    if not noted.uncommitted:
        return {}
    plans = [name for name in found.logs if re.fullmatch(PLAN, name)]
    roots = planned_roots(directory, plans)
    return {name: root for name, root in roots.items() if name in noted.uncommitted}


def _apply_logs(
    directory: EncodedDirectory, found: Contents, common: dict[str, Any], noted: _Noted
) -> None:
    """Changes what was noted before the run by the notes written since then. A shard that was
    planned again and is not there has been deleted for that."""
    again = common.get("planned", [])
    known = (noted.results.keys() | noted.errors.keys()) - {*again}
    for name in again:
        if name not in found.sizes:
            noted.results.pop(name, None)
    logs = logs_of(found.logs)
    current = {name for name in logs if name.partition("-")[0] == common.get("run")}
    notes = read_logs(directory, sorted(current))
    # A result is newer than an error of its shard.
    for note in sorted(notes, key=lambda note: isinstance(note, ShardResult)):
        noted.take(note)
    known |= {note.name for note in notes}
    for note in read_logs(directory, [name for name in logs if name not in current]):
        # Of a worker of an earlier run that still lived: see `encoded_directory`.
        if isinstance(note, ShardResult) and note.name not in known and found.has(note):
            noted.results[note.name] = note


def _read_gone(directory: EncodedDirectory) -> frozenset[str]:
    """The shards of removed inputs, which are to be deleted. InputError for a name that is no shard
    in the directory."""
    path = directory.notes.place(GONE)
    names = (read_object(path) or {}).get("shards")
    if not isinstance(names, list) or not all(str(name).endswith(".parquet") for name in names):
        raise outputs.damaged(path)
    for name in names:
        inside(directory.path, name)
    return frozenset(names)


def _check_names(directory: EncodedDirectory, found: Contents, entries: Sequence[Entry]) -> None:
    """Raises InputError if a name in a note leads out of the directory, also through a link."""
    links = {entry.name for entry in entries if entry.kind == "other"}
    notes: Iterable[Note] = chain(found.results.values(), found.errors.values())
    for note in notes:
        for base, below in (("", note.name), (f"{ERRORS}/{BAD_SHARDS}", note.input)):
            name = f"{base}/{below}".lstrip("/")
            if not is_plain_name(below) or (links and _is_linked(name, links)):
                inside(directory.place(base) if base else directory.path, below)


def _below(entries: Sequence[Entry], directory: str) -> list[Entry]:
    """The entries in a directory, with their names relative to it."""
    prefix = f"{directory}/"
    return [
        replace(entry, name=entry.name.removeprefix(prefix))
        for entry in entries
        if entry.name.startswith(prefix)
    ]


def _is_linked(name: str, links: Collection[str]) -> bool:
    parts = name.split("/")
    return any("/".join(parts[:end]) in links for end in range(1, len(parts) + 1))


def roots_of(record: dict[str, Any] | None) -> dict[str, str]:
    """The directories of the inputs, by the names of the shards, from what `inputs_of` made."""
    found, roots = (record or {}).get("inputs"), {}
    for root, names in found.items() if isinstance(found, dict) else ():
        if isinstance(names, list):
            roots.update({name: root for name in names if isinstance(name, str)})
    return roots


def inputs_of(roots: dict[str, str]) -> dict[str, Any]:
    """The contents of `.run.json`: the names of the shards, by the directories of their inputs."""
    names: dict[str, list[str]] = {}
    for name in sorted(roots):
        names.setdefault(roots[name], []).append(name)
    return {"inputs": names}
