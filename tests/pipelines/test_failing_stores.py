"""Stores that refuse and that are not there: a fault that lasts ends the job with one line, and one
that passes does not."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.io import outputs
from wordpiece_core import storage
from wordpiece_core.errors import StorageError

from . import s3
from .corpora import english, process, wordpiece, write_shard
from .faulty_store import Faults, install

HANGS = 300.0  # timeout of a process in seconds


@pytest.fixture
def store() -> Iterator[s3.Store]:
    with s3.serving() as store:
        store.put("corpora/in/a.txt", "\n".join(english(30)).encode())
        yield store


@pytest.fixture
def vocab(tmp_path: Path) -> str:
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nba\n")
    return str(path)


def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def calls(place: str, vocab: str, tmp_path: Path) -> Iterator[list[str]]:
    """Each job, with a location that it reads, and a location that it writes."""
    shard = write_shard(tmp_path / "in.txt", english(10))
    out = str(tmp_path / "out")
    yield ["count", place, "--output", out]
    yield ["count", f"{place.replace('?', '/*.txt?', 1)}", "--output", out]
    yield ["count", shard, "--output", place]
    yield ["train", "--word-counts", place, "--output", out]
    yield ["encode", place, "--tokenizer", vocab, "--output", out]
    yield ["encode", shard, "--tokenizer", place, "--output", out]
    yield ["encode", shard, "--tokenizer", vocab, "--output", place]
    yield ["encode", shard, "--tokenizer", vocab, "--output", place, "--shard-size", "1MiB"]
    yield ["compare", vocab, place, "--on", shard]
    yield ["report", vocab, "--output", place]
    yield ["inspect", place, "hello"]
    yield ["encode", place, "--tokenizer", vocab, "--output", out, "--follow", "--until-idle", "1"]


# --- What lasts -----------------------------------------------------------------------------------


@pytest.mark.soak
def test_a_fault_that_lasts_ends_every_job_with_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vocab: str, store: s3.Store
) -> None:
    monkeypatch.setattr(storage, "DELAYS", ())
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    unused = f"endpoint_override=127.0.0.1:{unused_port()}&scheme=http&region=us-east-1"
    monkeypatch.setattr(storage, "GOOGLE_SECONDS", timedelta(seconds=0.1))
    for place in (
        store.uri("nowhere/in"),
        f"gs://anonymous@corpora/in?endpoint_override={unused}".replace("&region=us-east-1", ""),
        f"s3://corpora/in?{unused}",
    ):
        for args in [*calls(place, vocab, tmp_path)][::3]:
            outcome = wordpiece(*args)
            assert (outcome.status, outcome.err.count("\n")) == (1, 1), outcome
            assert place.partition("?")[0] in outcome.fault
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wrong")
    outcome = process("count", store.uri("corpora/in"), "--output", tmp_path / "out")
    assert "ACCESS_DENIED" in outcome.fault


# --- What passes ----------------------------------------------------------------------------------


@pytest.mark.soak
def test_a_store_that_is_busy_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, store: s3.Store
) -> None:
    monkeypatch.setattr(storage, "DELAYS", (0.0,) * 4)
    store.status, store.failures = 503, 4
    assert storage.read_bytes(store.uri("corpora/in/a.txt"))
    assert store.failures == 0


@pytest.mark.parametrize(("status", "calls"), [(404, 1), (401, 1), (429, 5), (503, 5)])
def test_a_refused_request_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, status: int, calls: int
) -> None:
    monkeypatch.setattr(storage, "DELAYS", (0.0,) * 4)
    made = []

    def call() -> None:
        made.append(1)
        error = OSError("as libraries of HTTP raise it")
        error.response = SimpleNamespace(status_code=status)  # type: ignore[attr-defined]
        raise error

    with pytest.raises(StorageError):
        storage.attempt("read", "hf://datasets/owner/none", call)
    assert len(made) == calls


def test_a_call_is_tried_five_times_and_nothing_around_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    faults = Faults(first=0, more=1000)
    monkeypatch.setattr(storage, "STORES", {**storage.STORES})
    monkeypatch.setattr(storage, "DELAYS", storage.DELAYS)
    delays = storage.DELAYS
    install(tmp_path, faults)
    storage.DELAYS = delays
    with pytest.raises(StorageError, match="faulty://b/a: cannot be written"):
        outputs.write_bytes("faulty://b/a", b"text")
    # Remaining files may be deleted, and are checked.
    assert next(faults.calls) == 3 * (1 + len(delays))
    assert [pause for pause in pauses if pause] == 3 * [*delays]


def test_the_first_error_waits_for_what_has_begun() -> None:
    """Later jobs may delete the outputs of the others."""
    going, ended = threading.Barrier(3), []

    def call(number: int) -> None:
        if number < 3:
            going.wait(HANGS)
        if number == 1:
            raise StorageError("no")
        time.sleep(0.05)
        ended.append(number)

    with pytest.raises(StorageError, match="no"):
        storage.in_parallel(call, range(3))
    assert sorted(ended) == [0, 2]


# --- What is sent ---------------------------------------------------------------------------------


@pytest.mark.soak
def test_half_a_shard_never_appears_when_the_process_ends(
    tmp_path: Path, store: s3.Store, vocab: str
) -> None:
    """Its stream is still open then, and to close it would make a file of it."""
    rng, path = random.Random(0), tmp_path / "in.parquet"
    texts = [" ".join(rng.choices(["ba", "x", "ba ba"], k=400)) for _ in range(20_000)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=5_000, compression="none")
    data = bytearray(path.read_bytes())
    begin = pq.read_metadata(path).row_group(3).column(0).data_page_offset
    data[begin : begin + 200] = bytes(200)
    path.write_bytes(data)
    args = ["--tokenizer", vocab, "--output", store.uri("corpora/out"), "--compression", "none"]
    outcome = process("encode", path, *args)
    assert outcome.status == 1
    assert "row group 3" in outcome.fault
    assert store.parts, "nothing of the shard was sent"
    found = [name for name in store.files("corpora/out") if name.endswith(".parquet")]
    assert found == ["train-dataset-is-unfinished.parquet"]
