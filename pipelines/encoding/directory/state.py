"""What an output directory holds: its files, the manifest, and the journals; and the commit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.encoding.directory.card import dataset_card, is_replaceable
from pipelines.encoding.directory.encoded_directory import (
    CARD,
    FORMAT,
    JOB,
    JOURNAL,
    MANIFEST,
    PLAN_NAME,
    RUN_JSON,
    TOKENIZER,
    UNFINISHED,
    WORK,
    EncodedDirectory,
    plain_tokenizer,
)
from pipelines.encoding.directory.shards import read_journals
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
from pipelines.io import outputs
from pipelines.io.lock import LOCK
from pipelines.io.owned import MARKER, OF_REPOSITORIES
from pipelines.io.reading import bad_data
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import OptionError, OutputError
from wordpiece_core.storage import Entry, StoredFile
from wordpiece_core.uri import inside, is_plain_name, join


@dataclass(frozen=True)
class Contents:
    """What a directory holds.

    `sizes`: the sizes in bytes of its files, except those of the work directory. `results`: the
    shards that are in the manifest or in a journal, by name; `listed`: those in the manifest;
    `finished`: those that exist as they are recorded. `errors`: the inputs that the manifest lists
    as skipped. `deleted`: the names of shards that the commit deletes. `roots`: by the name of the
    shard, the directory of its input, if it is known. `is_complete`: whether there is a manifest.
    `sources`: of a resharded dataset, the results of its inputs."""

    sizes: dict[str, int]
    results: dict[str, ShardResult] = field(default_factory=dict)
    listed: dict[str, ShardResult] = field(default_factory=dict)
    finished: dict[str, ShardResult] = field(default_factory=dict)
    errors: dict[str, ShardError] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    roots: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = False
    sources: list[ShardResult] | None = None

    @property
    def is_committed(self) -> bool:
        """Whether the manifest has all that is finished, and nothing else."""
        return self.is_complete and self.finished == self.listed

    def source(self, name: str) -> str:
        """The path of the input of a shard that has a status, as far as it is known."""
        status = self.results.get(name) or self.errors[name]
        return join(self.roots[name], status.input) if name in self.roots else status.input

    @property
    def changed(self) -> set[str]:
        """The shards of the manifest that exist, but not as they are recorded."""
        return (self.listed.keys() & self.sizes.keys()) - self.finished.keys()

    def after(
        self, results: Mapping[str, ShardResult], errors: Mapping[str, ShardError]
    ) -> Contents:
        """What is to be committed, once the directory has these shards and skipped inputs."""
        deleted = (self.results.keys() & self.sizes.keys()) - results.keys()
        return replace(self, results={**results}, errors={**errors}, deleted=frozenset(deleted))


def read_contents(directory: EncodedDirectory) -> Contents:
    """Read a directory, with one listing. OutputError unless it is empty or holds only shards, and
    OptionError if they are of another job."""
    entries = storage.entries(directory.path)
    in_work = _below(entries, WORK)
    directory.work.check(in_work)
    files = {entry.name: entry.size for entry in entries if entry.kind == "file"}
    files = {n: size for n, size in files.items() if n not in (OF_REPOSITORIES, LOCK)}
    found = Contents(
        sizes={name: size for name, size in files.items() if not name.startswith(f"{WORK}/")},
        is_complete=MANIFEST in files,
    )
    path = directory.place(MANIFEST) if found.is_complete else directory.work.place(JOB)
    job = read_object(path) if found.is_complete or in_work else None
    if job is not None:
        try:
            directory.check_same(job)
        except OptionError:
            if found.is_complete or _has_shards(found, in_work):
                raise
            directory.work.delete()  # a run with other options finished no shard
            return found
        journals = [entry.name for entry in in_work if re.fullmatch(JOURNAL, entry.name)]
        found = _with_statuses(found, job, path, read_journals(directory, journals))
        if RUN_JSON in found.sizes:
            found = replace(found, roots=_roots(read_object(directory.place(RUN_JSON)) or {}))
        _check_names(directory, found, entries)
    elif others := found.sizes.keys() - {UNFINISHED}:
        raise OutputError(
            f"{directory.path}: contains {min(others)}, which this job did not write;"
            " choose an empty"
            " directory"
        )
    return found


def _has_shards(found: Contents, in_work: Sequence[Entry]) -> bool:
    """True if an unfinished directory has shards, or intermediate files of shards."""
    work_files = rf"{re.escape(MARKER)}|{JOB}|{JOURNAL}|{PLAN_NAME}|{outputs.TEMPORARY}"
    inner = [entry.name for entry in in_work if entry.kind == "file"]
    return bool(found.sizes.keys() - {UNFINISHED}) or not all(
        re.fullmatch(work_files, name) for name in inner
    )


def _with_statuses(
    found: Contents, manifest: dict[str, Any], path: str, journals: Sequence[ShardStatus]
) -> Contents:
    """Adds the statuses of the manifest at `path` and of journals. A shard whose size is that of
    two different statuses may be of either, so it is not finished."""
    listed = {r.name: r for r in checked(manifest.get("shards", []), path, ShardResult)}
    errors = checked(manifest.get("errors", []), path, ShardError)
    sources = manifest.get("sources")
    new = [status for status in journals if isinstance(status, ShardResult)]
    existing: dict[str, list[ShardResult]] = {}
    for result in [*listed.values(), *new]:
        same_size = found.sizes.get(result.name) == result.output_bytes
        if same_size and result not in existing.setdefault(result.name, []):
            existing[result.name].append(result)
    finished = {name: one for name, (one, *others) in existing.items() if not others}
    return replace(
        found,
        results={name: results[0] for name, results in existing.items()} | listed | finished,
        listed=listed,
        finished=finished,
        errors={error.name: error for error in errors},
        sources=None if sources is None else checked(sources, path, ShardResult),
    )


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


def _roots(record: dict[str, Any]) -> dict[str, str]:
    """The directories of the inputs, by the names of the shards, as `commit` wrote them."""
    inputs = record.get("inputs")
    known = inputs.items() if isinstance(inputs, dict) else ()
    lists = {root: names for root, names in known if isinstance(names, list)}
    return {str(name): root for root, names in lists.items() for name in names}


def commit(directory: EncodedDirectory, contents: Contents) -> dict[str, Any]:
    """Deletes the shards that are to be deleted, writes the manifest and what belongs to it, and
    then deletes the work directory. Returns the manifest."""
    found, scratch = manifest(directory, contents), directory.work.path
    storage.delete_files(map(directory.place, sorted(contents.deleted)))
    roots: dict[str, list[str]] = {}
    for name in sorted(contents.roots.keys() & (contents.results.keys() | contents.errors.keys())):
        roots.setdefault(contents.roots[name], []).append(name)
    outputs.write_json(directory.place(RUN_JSON), {"inputs": roots}, scratch)
    for name, data in sidecars(directory, contents, found).items():
        outputs.write_bytes(directory.place(name), data, scratch)
    outputs.write_json(directory.place(MANIFEST), found, scratch)
    directory.finish()
    directory.work.delete()
    return found


def complete(
    directory: EncodedDirectory, contents: Contents, tokenizer: Tokenizer
) -> dict[str, Any]:
    """Return the manifest of a directory that has all its shards. Writes its tokenizer, and the
    card that the job asks for, if they are missing, and deletes the work directory."""
    wanted = {TOKENIZER, CARD} if directory.card else {TOKENIZER}
    if not wanted <= contents.sizes.keys():
        directory.begin(tokenizer)
        return commit(directory, contents)
    if UNFINISHED in contents.sizes:
        directory.finish()
    directory.work.delete()
    return manifest(directory, contents)


def sidecars(
    directory: EncodedDirectory, contents: Contents, state: dict[str, Any]
) -> dict[str, bytes]:
    """The files that a complete directory with this state lacks, by name: its tokenizer and its
    dataset card."""
    files = {}
    if TOKENIZER not in contents.sizes:
        files[TOKENIZER] = json.dumps(plain_tokenizer(directory.tokenizer())).encode()
    card = dataset_card(state)
    return files | ({CARD: card} if is_replaceable(directory, card) else {})


def shard_schema(path: str) -> pa.Schema:
    """The schema of a shard."""
    with StoredFile(path) as file, bad_data(path, fix=outputs.FIX):
        return pq.read_schema(file.arrow())


def manifest(directory: EncodedDirectory, contents: Contents) -> dict[str, Any]:
    """The state of a directory with these contents."""
    shards = [plain(contents.results[name]) for name in sorted(contents.results)]
    errors = [plain(contents.errors[name]) for name in sorted(contents.errors)]
    totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
    more: dict[str, Any] = {}
    if contents.sources is not None:
        more["sources"] = [plain(source, ShardResult) for source in contents.sources]
        for name in totals.keys() - OF_SHARDS:
            totals[name] = sum(getattr(source, name) for source in contents.sources)
    state = {"format": FORMAT, **directory.job, **totals, **more}
    return state | {"shards": shards, "errors": errors}
