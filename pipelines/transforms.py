"""Transforms for your own Beam pipelines: texts to word counts, and texts to token ids. Beam's own
transforms read and write.

Elements are texts, mappings, rows (`beam.Row`, named tuples), or Arrow record batches and tables.
They are processed in batches. Windows and timestamps are kept. Where Beam knows the columns of the
elements, it knows those of the results.
"""

from __future__ import annotations

import time
import traceback
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
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
from pipelines.counting.steps import PARTITION_SHARE_BYTES, SortedWords
from pipelines.encoding.options import ShardOptions, TokenizerOptions
from pipelines.encoding.shard_encoder import check_fit
from pipelines.io.batches import from_bytes, to_bytes
from pipelines.io.columns import check_once, path_of, picked
from pipelines.io.schemas import taken
from pipelines.progress import add_metrics
from wordpiece_core import EncodingOptions, TextOptions, Tokenizer, _kernel
from wordpiece_core.declared import Form, Ge, Options, refusal, with_options
from wordpiece_core.errors import InputError, OptionError, one_line, opt, shown
from wordpiece_core.option_types import Column, Count, WorkerMemory
from wordpiece_core.options import SpecialTokens
from wordpiece_core.tokenizer.files import tokens_in_texts
from wordpiece_core.tokenizer.models import AddedToken

LEAST_PARTITIONS = 64  # of words, by hash; no result depends on their number
BATCH_BYTES = 1 << 20  # of texts that are processed together
MOST_WINDOWS = 16  # that a bundle holds counts of at the same time
COUNTS_AT_ONCE = 65_536  # of counted words that become elements
ROW_TYPES: dict[str, Any] = {
    **dict.fromkeys(("attention_mask", "token_type_ids", "special_tokens_mask"), Sequence[np.int8]),
    "input_ids": Sequence[np.int32],
    "num_tokens": np.int32,
    "offset_mapping": Sequence[Sequence[np.int32]],
    "word_ids": Sequence[Optional[np.int32]],  # noqa: UP045, as Beam reads it
}
"""The types of the columns in rows of Beam."""


def _error_handling(value: Any) -> Any:
    if not (isinstance(value, Mapping) and isinstance(value.get("output"), str)):
        raise refusal(value, 'a mapping such as {"output": NAME}')
    return value


@dataclass(frozen=True, kw_only=True)
class TextsOptions(Options):
    """Batching and error handling of a transform."""

    batch_size: Count = 4096
    """Maximum number of elements that are processed together."""
    max_delay: Annotated[float, Ge(0)] = 1.0
    """Maximum number of seconds that an element waits for others. (It waits no longer than the
    bundle either.)"""
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


class _Texts(beam.PTransform):
    """A transform of texts."""

    main_tag, dead_letter_tag, is_yaml = "good", "", False

    def _init(self, options: TextsOptions) -> None:
        """Keep the options. `error_handling` of Beam YAML names the output for bad elements."""
        super().__init__()
        self.batching = options.select(TextsOptions)
        if options.error_handling is not None:
            self.dead_letter_tag, self.is_yaml = options.error_handling["output"], True

    def with_exception_handling(self, main_tag: str = "good", dead_letter_tag: str = "bad") -> Self:
        """The transform with a second output for elements that cannot be processed, as Beam's own
        have it: pairs of the element and of the class, the repr and the traceback of the error.

        >>> with beam.Pipeline() as pipeline:
        ...     texts = pipeline | beam.Create([{"text": "a"}, {"text": 5}])
        ...     words, bad = texts | CountWords().with_exception_handling()
        ...     done = bad | beam.Map(lambda pair: print(pair[0]))
        {'text': 5}
        """
        handling = copy(self)
        handling.main_tag, handling.dead_letter_tag = main_tag, dead_letter_tag
        return handling

    def _applied(
        self, texts: beam.PCollection, fn: _ProcessTexts, kind: Any, following: beam.PTransform
    ) -> Any:
        """The output of a function, of elements of a kind, and of what follows it; with exception
        handling, both outputs."""
        step = beam.ParDo(fn) if kind is None else beam.ParDo(fn).with_output_types(kind)
        if not self.dead_letter_tag:
            return texts | "process" >> step | "results" >> following
        main, bad = texts | "process" >> step.with_outputs(self.dead_letter_tag, main=self.main_tag)
        results = main | "results" >> following
        if self.is_yaml:  # Beam imports what its YAML needs, which need not be installed
            from apache_beam.yaml.yaml_errors import map_errors_to_standard_format

            errors = bad | "errors" >> map_errors_to_standard_format(texts.element_type)
            return {self.main_tag: results, self.dead_letter_tag: errors}
        outputs: Any = namedtuple("Outputs", [self.main_tag, self.dead_letter_tag])  # type: ignore[misc]
        return outputs(results, bad)  # type: ignore[call-arg]


class _Element(NamedTuple):
    """An element that waits for others, and its texts: one, or an array, for each column."""

    element: Any
    texts: list[Any]
    timestamp: Timestamp
    window: Any
    pane: Any

    def windowed(self, value: Any) -> WindowedValue:
        """A value in the windows of the element."""
        return WindowedValue(value, self.timestamp, [self.window], self.pane)


class _ProcessTexts(beam.DoFn):
    """Processes the texts of many elements at once: when there are enough, when one has waited long
    enough, and at the end of a bundle. `dead_letter_tag`: of the output for bad elements, if there
    is one."""

    def __init__(self, columns: list[str], batching: TextsOptions, dead_letter_tag: str) -> None:
        self.columns, self.batching, self.dead_letter_tag = columns, batching, dead_letter_tag

    def start_bundle(self) -> None:
        self.waiting: list[_Element] = []
        self.bytes, self.since = 0, 0.0

    def process(
        self,
        element: Any,
        timestamp: Timestamp = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        one = _Element(element, [], timestamp, window, pane)
        try:
            if isinstance(element, str) and len(self.columns) > 1:
                raise InputError("the element has one text; a pair needs two columns")
            one.texts.extend(_texts(element, column) for column in self.columns)
        except InputError as error:
            yield self._failed(one, error)
            return
        if isinstance(one.texts[0], pa.Array):
            yield from self._tried([one])
            return
        if not self.waiting:
            self.since = time.monotonic()
        self.waiting.append(one)
        self.bytes += sum(len(text) for text in one.texts if text is not None)
        if (
            len(self.waiting) >= self.batching.batch_size
            or self.bytes > BATCH_BYTES
            or time.monotonic() - self.since >= self.batching.max_delay
        ):
            yield from self._flushed()

    def finish_bundle(self) -> Iterator[Any]:
        yield from self._flushed()

    def _flushed(self) -> Iterator[Any]:
        waiting, self.waiting, self.bytes = self.waiting, [], 0
        yield from self._tried(waiting)

    def _tried(self, elements: list[_Element]) -> Iterator[Any]:
        """The results of elements, or the failure of the one that is bad."""
        try:
            yield from self.processed(elements)
        except InputError as error:
            if len(elements) == 1:
                yield self._failed(elements[0], error)
            else:
                for one in elements:
                    yield from self._tried([one])

    def _failed(self, one: _Element, error: InputError) -> TaggedOutput:
        """The element in the output for bad ones. Without one, raises the error."""
        error = InputError(f"element {shown(one.element)}: {error.template}")
        if not self.dead_letter_tag:
            raise error
        add_metrics(failures=1)
        reason = type(error), repr(error), traceback.format_exception(error)
        return TaggedOutput(self.dead_letter_tag, one.windowed((one.element, reason)))

    def processed(self, elements: list[_Element]) -> Iterator[Any]:
        """The results of elements. InputError if one of them is bad; then there are none."""
        raise NotImplementedError


WordCount: Any = NamedTuple("WordCount", [("word", str), ("count", int)])
"""A word and how often it occurs: a row of Beam, and a pair. (Beam reads no annotations that are
texts, as those of a class are here.)"""
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
            text_column=options.text_column, worker_memory=options.worker_memory, **vars(text)
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
        fn = _CountTexts(self.options, self.split_at, self.batching, self.dead_letter_tag)
        return self._applied(texts, fn, tuple[int, bytes], _MergeCounts())


class _MergeCounts(beam.PTransform):
    """From counts of bundles, by partition, to the words with their sums."""

    def expand(self, counts: beam.PCollection) -> beam.PCollection:
        grouped = counts | "group" >> beam.GroupByKey()
        return grouped | "merge" >> beam.FlatMap(_merged).with_output_types(WordCount)


class _CountTexts(_ProcessTexts):
    """Counts the words of elements, by partition, in one table for each window."""

    def __init__(
        self,
        options: CountingOptions,
        split_at: Sequence[AddedToken],
        batching: TextsOptions,
        dead_letter_tag: str,
    ) -> None:
        super().__init__([options.text_column], batching, dead_letter_tag)
        self.options = options
        self.split_at = [token.for_kernel() for token in split_at]
        self.memory = options.worker_memory // MOST_WINDOWS  # of the table of a window
        self.partitions = max(self.memory // PARTITION_SHARE_BYTES, LEAST_PARTITIONS)

    def start_bundle(self) -> None:
        super().start_bundle()
        self.counters: dict[Any, _kernel.WordCounter] = {}

    def finish_bundle(self) -> Iterator[Any]:
        yield from super().finish_bundle()
        for window, counter in self.counters.items():
            yield from self._taken(window, counter)

    def processed(self, elements: list[_Element]) -> Iterator[Any]:
        by_window: dict[Any, list[_Element]] = {}
        for one in elements:
            by_window.setdefault(one.window, []).append(one)
        arrays = {window: _array(some, 0) for window, some in by_window.items()}
        for window, texts in arrays.items():
            yield from self._count(window, texts)

    def _count(self, window: Any, texts: pa.Array) -> Iterator[WindowedValue]:
        if window not in self.counters:
            if len(self.counters) >= MOST_WINDOWS:
                oldest = next(iter(self.counters))
                yield from self._taken(oldest, self.counters.pop(oldest))
            text = self.options.for_kernel()
            self.counters[window] = _kernel.WordCounter(
                text, most_bytes=self.memory, split_at=self.split_at
            )
        counter = self.counters[window]
        rows = len(texts)
        while len(texts):
            texts = texts[counter.count(texts, None) :]
            if counter.is_full:
                yield from self._taken(window, counter)
        add_metrics(rows=rows)

    def _taken(self, window: Any, counter: _kernel.WordCounter) -> Iterator[WindowedValue]:
        """The counts of a window by partition, which empties the counter."""
        for partition, _, total, words in counter.take(self.partitions):
            add_metrics(words=total)
            yield WindowedValue((partition, to_bytes(words)), window.max_timestamp(), [window])


def _merged(partition: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
    """The words of a partition with the sums of their counts."""
    sums = SortedWords()
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

    The tokenizer is sent to the workers with the pipeline, so they need no access to its files. A
    WordPiece vocabulary of 30,522 tokens takes about half a megabyte of the pipeline's graph, and a
    BPE vocabulary of 128,000 tokens 1.3 MB.

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
            **vars(options.select(EncodingOptions)),
        )
        self.tokenizer = options.load_tokenizer()
        check_fit(self.options, self.tokenizer)

    def expand(self, texts: beam.PCollection) -> Any:
        """Return the elements with `input_ids` and the requested columns."""
        columns = [self.options.text_column, self.options.text_pair_column]
        named = [column for column in columns if column is not None]
        encoding, kind = self.options.select(EncodingOptions), texts.element_type
        fn = _EncodeTexts(self.tokenizer, encoding, named, self.batching, self.dead_letter_tag)
        # Beam 2.77 loses what `finish_bundle` gives to a step that takes batches, as that of
        # WriteToParquet does. To one that takes elements it loses nothing.
        kind = _encoded_type(kind, named, encoding)
        following = beam.Map(_same)
        following = following if kind is None else following.with_output_types(kind)
        return self._applied(texts, fn, kind, following)


def _same(element: Any) -> Any:
    return element


def _encoded_type(kind: Any, columns: list[str], options: EncodingOptions) -> Any:
    """The type of encoded elements, if it is known from that of the elements. InputError if these
    lack a column, or have one of a name that is added; OptionError for ids that rows cannot
    hold."""
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
    """Encodes many elements at once. Each keeps its own window and timestamp."""

    def __init__(self, tokenizer: Tokenizer, encoding: EncodingOptions, *how: Any) -> None:
        super().__init__(*how)
        self.tokenizer, self.encoding = tokenizer, encoding

    def processed(self, elements: list[_Element]) -> Iterator[Any]:
        if not elements:
            return
        arrays = [_array(elements, i) for i in range(len(self.columns))]
        done = self.tokenizer.encode_batch(*arrays, options=self.encoding)
        table, sources = done.table, range(len(done.table))
        if done.source_rows is not None:
            sources = done.source_rows.to_pylist()
        if isinstance(elements[0].texts[0], pa.Array):
            made = [(elements[0], _with_columns(elements[0].element, table, done.source_rows))]
        else:
            found = zip(table.to_pylist(), sources, strict=True)
            made = [
                (elements[i], _with(elements[i].element, row, self.columns)) for row, i in found
            ]
        add_metrics(rows=len(table), tokens=done.tokens, unknown=done.unknown)
        yield from (one.windowed(value) for one, value in made)


def _with_columns(element: Any, added: pa.Table, sources: pa.ChunkedArray | None) -> Any:
    """A record batch or a table with the added columns."""
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
    """The texts of an element: an Arrow array for a batch, else one text. InputError if it has no
    such column."""
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
    """The fields of a `beam.Row` or a named tuple."""
    if isinstance(row, beam.Row):
        return row.as_dict()  # type: ignore[no-any-return]
    if hasattr(row, "_asdict"):
        return row._asdict()  # type: ignore[no-any-return]
    kinds = "texts, mappings, rows or Arrow record batches"
    raise InputError(f"expected {kinds}, got {type(row).__name__}")


def _with(element: Any, added: dict[str, Any], columns: list[str]) -> Any:
    """An element with the added columns."""
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


def _array(elements: list[_Element], column: int) -> pa.Array:
    """The texts of elements. InputError if one cannot be a text: bytes must be UTF-8."""
    texts = [one.texts[column] for one in elements]
    if len(texts) == 1 and isinstance(texts[0], pa.Array):
        return texts[0]
    try:
        texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
        return pa.array(texts, pa.string())
    except (pa.ArrowException, UnicodeError) as error:
        raise InputError(f"not a text ({one_line(error)})") from error
