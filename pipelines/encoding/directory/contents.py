"""What an output directory holds: its files, the state, and the journals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from pipelines.encoding.directory.encoded_directory import (
    BAD_SHARDS,
    CARD,
    ERRORS,
    LAYOUT,
    MANIFEST,
    RUN,
    SHARDS,
    STATE,
    TOKENIZER,
    EncodedDirectory,
)
from pipelines.encoding.directory.journals import journals_of, read_journals
from pipelines.encoding.directory.status import (
    ShardError,
    ShardResult,
    ShardStatus,
    checked,
    read_object,
)
from pipelines.files import outputs, storage
from pipelines.files.filesystems import inside, is_plain_name, join
from pipelines.files.storage import Entry
from pipelines.following.commits import COMMITS
from wordpiece_core.errors import OptionError

DELETED = "deleted"  # in a state: the shards that this commit has deleted


@dataclass(frozen=True)
class Contents:
    """What a directory holds.

    `sizes`: the sizes in bytes of all files except those of the job itself. `results`, `errors`:
    the status of shards, by name, no matter if the shard exists. `uncommitted`: the finished
    shards that the state does not list. `deleted`: shards that a commit deletes, or is to delete.
    `bad`: the relative names of inputs that may be in quarantine. `quarantined`: those that are. An
    error may be older than a result of the same name. `roots`: by the name of the
    shard, the directory of its input, if it is known. `is_complete`: whether there is a manifest.
    `journals`: the names of the journals. `has_work`: whether the work directory exists.
    `version`: it changes with every commit. `commit`: the last commit, with --follow. `sources`: of
    a resharded dataset, the results of its inputs."""

    sizes: dict[str, int]
    results: dict[str, ShardResult] = field(default_factory=dict)
    errors: dict[str, ShardError] = field(default_factory=dict)
    uncommitted: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    bad: frozenset[str] = frozenset()
    quarantined: frozenset[str] = frozenset()
    roots: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = False
    journals: Sequence[str] = ()
    has_work: bool = False
    has_card: bool = False
    has_tokenizer: bool = False
    version: object = None
    commit: dict[str, Any] | None = None
    sources: list[ShardResult] | None = None

    def has(self, shard: ShardResult) -> bool:
        """Whether a shard exists in the recorded size."""
        return self.sizes.get(shard.name) == shard.output_bytes

    def source(self, name: str) -> str:
        """The path of the input of a shard that has a status, as far as it is known."""
        status = self.results.get(name) or self.errors[name]
        return join(self.roots[name], status.input) if name in self.roots else status.input

    @property
    def finished(self) -> dict[str, ShardResult]:
        """The shards that have a result and exist in the recorded size."""
        return {name: result for name, result in self.results.items() if self.has(result)}


def read_contents(directory: EncodedDirectory) -> Contents:
    """Reads a directory, with one listing. OptionError unless it is empty or holds only shards of
    this job."""
    entries = storage.entries(directory.path)
    in_work, in_errors = _below(entries, directory.work_name), _below(entries, ERRORS)
    directory.work.check(in_work)
    directory.errors.check(in_errors)
    files = {entry.name: entry for entry in entries if entry.kind == "file"}
    own = (f"{SHARDS}/", f"{LAYOUT}/", f"{ERRORS}/")
    manifest = files.get(MANIFEST)
    found = Contents(
        sizes={name: file.size for name, file in files.items() if not name.startswith(own)},
        quarantined=frozenset(_quarantined(in_errors)),
        is_complete=manifest is not None,
        journals=journals_of(entry.name for entry in in_work),
        has_work=bool(in_work) or any(entry.name == directory.work_name for entry in entries),
        has_card=CARD in files,
        has_tokenizer=TOKENIZER in files,
        version=_version(manifest),
    )
    path = directory.place(MANIFEST) if manifest else directory.work.place(STATE)
    state = read_object(path) if manifest or in_work else None
    if state is not None:
        directory.check_same(state)
        found = _with_statuses(directory, found, state, path)
        _check_names(directory, found, entries)
    elif found.sizes:
        raise OptionError(
            f"{directory.path}: holds {next(iter(found.sizes))}, no shards of this job; give an"
            " empty one"
        )
    for name in (MANIFEST, RUN, CARD, TOKENIZER, COMMITS, *found.deleted):
        found.sizes.pop(name, None)
    return found


def read_version(directory: EncodedDirectory) -> object:
    """The version of what the directory holds, as in `Contents`."""
    return _version(storage.info(directory.place(MANIFEST)))


def _version(manifest: Entry | None) -> object:
    return manifest and (manifest.size, manifest.modified)


def _with_statuses(
    directory: EncodedDirectory, found: Contents, state: dict[str, Any], path: str
) -> Contents:
    """Adds the statuses: those of the state at `path`, and of the journals. What the state lists
    and exists is newer than a journal, which may be left over."""
    results = {result.name: result for result in _results(state.get("shards", []), path)}
    listed = checked(state.get("errors", []), path)
    errors = {error.name: error for error in listed if isinstance(error, ShardError)}
    committed = {name for name, result in results.items() if found.has(result)}
    uncommitted: dict[str, ShardResult] = {}
    conflicting: set[str] = set()
    for status in read_journals(directory, found.journals):
        if isinstance(status, ShardError):
            errors.setdefault(status.name, status)
        elif found.has(status) and status.name not in committed:
            known = uncommitted.setdefault(status.name, status)
            conflicting |= {status.name} if known != status else set()  # of two runs
    uncommitted = {name: r for name, r in uncommitted.items() if name not in conflicting}
    results |= uncommitted
    deleted = _deleted(directory, state, path) | conflicting
    return replace(
        found,
        results=results,
        errors=errors,
        uncommitted=frozenset(uncommitted),
        deleted=frozenset(deleted - results.keys()),
        bad=frozenset(error.input for error in errors.values()),
        roots=_roots(directory, found),
        commit=state.get("commit"),
        sources=None if state.get("sources") is None else _results(state["sources"], path),
    )


def _results(values: Any, path: str) -> list[ShardResult]:
    statuses = checked(values, path)
    results = [status for status in statuses if isinstance(status, ShardResult)]
    if len(results) < len(statuses):
        raise outputs.damaged(path)
    return results


def _deleted(directory: EncodedDirectory, state: dict[str, Any], path: str) -> set[str]:
    """The shards that the state says are deleted. InputError for a name that is not that of a shard
    in the directory."""
    names = state.get(DELETED, [])
    if not isinstance(names, list) or not all(str(name).endswith(".parquet") for name in names):
        raise outputs.damaged(path)
    for name in names:
        inside(directory.path, name)
    return set(names)


def _check_names(directory: EncodedDirectory, found: Contents, entries: Sequence[Entry]) -> None:
    """Raises InputError if a name in a status leads out of the directory, also through a link."""
    links = {entry.name for entry in entries if entry.kind == "other"}
    statuses: Iterable[ShardStatus] = chain(found.results.values(), found.errors.values())
    for status in statuses:
        for base, below in (("", status.name), (f"{ERRORS}/{BAD_SHARDS}", status.input)):
            name = f"{base}/{below}".lstrip("/")
            if not is_plain_name(below) or (links and _is_linked(name, links)):
                inside(directory.place(base) if base else directory.path, below)


def _is_linked(name: str, links: Collection[str]) -> bool:
    parts = name.split("/")
    return any("/".join(parts[:end]) in links for end in range(1, len(parts) + 1))


def _below(entries: Sequence[Entry], directory: str) -> list[Entry]:
    """The entries in a directory, with their names relative to it."""
    prefix = f"{directory}/"
    return [
        replace(entry, name=entry.name.removeprefix(prefix))
        for entry in entries
        if entry.name.startswith(prefix)
    ]


def _quarantined(entries: Sequence[Entry]) -> list[str]:
    """The inputs in quarantine: those whose error is there, which is written last."""
    prefix, suffix = f"{BAD_SHARDS}/", ".json"
    names = (entry.name for entry in entries if entry.name.startswith(prefix))
    return [n.removeprefix(prefix).removesuffix(suffix) for n in names if n.endswith(suffix)]


def _roots(directory: EncodedDirectory, found: Contents) -> dict[str, str]:
    """The directories of the inputs, by the names of the shards, from what `inputs_of` made."""
    record = read_object(directory.place(RUN)) if RUN in found.sizes else None
    inputs, roots = (record or {}).get("inputs"), {}
    for root, names in inputs.items() if isinstance(inputs, dict) else ():
        if isinstance(names, list):
            roots.update({name: root for name in names if isinstance(name, str)})
    return roots


def inputs_of(roots: Mapping[str, str]) -> dict[str, Any]:
    """The contents of `.run.json`: the names of the shards, by the directories of their inputs."""
    names: dict[str, list[str]] = {}
    for name in sorted(roots):
        names.setdefault(roots[name], []).append(name)
    return {"inputs": names}
