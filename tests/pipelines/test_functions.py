"""The jobs from Python: `pipelines.count`, `train`, `encode`, and what they give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import pipelines
import wordpiece_core as wp

from .corpora import column, done, english, files_below, wordpiece, write_shard


@pytest.fixture
def shard(tmp_path: Path) -> str:
    return write_shard(tmp_path / "in.txt", english(40))


def test_the_jobs_give_what_the_commands_give(tmp_path: Path, shard: str) -> None:
    table = pipelines.count([shard], output=tmp_path / "words", quiet=True)
    trained = pipelines.train(
        word_counts=tmp_path / "words", output=tmp_path / "tok", vocab_size=80, quiet=True
    )
    encoded = pipelines.encode(
        shard, tokenizer=tmp_path / "tok", output=tmp_path / "out", max_length=8, quiet=True
    )
    done("count", shard, "--output", tmp_path / "words-2")
    args = ["--word-counts", tmp_path / "words-2", "--output", tmp_path / "tok-2"]
    done("train", *args, "--vocab-size", "80")
    args = ["--tokenizer", tmp_path / "tok-2", "--output", tmp_path / "out-2"]
    done("encode", shard, *args, "--max-length", "8")
    for name in ("words", "tok", "out"):
        by_function, by_command = (files_below(tmp_path / f"{name}{end}") for end in ("", "-2"))
        assert by_function.keys() == by_command.keys()
        differ = {file for file, data in by_function.items() if data != by_command[file]}
        assert differ <= {"run.json", ".run.json"}

    assert table.path == str(tmp_path / "words")
    assert table.totals["rows"] == 40
    rows = table.read()
    assert rows.schema.names == ["word", "count"]
    assert len(rows) == table.totals["distinct_words"]
    assert sum(rows["count"].to_pylist()) == table.totals["words"]

    assert isinstance(trained.tokenizer, wp.Tokenizer)
    assert trained.tokenizer.vocab == trained.vocab
    assert trained.tokenizer.digest == wp.Tokenizer.load(tmp_path / "tok").digest
    assert (len(trained.vocab), trained.rounds) == (80, 1)
    assert trained.merges.schema.names[:4] == ["step", "left", "right", "token"]

    assert encoded.output == str(tmp_path / "out")
    assert (encoded.rows, encoded.shards) == (40, ["in.parquet"])
    assert encoded.tokens == sum(map(len, column(tmp_path / "out")))


def test_a_tokenizer_itself_can_be_given(tmp_path: Path, shard: str) -> None:
    tok = wp.Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the"])
    with pytest.warns(pipelines.JobWarning, match="of the tokens are .UNK."):
        pipelines.encode(
            shard, tokenizer=tok, output=tmp_path / "out", quiet=True, allow_unknown=True
        )
    with pytest.raises(
        wp.InputError, match="% of the tokens are unknown, so the tokenizer does not fit"
    ):
        pipelines.encode(shard, tokenizer=tok, output=tmp_path / "not", quiet=True)
    assert not (tmp_path / "not" / ".manifest.json").exists()
    assert column(tmp_path / "out") == tok.encode_batch(english(40)).to_pylist()
    with pytest.raises(wp.OptionError, match="set them when you create the Tokenizer"):
        pipelines.encode(shard, tokenizer=tok, output=tmp_path / "x", lowercase=True, quiet=True)


def test_wrong_arguments_raise_errors_of_the_project(tmp_path: Path) -> None:
    with pytest.raises(wp.InputError, match=r"nothing\.txt: no such file"):
        pipelines.count(tmp_path / "nothing.txt", output=tmp_path / "words", quiet=True)
    with pytest.raises(wp.OptionError, match=r"^set `inputs`: files, globs or directories"):
        pipelines.count(output=tmp_path / "words")
    with pytest.raises(wp.OptionError, match=r"^pack: set `max_length`, the length of a row"):
        pipelines.encode("in", output="out", tokenizer="vocab.txt", pack=True)
    with pytest.raises(wp.OptionError, match=r"^beam_args: Beam does not know --no_such"):
        pipelines.count("in", output=tmp_path / "words", beam_args=["--no_such=1"])


@pytest.mark.parametrize("command", ["count", "train", "encode"])
def test_json_prints_the_summary_as_one_object(tmp_path: Path, shard: str, command: str) -> None:
    tok = tmp_path / "vocab.txt"
    tok.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n")
    more = {"count": [], "train": ["--vocab-size", "80"], "encode": ["--tokenizer", tok]}[command]
    more += ["--allow-unknown"] * (command == "encode")
    outcome = wordpiece(command, shard, "--output", tmp_path / "out", "--json", *more)
    summary = json.loads(outcome.out)
    assert outcome.out.count("\n") == 1
    assert summary["output"] == str(tmp_path / "out")
    kept = {"count": "distinct_words", "train": "vocab_size", "encode": "unknown_tokens"}[command]
    assert summary[kept] > 0


@pytest.mark.soak
def test_a_quiet_job_prints_nothing_and_does_not_change_logging(tmp_path: Path, shard: str) -> None:
    code = (
        "import logging, sys\n"
        "logging.basicConfig()\n"  # as Beam does when it warns
        "root = logging.getLogger()\n"
        "before = root.handlers[:], root.level, root.manager.disable\n"
        "import pipelines\n"
        "assert 'apache_beam' not in sys.modules\n"
        "for name in pipelines.__all__: getattr(pipelines, name)\n"
        f"pipelines.count({shard!r}, output={str(tmp_path / 'words')!r}, quiet=True)\n"
        "assert (root.handlers[:], root.level, root.manager.disable) == before\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    of_beam = ("WARNING:root:apitools", "WARNING:apache_beam.")
    assert [line for line in ended.stderr.splitlines() if not line.startswith(of_beam)] == []


def test_jobs_run_in_a_notebook_and_show_a_bar_and_a_table(tmp_path: Path, shard: str) -> None:
    book = nbformat.v4.new_notebook()
    output = str(tmp_path / "words")
    code = f"import pipelines\npipelines.count({shard!r}, output={output!r})"
    book.cells = [nbformat.v4.new_code_cell(code)]
    NotebookClient(book, timeout=300).execute()
    outputs = book.cells[0].outputs
    (result,) = (o.data for o in outputs if o.output_type == "execute_result")
    assert result["text/plain"].startswith(f"WordTable(output={output!r}, rows=40, nulls=0, ")
    assert "<tr><td>rows</td><td>40</td></tr>" in result["text/html"]
    widgets = "application/vnd.jupyter.widget-view+json"
    assert any(widgets in o.data for o in outputs if o.output_type == "display_data")


def test_workers_name_the_option_that_helps(tmp_path: Path) -> None:
    """A worker finds the fault of a file that the driver has not opened."""
    rows = [{"text": "a", "kept": {}}]
    path = tmp_path / "INPUT" / "a.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[UNK]\n[CLS]\n[SEP]\na\n")
    beam_args = ["--direct_running_mode=in_memory", "--direct_num_workers=1"]
    with pytest.raises(wp.InputError) as raised:
        pipelines.encode(
            path, tokenizer=vocab, output=tmp_path / "out", beam_args=beam_args, quiet=True
        )
    fault = f"{path}: column 'kept' is struct<>, which Parquet cannot store"
    assert str(raised.value) == f"{fault} (exclude it with `keep_columns`)"
    args = ["encode", path, "--tokenizer", vocab, "--output", tmp_path / "out-2"]
    said = wordpiece(*args, "--", *beam_args).fault
    assert said == f"{fault} (exclude it with --keep-columns)"
