"""The job `encode`: each input becomes one Parquet shard of token ids.

    plan ─▶ shards ─ encode each: read a row group, encode it, write it ─▶ journals ─▶ commit

The plan is in files, because runners limit the size of the graph of a pipeline. A worker records
each finished shard in a journal, so that a rerun does not encode it again. It also records a shard
that cannot be encoded, and the other shards are finished (`pipelines.encoding.directory`).

A fault of storage does not make a shard bad: the step is tried again; if that does not help, the
work item fails; and if the runner's retries fail too, the job fails.

Resharding (`pipelines.encoding.resharding`) encodes its inputs in the same way, and then makes
shards of their rows. Following (`pipelines.encoding.follow`) is a loop around the job.
"""

from __future__ import annotations

from pipelines.encoding.follow import FollowLog, follow_inputs
from pipelines.encoding.options import EncodeOptions
from pipelines.encoding.resharding.reshard import Resharding
from pipelines.encoding.result import Encoded
from pipelines.encoding.run import EncodeRun
from pipelines.encoding.shard_encoder import check_fit
from pipelines.io.lock import exclusive_lock
from pipelines.progress import Progress
from wordpiece_core import Tokenizer


def encode_job(
    options: EncodeOptions,
    tokenizer: Tokenizer,
    progress: Progress,
    log: FollowLog | None = None,
) -> Encoded:
    """Encode every input into a shard of the same name in the output, or reshard the rows of all
    inputs. `log` receives the commits of the option `follow`.

    Raises InputError; OptionError, for example if the output holds shards of other options or
    another tokenizer; OutputError, for example if another run is writing to the output; and
    ShardsError if some inputs cannot be encoded, after all others are finished. With `on_error`
    "skip", the manifest lists these instead.
    """
    options = options.checked()
    check_fit(options, tokenizer)
    run = EncodeRun(options, tokenizer, progress)
    if options.follow:
        assert log is not None
        return follow_inputs(run, log)
    with exclusive_lock(run.output):
        return Resharding(run).run() if options.is_resharded else run.encode_files(run.files())
