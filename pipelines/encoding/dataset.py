"""The output directory of `encode`.

    NAME.parquet        the shards; each has its record in its footer
    .manifest.json      the job, totals, shards and skipped inputs; replaced last by every commit
    .run.json           absolute paths of the inputs, which readers do not need
    .tokenizer.json     the tokenizer, with which `wordpiece inspect` shows rows as text
    README.md           the dataset card, with `--card`
    train-dataset-is-unfinished.parquet     exists until the commit; readers fail on it
    .shards/            the work directory, while a job runs:
                        spec.json   the tokenizer for workers
                        source-spec.json   the tokenizer of ids that are decoded
                        plan-NUMBER.jsonl   the elements of a pipeline
                        results-NUMBER-FILE.jsonl   the records of the shards of a pipeline
                        token-counts.npy   the number of occurrences of each id
                        draw-*.npz   tokens and rows of the sources of a mix
                        encoded/, buckets-*/, made-*/   intermediate files of resharding

A shard is finished if its record fits its input and its size.
`docs/recovery.md` describes the states of a dataset.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.encoding.card import CARD, dataset_card, is_replaceable
from pipelines.encoding.shards import (
    LATER,
    SHARD_SUMS,
    SUMS,
    UNKNOWN,
    ShardError,
    ShardRecord,
    ShardResult,
    checked,
    from_dict,
    read_footer,
    to_dict,
)
from pipelines.io import outputs
from pipelines.io.lock import LOCK
from pipelines.io.owned import OF_REPOSITORIES, OwnedDirectory
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import OptionError, OutputError, short
from wordpiece_core.storage import Entry
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.uri import inside, is_plain_name, join

MANIFEST = ".manifest.json"
RUN_JSON = ".run.json"
TOKENIZER = ".tokenizer.json"
WORK = ".shards"
UNFINISHED = "train-dataset-is-unfinished.parquet"
"""The file on which readers of an unfinished dataset fail. `datasets` takes it for a part of the
split `train`, which has all shards unless their names say otherwise."""
UNFINISHED_TEXT = b"This dataset is unfinished. Run the same `wordpiece encode` again.\n"
WORK_TOKENIZER = "spec.json"
SOURCE_TOKENIZER = "source-spec.json"
FROM_TOKENIZER = "from_tokenizer"
"""The option of a job that is the digest of the tokenizer of ids that are decoded."""
ENCODED = "encoded"
WORK_NAMES = "|".join(
    (
        WORK_TOKENIZER,
        SOURCE_TOKENIZER,
        r"(?:plan|results)-[0-9]{6,}(?:-[0-9]{2})?\.jsonl",
        rf"{ENCODED}/(?:.+\.parquet|{WORK}/.+)",
        r"buckets-[0-9a-f]{16}/[0-9]{5,}\.runs",
        r"made-[0-9a-f]{16}/[0-9]{5,}\.json",
        r"token-counts\.npy|draw-(?:sums|rows)\.npz",
    )
)
FORMAT = 1  # of manifests and footers


# --- The directory --------------------------------------------------------------------------------

_tokenizers: dict[str, Tokenizer] = {}  # by digest; threads of a process share them
_tokenizers_lock = threading.Lock()


@dataclass(frozen=True)
class Dataset:
    """The output directory of a job.

    Attributes:
        job: The tokenizer and the options that all shards share.
        card: True to write a dataset card.
        marks_unfinished: True to make readers fail on the dataset until it is committed.
        name: The name of the directory in messages, if it is not its path.
    """

    path: str
    job: dict[str, Any]
    card: bool = False
    marks_unfinished: bool = False
    name: str = ""

    @property
    def work(self) -> OwnedDirectory:
        """The work directory."""
        return OwnedDirectory(self.place(WORK), "shards", WORK_NAMES)

    def place(self, *names: str) -> str:
        """Return the path of a file in the directory."""
        return join(self.path, *names)

    def begin(self, tokenizer: Tokenizer, source: Tokenizer | None = None) -> None:
        """Prepare the directory for a run. `source`: tokenizer of ids that will be decoded."""
        self.work.claim()
        outputs.write_json(self.work.place(WORK_TOKENIZER), plain_tokenizer(tokenizer))
        if source is not None:
            outputs.write_json(self.work.place(SOURCE_TOKENIZER), plain_tokenizer(source))
        if self.marks_unfinished:
            outputs.write_bytes(self.place(UNFINISHED), UNFINISHED_TEXT, self.work.path)
        with _tokenizers_lock:
            _tokenizers[tokenizer.digest] = tokenizer

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer of the job, which each process loads once."""
        return self._loaded(self.job["tokenizer"], WORK_TOKENIZER)

    def source_tokenizer(self) -> Tokenizer | None:
        """Return the tokenizer of ids that are decoded, if there is one."""
        digest = self.job["options"].get(FROM_TOKENIZER)
        return None if digest is None else self._loaded(digest, SOURCE_TOKENIZER)

    def _loaded(self, digest: str, name: str) -> Tokenizer:
        with _tokenizers_lock:
            if digest not in _tokenizers:
                spec = outputs.read_json(self.work.place(name))
                _tokenizers[digest] = _tokenizer_from(spec)
            return _tokenizers[digest]

    def end(self) -> None:
        """Let readers read the dataset, and delete the work directory."""
        storage.delete_file(self.place(UNFINISHED))  # of this run, or of a killed run
        self.work.delete()

    def check_same(self, found: Mapping[str, Any]) -> None:
        """Check the job of a manifest or a footer.

        Raises:
            OptionError: For a job with another tokenizer or other options.
            OutputError: For the manifest of another kind of directory.
        """
        tokenizer, options = found.get("tokenizer"), found.get("options")
        path = self.name or self.path
        if tokenizer is None:
            raise OutputError(
                f"{path}: contains files other than shards; choose an empty directory"
            )
        if tokenizer != self.job["tokenizer"]:
            raise OptionError(
                f"{path}: contains shards of another tokenizer"
                f" ({str(tokenizer)[:12]}, not {self.job['tokenizer'][:12]});"
                " choose another output directory"
            )
        if found.get("format") != FORMAT:
            raise OptionError(
                f"{path}: contains shards of another version of wordpiece-beam; choose another"
                " output directory"
            )
        own, others = map(_flat, (self.job["options"], options))
        for name in [*own, *others]:
            given, before = own.get(name), others.get(name)
            if given != before:
                if name == "mix" and given and before:  # name the source that differs
                    pairs = zip(before, given, strict=False)
                    before, given = next((p for p in pairs if p[0] != p[1]), (before, given))
                was, now = ("default" if v is None else short(v) for v in (before, given))
                raise OptionError(
                    f"{path}: contains shards with another {name} ({was}, now {now});"
                    " choose another directory"
                )

    @property
    def footer_job(self) -> dict[str, Any]:
        """The job as footers have it."""
        return {"format": FORMAT, **self.job}


def _flat(options: Any) -> dict[str, Any]:
    """Return options with the options of the layout among them."""
    found = {**options} if isinstance(options, dict) else {}
    layout = found.pop("layout", None)
    return found | (layout if isinstance(layout, dict) else {})


def kept_tokenizer(path: str) -> Tokenizer | None:
    """Read the tokenizer of a dataset; None if it has none. Raises InputError if it is damaged."""
    place = join(path, TOKENIZER)
    plain = outputs.read_json(place)
    try:
        return None if plain is None else _tokenizer_from(plain)
    except (TypeError, KeyError, AttributeError) as error:
        raise outputs.damaged(place) from error


def plain_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the content of `.tokenizer.json`."""
    return tokenizer.spec.to_dict() | {"unk_scope": tokenizer.unk_scope}


def _tokenizer_from(plain: dict[str, Any]) -> Tokenizer:
    unk_scope = plain.pop("unk_scope")
    return Tokenizer.from_spec(TokenizerSpec.from_dict(plain), unk_scope)


# --- Contents -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contents:
    """Contents of a dataset.

    Attributes:
        sizes: Sizes in bytes of all files, without the work directory.
        results: Shards in the manifest, or with a record in their footer, by name.
        listed: Shards in the manifest.
        finished: Shards that exist. Shards in the manifest also have their recorded size.
        errors: Skipped inputs in the manifest, by the name of their shard.
        deleted: Names of shards that the commit deletes.
        roots: Known directories of inputs, by the name of their shard.
        has_manifest: True if there is a manifest.
        sources: Results of the inputs of a resharded dataset.
        mix: Tokens and repeats of the sources of a mix.
    """

    sizes: dict[str, int]
    results: dict[str, ShardResult] = field(default_factory=dict)
    listed: dict[str, ShardResult] = field(default_factory=dict)
    finished: dict[str, ShardResult] = field(default_factory=dict)
    errors: dict[str, ShardError] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    roots: Mapping[str, str] = field(default_factory=dict)
    has_manifest: bool = False
    sources: list[ShardResult] | None = None
    mix: list[dict[str, Any]] | None = None

    @property
    def is_committed(self) -> bool:
        """True if the manifest lists exactly the finished shards."""
        return self.has_manifest and self.finished == self.listed

    @property
    def changed(self) -> set[str]:
        """Shards of the manifest that exist with another size."""
        return (self.listed.keys() & self.sizes.keys()) - self.finished.keys()

    def source(self, name: str) -> str:
        """Return the path of the input of a shard, or its relative name."""
        record = self.results.get(name) or self.errors[name]
        return join(self.roots[name], record.input) if name in self.roots else record.input

    def after(
        self, results: Mapping[str, ShardResult], errors: Mapping[str, ShardError]
    ) -> Contents:
        """Return the contents to commit once the dataset has these shards and skipped inputs."""
        deleted = (self.results.keys() & self.sizes.keys()) - results.keys()
        return replace(self, results={**results}, errors={**errors}, deleted=frozenset(deleted))


def read_contents(dataset: Dataset, made: Mapping[str, ShardResult] | None = None) -> Contents:
    """Read a dataset: its manifest, and the footers of the shards that the manifest does not list.

    Args:
        made: Records of shards that have no footer.

    Raises:
        OutputError: If the directory contains other files.
        OptionError: If it contains shards of another job.
    """
    entries = storage.entries(dataset.path)
    dataset.work.check(_below(entries, WORK))
    files = {entry.name: entry.size for entry in entries if entry.kind == "file"}
    ignored = (OF_REPOSITORIES, LOCK, UNFINISHED)
    sizes = {n: s for n, s in files.items() if not n.startswith(f"{WORK}/") and n not in ignored}
    contents = Contents(sizes, has_manifest=MANIFEST in files)
    if contents.has_manifest:
        contents = _with_manifest(contents, dataset)
    if RUN_JSON in files:
        contents = replace(contents, roots=_roots(_read_object(dataset.place(RUN_JSON))))
    contents = _with_footers(contents, dataset, made or {})
    _check_names(dataset, contents, entries)
    return contents


def _with_manifest(contents: Contents, dataset: Dataset) -> Contents:
    """Add the records of the manifest."""
    path = dataset.place(MANIFEST)
    manifest = _read_object(path)
    dataset.check_same(manifest)
    listed = {r.name: r for r in checked(manifest.get("shards", []), path, ShardResult)}
    errors = checked(manifest.get("errors", []), path, ShardError)
    sources = manifest.get("sources")
    sizes = contents.sizes
    return replace(
        contents,
        results=listed,
        listed=listed,
        finished={n: r for n, r in listed.items() if sizes.get(n) == r.output_bytes},
        errors={error.name: error for error in errors},
        sources=None if sources is None else checked(sources, path, ShardResult),
        mix=manifest.get("mix"),
    )


def _with_footers(
    contents: Contents, dataset: Dataset, made: Mapping[str, ShardResult]
) -> Contents:
    """Add the records of shards that the manifest does not list, or lists with another size."""
    known = contents.finished.keys() | {MANIFEST, RUN_JSON, TOKENIZER, CARD}
    unknown = [name for name in contents.sizes if name not in known]
    parquet = [name for name in unknown if name.endswith(".parquet")]
    footers = storage.in_parallel(lambda name: read_footer(dataset.place(name), name), parquet)
    found = {name: record for name, record in made.items() if name in contents.sizes}
    for name, footer in zip(parquet, footers, strict=True):
        if footer is not None:
            job, found[name] = footer
            dataset.check_same(job)
    foreign = [name for name in unknown if name not in found.keys() | contents.listed.keys()]
    if foreign and not contents.has_manifest:
        raise OutputError(
            f"{dataset.name or dataset.path}: contains {foreign[0]}, which this job did not write;"
            " choose an empty directory"
        )
    return replace(
        contents,
        results=contents.results | found,
        finished=contents.finished | found,
    )


def _check_names(dataset: Dataset, contents: Contents, entries: Sequence[Entry]) -> None:
    """Raise InputError if a name in a record leads out of the directory, or through a link."""
    has_links = any(entry.kind == "other" for entry in entries)
    records: list[ShardRecord] = [*contents.results.values(), *contents.errors.values()]
    for record in records:
        for name in (record.name, record.input):
            if has_links or not is_plain_name(name):
                inside(dataset.path, name)


def _below(entries: Iterable[Entry], directory: str) -> list[Entry]:
    """Return the entries in a directory, with their names relative to it."""
    prefix = f"{directory}/"
    inner = (entry for entry in entries if entry.name.startswith(prefix))
    return [replace(entry, name=entry.name.removeprefix(prefix)) for entry in inner]


def _read_object(path: str) -> dict[str, Any]:
    """Read a JSON object that contains records. Raises InputError for another value."""
    value = outputs.read_json(path, from_dict)
    if not isinstance(value, dict):
        raise outputs.damaged(path)
    return value


def _roots(record: dict[str, Any]) -> dict[str, str]:
    """Return the directories of the inputs by the names of their shards."""
    inputs = record.get("inputs")
    known = inputs.items() if isinstance(inputs, dict) else ()
    lists = {root: names for root, names in known if isinstance(names, list)}
    return {str(name): root for root, names in lists.items() for name in names}


# --- The commit -----------------------------------------------------------------------------------


def commit(dataset: Dataset, contents: Contents) -> dict[str, Any]:
    """Delete the shards that are to be deleted, and write the manifest and the files that belong to
    it. Returns the manifest."""
    manifest, scratch = manifest_of(dataset, contents), dataset.work.path
    storage.delete_files(map(dataset.place, sorted(contents.deleted)))
    roots: dict[str, list[str]] = {}
    for name in sorted(contents.roots.keys() & (contents.results.keys() | contents.errors.keys())):
        roots.setdefault(contents.roots[name], []).append(name)
    outputs.write_json(dataset.place(RUN_JSON), {"inputs": roots}, scratch)
    if TOKENIZER not in contents.sizes:
        data = json.dumps(plain_tokenizer(dataset.tokenizer())).encode()
        outputs.write_bytes(dataset.place(TOKENIZER), data, scratch)
    card = dataset_card(manifest)
    if is_replaceable(dataset.place(CARD), card, is_wanted=dataset.card):
        outputs.write_bytes(dataset.place(CARD), card, scratch)
    outputs.write_json(dataset.place(MANIFEST), manifest, scratch)
    dataset.end()
    return manifest


def complete(dataset: Dataset, contents: Contents, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the manifest of a dataset with all its shards. Writes its tokenizer, and the card that
    the job asks for, if they are missing."""
    wanted = {TOKENIZER, CARD} if dataset.card else {TOKENIZER}
    if not wanted <= contents.sizes.keys():
        dataset.begin(tokenizer)
        return commit(dataset, contents)
    dataset.end()
    return manifest_of(dataset, contents)


def manifest_of(dataset: Dataset, contents: Contents) -> dict[str, Any]:
    """Return the manifest of a dataset with these contents."""
    shards = [to_dict(contents.results[name]) for name in sorted(contents.results)]
    errors = [to_dict(contents.errors[name]) for name in sorted(contents.errors)]
    totals: dict[str, Any] = {name: _sum(shards, name) for name in SUMS}
    more: dict[str, Any] = {}
    records = shards
    if contents.sources is not None:
        records = more["sources"] = [to_dict(source, ShardResult) for source in contents.sources]
        of_shards = SHARD_SUMS
        if contents.mix is not None:  # rows of the inputs are left out, and repeated
            of_shards = SHARD_SUMS | {"tokens", "unknown_tokens"}
            more["mix"] = contents.mix
        for name in totals.keys() - of_shards:
            both = [*records, *shards] if name == "padding_tokens" else records
            totals[name] = _sum(both, name)
    lengths = [record["longest_text"] for record in records]
    totals["longest_text"] = None if UNKNOWN in lengths else max(lengths, default=0)
    totals["tokens_per_byte"] = round(totals["word_tokens"] / max(totals["bytes"], 1), 6)
    totals["padding_share"] = _padding_share(totals, dataset.job["options"])
    state = {"format": FORMAT, **dataset.job, **totals, **more}
    return state | {"shards": shards, "errors": errors}


def _sum(records: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """Return the sum of a count; None if a record of an earlier version lacks it."""
    counts = [record[name] for record in records]
    return None if name in LATER and UNKNOWN in counts else sum(counts)


def _padding_share(totals: Mapping[str, Any], options: Mapping[str, Any]) -> float | None:
    """Return the share of ids that are padding."""
    padding: int | None = totals["padding_tokens"]
    if padding is None:
        return None
    ids: int = totals["rows"] * options["max_length"] if options.get("pack") else 0
    share: float = round(padding / max(ids or totals["tokens"] + padding, 1), 6)
    return share
