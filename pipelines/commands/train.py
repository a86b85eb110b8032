"""`wordpiece train`: runs the job and prints the summary."""

from __future__ import annotations

from pipelines.commands.job_command import How
from pipelines.commands.summary import finish, print_corpus
from pipelines.running.progress import Progress
from pipelines.training.options import TrainCall
from pipelines.training.train import Trained, train


def run_train(call: TrainCall, how: How) -> None:
    """Runs `wordpiece train`."""
    progress = Progress(quiet=how.quiet)
    done = train(call, beam_args=how.beam_args, progress=progress)
    finish(done, how, progress, lambda: _print_training(done))


def _print_training(done: Trained) -> None:
    table, covered = done.table, done.covered
    print_corpus(table.totals, table.min_word_count)
    print(f"vocabulary: {len(done.vocab):,} tokens, {len(done.merges):,} merges")
    if table.is_smoothed:
        print(f"tokens per word, by the smoothed counts: {covered.tokens_per_word:.3f}")
    else:
        words = f" of the {covered.words:,} words in the table" if table.min_word_count > 1 else ""
        print(f"tokens{words}: {covered.tokens:,}, {covered.tokens_per_word:.3f} per word")
    print(f"unknown words: {covered.unknown_share:.2%}")
    print(f"tokenizer: {done.output}")
