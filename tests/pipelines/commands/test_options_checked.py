"""Options are checked before work begins: one line, exit status 2, and no files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..corpora import Outcome, column, done, files_below, wordpiece, write_shard

TEXTS = ["hello world", "hello there"]


@pytest.fixture
def shard(tmp_path: Path) -> str:
    return write_shard(tmp_path / "in.txt", TEXTS)


def refused(tmp_path: Path, *args: str | Path) -> Outcome:
    """A call that must end with 2 and one line, and change no file and no directory."""
    before = sorted(map(str, tmp_path.rglob("*"))), files_below(tmp_path)
    outcome = wordpiece(*args)
    assert outcome.status == 2, outcome
    assert outcome.fault
    assert (outcome.out, outcome.err.count("\n")) == ("", 1)
    assert (sorted(map(str, tmp_path.rglob("*"))), files_below(tmp_path)) == before
    return outcome


@pytest.mark.parametrize(
    ("command", "option", "value", "reason"),
    [
        ("count", "--smoothing-exponent", "nan", "is not a number from 0 to 1"),
        ("count", "--min-word-count", "9" * 20, "is not a whole number from 1 to 9,22"),
        ("train", "--min-pair-count", "9" * 5000, "854,775,807, or auto"),
        (
            "count",
            "--worker-memory",
            "64KiB",
            "64KiB is not a size such as 512MiB, from 16MiB",
        ),
        (
            "count",
            "--worker-memory",
            "9999999999T",
            "is not a size such as 512MiB, from 16MiB",
        ),
        ("count", "--worker-memory", f"{'9' * 400}.5", "is not a size"),
        ("train", "--vocab-size", "4", "4 is too small for 5 special tokens; make it 5 or more"),
        ("train", "--special-tokens", "[UNK],a\rb", r"'a\rb' has a line end"),
        ("count", "--text-column", "a\udcff", r"b'a\xff' is not UTF-8"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_value_out_of_bounds_is_refused_before_anything_is_read(
    tmp_path: Path, shard: str, command: str, option: str, value: str, reason: str
) -> None:
    outcome = refused(tmp_path, command, shard, "--output", tmp_path / "out", option, value)
    assert reason in outcome.fault
    assert option.strip("-") in outcome.fault.replace("_", "-")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("inputs", "'unclosed", "No closing quotation; quote values as in a shell"),
        ("merge", '"unclosed', "No closing quotation; quote values as in a shell"),
        ("min_word_count", "many", "'many' is not a whole number from 1 to"),
        ("quiet", "perhaps", "'perhaps' is not a valid boolean"),
    ],
)
def test_a_variable_of_the_environment_with_a_wrong_value_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shard: str,
    name: str,
    value: str,
    reason: str,
) -> None:
    variable = f"WORDPIECE_COUNT_{name}".upper()
    monkeypatch.setenv(variable, value)
    inputs = [] if name == "inputs" else [shard]
    outcome = refused(tmp_path, "count", *inputs, "--output", tmp_path / "out")
    assert outcome.fault.startswith(f"the environment variable {variable}")
    assert reason in outcome.fault


def test_unknown_variables_of_the_environment_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: str
) -> None:
    monkeypatch.setenv("WORDPIECE_COUNT_PORT", "tcp://10.0.0.1:80")  # as Kubernetes sets it
    done("count", shard, "--output", tmp_path / "out")


CONFIGS = {
    "a list of options": ("- quiet", ": not a mapping of options"),
    "a section": ("count: 3", ": count: not a mapping of options"),
    "a key twice in a section": ("count:\n  quiet: yes\n  quiet: no\n", " line 3: not YAML"),
    "a key with - and with _": ("text-column: a\ntext_column: b\n", ": option 'text_column' is g"),
    "documents": ("quiet: true\n---\nquiet: false\n", " line 2: not YAML"),
    "deep lists": (f"quiet: {'[' * 5000}{']' * 5000}", ": not YAML"),
    "no YAML": ("quiet: [", " line 1: not YAML"),
    "surrogate": ('text_column: "\\ud800"', r": option 'text_column': '\ud800' is not UTF-8"),
    "NUL": ('output: "a\\0b"', r": option 'output': 'a\x00b' contains the character NUL"),
    "nan": ("smoothing_exponent: .nan", ": option 'smoothing_exponent': '.nan' is not a number"),
    "list": ("text_column: [yes]", ": option 'text_column': ['yes'] is not a string"),
    "mapping": ("merge: {a: b}", ": option 'merge': {'a': 'b'} is not a list of paths"),
    "no path": ("output: ''", ": option 'output': the path is empty"),
    "unknown": ("outputs: x", ": unknown option 'outputs' for count; did you mean output?"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_wrong_config_file_is_named(tmp_path: Path, shard: str, name: str) -> None:
    text, reason = CONFIGS[name]
    config = tmp_path / "config.yaml"
    config.write_text(text)
    args = ["--output", tmp_path / "out"] if "output" not in text else []
    outcome = refused(tmp_path, "count", shard, "--config", config, *args)
    assert outcome.fault.startswith(f"{config}{reason}")
    assert len(outcome.fault) < 500


@pytest.mark.parametrize(
    ("bad", "reason"),
    [("", "the path is empty"), ("a\udcff", r"b'a\xff' is not UTF-8; rename it")],
    ids=["empty", "not UTF-8"],
)
def test_a_path_that_can_be_none_is_refused(tmp_path: Path, bad: str, reason: str) -> None:
    good = str(tmp_path / "x")
    for args in (
        ("count", bad, "--output", good),
        ("count", good, "--output", bad),
        ("count", good, "--output", good, "--config", bad),
        ("inspect", bad, "text"),
    ):
        assert refused(tmp_path, *args).fault.endswith(reason)


COMMANDS = ("count", "train", "encode")


def call(command: str, tmp_path: Path, *more: str | Path) -> list[str]:
    """A command with an input and a vocabulary that are there."""
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[UNK]\n[CLS]\n[SEP]\n")
    tokenizer = ["--tokenizer", str(vocab)] if command == "encode" else []
    return [command, write_shard(tmp_path / "in.txt", TEXTS), *tokenizer, *map(str, more)]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_cannot_be_written_is_refused_first(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for output in ("file", "file/below/it", "link", "x" * 256):
        args = call(command, tmp_path, "--output", tmp_path / output)
        assert refused(tmp_path, *args).fault.startswith(f"--output: {tmp_path}")
    args = call(command, tmp_path, "--output", "no-such-store://x/y")
    assert refused(tmp_path, *args).fault.startswith(
        "--output: no-such-store://x/y: cannot be opened"
    )


@pytest.mark.parametrize(
    ("arg", "reason"),
    [
        ("--direct_running_mode=fast", "argument --direct_running_mode: invalid choice: 'fast'"),
        ("--direct_num_worker=2", "Beam does not know --direct_num_worker"),
    ],
    ids=ascii,
)
def test_wrong_arguments_for_beam_are_refused_first(tmp_path: Path, arg: str, reason: str) -> None:
    args = call("count", tmp_path, "--output", tmp_path / "out", "--", arg)
    assert refused(tmp_path, *args).fault.startswith(f"arguments after --: {reason}")


def test_a_vocabulary_taken_as_cased_is_a_warning_of_one_line(tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nHello\nhello\n")
    shard = write_shard(tmp_path / "in.txt", ["Hello hello"])
    said = f"wordpiece: tokenizer {vocab} has capital letters: taken as cased"
    said += " (override with --lowercase)\n"
    for given, ids, err in (
        ([], [2, 4, 5, 3], said),
        (["--lowercase"], [2, 5, 5, 3], ""),
        (["--no-lowercase"], [2, 4, 5, 3], ""),
    ):
        output = tmp_path / f"out{given}"
        args = ["--tokenizer", vocab, "--output", output, "--quiet", *given]
        assert done("encode", shard, *args).err == err
        assert column(output) == [ids]
        inspected = done("inspect", tmp_path, "Hello hello", "--json", *given)
        assert [token["id"] for token in json.loads(inspected.out)["tokens"]] == ids
        assert inspected.err == err


def test_many_tokens_left_out_by_packing_are_a_warning_with_their_share(tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    args = ["--tokenizer", vocab, "--pack", "--max-length", "12", "--quiet"]
    for words, more, share in ((1015, [], None), (34, [], "11.8%"), (34, ["--padding"], None)):
        shard = write_shard(tmp_path / f"{words}.txt", ["a " * words])
        err = done("encode", shard, "--output", tmp_path / f"{words}{more}", *args, *more).err
        if share is None:
            assert err == ""
        else:
            assert err.startswith(f"wordpiece: warning: {share} of the tokens were left out")
            assert "--padding" in err
