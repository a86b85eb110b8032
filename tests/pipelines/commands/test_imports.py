"""Commands that do not need Beam do not import it."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from ..corpora import process

soak = partial(pytest.param, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["encode", "--help"], 0),
        (["inspect", "VOCAB", "hug"], 0),
        soak(["inspect", "FINISHED"], 0),
        soak(["count", "TEXT", "--output", "OUT", "--ouput", "X"], 2),
        soak(["count", "TEXT", "--output", "OUT", "--config", "NOWHERE"], 2),
        soak(["encode", "TEXT", "--tokenizer", "VOCAB", "--output", "FINISHED"], 0),
        (["encode", "TEXT", "--tokenizer", "NOWHERE", "--output", "OUT"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_beam_is_not_imported_without_need(tmp_path: Path, args: list[str], status: int) -> None:
    names = {"TEXT": "a.txt", "VOCAB": "vocab.txt", "OUT": "out", "FINISHED": "finished"}
    places = {name: str(tmp_path / file) for name, file in names.items()}
    Path(places["TEXT"]).write_text("hug\n")
    Path(places["VOCAB"]).write_text("[UNK]\n[CLS]\n[SEP]\nhug\n")
    if "FINISHED" in args:
        finished = ["encode", "TEXT", "--tokenizer", "VOCAB", "--output", "FINISHED"]
        assert process(*(places.get(arg, arg) for arg in finished)).status == 0
    command = [places.get(arg, arg) for arg in args]
    verbose = [sys.executable, "-X", "importtime", "-m", "pipelines", *command]
    ended = subprocess.run(verbose, capture_output=True, text=True)
    assert ended.returncode == status, ended.stderr
    imported = {line.split("|")[-1].strip() for line in ended.stderr.splitlines()}
    assert "pipelines.commands.cli" in imported
    assert "apache_beam" not in imported
    assert ("pyarrow" not in imported) or "--help" not in args
