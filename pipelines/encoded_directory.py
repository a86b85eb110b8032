"""The directory that `encode` writes: which shards are finished, which could not be read.

    NAME.parquet        the shards
    _manifest.json      written last: the job, sums, shards, errors
    _shards/            while the job runs: a note for each shard that is finished or failed
    _errors/__shards__/ of inputs that could not be read, with --on-error quarantine: a note and the
                        bytes. `datasets` passes over names with two underscores, others over `.bad`

A shard is finished if it is noted, of the input that is given now, and there in the size noted. No
shard stays that is not noted: `_shards/job.json` names all that may be there before they are made.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Sequence
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
class EncodedDirectory:
    """`job`: what all its shards have in common, `tokenizer` and `options`. `run`: the number of
    one run of it."""

    path: str
    job: dict[str, Any]
    run: str = field(default_factory=lambda: secrets.token_hex(8))

    def read(self) -> Noted:
        """The finished shards, and those that are noted as failed. OptionError unless the
        directory is empty or holds shards of this job only."""
        results, errors = self._noted()
        sizes = self._shard_sizes()
        finished = [r for r in results.values() if sizes.get(r.name) == r.output_bytes]
        return sorted(finished, key=_name), sorted(errors.values(), key=_name)

    def begin(self, tokenizer: Tokenizer, kept: Noted, planned: Sequence[str]) -> None:
        """From here to `finish` the directory does not look whole. It keeps these results and
        errors, and deletes all other shards. `planned`: names of shards to be made."""
        outputs.make_directory(self._place(NOTES))
        outputs.remove_temporaries(self.path)
        known = {*self._noted()[0], *(self._started() or {}).get("shards", [])}
        names = {result.name for result in kept[0]}
        job = {**self.job, "shards": sorted({*known, *planned, *names})}
        outputs.write_json(self._place(NOTES, JOB), job)
        outputs.write_json(self._place(NOTES, RUN), {"run": self.run})
        spec = asdict(tokenizer.spec) | {"unk_scope": tokenizer.unk_scope}
        outputs.write_json(self._place(NOTES, SPEC), spec)
        _tokenizers[tokenizer.digest] = tokenizer
        notes = {self._write_note(note) for some in kept for note in some}
        for name in outputs.list_directory(self._place(NOTES)):
            if name not in {*notes, JOB, RUN, SPEC}:
                outputs.delete(self._place(NOTES, name))
        outputs.delete(self._place(MANIFEST))
        for name in known & self._shard_sizes().keys() - names:
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
        """Returns the note's name: a shard's own may be too long."""
        ending = RESULT_ENDING if isinstance(note, ShardResult) else ERROR_ENDING
        name = hashlib.sha256(note.name.encode()).hexdigest()[:32] + ending
        outputs.write_json(self._place(NOTES, name), asdict(note))
        return name

    def quarantine(self, error: ShardError) -> None:
        """Keeps a bad shard's bytes and what is wrong with it."""
        copied = True
        try:
            outputs.copy(error.path, self._place(BAD_SHARDS, f"{error.input}.bad"))
        except InputError:  # of a broken disk there may be nothing to copy
            copied = False
        record = {
            "input": error.path,
            "row_group": error.row_group,
            "message": error.message,
            "copied": copied,
        }
        outputs.write_json(self._place(BAD_SHARDS, f"{error.input}.json"), record)

    def finish(self) -> dict[str, Any]:
        """Writes the manifest, removes the notes that it is made of, and what is in quarantine
        but not among its errors; returns the manifest."""
        results, errors = self.read()
        shards = [asdict(result) for result in results]
        totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
        listed = [asdict(error) for error in errors]
        manifest = {"format": FORMAT, **self.job, **totals, "shards": shards, "errors": listed}
        bad = {f"{error.input}{ending}" for error in errors for ending in (".bad", ".json")}
        in_quarantine = outputs.list_directory(self._place(BAD_SHARDS), recursive=True)
        for name in in_quarantine:
            if name not in bad:
                outputs.delete(self._place(BAD_SHARDS, name))
        if in_quarantine and not bad:
            outputs.delete(self._place(ERRORS))
        outputs.write_json(self._place(MANIFEST), manifest)
        outputs.delete(self._place(NOTES))
        return manifest

    def _place(self, *names: str) -> str:
        return outputs.join(self.path, *names)

    def _started(self) -> dict[str, Any] | None:
        """What a run that has not ended has noted of itself."""
        return _dictionary(self._place(NOTES, JOB))

    def _shard_sizes(self) -> dict[str, int]:
        """Of the files that are not the directory's own, by name."""
        own = (f"{NOTES}/", f"{ERRORS}/")
        sizes = outputs.file_sizes(self.path)
        return {name: size for name, size in sizes.items() if not name.startswith(own)}

    def _noted(self) -> tuple[dict[str, ShardResult], dict[str, ShardError]]:
        """By name, whether the shards are there or not."""
        path = self._place(MANIFEST)
        manifest, started = _dictionary(path), self._started()
        shards = self._shard_sizes()
        if shards and manifest is None and started is None:
            name = next(iter(shards))
            raise OptionError(
                f"{self.path}: holds {name}, no shards of this job; give an empty one"
            )
        for found in (manifest, started):
            if found is not None:
                self._check_same(found)
        if manifest is not None and manifest.get("format") != FORMAT:
            raise OptionError(
                f"{self.path}: holds shards of another version of this program; give another one"
            )
        results, errors = _read_notes(manifest or {}, path)
        for name in outputs.list_directory(self._place(NOTES)):
            note_path = self._place(NOTES, name)
            if name.endswith(RESULT_ENDING):
                result = _note(ShardResult, _dictionary(note_path), note_path)
                results[result.name] = result
                errors.pop(result.name, None)
            elif name.endswith(ERROR_ENDING):
                error = _note(ShardError, _dictionary(note_path), note_path)
                errors[error.name] = error
        return results, errors

    def _check_same(self, found: dict[str, Any]) -> None:
        if "tokenizer" not in found:
            raise OptionError(f"{self.path}: holds something else than shards; give an empty one")
        if found.get("tokenizer") != self.job["tokenizer"]:
            raise OptionError(
                f"{self.path}: holds shards of another tokenizer"
                f" ({str(found.get('tokenizer'))[:12]}, not {self.job['tokenizer'][:12]});"
                " mixed vocabularies break a model: give another one"
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
    return InputError(f"{path}: not as this program writes it; delete the directory or restore it")


def _name(note: ShardResult | ShardError) -> str:
    return note.name


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
