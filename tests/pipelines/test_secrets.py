"""Keys and passwords in locations and in arguments for Beam are in no file and in no output, be the
job done or not. The store is a server that answers as S3 does, to whoever has its key."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import pipelines
import wordpiece_core as wp
from pipelines.commands.program import wordpiece as group
from pipelines.running.beam_args import HARMLESS, shown_args, without_values
from pipelines.running.runner import _parser
from wordpiece_core.errors import WordpieceError
from wordpiece_core.option_kinds import Flag, Place, Places
from wordpiece_core.uri import Location, without_secrets

from . import s3
from .commands.test_declarations import CALLS
from .corpora import Outcome, english, files_below, manifest, process, wordpiece
from .stopping import killed_before

MARK = "MARKED"
TEXTS = english(60)
BEAM = [
    '--environment_config={"env": {"TOKEN": "MARKED-TOKEN"}}',
    "--s3_access_key_id=MARKED-KEY-OF-BEAM",
    "--s3_secret_access_key=MARKED-SECRET-OF-BEAM",
    "--s3_session_token",
    "MARKED-SESSION",
    "--azure_connection_string=AccountName=a;AccountKey=MARKED-AZURE",
]


@pytest.fixture(scope="module")
def store() -> Iterator[s3.Store]:
    """A store with texts, and with what the jobs make of them."""
    with s3.serving() as store:
        for number in range(2):
            text = "".join(f"{line}\n" for line in TEXTS[number::2])
            store.put(f"corpora/in/{number}.txt", text.encode())
        uri = store.uri
        pipelines.count(uri("corpora/in"), output=uri("corpora/words"), quiet=True)
        pipelines.train(
            word_counts=uri("corpora/words"),
            output=uri("corpora/tokenizer"),
            vocab_size=100,
            quiet=True,
        )
        yield store


def options_of(job: str, store: s3.Store, output: str) -> dict[str, Any]:
    """Options with which a job succeeds: all locations are in the store."""
    uri = store.uri
    source, words, tokenizer = map(uri, ("corpora/in", "corpora/words", "corpora/tokenizer"))
    made = {"output": uri(f"corpora/{output}")}
    of_words = {"word_counts": words, "work_dir": uri(f"corpora/{output}-work"), **made}
    return {
        "count": {"inputs": [source], "merge": [words], **made},
        "train": {"vocab_size": 90, **of_words},
        "extend": {"tokenizer": tokenizer, "new_tokens": 2, **of_words},
        "prune": {"tokenizer": tokenizer, "vocab_size": 95, **of_words},
        "encode": {"inputs": [source], "tokenizer": tokenizer, **made},
        "compare": {"tokenizers": [tokenizer, tokenizer], "on": [source]},
        "report": {
            "tokenizer": tokenizer,
            "compare_with": [tokenizer],
            "on": [source],
            "output": uri(f"corpora/{output}.html"),
        },
    }[job]


def arguments(job: str, options: dict[str, Any]) -> list[str]:
    first = CALLS[job].ARGUMENTS
    args: list[str] = []
    for name in first:
        value = options.get(name, [])
        args += value if isinstance(value, list) else [value]
    for option in CALLS[job].options():
        if option.name in options and option.name not in first:
            value = options[option.name]
            for item in value if isinstance(value, list) else [value]:
                args += [option.switch, str(item)]
    return args


def check_hidden(outcome: Outcome, store: s3.Store, *directories: Path) -> None:
    """No mark is in what was written and printed."""
    assert MARK not in outcome.out + outcome.err
    for objects in store.objects.values():
        for key, found in objects.items():
            assert MARK.encode() not in found.data, key
    for directory in directories:
        for name, data in files_below(directory).items():
            assert MARK.encode() not in data, name


@pytest.mark.parametrize(
    ("job", "how"),
    [*((job, "arguments") for job in CALLS), ("encode", "config"), ("train", "environment")],
)
def test_a_job_that_succeeds_stores_and_prints_no_secret(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    store: s3.Store,
    job: str,
    how: str,
) -> None:
    options, env = options_of(job, store, f"{job}-{how}"), dict(os.environ)
    work = tmp_path / "work"
    work.mkdir()
    if how == "arguments":
        args = [*arguments(job, options), "--debug", "--", "--direct_num_workers=2", *BEAM]
    elif how == "config":
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(options))
        args = ["--config", str(tmp_path / "config.yaml"), "--json"]
    else:
        args = []
        for name, value in options.items():
            text = " ".join(value) if isinstance(value, list) else str(value)
            env[f"WORDPIECE_{job}_{name}".upper()] = text
    if how == "environment":
        outcome = process(job, *args, cwd=work, env=env)
    else:
        monkeypatch.chdir(work)
        outcome = wordpiece(job, *args)
    assert outcome.status == 0, outcome.err
    check_hidden(outcome, store, work)
    check_hidden(Outcome(0, *capfd.readouterr()), store)
    if job in ("train", "extend", "prune"):
        run = json.loads(store.files(f"corpora/{job}-{how}")["run.json"])
        assert run["word_counts"] == Location(options["word_counts"])
        if how == "arguments":
            assert run["beam_args"][0] == "--direct_num_workers=2"
            assert run["beam_args"][1:3] == ["--environment_config=***", "--s3_access_key_id=***"]


def test_what_a_job_has_written_can_be_inspected_with_the_secret(store: s3.Store) -> None:
    args = ["inspect", store.uri("corpora/tokenizer"), "hello", "--debug"]
    outcome = wordpiece(*args)
    assert outcome.status == 0, outcome.err
    check_hidden(outcome, store)
    encode = ["encode", store.uri("corpora/in"), "--output", store.uri("corpora/bins")]
    args = ["--tokenizer", store.uri("corpora/tokenizer"), "--format", "megatron"]
    assert wordpiece(*encode, *args).status == 0
    outcome = wordpiece("inspect", store.uri("corpora/bins"), "--rows", "2", "--json")
    assert (outcome.status, outcome.out.count("\n")) == (0, 3), outcome.err
    check_hidden(outcome, store)


def wrong_locations(store: s3.Store) -> dict[str, str]:
    """Locations that cannot be opened, by what is wrong with them. The last ones are no URIs as
    they should be, and hold a secret all the same."""
    right = store.uri("corpora/in")
    return {
        "another key": store.uri("corpora/in", key="MARKED-WRONG"),
        "no such bucket": store.uri("nowhere/in"),
        "no such file": store.uri("corpora/nothing"),
        "a secret in the query": f"{right}&secret_key=MARKED-IN-QUERY",
        "a signature": "abfss://c@a.dfs.core.windows.net/x?sv=1&sig=MARKED&se=2&foo=MARKED",
        "a slash in the secret": "s3://MARKED-KEY:MARKED/SECRET@corpora/in",
        "no bucket": "s3://MARKED-KEY:MARKED-SECRET",
        "one slash": "s3:/MARKED-KEY:MARKED-SECRET@corpora/in",
        "a pattern in the secret": f"{right}&client_secret=MARKED*[?MARKED",
        "no such scheme": "nothing://MARKED-KEY:MARKED-SECRET@corpora/in",
        "of the web": "https://MARKED-KEY:MARKED-SECRET@localhost:1/in?token=MARKED",
        "of the Hub": "hf://MARKED-KEY:MARKED-SECRET@datasets/owner/name",
        "of a disk": "file://MARKED-KEY:MARKED-SECRET@corpora/in",
    }


@pytest.mark.parametrize("job", CALLS)
def test_a_job_that_fails_stores_and_prints_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: s3.Store, job: str
) -> None:
    """Every kind of wrong location is given to every third option that takes a location."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    ways = wrong_locations(store)
    right = options_of(job, store, f"{job}-fails")
    options = [
        option
        for option in CALLS[job].options()
        if option.name in right and isinstance(option.kind, Place | Places)
    ]
    for number, (wrong, location) in enumerate(ways.items()):
        for option in options[number % 3 :: 3] or options:
            value = [location] if isinstance(right[option.name], list) else location
            args = arguments(job, right | {option.name: value})
            if wrong in ("no such file", "a slash in the secret", "no bucket") and (
                option.name in ("output", "work_dir")
            ):
                continue
            outcome = wordpiece(job, *args, *(["--debug"] if number % 2 else []))
            check_hidden(outcome, store, tmp_path)
            assert outcome.status in (1, 2), (option.name, wrong, outcome)


@pytest.mark.parametrize("job", CALLS)
def test_a_secret_in_an_option_that_takes_no_location_is_refused(
    tmp_path: Path, store: s3.Store, job: str
) -> None:
    """A location that was given to the wrong option would be stored by it."""
    location = "s3://MARKED-KEY:MARKED-SECRET@corpora/in"
    right = arguments(job, options_of(job, store, f"{job}-refused"))
    for option in CALLS[job].options():
        if isinstance(option.kind, Flag | Place | Places) or option.name in CALLS[job].ARGUMENTS:
            continue
        if not option.in_config:
            outcome = wordpiece(job, *right, option.switch, location)
            assert (outcome.status, outcome.err.count("\n")) == (2, 1), (option.name, outcome)
            check_hidden(outcome, store)
            outcome = wordpiece(job, *right, f"{option.switch}={location}", "--debug")
            check_hidden(outcome, store)
        config = tmp_path / "config.yaml"
        config.write_text(f"{option.name}: {location}\n")
        outcome = wordpiece(job, *right, "--config", config)
        assert outcome.status == 2, (option.name, outcome)
        check_hidden(outcome, store)


def test_a_config_that_cannot_be_read_is_not_shown(tmp_path: Path, store: s3.Store) -> None:
    config = tmp_path / "config.yaml"
    for text in (
        "output: s3://K:MARKED@b: x",
        "output: [s3://K:MARKED@b\nx: y",
        "text_column: !!int s3://K:MARKED@b",
        "s3://K:MARKED@b: x",
        "output: 'MARKED",
    ):
        config.write_text(text)
        outcome = wordpiece("count", "in.txt", "--config", config)
        assert outcome.status == 2
        check_hidden(outcome, store)
    outcome = wordpiece("count", "in.txt", "--config", "s3://K:MARKED@b/config.yaml")
    assert outcome.status == 2
    check_hidden(outcome, store)


def test_what_is_no_option_is_not_shown(store: s3.Store) -> None:
    location = "s3://MARKED-KEY:MARKED-SECRET@corpora/in"
    for args in (
        ["count", f"--outptu={location}"],
        ["count", "x", "--quiet=" + location],
        ["compare", location, location],
        ["train", "--word-counts", location, location],
        [location],
        ["inspect", location, "--rows", location],
    ):
        outcome = wordpiece(*args)
        assert outcome.status in (1, 2), outcome
        check_hidden(outcome, store)


# --- Beam -----------------------------------------------------------------------------------------


def test_what_beam_refuses_is_shown_without_its_value(tmp_path: Path, store: s3.Store) -> None:
    vocab = tmp_path / "in.txt"
    vocab.write_text("a b\n")
    for arg in (
        "--no_such=MARKED",
        "--direct_num_workers=MARKED",
        "--resource_hints=MARKED=MARKED",
        "--environment_type=MARKED",
        "--project=MARKED\udcff",
        "MARKED",
        "-MARKED=1",
        "--s3_secret_acess_key",
    ):
        more = ["MARKED"] if arg.endswith("key") else []
        args = ["count", vocab, "--output", tmp_path / "out", "--debug", "--", arg, *more]
        outcome = wordpiece(*args)
        shown = arg.startswith(("--direct", "--environment_type", "--resource"))
        assert outcome.status == (0 if arg.startswith("--environment") else 2), outcome
        if not shown:
            assert MARK not in outcome.err + outcome.out, arg


def test_only_values_that_hold_no_secret_are_shown() -> None:
    """Of all options of Beam that take a text."""
    for action in _parser()._actions:
        name = action.option_strings[0]
        args = [f"{name}=MARKED-VALUE", name, "MARKED-VALUE"]
        assert (MARK in "".join(shown_args(args))) == (name.lstrip("-") in HARMLESS), name
    assert shown_args(["--job_endpoint=user:MARKED@host:1"]) == ["--job_endpoint=***"]
    assert shown_args(["--temp_location=s3://K:MARKED@b/x"]) == ["--temp_location=***"]
    secrets = {"HARMLESS": [n for n in HARMLESS if "secret" in n or "password" in n or "key" in n]}
    assert secrets == {"HARMLESS": []}


@pytest.mark.parametrize(
    ("arg", "message"),
    [
        (
            '--environment_config={"env": {"A": "MARKED"}, "n": [1, "MARKED2"]}',
            "got MARKED2, MARKED",
        ),
        ("--azure_connection_string=Name=a;Key=MARKED", "bad part MARKED"),
        ("--x=MARKED", "invalid value: 'MARKED'"),
    ],
)
def test_parts_of_a_value_are_taken_out_of_messages(arg: str, message: str) -> None:
    assert MARK not in without_values(message, [arg])


# --- What is there of it --------------------------------------------------------------------------


@pytest.mark.parametrize("another", ["the same", "other secrets", "none"])
def test_a_killed_run_is_gone_on_with_whatever_the_secret_is(
    tmp_path: Path, store: s3.Store, another: str
) -> None:
    """What it has left has no secret in it, and the location is known again."""
    args = ["--tokenizer", store.uri("corpora/tokenizer"), "--output", tmp_path / "out", "--quiet"]
    killed_before(1, r"written .*/\.manifest\.json", "encode", store.uri("corpora/in"), *args)
    left = files_below(tmp_path / "out")
    assert any(name.startswith("_shards/plan-") for name in left)
    check_hidden(Outcome(0, "", ""), store, tmp_path)
    keys = {"the same": (s3.KEY, s3.SECRET), "other secrets": (s3.KEY, "MARKED-OTHER")}
    env = dict(os.environ)
    if another == "none":
        env |= {"AWS_ACCESS_KEY_ID": s3.KEY, "AWS_SECRET_ACCESS_KEY": s3.SECRET}
    inputs = store.uri("corpora/in", *keys.get(another, ("", "")))
    outcome = (
        process("encode", inputs, *args[:-1], "--json", env=env)
        if another == "none"
        else (wordpiece("encode", inputs, *args[:-1], "--json"))
    )
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["kept"] == 2
    check_hidden(outcome, store, tmp_path)


def test_a_followed_store_is_recorded_without_its_secret(tmp_path: Path, store: s3.Store) -> None:
    for again in range(2):
        output = tmp_path / "words"
        args = ["--output", output, "--follow", "--poll", "0.1", "--until-idle", "0.3"]
        key = (s3.KEY, s3.SECRET if not again else "MARKED-OTHER")
        outcome = wordpiece("count", store.uri("corpora/in", *key), *args)
        assert outcome.status == 0, outcome.err
        check_hidden(outcome, store, tmp_path)
        assert ("commit 1" in outcome.err) == (not again)
        tokenizer = ["--tokenizer", store.uri("corpora/tokenizer"), "--output", tmp_path / "ids"]
        outcome = wordpiece("encode", store.uri("corpora/in", *key), *tokenizer, *args[2:])
        assert outcome.status == 0, outcome.err
        check_hidden(outcome, store, tmp_path)
    assert manifest(tmp_path / "ids")["rows"] == len(TEXTS)


@pytest.mark.parametrize("mode", ["multi_threading", "multi_processing"])
def test_workers_get_the_secret(tmp_path: Path, store: s3.Store, mode: str) -> None:
    beam = ["--debug", "--", f"--direct_running_mode={mode}", "--direct_num_workers=2", *BEAM]
    run = process if mode == "multi_processing" else wordpiece
    outcome = run("count", store.uri("corpora/in"), "--output", tmp_path / "out", *beam)
    assert outcome.status == 0, outcome.err
    check_hidden(outcome, store, tmp_path)
    store.put("corpora/bad/a.jsonl", b'{"text": 1}\n')
    outcome = run("count", store.uri("corpora/bad"), "--output", tmp_path / "bad", *beam)
    assert outcome.status == 1
    check_hidden(outcome, store, tmp_path)


def test_python_shows_no_secret_either(tmp_path: Path, store: s3.Store) -> None:
    table = pipelines.count(store.uri("corpora/in"), output=store.uri("corpora/p"), quiet=True)
    assert MARK not in f"{table!r} {table.path} {table.summary()}"
    trained = pipelines.train(word_counts=table.path, output=tmp_path / "t", quiet=True)
    assert trained.vocab
    for location in wrong_locations(store).values():
        for call in (
            lambda at=location: pipelines.count(at, output=tmp_path / "out", quiet=True),
            lambda at=location: wp.Tokenizer.load(at),
        ):
            with pytest.raises(WordpieceError) as raised:
                call()
            assert MARK not in "".join(traceback.format_exception(raised.value))
    beam_args = ["--direct_num_workers=0", *BEAM]
    with pytest.raises(wp.OptionError) as raised:
        pipelines.count("in", output=tmp_path / "out", beam_args=beam_args)
    assert MARK not in "".join(traceback.format_exception(raised.value))


# --- Locations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://K:S@bucket/a?region=x&session_token=S&scheme=http", "s3://bucket/a?region=x&scheme=http"),
        ("s3://K:S/S@bucket/a", "s3://bucket/a"),
        ("s3://bucket/a@b", None),
        ("s3://bucket/a-?.txt", None),
        ("gs://anonymous@bucket/a?retry_limit_seconds=3", None),
        ("gs://token@bucket/a", "gs://bucket/a"),
        ("abfss://container@account.dfs.core.windows.net/a?sv=1&sig=S", "abfss://container@account.dfs.core.windows.net/a"),
        ("abfs://container:S@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
        ("abfs://:S@account.blob.core.windows.net/container", "abfs://account.blob.core.windows.net/container"),
        ("hdfs://user@host:9000/a", None),
        ("hdfs://user:S@host:9000/a", "hdfs://user@host:9000/a"),
        ("s3://b/a?endpoint_override=http%3A//u:p%40h&scheme=http", "s3://b/a?scheme=http"),
        ("/data/a@b:c?x=1", None),
        ("s3://bucket:", None),
        ("s3:/K:S@bucket/a", "s3:/bucket/a"),
        ("s3:/bucket/a", None),
    ],
)  # fmt: skip
def test_a_location_is_shown_without_its_secrets(uri: str, shown: str | None) -> None:
    import copy
    import pickle

    location = Location(uri)
    assert location == (uri if shown is None else shown)
    assert location.is_secret == (shown is not None)
    assert {*location.uri} == {*uri}
    assert len(location.uri) == len(uri)
    for again in (
        pickle.loads(pickle.dumps(location)),
        copy.deepcopy(location),
        Location(location),
    ):
        assert (again, again.uri, type(again)) == (location, location.uri, Location)
    assert without_secrets(f"x '{uri}': y") == f"x '{location}': y"
    assert json.dumps([location]) == json.dumps([str(location)])


def test_every_command_is_here() -> None:
    assert {*CALLS, "inspect"} == {*group.commands}
