"""A run of the job `encode`, and how it encodes inputs into a directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipelines.encoding.directory import state
from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.quarantine import BadShard
from pipelines.encoding.directory.state import Contents
from pipelines.encoding.directory.status import ShardError, ShardResult
from pipelines.encoding.options import EncodeCall, ShardOptions
from pipelines.encoding.plan import EncodePlan
from pipelines.encoding.row_weights import RowWeights
from pipelines.files import inputs
from pipelines.files.inputs import InputFile
from pipelines.running import interrupts
from pipelines.running.progress import Progress
from wordpiece_core import Tokenizer

SAMPLE = 64  # files that are read before a run, to estimate the amount of text


@dataclass(frozen=True)
class EncodeRun:
    """A run of the job."""

    call: EncodeCall
    tokenizer: Tokenizer
    beam_args: Sequence[str]
    progress: Progress

    def directory(self) -> EncodedDirectory:
        """The output directory."""
        job = {"tokenizer": self.tokenizer.digest, "options": self.call.job_options}
        return EncodedDirectory(self.call.output, job)

    def files(self) -> list[InputFile]:
        """The input files, which have distinct shards."""
        own, quoting = [self.call.output], not self.call.shards.no_quoting
        return inputs.disambiguated(inputs.resolve(self.call.inputs, own, quoting=quoting))

    def encode(
        self, plan: EncodePlan, options: ShardOptions, weights: RowWeights | None = None
    ) -> tuple[Contents, list[BadShard]]:
        """Encodes the shards of a plan. Returns what its directory holds then, which is to be
        committed, and the inputs that could not be encoded. `weights`: how rows are weighted that
        will be resharded. ShardsError if there are bad inputs that do not go into quarantine."""
        directory, waiting, on_error = plan.directory, plan.to_run, self.call.on_error
        if not waiting:
            plan.bad_shards([], on_error)
        roots = {shard.name: shard.file.root for shard in plan.shards if not shard.finished}
        begun = state.begin(directory, plan.contents, self.tokenizer, roots)
        results, errors = list[ShardResult](), list[ShardError]()
        with interrupts.held():  # only here, so that a run with nothing to do does not import Beam
            from pipelines.encoding.encode_step import EncodeShard, run_step, threads
        with self.progress.stage("encode", "bytes", sum(shard.bytes for shard in waiting)):
            if waiting:
                step = EncodeShard(directory, options, threads(self.beam_args), weights)
                results, errors = run_step(step, waiting, self.beam_args)
            bad = plan.bad_shards(errors, on_error)
        kept = {
            name: error
            for name, error in begun.errors.items()
            if error.input in begun.quarantined and name not in {*roots, *begun.results}
        }
        contents = replace(
            begun,
            results=begun.results | {result.name: result for result in results},
            errors=kept | {shard.error.name: shard.error for shard in bad},
        )
        return contents, bad
