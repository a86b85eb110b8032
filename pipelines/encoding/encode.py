"""The job `encode`: each input shard becomes one Parquet shard of token ids.

    plan ─▶ shards ─ encode each: read a row group, encode it, write it ─▶ notes ─▶ manifest

The plan is in files, because runners limit what can be in the graph of a pipeline. A note is
written for each finished shard, so that a rerun does not encode it again. A note is also written
for a shard that cannot be read, and the other shards are finished
(`pipelines.encoding.directory`). A fault of storage does not make a shard bad: the step is
tried again; if that does not help the work item fails; and if the runner's retries fail too, the
job fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipelines.encoding.directory import lifecycle
from pipelines.encoding.directory.bad_shards import BadShard, ShardsError, quarantine
from pipelines.encoding.directory.card import card_warnings
from pipelines.encoding.directory.contents import Contents, read_contents, read_version
from pipelines.encoding.directory.encoded_directory import BESIDE, EncodedDirectory
from pipelines.encoding.directory.notes import (
    AGAIN,
    CHANGED,
    COLUMN,
    SUMS,
    ShardError,
    ShardResult,
    shard_error,
    source_of,
)
from pipelines.encoding.directory.plans import PlannedShard
from pipelines.encoding.drift import MANY_UNKNOWN
from pipelines.encoding.marks import Marks
from pipelines.encoding.options import EncodeCall, ShardOptions
from pipelines.encoding.shard_encoder import check_fit, text_columns
from pipelines.files import inputs
from pipelines.files.filesystems import join
from pipelines.files.input_batches import warnings_of_text
from pipelines.files.inputs import InputFile
from pipelines.files.lease import one_run
from pipelines.files.storage import in_parallel
from pipelines.running import interrupts
from pipelines.running.checks import checked_call
from pipelines.running.progress import Progress
from wordpiece_core import Tokenizer
from wordpiece_core.declaration import named
from wordpiece_core.errors import InputError, OptionError, OutputError

MANY_DROPPED = 0.01  # with `pack`: the share of dropped tokens above which there is a warning
SAMPLE = 64  # files that are looked into before a run, to estimate how much there is to do


@dataclass(frozen=True)
class Plan:
    """What a call would do. `found`: what the output directory holds."""

    directory: EncodedDirectory
    shards: list[PlannedShard]
    found: Contents

    @property
    def to_run(self) -> list[PlannedShard]:
        """The shards to encode, the largest first."""
        waiting = [shard for shard in self.shards if not shard.finished and not shard.error]
        return sorted(waiting, key=lambda shard: -shard.file.size)

    @property
    def errors(self) -> list[BadShard]:
        """The shards that are known beforehand to be bad."""
        return [BadShard(shard.file, shard.error) for shard in self.shards if shard.error]

    @property
    def finished(self) -> list[ShardResult]:
        """The shards of these inputs that an earlier run finished."""
        return [self.found.results[shard.name] for shard in self.shards if shard.finished]

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do: nothing has changed since the directory was written."""
        found = self.found
        unchanged = found.results.keys() == found.finished.keys() and not found.uncommitted
        return found.is_whole and unchanged and not (found.gone or self.to_run or self.errors)

    @property
    def has_all_files(self) -> bool:
        """Whether a directory that is done has its dataset card and its tokenizer."""
        return self.found.has_card and self.found.has_tokenizer

    def summary(self) -> dict[str, Any]:
        """What `wordpiece encode --dry-run --json` prints."""
        shards = [
            {
                "input": shard.file.path,
                "shard": shard.name,
                "rows": shard.rows,
                "bytes": shard.bytes,
                "finished": shard.finished,
                "error": shard.error.message if shard.error else None,
            }
            for shard in self.shards
        ]
        return {"output": self.directory.path, **self.directory.job, "shards": shards}

    @property
    def others(self) -> int:
        """How many finished shards belong to inputs that are not given now."""
        return len(self.found.finished.keys() - {shard.name for shard in self.shards})


@dataclass(frozen=True)
class Encoded:
    """What the job has done: the result of `pipelines.encode`.

    `output`: the directory. `manifest`: its manifest. `kept`: how many of the shards were finished
    by an earlier run. `others`: how many shards belong to inputs that were not given now. `errors`:
    the shards that are in quarantine. `notices`: what else should be looked at.

    >>> import pipelines
    >>> from wordpiece_core import Tokenizer
    >>> tokenizer = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug", "pug", "pun", "##s"])
    >>> encoded = pipelines.encode("corpus/", tokenizer=tokenizer, output="dataset")
    >>> encoded.rows, encoded.tokens, encoded.unknown_tokens
    (3, 18, 0)
    """

    output: str
    manifest: dict[str, Any]
    kept: int
    others: int
    errors: list[BadShard]
    notices: list[str] = field(default_factory=list)

    @property
    def shards(self) -> list[str]:
        """The names of the shards, relative to the directory. With `format` "megatron" or "bin",
        those of the files that hold ids; each has another one beside it."""
        names = (shard["name"] for shard in self.manifest["shards"])
        return [name for name in names if not name.endswith(BESIDE)]

    @property
    def rows(self) -> int:
        """How many rows the shards have: those of the inputs, or the packed sequences."""
        return int(self.manifest["rows"])

    @property
    def tokens(self) -> int:
        """How many tokens all shards have."""
        return int(self.manifest["tokens"])

    @property
    def unknown_tokens(self) -> int:
        """How many of the tokens are [UNK]."""
        return int(self.manifest["unknown_tokens"])

    @property
    def unknown_share(self) -> float:
        """The share of the tokens that are [UNK]."""
        return self.unknown_tokens / max(self.tokens, 1)

    def summary(self) -> dict[str, Any]:
        """What `wordpiece encode --json` prints."""
        return {
            "output": self.output,
            "shards": len(self.shards),
            "kept": self.kept,
            "others": self.others,
            **{name: self.manifest[name] for name in SUMS},
            "errors": [asdict(bad.error) for bad in self.errors],
        }

    def warnings(self) -> list[str]:
        """What should be looked at, one sentence each."""
        manifest = self.manifest
        said = warnings_of_text(manifest["replaced"])
        if not manifest["bytes"]:
            said.append("the inputs hold no text")
        unknown = self.unknown_share
        if unknown > MANY_UNKNOWN:
            said.append(f"{unknown:.1%} of the tokens are [UNK]; does the tokenizer fit the text?")
        dropped = manifest["dropped_tokens"] / max(self.tokens, 1)
        if dropped > MANY_DROPPED:
            is_laid_out = manifest["options"].get("layout") is not None
            larger = f"a larger {named('shard_size')}" if is_laid_out else "larger input files"
            said.append(
                f"{dropped:.1%} of the tokens were left out, at the ends of the shards; give"
                f" {named('padding')}, {larger}, or a smaller {named('max_length')}"
            )
        if manifest["invalid"]:
            said.append(
                f"{manifest['invalid']:,} invalid UTF-8 sequences in kept columns are kept as they"
                f" are; some readers refuse them ({named('keep_columns')} leaves columns out)"
            )
        said += [f"in quarantine: {bad.message}" for bad in self.errors]
        return said + self.notices


def plan(call: EncodeCall, tokenizer: Tokenizer, sample: int | None = None) -> Plan:
    """Plans the job. It looks at the output directory, the sizes of the files, and the Parquet
    footers or first rows of the files that are to be encoded. With a `sample`, it looks into so
    many files only and estimates the sizes of the others; workers find what is wrong with them.

    Raises InputError and OptionError; OptionError also if the output holds shards of another
    tokenizer or of other options.
    """
    check_fit(call.shards, tokenizer)
    files = inputs.told_apart(inputs.resolve(call.inputs, own=[call.output]))
    job = {"tokenizer": tokenizer.digest, "options": call.job_options}
    return plan_files(EncodedDirectory(call.output, job), files, call.shards, sample)


def plan_files(
    directory: EncodedDirectory,
    files: Sequence[InputFile],
    options: ShardOptions,
    sample: int | None = None,
) -> Plan:
    """The plan for these inputs. `sample`: see `plan`."""
    names = inputs.output_names(files)
    found = read_contents(directory)
    _check_files(directory.path, files, names, found)
    noted = found.finished

    def kept(file: InputFile) -> PlannedShard | None:
        name = names[file.path]
        known = noted.get(name)
        if known and (known.input, known.source) == (file.name, source_of(file)):
            return PlannedShard(file, name, known.input_rows, known.bytes, True)
        return None

    def measured(file: InputFile) -> PlannedShard:
        name = names[file.path]
        try:
            rows, size = inputs.measure(file, text_columns(options), options.kept)
        except InputError as error:
            return PlannedShard(file, name, error=shard_error(file, name, error))
        return PlannedShard(file, name, rows, size)

    known = {file.path: shard for file in files if (shard := kept(file))}
    waiting = [file for file in files if file.path not in known]
    step = 1 if sample is None else -(-len(waiting) // sample)
    looked_into = in_parallel(measured, waiting[:: max(step, 1)])
    known |= {shard.file.path: shard for shard in looked_into}
    of_files = sum(shard.file.size for shard in looked_into if not shard.error)
    growth = sum(shard.bytes for shard in looked_into) / max(of_files, 1)
    shards = [
        known.get(file.path)
        or PlannedShard(file, names[file.path], bytes=round(file.size * growth))
        for file in files
    ]
    return Plan(directory, shards, found)


def encode(
    call: EncodeCall,
    tokenizer: Tokenizer,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Encoded:
    """Encodes every input shard into a shard of the same name in the output.

    Raises what `plan` raises; OutputError, for example if another run is writing to the output; and
    ShardsError if some shards cannot be read, after all others are finished. With `on_error`
    "quarantine" the bad shards go to `_errors/` instead.
    """
    call = checked_call(call, beam_args)
    output, found = call.output, plan(call, tokenizer, SAMPLE)
    directory = found.directory
    if not found.to_run:
        check_errors(found, found.errors, call.on_error)
    with one_run(directory.path):
        if read_version(directory) != found.found.version:
            raise OutputError(f"{output}: another run has just written there; run this one again")
        if found.is_done:
            if not found.has_all_files:
                lifecycle.restore(directory, found.found, tokenizer)
            elif found.found.has_notes:
                directory.notes.delete()
            manifest, notices = lifecycle.manifest(directory, found.found), card_warnings(directory)
            return Encoded(call.output, manifest, len(found.finished), found.others, [], notices)
        made, errors = run_shards(
            found,
            call.shards,
            tokenizer,
            on_error=call.on_error,
            beam_args=beam_args,
            progress=progress,
        )
        if errors:
            quarantine(directory, errors)
            made = read_contents(directory)
        manifest, notices = lifecycle.finish(directory, made), card_warnings(directory)
    return Encoded(call.output, manifest, len(found.finished), found.others, errors, notices)


def run_shards(
    found: Plan,
    options: ShardOptions,
    tokenizer: Tokenizer,
    *,
    on_error: str,
    marks: Marks | None = None,
    beam_args: Sequence[str],
    progress: Progress,
) -> tuple[Contents, list[BadShard]]:
    """Encodes the shards of a plan. Returns what their directory holds then, and
    the bad shards. ShardsError if there are bad ones, unless they can go into quarantine. `marks`:
    how rows are marked, if they will be laid out."""
    directory = found.directory
    planned = {shard.name for shard in found.shards if not shard.finished}
    roots = {shard.name: shard.file.root for shard in found.shards}
    lifecycle.begin(directory, tokenizer, planned, roots)
    with progress.stage("encode", "bytes", sum(shard.bytes for shard in found.to_run)):
        if found.to_run:
            _run(found, options, marks, beam_args)
        made = read_contents(directory)
        errors = _all_errors(found, made)
        check_errors(found, errors, on_error)
    return made, errors


def check_errors(found: Plan, errors: list[BadShard], on_error: str) -> None:
    """Raises ShardsError for bad shards, unless they can go into quarantine."""
    if errors and (on_error != "quarantine" or _is_no_fault_of_files(found, errors)):
        raise ShardsError(errors, len(found.shards))


def _run(found: Plan, options: ShardOptions, marks: Marks | None, beam_args: Sequence[str]) -> None:
    with interrupts.held():  # only here, so that a run with nothing to do does not import Beam
        from pipelines.encoding.encode_shard import EncodeShard
        from pipelines.encoding.encode_shards import run, threads

    step = EncodeShard(found.directory, options, threads(beam_args), marks)
    run(step, found.to_run, beam_args)


def _all_errors(found: Plan, made: Contents) -> list[BadShard]:
    """The bad shards of these inputs: those found beforehand and those that the job has noted."""
    files = {shard.name: shard.file for shard in found.shards}
    noted = made.errors.values()
    known = {bad.error.name for bad in found.errors}
    met = [e for e in noted if e.name in files and e.name not in known and e.cause != AGAIN]
    errors = [*found.errors, *(BadShard(files[error.name], error) for error in met)]
    return sorted(errors, key=lambda bad: bad.error.name)


def _is_no_fault_of_files(found: Plan, errors: Sequence[BadShard]) -> bool:
    """Whether the options fit none of the files, or files have changed. Then no file is to blame,
    and none goes into quarantine."""
    changed = any(bad.error.cause == CHANGED for bad in errors)
    return changed or fits_no_file(errors, len(found.shards))


def fits_no_file(errors: Sequence[BadShard], files: int) -> bool:
    """Whether the options fit none of so many files."""
    return [bad.error.cause for bad in errors] == [COLUMN] * files


def _check_files(
    output: str, files: Sequence[InputFile], names: dict[str, str], found: Contents
) -> None:
    """Raises OptionError if a shard would replace a shard of another file, or a file that is not a
    shard, or if an input would get a second shard. Raises InputError if a shard was changed whose
    input is not given now."""
    noted: dict[str, ShardResult | ShardError] = {**found.errors, **found.results}
    shards = {found.source(name): name for name in noted}
    for file in files:
        name = names[file.path]
        holds = _in_the_way(file, name, noted.get(name), found)
        if shards.get(file.path, name) != name:
            holds = f"a shard {shards[file.path]} of it"
        if holds:
            raise OptionError(f"{file.path}: {output} holds {holds}; give another directory")
    there = found.results.keys() & found.sizes.keys()
    for name in sorted(there - found.finished.keys() - {*names.values()}):
        path, source = join(output, name), found.source(name)
        raise InputError(f"{path}: has been changed; delete it, or give {source} again")


def _in_the_way(
    file: InputFile, name: str, note: ShardResult | ShardError | None, found: Contents
) -> str | None:
    """What is in the place of the shard of `file` and was not made from this file, if anything. An
    input that was changed is recognized by the directory it is in; one that was moved, by its size
    and time."""
    if note is None:
        return f"{name}, which is no shard of this job" if name in found.sizes else None
    is_moved, is_changed = note.source == source_of(file), found.roots.get(name) == file.root
    if note.input == file.name and (is_moved or is_changed):
        return None
    return f"a shard {name} of {found.source(name)}"
