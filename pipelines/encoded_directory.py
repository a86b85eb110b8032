"""The directory that `encode` writes: which shards are finished, which could not be read.

    NAME.parquet        the shards
    _manifest.json      written last: the job, sums, shards, errors
    _shards/            while the job runs: a note for each shard that is finished or failed
    _errors/__shards__/ of inputs that could not be read, with --on-error quarantine: a note and the
                        bytes. `datasets` passes over names with two underscores, others over `.bad`

A shard is finished if it is noted, of the input that is given now, and there in the size noted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from pipelines import outputs
from pipelines.input_files import InputFile
from wordpiece_core import TextOptions, Tokenizer
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.tokenizer_files import TokenizerSpec

MANIFEST = "_manifest.json"
NOTES = "_shards"
JOB = "job.json"
SPEC = "spec.json"  # the tokenizer, for workers: Beam would pack and unpack it many times
ERRORS = "_errors"
BAD_SHARDS = f"{ERRORS}/__shards__"
ERROR_ENDING = ".error.json"  # a shard's own note ends in .parquet.json

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


@dataclass(frozen=True)
class ShardError:
    """A shard that could not be made. `input`: the relative name of its file; `wrong_column`: by
    options that do not fit the file."""

    name: str
    input: str
    source: dict[str, Any]
    row_group: int | None
    message: str
    wrong_column: bool

    @property
    def path(self) -> str:
        """Of the input."""
        return str(self.source["path"])


def source_of(file: InputFile) -> dict[str, Any]:
    """By which a rerun knows a file again."""
    return {"path": file.path, "bytes": file.size, "modified": file.modified}


@dataclass(frozen=True)
class EncodedDirectory:
    """`job`: what all its shards have in common, `tokenizer` and `options`."""

    path: str
    job: dict[str, Any]

    def read(self) -> tuple[list[ShardResult], list[ShardError]]:
        """The finished shards, and those that are noted as failed. OptionError unless the
        directory is empty or holds shards of this job only."""
        sizes = outputs.file_sizes(self.path)
        own = (f"{NOTES}/", f"{ERRORS}/")
        shards = {name: size for name, size in sizes.items() if not name.startswith(own)}
        manifest = outputs.read_json(self._place(MANIFEST))
        started = outputs.read_json(self._place(NOTES, JOB))
        for found in (manifest, started):
            if found is not None:
                self._check_same(found)
        if shards and manifest is None and started is None:
            name = next(iter(shards))
            raise OptionError(
                f"{self.path}: holds {name}, no shards of this job; give an empty one"
            )
        results = {r["name"]: ShardResult(**r) for r in (manifest or {}).get("shards", [])}
        errors = {e["name"]: ShardError(**e) for e in (manifest or {}).get("errors", [])}
        for note in self._notes():
            if isinstance(note, ShardResult):
                results[note.name] = note
                errors.pop(note.name, None)
            else:
                errors[note.name] = note
        finished = [r for r in results.values() if shards.get(r.name) == r.output_bytes]
        return sorted(finished, key=_name), sorted(errors.values(), key=_name)

    def begin(
        self,
        tokenizer: Tokenizer,
        results: Sequence[ShardResult],
        errors: Sequence[ShardError],
    ) -> None:
        """From here to `finish` the directory does not look whole. It keeps these results and
        errors, and no others."""
        outputs.make_directory(self._place(NOTES))
        outputs.remove_temporaries(self.path)
        outputs.write_json(self._place(NOTES, JOB), self.job)
        spec = asdict(tokenizer.spec) | {"unk_scope": tokenizer.unk_scope}
        outputs.write_json(self._place(NOTES, SPEC), spec)
        _tokenizers[tokenizer.digest] = tokenizer
        kept = {*map(self.note, results), *map(self.note, errors)}
        for name in outputs.list_directory(self._place(NOTES)):
            if name not in {*kept, JOB, SPEC}:
                outputs.delete(self._place(NOTES, name))
        outputs.delete(self._place(MANIFEST))

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

    def note(self, note: ShardResult | ShardError) -> str:
        """Notes a shard as finished or as failed; returns the note's name."""
        ending = ".json" if isinstance(note, ShardResult) else ERROR_ENDING
        name = quote(note.name, safe="") + ending
        outputs.write_json(self._place(NOTES, name), asdict(note))
        return name

    def quarantine(self, error: ShardError) -> None:
        """Keeps a bad shard's bytes and what is wrong with it; deletes what an earlier run made
        of the file that was in its place."""
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
        outputs.delete(self._place(error.name))

    def finish(self) -> dict[str, Any]:
        """Writes the manifest, removes the notes that it is made of, and what is in quarantine
        but not among its errors; returns the manifest."""
        results, errors = self.read()
        shards = [asdict(result) for result in results]
        totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
        listed = [asdict(error) for error in errors]
        manifest = {**self.job, **totals, "shards": shards, "errors": listed}
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

    def _check_same(self, found: Any) -> None:
        if not isinstance(found, dict) or "tokenizer" not in found:
            raise OptionError(f"{self.path}: holds something else than shards; give an empty one")
        if found.get("tokenizer") != self.job["tokenizer"]:
            raise OptionError(
                f"{self.path}: holds shards of another tokenizer"
                f" ({str(found.get('tokenizer'))[:12]}, not {self.job['tokenizer'][:12]});"
                " mixed vocabularies break a model: give another one"
            )
        options = found.get("options", {})
        for name, value in self.job["options"].items():
            if options.get(name) != value:
                raise OptionError(
                    f"{self.path}: holds shards with another {name}; give another directory"
                )

    def _notes(self) -> list[ShardResult | ShardError]:
        """What is noted of shards. What a killed writer left is no note."""
        names = outputs.list_directory(self._place(NOTES))
        notes: list[ShardResult | ShardError] = []
        for name in names:
            if name not in (JOB, SPEC) and name.endswith(".json"):
                kind: Callable[..., ShardResult | ShardError] = ShardResult
                if name.endswith(ERROR_ENDING):
                    kind = ShardError
                notes.append(kind(**outputs.read_json(self._place(NOTES, name))))
        return notes


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
