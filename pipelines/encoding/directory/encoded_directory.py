"""The directory that `encode` writes, and which of its shards are finished or could not be read.

    NAME.parquet        the shards
    .manifest.json      the job, sums, shards, errors. If it is there, the directory is complete
    .run.json           what the last run read, with absolute paths. Readers do not need it
    .tokenizer.json     the tokenizer, with which `wordpiece inspect` shows rows as text
    README.md           the dataset card (`card`)
    .commits.jsonl      with --follow: an object for each commit (`pipelines.following.commits`)
    _shards/            owned by the job (`pipelines.files.owned`), and there while the directory is
                        not complete:
                        job.json has what the shards share, the id of the run, and all notes of
                        earlier runs; RUN-ID.jsonl are the notes of finished and bad shards since
                        then; plan-RUN-NUMBER.jsonl are the shards to encode; spec.json is the
                        tokenizer
    _errors/            owned too: the inputs that could not be read, with --on-error quarantine:
                        __shards__/NAME.bad has the bytes, __shards__/NAME.json what is wrong.
                        (`datasets` skips names with two underscores, others skip `.bad`)

    _layout/            owned too: what is encoded, until it is laid out (`pipelines.layout`)

Shards are written, then the notes of several shards are written as one file, and then the shards
get their names. So every shard is in a note or in the manifest, and any other file is not of this
job. A shard is finished if there is a note of it for the current input, and its size is that in the
note.

A run begins by writing job.json, which takes up all notes that are there. From then on only the
notes of this run count. A worker of an earlier run that still lives finds another id in the marker
of `_shards`. If it looked just before that, its temporary files are gone when it renames them. On
stores without renaming, a shard of it may still appear; there is a note of it then, and it counts
only where this run knows nothing of the shard.

`datasets` ignores names that begin with a dot.

With --follow the directory is always complete: the manifest is replaced at each commit, and never
taken away. Then `_shards` has the notes of shards that will be in the next manifest, and while
shards are deleted, gone.json with their names. Readers must not read what the manifest does not
list.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

from pipelines.files import outputs
from pipelines.files.filesystems import join
from pipelines.files.owned import OwnedDirectory, new_id
from wordpiece_core import Tokenizer
from wordpiece_core.errors import OptionError
from wordpiece_core.tokenizer.files import TokenizerSpec

MANIFEST = ".manifest.json"
RUN = ".run.json"
CARD = "README.md"
TOKENIZER = ".tokenizer.json"
NOTES = "_shards"
JOB = "job.json"  # what the shards have in common, and the notes of earlier runs
GONE = "gone.json"  # shards that are deleted once they are not in the manifest
SPEC = "spec.json"  # the tokenizer, for workers: Beam would pack and unpack it many times
LOG = r"[0-9a-f]{16}-[0-9a-f]{16}\.jsonl"  # names of files of notes: the run, and a random part
PLAN = r"plan-[0-9a-f]{16}-[0-9]{6,}\.jsonl"
ERRORS = "_errors"
BESIDE = (".idx", ".offsets")  # the endings of files that belong to the one with the ids
LAYOUT = "_layout"  # the work of `pipelines.layout`
BAD_SHARDS = "__shards__"
FORMAT = 1  # of manifests and notes

_tokenizers: dict[str, Tokenizer] = {}  # by digest
_tokenizers_lock = threading.Lock()


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
        return OwnedDirectory(self.place(NOTES), "notes", names, self.run)

    @property
    def errors(self) -> OwnedDirectory:
        """The directory of quarantine."""
        names = rf"{BAD_SHARDS}/.+\.(?:bad|json)"
        # This directory stays, so it must not depend on the run that made it.
        return OwnedDirectory(self.place(ERRORS), "errors", names, self.job["tokenizer"][:16])

    def place(self, *names: str) -> str:
        """The path of something in it."""
        return join(self.path, *names)

    def write_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Writes the tokenizer of the job, for workers."""
        outputs.write_bytes(self.notes.place(SPEC), _spec_bytes(tokenizer))
        with _tokenizers_lock:
            _tokenizers[tokenizer.digest] = tokenizer

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the job, which each process loads once."""
        digest = self.job["tokenizer"]
        with _tokenizers_lock:
            if digest not in _tokenizers:
                plain = outputs.read_json(self.notes.place(SPEC))
                if plain is None:
                    self.notes.lease.check()
                _tokenizers[digest] = _of_spec(plain)
            return _tokenizers[digest]

    def keep_tokenizer(self) -> None:
        """Writes the tokenizer of the job beside the shards, for those who read them."""
        data = _spec_bytes(self.tokenizer())
        outputs.write_bytes(self.place(TOKENIZER), data, self.notes.path)

    def check_same(self, found: dict[str, Any]) -> None:
        """OptionError unless a manifest, or a `job.json`, is of this job."""
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


def kept_tokenizer(path: str) -> Tokenizer | None:
    """The tokenizer that a dataset keeps; None if it keeps none. InputError if it is damaged."""
    place = join(path, TOKENIZER)
    plain = outputs.read_json(place)
    try:
        return None if plain is None else _of_spec(plain)
    except (TypeError, KeyError, AttributeError) as error:
        raise outputs.damaged(place) from error


def _spec_bytes(tokenizer: Tokenizer) -> bytes:
    return json.dumps(tokenizer.spec.plain() | {"unk_scope": tokenizer.unk_scope}).encode()


def _of_spec(plain: dict[str, Any]) -> Tokenizer:
    unk_scope = plain.pop("unk_scope")
    return Tokenizer.of(TokenizerSpec.of_plain(plain), unk_scope)
