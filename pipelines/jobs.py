"""The commands as functions: what they take from the command line, run, and say at the end."""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from typing import Any

from pipelines.count import CountOptions, count
from pipelines.encode import Encoded, Plan, PlannedShard, encode, plan
from pipelines.encode_shard import EncodeOptions
from pipelines.encoded_directory import ShardsError
from pipelines.filesystems import beside
from pipelines.input_files import resolve
from pipelines.loading import load_tokenizer
from pipelines.owned import one_run
from pipelines.places import check_writable
from pipelines.progress import Progress
from pipelines.runner import pipeline_options, workers
from pipelines.tokenizer_directory import check_tokenizer_directory, write_tokenizer
from pipelines.train import Job, train
from pipelines.training_work import TrainingWork
from pipelines.word_table import (
    Coverage,
    WordTable,
    coverage,
    read_word_table,
    table_digest,
    text_of,
)
from wordpiece_core import (
    EncodingOptions,
    FewerTokensWarning,
    TextOptions,
    Tokenizer,
    TrainingOptions,
)
from wordpiece_core.errors import InputError, OptionError, OutputError
from wordpiece_core.options import shown
from wordpiece_core.tokenizer_files import TokenizerSpec, own_special_tokens
from wordpiece_core.training import RoundBudget, TrainingResult, warn_of_fewer_tokens

TEXT_OPTIONS = [field.name for field in fields(TextOptions)]
MANY_UNKNOWN = 0.01  # of words or tokens: more is worth a warning
MANY_DROPPED = 0.01  # of tokens, with --pack
WORK = ".work"  # after the output's name: what a training keeps while it runs


def run_count(
    inputs: Sequence[str],
    beam_args: Sequence[str],
    *,
    output: str,
    merge: Sequence[str] = (),
    quiet: bool = False,
    config: str | None = None,
    debug: bool = False,
    **options: Any,
) -> WordTable:
    """`wordpiece count`"""
    _check_call(inputs or merge, beam_args, output)
    text = TextOptions(**{name: options.pop(name) for name in TEXT_OPTIONS})
    table = count(
        inputs,
        output,
        CountOptions(text=text, **options),
        merge=merge,
        beam_args=beam_args,
        progress=Progress(quiet=quiet),
    )
    if not quiet:
        _print_corpus(table.totals, table.min_word_count)
        print(f"word table: {output}")
    return table


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
    _check_call(inputs or word_counts, beam_args, output)
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
    call = _TrainingCall(
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


@dataclass(frozen=True)
class _Trained:
    """What a training made, and of what."""

    result: TrainingResult
    table: WordTable
    training: TrainingOptions
    covered: Coverage


@dataclass(frozen=True)
class _TrainingCall:
    """A call of `wordpiece train`, whose options have been checked."""

    inputs: Sequence[str]
    beam_args: Sequence[str]
    output: str
    word_counts: str | None
    counting: CountOptions
    training: TrainingOptions
    budget: RoundBudget
    work: TrainingWork
    keep_work: bool
    overwrite: bool
    progress: Progress

    def run(self) -> _Trained:
        """Trains, and writes the tokenizer. Holds the output and the work directory."""
        identity: dict[str, Any] = {"training": self.training.plain()}
        if self.word_counts:  # the table may have been counted without rare words
            del identity["training"]["min_word_count"]
        else:
            identity["text"] = asdict(self.counting.text)
        self._check_output(identity)
        table = read_word_table(self.word_counts) if self.word_counts else None
        counted_from = {} if table else self._counted_from()
        self.work.check(counted_from, identity["training"])
        self.work.claim(counted_from)
        try:
            done = self._train(table or self._count(counted_from))
        except (InputError, OptionError):
            with suppress(OutputError):
                self.work.release()
            raise
        if not self.keep_work:
            self.work.delete()
        return done

    def _check_output(self, identity: dict[str, Any]) -> None:
        check_tokenizer_directory(self.output, identity, overwrite=self.overwrite)

    def _counted_from(self) -> dict[str, Any]:
        """What a word table in the work directory must have been counted from."""
        files = resolve(self.inputs, [self.output, self.work.path])
        options = asdict(self.counting)
        del options["worker_memory"]
        text = options.pop("text")
        files_as_planned = [[file.path, file.size, file.modified] for file in files]
        return {**options, **text, "inputs": files_as_planned}

    def _count(self, counted_from: dict[str, Any]) -> WordTable:
        """The word table of the inputs, counted in the work directory unless it is there
        already."""
        if self.work.is_counted():
            return read_word_table(self.work.words)
        self.work.begin_count(counted_from)
        own = [self.output, self.work.path]
        more: dict[str, Any] = {"own": own, "beam_args": self.beam_args, "progress": self.progress}
        return count(self.inputs, self.work.words, self.counting, **more)

    def _train(self, table: WordTable) -> _Trained:
        text = text_of([table], self.counting.text)
        training = _training_of(table, self.training)
        digest = table_digest(table)
        identity = {"text": asdict(text), "training": training.plain(), "word_table": digest}
        self._check_output(identity)
        job = Job(
            training,
            digest,
            self.work,
            self.progress,
            self.budget,
            self.counting.worker_memory,
            self.beam_args,
        )
        result = train(table, job)
        spec = _spec(result, text, training)
        done = _Trained(result, table, training, coverage(table, Tokenizer.of(spec)))
        self.work.owned.check_lease()
        record = _training_record(done, identity)
        write_tokenizer(self.output, spec, result.merges, record, self._run_record(result))
        return done

    def _run_record(self, result: TrainingResult) -> dict[str, Any]:
        """What this run took: the contents of `run.json`."""
        seconds = self.progress.seconds.items()
        return {
            "inputs": list(self.inputs),
            "word_counts": self.word_counts,
            "text_column": self.counting.text_column,
            "group_column": self.counting.group_column,
            "driver_memory": self.budget.memory,
            "round_budget": self.budget.share,
            "rounds": result.rounds,
            "seconds": {name: round(value, 3) for name, value in seconds},
            "peak_memory_bytes": peak_memory(),
            "workers": workers(pipeline_options(self.beam_args)),
            "beam_args": list(self.beam_args),
        }


def _training_of(table: WordTable, training: TrainingOptions) -> TrainingOptions:
    """The options for a table without rare words: one cannot train on more words than it has."""
    given, known = training.min_word_count, table.min_word_count
    if 1 < given < known:
        raise OptionError(f"min_word_count: {given}, but {table.path} was counted with {known}")
    return replace(training, min_word_count=max(given, known))


def _spec(result: TrainingResult, text: TextOptions, training: TrainingOptions) -> TokenizerSpec:
    """The tokenizer that a training gives."""
    return TokenizerSpec(
        result.vocab,
        text,
        training.max_word_length,
        training.continuing_prefix,
        own_special_tokens(training.special_tokens),
    )


def _print_training(output: str, done: _Trained) -> None:
    result, table, covered = done.result, done.table, done.covered
    _print_corpus(table.totals, table.min_word_count)
    print(f"vocabulary: {len(result.vocab):,} tokens, {result.merges.num_rows:,} merges")
    if table.is_smoothed:
        print(f"tokens per word, by the smoothed counts: {covered.tokens_per_word:.3f}")
    else:
        words = f" of the {covered.words:,} words in the table" if table.min_word_count > 1 else ""
        print(f"tokens{words}: {covered.tokens:,}, {covered.tokens_per_word:.3f} per word")
    print(f"unknown words: {covered.unknown_share:.2%}")
    print(f"tokenizer: {output}")


def _warn_of_training(done: _Trained) -> None:
    share = done.covered.unknown_share
    if share > MANY_UNKNOWN:
        _say(
            f"warning: {share:.1%} of the words are [UNK]; raise limit_alphabet or max_word_length"
        )
    _warn(lambda: warn_of_fewer_tokens(len(done.result.vocab), done.training))


def _training_record(done: _Trained, identity: dict[str, Any]) -> dict[str, Any]:
    """What it takes to train again and get the same bytes: the contents of `training.json`.
    `corpus` is of the text; `coverage` of the words in the table, by its counts."""
    return {
        "versions": {name: version(name) for name in ("wordpiece-beam", "pyarrow")},
        **identity,
        "corpus": done.table.totals,
        "smoothing": done.table.smoothing,
        "coverage": asdict(done.covered),
        "vocab_size": len(done.result.vocab),
        "merges": done.result.merges.num_rows,
    }


def _training_options(options: dict[str, Any]) -> TrainingOptions:
    """Options from the command line, where lists and `auto` are strings."""
    if options["special_tokens"] != "bert":
        options["special_tokens"] = _list(options["special_tokens"])
    if options["min_pair_count"] != "auto":
        try:
            options["min_pair_count"] = int(options["min_pair_count"])
        except ValueError:
            value = shown(options["min_pair_count"])
            raise OptionError(f"--min-pair-count: {value} is not a number or auto") from None
    return TrainingOptions.of(**options)


def run_encode(
    inputs: Sequence[str],
    beam_args: Sequence[str],
    *,
    output: str,
    tokenizer: str,
    unk_scope: str,
    lowercase: bool | None,
    text_column: str,
    text_pair_column: str | None,
    keep_columns: str | None,
    columns: str,
    pack: bool,
    compression: str,
    on_error: str,
    dry_run: bool,
    quiet: bool = False,
    config: str | None = None,
    debug: bool = False,
    **encoding: Any,
) -> dict[str, Any] | None:
    """`wordpiece encode`: the manifest, or None of a dry run"""
    _check_call(inputs, beam_args, output)
    loaded = load_tokenizer(tokenizer, unk_scope=unk_scope, lowercase=lowercase)
    options = EncodeOptions(
        text_column=text_column,
        text_pair_column=text_pair_column,
        keep_columns=None if keep_columns is None else tuple(_list(keep_columns)),
        pack=pack,
        compression=compression,
        encoding=EncodingOptions(columns=tuple(_list(columns)), **encoding),
    )
    if dry_run:
        _print_plan(plan(inputs, output, loaded, options))
        return None
    try:
        encoded = encode(
            inputs,
            output,
            loaded,
            options,
            on_error=on_error,
            beam_args=beam_args,
            progress=Progress(quiet=quiet),
        )
    except ShardsError as failed:
        for error in failed.errors if len(failed.errors) > 1 else []:
            _say(f"error: {error.message}")
        raise
    if not quiet:
        _print_encoded(encoded, output)
    _warn_of_encoding(encoded)
    return encoded.manifest


def _print_encoded(encoded: Encoded, output: str) -> None:
    manifest = encoded.manifest
    _print_corpus(manifest | {"rows": manifest["input_rows"]})
    kept = f" ({encoded.kept} finished before)" if encoded.kept else ""
    others = f", {encoded.others} of them of inputs not given now" if encoded.others else ""
    print(f"shards: {len(manifest['shards']):,}{kept}{others}")
    print(f"tokens: {manifest['tokens']:,}, {_unknown_share(manifest):.2%} of them unknown")
    if manifest["options"]["pack"]:
        dropped = f", {manifest['dropped_tokens']:,} tokens of the shards' ends left out"
        print(f"sequences: {manifest['rows']:,}{dropped if manifest['dropped_tokens'] else ''}")
    print(f"dataset: {output}")


def _warn_of_encoding(encoded: Encoded) -> None:
    if not encoded.manifest["bytes"]:
        _say("warning: the inputs hold no text")
    share = _unknown_share(encoded.manifest)
    if share > MANY_UNKNOWN:
        _say(f"warning: {share:.1%} of the tokens are [UNK]; does the tokenizer fit the text?")
    share = encoded.manifest["dropped_tokens"] / max(encoded.manifest["tokens"], 1)
    if share > MANY_DROPPED:
        _say(
            f"warning: {share:.1%} of the tokens were left out, at the ends of the shards;"
            " give --padding, larger input files, or a smaller --max-length"
        )
    if encoded.manifest["invalid"]:
        _say(
            f"warning: {encoded.manifest['invalid']:,} invalid UTF-8 sequences in kept columns are"
            " kept as they are; some readers refuse them (--keep-columns leaves columns out)"
        )
    for error in encoded.errors:
        _say(f"warning: in quarantine: {error.message}")


def _unknown_share(manifest: dict[str, Any]) -> float:
    return float(manifest["unknown_tokens"] / max(manifest["tokens"], 1))


def _print_plan(found: Plan) -> None:
    """What `wordpiece encode --dry-run` shows."""
    for shard in found.shards:
        print(f"{shard.file.path} -> {shard.name}: {_planned(shard)}")
    job = found.directory.job
    given = {name: value for name, value in job["options"].items() if value not in (None, [])}
    print(f"options: {', '.join(f'{name}={value}' for name, value in given.items())}")
    print(f"tokenizer: {job['tokenizer']}")
    waiting = found.to_run
    megabytes = sum(shard.bytes for shard in waiting) / 1e6
    bad = f", {len(found.errors):,} cannot be read" if found.errors else ""
    print(f"to encode: {len(waiting):,} of {len(found.shards):,} shards, {megabytes:,.1f} MB{bad}")
    print(f"dataset: {found.directory.path}, untouched by this dry run")


def _planned(shard: PlannedShard) -> str:
    if shard.error:
        return shard.error.message
    state = "finished, kept" if shard.finished else "to encode"
    rows = "" if shard.rows is None else f", {shard.rows:,} rows"
    return f"{state}{rows}, {shard.bytes / 1e6:,.1f} MB of text"


def _list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _check_call(inputs: Sequence[str] | str | None, beam_args: Sequence[str], output: str) -> None:
    """What can be wrong with a call is told before anything is touched."""
    if not inputs:
        raise OptionError("give INPUT: files, globs or directories")
    pipeline_options(beam_args)
    check_writable("--output", output)


def _print_corpus(totals: dict[str, Any], min_word_count: int = 1) -> None:
    """What was read, and what was wrong with it."""
    if "rows" in totals:
        print(f"read: {totals['rows']:,} rows, {totals['bytes'] / 1e6:,.1f} MB of text")
    if "words" in totals:
        kept = f" (of {min_word_count:,} and more)" if min_word_count > 1 else ""
        print(f"words: {totals['words']:,}, distinct: {totals['distinct_words']:,}{kept}")
    if totals.get("nulls"):
        print(f"rows without text (null): {totals['nulls']:,}")
    if totals.get("replaced"):
        _say(f"warning: {totals['replaced']:,} invalid UTF-8 sequences were replaced by U+FFFD")


def peak_memory() -> int:
    """The most memory this process, or one it started, has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return unit * max(resource.getrusage(who).ru_maxrss for who in whose)


def _warn(check: Callable[[], None]) -> None:
    """Says the warnings of the library in the command's way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FewerTokensWarning)
        check()
    for warning in caught:
        _say(f"warning: {warning.message}")


def _say(text: str) -> None:
    print(f"wordpiece: {text}", file=sys.stderr)
