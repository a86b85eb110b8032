"""The wheel holds all it needs: installed where there is no Rust, it trains and encodes."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.soak  # it compiles the kernel, and installs libraries

ROOT = Path(__file__).parents[1]
IN_MEMORY = """
import sys, wordpiece_core as wp
tok = wp.Tokenizer(wp.train({"hug": 10, "pug": 5, "pun": 12}, vocab_size=14).vocab)
assert tok.tokenize("hug pun")
assert not {"apache_beam", "click", "rich"} & sys.modules.keys()
"""


def run(*command: object, **options: Any) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_both_packages_and_the_kernel_and_no_rust_source(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {
        "pipelines/commands/cli.py",
        "pipelines/reporting/page.css",
        "wordpiece_core/reference/wordpiece.py",
    } <= set(names)
    assert [name for name in names if name.startswith("wordpiece_core/_kernel.")]
    assert not [name for name in names if name.endswith((".rs", ".toml", ".lock"))]
    assert [
        name for name in names if name.endswith(".dist-info/sboms/wordpiece-kernel.cyclonedx.json")
    ]
    assert "abi3" in wheel.name


def test_installed_without_rust_it_trains_and_encodes(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", environment)
    clean = os.environ | {"PATH": str(environment / "bin")}  # no Rust there, no compiler, nothing
    pip = (environment / "bin" / "pip", "install", "--quiet")
    run(*pip, wheel, env=clean, cwd=tmp_path)
    run(environment / "bin" / "python", "-c", IN_MEMORY, env=clean, cwd=tmp_path)

    pq.write_table(pa.table({"text": ["hug pug pun", "hugs bun", None]}), tmp_path / "in.parquet")
    wordpiece = environment / "bin" / "wordpiece"
    train = ("train", "in.parquet", "--output", "tok", "--vocab-size", "20")
    encode = ("encode", "in.parquet", "--tokenizer", "tok", "--output", "out")
    for command in (train, encode):
        run(wordpiece, *command, env=clean, cwd=tmp_path)
    ids = pq.read_table(tmp_path / "out" / "in.parquet")["input_ids"].to_pylist()
    assert [row is None for row in ids] == [False, False, True]
    assert {ids[0][0], ids[0][-1]} == {2, 3}
