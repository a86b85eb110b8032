"""Signals to the process of the command, from its first moment to its last."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..corpora import Outcome, write_shard

INTERRUPTED = "wordpiece: interrupted; run the same command again to go on"


def python(code: str, *args: str | Path) -> Outcome:
    """Python code in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=False
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


WHEN_IMPORTED = """
import os, sys
module, number = sys.argv.pop(1), int(sys.argv.pop(1))
from pipelines.commands.cli import main

def hook(event, args):
    global module
    if event == "import" and args[0] == module:
        module = None
        os.kill(os.getpid(), number)

sys.addaudithook(hook)
main()
"""


@pytest.mark.parametrize(
    ("module", "number"),
    [("click", signal.SIGINT), ("pyarrow.lib", signal.SIGTERM), ("grpc", signal.SIGHUP)],
)
def test_a_signal_while_modules_are_imported_is_one_line(
    tmp_path: Path, module: str, number: int
) -> None:
    shard = write_shard(tmp_path / "in.txt", ["some text"])
    args = ["count", shard, "--output", tmp_path / "out", "--quiet"]
    outcome = python(WHEN_IMPORTED, module, str(int(number)), *args)
    assert (outcome.status, outcome.err.strip()) == (130, INTERRUPTED)
    assert not (tmp_path / "out").exists()


AT_THE_END = """
import atexit, os, sys
from pipelines.running import interrupts

def clean_up():
    for number in map(int, sys.argv[1:]):
        os.kill(os.getpid(), number)
    print("cleaned up", flush=True)

interrupts.SAME_SECONDS = 0
interrupts.begin()
atexit.register(clean_up)
interrupts.end(0)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_only_a_second_signal_stops_the_cleaning_up_at_the_end(number: int) -> None:
    sent = str(int(number))
    assert python(AT_THE_END, sent) == Outcome(0, "cleaned up\n", "")
    assert python(AT_THE_END, sent, sent) == Outcome(-number, "", "")
