"""One declaration of an option: the command line, config files, the environment and Python take the
same options, with the same defaults, and refuse the same values."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import yaml

import pipelines
import wordpiece_core as wp
from pipelines.commands import program
from pipelines.commands.job_command import nearest
from pipelines.commands.options import parted
from pipelines.comparing.options import CheckCall, CompareCall
from pipelines.counting.options import CountCall
from pipelines.encoding.options import EncodeCall
from pipelines.reporting.options import ReportCall
from pipelines.running.call import Call, JobCall
from pipelines.training.options import ExtendCall, PruneCall, TrainCall
from wordpiece_core.declaration import Option, for_command
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import (
    Choice,
    Column,
    Duration,
    Flag,
    Names,
    Place,
    Places,
    Share,
    Shares,
    Size,
    Text,
    Whole,
    Wholes,
)
from wordpiece_core.text_parts import PreTokenizers

from ..corpora import done, english, wordpiece, write_shard

PROJECT = Path(__file__).parents[3]
CALLS: dict[str, type[JobCall]] = {
    **{"count": CountCall, "train": TrainCall, "encode": EncodeCall},
    **{"extend": ExtendCall, "prune": PruneCall, "compare": CompareCall, "report": ReportCall},
    "check": CheckCall,
}
NEEDED: dict[str, dict[str, Any]] = {
    "count": {"inputs": "in"},
    "train": {"inputs": "in"},
    "encode": {"inputs": "in", "tokenizer": "vocab.txt"},
    "extend": {"tokenizer": "vocab.txt", "inputs": "in", "new_tokens": 9},
    "prune": {"tokenizer": "vocab.txt", "inputs": "in", "vocab_size": 9},
    "compare": {"tokenizers": "tok", "on": "in"},
    "check": {"tokenizer": "tok", "on": "in"},
    "report": {"tokenizer": "tok", "on": "in", "output": "out.html"},
}
WITH = {
    "smoothing_exponent": {"group_column": "lang"},
    "padding": {"max_length": 128},
    "stride": {"max_length": 128},
    "pack": {"max_length": 128},
    "eos_token": {"append_eos": True},
    "bos_token": {"prepend_bos": True},
    "until_idle": {"follow": True},
    "word_counts": {"inputs": None, "on": None},
}
WITH_OF_COMMAND = {
    ("extend", "vocab_size"): {"new_tokens": None},
    ("train", "word_boundary"): {"model": "bpe"},
    **{("train", name): {} for name in ("bos_token", "eos_token")},
    ("train", "byte_fallback"): {"model": "unigram"},
    ("train", "seed_size"): {"model": "unigram"},
    **{(c, "tokenizer"): {"inputs": None, "word_counts": "words"} for c in ("extend", "prune")},
}
"""What an option cannot be without, or with."""
SPECIAL_OF_ROLE = {
    **{"unk_token": "[UNK]", "bos_token": "[CLS]", "eos_token": "[SEP]"},
    **{"pad_token": "[PAD]", "mask_token": "[MASK]"},
}


def example(command: str, option: Option) -> tuple[Any, str]:
    """A value other than the default, and how one writes it."""
    kind = option.kind
    if command == "train" and option.name in SPECIAL_OF_ROLE:
        return SPECIAL_OF_ROLE[option.name], SPECIAL_OF_ROLE[option.name]
    if option.name == "columns":
        return ("word_ids", "num_tokens"), "word_ids, num_tokens"
    if option.name == "special_tokens":
        return ("[UNK]", "<s>"), "[UNK],<s>"
    if isinstance(kind, Flag):
        value = option.default is False
        return value, str(value).lower()
    if option.name == "model":
        return "unigram", "unigram"
    if option.name == "pre_tokenizer":
        return "whitespace", "whitespace"
    if option.name == "normalizer":
        return ("nfc", "lowercase"), "nfc, lowercase"
    if isinstance(kind, Choice):
        value = next(value for value in reversed(kind.values) if value != option.default)
        return value, value
    if isinstance(kind, Places):
        return ("a",), "a"
    known: dict[type, tuple[Any, str]] = {
        Whole: (70, "70"),
        Share: (0.5, "0.5"),
        Shares: ((("a", "0.9"), ("b", "0.1")), "a=0.9,b=0.1"),
        Size: (1 << 30, "1GiB"),
        Duration: (90.0, "1.5m"),
        Names: (("a", "b"), "a,b"),
        Wholes: ((70, 80), "70, 80"),
    }
    return known.get(type(kind), ("x", "x"))


def bad(option: Option) -> Any:
    """A value that the option cannot have."""
    kind = option.kind
    if isinstance(kind, Flag | Choice):
        return "some"
    if isinstance(kind, Whole | Wholes):
        return kind.most + 1
    if isinstance(kind, Share):
        return 1.5
    if isinstance(kind, Size):
        return "much"
    if isinstance(kind, Duration):
        return "long"
    if isinstance(kind, Place | Column | Places):
        return ""
    if isinstance(kind, Text):
        return "a\0b"
    assert isinstance(kind, Names | Shares | PreTokenizers)
    return "a\0b"


def every() -> Iterator[Any]:
    for command, call in CALLS.items():
        for option in call.options():
            yield pytest.param(command, option, id=f"{command}-{option.name}")


def of_command(command: str, *args: str) -> Any:
    """The call that a command line makes."""
    found = program.wordpiece.commands[command]
    parent = click.Context(program.wordpiece, auto_envvar_prefix="WORDPIECE")
    with found.make_context(command, list(args), parent=parent) as context:
        return parted(CALLS[command], nearest(CALLS[command], context.params))


def written(values: dict[str, Any], command: str) -> list[str]:
    """Values as arguments of a command line, those without a name first."""
    call = CALLS[command]
    switches = {option.name: option.switch for option in call.options() if not option.in_config}
    args = [values[name] for name in call.ARGUMENTS if name in values]
    for name, value in values.items():
        if name in switches and name not in call.ARGUMENTS:
            args += [switches[name]] if value is True else [switches[name], str(value)]
    return args


@pytest.fixture(autouse=True)
def environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets what an option needs and the command line does not have."""
    if "option" in request.fixturenames:
        command, option = (request.getfixturevalue(name) for name in ("command", "option"))
        others = needed(command, option)
        for known in CALLS[command].options():
            if known.in_config and known.name in others:
                variable = f"WORDPIECE_{command.upper()}_{known.name.upper()}"
                monkeypatch.setenv(variable, str(others[known.name]))


def given(command: str) -> dict[str, Any]:
    """Return the required options."""
    output = {"output": "out"} if issubclass(CALLS[command], Call) else {}
    return output | NEEDED[command]


def needed(command: str, option: Option) -> dict[str, Any]:
    """Return the other options that this option requires."""
    known = WITH | {name: others for (c, name), others in WITH_OF_COMMAND.items() if c == command}
    together = given(command) | known.get(option.name, {})
    return {k: v for k, v in together.items() if v is not None and k != option.name}


@pytest.mark.parametrize("command", CALLS)
def test_defaults_are_the_same_everywhere(command: str) -> None:
    values = given(command)
    assert of_command(command, *written(values, command)) == CALLS[command].of(**values)
    signature = inspect.signature(getattr(pipelines, command)).parameters
    options = {option.name: option for option in CALLS[command].options()}
    for option in options.values():
        default = inspect.Parameter.empty if option.is_required else option.default
        assert signature[option.name].default == default
    own = {"quiet"} if command == "check" else {"beam_args", "quiet"}
    assert signature.keys() - options.keys() == own


@pytest.mark.parametrize(("command", "option"), every())
def test_an_option_is_the_same_by_every_way(
    command: str, option: Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, text = example(command, option)
    others = needed(command, option)
    wanted = CALLS[command].of(**others, **{option.name: value})
    if option.in_config:
        key = f"--{option.name.replace('_', '-')}"
        with pytest.raises(click.UsageError, match=f"{key} .set {option.name} in a config file"):
            of_command(command, *written(others, command), f"{key}=x")
    elif isinstance(option.kind, Flag):
        switch = option.switch if value else option.switch_off
        assert of_command(command, *written(others, command), switch) == wanted
    else:
        assert of_command(command, *written(others | {option.name: text}, command)) == wanted

    config = tmp_path / "config.yaml"
    plain = list(value) if isinstance(value, tuple) else value
    if isinstance(option.kind, Shares):
        plain = {name: float(share) for name, share in value}
    config.write_text(yaml.safe_dump({option.name: plain}))
    assert of_command(command, "--config", str(config), *written(others, command)) == wanted

    monkeypatch.setenv(f"WORDPIECE_{command.upper()}_{option.name.upper()}", text)
    assert of_command(command, *written(others, command)) == wanted

    is_argument = option.name in CALLS[command].ARGUMENTS
    shown = done(command, "--help").out
    assert is_argument or re.search(rf"(?<![\w-]){option.switch}(?![\w-])", shown)
    assert option.name in (getattr(pipelines, command).__doc__ or "")


@pytest.mark.parametrize(("command", "option"), every())
def test_a_value_that_an_option_cannot_have_is_refused_by_every_way(
    command: str, option: Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, others = bad(option), needed(command, option)
    with pytest.raises(wp.OptionError, match=option.name):
        CALLS[command].of(**others, **{option.name: value})
    name = option.name.removesuffix("s").replace("_", "[-_]")
    named = re.compile(rf"{name}|{option.switch}", re.IGNORECASE)
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({option.name: value}))
    lines = [["--config", str(config), *written(others, command)]]
    if not (isinstance(option.kind, Flag) or option.in_config):
        lines.append(written(others | {option.name: value}, command))
    if value and "\0" not in str(value):  # the environment can hold it
        lines.append(written(others, command))
    for line in lines:
        if line == written(others, command):
            monkeypatch.setenv(f"WORDPIECE_{command.upper()}_{option.name.upper()}", str(value))
        with pytest.raises((click.UsageError, wp.OptionError)) as raised:
            of_command(command, *line)
        assert named.search(said(raised.value))


def said(error: BaseException) -> str:
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


def test_the_command_line_wins_over_the_environment_and_that_over_a_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("min_word_count: 2\noutput: of-config\ninputs: [a, b]\n")
    args = ["--config", str(config)]
    call = of_command("count", *args)
    assert (call.inputs, call.output) == (("a", "b"), "of-config")
    assert call.min_word_count == 2
    monkeypatch.setenv("WORDPIECE_COUNT_MIN_WORD_COUNT", "3")
    monkeypatch.setenv("WORDPIECE_COUNT_CONFIG", str(config))
    monkeypatch.setenv("WORDPIECE_COUNT_INPUTS", "c d")
    call = of_command("count")
    assert (call.inputs, call.output) == (("c", "d"), "of-config")
    assert call.min_word_count == 3
    call = of_command("count", "e", "--min-word-count", "4")
    assert call.inputs == ("e",)
    assert call.min_word_count == 4


def test_an_option_that_is_none_is_named_with_the_nearest() -> None:
    with pytest.raises(wp.OptionError, match="unknown option vocabsize; did you mean vocab_size"):
        pipelines.train("in", output="out", vocabsize=9)
    with pytest.raises(wp.OptionError, match="output: required"):
        pipelines.count("in")
    with pytest.raises(wp.OptionError, match="set `inputs`"):
        pipelines.count(output="out")


def test_a_config_takes_null_for_what_is_not_set_and_lists_where_lists_are(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    args = ["in", "--output", "out", "--config", str(config)]
    config.write_text("limit_alphabet: null\nmax_token_length: ~\nstrip_accents:\n")
    assert of_command("train", *args) == TrainCall.of(inputs="in", output="out")
    for text in ("output: [a, b]", "initial_alphabet: [x, y]", "vocab_size: [17]"):
        config.write_text(text)
        with pytest.raises(wp.OptionError, match=text.partition(":")[0]):
            of_command("train", *args)


def test_inputs_of_a_config_give_way_to_a_word_table_of_the_command_line(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "a.txt", english(30))
    words, tokenizer = tmp_path / "words", tmp_path / "tok"
    done("count", shard, "--output", words)
    config = tmp_path / "config.yaml"
    config.write_text(f"inputs: {tmp_path}/nothing.txt\nvocab_size: 60\n")
    args = ["--config", config, "--output", tokenizer, "--word-counts", words]
    assert "vocabulary: 60 tokens" in done("train", *args).out
    assert "set either INPUT" in wordpiece("train", shard, *args).fault


def test_numbers_of_numpy_and_paths_as_they_come_are_values(tmp_path: Path) -> None:
    call = TrainCall.of(
        inputs=(path for path in [tmp_path / "a", tmp_path / "b"]),
        output=tmp_path,
        vocab_size=np.int64(70),
        worker_memory=np.int64(1 << 29),
        round_budget=np.float32(0.5),
    )
    assert call.inputs == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert (type(call.training.vocab_size), call.training.vocab_size) == (int, 70)
    assert call.budget.round_budget == 0.5
    for bad in ({"a", "b"}, {"a": 1}):
        with pytest.raises(wp.OptionError, match=r"special_tokens: .* is not a list"):
            TrainCall.of(inputs="in", output="out", special_tokens=bad)


@pytest.mark.parametrize("given", [None, "--runner=x", ["--direct_num_workers", 2]])
def test_arguments_for_beam_are_texts(given: Any, tmp_path: Path) -> None:
    if given is None:
        given = [None]
    with pytest.raises(wp.OptionError, match="beam_args: expected a list of strings"):
        pipelines.count("in", output=tmp_path / "out", beam_args=given)


def test_a_message_names_an_option_as_it_is_called_where_it_is_shown() -> None:
    for name, switch in {
        "add_special_tokens=False": "--no-special-tokens",
        "clean_text=False": "clean_text: false",
        "beam_args": "arguments after --",
        "git lfs pull": "`git lfs pull`",
        "no_option": "`no_option`",
    }.items():
        assert for_command(f"give `{name}`, or {{stride}}") == f"give {switch}, or {{stride}}"


def test_no_message_names_an_option_of_the_command_line_by_itself() -> None:
    """It would be wrong in Python. The command line itself may, and so may what is about Beam."""
    apart = ("commands", "running")
    for path in PROJECT.glob("pipelines/**/*.py"):
        if path.parent.name in apart:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        raised = [n for n in ast.walk(tree) if isinstance(n, ast.Raise | ast.Yield | ast.Return)]
        said = [n for statement in raised for n in ast.walk(statement)]
        texts = [n.value for n in said if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        assert [t for t in texts if re.search(r"(?<![\w-])--[a-z]|\bINPUT\b", t)] == [], path
        assert not [n for n in said if getattr(n, "attr", "") in ("switch", "switch_off")], path


def test_a_list_can_be_given_item_by_item() -> None:
    encode = ("encode", "in", "--tokenizer", "tok", "--output", "out")
    call = of_command(*encode, "--columns", "word_ids", "--columns", "num_tokens,attention_mask")
    assert call.shards.encoding.columns == ("word_ids", "num_tokens", "attention_mask")
    assert of_command(*encode, "--keep-columns", "").shards.keep_columns == ()
    count = ("count", "in", "--output", "out")
    call = of_command(*count, "--pre-tokenizer", "digits", "--pre-tokenizer", "[a-z]{1,3}|.")
    assert call.counting.text.pre_tokenizer == ("digits", "[a-z]{1,3}|.")
    with pytest.raises(OptionError, match=r"^columns: 'word_ids' is given twice; give it once"):
        of_command(*encode, "--columns", "word_ids", "--columns", "word_ids")


def test_an_empty_list_in_a_config_file_is_kept(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("keep_columns: []\n")
    encode = ("encode", "in", "--tokenizer", "tok", "--output", "out", "--config", str(config))
    assert of_command(*encode).shards.keep_columns == ()
