"""The job `encode`: each input becomes a Parquet shard of token ids.

    plan ─▶ shards ─ encode each: read a row group, encode it, write it ─▶ records ─▶ commit

The plan decides which shards are missing, and the schema of all shards. A worker writes each shard
under a temporary name and renames it. A finished shard has its record in its footer, so a rerun
reads the footers of shards that the manifest does not list. The commit replaces the manifest, last.

A fault of storage does not make an input bad: the call is repeated, then the work item fails, and
if the runner's retries fail too, the job fails.

Resharding (`pipelines.encoding.resharding`) encodes its inputs in the same way, and then makes
shards of their rows. Following (`pipelines.encoding.follow`) is a loop around the job.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from pipelines.encoding.card import CARD, card_warnings
from pipelines.encoding.columns import check_fit
from pipelines.encoding.dataset import (
    FROM_TOKENIZER,
    Dataset,
    commit,
    complete,
    read_contents,
)
from pipelines.encoding.mix import Mix
from pipelines.encoding.options import EncodeOptions, ShardOptions
from pipelines.encoding.plan import plan_shards
from pipelines.encoding.result import Encoded
from pipelines.encoding.shard_names import NPY, splits_of_shards
from pipelines.encoding.shards import BadInput, ShardResult
from pipelines.io import inputs
from pipelines.io.inputs import InputFile
from pipelines.io.lock import exclusive_lock
from pipelines.progress import Progress
from pipelines.token_counts import check_place, write_counts
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.option_types import path, paths

MAX_UNKNOWN = 0.9  # share of unknown tokens of a dataset above which there is an error
MIN_TOKENS = 10  # tokens of a dataset for which this is an error


class FollowLog(Protocol):
    """Receiver of commits and warnings."""

    def commit(self, row: Mapping[str, Any]) -> None:
        """Report a commit."""

    def warn(self, message: str) -> None:
        """Report a warning."""


@dataclass(frozen=True)
class EncodeJob:
    """The options of a run, its tokenizer and its progress. `source`: tokenizer of ids that are
    decoded; `mix`: sources of rows."""

    options: EncodeOptions
    tokenizer: Tokenizer
    progress: Progress
    source: Tokenizer | None = None
    mix: Mix | None = None

    @property
    def output(self) -> str:
        """The output directory."""
        return path(self.options.output)

    @property
    def shard_options(self) -> ShardOptions:
        """The options of shards, which workers get. Files of ids have a type of their own."""
        options = self.options.select(ShardOptions)
        is_wider = self.options.format == NPY and options.id_type == "uint32"
        return replace(options, id_type="int32") if is_wider else options

    def dataset(self) -> Dataset:
        """Return the output as a dataset. An option that names a token with its own role is left
        out."""
        options, tokenizer = self.options.shared_options | self.from_tokenizer, self.tokenizer
        if self.mix is not None:
            options["layout"]["mix"] = self.mix.to_list()
        for role in ("bos_token", "eos_token"):
            if role in options and tokenizer.token_of(role) == options[role]:
                del options[role]
        return Dataset(
            self.output,
            {"tokenizer": tokenizer.digest, "options": options},
            card=self.options.card,
            marks_unfinished=not self.options.follow,  # who follows reads shards as they appear
        )

    @property
    def from_tokenizer(self) -> dict[str, Any]:
        """The digest of the tokenizer of ids that are decoded, as an option of the job."""
        return {} if self.source is None else {FROM_TOKENIZER: self.source.digest}

    def files(self, *, may_be_empty: bool = False) -> list[InputFile]:
        """List the inputs. Their shards have distinct names."""
        own, quoting = [self.output], not self.options.no_quoting
        if self.options.token_counts is not None:
            own.append(path(self.options.token_counts))
        given = self.mix.inputs if self.mix and self.mix.inputs else paths(self.options.inputs)
        found = inputs.resolve(given, own, may_be_empty=may_be_empty, quoting=quoting)
        if not self.options.follow:  # the splits of later files are not known
            found = inputs.with_splits_in_names(found)
        return inputs.disambiguated(found)

    def sources_of(self, files: Sequence[InputFile]) -> dict[str, int] | None:
        """Return the number of the source of each input, by path; None unless inputs are sources.
        Raises OptionError for an input of two sources."""
        if self.mix is None or self.mix.groups:
            return None
        found: dict[str, int] = {}
        with warnings.catch_warnings(action="ignore"):  # of files that are skipped, as before
            for number, source in enumerate(self.mix.sources):
                for file in inputs.resolve(source.inputs, [self.output]):
                    if found.setdefault(file.path, number) != number:
                        raise OptionError(
                            f"{file.path}: is in two sources of {opt.mix}; leave it in one"
                        )
        return {file.path: found[file.path] for file in files if file.path in found}


def encode_job(options: EncodeOptions, progress: Progress, log: FollowLog | None = None) -> Encoded:
    """Encode every input into a shard of the same name, or reshard the rows of all inputs.

    Args:
        log: Receiver of the commits of `follow`.

    Raises:
        InputError: For bad data.
        OptionError: For wrong options, for example if the output has shards of other options.
        OutputError: If the output cannot be used.
        ShardsError: If inputs cannot be encoded, after all others are finished. With `on_error`
            "skip" the manifest lists these inputs.
    """
    tokenizer = options.load_tokenizer()
    options = options.checked()
    if options.follow:  # the log has a line for each commit instead
        progress = Progress(quiet=True)
    job = EncodeJob(options, tokenizer, progress, options.load_source(), options.load_mix())
    check_fit(job.shard_options, tokenizer)
    if options.token_counts is not None:
        check_place(path(options.token_counts))
    with exclusive_lock(job.output):
        if options.follow:
            from pipelines.encoding.follow import follow_inputs

            assert log is not None
            return follow_inputs(job, log)
        if options.is_resharded:
            from pipelines.encoding.resharding.reshard import reshard_rows

            encoded = reshard_rows(job)
        else:
            encoded = encode_files(job, job.files())
        return encoded if options.token_counts is None else _with_token_counts(job, encoded)


def _with_token_counts(job: EncodeJob, encoded: Encoded) -> Encoded:
    """Count the ids of the dataset, and write the file of counts."""
    from pipelines.encoding.count_ids import count_ids

    tokenizer, beam_args = job.tokenizer, job.options.beam_args
    counts = count_ids(job.dataset(), encoded.manifest, tokenizer, beam_args, job.progress)
    place = path(job.options.token_counts)
    written = write_counts(place, tokenizer.vocab, pa.array(counts), tokenizer.digest)
    return replace(encoded, token_counts=written)


def encode_files(job: EncodeJob, files: Sequence[InputFile]) -> Encoded:
    """Encode inputs into shards, and commit."""
    dataset, options = job.dataset(), job.shard_options
    contents = read_contents(dataset)
    plan = plan_shards(dataset.path, contents, files, options, job.tokenizer)
    bad: list[BadInput] = []
    if plan.is_done:
        manifest = complete(dataset, contents, job.tokenizer)
    else:
        # Imported here, because a run with nothing to encode does not need Beam.
        from pipelines.encoding.pipeline import encode_shards

        contents, bad = encode_shards(job, dataset, plan, options)
        check_unknown(job, contents.results.values())
        manifest = commit(dataset, contents)
    others = len(contents.results.keys() - plan.files.keys())
    warnings = _split_warnings(manifest) + card_warnings(dataset.place(CARD), dataset.card)
    return Encoded(job.output, manifest, plan.kept, others, bad, warnings)


def check_unknown(job: EncodeJob, results: Iterable[ShardResult]) -> None:
    """Raise InputError if nearly all tokens of the results are unknown."""
    results = [*results]
    tokens = sum(result.word_tokens for result in results)
    unknown = sum(result.unknown_tokens for result in results)
    is_most = tokens >= MIN_TOKENS and unknown > MAX_UNKNOWN * tokens
    if is_most and not job.options.allow_unknown:
        raise InputError(
            f"{job.output}: {unknown / tokens:.0%} of the tokens are unknown, so the tokenizer does"
            f" not fit this text; choose another {opt.tokenizer}, or set {opt.allow_unknown}"
        )


def _split_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """Return a warning, in a list, if the shards are of several splits by their names."""
    found = {*splits_of_shards([shard["name"] for shard in manifest["shards"]])}
    if len(found) < 2:
        return []
    names = ", ".join(sorted(found))
    return [f"the shards are of the splits {names}, and a reader of the whole directory mixes them"]
