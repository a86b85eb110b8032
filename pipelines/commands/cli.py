"""The command `wordpiece`: count, train, encode, inspect.

Beam and Arrow are loaded by the jobs alone, so that `--help` is there at once.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import click

from pipelines.commands import streams
from pipelines.commands.hints import hinted
from pipelines.commands.option_types import PLACE, TEXT, Share, Size, Whole
from wordpiece_core.errors import WordpieceError, one_line
from wordpiece_core.options import (
    ALPHABET_ORDERS,
    CRITERIA,
    ID_TYPES,
    LEAST_DRIVER_MEMORY,
    LEAST_WORKER_MEMORY,
    MOST_CHARACTERS,
    MOST_COUNT,
    MOST_TOKENS,
    PRE_TOKENIZERS,
    TRUNCATIONS,
    UNK_SCOPES,
)
from wordpiece_core.reference import SPECIAL_TOKENS

Command = TypeVar("Command", bound=Callable[..., Any])

CONTEXT = {"help_option_names": ["-h", "--help"], "terminal_width": 100, "show_default": True}
# Of the allocators in Arrow's wheels: the jobs' large buffers come and go, and jemalloc keeps their
# pages, which takes a tenth less CPU time and a fifth less memory than the usual mimalloc.
ARROW_MEMORY = "jemalloc"
ON_ERROR = ("fail", "quarantine")
LACKS_MEMORY = re.compile(
    r"MemoryError|[mM]emory allocation|[cC]annot allocate|[cm]?alloc of size|bad_alloc"
    r"|can't start new thread|failed to map segment|without (setting an exception|exception set)"
)
PASSED_ON = "Arguments after -- go to Beam, for example: -- --runner=FlinkRunner"


class JobCommand(click.Command):
    """A command whose options can be set by a file as well."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        path = _config_path(args)
        if path is not None:
            from pipelines.commands.config import read_config

            option = next(option for option in self.params if option.name == "config")
            ctx.default_map = read_config(
                PLACE.convert(path, option, ctx), self, wordpiece.commands
            )
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise hinted(error, self) from error


def _config_path(args: Sequence[str]) -> str | None:
    for place, arg in enumerate(args):
        if arg == "--config" and place + 1 < len(args):
            return args[place + 1]
        if arg.startswith("--config="):
            return arg.removeprefix("--config=")
    return None


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _count_option(
    name: str, default: int | None, most: int, text: str
) -> Callable[[Command], Command]:
    return click.option(name, type=Whole(most), default=default, metavar="INT", help=text)


INPUTS = click.argument("inputs", nargs=-1, metavar="INPUT...", type=PLACE)
OPTIONAL_INPUTS = click.argument("inputs", nargs=-1, metavar="[INPUT...]", type=PLACE)
OUTPUT = click.option(
    "--output", required=True, type=PLACE, metavar="DIR", help="Directory to write."
)
TEXT_COLUMN = click.option(
    "--text-column",
    type=TEXT,
    default="text",
    metavar="NAME",
    help="Column or key that holds the text.",
)
GROUP_OPTIONS = _options(
    click.option(
        "--group-column",
        type=TEXT,
        metavar="NAME",
        help="Smooth counts across its values, say languages.",
    ),
    click.option(
        "--smoothing-exponent",
        type=Share(),
        default=1.0,
        show_default="1, none",
        metavar="A",
        help="A group's share p becomes p^A; 0.7 is mBERT's.",
    ),
)
WORKER_MEMORY = click.option(
    "--worker-memory",
    type=Size(LEAST_WORKER_MEMORY),
    default="512MiB",
    metavar="SIZE",
    help="For a worker's tables in counting.",
)
JOB_OPTIONS = _options(
    click.option(
        "--config", type=PLACE, metavar="FILE", help="YAML file of options; flags here win."
    ),
    click.option("--quiet", is_flag=True, help="No progress, no summary."),
    click.option("--debug", is_flag=True, help="Tracebacks, and the libraries' own messages."),
)
TOKENIZERS_LOWERCASE = click.option(
    "--lowercase/--no-lowercase",
    default=None,
    show_default="as the tokenizer",
    help="Wins over the tokenizer; a vocab.txt alone: cased if its tokens have capital letters.",
)
TEXT_OPTIONS = _options(
    click.option("--lowercase/--no-lowercase", default=True, show_default="yes", help="Lowercase."),
    click.option(
        "--strip-accents/--no-strip-accents",
        default=None,
        show_default="as lowercase",
        help="Take accents off.",
    ),
    click.option(
        "--clean-text/--no-clean-text",
        default=True,
        show_default="yes",
        help="Drop control characters.",
    ),
    click.option(
        "--handle-chinese-chars/--no-handle-chinese-chars",
        default=True,
        show_default="yes",
        help="Make each CJK character a word.",
    ),
    click.option(
        "--pre-tokenizer",
        type=click.Choice(PRE_TOKENIZERS),
        default="bert",
        help="Cut at punctuation too, or only at spaces.",
    ),
)


@click.group(context_settings=CONTEXT, epilog="wordpiece COMMAND --help shows a command's options.")
@click.version_option(package_name="wordpiece-beam", prog_name="wordpiece")
def wordpiece() -> None:
    """WordPiece at corpus scale: train a vocabulary, turn datasets into token ids."""


@wordpiece.command(cls=JobCommand, epilog=PASSED_ON)
@OPTIONAL_INPUTS
@OUTPUT
@click.option(
    "--merge",
    multiple=True,
    type=PLACE,
    metavar="DIR",
    help="Add the counts of this word table; can be repeated.",
)
@_count_option("--min-word-count", 1, MOST_COUNT, "Leave rarer words out.")
@GROUP_OPTIONS
@WORKER_MEMORY
@TEXT_COLUMN
@TEXT_OPTIONS
@JOB_OPTIONS
@click.pass_obj
def count(beam_args: list[str], /, inputs: tuple[str, ...], **options: Any) -> None:
    """Count the words of INPUT into a word table.

    INPUT: files, globs or directories of .parquet, .txt, .jsonl (text also .gz, .zst), on any file
    system that Arrow reads. It may be left out with --merge.
    """
    from pipelines.commands.count import run_count

    run_count(inputs, beam_args, **options)


@wordpiece.command(cls=JobCommand, epilog=PASSED_ON)
@OPTIONAL_INPUTS
@OUTPUT
@click.option(
    "--word-counts", type=PLACE, metavar="DIR", help="Train on this word table, not on INPUT."
)
@_count_option("--vocab-size", 30_522, MOST_TOKENS, "Tokens, special ones and alphabet included.")
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA),
    default="pmi",
    help="How pairs are ranked.",
)
@click.option(
    "--min-pair-count",
    type=TEXT,
    default="auto",
    metavar="INT|auto",
    help="Count a pair needs; auto falls as needed.",
)
@_count_option("--min-word-count", 1, MOST_COUNT, "Leave rarer words out.")
@_count_option("--limit-alphabet", None, MOST_CHARACTERS, "Most characters to keep.")
@click.option(
    "--initial-alphabet", type=TEXT, default="", metavar="CHARS", help="Characters to have anyway."
)
@click.option(
    "--special-tokens",
    type=TEXT,
    default=",".join(SPECIAL_TOKENS),
    show_default="BERT's five",
    metavar="LIST|bert",
    help="Comma-separated, from id 0; bert: laid out as published.",
)
@_count_option("--max-token-length", None, MOST_CHARACTERS, "In characters.")
@_count_option("--max-word-length", 100, MOST_CHARACTERS, "In characters; longer words: [UNK].")
@click.option(
    "--continuing-prefix",
    type=TEXT,
    default="##",
    metavar="STR",
    help="Before a piece inside a word.",
)
@click.option(
    "--alphabet-order",
    type=click.Choice(ALPHABET_ORDERS),
    default="sorted",
    help="Order of the alphabet's ids.",
)
@click.option(
    "--round-budget",
    type=Share(min_open=True),
    default=1.0,
    show_default="1, all",
    metavar="SHARE",
    help="Of all split tokens, held at once.",
)
@click.option(
    "--driver-memory",
    type=Size(LEAST_DRIVER_MEMORY),
    default="4GiB",
    metavar="SIZE",
    help="What the rounds may take; less: more rounds, the same result.",
)
@click.option(
    "--work-dir",
    type=PLACE,
    metavar="DIR",
    show_default="DIR of --output and .work",
    help="What a training killed goes on from.",
)
@click.option("--keep-work", is_flag=True, help="Keep it when done.")
@click.option("--overwrite", is_flag=True, help="Replace a tokenizer that was trained otherwise.")
@GROUP_OPTIONS
@WORKER_MEMORY
@TEXT_COLUMN
@TEXT_OPTIONS
@JOB_OPTIONS
@click.pass_obj
def train(beam_args: list[str], /, inputs: tuple[str, ...], **options: Any) -> None:
    """Train a WordPiece vocabulary on INPUT and write a tokenizer directory.

    INPUT is as for count; or give a word table by --word-counts.
    """
    from pipelines.commands.train import run_train

    run_train(inputs, beam_args, **options)


@wordpiece.command(cls=JobCommand, epilog=PASSED_ON)
@INPUTS
@OUTPUT
@click.option(
    "--tokenizer",
    required=True,
    type=PLACE,
    metavar="DIR",
    help="Tokenizer directory, or a vocab.txt.",
)
@TEXT_COLUMN
@click.option(
    "--text-pair-column", type=TEXT, metavar="NAME", help="Column of second texts: pairs."
)
@click.option(
    "--keep-columns",
    type=TEXT,
    metavar="LIST",
    show_default="all; with --stride not the texts",
    help='Of the input; "" for none, as always with --pack.',
)
@click.option(
    "--columns",
    type=TEXT,
    default="",
    metavar="LIST",
    help="Beside input_ids: attention_mask, token_type_ids, special_tokens_mask, offset_mapping,"
    " word_ids, num_tokens.",
)
@click.option(
    "--add-special-tokens/--no-special-tokens",
    default=True,
    show_default="yes",
    help="Put [CLS] and [SEP] around texts.",
)
@click.option(
    "--split-special-tokens",
    is_flag=True,
    help="Take special tokens written in texts as plain text: for untrusted data, which could"
    " otherwise smuggle in a [SEP] or [MASK].",
)
@_count_option("--max-length", None, MOST_TOKENS, "Tokens in a row; longer rows are cut.")
@click.option(
    "--truncation",
    type=click.Choice(TRUNCATIONS),
    default=TRUNCATIONS[0],
    help="Which text of a pair is cut.",
)
@click.option(
    "--stride",
    type=Whole(MOST_TOKENS, least=0),
    metavar="INT",
    help="Make further rows of what is cut, so many tokens overlapping.",
)
@click.option("--padding", is_flag=True, help="Fill rows up to --max-length.")
@click.option(
    "--pack", is_flag=True, help="Fill rows of exactly --max-length from consecutive texts."
)
@click.option("--id-type", type=click.Choice(ID_TYPES), default=ID_TYPES[0], help="Of input_ids.")
@click.option(
    "--unk-scope",
    type=click.Choice(UNK_SCOPES),
    default=UNK_SCOPES[0],
    help="What becomes [UNK].",
)
@TOKENIZERS_LOWERCASE
@click.option(
    "--compression",
    type=click.Choice(["zstd", "snappy", "gzip", "lz4", "brotli", "none"]),
    default="zstd",
    help="Of the shards.",
)
@click.option(
    "--on-error",
    type=click.Choice(ON_ERROR),
    default=ON_ERROR[0],
    help="If a shard cannot be read: exit with 1, or put it into _errors/.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@JOB_OPTIONS
@click.pass_obj
def encode(beam_args: list[str], /, inputs: tuple[str, ...], **options: Any) -> None:
    """Encode INPUT into Parquet shards of token ids, one for each input file.

    A rerun keeps the shards that are finished. A shard that cannot be read stops no other.
    """
    from pipelines.commands.encode import run_encode

    run_encode(inputs, beam_args, **options)


@wordpiece.command(epilog="After --, a TEXT may begin with a dash.")
@click.argument("tokenizer", type=PLACE)
@click.argument("texts", nargs=-1, metavar="[TEXT...]")
@click.option(
    "--add-special-tokens/--no-special-tokens",
    default=True,
    show_default="yes",
    help="Put [CLS] and [SEP] around each text.",
)
@click.option(
    "--split-special-tokens",
    is_flag=True,
    help="Take special tokens written in a text as plain text.",
)
@click.option(
    "--unk-scope",
    type=click.Choice(UNK_SCOPES),
    default=UNK_SCOPES[0],
    help="What becomes [UNK] where no token fits.",
)
@TOKENIZERS_LOWERCASE
@click.option("--json", "as_json", is_flag=True, help="For scripts: a JSON object a line.")
@click.option("--debug", is_flag=True, help="Tracebacks.")
@click.pass_obj
def inspect(more_texts: list[str], /, texts: tuple[str, ...], debug: bool, **options: Any) -> None:
    """Show how TEXT is cut into tokens, and why a word is [UNK].

    TOKENIZER: a tokenizer directory, or a vocab.txt. TEXT: - or none for the lines of standard
    input.
    """
    from pipelines.commands.inspect import run_inspect

    run_inspect([*texts, *more_texts], **options)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command. Exit status: 0 done, 1 the job failed, 2 the call or config is wrong, 130
    interrupted."""
    if argv is None:  # this process is the command's own
        streams.use_utf8()
        streams.prepare()
        # NumPy comes with Beam, and here nothing of it is computed: its threads take memory, and
        # where they cannot be had it writes six lines and interrupts the process.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if sys.platform == "linux":  # elsewhere Arrow's wheels may not have it
            os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", ARROW_MEMORY)
    args = list(sys.argv[1:] if argv is None else argv)
    beam_args: list[str] = []
    if "--" in args:
        place = args.index("--")
        args, beam_args = args[:place], args[place + 1 :]
    debug = "--debug" in args
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


def _leave(status: int) -> NoReturn:
    """Ends the process at once. Python's own way out takes all libraries apart, for 0.2 s; and if
    threads of a job that failed are still at work in the kernel or in Arrow, it can abort."""
    with suppress(Exception):  # what cannot be written has been said
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _silence_libraries() -> None:
    """Nothing of the libraries beneath reaches the terminal, nor that one of their threads ended
    with an exception: threads of this project hand theirs on."""
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
    """What to say of an error that came of too little memory, if this one did: Beam makes other
    errors of those of its threads, and libraries that cannot be loaded say so in their own way."""
    seen: BaseException | None = error
    while seen is not None:
        message = one_line(seen)
        if isinstance(seen, MemoryError) or LACKS_MEMORY.search(message):
            return f"not enough memory: {message}".removesuffix(": MemoryError")
        seen = seen.__cause__ or seen.__context__
    return None


if __name__ == "__main__":
    main()
