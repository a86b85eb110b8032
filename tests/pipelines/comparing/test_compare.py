"""`compare`, end to end: metrics checked against plain Python, groups, other kinds, the Hub."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer as Peer

import pipelines
from tests.pipelines.corpora import done, multilingual, wordpiece
from tests.quick import parametrize
from tests.wordpiece_core.test_measures import plain_measures
from tests.wordpiece_core.tokenizer.test_library_measures import byte_level_bpe, plain_of_spaced
from wordpiece_core import InputError, OptionError, Tokenizer, count_words, train

LANGUAGES = ["en", "日本", None, "[red]x[/red]\x1b[31m\n"]
TEXTS = [*multilingual(300, seed=3), "長い文章" * 40, "a b a b a b"]


def vocabulary() -> list[str]:
    letters = sorted({c for text in multilingual(40) for c in text.lower() if c.isalnum()})[::2]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = ["the", "token", "##s", "##ize", "der", "über", "!", ",", "."]
    return list(dict.fromkeys([*special, *words, *letters, *(f"##{c}" for c in letters)]))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    rows = [{"text": t, "lang": LANGUAGES[i % 4]} for i, t in enumerate(TEXTS)]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table.slice(0, 90), folder / "a.parquet", row_group_size=40)
    pq.write_table(table.slice(90), folder / "b.parquet")
    return folder


@pytest.fixture(scope="module")
def uncased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uncased")
    Tokenizer(vocabulary()).save(folder)
    return folder


@pytest.fixture(scope="module")
def bpe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    byte_level_bpe().save(str(path))
    return path


def metrics(sums: dict[str, Any], texts: list[str], vocab_size: int) -> dict[str, Any]:
    """Compute the metrics of a row from sums over these texts, by their definitions."""
    uses, total = list(sums["uses"].values()), sums["tokens"]
    entropy = math.log2(sum((n / total) ** 2.5 for n in uses)) / (1 - 2.5)
    return {
        "words": sums["words"],
        "tokens": total,
        "tokens_per_word": total / sums["words"],
        "characters_per_token": sums["characters"] / total,
        "bytes_per_token": sum(len(text.encode()) for text in texts) / total,
        "tokens_per_byte": total / sum(len(text.encode()) for text in texts),
        "whole_words": sums["whole_words"] / sums["words"],
        "continued_words": sums["continued_words"] / sums["words"],
        "unknown_words": sums["unknown_words"] / sums["words"],
        "dropped_characters": sums["dropped_characters"] / sums["characters"],
        "used_tokens": len(uses),
        "rare_tokens": sum(n < 10 for n in uses),
        "renyi_efficiency": pytest.approx(entropy / math.log2(vocab_size), rel=1e-12),
        "vocab_size": vocab_size,
    }


def test_metrics_match_the_texts_of_a_group(corpus: Path, uncased: Path, bpe: Path) -> None:
    places = [uncased, bpe]
    table = pipelines.compare(places, on=corpus, group_column="lang", quiet=True)
    rows = table.to_pylist()
    groups = sorted(name for name in LANGUAGES if name is not None)
    assert [row["group"] for row in rows] == [None, *groups] * 2
    own, other = (Peer.from_file(str(p)) for p in (uncased / "tokenizer.json", bpe))
    best = min(row["tokens_per_word"] for row in rows[1 : len(groups) + 1])
    assert [row["parity"] for row in rows[: len(groups) + 1]] == [
        None,
        *(row["tokens_per_word"] / best for row in rows[1 : len(groups) + 1]),
    ]
    for row in rows:
        is_own = row.pop("tokenizer") == str(uncased)
        group = row.pop("group")
        texts = [t for i, t in enumerate(TEXTS) if group in (None, LANGUAGES[i % 4])]
        if is_own:
            sums = plain_measures(own, own.token_to_id("[UNK]"), texts)
        else:
            sums = plain_of_spaced(other, None, texts)
        overlap, parity = row.pop("overlap"), row.pop("parity")
        assert row == metrics(sums, texts, (own if is_own else other).get_vocab_size())
        assert overlap == 1 if is_own else 0 < overlap < 1
        assert parity is None if group is None else parity >= 1


def test_superwords_are_measured_on_complete_texts(corpus: Path, bpe: Path, tmp_path: Path) -> None:
    words = count_words(TEXTS, pre_tokenizer="llama3", superwords=True)
    options: dict[str, Any] = {"model": "bpe", "word_boundary": "bytes", "min_pair_count": 2}
    trained = train(words, vocab_size=500, superwords=100, **options)
    trained.save(tmp_path)
    table = pipelines.compare([tmp_path, bpe], on=corpus, group_column="lang", quiet=True)
    for row in table.drop_columns(["overlap", "parity"]).to_pylist():
        is_own = row.pop("tokenizer") == str(tmp_path)
        peer = Peer.from_file(str(tmp_path / "tokenizer.json" if is_own else bpe))
        group = row.pop("group")
        texts = [t for i, t in enumerate(TEXTS) if group in (None, LANGUAGES[i % 4])]
        sums = plain_measures(peer, None, texts)
        assert row == metrics(sums, texts, peer.get_vocab_size())
        if is_own and group is None:
            assert row["tokens"] == sum(map(len, trained.tokenizer().encode_batch(TEXTS)))


def test_results_leave_nothing_in_the_work_directory(
    corpus: Path, uncased: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, work = tmp_path / "tmp", tmp_path / "work"
    temporary.mkdir()
    work.mkdir()
    (work / "mine.txt").write_text("kept")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    table = pipelines.compare(uncased, on=corpus, quiet=True)
    assert [name for name in os.listdir(temporary) if name.startswith("wordpiece-")] == []
    runner = ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"]
    with pytest.raises(OptionError, match=r"^work_dir: required on a cluster"):
        pipelines.compare(uncased, on=corpus, beam_args=runner, quiet=True)
    by_work = pipelines.compare(uncased, on=corpus, work_dir=work, beam_args=runner, quiet=True)
    assert by_work.equals(table)
    with pytest.raises(InputError, match="lang2"):
        pipelines.compare(uncased, on=corpus, text_column="lang2", work_dir=work, quiet=True)
    assert os.listdir(work) == ["mine.txt"]


def test_a_word_table_of_chunks_gives_the_metrics_of_the_text(
    uncased: Path, bpe: Path, tmp_path: Path
) -> None:
    text = tmp_path / "a.txt"
    texts = [t.replace("\x00", "").replace("\x07", "") for t in TEXTS]
    text.write_text("\n".join(" ".join(t.split()) for t in texts))
    options = {"lowercase": False, "handle_chinese_chars": False, "pre_tokenizer": "whitespace"}
    options["special_tokens"] = []
    pipelines.count(text, output=tmp_path / "words", clean_text=False, quiet=True, **options)
    on_table = pipelines.compare([uncased, bpe], word_counts=tmp_path / "words", quiet=True)
    assert on_table.equals(pipelines.compare([uncased, bpe], on=text, quiet=True))


def test_warnings_say_how_a_word_table_differs_from_its_text(corpus: Path, tmp_path: Path) -> None:
    Tokenizer(["[UNK]", "A", "a"], lowercase=False).save(tmp_path / "cased")
    Tokenizer(["[UNK]", "a"]).save(tmp_path / "uncased")
    done("count", corpus, "--output", tmp_path / "words", "--min-word-count", "2")
    places = [tmp_path / "cased", tmp_path / "uncased"]
    printed = done("compare", *places, "--word-counts", tmp_path / "words").err
    assert f"which {tmp_path / 'cased'} does not do" in printed
    assert f"which {tmp_path / 'uncased'} does not do" not in printed
    assert "rare words are missing" in printed
    fault = wordpiece("compare", *places, "--word-counts", tmp_path, "--group-column", "x")
    assert (fault.status, "a word table has no groups" in fault.fault) == (2, True)


def test_json_has_a_list_of_rows(corpus: Path, uncased: Path) -> None:
    command = ("compare", uncased, "--on", corpus, "--group-column", "lang", "--json")
    outcome = done(*command)
    rows = json.loads(outcome.out)
    table = pipelines.compare(uncased, on=corpus, group_column="lang", quiet=True)
    assert rows == table.to_pylist()
    assert list(rows[0])[:16] == [
        *("tokenizer", "group", "words", "tokens", "tokens_per_word", "characters_per_token"),
        *("bytes_per_token", "tokens_per_byte", "whole_words"),
        *("continued_words", "unknown_words"),
        *("dropped_characters", "used_tokens", "rare_tokens", "renyi_efficiency", "overlap"),
    ]
    assert "words have no group (null)" in outcome.err


def test_the_table_shows_data_as_data(corpus: Path, uncased: Path) -> None:
    out = done("compare", uncased, uncased, "--on", corpus, "--group-column", "lang").out
    assert "\x1b" not in out
    assert "[red]x[/red]\\u001b[31m\\u000a" in out
    assert "parity" in out


def test_inputs_on_the_command_line_and_in_a_config_file_are_the_same(
    corpus: Path, uncased: Path, tmp_path: Path
) -> None:
    files = sorted(corpus.glob("*.parquet"))
    config = tmp_path / "compare.yaml"
    config.write_text(f"on: {corpus}\ntokenizers: [{uncased}]\n")
    ways = [
        ("--on", corpus, uncased, "--json"),
        (uncased, "--json", "--on", files[0], "--on", files[1]),
        ("--config", config, "--json"),
    ]
    table = pipelines.compare(uncased, on=corpus, quiet=True)
    for way in ways:
        assert json.loads(done("compare", *way).out) == table.to_pylist()
    outcome = wordpiece("compare", uncased, "--on", *files)
    assert f"{files[1]}: a file of texts, not a tokenizer; set --on before each" in outcome.fault


def test_a_tokenizer_given_twice_has_two_rows_and_an_object_has_a_number(
    corpus: Path, uncased: Path
) -> None:
    twice = [uncased, uncased, Tokenizer.load(uncased)]
    rows = pipelines.compare(twice, on=corpus, quiet=True).to_pylist()
    assert [row.pop("tokenizer") for row in rows] == [str(uncased)] * 2 + ["tokenizer 3"]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0]["overlap"] == 1


def test_text_without_a_word_has_null_metrics(uncased: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n  \n\x01\n")
    outcome = done("compare", uncased, "--on", tmp_path / "a.txt", "--json")
    (row,) = json.loads(outcome.out)
    assert (row["words"], row["tokens_per_word"], row["renyi_efficiency"]) == (0, None, None)
    assert row["dropped_characters"] == 1
    assert "no words in the text; check --text-column" in outcome.err


def test_errors_are_one_line_that_names_the_fix(
    corpus: Path, uncased: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "none.json").write_text('{"a": 1}')
    (tmp_path / "other.json").write_text('{"model": {"type": "New"}}')
    for args, status, text in [
        ((), 2, "set TOKENIZER: tokenizer directories"),
        ((uncased,), 2, "set either --on or --word-counts"),
        ((uncased, "--on", corpus, "--word-counts", "x"), 2, "set either --on or --word-counts"),
        ((tmp_path / "bad.json", "--on", corpus), 1, "bad.json: not JSON"),
        (
            (tmp_path / "none.json", "--on", corpus),
            1,
            "no model in this file; choose a tokenizer.json",
        ),
        ((tmp_path / "other.json", "--on", corpus), 1, "tokenizers cannot read it"),
        ((tmp_path / "no/where", "--on", corpus), 1, "no tokenizer"),
        ((uncased, "--on", tmp_path / "none.txt"), 1, "none.txt"),
        ((uncased, "--on", corpus, "--text-column", "txt"), 1, "txt"),
        ((uncased, "--on", corpus, "--group-column", "x"), 1, "'x'"),
    ]:
        outcome = wordpiece("compare", *args)
        assert (outcome.status, text in outcome.fault) == (status, True), outcome.err
        assert len(outcome.lines) == 1, outcome.err
    with pytest.raises(OptionError, match="a path or a Tokenizer"):
        pipelines.compare([3], on=corpus)


def test_the_graph_of_the_pipeline_has_no_vocabulary(
    corpus: Path, uncased: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = []

    def run(pipeline: beam.Pipeline, *args: Any, **options: Any) -> Any:
        graphs.append(pipeline.to_runner_api().SerializeToString())
        return run_pipeline(pipeline, *args, **options)

    run_pipeline = beam.Pipeline.run
    monkeypatch.setattr(beam.Pipeline, "run", run)
    tokens = [f"token{number}" for number in range(100_000)]
    pipelines.compare([uncased, Tokenizer(["[UNK]", *tokens])], on=corpus, quiet=True)
    assert max(map(len, graphs)) < 100_000


@parametrize(
    "options",
    [
        {},
        {"model": "bpe"},
        {"model": "bpe", "word_boundary": "bytes", "pre_tokenizer": "gpt2", "lowercase": False},
    ],
    ids=["wordpiece", "bpe", "bytes"],
    quick=1,
)
def test_smaller_sizes_have_the_metrics_of_trainings_of_these_sizes(
    corpus: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    for size in (300, 350, 400):
        place = tmp_path / str(size)
        trained = pipelines.train(corpus, output=place, vocab_size=size, quiet=True, **options)
        assert len(trained.vocab) == size
    table = pipelines.compare(tmp_path / "400", on=corpus, vocab_sizes=[300, 350], quiet=True)
    sizes = [str(tmp_path / name) for name in ("400", "300", "350")]
    wanted = pipelines.compare(sizes, on=corpus, quiet=True)
    assert table["vocab_size"].to_pylist() == [400, 300, 350]
    names = ["tokenizer"]
    assert table.drop_columns(names).equals(wanted.drop_columns(names))
    if options:  # the tokenizer.json of BPE has its merges in order
        json_file = tmp_path / "400" / "tokenizer.json"
        alone = pipelines.compare(json_file, on=corpus, vocab_sizes=[300, 350], quiet=True)
        assert alone.drop_columns(names).equals(table.drop_columns(names))


def test_sizes_that_a_tokenizer_cannot_have_are_errors(
    corpus: Path, uncased: Path, bpe: Path
) -> None:
    def refused(*places: Path, sizes: str) -> str:
        outcome = wordpiece("compare", *places, "--on", corpus, "--vocab-sizes", sizes)
        assert outcome.status == 2
        return outcome.fault

    assert "--vocab-sizes: 9,999 is not from 257" in refused(bpe, sizes="9999")
    assert "--vocab-sizes: 100 is not from 257" in refused(bpe, sizes="300,100")
    assert f"the order of the merges of {uncased} is unknown" in refused(uncased, sizes="50")
    outcome = done("compare", bpe, uncased, "--on", corpus, "--vocab-sizes", "300")
    assert f"warning: {uncased}: the order of its merges is not known" in outcome.err
    assert outcome.out.count(bpe.name) == 2, outcome.out
