"""The commands of `wordpiece`: count, train, extend, prune, encode, check, compare, report and
inspect.

Each command imports its job when it runs, so that `--help` waits neither for Beam nor for Arrow.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from pipelines.commands.job_command import JOBS, Call, Command, debug, job_command, say
from pipelines.commands.options import Value, build, parameters
from pipelines.options import RunOptions
from pipelines.progress import write_line
from wordpiece_core.errors import (
    SkippedFilesWarning,
    TokenizerWarning,
    WordpieceError,
    one_line,
)
from wordpiece_core.limits import Limits
from wordpiece_core.option_types import Place

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
QUIET_LIBRARIES = {
    "TOKENIZERS_PARALLELISM": "false",  # the threads of a job call it
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",  # a job has its own
    "TRANSFORMERS_VERBOSITY": "critical",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
}
"""Variables of the environment that keep libraries quiet in the command's own process."""
LACKS_MEMORY = re.compile(
    r"MemoryError|[mM]emory allocation|[cC]annot allocate|[cm]?alloc of size|bad_alloc"
    r"|can't start new thread|failed to map segment|without (setting an exception|exception set)"
)


class Commands(click.Group):
    """The commands. Each is made when it is needed, from the dataclass of its options."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        return [*JOBS, "inspect"]

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name not in self.commands:
            is_job = cmd_name in JOBS
            command = job_command(cmd_name, options_class(cmd_name)) if is_job else _inspect()
            self.commands[cmd_name] = command
        return self.commands[cmd_name]


def options_class(name: str) -> type[RunOptions]:
    """Return the dataclass of the options of a job."""
    module = import_module(f"pipelines.{JOBS[name]}.options")
    return getattr(module, f"{name.capitalize()}Options")  # type: ignore[no-any-return]


@click.group(
    cls=Commands,
    context_settings=CONTEXT,
    epilog="wordpiece COMMAND --help shows a command's options.",
)
@click.version_option(
    package_name="wordpiece-beam", prog_name="wordpiece", allow_from_autoenv=False
)
def wordpiece() -> None:
    """Exact tokenizer training and dataset tokenization at corpus scale."""


def _inspect() -> Command:
    from pipelines.encoding.options import TokenizerOptions
    from wordpiece_core.options import EncodingOptions

    @click.pass_obj
    def inspect(
        call: Call,
        /,
        texts: tuple[str, ...],
        debug: bool,
        as_json: bool,
        rows: int,
        of_dataset: str | None,
        **given: Any,
    ) -> None:
        """Show how TEXT is tokenized and why a word is [UNK], or the rows of a dataset.

        TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub; or a dataset of
        encode, to show its first rows as text. TEXT: texts, or - for the lines of standard input.
        """
        from pipelines.commands.inspect import run_inspect
        from pipelines.commands.inspect_dataset import inspected_dataset

        texts += tuple(call.after_dashes)
        if inspected_dataset(given, [*texts], rows, of_dataset, as_json=as_json):
            return
        choice, encoding = build(TokenizerOptions, given), build(EncodingOptions, given)
        run_inspect([*texts], choice, encoding, as_json=as_json)

    params = [
        click.Argument(["tokenizer"], type=Value(Place)),
        click.Argument(["texts"], nargs=-1, metavar="[TEXT...]"),
        *parameters(TokenizerOptions, ["lowercase", "encoding", "unk_scope"]),
        *parameters(EncodingOptions, ["add_special_tokens", "special_tokens_in_text"]),
        click.Option(
            ["--rows"],
            type=click.IntRange(0),
            metavar="INT",
            default=5,
            help="Number of dataset rows to show.",
        ),
        click.Option(
            ["--tokenizer", "of_dataset"],
            type=Value(Place),
            help="Tokenizer of a dataset that does not store one.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object per line."),
        debug(),
    ]
    how: Any = {"help": inspect.__doc__, "options": [TokenizerOptions, EncodingOptions]}
    epilog = "After --, a TEXT may begin with a dash."
    return Command("inspect", callback=inspect, params=params, epilog=epilog, **how)


def prepare() -> None:
    """Set the environment of the command's own process."""
    # Beam loads NumPy, but nothing is computed with it here. Its threads need memory, and if it
    # cannot start them it prints six lines and interrupts the process.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name, value in QUIET_LIBRARIES.items():
        os.environ.setdefault(name, value)
    if sys.platform == "linux":  # elsewhere Arrow's wheels may not have it
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", ARROW_MEMORY)


def run(args: Sequence[str], limits: Limits) -> int:
    """Run the command, and return its exit status. Raises KeyboardInterrupt for an interrupt."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # its encoding may lack characters of names
        sys.stdout.reconfigure(errors="backslashreplace")
    beam_args: Sequence[str] = ()
    if "--" in args:
        place = args.index("--")
        args, beam_args = args[:place], args[place + 1 :]
    debug = "--debug" in args or _debug_by_environment(args)
    if debug:
        _show_libraries()
    else:
        _silence_libraries()
    try:
        wordpiece.main(
            args or ["--help"],
            prog_name="wordpiece",
            standalone_mode=False,
            obj=Call(list(beam_args), limits),
        )
        if sys.stdout is not None:
            sys.stdout.flush()
        return 0
    except BrokenPipeError:  # a reader that has seen enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1  # as click does when it happens in a command
    except click.exceptions.Abort as error:  # which click makes of it
        cause = error.__cause__
        raise (cause if isinstance(cause, KeyboardInterrupt) else KeyboardInterrupt()) from None
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        return _explain(error)


def _debug_by_environment(args: Sequence[str]) -> bool:
    variable = f"WORDPIECE_{args[0].upper()}_DEBUG" if args else ""
    return os.environ.get(variable, "").lower() in ("1", "true", "yes", "on", "t", "y")


def _silence_libraries() -> None:
    """Keep messages of libraries, and tracebacks of their threads, off the terminal. The threads of
    this project pass their exceptions on."""
    warnings.simplefilter("ignore")
    warnings.filterwarnings("once", category=SkippedFilesWarning)
    warnings.filterwarnings("always", category=TokenizerWarning)
    warnings.showwarning = lambda message, *_args, **_: say(_warning_line(message))
    threading.excepthook = lambda _: None
    root = logging.getLogger()
    root.handlers = [logging.NullHandler()]
    root.setLevel(logging.CRITICAL)


def _warning_line(message: Warning | str) -> str:
    if not isinstance(message, TokenizerWarning):
        return str(message)
    is_cased = type(message).__name__ == "TakenAsCasedWarning"  # its module loads the kernel
    return f"tokenizer {message.fact}{' (override with --lowercase)' * is_cased}"


def _show_libraries() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    logging.getLogger().addHandler(handler)


def _explain(error: Exception) -> int:
    """Print an error on one line, and return the exit status."""
    if isinstance(error, click.ClickException):
        message, status = error.format_message(), 2
    elif isinstance(error, WordpieceError):
        message, status = str(error), error.exit_status
    elif (lack := _lack_of_memory(error)) is not None:
        message, status = f"{lack}; give the process more memory, or reduce the memory options", 1
    else:
        message, status = f"{type(error).__name__}: {one_line(error)} (--debug shows where)", 1
    message = " ".join(message.split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
    write_line(f"wordpiece: {line}")
    return status


def _lack_of_memory(error: BaseException) -> str | None:
    """Return the message for an error that too little memory caused, or None. Beam turns errors of
    its threads into other errors, and a library that cannot be loaded has its own message."""
    seen: BaseException | None = error
    while seen is not None:
        message = one_line(seen)
        if isinstance(seen, MemoryError) or LACKS_MEMORY.search(message):
            return f"not enough memory: {message}".removesuffix(": MemoryError")
        seen = seen.__cause__ or seen.__context__
    return None
