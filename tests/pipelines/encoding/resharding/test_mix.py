"""`encode --mix`: the drawn rows next to plain Python, by inputs and by groups."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_core as wp
from pipelines.encoding.mix import read_mix
from wordpiece_core.limits import Limits

from ....quick import parametrize
from ...corpora import (
    ONE_WORKER,
    done,
    english,
    files_below,
    manifest,
    train_tokenizer,
    wordpiece,
)
from ...stopping import killed_before

GROUPS = ("books", "code", "manuals", "letters")
SIZES = (150, 90, 20, 40)
TEXTS = {
    group: english(size, seed=number)
    for number, (group, size) in enumerate(zip(GROUPS, SIZES, strict=True))
}
MANY = Limits(bucket_bytes=1000, large_buckets=2, run_share=1 << 16, task_bytes=1000)
SEED = "5"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a tokenizer, inputs by source, and inputs with all groups mixed."""
    folder = tmp_path_factory.mktemp("mix")
    train_tokenizer(folder, english(300), "--vocab-size", "200")
    rows = []
    for group, texts in TEXTS.items():
        (folder / group).mkdir()
        for half in (0, 1):
            some = texts[half::2]
            lines = "".join(json.dumps({"text": text}) + "\n" for text in some)
            (folder / group / f"{half}.jsonl").write_text(lines)
        rows += [{"text": text, "lang": group} for text in texts]
    random.Random(1).shuffle(rows)
    (folder / "all").mkdir()
    for part in range(3):
        lines = "".join(json.dumps(row) + "\n" for row in rows[part::3])
        (folder / "all" / f"{part}.jsonl").write_text(lines)
    return folder


def written(folder: Path, text: str) -> Path:
    (folder / "mix.yaml").write_text(text)
    return folder / "mix.yaml"


def call(place: Path, mix: Path, output: Path, *more: str | Path) -> list[str | Path]:
    args = ["--tokenizer", place / "tokenizer", "--output", output, "--shuffle", SEED]
    ends = [] if "--pack" in more else ["--no-add-special-tokens"]
    return ["encode", *more, *args, "--mix", mix, *ends, *ONE_WORKER]


def hashed(name: str, row: int) -> int:
    key = hashlib.blake2b(f"{SEED}\0{name}\0draw".encode(), digest_size=32).digest()
    data = hashlib.blake2b(row.to_bytes(8, "little"), digest_size=8, key=key).digest()
    return int.from_bytes(data, "little")


def drawn(rows: Sequence[tuple[str, int, str]], lengths: dict[str, int], budget: int) -> list[str]:
    """Return the texts that are drawn of a source. `rows`: shards, rows and texts."""
    total = sum(lengths[text] for *_, text in rows)
    copies, rest = divmod(budget, total)
    found = [text for *_, text in rows] * copies
    for *_, text in sorted(rows, key=lambda row: hashed(*row[:2])):
        if rest <= 0:
            break
        found.append(text)
        rest -= lengths[text]
    return found


def lengths(place: Path) -> dict[str, int]:
    tok = wp.Tokenizer.load(place / "tokenizer")
    texts = [text for some in TEXTS.values() for text in some]
    return {text: len(tok.encode(text, add_special_tokens=False)) for text in texts}


def shard_rows(output: Path) -> list[dict[str, Any]]:
    paths = sorted(output.glob("*.parquet"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


@parametrize("how", ["inputs", "groups"], quick=2)
@pytest.mark.parametrize("more", [(), ("--splits", "train=0.8,test=0.2", "--shard-size", "4KiB")])
def test_the_first_rows_by_hash_are_drawn(
    tmp_path: Path, place: Path, how: str, more: tuple[str, ...]
) -> None:
    size = lengths(place)
    totals = {group: sum(size[text] for text in TEXTS[group]) for group in GROUPS}
    total = totals["books"] // 2 + totals["code"] // 4 + 2 * totals["manuals"] + 7
    key = "inputs: " if how == "inputs" else "group: "
    where = f"{place}/" if how == "inputs" else ""
    mix = written(
        tmp_path,
        f"max_repeats: 3\nsources:\n- {key}{where}books\n  weight: 2\n- {key}{where}code\n"
        f"  weight: 0.5\n- {key}{where}manuals\n  tokens: {2 * totals['manuals'] + 7}\n",
    )
    inputs = [] if how == "inputs" else [place / "all", "--group-column", "lang"]
    args = [*inputs, "--tokens", str(total), *more]
    found = json.loads(done(*call(place, mix, tmp_path / "out", *args, "--json"), limits=MANY).out)
    rest = total - 2 * totals["manuals"] - 7
    budgets = {
        "books": int(rest * Fraction(4, 5)),
        "code": rest - int(rest * Fraction(4, 5)),
        "manuals": 2 * totals["manuals"] + 7,
    }
    places = {group: list[tuple[str, int, str]]() for group in GROUPS}
    folders = GROUPS[:3] if how == "inputs" else ["all"]
    names = {source["input"]: source["name"] for source in manifest(tmp_path / "out")["sources"]}
    for folder in folders:
        for path in sorted((place / folder).iterdir()):
            place_of = f"{folder}/{path.name}"
            name = next(name for given, name in names.items() if place_of.endswith(given))
            for row, line in enumerate(path.read_text().splitlines()):
                value = json.loads(line)
                places[value.get("lang", folder)].append((name, row, value["text"]))
    wanted: Counter[str] = Counter()
    for entry, (group, budget) in zip(
        manifest(tmp_path / "out")["mix"], budgets.items(), strict=False
    ):
        texts = drawn(places[group], size, budget)
        tokens = sum(size[text] for text in texts)
        assert (entry["wanted_tokens"], entry["tokens"], entry["rows"]) == (
            budget,
            tokens,
            len(texts),
        )
        assert budget <= tokens < budget + max(size.values())
        wanted.update(texts)
    rows = shard_rows(tmp_path / "out")
    assert Counter(row["text"] for row in rows) == wanted
    assert found["tokens"] == sum(size[text] * count for text, count in wanted.items())
    assert found["rows"] == wanted.total()
    others = [entry for entry in manifest(tmp_path / "out")["mix"] if entry["source"] is None]
    assert [each["source_tokens"] for each in others] == (
        [totals["letters"]] if how == "groups" else []
    )
    first = [row["text"] for row in rows[: len(rows) // 2]]
    assert {*first} & {*TEXTS["manuals"]}
    assert {*first} & {*TEXTS["books"]}  # copies and sources are spread


def test_packed_rows_have_the_drawn_texts(tmp_path: Path, place: Path) -> None:
    size = lengths(place)
    total = sum(size[text] for text in TEXTS["code"])
    mix = written(tmp_path, f"sources: [{{inputs: {place}/code, weight: 1, max_repeats: 2}}]")
    how = ["--tokens", str(2 * total), "--pack", "best-fit", "--max-length", "32"]
    done(*call(place, mix, tmp_path / "out", *how), limits=MANY)
    rows = shard_rows(tmp_path / "out")
    places = Counter(
        pair
        for row in rows
        for pair in zip(row["document_inputs"], row["document_rows"], strict=True)
    )
    parts = [-(-size[text] // 30) for half in (0, 1) for text in TEXTS["code"][half::2]]
    assert sorted(places.values()) == sorted(2 * part for part in parts)


def test_a_killed_run_ends_with_the_same_bytes(tmp_path: Path, place: Path) -> None:
    mix = written(tmp_path, f"sources: [{{inputs: {place}/books, weight: 1}}]")
    for change in (r"written .*draw-rows\.npz", r"written .*\.runs", r"written .*manifest\.json"):
        killed_before(1, change, *call(place, mix, tmp_path / "out", "--tokens", "1k"))
    done(*call(place, mix, tmp_path / "out", "--tokens", "1k"))
    done(*call(place, mix, tmp_path / "once", "--tokens", "1k"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "once")
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    outcome = done(*call(place, mix, tmp_path / "out", "--tokens", "1k"))
    assert "source " in outcome.out
    assert stamps == {p: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    fault = wordpiece(*call(place, mix, tmp_path / "out", "--tokens", "2k")).fault
    assert "contains shards with another mix (1000 tokens (max_repeats 1) of" in fault
    assert "now 2000 tokens" in fault


def test_an_input_that_moves_to_another_source_is_another_mix(tmp_path: Path, place: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text("\n".join(TEXTS["books"]))
    sources = (
        f"sources: [{{inputs: {tmp_path}/good, weight: 3}}, {{inputs: {tmp_path}/bad, weight: 1}}]"
    )
    mix = written(tmp_path, sources)
    killed_before(
        1, r"written .*/out/\.manifest", *call(place, mix, tmp_path / "out", "--tokens", "900")
    )
    for name, other in (("good", "bad"), ("bad", "good")):
        (tmp_path / name / f"{name}.txt").rename(tmp_path / other / f"{name}.txt")
    done(*call(place, mix, tmp_path / "out", "--tokens", "900"))
    done(*call(place, mix, tmp_path / "once", "--tokens", "900"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "once")
    for name, other in (("good", "bad"), ("bad", "good")):
        (tmp_path / other / f"{name}.txt").rename(tmp_path / name / f"{name}.txt")
    fault = wordpiece(*call(place, mix, tmp_path / "out", "--tokens", "900")).fault
    assert ".parquet was in the source" in fault
    assert "choose another directory" in fault


@given(st.lists(st.fractions(1, 99), min_size=1, max_size=5), st.integers(1000, 10**15))
def test_tokens_of_sources_add_up(weights: list[Fraction], tokens: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f"- inputs: x{n}\n  weight: {w}\n" for n, w in enumerate(weights))
        mix = read_mix(str(written(Path(folder), f"sources:\n{lines}")), tokens)
    assert sum(source.tokens for source in mix.sources) == tokens
    whole = sum(weights)
    for source, weight in zip(mix.sources, weights, strict=True):
        assert abs(source.tokens - tokens * weight / whole) < 1


WRONG = {
    "sources: 3": "sources: not a list of sources",
    "source: []": "unknown key 'source'; known are sources, max_repeats",
    "sources: [x]": "source 1: not a mapping with `inputs` or `group`",
    "sources: [{weight: 1}]": "source 1: give either `inputs` or `group`",
    "sources: [{inputs: books, weight: 1, tokens: 2}]": "give either `weight` or `tokens`",
    "sources: [{group: '', weight: 1}]": "source 1: group: is empty; name a value",
    "sources: [{inputs: b, weight: 1e-9}, {inputs: books, weight: 1}]": "source 1: its weight",
    "sources: [{inputs: [], weight: 1}]": "source 1: has no inputs; name files, globs or",
    "sources: [{inputs: books, weight: -1}]": "source 1: weight: '-1' is not a number above 0",
    "sources: [{inputs: books, tokens: many}]": "source 1: tokens: 'many' is not a number such as",
    "sources: [{inputs: books, tokens: 70, max_repeats: 0}]": "max_repeats: 0 is not",
    "sources: [{inputs: books, tokens: 1k}]": "--tokens: is 500, but the sources of",
    "sources: [{group: a, weight: 1}, {inputs: b, weight: 1}]": "sources: give either",
    "sources: [{group: a, weight: 1}, {group: a, weight: 1}]": "the group 'a' is in two sources",
    "sources: [{group: a, weight: 1}]": "its sources are groups; also set --group-column",
    "sources: [": "line 1: not YAML",
}


@parametrize("text", list(WRONG), quick=4)
def test_wrong_files_get_one_line(tmp_path: Path, place: Path, text: str) -> None:
    text, said = text.replace("books", f"{place}/books"), WRONG[text]
    fault = wordpiece(
        *call(place, written(tmp_path, text), tmp_path / "out", "--tokens", "500")
    ).fault
    assert said in fault
    assert "mix.yaml" in fault
    assert not (tmp_path / "out").exists()


def test_wrong_calls_get_one_line(tmp_path: Path, place: Path) -> None:
    books = f"{{inputs: {place}/books, weight: 1}}"
    mix = written(tmp_path, f"sources: [{books}]")
    base = ["encode", "--tokenizer", place / "tokenizer", "--output", tmp_path / "out"]
    for args, said in (
        ([*base, "--mix", mix, "--tokens", "9"], "--mix: also set --shuffle, the seed"),
        ([*base, place / "all", "--tokens", "9"], "--tokens: also set --mix"),
        ([*base, place / "all", "--group-column", "x"], "--group-column: also set --mix"),
        (call(place, mix, tmp_path / "out"), "has weights; also set --tokens, the total"),
        (call(place, mix, tmp_path / "out", place / "all", "--tokens", "9"), "remove INPUT"),
        (call(place, tmp_path / "x", tmp_path / "out", "--tokens", "9"), "x: no such file"),
    ):
        assert said in wordpiece(*args).fault
    size = sum(lengths(place)[text] for text in TEXTS["books"])
    fault = wordpiece(*call(place, mix, tmp_path / "a", "--tokens", str(size + 9))).fault
    assert f"books has {size:,} tokens, so 1 of each row give {size:,}, 9 fewer than" in fault
    mix = written(tmp_path, f"sources: [{books}, {{inputs: {place}/books/0.jsonl, weight: 1}}]")
    fault = wordpiece(*call(place, mix, tmp_path / "b", "--tokens", "9")).fault
    assert "0.jsonl: is in two sources of --mix; leave it in one" in fault
