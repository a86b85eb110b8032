"""`wordpiece train`: from the command line to the job, and what is said at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.commands.count import TEXT_OPTIONS
from pipelines.commands.summary import (
    check_call,
    comma_separated,
    print_corpus,
    say,
    say_warnings,
)
from pipelines.counting.count import CountOptions
from pipelines.files.filesystems import beside
from pipelines.files.owned import one_run
from pipelines.files.places import check_writable
from pipelines.running.progress import Progress
from pipelines.training.call import Trained, TrainingCall
from pipelines.training.work_directory import TrainingWork
from wordpiece_core import TextOptions, TrainingOptions
from wordpiece_core.errors import OptionError
from wordpiece_core.options import shown
from wordpiece_core.training.train import RoundBudget, TrainingResult, warn_of_fewer_tokens

MANY_UNKNOWN = 0.01  # of words: more is worth a warning
WORK = ".work"  # after the output's name: what a training keeps while it runs


def run_train(
    inputs: Sequence[str],
    beam_args: Sequence[str],
    *,
    output: str,
    word_counts: str | None,
    text_column: str,
    driver_memory: int,
    group_column: str | None,
    smoothing_exponent: float,
    worker_memory: int,
    round_budget: float,
    work_dir: str | None,
    keep_work: bool,
    overwrite: bool = False,
    quiet: bool = False,
    config: str | None = None,
    debug: bool = False,
    **options: Any,
) -> TrainingResult:
    """`wordpiece train`"""
    if inputs and word_counts:
        raise OptionError("give either INPUT or --word-counts")
    if group_column and word_counts:
        raise OptionError("--group-column: give it to the count that makes the word table")
    check_call(inputs or word_counts, beam_args, output)
    text = TextOptions(**{name: options.pop(name) for name in TEXT_OPTIONS})
    counting = CountOptions(
        text=text,
        text_column=text_column,
        group_column=group_column,
        smoothing_exponent=smoothing_exponent,
        worker_memory=worker_memory,
    )
    work_dir = work_dir or beside(output, WORK)
    check_writable("--work-dir", work_dir)
    call = TrainingCall(
        inputs=inputs,
        beam_args=beam_args,
        output=output,
        word_counts=word_counts,
        counting=counting,
        training=_training_options(options),
        budget=RoundBudget(round_budget, driver_memory),
        work=TrainingWork(work_dir),
        keep_work=keep_work,
        overwrite=overwrite,
        progress=Progress(quiet=quiet),
    )
    with one_run(output), one_run(call.work.path):
        done = call.run()
    if not quiet:
        _print_training(output, done)
    _warn_of_training(done)
    return done.result


def _print_training(output: str, done: Trained) -> None:
    result, table, covered = done.result, done.table, done.covered
    print_corpus(table.totals, table.min_word_count)
    print(f"vocabulary: {len(result.vocab):,} tokens, {result.merges.num_rows:,} merges")
    if table.is_smoothed:
        print(f"tokens per word, by the smoothed counts: {covered.tokens_per_word:.3f}")
    else:
        words = f" of the {covered.words:,} words in the table" if table.min_word_count > 1 else ""
        print(f"tokens{words}: {covered.tokens:,}, {covered.tokens_per_word:.3f} per word")
    print(f"unknown words: {covered.unknown_share:.2%}")
    print(f"tokenizer: {output}")


def _warn_of_training(done: Trained) -> None:
    share = done.covered.unknown_share
    if share > MANY_UNKNOWN:
        say(f"warning: {share:.1%} of the words are [UNK]; raise limit_alphabet or max_word_length")
    say_warnings(lambda: warn_of_fewer_tokens(len(done.result.vocab), done.training))


def _training_options(options: dict[str, Any]) -> TrainingOptions:
    """Options from the command line, where lists and `auto` are strings."""
    if options["special_tokens"] != "bert":
        options["special_tokens"] = comma_separated(options["special_tokens"])
    if options["min_pair_count"] != "auto":
        try:
            options["min_pair_count"] = int(options["min_pair_count"])
        except ValueError:
            value = shown(options["min_pair_count"])
            raise OptionError(f"--min-pair-count: {value} is not a number or auto") from None
    return TrainingOptions.of(**options)
