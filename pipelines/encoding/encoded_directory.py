"""The directory that `encode` writes, and which of its shards are finished or could not be read.

    NAME.parquet        the shards
    _manifest.json      the job, sums, shards, errors. If it is there, the directory is complete
    _run.json           what the last run read, with absolute paths. Readers do not need it
    _epochs.parquet     with --follow: a row for each commit (`pipelines.following.epochs`)
    _shards/            owned by the job (`pipelines.files.owned`), and there while the directory is
                        not complete:
                        job.json has what the shards share, the id of the run, and all notes of
                        earlier runs; RUN-ID.jsonl are the notes of finished and bad shards since
                        then; plan-RUN-NUMBER.jsonl are the shards to encode; spec.json is the
                        tokenizer
    _errors/            owned too: the inputs that could not be read, with --on-error quarantine:
                        __shards__/NAME.bad has the bytes, __shards__/NAME.json what is wrong.
                        (`datasets` skips names with two underscores, others skip `.bad`)

Shards are written, then the notes of several shards are written as one file, and then the shards
get their names. So every shard is in a note or in the manifest, and any other file is not of this
job. A shard is finished if there is a note of it for the current input, and its size is that in the
note.

A run begins by writing job.json, which takes up all notes that are there. From then on only the
notes of this run count. A worker of an earlier run that still lives finds another id in the marker
of `_shards`. If it looked just before that, its temporary files are gone when it renames them. On
stores without renaming, a shard of it may still appear; there is a note of it then, and it counts
only where this run knows nothing of the shard.

With --follow the directory is always complete: the manifest is replaced at each commit, and never
taken away. Then `_shards` has the notes of shards that will be in the next manifest, and while
shards are deleted, gone.json with their names. Readers must not read what the manifest does not
list.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from pipelines.encoding.notes import (
    AGAIN,
    SUMS,
    Note,
    ShardError,
    ShardResult,
    all_notes,
    damaged,
    from_lines,
    of_object,
    plain,
    to_lines,
)
from pipelines.files import outputs, storage
from pipelines.files.filesystems import inside, is_plain_name, join
from pipelines.files.input_files import InputFile
from pipelines.files.outputs import NewFile
from pipelines.files.owned import MARKER, OwnedDirectory, new_id
from pipelines.files.storage import Entry, in_parallel
from pipelines.following.epochs import EPOCHS
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.errors import InputError, OptionError, OutputError, StorageError
from wordpiece_core.tokenizer.files import TokenizerSpec

MANIFEST = "_manifest.json"
RUN = "_run.json"
NOTES = "_shards"
JOB = "job.json"  # what the shards have in common, and the notes of earlier runs
GONE = "gone.json"  # shards that are deleted once they are not in the manifest
SPEC = "spec.json"  # the tokenizer, for workers: Beam would pack and unpack it many times
NOTES_AT_ONCE = 1000  # in a file
LOG = r"[0-9a-f]{16}-[0-9a-f]{16}\.jsonl"  # names of files of notes: the run, and a random part
PLAN = r"plan-[0-9a-f]{16}-[0-9]{6,}\.jsonl"
PLANNED_AT_ONCE = 1000  # shards in a file of the plan
ERRORS = "_errors"
BAD_SHARDS = "__shards__"
FORMAT = 3  # of manifests and notes

_tokenizers: dict[str, Tokenizer] = {}  # by digest
_tokenizers_lock = threading.Lock()


@dataclass(frozen=True)
class Contents:
    """What a directory holds.

    `results`, `errors`: the notes, by the name of the shard, no matter if the shard is there.
    `bad`: the relative names of the inputs that may be in quarantine. `roots`: by the name of the
    shard, the directory of its input, if it is known. `sizes`: the sizes in bytes of all files
    except those of the job itself. `logs`: the names of the files of notes and plans. `is_whole`:
    whether there is a manifest. `has_notes`: whether there is a directory of notes. `version`: it
    is another one if another run has begun since. `uncommitted`: the shards that are finished, but
    not in the manifest that is there. `gone`: the shards that were to be deleted. `epoch`: the last
    one of a run that followed its inputs."""

    results: dict[str, ShardResult]
    errors: dict[str, ShardError]
    bad: frozenset[str]
    roots: dict[str, str]
    sizes: dict[str, int]
    logs: list[str]
    is_whole: bool
    has_notes: bool
    version: object
    uncommitted: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    epoch: dict[str, Any] | None = None

    def source(self, name: str) -> str:
        """The path of the input of a shard that has a note, as far as it is known."""
        note = self.results.get(name) or self.errors[name]
        return join(self.roots[name], note.input) if name in self.roots else note.input

    @property
    def finished(self) -> dict[str, ShardResult]:
        """The shards that have a note, and that are there as they were written."""
        return {
            name: result
            for name, result in self.results.items()
            if self.sizes.get(name) == result.output_bytes
        }


@dataclass
class NewShard:
    """A shard that is written and has no name yet, and its note."""

    note: ShardResult
    file: NewFile


@dataclass
class Log:
    """A file of notes that a worker writes anew whenever it has more, until it has many."""

    name: str = ""
    notes: list[Note] = field(default_factory=list)


@dataclass(frozen=True)
class EncodedDirectory:
    """The output directory of a job. `job`: what all its shards share, `tokenizer` and `options`.
    `run`: the id of the run."""

    path: str
    job: dict[str, Any]
    run: str = field(default_factory=new_id)

    @property
    def notes(self) -> OwnedDirectory:
        """The directory of notes."""
        names = rf"{JOB}|{GONE}|{SPEC}|{LOG}|{PLAN}"
        return OwnedDirectory(self._place(NOTES), "notes", names, self.run)

    @property
    def errors(self) -> OwnedDirectory:
        """The directory of quarantine."""
        names = rf"{BAD_SHARDS}/.+\.(?:bad|json)"
        # This directory stays, so it must not depend on the run that made it.
        return OwnedDirectory(self._place(ERRORS), "errors", names, self.job["tokenizer"][:16])

    # --- What is there ---------------------------------------------------------------------------

    def read(self) -> Contents:
        """Reads what is there, with one listing. OptionError unless the directory is empty or holds
        only shards of this job."""
        entries = storage.entries(self.path)
        noted, bad = _below(entries, NOTES), _below(entries, ERRORS)
        has_notes = any(entry.name == NOTES for entry in entries) or bool(noted)
        self.notes.check(noted)
        self.errors.check(bad)
        own = (f"{NOTES}/", f"{ERRORS}/")
        files = [entry for entry in entries if entry.kind == "file"]
        sizes = {file.name: file.size for file in files if not file.name.startswith(own)}
        whole = next((file for file in files if file.name == MANIFEST), None)
        version = (whole and (whole.size, whole.modified), self.notes.holder() if noted else None)
        path = self._place(MANIFEST) if whole else self.notes.place(JOB)
        common = _dictionary(path) if whole or noted else None
        if sizes and common is None:
            raise OptionError(
                f"{self.path}: holds {next(iter(sizes))}, no shards of this job; give an empty one"
            )
        logs = [entry.name for entry in noted if re.fullmatch(f"{LOG}|{PLAN}", entry.name)]
        contents = Contents(
            {}, {}, frozenset(), {}, sizes, logs, whole is not None, has_notes, version
        )
        if common is not None:
            self._check_same(common)
            contents = self._noted(contents, common, path)
            self._check_names(contents, entries)
        if any(entry.name == GONE for entry in noted):
            names = (_dictionary(self.notes.place(GONE)) or {}).get("shards", [])
            contents = replace(contents, gone=frozenset(names) - contents.results.keys())
        for name in (MANIFEST, RUN, EPOCHS, *contents.gone):
            sizes.pop(name, None)
        return contents

    def _noted(self, found: Contents, common: dict[str, Any], path: str) -> Contents:
        """What is noted: in a manifest, or in job.json, changed by the notes written since then. A
        shard that was planned again and is not there has been deleted for that."""
        lists = [all_notes(common.pop(name, []), path) for name in ("shards", "errors")]
        if any(isinstance(note, ShardError) for note in lists[0]):
            raise damaged(path)
        results = {note.name: note for note in lists[0] if isinstance(note, ShardResult)}
        errors = {note.name: note for note in lists[1] if isinstance(note, ShardError)}
        bad = {error.input for error in errors.values()} | {*common.get("bad", [])}
        roots = _roots(_dictionary(self._place(RUN)) if RUN in found.sizes else None)
        uncommitted: set[str] = set()
        if found.is_whole:
            uncommitted = self._add_uncommitted(found, results, errors, bad)
        else:
            roots |= _roots(common)
            bad |= self._apply_logs(found, common, results, errors)
        return replace(
            found,
            results=results,
            errors=errors,
            bad=frozenset(bad),
            roots=roots,
            uncommitted=frozenset(uncommitted),
            epoch=common.get("epoch"),
        )

    def _add_uncommitted(
        self,
        found: Contents,
        results: dict[str, ShardResult],
        errors: dict[str, ShardError],
        bad: set[str],
    ) -> set[str]:
        """Adds the shards that a run which follows its inputs has finished since its last commit,
        and returns their names. Other notes beside a manifest are in it already."""
        added: set[str] = set()
        for note in self._read_logs(_logs(found.logs)):
            if isinstance(note, ShardError):
                bad.add(note.input)
            elif note.name not in results and found.sizes.get(note.name) == note.output_bytes:
                results[note.name] = note
                errors.pop(note.name, None)
                added.add(note.name)
        return added

    def _apply_logs(
        self,
        found: Contents,
        common: dict[str, Any],
        results: dict[str, ShardResult],
        errors: dict[str, ShardError],
    ) -> set[str]:
        """Changes what was noted before the run by the notes written since then. Returns the inputs
        of the errors among these."""
        again = common.get("planned", [])
        known = (results.keys() | errors.keys()) - {*again}
        for name in again:
            if name not in found.sizes:
                results.pop(name, None)
        logs = _logs(found.logs)
        current = {name for name in logs if name.partition("-")[0] == common.get("run")}
        notes = self._read_logs(sorted(current))
        failed = [note for note in notes if isinstance(note, ShardError)]
        for error in failed:
            errors[error.name] = error
            results.pop(error.name, None)
        for note in notes:  # after the errors: a result is newer than an error of its shard
            if isinstance(note, ShardResult):
                results[note.name] = note
                errors.pop(note.name, None)
        known |= {note.name for note in notes}
        for note in self._read_logs([name for name in logs if name not in current]):
            if isinstance(note, ShardError) or note.name in known:
                continue
            if found.sizes.get(note.name) == note.output_bytes:
                results[note.name] = note  # of a worker of an earlier run, see above
        return {error.input for error in failed}

    def _read_logs(self, names: Sequence[str]) -> list[Note]:
        def read(name: str) -> list[Note]:
            path = self.notes.place(name)
            return from_lines(storage.read_bytes(path), path)

        return [note for notes in in_parallel(read, names) for note in notes]

    def _check_names(self, found: Contents, entries: Sequence[Entry]) -> None:
        """Raises InputError if a name in a note leads out of the directory, also through a link."""
        links = {entry.name for entry in entries if entry.kind == "other"}
        notes: Iterable[Note] = chain(found.results.values(), found.errors.values())
        for note in notes:
            for base, below in (("", note.name), (f"{ERRORS}/{BAD_SHARDS}", note.input)):
                name = f"{base}/{below}".lstrip("/")
                if not is_plain_name(below) or (links and _is_linked(name, links)):
                    inside(self._place(base) if base else self.path, below)

    # --- Beginning, noting, ending ---------------------------------------------------------------

    def begin(self, tokenizer: Tokenizer, planned: Collection[str], roots: dict[str, str]) -> None:
        """Begins a run. Until `finish` the directory is not complete. `planned`: the names of the
        shards that will be encoded or are bad; old files of these names are deleted. `roots`: as in
        `Contents`, for all inputs."""
        self.notes.claim()
        found = self.read()  # now, when no worker of an earlier run can rename a shard any more
        self._write_tokenizer(tokenizer)
        again = {*planned} & found.results.keys() & found.sizes.keys()
        there = [name for name in sorted(found.results) if name in found.sizes]
        job = {
            "format": FORMAT,
            **self.job,
            "run": self.run,
            "planned": sorted(again),
            "bad": sorted(found.bad),
            "epoch": found.epoch,
            "shards": [plain(found.results[name]) for name in there],
            "errors": [plain(found.errors[name]) for name in sorted(found.errors)],
            **_inputs(found.roots | roots),
        }
        outputs.write_json(self.notes.place(JOB), job)
        if found.is_whole:
            storage.delete_file(self._place(MANIFEST))
            storage.sync(self.path)
        storage.delete_files(map(self.notes.place, found.logs))
        storage.delete_files(map(self._place, sorted(again)))
        self._delete_gone(found.gone)

    def _delete_gone(self, names: Collection[str]) -> None:
        """Deletes shards, and then the file that says so."""
        if names:
            storage.delete_files(map(self._place, sorted(names)))
            storage.delete_file(self.notes.place(GONE))

    def _write_tokenizer(self, tokenizer: Tokenizer) -> None:
        spec = asdict(tokenizer.spec) | {"unk_scope": tokenizer.unk_scope}
        outputs.write_json(self.notes.place(SPEC), spec)
        with _tokenizers_lock:
            _tokenizers[tokenizer.digest] = tokenizer

    def write_plan(self, shards: Sequence[tuple[InputFile, str]], first: int = 0) -> list[str]:
        """Writes what is to be encoded: the inputs and the names of their shards. Returns the names
        of the files, for `read_plan`. `first`: the number of the first one. OutputError if another
        run has begun."""
        self.notes.check_lease()
        starts = range(0, len(shards), PLANNED_AT_ONCE)

        def write(start: int) -> str:
            name = f"plan-{self.run}-{first + start // PLANNED_AT_ONCE:06}.jsonl"
            some = shards[start : start + PLANNED_AT_ONCE]
            lines = (json.dumps([vars(file), shard], ensure_ascii=False) for file, shard in some)
            outputs.write_bytes(self.notes.place(name), "".join(f"{x}\n" for x in lines).encode())
            return name

        return in_parallel(write, starts)

    def read_plan(self, name: str, may_be_gone: bool = False) -> Iterator[tuple[InputFile, str]]:
        """The inputs and the names of their shards in a file of the plan. OutputError if another
        run has begun. `may_be_gone`: the file is deleted when its shards have been committed."""
        try:
            data = storage.read_bytes(self.notes.place(name))
        except storage.MissingError:
            self.notes.check_lease()
            if may_be_gone:
                return
            raise
        for line in data.splitlines():
            file, shard = json.loads(line)
            yield InputFile(**file), shard

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the job, which each process loads once. `begin` has written it."""
        digest = self.job["tokenizer"]
        with _tokenizers_lock:
            if digest not in _tokenizers:
                plain = outputs.read_json(self.notes.place(SPEC))
                if plain is None:
                    self.notes.check_lease()
                unk_scope = plain.pop("unk_scope")
                spec = TokenizerSpec(**plain | {"text": TextOptions(**plain["text"])})
                _tokenizers[digest] = Tokenizer.of(spec, unk_scope)
            return _tokenizers[digest]

    def write_shard(
        self, name: str, write: Callable[[NewFile], object], result: Callable[[int], ShardResult]
    ) -> NewShard:
        """Writes a shard that has no name yet. `write` writes to the file that it gets; `result`
        makes the note from the size of the file."""
        path = self._place(name)
        with NewFile(path, self.notes.path) as file:
            with storage.writing(path):
                write(file)
            return NewShard(result(file.size), file)

    def commit(self, shards: Sequence[NewShard], errors: Sequence[ShardError], log: Log) -> None:
        """Writes the notes of finished and bad shards to a log, and then gives the finished ones
        their names. It can be called again if it fails, as long as the shards are held in memory.
        OutputError if another run has begun, or if there is a file of a shard's name that is not of
        this job. Shards that are in the manifest already are given up: a stream that does its work
        again after a fault comes too late with them."""
        in_parallel(lambda shard: shard.file.stage(), shards)
        self.notes.check_lease()  # after the files are staged: see above
        late = self.check_free([shard.note.name for shard in shards])
        for shard in shards:
            if shard.note.name in late:
                shard.file.discard()
        shards = [shard for shard in shards if shard.note.name not in late]
        self._write(log, [*errors, *(shard.note for shard in shards)])
        in_parallel(lambda shard: shard.file.put(), shards)
        in_parallel(storage.sync, {outputs.parent(shard.file.path) for shard in shards})

    def check_free(self, names: Sequence[str]) -> set[str]:
        """OutputError if there is a file of one of the names without a note. Returns the names of
        those that are noted in the manifest."""
        found = in_parallel(lambda name: storage.info(self._place(name)), names)
        taken = [name for name, entry in zip(names, found, strict=True) if entry is not None]
        if not taken:
            return set()
        logs = _logs(outputs.list_directory(self.notes.path))
        noted = {note.name for note in self._read_logs(logs)}
        if noted.issuperset(taken):
            return set()
        manifest = _dictionary(self._place(MANIFEST)) or {}
        committed = {note.name for note in all_notes(manifest.get("shards", []), MANIFEST)}
        for name in taken:
            if name not in noted | committed:
                path = self._place(name)
                raise OutputError(f"{path}: was not there when the job began; take it away")
        return committed.intersection(taken) - noted

    def note(self, *notes: Note) -> None:
        """Writes the notes of finished or bad shards. OutputError if another run has begun."""
        self.notes.check_lease()
        self._write(Log(), notes)

    def _write(self, log: Log, notes: Sequence[Note]) -> None:
        if not log.name or len(log.notes) >= NOTES_AT_ONCE:
            log.name, log.notes = f"{self.run}-{new_id()}.jsonl", []
        together = [*log.notes, *notes]
        outputs.write_bytes(self.notes.place(log.name), to_lines(together))
        log.notes = together

    def quarantine(self, errors: Sequence[BadShard]) -> None:
        """Writes the notes of bad shards, and copies their inputs and what is wrong to
        quarantine."""
        self.note(*(bad.error for bad in errors))
        if errors and not self.errors.check():
            self.errors.claim(self.notes.path)
        in_parallel(self._copy_bad, errors)

    def _copy_bad(self, bad: BadShard) -> None:
        error, file, scratch = bad.error, bad.file, self.notes.path
        copied = True
        copy = self._bad(error.input, ".bad")
        try:
            outputs.copy(file.path, copy, scratch)
        except StorageError as fault:
            if fault.path != file.path:
                raise
            copied = False  # the disk of the input may be broken
            storage.delete_file(copy)
        record = {
            "input": error.input,
            "row_group": error.row_group,
            "message": error.message,
            "copied": copied,
        }
        outputs.write_json(self._bad(error.input, ".json"), record, scratch)

    def _bad(self, name: str, ending: str) -> str:
        return inside(self.errors.place(BAD_SHARDS), name + ending)

    def finish(self, found: Contents) -> dict[str, Any]:
        """Deletes from quarantine what is no longer an error, then writes the manifest and returns
        it. `found`: what the directory holds. OutputError for a shard that has changed since it was
        written, and if another run has begun."""
        changed = found.results.keys() - found.finished.keys()
        if changed:
            path = self._place(min(changed))
            raise OutputError(f"{path}: is not as it was written; run the job again")
        manifest = self._write_manifest(found)
        self.notes.delete()
        return manifest

    def _write_manifest(self, found: Contents, gone: Collection[str] = ()) -> dict[str, Any]:
        """`gone`: shards that the manifest which is there has, and the new one has not."""
        manifest = self.manifest(found)
        self._release(found.bad - {error.input for error in found.errors.values()})
        self.notes.check_lease()
        self._write_run(found, gone)
        outputs.write_json(self._place(MANIFEST), manifest, self.notes.path)
        return manifest

    def _write_run(self, found: Contents, gone: Collection[str] = ()) -> None:
        noted = {*found.results, *found.errors, *gone}
        roots = {name: root for name, root in found.roots.items() if name in noted}
        outputs.write_json(self._place(RUN), _inputs(roots), self.notes.path)

    def _release(self, inputs: Collection[str]) -> None:
        """Deletes inputs from quarantine, and quarantine if it is empty."""
        if not self.errors.check():
            return
        paths = [self._bad(name, ending) for name in sorted(inputs) for ending in (".bad", ".json")]
        storage.delete_files(paths)
        if outputs.list_directory(self.errors.path, recursive=True) == [MARKER]:
            self.errors.delete()

    def manifest(self, found: Contents) -> dict[str, Any]:
        """The manifest of what the directory holds."""
        shards = [plain(found.results[name]) for name in sorted(found.results)]
        errors = [plain(found.errors[name]) for name in sorted(found.errors)]
        totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
        epoch = {} if found.epoch is None else {"epoch": found.epoch}
        return {"format": FORMAT, **self.job, **totals, **epoch, "shards": shards, "errors": errors}

    # --- Following -------------------------------------------------------------------------------

    def begin_following(self, tokenizer: Tokenizer) -> Contents:
        """Begins a run that follows its inputs: the directory is complete, with the shards that are
        finished, and stays so. Inputs that could not be encoded, but are not in quarantine, are met
        again. Returns what the directory holds; what is uncommitted waits for a commit."""
        self.notes.claim()
        found = self.read()
        self._write_tokenizer(tokenizer)
        there = {*outputs.list_directory(self.errors.path, recursive=True)}
        errors = {
            name: error
            for name, error in found.errors.items()
            if error.cause == AGAIN or f"{BAD_SHARDS}/{error.input}.json" in there
        }
        found = replace(found, results=found.finished, errors=errors)
        committed = {k: v for k, v in found.results.items() if k not in found.uncommitted}
        self._write_manifest(replace(found, results=committed))
        self._delete_gone(found.gone)
        self.notes.sweep(rf"{JOB}|{GONE}" if found.uncommitted else rf"{JOB}|{GONE}|{LOG}|{PLAN}")
        return found

    def made(self, names: Collection[str]) -> tuple[list[ShardResult], list[ShardError]]:
        """The notes of shards that a pipeline of this run has just encoded, or could not."""
        logs = _logs(outputs.list_directory(self.notes.path))
        notes = self._read_logs([name for name in logs if name.startswith(self.run)])
        results = {n.name: n for n in notes if isinstance(n, ShardResult) and n.name in names}
        errors = {n.name: n for n in notes if isinstance(n, ShardError) and n.name in names}
        return list(results.values()), [errors[name] for name in errors.keys() - results.keys()]

    def sizes(self, names: Sequence[str]) -> dict[str, int]:
        """The sizes in bytes of the shards that are there."""
        found = in_parallel(lambda name: storage.info(self._place(name)), names)
        return {name: entry.size for name, entry in zip(names, found, strict=True) if entry}

    def commit_epoch(self, found: Contents, gone: Collection[str]) -> None:
        """Replaces the manifest. `gone`: shards to delete, which `found` has not. OutputError if
        another run has begun."""
        if gone:
            outputs.write_json(self.notes.place(GONE), {"shards": sorted(gone)})
        self._write_manifest(found, gone)
        if gone:
            self._write_run(found)
            self._delete_gone(gone)
        self.notes.sweep(rf"{LOG}|{PLAN}")

    def version(self) -> object:
        """The version of what the directory holds, as in `Contents`."""
        whole = storage.info(self._place(MANIFEST))
        return whole and (whole.size, whole.modified), self.notes.holder()

    def _place(self, *names: str) -> str:
        return join(self.path, *names)

    def _check_same(self, found: dict[str, Any]) -> None:
        if "tokenizer" not in found:
            raise OptionError(f"{self.path}: holds something else than shards; give an empty one")
        if found.get("tokenizer") != self.job["tokenizer"]:
            raise OptionError(
                f"{self.path}: holds shards of another tokenizer"
                f" ({str(found.get('tokenizer'))[:12]}, not {self.job['tokenizer'][:12]});"
                " mixed vocabularies break a model: give another one"
            )
        if found.get("format") != FORMAT:
            raise OptionError(
                f"{self.path}: holds shards of another version of this program; give another one"
            )
        options = found.get("options")
        for name, value in self.job["options"].items():
            if not isinstance(options, dict) or options.get(name) != value:
                raise OptionError(
                    f"{self.path}: holds shards with another {name}; give another directory"
                )


def _logs(names: Iterable[str]) -> list[str]:
    """Those of the names that are of files of notes."""
    return [name for name in names if re.fullmatch(LOG, name)]


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


def _roots(record: dict[str, Any] | None) -> dict[str, str]:
    """The directories of the inputs, by the names of the shards, from what `_inputs` made."""
    found, roots = (record or {}).get("inputs"), {}
    for root, names in found.items() if isinstance(found, dict) else ():
        if isinstance(names, list):
            roots.update({name: root for name in names if isinstance(name, str)})
    return roots


def _inputs(roots: dict[str, str]) -> dict[str, Any]:
    """The contents of `_run.json`: the names of the shards, by the directories of their inputs."""
    names: dict[str, list[str]] = {}
    for name in sorted(roots):
        names.setdefault(roots[name], []).append(name)
    return {"inputs": names}


def _dictionary(path: str) -> dict[str, Any] | None:
    value = outputs.read_json(path, of_object)
    if value is not None and not isinstance(value, dict):
        raise damaged(path)
    return value


@dataclass(frozen=True)
class BadShard:
    """An input that could not be read or encoded."""

    file: InputFile
    error: ShardError

    @property
    def message(self) -> str:
        """What is wrong, with the path of the file."""
        return self.file.path + self.error.message.removeprefix(self.file.name)


class ShardsError(InputError):
    """Some shards could not be encoded. `errors`: the bad shards."""

    def __init__(self, errors: Sequence[BadShard], shards: int) -> None:
        self.errors = list(errors)
        first = errors[0].message
        if shards == 1:
            message = first
        elif len(errors) == 1:
            message = f"{first} (1 of {shards:,} shards; a rerun keeps the others)"
        else:
            names = ", ".join(error.file.path for error in errors[:10])
            more = ", ..." if len(errors) > 10 else ""
            message = (
                f"{len(errors):,} of {shards:,} shards cannot be encoded: {names}{more}; a rerun"
                " keeps the others"
            )
        super().__init__(message)
