"""The command `wordpiece`: count, train, extend, prune, encode, compare, report, inspect.

Only the jobs load Beam and Arrow, so that `--help` is fast.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click

from pipelines.commands import streams
from pipelines.commands.job_command import How, debug, dry_run, job_command
from pipelines.commands.options import Value, parameters, parted
from pipelines.comparing.options import CompareCall
from pipelines.counting.options import CountCall
from pipelines.encoding.options import EncodeCall, TokenizerChoice
from pipelines.reporting.options import ReportCall
from pipelines.running.load_beam import in_own_process, load_beam, without_collections
from pipelines.training.options import ExtendCall, PruneCall, TrainCall
from wordpiece_core.errors import WordpieceError, one_line
from wordpiece_core.option_kinds import Place
from wordpiece_core.options import EncodingOptions

# Options can also be set by environment variables, such as WORDPIECE_TRAIN_VOCAB_SIZE.
CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "terminal_width": 100,
    "show_default": True,
    "auto_envvar_prefix": "WORDPIECE",
}
# The allocator of Arrow. The large buffers of the jobs come and go, and jemalloc keeps their pages:
# this takes a tenth less CPU time and a fifth less memory than Arrow's default, mimalloc.
ARROW_MEMORY = "jemalloc"
LACKS_MEMORY = re.compile(
    r"MemoryError|[mM]emory allocation|[cC]annot allocate|[cm]?alloc of size|bad_alloc"
    r"|can't start new thread|failed to map segment|without (setting an exception|exception set)"
)


@click.group(context_settings=CONTEXT, epilog="wordpiece COMMAND --help shows a command's options.")
@click.version_option(
    package_name="wordpiece-beam", prog_name="wordpiece", allow_from_autoenv=False
)
def wordpiece() -> None:
    """WordPiece, BPE and Unigram at corpus scale: train a vocabulary, turn datasets into token
    ids."""


@job_command(CountCall)
def count(call: CountCall, how: How) -> None:
    """`wordpiece count`"""
    with without_collections():
        load_beam()
        from pipelines.commands.count import run_count

    run_count(call, how)


@job_command(TrainCall)
def train(call: TrainCall, how: How) -> None:
    """`wordpiece train`"""
    with without_collections():
        load_beam()
        from pipelines.commands.train import run_train

    run_train(call, how)


@job_command(ExtendCall)
def extend(call: ExtendCall, how: How) -> None:
    """`wordpiece extend`"""
    with without_collections():
        load_beam()
        from pipelines.commands.train import run_extend

    run_extend(call, how)


@job_command(PruneCall)
def prune(call: PruneCall, how: How) -> None:
    """`wordpiece prune`"""
    with without_collections():
        load_beam()
        from pipelines.commands.train import run_prune

    run_prune(call, how)


@job_command(EncodeCall, dry_run())
def encode(call: EncodeCall, how: How) -> None:
    """`wordpiece encode`"""
    with without_collections():
        from pipelines.commands.encode import run_encode

    run_encode(call, how)


@job_command(CompareCall)
def compare(call: CompareCall, how: How) -> None:
    """`wordpiece compare`"""
    with without_collections():
        load_beam()
        from pipelines.commands.compare import run_compare

    run_compare(call, how)


@job_command(ReportCall)
def report(call: ReportCall, how: How) -> None:
    """`wordpiece report`"""
    with without_collections():
        load_beam()
        from pipelines.commands.report import run_report

    run_report(call, how)


@click.command(
    epilog="After --, a TEXT may begin with a dash.",
    params=[
        click.Argument(["tokenizer"], type=Value(Place())),
        click.Argument(["texts"], nargs=-1, metavar="[TEXT...]"),
        *parameters(TokenizerChoice, ["lowercase", "unk_scope"]),
        *parameters(EncodingOptions, ["add_special_tokens", "split_special_tokens"]),
        click.Option(
            ["--rows"],
            type=click.IntRange(0),
            default=5,
            help="Of a dataset: how many of its first rows to show.",
        ),
        click.Option(
            ["--tokenizer", "of_dataset"],
            type=Value(Place()),
            help="Of a dataset that keeps no tokenizer.",
        ),
        click.Option(
            ["--json", "as_json"], is_flag=True, help="Print one JSON object a line, for scripts."
        ),
        debug(),
    ],
)
@click.pass_obj
def inspect(
    more_texts: list[str],
    /,
    texts: tuple[str, ...],
    debug: bool,
    as_json: bool,
    rows: int,
    of_dataset: str | None,
    **given: Any,
) -> None:
    """Show how TEXT is cut into tokens, and why a word is [UNK]; or what is in a dataset.

    TOKENIZER: a tokenizer directory, or a file of one; or a dataset that encode wrote, to show its
    first rows as text. TEXT: - or none for the lines of standard input.
    """
    with without_collections():
        from pipelines.commands.inspect import run_inspect
        from pipelines.commands.inspect_dataset import inspected_dataset

    if inspected_dataset(given, [*texts, *more_texts], rows, of_dataset, as_json=as_json):
        return
    choice, encoding = parted(TokenizerChoice, given), parted(EncodingOptions, given)
    run_inspect([*texts, *more_texts], choice, encoding, as_json=as_json)


for command in (count, train, extend, prune, encode, compare, report, inspect):
    wordpiece.add_command(command)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command. Exit status: 0 done, 1 the job failed, 2 the call or config is wrong, 130
    interrupted."""
    if argv is None:  # this process is the command's own
        signal.signal(signal.SIGTERM, _interrupt)
        streams.use_utf8()
        streams.prepare()
        # Beam loads NumPy, but nothing is computed with it here. Its threads need memory, and if it
        # cannot start them it prints six lines and interrupts the process.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if sys.platform == "linux":  # elsewhere Arrow's wheels may not have it
            os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", ARROW_MEMORY)
    args = list(sys.argv[1:] if argv is None else argv)
    beam_args: list[str] = []
    if "--" in args:
        place = args.index("--")
        args, beam_args = args[:place], args[place + 1 :]
    if argv is None:
        in_own_process(only_local=not beam_args)
    debug = "--debug" in args or _debug_by_environment(args)
    if not debug:
        _silence_libraries()
    try:
        wordpiece.main(
            args or ["--help"], prog_name="wordpiece", standalone_mode=False, obj=beam_args
        )
        sys.stdout.flush()
        status = 0
    except streams.ReaderGoneError:
        status = 0
    except (KeyboardInterrupt, click.exceptions.Abort):
        print("wordpiece: interrupted; run the same command again to go on", file=sys.stderr)
        status = 130
    except Exception as error:
        if debug:
            raise
        status = _explain(error)
    if argv is None:
        _leave(status)
    sys.exit(status)


def _interrupt(*_: object) -> NoReturn:
    """Ends the job as Ctrl-C does: on a cluster, what runs there is cancelled."""
    raise KeyboardInterrupt


def _debug_by_environment(args: Sequence[str]) -> bool:
    variable = f"WORDPIECE_{args[0].upper()}_DEBUG" if args else ""
    return os.environ.get(variable, "").lower() in ("1", "true", "yes", "on", "t", "y")


def _leave(status: int) -> NoReturn:
    """Ends the process at once. Python's normal exit unloads all libraries, which takes 0.2 s, and
    it can abort if threads of a failed job still run in the kernel or in Arrow."""
    with suppress(Exception):  # a stream that cannot be written has been reported
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _silence_libraries() -> None:
    """Keeps the messages of libraries off the terminal, and the tracebacks of their threads. The
    threads of this project pass their exceptions on."""
    warnings.simplefilter("ignore")
    threading.excepthook = lambda _: None
    root = logging.getLogger()
    root.handlers = [logging.NullHandler()]
    root.setLevel(logging.CRITICAL)


def _explain(error: Exception) -> int:
    """Prints an error on one line; returns the exit status."""
    if isinstance(error, click.ClickException):
        message, status = error.format_message(), 2
    elif isinstance(error, WordpieceError):
        message, status = str(error), error.exit_status
    elif (lack := _lack_of_memory(error)) is not None:
        message, status = f"{lack}; give the command more, or less to hold", 1
    else:
        message, status = f"{type(error).__name__}: {one_line(error)} (--debug shows where)", 1
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(message.split()))
    print(f"wordpiece: {line}", file=sys.stderr)
    return status


def _lack_of_memory(error: BaseException) -> str | None:
    """The message for an error that was caused by too little memory, or None. Beam turns errors of
    its threads into other errors, and libraries that cannot be loaded have messages of their
    own."""
    seen: BaseException | None = error
    while seen is not None:
        message = one_line(seen)
        if isinstance(seen, MemoryError) or LACKS_MEMORY.search(message):
            return f"not enough memory: {message}".removesuffix(": MemoryError")
        seen = seen.__cause__ or seen.__context__
    return None


if __name__ == "__main__":
    main()
