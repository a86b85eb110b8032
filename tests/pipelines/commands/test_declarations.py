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
from pipelines.commands.job_command import CommandLog
from pipelines.commands.options import build, nearest, spelling
from pipelines.comparing.options import CheckOptions, CompareOptions
from pipelines.counting.options import CountOptions
from pipelines.encoding.options import EncodeOptions
from pipelines.options import InputOptions, RunOptions
from pipelines.reporting.options import ReportOptions
from pipelines.training.options import ExtendOptions, PruneOptions, TrainOptions
from wordpiece_core.declared import Option, Options, Section, declared, helps, parts
from wordpiece_core.errors import OptionError, WordpieceError, opt, spelled
from wordpiece_core.option_types import Duration, Share, Size, Splits

from ..corpora import done, english, wordpiece, write_shard

PROJECT = Path(__file__).parents[3]
CALLS: dict[str, type[RunOptions]] = {
    **{"count": CountOptions, "train": TrainOptions, "encode": EncodeOptions},
    **{
        "extend": ExtendOptions,
        "prune": PruneOptions,
        "compare": CompareOptions,
        "report": ReportOptions,
    },
    "check": CheckOptions,
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
SUPERWORDS = {"model": "bpe", "word_boundary": "bytes", "pre_tokenizer": "gpt2"}
WITH: dict[str, dict[str, Any]] = {
    "smoothing_exponent": {"group_column": "lang"},
    "from_tokenizer": {"ids_column": "input_ids"},
    "ids_column": {"from_tokenizer": "vocab.txt"},
    "encode group_column": {"mix": "mix.yaml", "shuffle": 1},
    "mix": {"shuffle": 1},
    "pack": {"max_length": 128},
    "tokens": {"mix": "mix.yaml", "shuffle": 1},
    "stride": {"max_length": 128},
    "superword_pattern": {"superwords": 70, **SUPERWORDS},
    "superwords": SUPERWORDS,
    "until_idle": {"follow": True},
    "word_boundary": {"model": "bpe"},
    "word_counts": {"inputs": None},
    "extend tokenizer": {"inputs": None, "word_counts": "words"},  # both are positional
}
"""Required options of an option, and excluded ones as None."""


SPECIAL: dict[str, tuple[Any, str]] = {
    "unk_token": ("[UNK]", "[UNK]"),
    "columns": (("word_ids", "num_tokens"), "word_ids, num_tokens"),
    "keep_columns": (("a", "b"), "a,b"),
    "special_tokens": (("[UNK]", "<s>"), "[UNK],<s>"),
    "model": ("unigram", "unigram"),
    "pre_tokenizer": ("whitespace", "whitespace"),
    "normalizer": (("nfc", "lowercase"), "nfc, lowercase"),
    "vocab_sizes": ((70, 80), "70, 80"),
    "splits": ((("a", "0.9"), ("b", "0.1")), "a=0.9,b=0.1"),
}


def is_a(option: Option, kind: Any) -> bool:
    """True if the type of an option includes all parts of a type."""
    return {*parts(kind)} <= {*parts(option.kind)}


def example(option: Option) -> tuple[Any, str]:
    """Return a value other than the default, and its text."""
    if option.name in SPECIAL:
        return SPECIAL[option.name]
    if option.is_flag:
        value = option.default is False
        return value, str(value).lower()
    if is_a(option, Share):
        return 0.5, "0.5"
    if is_a(option, Size):
        return 1 << 30, "1GiB"
    if is_a(option, Duration):
        return 90.0, "1.5m"
    if int in parts(option.kind):
        return 70, "70"
    if option.choices:
        value = next(value for value in reversed(option.choices) if value != option.default)
        return value, value
    return (("a",), "a") if option.is_list else ("x", "x")


def bad(option: Option) -> Any:
    """Return a value that the option cannot have."""
    if is_a(option, Size) or is_a(option, Duration) or is_a(option, Splits):
        return "much"
    if int in parts(option.kind):
        return 2**70
    if float in parts(option.kind):
        return 1.5
    if option.is_flag or (option.choices and option.name != "special_tokens"):
        return ["some"] if option.is_list else "some"
    is_path = option.form.is_path or option.metavar.startswith(("TOKENIZER", "NAME"))
    return "" if is_path else "a\0b"


def options_of(options: type[Options]) -> list[Option]:
    """Return the options that a command line, a config file and the environment have."""
    return [option for option in declared(options) if option.name != "beam_args"]


def of_each_kind() -> Iterator[Any]:
    """Yield the command and the first option of each type of value, with its bounds; flags that
    are on are a type."""
    kinds = {}
    for command, call in CALLS.items():
        for option in options_of(call):
            notes = [part for part in parts(option.kind) if not isinstance(part, Section)]
            is_on = option.default is True
            kinds.setdefault((repr(notes), option.is_positional, is_on), (command, option))
    for command, option in kinds.values():
        yield pytest.param(command, option, id=f"{command}-{option.name}")


def of_command(command: str, *args: str) -> Any:
    """The call that a command line makes."""
    found = program.wordpiece.get_command(None, command)
    parent = click.Context(program.wordpiece, auto_envvar_prefix="WORDPIECE")
    with found.make_context(command, list(args), parent=parent) as context:
        return build(CALLS[command], nearest(CALLS[command], context.params))


def switch(option: Option, value: Any = True) -> str:
    return f"--{'no-' * (value is False)}{option.name.replace('_', '-')}"


def written(values: dict[str, Any], command: str) -> list[str]:
    """Return values as arguments of a command line, positional ones first."""
    known = {option.name: option for option in declared(CALLS[command])}
    args = [values[name] for name, o in known.items() if o.is_positional and name in values]
    for name, value in values.items():
        if not known[name].is_positional:
            flag = switch(known[name], value)
            args += [flag] if known[name].is_flag else [flag, str(value)]
    return args


def given(command: str) -> dict[str, Any]:
    """Return the required options."""
    output = {"output": "out"} if issubclass(CALLS[command], InputOptions) else {}
    return output | NEEDED[command]


def needed(command: str, option: Option) -> dict[str, Any]:
    """Return the other options that this option requires."""
    together = given(command) | WITH.get(option.name, {}) | WITH.get(f"{command} {option.name}", {})
    return {k: v for k, v in together.items() if v is not None and k != option.name}


@pytest.mark.parametrize("command", CALLS)
def test_defaults_are_the_same_everywhere(command: str) -> None:
    values = given(command)
    assert of_command(command, *written(values, command)) == CALLS[command](**values)
    signature = inspect.signature(getattr(pipelines, command)).parameters
    assert {name: found.default for name, found in signature.items()} == {
        option.name: option.default for option in declared(CALLS[command])
    }


@pytest.mark.parametrize(("command", "option"), of_each_kind())
def test_an_option_is_the_same_by_every_way(
    command: str, option: Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, text = example(option)
    others = needed(command, option)
    wanted = CALLS[command](**others, **{option.name: value})
    if option.is_flag:
        assert of_command(command, *written(others, command), switch(option, value)) == wanted
    else:
        assert of_command(command, *written(others | {option.name: text}, command)) == wanted

    config = tmp_path / "config.yaml"
    plain = list(value) if isinstance(value, tuple) else value
    plain = dict(plain) if option.name == "splits" else plain
    config.write_text(yaml.safe_dump({option.name: plain}))
    assert of_command(command, "--config", str(config), *written(others, command)) == wanted

    monkeypatch.setenv(f"WORDPIECE_{command.upper()}_{option.name.upper()}", text)
    assert of_command(command, *written(others, command)) == wanted


@pytest.mark.parametrize(("command", "option"), of_each_kind())
def test_a_value_that_an_option_cannot_have_is_refused_by_every_way(
    command: str, option: Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, others = bad(option), needed(command, option)
    with pytest.raises(wp.OptionError, match=option.name):
        CALLS[command](**others, **{option.name: value})
    name = option.name.removesuffix("s").replace("_", "[-_]")
    named = re.compile(name, re.IGNORECASE)
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({option.name: value}))
    lines = [["--config", str(config), *written(others, command)]]
    text = value[0] if isinstance(value, list) else value
    if option.may_be_bare:  # a word after it would be an input
        lines.append([f"{switch(option)}={text}", *written(others, command)])
    elif not option.is_flag:
        lines.append(written(others | {option.name: text}, command))
    if value and "\0" not in str(value):  # the environment can hold it
        lines.append(written(others, command))
    for line in lines:
        if line == written(others, command):
            monkeypatch.setenv(f"WORDPIECE_{command.upper()}_{option.name.upper()}", str(text))
        with pytest.raises((click.UsageError, wp.OptionError)) as raised:
            of_command(command, *line)
        assert named.search(said(raised.value))


@pytest.mark.parametrize("command", CALLS)
def test_every_option_has_help_and_checks_run_before_rules(command: str) -> None:
    shown, documented = done(command, "--help").out, getattr(pipelines, command).__doc__ or ""
    for option in options_of(CALLS[command]):
        assert option.is_positional or re.search(rf"(?<![\w-]){switch(option)}(?![\w-])", shown)
        assert f"    {option.name}: " in documented
    assert {option.name for option in declared(CALLS[command])} <= helps(CALLS[command]).keys()
    wrong = {option.name: object() for option in declared(CALLS[command]) if not option.is_list}
    with pytest.raises(wp.OptionError, match=" is not "):
        CALLS[command](**given(command) | wrong)


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


def test_unknown_and_missing_arguments_are_type_errors() -> None:
    with pytest.raises(
        TypeError, match=r"train\(\) got an unexpected keyword argument 'vocabsize'"
    ):
        pipelines.train("in", output="out", vocabsize=9)
    with pytest.raises(TypeError, match="'output'"):
        pipelines.count("in")
    with pytest.raises(wp.OptionError, match="set `inputs`"):
        pipelines.count(output="out")


def test_a_config_takes_null_for_what_is_not_set_and_lists_where_lists_are(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    args = ["in", "--output", "out", "--config", str(config)]
    config.write_text("limit_alphabet: null\nmax_token_length: ~\nstrip_accents:\n")
    assert of_command("train", *args) == TrainOptions("in", output="out")
    for text in ("output: [a, b]", "initial_alphabet: [x, y]", "vocab_size: [17]"):
        config.write_text(text)
        with pytest.raises(wp.OptionError, match=text.partition(":")[0]):
            of_command("train", *args)


def test_null_for_a_required_option_and_a_mapping_for_a_list_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    for text, reason in (
        ("output: null", f"output ({config}): required"),
        ("normalizer: {nfc: 1}", "{'nfc': '1'} is not a list"),
        ("splits: [train]", "'' is not a share"),
    ):
        config.write_text(f"inputs: in\ntokenizer: t\n{text}\n")
        command = "train" if "normalizer" in text else "encode"
        output = [] if "output" in text else ["--output", str(tmp_path / "out")]
        outcome = wordpiece(command, "--config", config, *output)
        assert (outcome.status, outcome.err.count("\n")) == (2, 1)
        assert reason in outcome.fault


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
    call = TrainOptions(
        (path for path in [tmp_path / "a", tmp_path / "b"]),
        output=tmp_path,
        vocab_size=np.int64(70),
        worker_memory=np.int64(1 << 29),
        round_budget=np.float32(0.5),
    )
    assert call.inputs == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert (type(call.vocab_size), call.vocab_size) == (int, 70)
    assert call.round_budget == 0.5
    for bad in ({"a", "b"}, {"a": 1}):
        with pytest.raises(wp.OptionError, match=r"special_tokens: .* is not a list"):
            TrainOptions("in", output="out", special_tokens=bad)


def test_arguments_for_beam_may_be_equal() -> None:
    args = ["--direct_num_workers", "1", "--job_port", "1"]
    assert CountOptions("in", output="out", beam_args=args).beam_args == tuple(args)


@pytest.mark.parametrize("given", [[None], 2, ["--direct_num_workers", 2], {"a": "b"}])
def test_arguments_for_beam_are_texts(given: Any, tmp_path: Path) -> None:
    with pytest.raises(wp.OptionError, match=r"beam_args: .* is not a "):
        pipelines.count("in", output=tmp_path / "out", beam_args=given)


def test_a_message_names_an_option_as_the_caller_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("stride: 3\n")
    monkeypatch.setenv("WORDPIECE_ENCODE_PADDING", "yes")
    command = program.wordpiece.get_command(None, "encode")
    parent = click.Context(program.wordpiece, auto_envvar_prefix="WORDPIECE")
    args = ["in", "--tokenizer", "t", "--output", "o", "--config", str(config)]
    with command.make_context("encode", args, parent=parent) as context:
        for name, written in {
            "add_special_tokens=False": "--no-add-special-tokens",
            "max_length": "--max-length",
            "inputs": "INPUT",
            "stride": f"stride ({config})",
            "padding": "WORDPIECE_ENCODE_PADDING",
            "beam_args": "arguments after --",
        }.items():
            assert (
                spelled(f"give {opt[name]}, or `x`", spelling(context)) == f"give {written}, or `x`"
            )
            assert spelled(f"give {opt[name]}") == f"give `{name}`"


def test_a_warning_in_json_names_options_as_the_caller_wrote_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    CommandLog(quiet=False, as_json=True).warn(f"skipped: a.csv; set {opt.no_quoting}")
    assert "skipped: a.csv; set --no-quoting" in capfd.readouterr().err


def test_an_error_of_a_worker_names_options_as_the_caller_wrote_them() -> None:
    trace = (
        f"x\nwordpiece_core.errors.InputError: a.csv: bad; set {spelled(f' {opt.no_quoting}')}\n"
    )
    error = WordpieceError.from_traceback(trace)
    assert error is not None
    error.spell(spelling(None))
    assert str(error) == "a.csv: bad; set  --no-quoting"


def test_every_placeholder_is_an_option() -> None:
    names = {option.name for kind in subclasses(Options) for option in declared(kind)}
    for path in [*PROJECT.glob("pipelines/**/*.py"), *PROJECT.glob("wordpiece_core/**/*.py")]:
        found = {*re.findall(r"\{opt\.(\w+)\}", path.read_text(encoding="utf-8"))}
        assert found <= names | {"more_special_tokens"}, path


def subclasses(kind: type[Options]) -> Iterator[type[Options]]:
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def test_no_message_names_an_option_of_the_command_line_by_itself() -> None:
    """It would be wrong in Python. The modules of the command line may name options."""
    for path in PROJECT.glob("pipelines/**/*.py"):
        if path.parent.name == "commands":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        raised = [n for n in ast.walk(tree) if isinstance(n, ast.Raise | ast.Yield | ast.Return)]
        said = [n for statement in raised for n in ast.walk(statement)]
        texts = [n.value for n in said if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        assert [t for t in texts if re.search(r"(?<![\w-])--[a-z]|\bINPUT\b", t)] == [], path


def test_a_list_can_be_given_item_by_item() -> None:
    encode = ("encode", "in", "--tokenizer", "tok", "--output", "out")
    call = of_command(*encode, "--columns", "word_ids", "--columns", "num_tokens,attention_mask")
    assert call.columns == ("word_ids", "num_tokens", "attention_mask")
    assert of_command(*encode, "--keep-columns", "").keep_columns == ()
    count = ("count", "in", "--output", "out")
    call = of_command(*count, "--pre-tokenizer", "digits", "--pre-tokenizer", "[a-z]{1,3}|.")
    assert call.pre_tokenizer == ("digits", "[a-z]{1,3}|.")
    with pytest.raises(OptionError, match=r"^columns: 'word_ids' is given twice; give it once"):
        of_command(*encode, "--columns", "word_ids", "--columns", "word_ids")


def test_an_empty_list_in_a_config_file_is_kept(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("keep_columns: []\n")
    encode = ("encode", "in", "--tokenizer", "tok", "--output", "out", "--config", str(config))
    assert of_command(*encode).keep_columns == ()
