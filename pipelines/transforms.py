"""Transforms for your own Beam pipelines: texts to counts of words, and texts to ids.

Elements are texts, mappings, rows (`beam.Row`, named tuples) or Arrow record batches. They are
processed in batches. Windows and timestamps are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import NonMergingWindowFn
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.comparing.options import TokenizerOptions
from pipelines.counting.options import CountOptions
from pipelines.counting.steps import PARTITION_SHARE_BYTES, SortedWords
from pipelines.encoding.options import ShardOptions, TokenizerChoice
from pipelines.encoding.shard_encoder import check_fit
from pipelines.files.batches import from_bytes, to_bytes
from pipelines.running.figures import add_metrics
from wordpiece_core import EncodingOptions, TextOptions, Tokenizer, _kernel
from wordpiece_core.errors import InputError, OptionError, one_line, shown

LEAST_PARTITIONS = 64  # of words, by hash; no result depends on their number
BATCH_ROWS, BATCH_BYTES = 4096, 1 << 20  # of elements that are processed together
MOST_WINDOWS = 16  # that a bundle holds counts of at the same time
COUNTS_AT_ONCE = 65_536  # of counted words that become elements


class CountWords(beam.PTransform):
    """Counts words: from texts to (word, count) pairs, one for each distinct word of a window.

    Args:
        text_column: The column or key that holds the text, in mappings, rows and batches.
        worker_memory: Bytes for the tables of one worker.
        **text: The options of `wordpiece_core.TextOptions`: how text becomes words.

    Raises:
        OptionError: For a wrong option.
        InputError: While the pipeline runs, for an element without the column or without text.

    >>> with beam.Pipeline() as pipeline:
    ...     texts = pipeline | beam.Create([{"text": "a rose is a rose"}])
    ...     rows = texts | CountWords() | beam.combiners.ToList() | beam.Map(sorted)
    ...     done = rows | beam.Map(print)
    [('a', 2), ('is', 1), ('rose', 2)]
    """

    def __init__(
        self, text_column: str = "text", *, worker_memory: int | str = "512MiB", **text: Any
    ) -> None:
        super().__init__()
        self.options = CountOptions(
            text_column=text_column,
            worker_memory=worker_memory,  # type: ignore[arg-type]
            text=TextOptions.of(**text),
        )

    def expand(self, texts: beam.PCollection) -> beam.PCollection:
        """Pairs of a word (str) and its count (int). OptionError for windows that merge, such as
        sessions: those of a word would depend on which words are counted together."""
        if not isinstance(texts.windowing.windowfn, NonMergingWindowFn):
            raise OptionError(
                "CountWords: windows that merge, such as sessions, have no counts of their own;"
                " give fixed or sliding windows"
            )
        return (
            texts
            | "count" >> beam.ParDo(_CountTexts(self.options))
            | "group" >> beam.GroupByKey()
            | "merge" >> beam.FlatMap(_merged).with_output_types(tuple[str, int])
        )


@beam.typehints.with_output_types(tuple[int, bytes])
class _CountTexts(beam.DoFn):
    """Counts the words of elements, by partition, in one table for each window."""

    def __init__(self, options: CountOptions) -> None:
        self.options = options
        self.memory = options.worker_memory // MOST_WINDOWS  # of the table of a window
        self.partitions = max(self.memory // PARTITION_SHARE_BYTES, LEAST_PARTITIONS)

    def start_bundle(self) -> None:
        self.counters: dict[Any, _kernel.WordCounter] = {}
        self.waiting: dict[Any, list[str | None]] = {}
        self.size = self.rows = 0

    def process(self, element: Any, window: Any = beam.DoFn.WindowParam) -> Iterator[WindowedValue]:
        texts = _texts(element, self.options.text_column)
        if isinstance(texts, pa.Array):
            yield from self._count(window, texts)
            return
        self.waiting.setdefault(window, []).extend(texts)
        self.size += sum(map(_size, texts))
        self.rows += len(texts)
        if self.size > BATCH_BYTES or self.rows > BATCH_ROWS:
            yield from self._count_waiting()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from self._count_waiting()
        for window, counter in self.counters.items():
            yield from self._taken(window, counter)

    def _count_waiting(self) -> Iterator[WindowedValue]:
        waiting, self.waiting, self.size, self.rows = self.waiting, {}, 0, 0
        for window, texts in waiting.items():
            yield from self._count(window, _array(texts, self.options.text_column))

    def _count(self, window: Any, texts: pa.Array) -> Iterator[WindowedValue]:
        add_metrics(rows=len(texts))
        if window not in self.counters:
            if len(self.counters) >= MOST_WINDOWS:
                oldest = next(iter(self.counters))
                yield from self._taken(oldest, self.counters.pop(oldest))
            text = self.options.text.for_kernel()
            self.counters[window] = _kernel.WordCounter(text, most_bytes=self.memory)
        counter = self.counters[window]
        while len(texts):
            texts = texts[counter.count(texts, None) :]
            if counter.is_full:
                yield from self._taken(window, counter)

    def _taken(self, window: Any, counter: _kernel.WordCounter) -> Iterator[WindowedValue]:
        """The counts of a window by partition, which empties the counter."""
        for partition, _, total, words in counter.take(self.partitions):
            add_metrics(words=total)
            yield WindowedValue((partition, to_bytes(words)), window.max_timestamp(), [window])


def _merged(partition: tuple[int, Iterable[bytes]]) -> Iterator[tuple[str, int]]:
    """The words of a partition with the sums of their counts."""
    sums = SortedWords()
    for table in partition[1]:
        sums.add(from_bytes(table))
    words = sums.merge()
    for start in range(0, len(words), COUNTS_AT_ONCE):
        rows = words.slice(start, COUNTS_AT_ONCE)
        yield from zip(rows["word"].to_pylist(), rows["count"].to_pylist(), strict=True)


class EncodeTexts(beam.PTransform):
    """Adds to each element the ids of its text. A mapping gets the key `input_ids`, a row or a
    record batch gets a column of that name, and a plain text becomes a mapping of text and ids.
    With a stride, one element can become several.

    The tokenizer is sent to the workers with the pipeline, so they need no access to its files. For
    a vocabulary of 30,522 tokens that is about half a megabyte.

    Args:
        tokenizer: A tokenizer directory, a file of one, a name on the Hub, or a
            `wordpiece_core.Tokenizer`.
        text_column: The column or key that holds the text.
        text_pair_column: The column or key that holds the second text, for pairs.
        lowercase: Overrides what a tokenizer directory says.
        unk_scope: What becomes [UNK] where no token fits: the whole "word", or one "character".
        **encoding: The options of `wordpiece_core.EncodingOptions`.

    Raises:
        OptionError: For a wrong option, and for options that do not fit the tokenizer.
        InputError: For a tokenizer that cannot be read; while the pipeline runs, for an element
            without the column or without text, or that has a column `input_ids` already.

    >>> tokenizer = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"])
    >>> with beam.Pipeline() as pipeline:
    ...     texts = pipeline | beam.Create([{"text": "unaffordable"}])
    ...     done = texts | EncodeTexts(tokenizer, max_length=128) | beam.Map(print)
    {'text': 'unaffordable', 'input_ids': [1, 3, 4, 5, 2]}
    """

    def __init__(
        self,
        tokenizer: str | Tokenizer,
        text_column: str = "text",
        *,
        text_pair_column: str | None = None,
        lowercase: bool | None = None,
        unk_scope: str = "word",
        **encoding: Any,
    ) -> None:
        super().__init__()
        reading = TokenizerOptions(lowercase=lowercase)
        choice = TokenizerChoice(tokenizer=tokenizer, reading=reading, unk_scope=unk_scope)
        self.options = ShardOptions(
            text_column=text_column,
            text_pair_column=text_pair_column,
            encoding=EncodingOptions.of(**encoding),
        )
        self.tokenizer = choice.load()
        check_fit(self.options, self.tokenizer)

    def expand(self, texts: beam.PCollection) -> beam.PCollection:
        """The elements with `input_ids` and the other columns that were asked for."""
        return texts | "encode" >> beam.ParDo(_EncodeTexts(self.tokenizer, self.options))


class _EncodeTexts(beam.DoFn):
    """Encodes many elements at once. Each keeps its own window and timestamp."""

    def __init__(self, tokenizer: Tokenizer, options: ShardOptions) -> None:
        self.tokenizer, self.encoding = tokenizer, options.encoding
        self.columns = [c for c in (options.text_column, options.text_pair_column) if c is not None]

    def start_bundle(self) -> None:
        self.waiting: list[tuple[Any, Timestamp, Any, Any]] = []
        self.texts: list[list[str | None]] = [[] for _ in self.columns]
        self.size = 0

    def process(
        self,
        element: Any,
        timestamp: Timestamp = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        if isinstance(element, str) and len(self.columns) > 1:
            raise InputError("an element is a text alone; a pair needs two columns")
        found = [_texts(element, column) for column in self.columns]
        if isinstance(found[0], pa.Array):
            yield self._batch_with_ids(element, found)
            return
        self.waiting.append((element, timestamp, window, pane))
        for texts, more in zip(self.texts, found, strict=True):
            texts.extend(more)
            self.size += _size(more[0])
        if self.size > BATCH_BYTES or len(self.waiting) >= BATCH_ROWS:
            yield from self._encode_waiting()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from self._encode_waiting()

    def _encode_waiting(self) -> Iterator[WindowedValue]:
        arrays = [_array(*pair) for pair in zip(self.texts, self.columns, strict=True)]
        table, sources = self._encode(arrays)
        waiting = self.waiting
        self.start_bundle()
        for row, source in zip(table.to_pylist(), sources, strict=True):
            element, timestamp, window, pane = waiting[source]
            yield WindowedValue(_with(element, row, self.columns[0]), timestamp, [window], pane)

    def _batch_with_ids(self, batch: pa.RecordBatch, texts: list[Any]) -> pa.RecordBatch:
        table, sources = self._encode(texts)
        kept = batch if self.encoding.stride is None else batch.take(pa.array(sources, pa.int64()))
        _check_free(batch.schema.names, table.column_names)
        columns = [column.combine_chunks() for column in table.columns]
        names = [*batch.schema.names, *table.column_names]
        return pa.record_batch([*kept.columns, *columns], names=names)

    def _encode(self, texts: list[pa.Array]) -> tuple[pa.Table, Iterable[int]]:
        """The columns to add, and for each of their rows the number of the element it is of."""
        done = self.tokenizer.encode_batch(*texts, options=self.encoding)
        add_metrics(rows=len(done.table), tokens=done.tokens, unknown=done.unknown)
        if done.source_rows is None:
            return done.table, range(len(done.table))
        return done.table, done.source_rows.to_pylist()


def _texts(element: Any, column: str) -> Any:
    """The texts of an element: an Arrow array for a batch, else a list of one text. InputError if
    it has no such column."""
    if isinstance(element, str):
        return [element]
    if isinstance(element, pa.RecordBatch):
        names = element.schema.names
        if column in names:
            texts = element.column(column)
            return texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
    elif isinstance(element, Mapping):
        names = list(element)
        if column in element:
            return [element[column]]
    else:
        names = list(_fields(element))
        if column in names:
            return [getattr(element, column)]
    raise InputError(f"an element has no column {column!r}, only {shown(names)}")


def _fields(row: Any) -> dict[str, Any]:
    """The fields of a `beam.Row` or a named tuple."""
    if isinstance(row, beam.Row):
        return row.as_dict()  # type: ignore[no-any-return]
    if hasattr(row, "_asdict"):
        return row._asdict()  # type: ignore[no-any-return]
    kinds = "texts, mappings, rows or Arrow record batches"
    raise InputError(f"an element is a {type(row).__name__}; give {kinds}")


def _with(element: Any, added: dict[str, Any], column: str) -> Any:
    """An element with the added columns."""
    if isinstance(element, str):
        _check_free([column], added)
        return {column: element, **added}
    fields = element if isinstance(element, Mapping) else _fields(element)
    _check_free(fields, added)
    together = {**fields, **added}
    return together if isinstance(element, Mapping) else beam.Row(**together)


def _check_free(names: Iterable[str], added: Iterable[str]) -> None:
    for name in set(names) & set(added):
        raise InputError(f"an element has a column {name!r} already; rename it or leave it out")


def _size(text: Any) -> int:
    """The approximate size of a text in bytes."""
    return len(text) if isinstance(text, str) else 0


def _array(texts: list[Any], column: str) -> pa.Array:
    try:
        return pa.array(texts, pa.string())
    except (pa.ArrowException, TypeError, UnicodeError) as error:
        bad = [text for text in texts if not isinstance(text, str | bytes | None)]
        reason = f"{shown(bad[0])} is not a text" if bad else f"not texts ({one_line(error)})"
        raise InputError(f"column {column!r}: {reason}") from error
