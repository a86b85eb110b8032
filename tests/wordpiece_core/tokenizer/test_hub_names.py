"""Names on the Hub are taken wherever a tokenizer is."""

import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

import pipelines
import wordpiece_core as wp
from wordpiece_core.tokenizer.hub_names import hub_name

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hug", "##s"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the Hub with the tokenizer `some/name`, for a process that is offline."""
    snapshot = tmp_path / "hub" / "models--some--name" / "snapshots" / ("0" * 40)
    wp.Tokenizer(VOCAB).save(snapshot)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return snapshot


@pytest.mark.parametrize("name", ["some/name", "some/name@main", "hf://some/name"])
def test_a_name_is_found_in_the_cache(name: str) -> None:
    assert wp.Tokenizer.load(name).vocab == VOCAB


def test_every_job_takes_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hugs hug\n" * 9)
    encoded = pipelines.encode("a.txt", tokenizer="some/name", output="encoded", quiet=True)
    assert encoded.tokens == 9 * 5
    (row,) = pipelines.compare("some/name", on="a.txt", quiet=True).to_pylist()
    assert (row["tokenizer"], row["tokens"]) == ("some/name", 9 * 3)
    extended = pipelines.extend("some/name", "a.txt", output="more", new_tokens=1, quiet=True)
    assert extended.tokenizer.vocab[: len(VOCAB)] == VOCAB
    with pytest.raises(wp.OptionError, match="vocab_size: 7, but the tokenizer has only 7 tokens"):
        pipelines.prune("some/name", "a.txt", output="less", vocab_size=7, quiet=True)
    pipelines.report("some/name", output="report.html", quiet=True)


def test_a_path_on_disk_wins(tmp_path: Path) -> None:
    wp.Tokenizer(["[UNK]"]).save(tmp_path / "some" / "name")
    assert wp.Tokenizer.load("some/name").vocab == ["[UNK]"]
    assert wp.Tokenizer.load("hf://some/name").vocab == VOCAB


def test_paths_are_not_names_on_the_hub(tmp_path: Path) -> None:
    for path in ("/some/name", "./name", "a/b/c", "vocab.txt", "x.model", "s3://some/name"):
        assert hub_name(path) is None
    for path in ("hf://datasets/some", "hf://some/name/vocab.txt"):
        assert hub_name(path) is None


def test_faults_are_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(wp.InputError, match=r"^other/name: no such file .* on the Hub \("):
        wp.Tokenizer.load("other/name")
    (cache / "tokenizer.json").write_text("{")
    with pytest.raises(wp.InputError, match=r"^some/name: .*not JSON"):
        wp.Tokenizer.load("some/name")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        wp.OptionError, match=r"^some/name: no such file .* need the library huggingface_hub"
    ):
        wp.Tokenizer.load("some/name")
