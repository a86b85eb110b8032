"""A run of the job `encode`, and how it encodes inputs into a directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines.encoding.directory import state
from pipelines.encoding.directory.bad_shards import BadShard, ShardsError
from pipelines.encoding.directory.card import card_warnings
from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.state import Contents
from pipelines.encoding.directory.status import ShardError, ShardResult
from pipelines.encoding.options import EncodeOptions, ShardOptions
from pipelines.encoding.plan import EncodePlan, PlannedShard, plan_files
from pipelines.encoding.result import Encoded
from pipelines.encoding.row_weights import RowWeights
from pipelines.encoding.shard_names import splits_of_shards
from pipelines.io import inputs
from pipelines.io.inputs import InputFile
from pipelines.io.schemas import joined_schema
from pipelines.progress import Progress
from wordpiece_core import Tokenizer
from wordpiece_core.errors import ColumnError, InputError, opt
from wordpiece_core.option_types import path, paths

MOST_UNKNOWN = 0.9  # of the tokens of a dataset: more are an error
LEAST_TOKENS = 10  # of a dataset for which this is an error


def _split_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """The warning that the names of shards say several splits, in a list."""
    found = {*splits_of_shards([shard["name"] for shard in manifest["shards"]])}
    if len(found) < 2:
        return []
    names = ", ".join(sorted(found))
    return [f"the shards are of the splits {names}, and a reader of the whole directory mixes them"]


@dataclass(frozen=True)
class EncodeRun:
    """A run of the job."""

    options: EncodeOptions
    tokenizer: Tokenizer
    progress: Progress

    @property
    def output(self) -> str:
        """The output directory."""
        return path(self.options.output)

    @property
    def shard_options(self) -> ShardOptions:
        """The options of shards, which workers get."""
        return self.options.select(ShardOptions)

    def directory(self) -> EncodedDirectory:
        """The output directory. A token that is named, and has the role anyway, is no option."""
        options, tokenizer = self.options.job_options, self.tokenizer
        for role in ("bos_token", "eos_token"):
            if role in options and tokenizer.token_of(role) == options[role]:
                del options[role]
        return EncodedDirectory(
            self.output,
            {"tokenizer": tokenizer.digest, "options": options},
            card=self.options.card,
            # Readers of a stream take the shards as they come.
            marks_unfinished=not self.options.follow,
        )

    def files(self, *, may_be_empty: bool = False) -> list[InputFile]:
        """The input files, which have distinct shards."""
        own, quoting = [self.output], not self.options.no_quoting
        given = paths(self.options.inputs)
        found = inputs.resolve(given, own, may_be_empty=may_be_empty, quoting=quoting)
        if not self.options.follow:  # the splits of files that will appear are not known
            found = inputs.with_splits_in_names(found)
        return inputs.disambiguated(found)

    def encode_files(self, files: Sequence[InputFile]) -> Encoded:
        """Encodes each input into a shard, and commits."""
        plan = plan_files(self.directory(), files, self.shard_options)
        directory, contents, bad = plan.directory, plan.contents, list[BadShard]()
        if not plan.is_done:
            contents, bad = self.encode(plan, self.shard_options)
            manifest = state.commit(directory, contents)
        else:
            manifest = state.complete(directory, contents, self.tokenizer)
        kept = sum(shard.finished for shard in plan.shards)
        others = len(contents.results.keys() - {shard.name for shard in plan.shards})
        warnings = _split_warnings(manifest) + card_warnings(directory)
        return Encoded(self.output, manifest, kept, others, bad, warnings)

    def encode(
        self, plan: EncodePlan, options: ShardOptions, weights: RowWeights | None = None
    ) -> tuple[Contents, list[BadShard]]:
        """Encodes the shards of a plan. Returns what is to be committed then, and the inputs that
        could not be encoded. `weights`: how rows are weighted that will be resharded. ShardsError
        if there are bad inputs that are not skipped."""
        directory, waiting, found = plan.directory, plan.to_run, plan.contents
        if not waiting:
            plan.bad_shards([], self.options.on_error)
        directory.begin(self.tokenizer)
        results, errors = list[ShardResult](), list[ShardError]()
        # only here, so that a run with nothing to do does not import Beam
        from pipelines.encoding.encode_step import EncodeShard, run_step

        with self.progress.stage("encode", "input", sum(shard.input_bytes for shard in waiting)):
            if waiting:
                step = EncodeShard(directory, options, self.threads, weights)
                results, errors = run_step(step, waiting, self.options.beam_args)
            bad = plan.bad_shards(errors, self.options.on_error)
        given = {shard.name: shard for shard in plan.shards}
        redone = {name for name, shard in given.items() if not shard.finished}
        # What a killed run has finished of inputs that are not given now is deleted.
        kept = {n: found.finished[n] for n in found.finished.keys() & (found.listed | given).keys()}
        kept = {name: result for name, result in kept.items() if name not in redone}
        shards = kept | {result.name: result for result in results}
        others = {n: e for n, e in found.errors.items() if n not in redone | shards.keys()}
        contents = found.after(shards, others | {each.error.name: each.error for each in bad})
        roots = {name: shard.file.root for name, shard in given.items()}
        contents = replace(contents, roots={**found.roots, **roots})
        self._check_unknown(contents)
        if weights is None:
            contents = self._with_one_schema(directory, contents, given)
        return contents, bad

    @property
    def threads(self) -> int:
        """The number of encoding threads in each process."""
        from pipelines.encoding.encode_step import threads

        return threads(self.options.beam_args, self.options.worker_memory)

    def _check_unknown(self, contents: Contents) -> None:
        """InputError if nearly all tokens are unknown."""
        results = contents.results.values()
        tokens = sum(result.word_tokens for result in results)
        unknown = sum(result.unknown_tokens for result in results)
        is_most = tokens >= LEAST_TOKENS and unknown > MOST_UNKNOWN * tokens
        if is_most and not self.options.allow_unknown:
            raise InputError(
                f"{self.output}: {unknown / tokens:.0%} of the tokens are unknown, so"
                f" the tokenizer does not fit this text; choose another {opt.tokenizer}, or set"
                f" {opt.allow_unknown}"
            )

    def _with_one_schema(
        self, directory: EncodedDirectory, contents: Contents, given: Mapping[str, PlannedShard]
    ) -> Contents:
        """The contents once all shards have one schema: those of inputs with fewer columns, or of
        smaller types, are encoded again. `given`: the inputs now, by the names of their shards.
        ColumnError if no schema holds the columns of all, or if an older input is not given."""
        first_of: dict[str, str] = {}
        for name in sorted(contents.results):
            first_of.setdefault(contents.results[name].columns, name)
        if len(first_of) < 2:
            return contents
        schemas = {of: state.shard_schema(directory.place(n)) for of, n in first_of.items()}
        target = joined_schema([(contents.source(first_of[of]), schemas[of]) for of in schemas])
        wrong = {of for of, schema in schemas.items() if not schema.equals(target)}
        again = [name for name, result in contents.results.items() if result.columns in wrong]
        for name in again:
            if name not in given:
                raise ColumnError(
                    f"{contents.source(name)}: its shard has other columns than the current inputs;"
                    " also pass this input again"
                )
        if not again:
            return contents
        from pipelines.encoding.encode_step import EncodeShard, run_step

        waiting = [given[name] for name in again]
        step = EncodeShard(directory, self.shard_options, self.threads, schema=target)
        with self.progress.stage("encode again", "input", sum(s.input_bytes for s in waiting)):
            results, errors = run_step(step, waiting, self.options.beam_args, contents.results)
        if errors:
            raise ShardsError([BadShard(given[e.name].file, e) for e in errors], len(given))
        remade = {result.name: result for result in results}
        return replace(contents, results=contents.results | remade)
