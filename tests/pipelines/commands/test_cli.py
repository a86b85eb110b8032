"""The command line: its help, its config files, what it shows, and how it ends."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from pipelines.commands import program
from pipelines.commands.config import config_file, read_config
from pipelines.commands.job_command import EXAMPLES
from wordpiece_core import EncodingOptions
from wordpiece_core.sizes import parse_size

from ...quick import parametrize
from ..corpora import (
    column,
    config,
    done,
    english,
    files_below,
    manifest,
    process,
    train_tokenizer,
    wordpiece,
    write_shard,
)
from ..stopping import interrupted_before

PROJECT = Path(__file__).parents[3]

FIRST_SCREEN = {
    "count": "--output --text-column --lowercase --config",
    "train": "--output --word-counts --vocab-size --model --text-column --lowercase --config",
    "encode": "--output --tokenizer --text-column --max-length --pack --shard-size --config",
}
DEFAULTS = {
    "count": ["[default: text]", "(default: bert)", "(default: as lowercase)"],
    "train": ["[default: 30522", "(default: pmi; bpe: frequency)", "[default: auto]"],
    "encode": ["[default: zstd]", "(default: all; all except the texts with --stride)"],
}


@pytest.fixture
def shard(tmp_path: Path) -> str:
    return write_shard(tmp_path / "shard.txt", english(30))


@pytest.fixture(scope="module")
def word_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A word table `OUT` of `shard.txt`, and a vocabulary `TOK`."""
    directory = tmp_path_factory.mktemp("table")
    shard = write_shard(directory / "shard.txt", english(30))
    (directory / "TOK").write_text("[UNK]\n[CLS]\n[SEP]\n")
    done("count", shard, "--output", directory / "OUT")
    return directory


@pytest.mark.parametrize("command", DEFAULTS)
def test_help_has_on_its_first_screen_what_most_people_need(command: str) -> None:
    outcome = done(command, "--help")
    lines = outcome.out.splitlines()
    assert len(lines) <= 88  # two screens and the examples
    assert max(map(len, lines)) <= 100
    first = "\n".join(lines[:30])
    for option in FIRST_SCREEN[command].split():
        assert f"  {option} " in first
    headings = [line for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert headings[:2] == ["Main options:", "Input:"]
    for default in DEFAULTS[command]:
        assert default in " ".join(outcome.out.split())
    assert "Arguments after -- go to Beam" in outcome.out
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("command", "example"), [(name, call) for name, calls in EXAMPLES.items() for call in calls]
)
def test_the_examples_of_the_help_are_calls(command: str, example: str) -> None:
    found, parent = program.wordpiece.get_command(None, command), click.Context(program.wordpiece)
    context = found.make_context(command, shlex.split(example), parent=parent)
    assert context.params.get("output") or command in ("check", "compare")


def test_a_config_may_hold_a_section_for_each_command_and_flags_win(
    tmp_path: Path, shard: str
) -> None:
    config = tmp_path / "config.yaml"
    train = {"vocab_size": 60, "min-pair-count": 2, "lowercase": False}
    encode = {"columns": ["num_tokens", "attention_mask"], "add_special_tokens": False}
    config.write_text(yaml.safe_dump({"quiet": True, "train": train, "encode": encode}))
    outcome = done("train", shard, "--output", tmp_path / "tok", f"--config={config}")
    assert (outcome.out, outcome.err) == ("", "")
    larger = ["--config", config, "--vocab-size", "65"]
    done("train", shard, "--output", tmp_path / "larger", *larger)
    first, second = (
        json.loads((tmp_path / name / "training.json").read_text()) for name in ("tok", "larger")
    )
    assert (first["vocab_size"], first["training"]["min_pair_count"]) == (60, 2)
    assert first["text"]["lowercase"] is False
    assert second["training"] == first["training"] | {"vocab_size": 65}
    args = ["--tokenizer", tmp_path / "tok", "--output", tmp_path / "out", "--config", config]
    done("encode", shard, *args)
    assert manifest(tmp_path / "out")["options"]["columns"] == ["num_tokens", "attention_mask"]
    assert 2 not in column(tmp_path / "out")[0]


@pytest.mark.parametrize(
    "config", sorted((PROJECT / "configs").glob("*.yaml")), ids=lambda p: p.stem
)
def test_ready_configs_have_names(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert config_file(config.stem).samefile(config)
    Path(config.stem).touch()
    assert config_file(config.stem) == Path(config.stem)


@pytest.mark.parametrize("config", sorted((PROJECT / "configs").glob("*.yaml")), ids=str)
def test_a_ready_config_fits_every_command(tmp_path: Path, shard: str, config: Path) -> None:
    for name in ("count", "train", "extend", "prune", "encode", "compare", "report"):
        command = program.wordpiece.get_command(None, name)
        context = click.Context(command, parent=click.Context(program.wordpiece))
        read_config(str(config), context)
    if config.stem == "llm-bpe":
        outcome = done("count", shard, "--config", config, "--output", tmp_path / "words")
        assert f"{config}: not for count, ignored: model, word_boundary, vocab_size" in outcome.err


@parametrize("config", sorted((PROJECT / "configs").glob("*.yaml")), quick=4, ids=lambda p: p.stem)
def test_the_ready_configs_run(tmp_path: Path, shard: str, config: Path) -> None:
    sections = yaml.safe_load(config.read_text())
    trains = "train" in sections or "vocab_size" in sections
    tokenizer = tmp_path / "tok"
    args = ["--config", config] if trains else ["--vocab-size", "60"]
    done("train", shard, "--output", tokenizer, *args)
    options = sections.get("train", sections if trains else {"vocab_size": 60})
    training = json.loads((tokenizer / "training.json").read_text())
    noted = training["training"] | training["text"]
    layout = options.pop("special_tokens", None)
    assert noted == noted | options
    sizes = {"bert": 999, None: 1 if noted.get("word_boundary") == "bytes" else 5}
    wanted = sizes.get(layout) if isinstance(layout, str | None) else len(layout)
    assert len(noted["special_tokens"]) == wanted
    if "encode" in sections:
        args = ["--tokenizer", tokenizer, "--output", tmp_path / "out", "--config", config]
        done("encode", shard, *args)
        noted = manifest(tmp_path / "out")["options"]
        noted |= noted.get("layout", {})
        given = sections["encode"]
        sizes = {name: parse_size(given[name]) for name in ("shard_size",) if name in given}
        defaults = EncodingOptions().values()
        changed = {n: v for n, v in given.items() if n not in defaults or v != defaults[n]}
        assert noted == noted | changed | sizes


def test_nothing_of_the_libraries_beneath_is_shown(tmp_path: Path, shard: str) -> None:
    tokenizer = train_tokenizer(tmp_path, english(30), "--vocab-size", "60")
    args = ["encode", shard, "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    outcome = process(*args)
    assert outcome.status == 0
    out, err = outcome.out.splitlines(), outcome.lines
    assert [line.split(":")[0] for line in out] == [
        *("read", "shards", "tokens", "word tokens", "longest text", "dataset")
    ]
    assert [line.split(",")[0] for line in err] == ["encode: done"]


def test_inputs_and_outputs_may_be_on_any_file_system(tmp_path: Path, store: str) -> None:
    texts = english(60)
    for i, ending in enumerate((".parquet", ".txt", ".jsonl.gz")):
        write_shard(tmp_path / "in" / f"a {i}%{ending}", texts[20 * i : 20 * (i + 1)])
    size = ["--vocab-size", "70"]
    for place in (store, str(tmp_path / "local")):
        done("count", f"{store}/in", "--output", f"{place}/words")
        done("train", "--word-counts", f"{place}/words", "--output", f"{place}/tok", *size)
        done("train", f"{store}/in/a*.*", "--output", f"{place}/tok-2", *size)
        args = ["--tokenizer", f"{place}/tok", "--output", f"{place}/out"]
        done("encode", f"{store}/in", *args)
        outcome = done("encode", f"{store}/in", *args)
        assert "shards: 3 (3 finished before)" in outcome.out.splitlines()
    for name in ("words", "tok", "tok-2", "out"):
        remote, local = files_below(tmp_path / name), files_below(tmp_path / "local" / name)
        assert {file for file in local if local[file] != remote.get(file)} <= {"run.json"}
        assert remote.keys() == local.keys()
    vocabs = [(tmp_path / name / "vocab.txt").read_bytes() for name in ("tok", "tok-2")]
    assert vocabs[0] == vocabs[1]


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["nonsense"], "No such command 'nonsense'."),
        (["count", "IN"], "Missing option '--output'."),
        (["count", "--output", "OUT"], "set INPUT: files, globs or directories"),
        (["train", "IN", "--word-counts", "W", "--output", "OUT"], "set either INPUT or"),
        (["count", "IN", "--output", "OUT", "--ouput", "X"], "No such option '--ouput'."),
        (["train", "IN", "--output", "OUT", "--special-tokens", "[PAD]"], "--special-tokens: ['[P"),
        (
            ["train", "IN", "--output", "OUT", "--special-tokens", "[UNK],a,a"],
            "Invalid value for '--sp",
        ),
        (["encode", "IN", "--output", "OUT", "--tokenizer", "TOK", "--columns", "ids"], "Invalid"),
        (["count", "IN", "--output", "OUT", "--", "--no_such=1"], "arguments after --: Beam does"),
        (["count", "IN", "--output", "OUT", "--", "stray"], "arguments after --: Beam does not"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_call_ends_with_2_and_touches_nothing(
    word_table: Path, args: list[str], reason: str
) -> None:
    places = {name: str(word_table / name) for name in ("OUT", "TOK")}
    places["IN"] = str(word_table / "shard.txt")
    before = files_below(word_table)
    outcome = wordpiece(*(places.get(arg, arg) for arg in args))
    assert outcome.fault.startswith(reason)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert files_below(word_table) == before


def test_a_failed_job_ends_with_1_and_debug_shows_where(tmp_path: Path) -> None:
    args = ["count", tmp_path / "nothing.txt", "--output", tmp_path / "words"]
    outcome = wordpiece(*args)
    assert outcome.status == 1
    assert outcome.err == f"wordpiece: {tmp_path / 'nothing.txt'}: no such file or directory\n"
    debug = process(*args, "--debug")
    assert debug.status == 1
    assert "\nTraceback (most recent call last):\n" in f"\n{debug.err}"
    assert "input_files.py" in debug.err


@pytest.mark.soak
def test_an_interrupted_count_says_that_it_starts_again(tmp_path: Path) -> None:
    text = write_shard(tmp_path / "a.txt", english(30))
    args = ["count", text, "--output", tmp_path / "words"]
    ended = interrupted_before(1, "written .*/part-", *args)
    assert ended.returncode == 130
    stage, *said = filter(None, ended.stderr.splitlines())
    assert stage.startswith("count: interrupted, ")
    again = "run the same command again to continue; stage count starts from the beginning"
    assert said == [f"wordpiece: interrupted; {again}"]
    done(*args)


def test_an_interrupted_job_says_so_on_one_line_and_goes_on_when_called_again(
    tmp_path: Path,
) -> None:
    tokenizer = train_tokenizer(tmp_path, english(30), "--vocab-size", "60")
    for i in range(6):
        write_shard(tmp_path / "in" / f"{i}.txt", english(30))
    args = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output"]
    shard = rf"written {tmp_path}/out/\d\.parquet"  # to be opened, and to get its name
    beam = ["--", "--direct_num_workers=2"]
    ended = interrupted_before(8, shard, *args, tmp_path / "out", *beam)
    assert ended.returncode == 130
    said = ended.stderr.splitlines()
    lines = [line for line in said if line and not line.startswith("encode: ")]
    assert lines == ["wordpiece: interrupted; run the same command again to continue"]
    assert not (tmp_path / "out" / ".manifest.json").exists()
    assert re.search(r"shards: 6 \([1-6] finished before\)", done(*args, tmp_path / "out").out)
    done(*args, tmp_path / "straight")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "straight")


@pytest.mark.parametrize("command", ["count", "train", "encode"])
def test_an_output_among_the_inputs_is_not_read_again(tmp_path: Path, command: str) -> None:
    texts = english(50)
    more = {
        "count": [],
        "train": ["--vocab-size", "200", *config(tmp_path, keep_work=True)],
        "encode": ["--tokenizer", train_tokenizer(tmp_path / "t", texts, "--vocab-size", "200")],
    }[command]
    corpus = tmp_path / "corpus"
    write_shard(corpus / "a.parquet", texts)
    once, twice = (
        done(command, corpus, "--output", corpus / "out", *more).out.splitlines() for _ in "12"
    )
    assert [line for line in twice if "finished before" not in line] == [
        line for line in once if command != "encode" or not line.startswith("shards: ")
    ]


@pytest.mark.parametrize("option", ["--runner=FlinkRunner", "--flink_master=local"])
def test_an_option_of_beam_is_named_with_its_place(option: str) -> None:
    outcome = wordpiece("count", "x", "--output", "y", option)
    assert outcome.status == 2
    assert f"options for Beam go after --, for example: -- {option.split('=')[0]}" in outcome.fault


def test_a_path_that_is_named_like_an_option_stays_a_path(
    tmp_path: Path, shard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done("train", shard, "--vocab-size", "60", "--output", "tokenizer")
    outcome = wordpiece("train", shard, "--vocab-size", "61", "--output", "tokenizer")
    assert outcome.fault.startswith("tokenizer: contains a tokenizer trained with vocab_size 60")
    assert "set --overwrite" in outcome.fault
