"""What of Beam is loaded, and when. Each case has a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from ..corpora import process

OWN = """
import sys
from pipelines.running.load_beam import in_own_process, load_beam
in_own_process(only_local=True)
load_beam()
"""
LEFT_OUT = ("beartype", "bson", "httplib2", "pandas", "pymongo", "yaml")


def run(code: str) -> str:
    """What a process prints that runs the code."""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_command_leaves_out_what_a_local_run_does_not_use() -> None:
    code = f"""
import pyarrow as pa
pa.array([1])
import pipelines.counting.count, pipelines.encoding.encode_shards, pipelines.training.rounds
print([name for name in {LEFT_OUT} if name in sys.modules])
"""
    assert run(OWN + code) == "[]\n"


def test_what_was_left_out_can_be_imported_afterwards() -> None:
    code = """
import bson, httplib2, yaml
import apache_beam.io.gcp.bigquery, apache_beam.internal.http_client as client
from beartype.door import is_subhint
print(yaml.safe_load("a: 1"), is_subhint(bool, int), client.httplib2 is httplib2)
assert httplib2.__file__ and bson.__file__
assert apache_beam.io.gcp.bigquery.WriteToBigQuery
"""
    assert run(OWN + code) == "{'a': 1} True False\n"


def test_stand_ins_do_what_they_stand_for() -> None:
    code = """
from apache_beam.internal import http_client
from apache_beam.transforms.external import yaml
from apache_beam.typehints import typehints
assert isinstance(http_client.get_new_http(), http_client.httplib2.Http)
print(typehints.is_consistent_with(bool, int), typehints.is_consistent_with(str, int))
assert "beartype" in sys.modules
"""
    assert run(OWN + code) == "True False\n"


def test_a_failure_of_a_stand_in_is_one_that_beam_knows() -> None:
    code = """
from apache_beam.typehints import typehints
try:
    typehints.is_subhint(1, 2)
except typehints.BeartypeDoorException as error:
    print("caught")
"""
    assert run(OWN + code) == "caught\n"


def test_programs_have_all_of_beam() -> None:
    code = f"""
import sys
import pipelines
pipelines.count
import apache_beam as beam, gc
import pandas
assert gc.isenabled() and not gc.get_freeze_count()
print(beam.io.ReadFromMongoDB.__name__, [name for name in {LEFT_OUT} if name not in sys.modules])
"""
    assert run(code) == "ReadFromMongoDB []\n"


@pytest.mark.parametrize("command", ["nothing to do", "dry run", "help"])
def test_what_has_nothing_to_encode_does_not_load_beam(tmp_path: Path, command: str) -> None:
    text, vocab = tmp_path / "a.txt", tmp_path / "vocab.txt"
    text.write_text("hug\n")
    vocab.write_text("[UNK]\n[CLS]\n[SEP]\nhug\n")
    args = ["encode", text, "--tokenizer", vocab, "--output", tmp_path / "out"]
    if command == "nothing to do":
        assert process(*args).status == 0
    args += {"dry run": ["--dry-run"], "help": ["--help"]}.get(command, [])
    verbose = [sys.executable, "-X", "importtime", "-m", "pipelines", *map(str, args)]
    ended = subprocess.run(verbose, capture_output=True, text=True)
    assert ended.returncode == 0
    imported = {line.split("|")[-1].strip() for line in ended.stderr.splitlines()}
    assert "pipelines.commands.cli" in imported
    assert "apache_beam" not in imported
    assert ("pyarrow" in imported) == (command != "help")
