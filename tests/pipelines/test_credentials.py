"""Credentials come from the environment. In a location they are refused, in a line without them;
and the values of arguments for Beam are in no file."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from pyarrow import fs

import pipelines
import wordpiece_core as wp
from wordpiece_core import storage
from wordpiece_core.errors import WordpieceError
from wordpiece_core.uri import credentials_in

from ..quick import parametrize
from . import s3
from .corpora import done, english, files_below, process, wordpiece, write_shard

MARK = "MARKED"
SECRET = "s3://K:MARKED@bucket/in"
AWS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials"


@pytest.mark.parametrize(
    ("uri", "is_refused"),
    [
        ("s3://K:MARKED@bucket/in", True),
        ("s3://K:MARK/ED@bucket/in", True),
        ("s3://bucket/in?region=eu-1&session_token=MARKED", True),
        ("s3://bucket/in?endpoint_override=127.0.0.1:9&scheme=http&region=eu-1", False),
        ("gs://bucket/in?access_token=MARKED", True),
        ("gs://anonymous@bucket/in", False),
        ("hf://user:MARKED@datasets/owner/name", True),
        ("hf://datasets/owner/name@main/data", False),
        ("abfs://container@account.dfs.core.windows.net/a", False),
        ("abfss://container@account.dfs.core.windows.net/a?sv=1&sig=MARKED", True),
        ("hdfs://user@host:9000/a", False),
        ("sftp://user:MARKED@host/a", True),
        ("/data/a@b:c?key=1", False),
        ("file:///data/a:b@c", False),
    ],
)
def test_a_location_holds_no_credentials(uri: str, is_refused: bool) -> None:
    refused = credentials_in(uri)
    assert (refused is not None) == is_refused
    assert MARK not in (refused or "")


def test_every_command_refuses_them(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "in.txt", english(10))
    out = str(tmp_path / "out")
    for args in (
        ["count", SECRET, "--output", out],
        ["count", shard, "--output", SECRET],
        ["train", "--word-counts", SECRET, "--output", out],
        ["encode", shard, "--tokenizer", SECRET, "--output", out],
        ["extend", SECRET, shard, "--new-tokens", "3", "--output", out],
        ["compare", SECRET, "--on", shard],
        ["inspect", SECRET, "text"],
    ):
        outcome = wordpiece(*args)
        assert outcome.status == 2
        assert outcome.fault.endswith(f"s3: a location must not contain credentials; {AWS}")
        assert MARK not in outcome.out + outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]
    for call in (
        lambda: wp.Tokenizer.load(SECRET),
        lambda: pipelines.count(SECRET, output=out),
        lambda: pipelines.EncodeTexts(SECRET),
    ):
        with pytest.raises(WordpieceError) as caught:
            call()
        shown = "".join(traceback.format_exception_only(caught.value))
        assert AWS in shown
        assert MARK not in shown


@pytest.fixture
def store() -> Iterator[s3.Store]:
    with s3.serving() as store:
        store.put("corpora/in/a.txt", "\n".join(english(30)).encode())
        yield store


@parametrize(("mode", "has_address"), [("in_memory", False), ("multi_processing", True)], quick=1)
def test_the_environment_opens_a_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: s3.Store, mode: str, has_address: bool
) -> None:
    beam = ["--", f"--direct_running_mode={mode}", "--direct_num_workers=2"]
    words, source = store.uri("corpora/words"), store.uri("corpora/in")
    if has_address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{store.address}")
        words, source = "s3://corpora/words", "s3://corpora/in"
    run = process if has_address else wordpiece
    outcome = run("count", source, "--output", words, *beam)
    assert outcome.status == 0, outcome.err
    assert store.files("corpora/words")["_manifest.json"]
    out = str(tmp_path / "tokenizer")
    outcome = run("train", "--word-counts", words, "--vocab-size", "90", "--output", out, *beam)
    assert outcome.status == 0, outcome.err
    assert s3.SECRET.encode() not in b"".join(files_below(tmp_path).values())


def test_no_value_of_an_argument_for_beam_is_recorded(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "in.txt", english(30))
    beam = ["--", "--s3_secret_access_key=MARKED", "--s3_session_token", "MARKED"]
    tokenizer = tmp_path / "tokenizer"
    done("train", shard, "--vocab-size", "90", "--output", tokenizer, *beam)
    done("encode", shard, "--tokenizer", tokenizer, "--output", tmp_path / "ids", *beam)
    assert MARK.encode() not in b"".join(files_below(tmp_path).values())
    assert b'"runner": "FnApiRunner"' in (tokenizer / "run.json").read_bytes()
    outcome = wordpiece("count", shard, "--output", tmp_path / "w", "--", "--nonesuch=MARKED")
    assert outcome.fault == "arguments after --: Beam does not know --nonesuch"


def test_requests_to_a_public_bucket_are_not_signed() -> None:
    options = {"region": "eu-north-1", "request_timeout": storage.REQUEST_SECONDS}
    found, place = storage.open_filesystem("s3://anonymous@bucket/in?region=eu-north-1")
    assert (found, place) == (fs.S3FileSystem(anonymous=True, **options), "bucket/in")
    found, _ = storage.open_filesystem("s3://bucket/in?region=eu-north-1")
    assert found == fs.S3FileSystem(**options) != fs.S3FileSystem(anonymous=True, **options)
    with mock.patch.object(fs, "resolve_s3_region", return_value="eu-north-1") as resolve:
        storage.open_filesystem("s3://anonymous@other-bucket/in")
    resolve.assert_called_once_with("other-bucket")
