"""The directory that `encode` writes, and which of its shards are finished or could not be read.

    NAME.parquet        the shards
    _manifest.json      the job, sums, shards, errors. If it is there, the directory is complete
    _run.json           what the last run read, with absolute paths. Readers do not need it
    _shards/            owned by the job (`pipelines.files.owned`), and there while the directory is
                        not complete: what the shards share and which old ones are encoded again,
                        the previous manifest, the tokenizer, and a note for each shard that is
                        finished or bad
    _errors/            owned too: the inputs that could not be read, with --on-error quarantine:
                        __shards__/NAME.bad has the bytes, __shards__/NAME.json what is wrong.
                        (`datasets` skips names with two underscores, others skip `.bad`)

A shard is written in `_shards`, then a note with its size is written, and then the shard gets its
name. So every shard is in a note or in the manifest, and any other file is not of this job. A shard
is finished if there is a note of it for the current input, and its size is that in the note.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import NoneType
from typing import Any, TypeVar

from pipelines.files import outputs, storage
from pipelines.files.filesystems import inside, join
from pipelines.files.input_files import InputFile
from pipelines.files.owned import MARKER, OwnedDirectory, new_id
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.errors import InputError, OptionError, OutputError, StorageError
from wordpiece_core.tokenizer.files import TokenizerSpec

MANIFEST = "_manifest.json"
RUN = "_run.json"
NOTES = "_shards"
JOB = "job.json"  # what the shards have in common
BEFORE = "manifest.json"  # the previous manifest, in the notes
SPEC = "spec.json"  # the tokenizer, for workers: Beam would pack and unpack it many times
ERRORS = "_errors"
BAD_SHARDS = "__shards__"
RESULT_ENDING, ERROR_ENDING = ".shard.json", ".error.json"
FORMAT = 2  # of manifests and notes

_tokenizers: dict[str, Tokenizer] = {}  # by digest
_tokenizers_lock = threading.Lock()

SUMS = (
    *("rows", "input_rows", "nulls", "bytes", "tokens", "unknown_tokens", "replaced"),
    *("dropped_tokens", "invalid", "output_bytes"),
)


@dataclass(frozen=True)
class ShardResult:
    """A finished shard. `input`: the relative name of the file it was made from. `source`: the size
    of that file and the time of its last change. `rows`: the rows of the shard. `bytes`: the size
    of the texts. `replaced`: the invalid UTF-8 sequences in the texts. `invalid`: those in the kept
    columns, where they stay."""

    name: str
    input: str
    source: dict[str, Any]
    rows: int = 0
    input_rows: int = 0
    nulls: int = 0
    bytes: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    replaced: int = 0
    dropped_tokens: int = 0
    invalid: int = 0
    output_bytes: int = 0


FILE, COLUMN, CHANGED = "file", "column", "changed"


@dataclass(frozen=True)
class ShardError:
    """A shard that could not be encoded. `input`: the relative name of its file. `source`: see
    `ShardResult`. `message`: what is wrong, with the relative name. `cause`: `FILE` if the file is
    bad, `COLUMN` if the options do not fit it, `CHANGED` if it has changed since the job began."""

    name: str
    input: str
    source: dict[str, Any]
    row_group: int | None
    message: str
    cause: str


def source_of(file: InputFile) -> dict[str, Any]:
    """The values that tell whether a file is unchanged."""
    return {"bytes": file.size, "modified": file.modified}


@dataclass(frozen=True)
class Contents:
    """What a directory holds.

    `results`, `errors`: the notes, by the name of the shard, no matter if the shard is there.
    `bad`: the relative names of the inputs that may be in quarantine. `roots`: by the name of the
    shard, the directory of its input, if it is known. `sizes`: the sizes in bytes of all files
    except those of the job itself. `is_whole`: whether there is a manifest."""

    results: dict[str, ShardResult]
    errors: dict[str, ShardError]
    bad: frozenset[str]
    roots: dict[str, str]
    sizes: dict[str, int]
    is_whole: bool

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
        names = rf"{JOB}|{BEFORE}|{SPEC}|{RUN}|[0-9a-f]{{32}}\.(?:shard|error)\.json"
        return OwnedDirectory(self._place(NOTES), "notes", names, self.run)

    @property
    def errors(self) -> OwnedDirectory:
        """The directory of quarantine."""
        names = rf"{BAD_SHARDS}/.+\.(?:bad|json)"
        # This directory stays, so it must not depend on the run that made it.
        return OwnedDirectory(self._place(ERRORS), "errors", names, self.job["tokenizer"][:16])

    # --- What is there ---------------------------------------------------------------------------

    def read(self) -> Contents:
        """Reads what is there. OptionError unless the directory is empty or holds only shards of
        this job."""
        self.notes.check()
        self.errors.check()
        own = (f"{NOTES}/", f"{ERRORS}/")
        found = outputs.file_sizes(self.path)
        sizes = {name: size for name, size in found.items() if not name.startswith(own)}
        manifest = _dictionary(self._place(MANIFEST))
        started = None if manifest else _dictionary(self.notes.place(JOB))
        if sizes and manifest is None and started is None:
            raise OptionError(
                f"{self.path}: holds {next(iter(sizes))}, no shards of this job; give an empty one"
            )
        for common in (manifest, started):
            if common is not None:
                self._check_same(common)
        if manifest is not None:
            results, errors = self._of_manifest(manifest, self._place(MANIFEST))
            bad = frozenset(error.input for error in errors.values())
        else:
            results, errors, bad = self._noted(started or {}, sizes.keys())
        roots = self._roots()
        shards = {name: size for name, size in sizes.items() if name not in (MANIFEST, RUN)}
        return Contents(results, errors, bad, roots, shards, manifest is not None)

    def _noted(
        self, started: dict[str, Any], there: Collection[str]
    ) -> tuple[dict[str, ShardResult], dict[str, ShardError], frozenset[str]]:
        """The results and errors in the previous manifest, changed by the notes written since then.
        A shard that was planned again and is not there has been deleted for that."""
        path = self.notes.place(BEFORE)
        results, errors = self._of_manifest(_dictionary(path) or {}, path)
        for name in started.get("planned", []):
            if name not in there:
                results.pop(name, None)
        names = outputs.list_directory(self.notes.path)
        bad = {error.input for error in errors.values()}
        for name in names:
            if name.endswith(ERROR_ENDING):
                error = self._note(ShardError, name)
                errors[error.name] = error
                results.pop(error.name, None)
                bad.add(error.input)
        for name in names:  # after the errors: a result is newer than an error of the same shard
            if name.endswith(RESULT_ENDING):
                result = self._note(ShardResult, name)
                results[result.name] = result
                errors.pop(result.name, None)
        return results, errors, frozenset(bad)

    def _note(self, kind: type[Note], name: str) -> Note:
        path = self.notes.place(name)
        note = _note(kind, _dictionary(path), path)
        self._check_names(note)
        return note

    def _of_manifest(
        self, manifest: dict[str, Any], path: str
    ) -> tuple[dict[str, ShardResult], dict[str, ShardError]]:
        """The shards and errors of a manifest."""
        lists = [manifest.get(name, []) for name in ("shards", "errors")]
        if not all(isinstance(some, list) for some in lists):
            raise _damaged(path)
        results = [_note(ShardResult, value, path) for value in lists[0]]
        errors = [_note(ShardError, value, path) for value in lists[1]]
        for result in results:
            self._check_names(result)
        for error in errors:
            self._check_names(error)
        return {result.name: result for result in results}, {error.name: error for error in errors}

    def _check_names(self, note: ShardResult | ShardError) -> None:
        """Raises InputError if a name in a note leads out of the directory."""
        inside(self.path, note.name)
        inside(self.errors.place(BAD_SHARDS), note.input)

    def _roots(self) -> dict[str, str]:
        """The directories of the inputs, by the names of the shards."""
        roots: dict[str, str] = {}
        for path in (self._place(RUN), self.notes.place(RUN)):
            found = (_dictionary(path) or {}).get("inputs")
            if isinstance(found, dict):
                for root, names in found.items():
                    if isinstance(names, list):
                        roots.update({name: root for name in names if isinstance(name, str)})
        return roots

    # --- Beginning, noting, ending ---------------------------------------------------------------

    def begin(self, tokenizer: Tokenizer, planned: Collection[str], roots: dict[str, str]) -> None:
        """Begins a run. Until `finish` the directory is not complete. `planned`: the names of the
        shards that will be encoded or are bad; old files of these names are deleted. `roots`: as in
        `Contents`, for all inputs."""
        found = self.read()
        if found.is_whole:
            self.notes.delete()  # a run was killed just after its end, or before its beginning
        self.notes.claim()
        outputs.write_json(self.notes.place(RUN), _inputs(found.roots | roots))
        spec = asdict(tokenizer.spec) | {"unk_scope": tokenizer.unk_scope}
        outputs.write_json(self.notes.place(SPEC), spec)
        started = _dictionary(self.notes.place(JOB)) or {}
        lost = found.results.keys() - found.sizes.keys()  # forgotten, as their files are gone
        again = {*started.get("planned", []), *({*planned} & found.results.keys()), *lost}
        job = {"format": FORMAT, **self.job, "planned": sorted(again)}
        outputs.write_json(self.notes.place(JOB), job)
        if found.is_whole:
            storage.move(self._place(MANIFEST), self.notes.place(BEFORE))
            storage.sync(self.path)
        with _tokenizers_lock:
            _tokenizers[tokenizer.digest] = tokenizer
        for name in {*planned} & found.results.keys():
            storage.delete_file(self._place(name))
            storage.delete_file(self.notes.place(_note_name(name, RESULT_ENDING)))

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
        self, name: str, write: Callable[[Any], object], result: Callable[[int], ShardResult]
    ) -> ShardResult:
        """Writes a shard and its note. `write` writes to the file that it gets; `result` makes the
        note from the size of the file. OutputError if another run has begun, or if there is a file
        of this name that is not of this job."""
        path = self._place(name)
        with outputs.temporary_writer(path, self.notes.path) as (stream, temporary):
            write(stream)
        with outputs.gone_on_failure(temporary):
            written = storage.info(temporary)
            note = result(0 if written is None else written.size)
            self.notes.check_lease()
            self._check_free(name)
            self.note(note)
            outputs.put(temporary, path)
        return note

    def _check_free(self, name: str) -> None:
        """OutputError if there is a file of this name without a note."""
        path, note = self._place(name), self.notes.place(_note_name(name, RESULT_ENDING))
        if storage.info(path) is not None and storage.info(note) is None:
            raise OutputError(f"{path}: was not there when the job began; take it away")

    def note(self, note: ShardResult | ShardError) -> None:
        """Writes the note of a finished or bad shard. OutputError if another run has begun."""
        self.notes.check_lease()
        ending = RESULT_ENDING if isinstance(note, ShardResult) else ERROR_ENDING
        outputs.write_json(self.notes.place(_note_name(note.name, ending)), asdict(note))

    def quarantine(self, error: ShardError, file: InputFile) -> None:
        """Writes the note of a bad shard, and copies its input and what is wrong to quarantine."""
        self.note(error)
        scratch = self.notes.path
        if not self.errors.check():
            self.errors.claim(scratch)
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

    def finish(self) -> dict[str, Any]:
        """Deletes from quarantine what is no longer an error, then writes the manifest and returns
        it. OutputError for a shard that has changed since it was written, and if another run has
        begun."""
        found = self.read()
        changed = found.results.keys() - found.finished.keys()
        if changed:
            path = self._place(min(changed))
            raise OutputError(f"{path}: is not as it was written; run the job again")
        manifest = self._manifest(found)
        noted = found.results.keys() | found.errors.keys()
        errors = {error.input for error in found.errors.values()}
        if self.errors.check():
            for name in found.bad - errors:
                for ending in (".bad", ".json"):
                    storage.delete_file(self._bad(name, ending))
            if outputs.list_directory(self.errors.path, recursive=True) == [MARKER]:
                self.errors.delete()
        self.notes.check_lease()
        outputs.write_json(
            self._place(RUN),
            _inputs({name: root for name, root in found.roots.items() if name in noted}),
            self.notes.path,
        )
        outputs.write_json(self._place(MANIFEST), manifest, self.notes.path)
        self.notes.delete()
        return manifest

    def _manifest(self, found: Contents) -> dict[str, Any]:
        shards = [asdict(found.results[name]) for name in sorted(found.results)]
        errors = [asdict(found.errors[name]) for name in sorted(found.errors)]
        totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
        return {"format": FORMAT, **self.job, **totals, "shards": shards, "errors": errors}

    def whole(self) -> dict[str, Any] | None:
        """The manifest, if there is one. Notes that a killed run has left beside it are deleted."""
        manifest = _dictionary(self._place(MANIFEST))
        if manifest is not None:
            self.notes.delete()
        return manifest

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


Note = TypeVar("Note", ShardResult, ShardError)


def _note_name(shard: str, ending: str) -> str:
    """The name of a note: a hash, because the name of the shard may be too long."""
    return hashlib.sha256(shard.encode()).hexdigest()[:32] + ending


def _inputs(roots: dict[str, str]) -> dict[str, Any]:
    """The contents of `_run.json`: the names of the shards, by the directories of their inputs."""
    names: dict[str, list[str]] = {}
    for name in sorted(roots):
        names.setdefault(roots[name], []).append(name)
    return {"inputs": names}


def _note(kind: type[Note], value: Any, path: str) -> Note:
    """A note, from the value of its JSON."""
    wanted = {field.name: field.type for field in fields(kind)}
    types: dict[str, Any] = {
        "str": str,
        "int": int,
        "dict[str, Any]": dict,
        "int | None": (int, NoneType),
    }
    if not isinstance(value, dict) or value.keys() != wanted.keys():
        raise _damaged(path)
    if not all(isinstance(value[name], types[str(of)]) for name, of in wanted.items()):
        raise _damaged(path)
    return kind(**value)


def _dictionary(path: str) -> dict[str, Any] | None:
    value = outputs.read_json(path)
    if value is not None and not isinstance(value, dict):
        raise _damaged(path)
    return value


def _damaged(path: str) -> InputError:
    return InputError(f"{path}: not as this program writes it; restore it, or delete the directory")


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
