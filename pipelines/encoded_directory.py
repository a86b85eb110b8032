"""The directory that `encode` writes: which shards are finished, which could not be read.

    NAME.parquet        the shards
    _manifest.json      written last: the job, sums, shards, errors
    _shards/            while the job runs: a note for each shard that is finished or failed
    _errors/__shards__/ of inputs that could not be read, with --on-error quarantine: a note and the
                        bytes. `datasets` passes over names with two underscores, others over `.bad`

A shard is finished if it is noted, of the input that is given now, and there in the size noted.
`_shards/job.json` names all that are to be made, so that none stays unnoted when a run is killed.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import NoneType
from typing import Any, TypeVar

from pipelines import outputs
from pipelines.input_files import InputFile
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.errors import InputError, OptionError, OutputError
from wordpiece_core.tokenizer_files import TokenizerSpec

MANIFEST = "_manifest.json"
NOTES = "_shards"
JOB = "job.json"  # what the shards have in common, and all their names
RUN = "run.json"  # the number of the run that has begun last
SPEC = "spec.json"  # the tokenizer, for workers: Beam would pack and unpack it many times
ERRORS = "_errors"
BAD_SHARDS = f"{ERRORS}/__shards__"
RESULT_ENDING, ERROR_ENDING = ".shard.json", ".error.json"
FORMAT = 1  # of manifests and notes

_tokenizers: dict[str, Tokenizer] = {}  # by digest
_tokenizers_lock = threading.Lock()

SUMS = (
    *("rows", "input_rows", "nulls", "bytes", "tokens", "unknown_tokens", "replaced"),
    *("dropped_tokens", "output_bytes"),
)


@dataclass(frozen=True)
class ShardResult:
    """A finished shard. `source`: what it was made from. `rows`: its own; `bytes`: of text."""

    name: str
    source: dict[str, Any]
    rows: int = 0
    input_rows: int = 0
    nulls: int = 0
    bytes: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    replaced: int = 0
    dropped_tokens: int = 0
    output_bytes: int = 0


FILE, COLUMN, CHANGED = "file", "column", "changed"


@dataclass(frozen=True)
class ShardError:
    """A shard that could not be made. `input`: the relative name of its file. `cause`: `FILE`, or
    `COLUMN`: the options do not fit the file; or `CHANGED`: it is another file than it was when the
    job began."""

    name: str
    input: str
    source: dict[str, Any]
    row_group: int | None
    message: str
    cause: str

    @property
    def path(self) -> str:
        """Of the input."""
        return str(self.source["path"])


def source_of(file: InputFile) -> dict[str, Any]:
    """By which a rerun knows a file again."""
    return {"path": file.path, "bytes": file.size, "modified": file.modified}


Noted = tuple[list[ShardResult], list[ShardError]]


@dataclass(frozen=True)
class Contents:
    """What a directory holds. `results`, `errors`: what is noted, by name, whether the shards are
    there or not; `begun`: names of shards that a run may have made before it was killed; `sizes`:
    of the shards that are there, in bytes."""

    results: dict[str, ShardResult]
    errors: dict[str, ShardError]
    begun: frozenset[str]
    sizes: dict[str, int]

    @property
    def finished(self) -> dict[str, ShardResult]:
        """The shards that are noted and there as they were written."""
        return {
            name: result
            for name, result in self.results.items()
            if self.sizes.get(name) == result.output_bytes
        }

    @property
    def own(self) -> set[str]:
        """The names of all shards there that are not somebody else's files."""
        return (self.results.keys() | self.begun) & self.sizes.keys()


@dataclass(frozen=True)
class EncodedDirectory:
    """`job`: what all its shards have in common, `tokenizer` and `options`. `run`: the number of
    one run of it."""

    path: str
    job: dict[str, Any]
    run: str = field(default_factory=lambda: secrets.token_hex(8))

    def read(self) -> Contents:
        """OptionError unless the directory is empty or holds shards of this job only."""
        path = self._place(MANIFEST)
        manifest, started = _dictionary(path), _dictionary(self._place(NOTES, JOB))
        sizes = outputs.file_sizes(self.path)
        if sizes and manifest is None and started is None:
            raise OptionError(
                f"{self.path}: holds {next(iter(sizes))}, no shards of this job; give an empty one"
            )
        for found in (manifest, started):
            if found is not None:
                self._check_same(found)
        results, errors = _read_notes(manifest or {}, path)
        for note_path in self._notes():
            if note_path.endswith(RESULT_ENDING):
                result = _note(ShardResult, _dictionary(note_path), note_path)
                results[result.name] = result
                errors.pop(result.name, None)
            else:
                error = _note(ShardError, _dictionary(note_path), note_path)
                errors[error.name] = error
        begun = (started or {}).get("shards", [])
        own = (f"{NOTES}/", f"{ERRORS}/")
        shards = {name: size for name, size in sizes.items() if not name.startswith(own)}
        return Contents(results, errors, frozenset(begun) - errors.keys(), shards)

    def begin(self, tokenizer: Tokenizer, kept: Noted, planned: Collection[str]) -> None:
        """From here to `finish` the directory does not look whole. It keeps these results and
        errors. `planned`: the names of the shards to be made, or that cannot be; what earlier runs
        made of them is deleted."""
        found = self.read()
        outputs.make_directory(self._place(NOTES))
        outputs.remove_temporaries(self.path)
        names = {result.name for result in kept[0]}
        old = _dictionary(self._place(NOTES, JOB)) or {}
        bad = {error.input for error in found.errors.values()} | {*old.get("quarantine", [])}
        job = {"format": FORMAT, **self.job, "shards": sorted({*found.begun, *planned, *names})}
        outputs.write_json(self._place(NOTES, JOB), {**job, "quarantine": sorted(bad)})
        outputs.write_json(self._place(NOTES, RUN), {"run": self.run})
        spec = asdict(tokenizer.spec) | {"unk_scope": tokenizer.unk_scope}
        outputs.write_json(self._place(NOTES, SPEC), spec)
        _tokenizers[tokenizer.digest] = tokenizer
        notes = {self._write_note(note) for some in kept for note in some}
        for path in self._notes():
            if path not in notes:
                outputs.delete(path)
        outputs.delete(self._place(MANIFEST))
        for name in found.own & {*planned, *found.begun} - names:
            outputs.delete(self._place(name))

    def tokenizer(self) -> Tokenizer:
        """The job's tokenizer, one in each process, after `begin`."""
        digest = self.job["tokenizer"]
        with _tokenizers_lock:
            if digest not in _tokenizers:
                plain = outputs.read_json(self._place(NOTES, SPEC))
                unk_scope = plain.pop("unk_scope")
                spec = TokenizerSpec(**plain | {"text": TextOptions(**plain["text"])})
                _tokenizers[digest] = Tokenizer.of(spec, unk_scope)
            return _tokenizers[digest]

    def note(self, note: ShardResult | ShardError) -> None:
        """Notes a shard as finished or as failed. OutputError if another run has begun."""
        last = _dictionary(self._place(NOTES, RUN)) or {}
        if last.get("run") != self.run:
            raise OutputError(f"{self.path}: another run has begun there; let one end first")
        self._write_note(note)

    def _write_note(self, note: ShardResult | ShardError) -> str:
        """Returns the note's path. A shard's own name may be too long for it."""
        ending = RESULT_ENDING if isinstance(note, ShardResult) else ERROR_ENDING
        name = hashlib.sha256(note.name.encode()).hexdigest()[:32] + ending
        path = self._place(NOTES, name)
        outputs.write_json(path, asdict(note))
        return path

    def _notes(self) -> list[str]:
        """The paths of the notes on shards."""
        names = outputs.list_directory(self._place(NOTES))
        endings = (RESULT_ENDING, ERROR_ENDING)
        return [self._place(NOTES, name) for name in names if name.endswith(endings)]

    def quarantine(self, error: ShardError) -> None:
        """Keeps a bad shard's bytes and what is wrong with it."""
        copied = True
        copy = self._place(BAD_SHARDS, f"{error.input}.bad")
        try:
            outputs.copy(error.path, copy)
        except InputError:  # of a broken disk there may be nothing to copy
            copied = False
            outputs.delete(copy)
        record = {
            "input": error.path,
            "row_group": error.row_group,
            "message": error.message,
            "copied": copied,
        }
        outputs.write_json(self._place(BAD_SHARDS, f"{error.input}.json"), record)

    def finish(self) -> dict[str, Any]:
        """Writes the manifest, removes the notes that it is made of, and what earlier runs put
        into quarantine and is none of its errors; returns the manifest. OutputError for a shard
        that is not as it was written."""
        found = self.read()
        changed = found.results.keys() - found.finished.keys()
        if changed:
            path = self._place(min(changed))
            raise OutputError(f"{path}: is not as it was written; run the job again")
        shards = [asdict(found.results[name]) for name in sorted(found.results)]
        errors = [asdict(found.errors[name]) for name in sorted(found.errors)]
        totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
        manifest = {"format": FORMAT, **self.job, **totals, "shards": shards, "errors": errors}
        job = _dictionary(self._place(NOTES, JOB)) or {}
        for name in {*job.get("quarantine", [])} - {error["input"] for error in errors}:
            for ending in (".bad", ".json"):
                outputs.delete(self._place(BAD_SHARDS, f"{name}{ending}"))
        outputs.delete_empty(self._place(BAD_SHARDS))
        outputs.delete_empty(self._place(ERRORS))
        outputs.write_json(self._place(MANIFEST), manifest)
        for path in [*self._notes(), *(self._place(NOTES, name) for name in (SPEC, RUN, JOB))]:
            outputs.delete(path)
        outputs.delete_empty(self._place(NOTES))
        return manifest

    def whole(self) -> dict[str, Any] | None:
        """The manifest, if there is one and no run was killed since. Sweeps up after writers that
        were."""
        if outputs.exists(self._place(NOTES, JOB)):
            return None
        outputs.remove_temporaries(self.path)
        outputs.delete_empty(self._place(NOTES))
        return _dictionary(self._place(MANIFEST))

    def _place(self, *names: str) -> str:
        return outputs.join(self.path, *names)

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


def _read_notes(
    manifest: dict[str, Any], path: str
) -> tuple[dict[str, ShardResult], dict[str, ShardError]]:
    """The shards and errors of a manifest."""
    lists = [manifest.get(name, []) for name in ("shards", "errors")]
    if not all(isinstance(some, list) for some in lists):
        raise _damaged(path)
    results = [_note(ShardResult, value, path) for value in lists[0]]
    errors = [_note(ShardError, value, path) for value in lists[1]]
    return {result.name: result for result in results}, {error.name: error for error in errors}


def _note(kind: type[Note], value: Any, path: str) -> Note:
    """A note from JSON."""
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


class ShardsError(InputError):
    """Some shards could not be made. `errors`: of each."""

    def __init__(self, errors: Sequence[ShardError], shards: int) -> None:
        self.errors = list(errors)
        first = errors[0].message
        if shards == 1:
            message = first
        elif len(errors) == 1:
            message = f"{first} (1 of {shards:,} shards; a rerun keeps the others)"
        else:
            names = ", ".join(error.path for error in errors[:10])
            more = ", ..." if len(errors) > 10 else ""
            message = (
                f"{len(errors):,} of {shards:,} shards cannot be encoded: {names}{more}; a rerun"
                " keeps the others"
            )
        super().__init__(message)
