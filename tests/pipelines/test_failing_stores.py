"""Stores that refuse, that are not there, and that do not answer: a fault that lasts ends the job
with one line, and one that passes does not. A signal need not wait for a store."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.files import storage
from wordpiece_core import Tokenizer, filesystems
from wordpiece_core.errors import StorageError

from . import s3
from .corpora import Outcome, english, process, script, wordpiece, write_shard

HANGS = 300.0  # seconds after which a process counts as one that does not end


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


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nothing waits before it tries again; the list has how long it would have waited."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def calls(place: str, vocab: str, tmp_path: Path) -> Iterator[list[str]]:
    """Each job, with a location that it reads, and with one that it writes."""
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
    yield ["count", place, "--output", out, "--follow", "--until-idle", "1"]


# --- What lasts -----------------------------------------------------------------------------------


def test_a_refused_connection_ends_the_job_at_once(
    tmp_path: Path, vocab: str, without_pauses: list[float]
) -> None:
    address = f"127.0.0.1:{unused_port()}"
    places = (
        f"s3://corpora/in?endpoint_override={address}&scheme=http",
        f"gs://anonymous@corpora/in?endpoint_override={address}&scheme=http",
    )
    for place in places:
        shown = place
        for args in calls(place, vocab, tmp_path):
            outcome = wordpiece(*args)
            assert (outcome.status, outcome.err.count("\n")) == (1, 1), outcome
            assert shown.partition("?")[0] in outcome.fault
            assert "cannot be reached (" in outcome.fault
            assert outcome.fault.endswith("; check the address and the network")
    assert without_pauses == []


def test_a_store_without_credentials_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vocab: str, without_pauses: list[float]
) -> None:
    """Google's library looks for credentials of the machine, for minutes if it may."""
    monkeypatch.setenv("GCE_METADATA_ROOT", f"127.0.0.1:{unused_port()}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    for args in calls("gs://corpora/in?scheme=https", vocab, tmp_path):
        outcome = wordpiece(*args)
        assert (outcome.status, outcome.err.count("\n")) == (1, 1), outcome
        assert "access token" in outcome.fault
        assert outcome.fault.endswith("; check the credentials, and what they allow")
        assert "error_info" not in outcome.fault
    assert without_pauses == []


def test_a_denied_request_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    vocab: str,
    store: s3.Store,
    without_pauses: list[float],
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wrong")
    place = store.uri("corpora/in")
    for args in calls(place, vocab, tmp_path):
        before = store.requests
        outcome = wordpiece(*args)
        assert (outcome.status, outcome.err.count("\n")) == (1, 1), outcome
        assert "ACCESS_DENIED" in outcome.fault
        assert outcome.fault.endswith("; check the credentials, and what they allow")
        assert store.requests <= before + 1
    assert without_pauses == []


def test_a_bucket_that_is_not_there_ends_the_job(
    tmp_path: Path, vocab: str, store: s3.Store, without_pauses: list[float]
) -> None:
    place = store.uri("nowhere/in")
    for args in calls(place, vocab, tmp_path):
        if "--follow" in args:  # it may come yet
            continue
        outcome = wordpiece(*args)
        assert (outcome.status, outcome.err.count("\n")) == (1, 1), outcome
        assert "s3://nowhere/in" in outcome.fault
    assert [pause for pause in without_pauses if pause in storage.DELAYS] == []


def test_rights_that_are_taken_away_end_the_job(tmp_path: Path, store: s3.Store) -> None:
    """The store has answered before."""
    place = store.uri("corpora/in/a.txt")
    assert storage.read_bytes(place)
    store.status, before = 403, store.requests
    with pytest.raises(StorageError, match="ACCESS_DENIED") as raised:
        storage.read_bytes(place)
    assert raised.value.lasting
    assert store.requests == before + 1


def test_a_store_that_does_not_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch, store: s3.Store, vocab: str, tmp_path: Path
) -> None:
    monkeypatch.setattr(filesystems, "FIRST_SECONDS", 0.3)
    store.hangs_after = 0
    google = f"gs://anonymous@corpora/in?endpoint_override={store.address}&scheme=http"
    for place in (store.uri("corpora/in"), google):
        for args in calls(place, vocab, tmp_path):
            outcome = wordpiece(*args)
            assert (outcome.status, outcome.err.count("\n")) == (1, 1), outcome
            assert "cannot be reached (no answer within 0 s)" in outcome.fault


# --- What passes ----------------------------------------------------------------------------------


def test_a_store_that_is_busy_is_asked_again(
    tmp_path: Path, store: s3.Store, vocab: str, without_pauses: list[float]
) -> None:
    """At first, and when it has answered."""
    store.status, store.failures = 503, 7
    assert Tokenizer.load(vocab).vocab
    assert storage.read_bytes(store.uri("corpora/in/a.txt"))
    assert store.failures == 0
    store.failures = 7
    assert storage.read_bytes(store.uri("corpora/in/a.txt"))
    assert store.failures == 0
    assert without_pauses


# --- Signals --------------------------------------------------------------------------------------


def interrupted(store: s3.Store, number: int, *args: str, **env: str) -> Outcome:
    """The command, which gets a signal when the store does not answer any more."""
    with subprocess.Popen(
        [*script(), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | env,
    ) as running:
        assert store.waiting.wait(HANGS), running.communicate()
        running.send_signal(number)
        out, err = running.communicate(timeout=HANGS)
        # Arrow asks again when it has waited for some seconds: nobody has waited for that.
        assert len(store.unanswered) == len({*store.unanswered})
        return Outcome(running.returncode, out, err)


def check_interrupted(outcome: Outcome) -> None:
    assert outcome.status == 130, outcome
    assert outcome.err.strip() == "wordpiece: interrupted; run the same command again to go on"


@pytest.mark.parametrize(
    ("scheme", "number"), [("s3", signal.SIGTERM), ("s3", signal.SIGHUP), ("gs", signal.SIGINT)]
)
def test_a_signal_need_not_wait_for_the_first_answer(
    tmp_path: Path, store: s3.Store, scheme: str, number: int
) -> None:
    store.hangs_after = 0
    place = store.uri("corpora/in")
    if scheme == "gs":
        place = f"gs://anonymous@corpora/in?endpoint_override={store.address}&scheme=http"
    outcome = interrupted(store, number, "count", place, "--output", str(tmp_path / "out"))
    check_interrupted(outcome)


@pytest.mark.parametrize(
    ("job", "after"),
    [("inspect", 2), ("count", 4), ("count", 8), ("count", 32), ("encode", 8), ("encode", 32)],
)
def test_a_signal_need_not_wait_for_any_answer(
    tmp_path: Path, store: s3.Store, vocab: str, job: str, after: int
) -> None:
    for number in range(20):
        store.put(f"corpora/in/{number}.txt", b"some text\n" * 50)
    store.hangs_after = after
    out = store.uri("corpora/out")
    args = {
        "count": ["count", store.uri("corpora/in"), "--output", out, "--quiet"],
        "encode": ["encode", store.uri("corpora/in"), "--output", out, "--tokenizer", vocab],
        "inspect": ["inspect", store.uri("corpora/in"), "text"],
    }[job]
    outcome = interrupted(store, signal.SIGINT, *args, WORDPIECE_ENCODE_QUIET="yes")
    check_interrupted(outcome)


def test_what_is_waited_for_in_parallel_does_not_hold_a_signal(store: s3.Store) -> None:
    """In a Python that goes on."""
    places = [store.uri(f"corpora/in/{number}.txt") for number in range(8)]
    assert storage.info(places[0]) is None
    store.hangs_after = store.requests

    def interrupt() -> None:
        store.waiting.wait(HANGS)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        storage.in_parallel(storage.info, places)
    assert store.requests <= store.hangs_after + len(places)
    store.hangs_after = None
    store.goes_on.set()
    assert storage.in_parallel(storage.info, places) == [None] * len(places)


def test_the_first_error_waits_for_what_has_begun() -> None:
    """What comes after it may delete what the others write."""
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
    assert [name for name in store.files("corpora/out") if name.endswith(".parquet")] == []
