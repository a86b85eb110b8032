"""What an output directory holds: its files, the state, and the journals. How a run begins there,
and commits its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.encoding.directory.card import dataset_card, is_replaceable
from pipelines.encoding.directory.encoded_directory import (
    CARD,
    FORMAT,
    JOURNAL,
    MANIFEST,
    PLAN,
    RUN,
    SHARDS,
    STATE,
    TOKENIZER,
    EncodedDirectory,
    tokenizer_bytes,
)
from pipelines.encoding.directory.shards import journals_of, list_journals, read_journals
from pipelines.encoding.directory.status import (
    OF_SHARDS,
    SUMS,
    ShardError,
    ShardResult,
    ShardStatus,
    checked,
    plain,
    read_object,
)
from pipelines.files import outputs
from pipelines.files.reading import bad_data
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import OptionError, OutputError
from wordpiece_core.storage import Entry, StoredFile
from wordpiece_core.uri import inside, is_plain_name, join

DELETED = "deleted"  # in a state: the shards that this commit has deleted


@dataclass(frozen=True)
class Contents:
    """What a directory holds.

    `sizes`: the sizes in bytes of its files, except those in directories of the job. `results`,
    `errors`: the status of shards, by name, no matter if the shard exists; an error may be older
    than a result of the same name. `uncommitted`: the finished shards that the state does not list.
    `deleted`: shards that a commit deletes, or is to delete. `skipped`: the names of those
    errors that the state lists. `roots`: by the name of the shard, the directory of its input, if
    it is known. `is_complete`: whether there is a manifest. `has_work`: whether the work directory
    exists. `version`: it changes with every commit. `commit`: the last commit, with --follow.
    `sources`: of a resharded dataset, the results of its inputs."""

    sizes: dict[str, int]
    results: dict[str, ShardResult] = field(default_factory=dict)
    errors: dict[str, ShardError] = field(default_factory=dict)
    uncommitted: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    roots: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = False
    journals: Sequence[str] = ()
    has_work: bool = False
    version: object = None
    commit: dict[str, Any] | None = None
    sources: list[ShardResult] | None = None

    @property
    def lacks_sidecars(self) -> bool:
        """Whether there is no dataset card, or no tokenizer."""
        return not {CARD, TOKENIZER} <= self.sizes.keys()

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

    @property
    def changed(self) -> set[str]:
        """The shards that have a result and exist in another size."""
        return (self.results.keys() & self.sizes.keys()) - self.finished.keys()


# --- Reading --------------------------------------------------------------------------------------


def read_contents(directory: EncodedDirectory) -> Contents:
    """Reads a directory, with one listing. OptionError unless it is empty or holds only shards of
    this job."""
    entries = storage.entries(directory.path)
    in_work = _below(entries, SHARDS)
    directory.work.check(in_work)
    files = {entry.name: entry for entry in entries if entry.kind == "file"}
    own = f"{SHARDS}/"
    complete = files.get(MANIFEST)
    found = Contents(
        sizes={name: file.size for name, file in files.items() if not name.startswith(own)},
        is_complete=complete is not None,
        journals=journals_of(entry.name for entry in in_work),
        has_work=any(entry.name == SHARDS for entry in entries) or bool(in_work),
        version=_version(complete),
    )
    path = directory.place(MANIFEST) if complete else directory.work.place(STATE)
    state = read_object(path) if complete or in_work else None
    if state is not None:
        directory.check_same(state)
        found = _with_statuses(directory, found, state, path)
        _check_names(directory, found, entries)
    elif found.sizes:
        raise OptionError(
            f"{directory.path}: holds {next(iter(found.sizes))}, no shards of this job; give an"
            " empty one"
        )
    return found


def _version(complete: Entry | None) -> object:
    return complete and (complete.size, complete.modified)


def _with_statuses(
    directory: EncodedDirectory, found: Contents, state: dict[str, Any], path: str
) -> Contents:
    """Adds the statuses: those of the state at `path`, and of the journals. What the state lists
    and exists is newer than a journal, which may be left over."""
    listed = checked(state.get("shards", []), path, ShardResult)
    results = {result.name: result for result in listed}
    errors = {error.name: error for error in checked(state.get("errors", []), path, ShardError)}
    skipped = frozenset(errors)
    committed = {name for name, result in results.items() if found.has(result)}
    uncommitted: dict[str, ShardResult] = {}
    conflicting: set[str] = set()
    for status in read_journals(directory, found.journals):
        if isinstance(status, ShardError):
            errors.setdefault(status.name, status)
        elif found.has(status) and status.name not in committed:
            known = uncommitted.setdefault(status.name, status)
            conflicting |= {status.name} if known != status else set()  # of two runs
    results |= {name: r for name, r in uncommitted.items() if name not in conflicting}
    deleted = (_deleted(directory, state, path) | conflicting) - results.keys()
    sources = state.get("sources")
    return replace(
        found,
        sizes={name: size for name, size in found.sizes.items() if name not in deleted},
        results=results,
        errors=errors,
        skipped=skipped,
        uncommitted=frozenset(uncommitted.keys() - conflicting),
        deleted=frozenset(deleted),
        roots=_roots(directory, found),
        commit=state.get("commit"),
        sources=None if sources is None else checked(sources, path, ShardResult),
    )


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
    has_links = any(entry.kind == "other" for entry in entries)
    statuses: list[ShardStatus] = [*found.results.values(), *found.errors.values()]
    for status in statuses:
        for name in (status.name, status.input):
            if has_links or not is_plain_name(name):
                inside(directory.path, name)


def _below(entries: Sequence[Entry], directory: str) -> list[Entry]:
    """The entries in a directory, with their names relative to it."""
    prefix = f"{directory}/"
    inner = (entry for entry in entries if entry.name.startswith(prefix))
    return [replace(entry, name=entry.name.removeprefix(prefix)) for entry in inner]


def _roots(directory: EncodedDirectory, found: Contents) -> dict[str, str]:
    """The directories of the inputs, by the names of the shards, as `write_roots` wrote them."""
    record = read_object(directory.place(RUN)) if RUN in found.sizes else None
    inputs = (record or {}).get("inputs")
    if not isinstance(inputs, dict):
        return {}
    known = {root: names for root, names in inputs.items() if isinstance(names, list)}
    return {str(name): root for root, names in known.items() for name in names}


# --- Commits --------------------------------------------------------------------------------------


def claim(directory: EncodedDirectory, found: Contents, tokenizer: Tokenizer) -> None:
    """Takes a directory for this run, and writes its state if it has none. OutputError if another
    run has changed it since `found` was read, which a lock prevents where there are locks."""
    directory.work.claim()
    version = _version(storage.info(directory.place(MANIFEST)))
    if version != found.version or list_journals(directory) != [*found.journals]:
        raise OutputError(
            f"{directory.path}: another run has just written there; run this one again"
        )
    directory.write_tokenizer(tokenizer)
    if not found.is_complete:
        outputs.write_json(directory.work.place(STATE), manifest(directory, found))


def begin(
    directory: EncodedDirectory, found: Contents, tokenizer: Tokenizer, roots: Mapping[str, str]
) -> Contents:
    """Begins a run that completes the directory at its end. `roots`: the directories of the inputs
    to encode, by the names of their shards; older shards of these names are deleted."""
    claim(directory, found, tokenizer)
    results = {name: r for name, r in found.finished.items() if name not in roots}
    outdated = (found.results.keys() & found.sizes.keys()) - results.keys()
    deleted = found.deleted | outdated
    errors = {name: error for name, error in found.errors.items() if name in found.skipped}
    roots = {**found.roots, **roots}
    begun = replace(found, results=results, errors=errors, deleted=deleted, roots=roots)
    commit(directory, begun, complete=False)
    sizes = {name: size for name, size in begun.sizes.items() if name not in deleted}
    return replace(
        begun, sizes=sizes, uncommitted=frozenset(), deleted=frozenset(), is_complete=False
    )


def commit(directory: EncodedDirectory, contents: Contents, *, complete: bool = True) -> None:
    """Replaces the state of a directory, which is complete then unless `complete` is False, and
    deletes the journals. Shards to delete are named in the state first, and then deleted.
    OutputError if another run has begun."""
    state = manifest(directory, contents)
    directory.work.lease.check()
    if complete:
        known = {*contents.results, *contents.errors, *contents.deleted}
        write_roots(directory, {n: root for n, root in contents.roots.items() if n in known})
        first = state["shards"][0]["name"] if state["shards"] else ""
        path = directory.place(first) if first.endswith(".parquet") else None
        for name, data in sidecars(directory, contents, state, path).items():
            outputs.write_bytes(directory.place(name), data, directory.work.path)
        outputs.write_json(directory.place(MANIFEST), state, directory.work.path)
    else:
        write_roots(directory, contents.roots)
        outputs.write_json(directory.work.place(STATE), state)
        if contents.is_complete:
            storage.delete_file(directory.place(MANIFEST))
            storage.sync(directory.path)
    directory.work.sweep(rf"{JOURNAL}|{PLAN}")
    if contents.deleted:
        storage.delete_files(map(directory.place, sorted(contents.deleted)))
        commit(directory, replace(contents, deleted=frozenset()), complete=complete)


def sidecars(
    directory: EncodedDirectory, contents: Contents, state: dict[str, Any], shard: str | None
) -> dict[str, bytes]:
    """The files that a complete directory with this state lacks, by name: its tokenizer and its
    dataset card. `shard`: the path of the first shard, whose columns `datasets` takes for those of
    all; None if they are not Parquet."""
    columns = None if shard is None else shard_schema(shard)
    has_tokenizer = TOKENIZER in contents.sizes
    files = {} if has_tokenizer else {TOKENIZER: tokenizer_bytes(directory.tokenizer())}
    card = dataset_card(state, columns)
    return files | ({CARD: card} if is_replaceable(directory, card) else {})


def shard_schema(path: str) -> pa.Schema:
    """The schema of a shard."""
    with StoredFile(path) as file, bad_data(path, fix=outputs.FIX):
        return pq.read_schema(file.arrow())


def write_roots(directory: EncodedDirectory, roots: Mapping[str, str]) -> None:
    """Writes where the inputs are: the names of the shards, by the directories of their inputs."""
    names: dict[str, list[str]] = {}
    for name in sorted(roots):
        names.setdefault(roots[name], []).append(name)
    outputs.write_json(directory.place(RUN), {"inputs": names}, directory.work.path)


def manifest(directory: EncodedDirectory, contents: Contents) -> dict[str, Any]:
    """The state of a directory with these contents."""
    shards = [plain(contents.results[name]) for name in sorted(contents.results)]
    errors = [plain(contents.errors[name]) for name in sorted(contents.errors)]
    totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
    more: dict[str, Any] = {}
    if contents.commit is not None:
        more["commit"] = contents.commit
    if contents.sources is not None:
        more["sources"] = [plain(source, ShardResult) for source in contents.sources]
        for name in totals.keys() - OF_SHARDS:
            totals[name] = sum(getattr(source, name) for source in contents.sources)
    if contents.deleted:
        more[DELETED] = sorted(contents.deleted)
    state = {"format": FORMAT, **directory.job, **totals, **more}
    return state | {"shards": shards, "errors": errors}
