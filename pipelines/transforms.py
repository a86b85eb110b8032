"""Transforms for your own Beam pipelines: texts to word counts, and texts to token ids. Beam's own
transforms read and write.

Elements are texts, mappings, rows (`beam.Row`, named tuples), or Arrow record batches and tables.
They are processed in batches. Windows and timestamps are kept. If Beam knows the columns of the
elements, it also knows the columns of the results.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, Optional, Self, get_args

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import NonMergingWindowFn
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.comparing.options import TokenizerPlace
from pipelines.counting.options import CountingOptions, usual_special_tokens
from pipelines.counting.steps import SortedWords
from pipelines.encoding.columns import check_fit
from pipelines.encoding.options import ShardOptions, TokenizerOptions
from pipelines.io.batches import from_bytes, to_bytes
from pipelines.io.columns import check_once, path_of, picked
from pipelines.io.schemas import taken
from pipelines.progress import add_metrics
from wordpiece_core import EncodingOptions, TextOptions, Tokenizer, _kernel
from wordpiece_core.declared import Form, Ge, Options, refusal, with_options
from wordpiece_core.errors import InputError, OptionError, one_line, opt, shown
from wordpiece_core.option_types import Column, Count, WorkerMemory, path
from wordpiece_core.options import SpecialTokens
from wordpiece_core.tokenizer.models import AddedToken
from wordpiece_core.tokenizer.spec import tokens_in_texts
from wordpiece_core.uri import absolute

MIN_PARTITIONS = 64  # of words, by hash; no result depends on their number
BATCH_BYTES = 1 << 20  # bytes of texts that are processed together
COUNTS_AT_ONCE = 65_536  # counted words that become elements together
ROW_TYPES: dict[str, Any] = {
    **dict.fromkeys(("attention_mask", "token_type_ids", "special_tokens_mask"), Sequence[np.int8]),
    "input_ids": Sequence[np.int32],
    "num_tokens": np.int32,
    "offset_mapping": Sequence[Sequence[np.int32]],
    "word_ids": Sequence[Optional[np.int32]],  # noqa: UP045, as Beam reads it
}
"""Types of the columns in Beam rows."""


def _error_handling(value: Any) -> Any:
    if not (isinstance(value, Mapping) and isinstance(value.get("output"), str)):
        raise refusal(value, 'a mapping such as {"output": NAME}')
    return value


@dataclass(frozen=True, kw_only=True)
class TextsOptions(Options):
    """Batching and error handling of a transform."""

    batch_size: Count = 4096
    """Maximum number of elements that are processed together."""
    error_handling: Annotated[Mapping[str, str], Form("", check=_error_handling)] | None = None
    """`{"output": NAME}` of Beam YAML; in Python use `with_exception_handling`."""


@dataclass(frozen=True, kw_only=True)
class CountWordsOptions(TextOptions, TextsOptions):
    """The options of `CountWords`."""

    text_column: Column = field(default="text", kw_only=False)
    """Column or key that holds the text, in mappings, rows and batches."""
    special_tokens: SpecialTokens | None = None
    """Tokens that split texts and are not counted, as tokenizers find them (default: BERT's five;
    <|endoftext|> for words that hold spaces)."""
    worker_memory: WorkerMemory = 512 << 20
    """Bytes for the tables of one worker."""


@dataclass(frozen=True, kw_only=True)
class EncodeTextsOptions(EncodingOptions, TokenizerOptions, TextsOptions):
    """The options of `EncodeTexts`."""

    tokenizer: TokenizerPlace = field(kw_only=False)
    """Tokenizer directory, tokenizer file, name on the Hub, or a `wordpiece_core.Tokenizer`."""
    text_column: Column = field(default="text", kw_only=False)
    """Column or key that holds the text."""
    text_pair_column: Column | None = None
    """Column or key that holds the second text, for pairs."""
    max_delay: Annotated[float, Ge(0.001)] | None = None
    """Maximum number of seconds that an element waits for others, across bundles, for streams with
    small bundles. Beam keeps the waiting elements as state. (By default elements wait until the end
    of their bundle, without state.)"""


class _Texts(beam.PTransform):
    """A transform of texts."""

    main_tag, dead_letter_tag, is_yaml = "good", "", False
    max_delay: float | None = None

    def _init(self, options: TextsOptions) -> None:
        """Keep the options. `error_handling` of Beam YAML names the output for bad elements."""
        super().__init__()
        self.batching = options.select(TextsOptions)
        if options.error_handling is not None:
            self.dead_letter_tag, self.is_yaml = options.error_handling["output"], True

    def with_exception_handling(self, main_tag: str = "good", dead_letter_tag: str = "bad") -> Self:
        """Return the transform with a second output for elements that cannot be processed, as
        Beam's own transforms have it: pairs of the element and of the class, the repr and the
        traceback of the error.

        >>> with beam.Pipeline() as pipeline:
        ...     texts = pipeline | beam.Create([{"text": "a"}, {"text": 5}])
        ...     words, bad = texts | CountWords().with_exception_handling()
        ...     done = bad | beam.Map(lambda pair: print(pair[0]))
        {'text': 5}
        """
        handling = copy(self)
        handling.main_tag, handling.dead_letter_tag = main_tag, dead_letter_tag
        return handling

    def _apply(
        self, texts: beam.PCollection, fn: _ProcessTexts, kind: Any, following: beam.PTransform
    ) -> Any:
        """Batch the elements, apply a function to the batches, and a transform to its results. With
        exception handling, return both outputs.

        Args:
            kind: Type of the results of the function, if it is known.
        """
        step = beam.ParDo(fn) if kind is None else beam.ParDo(fn).with_output_types(kind)
        batches = texts | "wrap" >> beam.ParDo(_Wrap()) | "batch" >> self._batch(fn.columns)
        if not self.dead_letter_tag:
            return batches | "process" >> step | "results" >> following
        main, bad = batches | "process" >> step.with_outputs(
            self.dead_letter_tag, main=self.main_tag
        )
        results = main | "results" >> following
        if self.is_yaml:  # Beam imports packages of its YAML, which may not be installed
            from apache_beam.yaml.yaml_errors import map_errors_to_standard_format

            errors = bad | "errors" >> map_errors_to_standard_format(texts.element_type)
            return {self.main_tag: results, self.dead_letter_tag: errors}
        outputs: Any = namedtuple("Outputs", [self.main_tag, self.dead_letter_tag])  # type: ignore[misc]
        return outputs(results, bad)  # type: ignore[call-arg]

    def _batch(self, columns: Sequence[str]) -> beam.PTransform:
        """Return Beam's transform that batches elements: within a bundle by the bytes of their
        texts, or across bundles by their number, with state and a timer."""
        number = self.batching.batch_size
        if self.max_delay is not None:
            return beam.BatchElements(
                min_batch_size=number,
                max_batch_size=number,
                max_batch_duration_secs=self.max_delay,
                record_metrics=False,
            )
        least = -(-BATCH_BYTES // number)
        return beam.BatchElements(
            min_batch_size=BATCH_BYTES,
            max_batch_size=BATCH_BYTES,
            element_size_fn=lambda one: max(_text_bytes(one.element, columns), least),
            record_metrics=False,
        )


class _Element(NamedTuple):
    """An element with its place in time."""

    element: Any
    timestamp: Timestamp
    window: Any
    pane: Any

    def windowed(self, value: Any) -> WindowedValue:
        """Return a value at the place of the element."""
        return WindowedValue(value, self.timestamp, [self.window], self.pane)


@beam.typehints.with_output_types(Any)
class _Wrap(beam.DoFn):
    """Keep the place of each element in its batch."""

    def process(
        self,
        element: Any,
        timestamp: Timestamp = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[_Element]:
        yield _Element(element, timestamp, window, pane)


class _ProcessTexts(beam.DoFn):
    """Process batches of elements.

    Attributes:
        columns: The columns with the texts.
        dead_letter_tag: Tag of the output for bad elements, if there is one.
    """

    def __init__(self, columns: list[str], dead_letter_tag: str) -> None:
        self.columns, self.dead_letter_tag = columns, dead_letter_tag

    def process(self, batch: list[_Element]) -> Iterator[Any]:
        tables, others = list[_Element](), list[_Element]()
        for one in batch:
            is_table = isinstance(one.element, pa.RecordBatch | pa.Table)
            (tables if is_table else others).append(one)
        yield from self._try(others)
        for one in tables:
            yield from self._try([one])

    def _try(self, elements: list[_Element]) -> Iterator[Any]:
        """Process elements together, or one by one if one of them is bad."""
        if not elements:
            return
        try:
            yield from self.process_texts(elements, self._arrays(elements))
        except InputError as error:
            if len(elements) == 1:
                yield self._failed(elements[0], error)
            else:
                for one in elements:
                    yield from self._try([one])

    def _arrays(self, elements: list[_Element]) -> list[pa.Array]:
        """Return the texts of elements by column."""
        if any(isinstance(one.element, str) for one in elements) and len(self.columns) > 1:
            raise InputError("the element has one text; a pair needs two columns")
        return [_array([_texts(one.element, name) for one in elements]) for name in self.columns]

    def _failed(self, one: _Element, error: InputError) -> TaggedOutput:
        """Return the element for the output of bad elements. Without one, raise the error."""
        error = InputError(f"element {shown(one.element)}: {error.template}")
        if not self.dead_letter_tag:
            raise error
        add_metrics(failures=1)
        reason = type(error), repr(error), traceback.format_exception(error)
        return TaggedOutput(self.dead_letter_tag, one.windowed((one.element, reason)))

    def process_texts(self, elements: list[_Element], texts: list[pa.Array]) -> Iterator[Any]:
        """Yield the results of elements. Raises InputError before any result if one is bad."""
        raise NotImplementedError


WordCount: Any = NamedTuple("WordCount", [("word", str), ("count", int)])
"""A word and its count: a Beam row, and a pair. (Beam cannot read the annotations of a class in a
module with `from __future__ import annotations`.)"""
beam.coders.registry.register_coder(WordCount, beam.coders.RowCoder)


class CountWords(_Texts):
    """Count the words of texts. Emits rows with `word` (str) and `count` (int), one for each
    distinct word of a window. `CountWordsOptions` has the arguments.

    Raises:
        OptionError: For a wrong option.
        InputError: While the pipeline runs, for an element without the column or without text;
            see `with_exception_handling`.

    >>> with beam.Pipeline() as pipeline:
    ...     texts = pipeline | beam.Create([{"text": "a rose is a rose"}])
    ...     rows = texts | CountWords() | beam.combiners.ToList() | beam.Map(sorted)
    ...     done = rows | beam.Map(lambda rows: print([tuple(row) for row in rows]))
    [('a', 2), ('is', 1), ('rose', 2)]
    """

    @with_options(CountWordsOptions)
    def __init__(self, options: CountWordsOptions) -> None:
        self._init(options)
        text = options.select(TextOptions)
        self.options = CountingOptions(
            text_column=options.text_column,
            worker_memory=options.worker_memory,
            limits=options.limits,
            **text.values(),
        )
        special_tokens = options.special_tokens
        if special_tokens is None:
            special_tokens = usual_special_tokens(text)
        self.split_at = tokens_in_texts(special_tokens)

    def expand(self, texts: beam.PCollection) -> Any:
        """Return the rows. Raises OptionError for merging windows, such as sessions: the windows
        of a word would depend on the words counted together."""
        if not isinstance(texts.windowing.windowfn, NonMergingWindowFn):
            raise OptionError(
                "CountWords: merging windows, such as sessions, are not supported; use fixed or"
                " sliding windows"
            )
        fn = _CountTexts(self.options, self.split_at, self.dead_letter_tag)
        return self._apply(
            texts, fn, tuple[int, bytes], _MergeCounts(self.options.limits.merged_bytes)
        )


class _MergeCounts(beam.PTransform):
    """Merge the counts of bundles by partition, and emit words.

    Args:
        least_bytes: See `SortedWords`.
    """

    def __init__(self, least_bytes: int) -> None:
        super().__init__()
        self.least_bytes = least_bytes

    def expand(self, counts: beam.PCollection) -> beam.PCollection:
        grouped = counts | "group" >> beam.GroupByKey()
        return grouped | "merge" >> beam.FlatMap(_merged, self.least_bytes).with_output_types(
            WordCount
        )


class _CountTexts(_ProcessTexts):
    """Count the words of elements by partition, in one table for each window of a bundle."""

    def __init__(
        self, options: CountingOptions, split_at: Sequence[AddedToken], dead_letter_tag: str
    ) -> None:
        super().__init__([options.text_column], dead_letter_tag)
        self.options = options
        self.split_at = [token.for_kernel() for token in split_at]
        limits = options.limits
        self.memory = options.worker_memory // limits.windows  # bytes of the table of a window
        self.partitions = max(self.memory // limits.partition_share_bytes, MIN_PARTITIONS)

    def start_bundle(self) -> None:
        self.counters: dict[Any, _kernel.WordCounter] = {}

    def finish_bundle(self) -> Iterator[Any]:
        for window, counter in self.counters.items():
            yield from self._take(window, counter)

    def process_texts(self, elements: list[_Element], texts: list[pa.Array]) -> Iterator[Any]:
        windows: dict[Any, list[int]] = {}
        for row, one in enumerate(elements):
            windows.setdefault(one.window, []).append(row)
        for window, rows in windows.items():
            yield from self._count(window, texts[0] if len(windows) == 1 else texts[0].take(rows))

    def _count(self, window: Any, texts: pa.Array) -> Iterator[WindowedValue]:
        if window not in self.counters:
            if len(self.counters) >= self.options.limits.windows:
                oldest = next(iter(self.counters))
                yield from self._take(oldest, self.counters.pop(oldest))
            text = self.options.for_kernel()
            self.counters[window] = _kernel.WordCounter(
                text, most_bytes=self.memory, split_at=self.split_at
            )
        counter = self.counters[window]
        rows = len(texts)
        while len(texts):
            texts = texts[counter.count(texts, None) :]
            if counter.is_full:
                yield from self._take(window, counter)
        add_metrics(rows=rows)

    def _take(self, window: Any, counter: _kernel.WordCounter) -> Iterator[WindowedValue]:
        """Emit the counts of a window by partition, and empty the counter."""
        for partition, _, total, words in counter.take(self.partitions):
            add_metrics(words=total)
            yield WindowedValue((partition, to_bytes(words)), window.max_timestamp(), [window])


def _merged(partition: tuple[int, Iterable[bytes]], least_bytes: int) -> Iterator[Any]:
    """Yield the words of a partition with the sums of their counts."""
    sums = SortedWords(least_bytes)
    for table in partition[1]:
        sums.add(from_bytes(table))
    words = sums.merge()
    for start in range(0, len(words), COUNTS_AT_ONCE):
        rows = words.slice(start, COUNTS_AT_ONCE)
        yield from map(WordCount, rows["word"].to_pylist(), rows["count"].to_pylist())


class EncodeTexts(_Texts):
    """Add the ids of its text to each element. A mapping gets the key `input_ids`; a row, a record
    batch or a table gets a column of that name; and a plain text becomes a row of text and ids.
    With a stride, one element can become several.

    Rows with a schema become rows with a schema, which `beam.io.WriteToParquet` or Beam SQL accept.

    Workers open a tokenizer that is given by its path or its name, so they must reach it: use a
    store on a cluster. A `wordpiece_core.Tokenizer` is sent to them with the pipeline. Its graph,
    which some runners limit to 10 MB, then grows by half a megabyte for a WordPiece vocabulary of
    30,522 tokens, and by 1.3 MB for a BPE vocabulary of 128,000 tokens.

    `EncodeTextsOptions` has the arguments.

    Raises:
        OptionError: For a wrong option, and for options that do not fit the tokenizer.
        InputError: For a tokenizer that cannot be read; while the pipeline runs, for an element
            without the column or without text, or that has a column `input_ids` already; see
            `with_exception_handling`.

    >>> tokenizer = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"])
    >>> with beam.Pipeline() as pipeline:
    ...     texts = pipeline | beam.Create([{"text": "unaffordable"}])
    ...     done = texts | EncodeTexts(tokenizer, max_length=128) | beam.Map(print)
    {'text': 'unaffordable', 'input_ids': [1, 3, 4, 5, 2]}
    """

    @with_options(EncodeTextsOptions)
    def __init__(self, options: EncodeTextsOptions) -> None:
        self._init(options)
        self.options = ShardOptions(
            text_column=options.text_column,
            text_pair_column=options.text_pair_column,
            limits=options.limits,
            **options.select(EncodingOptions).values(),
        )
        self.max_delay = options.max_delay
        self.source = _TokenizerSource.of(options)
        check_fit(self.options, self.source.tokenizer())

    def expand(self, texts: beam.PCollection) -> Any:
        """Return the elements with `input_ids` and the requested columns."""
        columns = [self.options.text_column, self.options.text_pair_column]
        named = [column for column in columns if column is not None]
        encoding = self.options.select(EncodingOptions)
        kind = _encoded_type(texts.element_type, named, encoding)
        fn = _EncodeTexts(self.source, encoding, named, self.dead_letter_tag)
        following = beam.Map(_same)
        following = following if kind is None else following.with_output_types(kind)
        return self._apply(texts, fn, kind, following)


def _same(element: Any) -> Any:
    """Return the element. Beam 2.77 loses results of `finish_bundle` in a step that takes batches,
    such as the first step of WriteToParquet, but not in a step that takes elements."""
    return element


@dataclass(frozen=True)
class _TokenizerSource:
    """A tokenizer that workers open by its path or name, or that is sent with the pipeline.

    Attributes:
        options: The path or name, and how it is loaded, unless it is sent.
        sent: The tokenizer, if it is sent.
        digest: Digest of the tokenizer, which workers check.
    """

    options: TokenizerOptions | None
    sent: Tokenizer | None
    digest: str

    @classmethod
    def of(cls, options: EncodeTextsOptions) -> _TokenizerSource:
        """Load the tokenizer. Local paths become absolute."""
        tokenizer, place = options.load_tokenizer(), options.tokenizer
        if isinstance(place, Tokenizer):
            return cls(None, tokenizer, tokenizer.digest)
        place = absolute(path(place)) if os.path.exists(path(place)) else path(place)
        loading = replace(options.select(TokenizerOptions), tokenizer=place)
        _loaded[loading] = tokenizer
        return cls(loading, None, tokenizer.digest)

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer, which each process loads once."""
        if self.options is None:
            assert self.sent is not None
            return self.sent
        with _loading:
            if self.options not in _loaded:
                _loaded[self.options] = self.options.load_tokenizer()
        tokenizer = _loaded[self.options]
        if tokenizer.digest != self.digest:
            raise InputError(
                f"{self.options.tokenizer}: the tokenizer of this worker differs from the tokenizer"
                " of the pipeline; use the same version on all machines"
            )
        return tokenizer


_loading = threading.Lock()
_loaded: dict[TokenizerOptions, Tokenizer] = {}


def _encoded_type(kind: Any, columns: list[str], options: EncodingOptions) -> Any:
    """Return the type of encoded elements, if the type of the elements is known.

    Raises:
        InputError: If the elements lack a column, or already have an added column.
        OptionError: For ids that rows cannot hold.
    """
    if kind in (pa.RecordBatch, pa.Table):
        return kind
    try:
        fields = [(columns[0], str)] if kind is str else named_fields_from_element_type(kind)
    except TypeError:  # the columns of mappings, for example, are not known
        return None
    names = [name for name, _ in fields]
    for missing in (column for column in columns if column not in names):
        raise InputError(f"EncodeTexts: no column {missing!r} in the rows, only {shown(names)}")
    if options.id_type == "uint16":
        raise OptionError(f"{opt.id_type}: uint16 is not a type of Beam rows; remove it")
    may_be_null = any(type(None) in get_args(of) for name, of in fields if name in columns)
    added = {name: ROW_TYPES[name] for name in ("input_ids", *options.columns)}
    _check_free(names, added)
    if may_be_null:
        added = {name: Optional[of] for name, of in added.items()}  # noqa: UP045, as above
    return RowTypeConstraint.from_fields([*fields, *added.items()])


class _EncodeTexts(_ProcessTexts):
    """Encode many elements together. Each keeps its own window and timestamp."""

    def __init__(
        self,
        source: _TokenizerSource,
        encoding: EncodingOptions,
        columns: list[str],
        dead_letter_tag: str,
    ) -> None:
        super().__init__(columns, dead_letter_tag)
        self.source, self.encoding = source, encoding

    def setup(self) -> None:
        self.tokenizer = self.source.tokenizer()

    def process_texts(self, elements: list[_Element], texts: list[pa.Array]) -> Iterator[Any]:
        done = self.tokenizer.encode_table(*texts, options=self.encoding)
        table, sources = done.table, range(len(done.table))
        if done.source_rows is not None:
            sources = done.source_rows.to_pylist()
        if isinstance(elements[0].element, pa.RecordBatch | pa.Table):
            made = [(elements[0], _with_columns(elements[0].element, table, done.source_rows))]
        else:
            found = zip(table.to_pylist(), sources, strict=True)
            made = [
                (elements[i], _with(elements[i].element, row, self.columns)) for row, i in found
            ]
        add_metrics(rows=len(table), tokens=done.tokens, unknown=done.unknown)
        yield from (one.windowed(value) for one, value in made)


def _with_columns(element: Any, added: pa.Table, sources: pa.ChunkedArray | None) -> Any:
    """Return a record batch or a table with the added columns."""
    _check_free(element.schema.names, added.column_names)
    table = pa.Table.from_batches([element]) if isinstance(element, pa.RecordBatch) else element
    if sources is not None:
        table = pa.table([taken(column, sources) for column in table.columns], schema=table.schema)
    for name in added.column_names:
        table = table.append_column(name, added[name])
    if isinstance(element, pa.Table):
        return table
    columns = [column.combine_chunks() for column in table.columns]
    return pa.record_batch(columns, schema=table.schema)


def _texts(element: Any, column: str) -> Any:
    """Return the texts of an element: an Arrow array for a batch, else one text. Raises InputError
    if it has no such column."""
    if isinstance(element, str):
        return element
    if isinstance(element, pa.RecordBatch | pa.Table):
        names = element.schema.names
        check_once(type(element).__name__, names, column)
        if path_of(element.schema, column):
            is_batch = isinstance(element, pa.RecordBatch)
            table = pa.Table.from_batches([element]) if is_batch else element
            texts = picked(table, column).combine_chunks()
            return texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
    else:
        fields = element if isinstance(element, Mapping) else _fields(element)
        names = list(fields)
        if column in fields:
            text = fields[column]
            if not isinstance(text, str | bytes | None):
                raise InputError(f"column {column!r}: {shown(text)} is not text")
            return text
    raise InputError(f"no column {column!r}, only {shown(names)}")


def _fields(row: Any) -> dict[str, Any]:
    """Return the fields of a `beam.Row` or a named tuple."""
    if isinstance(row, beam.Row):
        return row.as_dict()  # type: ignore[no-any-return]
    if hasattr(row, "_asdict"):
        return row._asdict()  # type: ignore[no-any-return]
    kinds = "texts, mappings, rows or Arrow record batches"
    raise InputError(f"expected {kinds}, got {type(row).__name__}")


def _with(element: Any, added: dict[str, Any], columns: list[str]) -> Any:
    """Return an element with the added columns."""
    if isinstance(element, str):
        fields: Mapping[str, Any] = {columns[0]: element}
    else:
        fields = element if isinstance(element, Mapping) else _fields(element)
    _check_free(fields, added)
    together = {**fields, **added}
    return together if isinstance(element, Mapping) else beam.Row(**together)


def _check_free(names: Iterable[str], added: Iterable[str]) -> None:
    for name in set(names) & set(added):
        raise InputError(f"a column {name!r} already exists; rename it or exclude it")


def _array(texts: list[Any]) -> pa.Array:
    """Return texts as an array. Raises InputError for bytes that are not UTF-8."""
    if len(texts) == 1 and isinstance(texts[0], pa.Array):
        return texts[0]
    try:
        texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
        return pa.array(texts, pa.string())
    except (pa.ArrowException, UnicodeError) as error:
        raise InputError(f"not a text ({one_line(error)})") from error


def _text_bytes(element: Any, columns: Sequence[str]) -> int:
    """Return the approximate bytes of the texts of an element; 0 if it is bad."""
    if isinstance(element, pa.RecordBatch | pa.Table):
        return BATCH_BYTES
    try:
        return sum(len(_texts(element, column) or "") for column in columns)
    except InputError:
        return 0
