"""The public transforms, in pipelines as users write them: `Create`, windows, kinds of elements."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.io import WriteToParquet
from apache_beam.testing.test_pipeline import TestPipeline as LocalPipeline
from apache_beam.testing.test_stream import TestStream as StreamOfTests
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    TimestampedValue,
)
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming, WindowedValue

import pipelines
import wordpiece_core as wp
from tests import oracle
from wordpiece_core.limits import Limits
from wordpiece_core.options import ENCODING_COLUMNS

from .corpora import english

TOKENIZER = wp.Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "##c"])


class Doc(NamedTuple):
    text: str
    n: int


def test_words_are_counted_as_the_reference_counts_them() -> None:
    texts = english(300)
    with LocalPipeline() as pipeline:
        words = pipeline | beam.Create([{"text": text} for text in texts]) | pipelines.CountWords()
        assert_that(words, equal_to(list(oracle.count_words(texts).items())))


def test_options_of_text_match_the_command() -> None:
    with LocalPipeline() as pipeline:
        words = (
            pipeline
            | beam.Create([{"body": "Rose ROSE, rosé"}])
            | pipelines.CountWords("body", lowercase=False, pre_tokenizer="whitespace")
        )
        assert_that(words, equal_to([("Rose", 1), ("ROSE,", 1), ("rosé", 1)]))
    with pytest.raises(TypeError, match="unexpected keyword argument 'lowercas'"):
        pipelines.CountWords(lowercas=False)
    assert pipelines.CountWords(special_tokens=[]).split_at == []


def test_each_window_has_its_own_counts() -> None:
    texts = [TimestampedValue({"text": "a b"}, 10 * i) for i in range(6)]
    with LocalPipeline() as pipeline:
        words = (
            pipeline
            | beam.Create(texts)
            | beam.WindowInto(SlidingWindows(40, 20))
            | pipelines.CountWords()
            | beam.Map(lambda pair, window=beam.DoFn.WindowParam: (int(window.start), *pair))
        )
        sums = {-20: 2, 0: 4, 20: 4, 40: 2}
        assert_that(words, equal_to([(w, x, n) for w, n in sums.items() for x in "ab"]))


def test_more_windows_than_are_held_at_once_are_counted_all() -> None:
    texts = [TimestampedValue({"text": f"a w{i % 7}"}, i % 7) for i in range(100)]
    with LocalPipeline() as pipeline:
        words = (
            pipeline
            | beam.Create(texts)
            | beam.WindowInto(FixedWindows(1))
            | pipelines.CountWords(limits=Limits(windows=2))
            | beam.Map(lambda pair, window=beam.DoFn.WindowParam: (int(window.start), *pair))
        )
        sums = Counter(i % 7 for i in range(100))
        wanted = [(w, x, n) for w, n in sums.items() for x in ("a", f"w{w}")]
        assert_that(words, equal_to(wanted))


def test_words_of_a_stream_are_counted_when_a_window_is_over() -> None:
    stream = StreamOfTests()
    stream = stream.add_elements([TimestampedValue("a b", 1), TimestampedValue("a", 12)])
    stream = stream.advance_watermark_to(10).add_elements([TimestampedValue("b", 13)])
    with LocalPipeline(options=beam.options.pipeline_options.PipelineOptions(["--streaming"])) as p:
        words = (
            p
            | stream.advance_watermark_to_infinity()
            | beam.WindowInto(FixedWindows(10))
            | pipelines.CountWords()
            | beam.Map(lambda pair, window=beam.DoFn.WindowParam: (int(window.start), *pair))
            | "as one" >> beam.WindowInto(GlobalWindows())
        )
        assert_that(words, equal_to([(0, "a", 1), (0, "b", 1), (10, "a", 1), (10, "b", 1)]))


@pytest.mark.parametrize(
    ("element", "wanted"),
    [
        ({"text": "a bc", "n": 1}, {"text": "a bc", "n": 1, "input_ids": [2, 4, 5, 6, 3]}),
        ({"text": None}, {"text": None, "input_ids": None}),
        ("a", beam.Row(text="a", input_ids=[2, 4, 3])),
        (beam.Row(text="a", n=1), beam.Row(text="a", n=1, input_ids=[2, 4, 3])),
        (Doc("a", 1), beam.Row(text="a", n=1, input_ids=[2, 4, 3])),
    ],
    ids=["mapping", "no text", "text", "row", "named tuple"],
)
def test_ids_are_added_to_elements(element: Any, wanted: Any) -> None:
    with LocalPipeline() as pipeline:
        encoded = pipeline | beam.Create([element]) | pipelines.EncodeTexts(TOKENIZER)
        assert_that(encoded, equal_to([wanted]))


def test_ids_are_added_to_record_batches() -> None:
    batch = pa.record_batch({"text": ["a b a", "b"], "n": [1, 2]})
    with LocalPipeline() as pipeline:
        plain = pipeline | beam.Create([batch])
        encoded = plain | "whole" >> pipelines.EncodeTexts(TOKENIZER, columns=["num_tokens"])
        added = {"input_ids": [[2, 4, 5, 4, 3], [2, 5, 3]], "num_tokens": [5, 3]}
        rows = encoded | "rows" >> beam.Map(lambda batch: batch.to_pydict())
        assert_that(rows, equal_to([batch.to_pydict() | added]))
        cut = plain | "cut" >> pipelines.EncodeTexts(TOKENIZER, max_length=4, stride=1)
        parts = cut | "parts" >> beam.Map(lambda batch: batch.to_pydict())
        wanted = {"text": ["a b a"] * 2 + ["b"], "n": [1, 1, 2]}
        wanted["input_ids"] = [[2, 4, 5, 3], [2, 5, 4, 3], [2, 5, 3]]
        assert_that(parts, equal_to([wanted]), label="cut texts")
        words = plain | pipelines.CountWords()
        assert_that(words, equal_to([("a", 2), ("b", 2)]), label="words")
        tables = pipeline | "tables" >> beam.Create([pa.Table.from_batches([batch])])
        ids = tables | "of tables" >> pipelines.EncodeTexts(TOKENIZER, max_length=4, stride=1)
        assert_that(ids | beam.Map(lambda table: table.to_pydict()), equal_to([wanted]), label="t")


def test_pairs_and_other_columns() -> None:
    options = {"max_length": 6, "columns": ["token_type_ids"]}
    with LocalPipeline() as pipeline:
        encoded = (
            pipeline
            | beam.Create([{"q": "a", "p": "b b b"}])
            | pipelines.EncodeTexts(TOKENIZER, text_column="q", text_pair_column="p", **options)
        )
        ids = {"input_ids": [2, 4, 3, 5, 5, 3], "token_type_ids": [0, 0, 0, 1, 1, 1]}
        assert_that(encoded, equal_to([{"q": "a", "p": "b b b"} | ids]))


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.binary_view()])
def test_a_record_batch_keeps_its_schema(kind: pa.DataType) -> None:
    texts = pa.array(["a b a b", "b"], kind)
    field = pa.field("text", kind, nullable=False, metadata={"k": "v"})
    batch = pa.record_batch([texts], schema=pa.schema([field], metadata={"m": "n"}))

    def check(made: pa.RecordBatch) -> None:
        assert made.schema.field("text").equals(field, check_metadata=True)
        assert made.schema.metadata == {b"m": b"n"}
        assert made["text"].cast(pa.string()).to_pylist() == ["a b a b"] * 3 + ["b"]

    with LocalPipeline() as p:
        encode = pipelines.EncodeTexts(TOKENIZER, max_length=4, stride=1)
        p | beam.Create([batch]) | encode | beam.Map(check)


def test_texts_of_batches_may_be_fields_of_structs() -> None:
    table = pa.table({"meta": [{"body": "a b"}, None]})
    with LocalPipeline() as p:
        encode = pipelines.EncodeTexts(TOKENIZER, text_column="meta.body")
        ids = (
            p | beam.Create([table]) | encode | beam.Map(lambda made: made["input_ids"].to_pylist())
        )
        assert_that(ids, equal_to([[[2, 4, 5, 3], None]]))
    twice = pa.table([["a"], ["b"]], names=["text", "text"])
    with pytest.raises(Exception, match="two columns are named 'text'"), LocalPipeline() as p:
        p | beam.Create([twice]) | pipelines.EncodeTexts(TOKENIZER)


def test_elements_keep_their_windows_and_timestamps() -> None:
    texts = [TimestampedValue({"text": "a", "n": i}, i) for i in range(1000)]

    def placed(
        row: dict[str, Any], at: Any = beam.DoFn.TimestampParam, w: Any = beam.DoFn.WindowParam
    ) -> tuple[int, int, int]:
        return row["n"], int(at), int(w.start)

    with LocalPipeline() as pipeline:
        encoded = (
            pipeline
            | beam.Create(texts)
            | beam.WindowInto(FixedWindows(100))
            | pipelines.EncodeTexts(TOKENIZER)
            | beam.Map(placed)
        )
        assert_that(encoded, equal_to([(i, i, i - i % 100) for i in range(1000)]))


class _InPanes(beam.DoFn):
    """Gives each element a pane of its own, as triggers do."""

    def process(self, n: int, window: Any = beam.DoFn.WindowParam) -> Iterator[WindowedValue]:
        pane = PaneInfo(n == 0, False, PaneInfoTiming.EARLY, n, 0)
        yield WindowedValue({"text": "a"}, Timestamp(n), [window], pane)


def test_elements_keep_their_panes() -> None:
    def index(_: Any, pane: Any = beam.DoFn.PaneInfoParam) -> tuple[int, int]:
        return pane.index, pane.timing

    with LocalPipeline() as pipeline:
        texts = pipeline | beam.Create([3, 0, 7]) | beam.ParDo(_InPanes())
        panes = texts | pipelines.EncodeTexts(TOKENIZER) | beam.Map(index)
        early = PaneInfoTiming.EARLY
        assert_that(panes, equal_to([(3, early), (0, early), (7, early)]))


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        ({"body": "a"}, r"element .*: no column 'text', only \['body'\]"),
        ({"text": 5}, "column .text.: 5 is not text"),
        ({"text": "a", "input_ids": []}, "a column 'input_ids' already exists"),
        (b"a", "element .*: expected texts, mappings"),
    ],
    ids=["no column", "no text", "taken", "bytes"],
)
def test_an_element_that_cannot_be_encoded_is_named(element: Any, reason: str) -> None:
    with pytest.raises(Exception, match=reason), LocalPipeline() as pipeline:
        pipeline | beam.Create([element]) | pipelines.EncodeTexts(TOKENIZER)


def test_a_text_alone_is_no_pair_and_does_not_lose_its_place() -> None:
    for options, reason in (
        ({"text_pair_column": "other"}, "no column 'other' in the rows, only"),
        ({"text_column": "input_ids"}, "a column 'input_ids' already exists"),
    ):
        encode = pipelines.EncodeTexts(TOKENIZER, **options)
        with pytest.raises(Exception, match=reason), LocalPipeline() as pipeline:
            pipeline | beam.Create(["a"]) | encode


def test_options_that_are_not_of_encoding_are_refused() -> None:
    for name, value in {"pack": True, "keep_columns": ["a"], "compression": "gzip"}.items():
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            pipelines.EncodeTexts(TOKENIZER, max_length=8, **{name: value})
    assert "max_length" in inspect.signature(pipelines.EncodeTexts).parameters
    with pytest.raises(wp.OptionError, match="batch_size: 0 is not a whole number"):
        pipelines.CountWords(batch_size=0)


Article = NamedTuple("Article", [("id", int), ("text", Optional[str])])  # noqa: UP014, UP045


def test_rows_whose_columns_are_known_are_written_as_they_are(tmp_path: Path) -> None:
    out = str(tmp_path)
    with LocalPipeline() as p:
        rows = p | beam.Create([beam.Row(id=1, text="a b"), beam.Row(id=2, text="bc")])
        encode = pipelines.EncodeTexts(TOKENIZER, columns=ENCODING_COLUMNS)
        rows | encode | WriteToParquet(f"{out}/rows")
        rows | pipelines.CountWords() | "words" >> WriteToParquet(f"{out}/words")
        texts = rows | beam.Map(lambda row: row.text).with_output_types(str)
        ids = texts | "texts" >> pipelines.EncodeTexts(TOKENIZER)
        ids | "write texts" >> WriteToParquet(f"{out}/texts")
        articles = p | "articles" >> beam.Create([Article(1, None), Article(2, "a")])
        named = articles | "named" >> pipelines.EncodeTexts(TOKENIZER)
        named | "write named" >> WriteToParquet(f"{out}/named")
    written = {path.name.split("-")[0]: pq.read_table(path) for path in tmp_path.iterdir()}
    given = TOKENIZER.encode_table(["a b", "bc"], options=encode.options).table
    table = written["rows"]
    for name in given.column_names:
        assert table[name].to_pylist() == given[name].to_pylist()
    flat = table["input_ids"].type.value_type, table["attention_mask"].type.value_type
    assert flat == (pa.int32(), pa.int8())
    assert written["texts"]["input_ids"].to_pylist() == given["input_ids"].to_pylist()
    assert sorted(written["words"].to_pylist(), key=str) == [
        {"word": word, "count": 1} for word in ("a", "b", "bc")
    ]
    assert written["named"]["input_ids"].to_pylist() == [None, [2, 4, 3]]
    with LocalPipeline() as p:
        rows = p | beam.Create([beam.Row(id=1, text="a")])
        with pytest.raises(wp.OptionError, match="id_type: uint16 is not a type of Beam rows"):
            rows | pipelines.EncodeTexts(TOKENIZER, id_type="uint16")


def test_bad_elements_are_an_output_of_their_own() -> None:
    bad: list[Any] = [{"text": 5}, {"text": b"\xff"}, {"body": "a"}]
    with LocalPipeline() as p:
        elements = p | beam.Create([{"text": "a"}, *bad, {"text": "b a"}])
        good, failed = elements | pipelines.EncodeTexts(TOKENIZER).with_exception_handling()
        ids = good | beam.Map(lambda element: element["input_ids"])
        assert_that(ids, equal_to([[2, 4, 3], [2, 5, 4, 3]]))
        assert_that(failed | beam.Map(lambda pair: pair[0]), equal_to(bad), label="bad")
        reasons = failed | "reasons" >> beam.Map(lambda pair: pair[1][1].count("element {"))
        assert_that(reasons, equal_to([1, 1, 1]), label="reasons")
        counted = elements | pipelines.CountWords().with_exception_handling("words", "wrong")
        assert_that(counted.words, equal_to([("a", 2), ("b", 1)]), label="words")
        wrong = counted.wrong | "wrong" >> beam.Map(lambda pair: pair[0])
        assert_that(wrong, equal_to(bad), label="wrong")


@pytest.mark.parametrize("size", [1, 7])
def test_the_size_of_batches_changes_no_result(size: int) -> None:
    with LocalPipeline() as p:
        texts = p | beam.Create(["a b", "b", "bc"] * 5)
        ids = texts | pipelines.EncodeTexts(TOKENIZER, batch_size=size)
        wanted = [[2, 4, 5, 3], [2, 5, 3], [2, 5, 6, 3]] * 5
        assert_that(ids | beam.Map(lambda row: row.input_ids), equal_to(wanted))
        words = texts | pipelines.CountWords(batch_size=size)
        assert_that(words, equal_to([("a", 5), ("b", 10), ("bc", 5)]), label="words")


def test_elements_that_wait_for_others_keep_their_places() -> None:
    # Beam's older local runner, which it chooses for timers, fails after a timer has fired.
    with LocalPipeline("FnApiRunner") as p:
        texts = p | beam.Create([TimestampedValue({"text": "a", "n": i}, i) for i in range(100)])
        windows = texts | beam.WindowInto(FixedWindows(10))
        ids = windows | pipelines.EncodeTexts(TOKENIZER, max_delay=0.01)
        places = ids | beam.Map(
            lambda row, at=beam.DoFn.TimestampParam, w=beam.DoFn.WindowParam: (
                *(row["n"], int(at), int(w.start), row["input_ids"]),
            )
        )
        assert_that(places, equal_to([(i, i, i - i % 10, [2, 4, 3]) for i in range(100)]))


def test_windows_that_merge_are_refused() -> None:
    with LocalPipeline() as pipeline:
        texts = pipeline | beam.Create(["a"]) | beam.WindowInto(Sessions(10))
        with pytest.raises(wp.OptionError, match="merging windows"):
            texts | pipelines.CountWords()


def test_columns_of_dictionaries_are_texts_too() -> None:
    column = pa.array(["a", "b", "a"]).dictionary_encode()
    batch = pa.record_batch({"text": column})
    with LocalPipeline() as pipeline:
        batches = pipeline | beam.Create([batch])
        assert_that(batches | pipelines.CountWords(), equal_to([("a", 2), ("b", 1)]))
        ids = batches | pipelines.EncodeTexts(TOKENIZER) | beam.Map(lambda b: b["input_ids"][0])
        assert_that(ids | beam.Map(lambda x: x.as_py()), equal_to([[2, 4, 3]]), label="ids")
