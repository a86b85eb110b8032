"""The job `encode`: each input becomes one Parquet shard of token ids.

    plan ─▶ shards ─ encode each: read a row group, encode it, write it ─▶ journals ─▶ commit

The plan is in files, because runners limit the size of the graph of a pipeline. A worker records
each finished shard in a journal, so that a rerun does not encode it again. It also records a shard
that cannot be encoded, and the other shards are finished (`pipelines.encoding.directory`).

A fault of storage does not make a shard bad: the step is tried again; if that does not help, the
work item fails; and if the runner's retries fail too, the job fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipelines.encoding.directory import state
from pipelines.encoding.directory.card import card_warnings
from pipelines.encoding.directory.contents import Contents
from pipelines.encoding.directory.quarantine import BadShard, quarantine
from pipelines.encoding.directory.status import ShardError, ShardResult
from pipelines.encoding.options import EncodeCall, ShardOptions
from pipelines.encoding.plan import EncodePlan, bad_shards, check_errors, plan
from pipelines.encoding.result import Encoded
from pipelines.encoding.row_weights import RowWeights
from pipelines.files.lease import one_run
from pipelines.running import interrupts
from pipelines.running.checks import checked_call
from pipelines.running.progress import Progress
from wordpiece_core import Tokenizer

SAMPLE = 64  # files that are read before a run, to estimate the amount of text


@dataclass(frozen=True)
class EncodeRun:
    """How a run encodes shards. `weights`: how rows are weighted that will be resharded."""

    options: ShardOptions
    tokenizer: Tokenizer
    on_error: str
    beam_args: Sequence[str]
    progress: Progress
    weights: RowWeights | None = None


def encode(
    call: EncodeCall,
    tokenizer: Tokenizer,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Encoded:
    """Encodes every input into a shard of the same name in the output.

    Raises what `plan` raises; OutputError, for example if another run is writing to the output; and
    ShardsError if some inputs cannot be encoded, after all others are finished. With `on_error`
    "quarantine" these go to `_errors/` instead.
    """
    call = checked_call(call, beam_args)
    with one_run(call.output):
        found = plan(call, tokenizer, SAMPLE)
        directory, contents, bad = found.directory, found.contents, list[BadShard]()
        if not found.is_done:
            run = EncodeRun(call.shards, tokenizer, call.on_error, beam_args, progress)
            contents, bad = encode_shards(found, run)
            quarantine(directory, bad)
            state.commit(directory, contents)
        elif not (contents.has_card and contents.has_tokenizer):
            state.restore(directory, contents, tokenizer)
        if contents.has_work or not found.is_done:
            directory.work.delete()
        manifest = state.manifest(directory, contents)
        return Encoded(
            call.output, manifest, found.kept, found.others, bad, card_warnings(directory)
        )


def encode_shards(plan: EncodePlan, run: EncodeRun) -> tuple[Contents, list[BadShard]]:
    """Encodes the shards of a plan. Returns what the directory holds then, which is to be
    committed, and the inputs that could not be encoded. ShardsError if there are any that do not go
    into quarantine."""
    directory, waiting = plan.directory, plan.to_run
    if not waiting:
        check_errors(plan, plan.errors, run.on_error)
    roots = {shard.name: shard.file.root for shard in plan.shards if not shard.finished}
    begun = state.begin(directory, plan.contents, run.tokenizer, roots)
    results, errors = list[ShardResult](), list[ShardError]()
    with interrupts.held():  # only here, so that a run with nothing to do does not import Beam
        from pipelines.encoding.encode_step import EncodeShard, run_step, threads
    with run.progress.stage("encode", "bytes", sum(shard.bytes for shard in waiting)):
        if waiting:
            step = EncodeShard(directory, run.options, threads(run.beam_args), run.weights)
            results, errors = run_step(step, waiting, run.beam_args)
        bad = bad_shards(plan, errors)
        check_errors(plan, bad, run.on_error)
    made = {result.name: result for result in results}
    kept = {
        name: error
        for name, error in begun.errors.items()
        if error.input in begun.quarantined and name not in {*roots, *begun.results}
    }
    contents = replace(
        begun,
        results=begun.results | made,
        errors=kept | {shard.error.name: shard.error for shard in bad},
        bad=begun.bad | {shard.error.input for shard in bad},
    )
    return contents, bad
