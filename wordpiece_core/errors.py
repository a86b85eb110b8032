"""The errors that users see. Each is one line that names the place and says what to do."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from reprlib import Repr


class _Short(Repr):
    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() > 4096:  # Python writes at most 4,300 digits
            return "a number of thousands of digits"
        return super().repr_int(x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


class _OptionNames:
    """Placeholders for the names of options in a message.

    Each caller reads the names as they write them, for example `--max-length` on the command line.

    >>> str(OptionError(f"{opt.padding}: also set {opt.max_length}"))
    'padding: also set `max_length`'
    >>> spelled(f"remove {opt['padding=False']}", lambda name, value: f"--no-{name}")
    'remove --no-padding'
    """

    def __getattr__(self, name: str) -> str:
        return self[name]

    def __getitem__(self, name: str) -> str:
        return f"\ufdd0{name}\ufdd1"  # noncharacters, which no message has otherwise


opt = _OptionNames()
Spelling = Callable[[str, str], str]
"""From the name of an option, and "=False" or an empty text, to what a caller calls it."""
_PLACEHOLDER = re.compile("\ufdd0(\\w+)((?:=False)?)\ufdd1")
_WRITTEN = re.compile(r"`(\w+)((?:=False)?)`")


def spelled(message: str, spell: Spelling | None = None) -> str:
    """Return a message with the names of options spelled by a function. Without one they are in
    backquotes, except at the beginning of the message."""

    def written(found: re.Match[str]) -> str:
        if spell is not None:
            return spell(found[1], found[2])
        name = found[1] + found[2]
        return name if found.start() == 0 else f"`{name}`"

    return _PLACEHOLDER.sub(written, message)


def unspelled(message: str) -> str:
    """Return a message that was stored or sent as text with placeholders for the names in
    backquotes."""
    return _WRITTEN.sub(lambda found: opt[found[1] + found[2]], message)


class WordpieceError(Exception):
    """The base class of all errors that this project raises on purpose.

    >>> from wordpiece_core import Tokenizer
    >>> try:
    ...     Tokenizer(["a"])
    ... except WordpieceError as error:
    ...     print(error)
    vocab: no [UNK] token; add a line [UNK]

    `exit_status` is what the command exits with. A message has no line breaks: an error in a Beam
    worker reaches the driver as the text of a traceback, and is recognized there by a line that
    begins with the name of its class.
    """

    exit_status = 1
    details: Sequence[str] = ()
    """Messages about the parts of a job that have failed, if there are several."""

    def __init__(self, message: str = "") -> None:
        self.template = message.replace("\n", "\\n").replace("\r", "\\r")
        super().__init__(spelled(self.template))

    def spell(self, spell: Spelling) -> None:
        """Spell the names of options in the message by a function, as `spelled` does."""
        self.args = (spelled(self.template, spell),)

    @staticmethod
    def from_traceback(text: str) -> WordpieceError | None:
        """Return the last error of this project in the text of a traceback, or None. Names of
        options are placeholders again."""
        kinds = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _kinds(WordpieceError)}
        for line in reversed(text.split("\n")):
            name, _, message = line.strip().partition(": ")
            if name in kinds:
                return kinds[name](unspelled(message))
        return None


def _kinds(kind: type[WordpieceError]) -> Iterator[type[WordpieceError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


class InputError(WordpieceError, ValueError):
    """Bad data or a bad file. The job fails (exit status 1).

    `row_group`: the number of the bad row group of a Parquet file, if it is known.
    """

    row_group: int | None = None


class SpecialTokenError(InputError):
    """A text has a special token, and `special_tokens_in_text` is "error". `text`: its number."""

    text = 0


class ColumnError(InputError):
    """A column is missing, or it has a type that the option which names it does not accept."""


class ChangedError(InputError):
    """A file has changed since the job began."""


class StorageError(WordpieceError):
    """Storage failed while reading or writing, which says nothing about the data. The step is
    tried again; if that does not help, the job fails (exit status 1).

    `lasting`: whether waiting is useless, as with a full disk. `path`: the file or directory, if it
    is known.
    """

    lasting = False
    path: str | None = None


class OutputError(WordpieceError):
    """A job must not write to this place: it holds something else, or another run is writing
    there (exit status 1)."""


class DifferentIdsError(WordpieceError):
    """`wordpiece check` found rows with other ids than the library gives (exit status 1)."""


class OptionError(WordpieceError, ValueError):
    """A wrong argument or a wrong configuration (exit status 2)."""

    exit_status = 2


def is_fault(error: BaseException) -> bool:
    """True for an error of a library, including a panic of one in Rust, not for an interrupt."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def one_line(error: BaseException) -> str:
    """The message of `error` on one line, without the repetitions of Arrow's I/O errors, and
    without what Google's library says about itself."""
    text = " ".join(str(error).split())
    google = _GOOGLE.search(text)
    if google:
        return f"{google[1]}: {google[2]}"
    return text.rsplit("Detail: ", 1)[-1] or type(error).__name__


_GOOGLE = re.compile(
    r"google::cloud::Status\((\w+): (?:[^:]* with a last message of )?(.*?)(?: error_info=.*)?\)$"
)


def short(value: object) -> str:
    """A value as text of at most 80 characters, for messages."""
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def shown(value: object) -> str:
    """A value as Python writes it, shortened, however large or deeply nested it is."""
    return _SHORT.repr(value)


class TokenizerWarning(UserWarning):
    """A tokenizer is taken in a way that users should know of."""

    @property
    def fact(self) -> str:
        """The message without what to do if that is wrong."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.fact


@contextmanager
def collected_warnings() -> Iterator[list[TokenizerWarning]]:
    """Collect the tokenizer warnings of a block, instead of showing them, in the list that it
    yields. The list is filled when the block ends without an error."""
    found: list[TokenizerWarning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TokenizerWarning)
        yield found
    found += [w.message for w in caught if isinstance(w.message, TokenizerWarning)]


class SkippedFilesWarning(UserWarning):
    """Directories or globs hold files that are not read. The arguments are their paths, and the
    reason unless it is their endings."""

    def __str__(self) -> str:
        paths, reason = [*self.args, "because of unknown endings"][:2]
        what = "1 file is" if len(paths) == 1 else f"{len(paths):,} files are"
        return f"{what} not read, {reason}: {paths[0]}{', ...' * (len(paths) > 1)}"
