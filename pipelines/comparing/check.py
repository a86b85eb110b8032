"""`check`: the ids and the speed of a tokenizer next to the library that it belongs to.

It reads a sample of the texts and encodes it in this process, on one core, without Beam.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, TypeVar

import pyarrow as pa

from pipelines.comparing.options import CheckOptions
from pipelines.io import inputs
from pipelines.io.inputs import InputFile
from pipelines.progress import Progress, add_metrics
from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core.errors import (
    DifferentIdsError,
    InputError,
    collected_warnings,
    is_fault,
    one_line,
    opt,
)
from wordpiece_core.option_types import path, paths
from wordpiece_core.summary import Summarized
from wordpiece_core.tokenizer.original_library import OriginalLibrary, original_library
from wordpiece_core.visible import LONGEST, visible

BYTES_AT_ONCE = 2_000_000  # of texts, approximately
MOST_FILES = 100  # that a sample is drawn from
PARALLELISM = "TOKENIZERS_PARALLELISM"
SPEED_BYTES = 100_000  # the speed on smaller samples is not shown
LONGEST_PATH = 4_096
SHOWN_IDS = 5  # ids that are shown before the first other id, and from it on
Result = TypeVar("Result")


@dataclass(frozen=True)
class Difference:
    """The first row with other ids.

    Attributes:
        row: Number of the row in the file, from 0.
        position: Place of the first other id.
    """

    file: str
    row: int
    text: str
    position: int
    ids: Sequence[int]
    library_ids: Sequence[int]

    def lines(self, library: str) -> list[str]:
        """Return lines that show the difference."""
        place = f"row {self.row}, id {self.position}"
        lines = [
            f"first difference: {visible(self.file, LONGEST_PATH)}, {place}",
            f"  text: {visible(self.text, 4 * LONGEST)}",
        ]
        for name, ids in (("wordpiece", self.ids), (library, self.library_ids)):
            start = max(self.position - SHOWN_IDS, 0)
            some = ids[start : self.position + SHOWN_IDS]
            before, after = "... " * (start > 0), " ..." * (self.position + SHOWN_IDS < len(ids))
            lines.append(f"  {name}: {before}{' '.join(map(str, some))}{after}")
        return lines


@dataclass(frozen=True, repr=False)
class Checked(Summarized):
    """The result of a check.

    >>> import pipelines
    >>> trained = pipelines.train("corpus/", output="tokenizer", vocab_size=14)
    >>> pipelines.check("tokenizer/tokenizer.json", on="corpus/").differing_rows
    0

    Attributes:
        rows: Number of rows compared, without null texts.
        differing_rows: Number of rows with other ids.
        bytes: Bytes of their texts in UTF-8.
        tokens: Number of ids.
        encoder: "kernel", or "library" for a tokenizer that the library encodes here too.
        library: Name and version of the library.
        mb_per_second: Megabytes of text encoded per second on one core.
        library_mb_per_second: The same for the library.
        first_difference: None if all ids are equal.
    """

    rows: int
    differing_rows: int
    bytes: int
    tokens: int
    encoder: str
    library: str
    mb_per_second: float
    library_mb_per_second: float
    first_difference: Difference | None
    more_warnings: Sequence[str] = ()

    def summary(self) -> dict[str, Any]:
        """Return the object that `wordpiece check --json` prints."""
        return {name: value for name, value in asdict(self).items() if name != "more_warnings"}

    def lines(self) -> list[str]:
        """Return the summary that `wordpiece check` prints."""
        is_small = self.bytes < SPEED_BYTES
        size = f"{self.bytes:,} bytes" if is_small else f"{self.bytes / 1e6:,.1f} MB"
        lines = [
            f"rows compared: {self.rows:,} ({size} of text, {self.tokens:,} ids)",
            f"rows that differ: {self.differing_rows:,}",
        ]
        if self.first_difference is not None:
            lines += self.first_difference.lines(self.library)
        by = "the kernel" if self.encoder == "kernel" else "the library tokenizers"
        if is_small:
            return [*lines, f"encoded by {by} (the sample is too small to measure speed)"]
        return [
            *lines,
            f"encoded by {by}: {self.mb_per_second:,.1f} MB/s on one core",
            f"{self.library}: {self.library_mb_per_second:,.1f} MB/s on one core",
        ]

    def warnings(self) -> list[str]:
        """Return the warnings, one sentence each."""
        return list(self.more_warnings)

    @property
    def failure(self) -> DifferentIdsError | None:
        """The error that ends the command, if a row has other ids."""
        if not self.differing_rows:
            return None
        return DifferentIdsError(
            f"{self.differing_rows:,} of {self.rows:,} rows have other ids than {self.library}"
            " gives; please report it with the tokenizer and the first of these texts"
        )


def check_job(options: CheckOptions, progress: Progress) -> Checked:
    """Encode a sample natively and with the library of the tokenizer, and compare every id.

    Raises InputError, StorageError, and OptionError if the library is not installed.
    """
    with collected_warnings() as notable:
        place = path(options.tokenizer)
        tokenizer = options.load(place)
        library = original_library(place, tokenizer.spec, options.encoding)
    files = inputs.resolve(paths(options.on), quoting=not options.no_quoting)
    comparison = _Comparison(tokenizer, library)
    with progress.stage("check", "bytes", options.sample), _one_thread():
        for file, first, texts in _sample(files, options):
            comparison.add(file, first, texts)
    if not comparison.rows:
        raise InputError(f"no text in the sample; check {opt.text_column}")
    return comparison.result([str(warning) for warning in notable])


def _sample(
    files: Sequence[InputFile], options: CheckOptions
) -> Iterator[tuple[str, int, pa.Array]]:
    """Read about `sample` bytes of texts, the same number from the beginning of each file. Yields
    the file, the number of the first row in it, and the texts."""
    chosen = files[:: -(-len(files) // MOST_FILES)]
    left = options.sample
    for number, file in enumerate(chosen):
        wanted, row = -(-left // (len(chosen) - number)), 0
        for texts in _texts(file, options.text_column):
            if wanted <= 0:
                break
            step = max(len(texts) * min(wanted, BYTES_AT_ONCE) // max(texts.nbytes, 1), 1)
            for start in range(0, len(texts), step):
                some = texts.slice(start, step)
                yield file.path, row + start, some
                wanted, left = wanted - some.nbytes, left - some.nbytes
                if wanted <= 0:
                    break
            row += len(texts)


def _texts(file: InputFile, text_column: str) -> Iterator[pa.Array]:
    for part in inputs.plan([file], text_column):
        for batch in inputs.read_texts(part, text_column):
            yield batch.texts


class _Comparison:
    """Sums of a check while it runs."""

    def __init__(self, tokenizer: Tokenizer, library: OriginalLibrary) -> None:
        self.tokenizer, self.library = tokenizer, library
        self.options = EncodingOptions(add_special_tokens=library.adds_special_tokens)
        self.rows = self.differing_rows = self.bytes = self.tokens = 0
        self.seconds = self.library_seconds = 0.0
        self.first: Difference | None = None

    def add(self, file: str, first_row: int, texts: pa.Array) -> None:
        """Compare the ids of texts."""
        numbers = [i for i, valid in enumerate(texts.is_valid().to_pylist()) if valid]
        texts = texts.drop_null()
        plain = texts.to_pylist()
        size = sum(len(text.encode()) for text in plain)
        ours, seconds = _timed(lambda: self.tokenizer.encode_table(texts, options=self.options))
        try:
            encoded, library_seconds = _timed(lambda: self.library.encode(plain))
            theirs = self.library.ids(encoded)
        except BaseException as error:  # of any library, or a panic
            if not is_fault(error):
                raise
            raise InputError(
                f"{file}, rows from {first_row}: {self.library.name} cannot encode the text"
                f" ({one_line(error)})"
            ) from error
        ids = ours.table["input_ids"].to_pylist()
        for row, (own, other) in enumerate(zip(ids, theirs, strict=True)):
            if own != other:
                self.differing_rows += 1
                self.first = self.first or Difference(
                    file, first_row + numbers[row], plain[row], _position(own, other), own, other
                )
        self.rows, self.bytes = self.rows + len(plain), self.bytes + size
        self.tokens += ours.tokens
        self.seconds, self.library_seconds = (
            self.seconds + seconds,
            self.library_seconds + library_seconds,
        )
        add_metrics(bytes=size, rows=len(plain))

    def result(self, more_warnings: Sequence[str]) -> Checked:
        """Return the result."""
        return Checked(
            self.rows,
            self.differing_rows,
            self.bytes,
            self.tokens,
            "kernel" if self.tokenizer.spec.library is None else "library",
            self.library.name,
            self.bytes / 1e6 / max(self.seconds, 1e-9),
            self.bytes / 1e6 / max(self.library_seconds, 1e-9),
            self.first,
            more_warnings,
        )


def _position(ids: Sequence[int], others: Sequence[int]) -> int:
    pairs = enumerate(zip_longest(ids, others))
    return next(place for place, (own, other) in pairs if own != other)


def _timed(call: Callable[[], Result]) -> tuple[Result, float]:
    started = time.perf_counter()
    result = call()
    return result, time.perf_counter() - started


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep `tokenizers` on one thread."""
    before = os.environ.get(PARALLELISM)
    os.environ[PARALLELISM] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[PARALLELISM]
        else:
            os.environ[PARALLELISM] = before
