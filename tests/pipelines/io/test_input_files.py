"""The files of patterns."""

import os
from pathlib import Path

import pytest

from pipelines.io.inputs import InputFile, disambiguated, output_names, resolve
from wordpiece_core.errors import InputError, OptionError, SkippedFilesWarning
from wordpiece_core.uri import join

from ..shard_files import fault, texts, write_raw


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in [
        "b.txt", "a.parquet", "notes.md", ".hidden.txt", "_SUCCESS", "_part.txt", "en/c.jsonl",
        "en/d.txt.gz", "en/deep/e.jsonl.zst", "_tmp/f.txt", ".git/g.txt", "de/H.TXT",
        "dataset_info.json",
    ]:  # fmt: skip
        write_raw(tmp_path / name)
    return tmp_path


def names(*patterns: Path | str) -> list[str]:
    return [file.name for file in resolve([str(pattern) for pattern in patterns])]


EVERYTHING = ["a.parquet", "b.txt", "de/H.TXT", "en/c.jsonl", "en/d.txt.gz", "en/deep/e.jsonl.zst"]


def test_a_directory_gives_its_recognized_files_sorted_without_hidden_ones(tree: Path) -> None:
    assert names(tree) == names(f"{tree}/") == EVERYTHING


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*", ["a.parquet", "b.txt"]),
        ("*.txt", ["b.txt"]),
        ("?.parquet", ["a.parquet"]),
        ("[ac].*", ["a.parquet"]),
        ("[!a].*", ["b.txt"]),
        ("_*.txt", ["_part.txt"]),
        ("*/*", ["de/H.TXT", "en/c.jsonl", "en/d.txt.gz"]),
        ("**", EVERYTHING),
        ("**/*.jsonl*", ["en/c.jsonl", "en/deep/e.jsonl.zst"]),
        ("**/[a-d].*", ["a.parquet", "b.txt", "en/c.jsonl", "en/d.txt.gz"]),
        ("e?/**", ["en/c.jsonl", "en/d.txt.gz", "en/deep/e.jsonl.zst"]),
        ("en/**/e.*", ["deep/e.jsonl.zst"]),
        ("en/*", ["c.jsonl", "d.txt.gz"]),
    ],
)
def test_a_glob_gives_names_relative_to_its_plain_directory(
    tree: Path, glob: str, expected: list[str]
) -> None:
    assert names(f"{tree}/{glob}") == expected


def test_a_file_named_twice_is_read_once_under_its_longest_name(tree: Path) -> None:
    once = resolve([str(tree)])
    for order in ([tree / "en/c.jsonl", tree, tree / "en"], [tree / "en", tree, f"{tree}/**"]):
        assert resolve([str(p) for p in order]) == once


def test_a_file_whose_name_looks_like_a_glob_is_a_file(tmp_path: Path) -> None:
    write_raw(tmp_path / "a[1]*.txt")
    assert names(tmp_path / "a[1]*.txt") == ["a[1]*.txt"]
    write_raw(tmp_path / "dataset_info.json")
    assert names(tmp_path / "dataset_info.json") == ["dataset_info.json"]


def test_relative_paths_and_file_uris_become_absolute_paths(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    write_raw(tree / "with space.txt")
    expected = resolve([str(tree)])
    assert resolve(["."]) == resolve([f"file://{tree}"]) == expected
    assert resolve(["with space.txt"]) == resolve([f"file://{tree}/with%20space.txt"])


def test_outputs_among_the_inputs_are_not_read(tree: Path) -> None:
    link = tree.with_name(f"{tree.name}-link")
    link.symlink_to(tree / "en")

    def found(*patterns: Path | str, own: Path | str = tree / "en") -> list[str]:
        return [file.name for file in resolve([str(p) for p in patterns], [str(own)])]

    outside = [name for name in EVERYTHING if not name.startswith("en/")]
    assert found(tree) == found(f"{tree}/**") == found(tree, own=link) == outside
    assert found(tree, own=tree / "e") == found(tree, own=f"{tree}/en/c.jsonlx") == EVERYTHING
    assert found(tree / "en") == found(tree / "en", own=tree / "en/") != []
    assert found(tree / "en/c.jsonl") == found(tree / "en/c*") == ["c.jsonl"]
    assert fault(lambda: found(f"{tree}/*/*.jsonl")) == (
        f"{tree}/*/*.jsonl: contains only output of this job; choose its inputs"
    )


def test_missing_inputs_are_named(tree: Path) -> None:
    (tree / "empty").mkdir()
    assert fault(lambda: names(tree / "no.txt")) == f"{tree}/no.txt: no such file or directory"
    assert fault(lambda: names(tree / "*.csv")) == f"{tree}/*.csv: matches no file"
    assert "*.md: matches no .parquet, .arrow" in fault(lambda: names(tree / "*.md"))
    assert "empty: the directory contains no .parquet" in fault(lambda: names(tree / "empty"))


def test_an_unknown_ending_is_refused_with_the_known_ones(tree: Path) -> None:
    message = fault(lambda: names(tree / "notes.md"))
    assert message.startswith(f"{tree}/notes.md: unknown file ending; expected ")
    assert all(ending in message for ending in (".parquet", ".arrow", ".txt", ".jsonl", ".csv"))


@pytest.mark.parametrize("query", ["", "?region=x"])
def test_uris_are_listed_matched_and_kept(tree: Path, store: str, query: str) -> None:
    write_raw(tree / "fr/a b%.txt")
    files = resolve([f"{store}/fr/{query}"])
    assert [(file.path, file.name) for file in files] == [
        (f"{store}/fr/a%20b%25.txt{query}", "a b%.txt")
    ]
    assert texts(files[0]) == ["x"]
    assert resolve([files[0].path]) == resolve([f"{store}/fr/?*.txt{query}"]) == files
    assert names(store + query) == [*EVERYTHING, "fr/a b%.txt"]
    assert names(f"{store}/**/*.jsonl{query}") == ["en/c.jsonl"]
    assert "no such file" in fault(lambda: resolve([f"{store}/no.txt{query}"]))
    with pytest.raises(OptionError, match="Protocol not known: other"):
        resolve(["other://bucket/a.txt"])


def test_shards_keep_their_relative_names_with_the_ending_parquet(tree: Path) -> None:
    files = resolve([str(tree)])
    assert [output_names(files)[file.path] for file in files] == [
        "a.parquet", "b.parquet", "de/H.parquet", "en/c.parquet", "en/d.parquet",
        "en/deep/e.parquet",
    ]  # fmt: skip


def test_files_that_differ_in_their_endings_keep_them_in_the_names_of_shards(tree: Path) -> None:
    write_raw(tree / "b.jsonl.gz")
    names = output_names(resolve([str(tree)]))
    assert names[f"{tree}/b.txt"] == "b.txt.parquet"
    assert names[f"{tree}/b.jsonl.gz"] == "b.jsonl.gz.parquet"
    write_raw(tree / "b.txt.parquet")
    message = fault(lambda: output_names(resolve([str(tree)])))
    assert "its shard would have the name b.txt.parquet, like the shard of" in message


def test_files_of_equal_names_have_as_many_directories_as_tell_them_apart(tmp_path: Path) -> None:
    names = ("1/x/a.txt", "2/x/a.txt", "3/y/a.txt", "3/y/b.txt", "4/sub/c.txt", "5/sub/c.txt")
    for name in names:
        write_raw(tmp_path / name)
    folders = [tmp_path / "4", tmp_path / "5"]
    files = resolve([*(str(tmp_path / name) for name in names[:4]), *map(str, folders)])
    found = disambiguated(files)
    assert [file.name for file in found] == [
        *("1/x/a.txt", "2/x/a.txt", "y/a.txt", "b.txt", "4/sub/c.txt", "5/sub/c.txt")
    ]
    assert [f"{file.root}/{file.name}" for file in found] == [file.path for file in files]
    assert disambiguated(files[:1]) == files[:1]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["s3://b/p%20q/a.txt?region=x", "s3://b/r/a.txt?region=x"], ["p q/a.txt", "r/a.txt"]),
        (["s3://b/a.txt", "s3://c/a.txt"], ["a.txt", "a.txt"]),  # a bucket is not a directory
        (["/1/a.txt", "/2/a.txt"], ["1/a.txt", "2/a.txt"]),
        (["/a.txt", "s3://b/d/a.txt"], ["a.txt", "d/a.txt"]),
    ],
)
def test_names_of_files_anywhere_are_told_apart(paths: list[str], names: list[str]) -> None:
    files = [InputFile(path, "a.txt", "text", None, 1, None) for path in paths]
    found = disambiguated(files)
    assert [file.name for file in found] == names
    assert [join(file.root, file.name) for file in found] == paths


def test_a_shard_that_would_be_named_as_a_directory_of_others_is_refused(tmp_path: Path) -> None:
    for name in ("a.txt", "a.parquet/part.parquet", "b/a.jsonl"):
        write_raw(tmp_path / name)
    message = fault(lambda: output_names(resolve([str(tmp_path)])))
    assert message.startswith(f"{tmp_path}/a.parquet/part.parquet: ")
    assert message.endswith(f"of {tmp_path}/a.txt; rename one, or encode them separately")


def test_pipes_and_directories_that_a_glob_matches_are_named(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("a")
    with pytest.raises(
        InputError, match=r"\*: matches no file, only directories; end it with /\*\*"
    ):
        resolve([f"{tmp_path}/*"])
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.warns(SkippedFilesWarning, match="1 file is not read, because it is a pipe"):
        assert [file.name for file in resolve([str(tmp_path)])] == ["sub/a.txt"]
    with pytest.raises(InputError, match="but a pipe or a device; write its content to a file"):
        resolve([str(tmp_path / "pipe.jsonl")])
