"""`wordpiece train`, `wordpiece extend`, `wordpiece prune`: they run the job and print the
summary."""

from __future__ import annotations

from pipelines.commands.loading import showing_warnings
from pipelines.commands.summary import finish, print_corpus
from pipelines.counting.word_table import WordTable
from pipelines.progress import Progress
from pipelines.training.coverage import Coverage
from pipelines.training.extend import Extended, extend_job
from pipelines.training.options import ExtendOptions, PruneOptions, TrainOptions
from pipelines.training.prune import Pruned, prune_job
from pipelines.training.train import Trained, train_job


def run_train(options: TrainOptions, *, as_json: bool) -> None:
    """Run `wordpiece train`."""
    done = train_job(options, Progress(quiet=options.quiet))
    finish(done, options, lambda: _print_training(done), as_json=as_json)


def run_extend(options: ExtendOptions, *, as_json: bool) -> None:
    """Run `wordpiece extend`."""
    with showing_warnings():
        done = extend_job(options, Progress(quiet=options.quiet))
    finish(done, options, lambda: _print_extension(done), as_json=as_json)


def run_prune(options: PruneOptions, *, as_json: bool) -> None:
    """Run `wordpiece prune`."""
    with showing_warnings():
        done = prune_job(options, Progress(quiet=options.quiet))
    finish(done, options, lambda: _print_pruning(done), as_json=as_json)


def _print_training(done: Trained) -> None:
    table = done.table
    print_corpus(table.totals, table.min_word_count)
    merges = f", {len(done.merges):,} merges" if done.result.pieces is None else ""
    print(f"vocabulary: {len(done.vocab):,} tokens{merges}")
    _print_covered(table, done.covered)
    print(f"tokenizer: {done.output}")


def _print_covered(table: WordTable, covered: Coverage) -> None:
    if table.is_smoothed:
        print(f"tokens per pre-token (smoothed counts): {covered.tokens_per_word:.3f}")
    else:
        words = f" of the {covered.words:,} words in the table" if table.min_word_count > 1 else ""
        print(
            f"word tokens{words}: {covered.tokens:,}, {covered.tokens_per_word:.3f} per pre-token"
        )
    print(f"unknown words: {covered.unknown_share:.2%}")


def _print_extension(done: Extended) -> None:
    table = done.table
    print_corpus(table.totals, table.min_word_count)
    new, used = len(done.new_tokens), done.used_new_tokens
    print(f"vocabulary: {len(done.vocab):,} tokens, {new:,} of them new")
    print(f"new tokens that the words use: {used:,}")
    print(f"tokens saved: {done.saved_tokens:,} of {done.before.tokens:,}, {done.saved_share:.2%}")
    _print_covered(table, done.covered)
    print(f"tokenizer: {done.output}")


def _print_pruning(done: Pruned) -> None:
    table, before = done.table, len(done.result.base.vocab)
    print_corpus(table.totals, table.min_word_count)
    print(f"vocabulary: {len(done.vocab):,} of {before:,} tokens")
    share = done.more_tokens / max(done.before.tokens, 1)
    print(f"token difference: {done.more_tokens:,}, {share:.2%} of {done.before.tokens:,}")
    _print_covered(table, done.covered)
    print(f"tokenizer: {done.output}")
