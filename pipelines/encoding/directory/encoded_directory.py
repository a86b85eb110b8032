"""The directory that `encode` writes, and which of its shards are finished or have errors.

    NAME.parquet        the shards
    .manifest.json      the job, totals, shards, skipped inputs: written last, by every commit
    .run.json           where the inputs are, with absolute paths. Readers do not need it
    .tokenizer.json     the tokenizer, with which `wordpiece inspect` shows rows as text
    README.md           with `--card`, the dataset card (`card`)
    train-dataset-is-unfinished.parquet     until the commit: no Parquet, so that readers stop here
    .shards/            the work directory (`pipelines.io.owned`), while a run is at work:
                        job.json        the job, and its tokenizer for workers
                        RUN-ID.jsonl    journals: the shards finished since the commit, and errors
                        plan-RUN-NUMBER.jsonl   the shards to encode
                        and what `pipelines.encoding.resharding` keeps there

Readers of Parquet ignore names that begin with a dot.

Every shard is in the manifest or in a journal, and any other file is not of this job. A shard is
finished if its status is that of its input as it is now, and its size is the recorded one.
`docs/recovery.md` says how runs begin and commit.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from pipelines.io import outputs
from pipelines.io.owned import OwnedDirectory, new_id
from pipelines.io.publishing import STAGED
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import OptionError, OutputError, short
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.uri import join

MANIFEST = ".manifest.json"
RUN_JSON = ".run.json"
CARD = "README.md"
TOKENIZER = ".tokenizer.json"
WORK = ".shards"
UNFINISHED = "train-dataset-is-unfinished.parquet"
"""The file on which readers of an unfinished dataset stop. `datasets` takes it for a part of the
split `train`, which has all shards unless their names say otherwise."""
UNFINISHED_TEXT = b"This dataset is unfinished. Run the same `wordpiece encode` again.\n"
JOB = "job.json"
JOURNAL = r"[0-9a-f]{16}-[0-9a-f]{16}\.jsonl"  # the run, and a random part
PLAN_NAME = r"plan-[0-9a-f]{16}-[0-9]{6,}\.jsonl"
ENCODED = "encoded"
OF_RESHARDING = "|".join(
    (
        STAGED,
        rf"{ENCODED}/(?:.+\.parquet|\.run\.json|{WORK}/.+)",
        r"buckets-[0-9a-f]{16}/[0-9]{5,}\.runs",
        r"made-[0-9a-f]{16}/[0-9]{5,}(?:-[0-9]{5,}(?:\.[a-z]+)+|\.json)",
    )
)
SECOND_FILES = (".idx", ".index", ".metadata")  # endings of files that accompany a file of ids
FORMAT = 1  # of manifests and journals

_tokenizers: dict[str, Tokenizer] = {}  # by digest
_tokenizers_lock = threading.Lock()


@dataclass(frozen=True)
class EncodedDirectory:
    """The output directory of a job. `job`: what all its shards share, `tokenizer` and `options`.
    `run`: the id of the run. `card`: write a dataset card. `marks_unfinished`: make readers stop
    at the dataset until it is committed."""

    path: str
    job: dict[str, Any]
    run: str = field(default_factory=new_id)
    card: bool = False
    marks_unfinished: bool = False

    @property
    def work(self) -> OwnedDirectory:
        """The work directory."""
        names = rf"{JOB}|{JOURNAL}|{PLAN_NAME}|{OF_RESHARDING}"
        return OwnedDirectory(self.place(WORK), "shards", names)

    def place(self, *names: str) -> str:
        """The path of something in it."""
        return join(self.path, *names)

    def plan_path(self, number: int = 0) -> str:
        """The path of the plan of that number of this run."""
        return self.work.place(f"plan-{self.run}-{number:06}.jsonl")

    def begin(self, tokenizer: Tokenizer) -> None:
        """Acquire the directory for this run, and write the job and its tokenizer."""
        self.work.claim()
        job = self.job | {"format": FORMAT, "spec": plain_tokenizer(tokenizer)}
        outputs.write_json(self.work.place(JOB), job)
        if self.marks_unfinished:
            outputs.write_bytes(self.place(UNFINISHED), UNFINISHED_TEXT, self.work.path)
        with _tokenizers_lock:
            _tokenizers[tokenizer.digest] = tokenizer

    def finish(self) -> None:
        """Lets readers read the dataset, which has its manifest."""
        if self.marks_unfinished:
            storage.delete_file(self.place(UNFINISHED))

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the job, which each process loads once."""
        digest = self.job["tokenizer"]
        with _tokenizers_lock:
            if digest not in _tokenizers:
                job = outputs.read_json(self.work.place(JOB))
                _tokenizers[digest] = _of_spec(job["spec"])
            return _tokenizers[digest]

    def check_same(self, found: dict[str, Any]) -> None:
        """OptionError unless a state is of this job; OutputError if it is not of a dataset."""
        tokenizer, options = found.get("tokenizer"), found.get("options")
        if tokenizer is None:
            raise OutputError(
                f"{self.path}: contains files other than shards; choose an empty directory"
            )
        if tokenizer != self.job["tokenizer"]:
            raise OptionError(
                f"{self.path}: contains shards of another tokenizer"
                f" ({str(tokenizer)[:12]}, not {self.job['tokenizer'][:12]});"
                " choose another output directory"
            )
        if found.get("format") != FORMAT:
            raise OptionError(
                f"{self.path}: contains shards of another version of wordpiece-beam; choose"
                " another output directory"
            )
        own, others = self.job["options"], options if isinstance(options, dict) else {}
        for name in [*own, *others]:
            given, before = own.get(name), others.get(name)
            if given != before:
                was, now = ("default" if v is None else short(v) for v in (before, given))
                raise OptionError(
                    f"{self.path}: contains shards with another {name} ({was}, now {now});"
                    " choose another directory"
                )


def kept_tokenizer(path: str) -> Tokenizer | None:
    """The tokenizer that a dataset keeps; None if it keeps none. InputError if it is damaged."""
    place = join(path, TOKENIZER)
    plain = outputs.read_json(place)
    try:
        return None if plain is None else _of_spec(plain)
    except (TypeError, KeyError, AttributeError) as error:
        raise outputs.damaged(place) from error


def plain_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """What `.tokenizer.json` holds."""
    return tokenizer.spec.plain() | {"unk_scope": tokenizer.unk_scope}


def _of_spec(plain: dict[str, Any]) -> Tokenizer:
    unk_scope = plain.pop("unk_scope")
    return Tokenizer.of(TokenizerSpec.of_plain(plain), unk_scope)
