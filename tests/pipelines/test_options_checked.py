"""Options are checked before work begins: one line, exit 2, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from .corpora import Outcome, files_below, wordpiece, write_shard

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


# --- Numbers, sizes, texts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "option", "value", "reason"),
    [
        ("count", "--smoothing-exponent", "nan", "nan is not a number"),
        ("count", "--smoothing-exponent", "inf", "not in the range"),
        ("train", "--round-budget", "nan", "nan is not a number"),
        ("count", "--min-word-count", "9" * 20, f"{'9' * 20} is more than 9223372036854775807"),
        ("train", "--vocab-size", "2147483648", "is more than 2147483647, the most it can be"),
        ("train", "--max-word-length", "4294967296", "is more than 4294967295"),
        ("train", "--min-pair-count", "9" * 20, "is not a whole number from 1 to 92233720368547"),
        ("train", "--min-pair-count", "9" * 5000, "is not a number or auto"),
        ("count", "--worker-memory", "9999999999T", "is too much; give 1PiB at most"),
        ("count", "--worker-memory", "9" * 5000, "is not a size; give one like 512MiB"),
        ("count", "--worker-memory", f"{'9' * 400}.5", "is not a size"),
        ("train", "--driver-memory", "1e9", "is not a size"),
        ("train", "--vocab-size", "4", "4 is too small for 5 special tokens; make it 5 or more"),
        ("train", "--continuing-prefix", "\n", r"'\n' has a line end; a line of vocab.txt cannot"),
        ("train", "--continuing-prefix", " ", "has white space, or a byte order mark, at an end"),
        ("train", "--special-tokens", "[UNK],a\rb", r"'a\rb' has a line end"),
        ("train", "--initial-alphabet", "a b", "' ' has white space"),
        ("count", "--text-column", "a\udcff", r"b'a\xff' is not UTF-8"),
        ("train", "--special-tokens", "[UNK],\udcff", r"b'[UNK],\xff' is not UTF-8"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_value_out_of_bounds_is_refused_before_anything_is_read(
    tmp_path: Path, shard: str, command: str, option: str, value: str, reason: str
) -> None:
    outcome = refused(tmp_path, command, shard, "--output", tmp_path / "out", option, value)
    assert reason in outcome.fault
    assert option.strip("-") in outcome.fault.replace("_", "-")


# --- Config files ---------------------------------------------------------------------------------

LAUGHS = "a: &a [x, x, x]\n" + "".join(f"{c}: &{c} [*{b}, *{b}]\n" for b, c in ("ab", "bc", "cd"))

CONFIGS = {
    "deep lists": (f"quiet: {'[' * 5000}{']' * 5000}", " line 1: more than 16 lists and mapp"),
    "deep mappings": ("\n".join(f"{' ' * i}a:" for i in range(90)), " line 17: more than 16"),
    "aliases": (LAUGHS, " line 1: an anchor or alias, 'a'; write the value out"),
    "a key twice": ("quiet: true\nquiet: false\n", " line 2: 'quiet' is given twice; remove one"),
    "a key twice in a section": ("count:\n  quiet: yes\n  quiet: no\n", " line 3: 'quiet' is g"),
    "documents": ("quiet: true\n---\nquiet: false\n", " line 2: a second document"),
    "large": ("#" * (300 << 10), ": more than 256 KiB is no config of options"),
    "surrogate": ('text_column: "\\ud800"', r": option 'text_column': '\ud800' is not UTF-8"),
    "surrogate as a key": ('"\\ud800": 1', r": unknown option '\ud800' for count"),
    "NUL": ('output: "a\\0b"', r": option 'output': 'a\x00b' holds the character NUL"),
    "nan": ("smoothing_exponent: .nan", ": option 'smoothing_exponent': nan is not a number"),
    "inf": ("min_word_count: .inf", ": option 'min_word_count': 'inf' is not a valid"),
    "digits": (f"min_word_count: {'9' * 5000}", ": not YAML ('999"),
    "no date": ("text_column: 2000-13-45", ": not YAML ('2000-13-45' is no timestamp; mend it,"),
    "no number": ("min_word_count: !!int x", ": not YAML ('x' is no int; mend it, or put it"),
    "no truth": ("quiet: !!bool x", ": not YAML ('x' is no bool"),
    "Python": ("quiet: !!python/object:os.system x", ": not YAML (could not determine"),
    "list of truths": ("text_column: [yes]", ": option 'text_column': [True] is not valid"),
    "mapping": ("merge: {a: b}", ": option 'merge': {'a': 'b'} is not valid"),
    "no path": ("output: ''", ": option 'output': give a path; this one is empty"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_file_is_checked_before_it_is_built(tmp_path: Path, shard: str, name: str) -> None:
    text, reason = CONFIGS[name]
    config = tmp_path / "config.yaml"
    config.write_text(text)
    args = ["--output", tmp_path / "out"] if "output" not in text else []
    outcome = refused(tmp_path, "count", shard, "--config", config, *args)
    assert outcome.fault.startswith(f"{config}{reason}")
    assert len(outcome.fault) < 500


def test_a_number_in_a_config_is_taken_as_on_the_command_line(tmp_path: Path, shard: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("worker_memory: 1000000.0\ntext_column: 2000-01-01\nsmoothing_exponent: 1\n")
    outcome = wordpiece("count", shard, "--config", config, "--output", tmp_path / "out")
    assert outcome.status == 0, outcome.err


# --- Places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "reason"),
    [("", "give a path; this one is empty"), ("a\udcff", r"b'a\xff' is not UTF-8; rename it")],
    ids=["empty", "not UTF-8"],
)
def test_a_path_that_can_be_none_is_refused(tmp_path: Path, bad: str, reason: str) -> None:
    good = str(tmp_path / "x")
    for args in (
        ("count", bad, "--output", good),
        ("count", good, "--output", bad),
        ("count", good, "--output", good, "--merge", bad),
        ("count", good, "--output", good, "--config", bad),
        ("train", "--output", good, "--word-counts", bad),
        ("train", good, "--output", good, "--work-dir", bad),
        ("encode", good, "--output", good, "--tokenizer", bad),
        ("inspect", bad, "text"),
    ):
        assert refused(tmp_path, *args).fault.endswith(reason)
