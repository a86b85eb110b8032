"""Whether `compare` gives the figures that NumPy makes of the tokens and offsets of `tokenizers`,
over whole texts, by language; and what it takes beside counting, and beside a plain loop.

    python -m benchmarks.compare_parity              # the shared corpus, some minutes
    python -m benchmarks.compare_parity CORPUS... --vocabularies DIR

The tokenizers are published vocabularies, and a byte-level BPE and a Unigram that `tokenizers`
trains on some of the text.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

import pipelines
from benchmarks.measure import run_process
from benchmarks.parity import VOCABULARIES
from benchmarks.setting import find_groups, read_texts
from wordpiece_core import Tokenizer as OwnTokenizer

BATCH = 2000  # texts
FIRST = "a"  # the word before the texts of tokenizers that are not BERT's
TRAIN_EVERY = 20  # of so many texts one is trained on
VOCAB_SIZE = 16_000
CLOSE = 1e-12  # of figures that are no ratios of whole numbers
SPACES = "\t\n\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
RUN_OF_SPACES = re.compile(f"[{SPACES}]+")
NO_CHARACTER = frozenset(SPACES + "\v\f\x85")
WORD = re.compile("A|W(?:R*W)*")


@cache
def kind(c: str) -> str:
    """Of a character: S cuts, A is a word alone, R is removed, W is part of a word."""
    if c in SPACES:
        return "S"
    bert = normalizers.BertNormalizer(strip_accents=False, lowercase=False)
    kept = bert.normalize_str(c)
    if not kept:
        return "R"
    cut = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(bert.normalize_str(f"a{c}"))
    return "W" if len(cut) == 1 else "A"


@dataclass
class Sums:
    """The sums that all figures are made of."""

    counts: dict[str, int] = field(default_factory=dict)
    uses: Any = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, uses: Any, **counts: int) -> None:
        size = max(len(self.uses), len(uses))
        self.uses = np.resize(np.pad(self.uses, (0, size - len(self.uses))), size)
        self.uses[: len(uses)] += uses
        self.counts = {name: self.counts.get(name, 0) + int(n) for name, n in counts.items()}

    def __add__(self, other: Sums) -> Sums:
        total = Sums(dict(self.counts), self.uses.copy())
        total.add(other.uses, **other.counts)
        return total

    def figures(self, vocab_size: int) -> dict[str, float]:
        """The columns of `compare`."""
        of, used = self.counts, self.uses[self.uses > 0]
        shares = used / used.sum()
        entropy = math.log((shares**2.5).sum()) / -1.5
        return {
            "words": of["words"],
            "tokens": of["tokens"],
            "tokens_per_word": of["tokens"] / of["words"],
            "characters_per_token": of["characters"] / of["tokens"],
            "bytes_per_token": of["bytes"] / of["tokens"],
            "whole_words": of["whole"] / of["words"],
            "continued_words": of["continued"] / of["words"],
            "unknown_words": of["unknown"] / of["words"],
            "dropped_characters": of["dropped"] / of["characters"],
            "used_tokens": len(used),
            "rare_tokens": int((used < 10).sum()),
            "renyi_efficiency": entropy / math.log(vocab_size),
            "vocab_size": vocab_size,
        }


def plain_sums(peer: Tokenizer, unk_id: int, texts: Sequence[str], first: int) -> Sums:
    """The sums over whole texts, without the `first` characters of each and their tokens."""
    sums = Sums()
    for start in range(0, len(texts), BATCH):
        some = texts[start : start + BATCH]
        rows = peer.encode_batch(some, add_special_tokens=False)
        ids, places = [], []
        words: list[tuple[int, int]] = []
        covered_to = 0
        for text, row in zip(some, rows, strict=True):
            ids.append(np.array(row.ids, np.int64))
            offsets = np.array(row.offsets, np.int64).reshape(-1, 2)
            keep = offsets[:, 1] > first if first else np.ones(len(offsets), bool)
            ids[-1] = ids[-1][keep]
            places.append(offsets[keep] + covered_to)
            kinds = "".join(map(kind, text))
            words += (
                (m.start() + covered_to, m.end() + covered_to) for m in WORD.finditer(kinds, first)
            )
            covered_to += len(text)
        add_batch(sums, np.concatenate(ids), np.concatenate(places), words, some, unk_id, first)
    return sums


def add_batch(
    sums: Sums,
    ids: Any,
    places: Any,
    words: Sequence[tuple[int, int]],
    texts: Sequence[str],
    unk_id: int,
    first: int,
) -> None:
    """Adds a batch, whose places are those in all its texts one after the other."""
    joined = "".join(texts)
    visible = np.fromiter((c not in NO_CHARACTER for c in joined), bool, len(joined))
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = np.cumsum(lengths) - lengths
    for k in range(first):
        visible[starts + k] = False
    known = ids != unk_id
    steps = np.zeros(len(joined) + 1, np.int64)
    np.add.at(steps, places[known, 0], 1)
    np.add.at(steps, places[known, 1], -1)
    covered = np.cumsum(steps)[:-1] > 0
    real = places[:, 1] > places[:, 0]
    start, end, unknown = places[real, 0], places[real, 1], ~known[real]
    if (np.diff(start) < 0).any() or (np.diff(end) < 0).any():
        order = np.lexsort((end, start))
        start, end, unknown = start[order], np.maximum.accumulate(end[order]), unknown[order]
    word_start, word_end = np.array(words, np.int64).reshape(-1, 2).T
    low = np.searchsorted(end, word_start, "right")  # the tokens low to high overlap the word
    high = np.searchsorted(start, word_end, "left")
    overlapping = high - low
    unknowns = np.concatenate([[0], np.cumsum(unknown)])
    has_unknown = unknowns[high] - unknowns[low] > 0
    only = low[overlapping == 1]
    touched = np.searchsorted(word_start, end[only], "left") - np.searchsorted(
        word_end, start[only], "right"
    )
    codes = np.fromiter(map(ord, joined), np.int64, len(joined))[visible]
    sums.add(
        np.bincount(ids) if len(ids) else np.zeros(0, np.int64),
        words=len(words),
        tokens=len(ids),
        characters=visible.sum(),
        bytes=(1 + (codes > 0x7F) + (codes > 0x7FF) + (codes > 0xFFFF)).sum(),
        whole=((touched == 1) & ~has_unknown[overlapping == 1]).sum(),
        continued=(overlapping > 1).sum(),
        unknown=has_unknown.sum(),
        dropped=(visible & ~covered).sum(),
    )


# --- Tokenizers -----------------------------------------------------------------------------------


@dataclass
class Contender:
    """A tokenizer: for `compare`, and for `tokenizers`. `first`: characters before each text."""

    path: Path
    peer: Any
    unk_id: int
    first: int

    def texts(self, texts: Sequence[str]) -> list[str]:
        """The texts that it is measured on: as they are, or with single spaces after a word."""
        if not self.first:
            return list(texts)
        return [" ".join([FIRST, RUN_OF_SPACES.sub(" ", t).strip(" ")]) for t in texts]


def published(path: Path, work: Path) -> Contender:
    """A published vocabulary, as a directory that `tokenizers` reads too."""
    directory = work / path.parent.name
    OwnTokenizer.load(path, lowercase="-cased" not in path.parent.name).save(directory)
    peer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    return Contender(directory, peer, peer.token_to_id("[UNK]") or 0, 0)


def trained(texts: Sequence[str], work: Path) -> Iterator[Contender]:
    """A byte-level BPE and a Unigram."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    size: dict[str, Any] = {"vocab_size": VOCAB_SIZE, "show_progress": False}
    of_bpe = trainers.BpeTrainer(initial_alphabet=alphabet, **size)
    of_unigram = trainers.UnigramTrainer(unk_token="<unk>", special_tokens=["<unk>"], **size)
    for name, peer, trainer in (("bpe", bpe, of_bpe), ("unigram", unigram, of_unigram)):
        peer.train_from_iterator(texts, trainer)
        path = work / f"{name}.json"
        peer.save(str(path))
        unk_id = peer.token_to_id("<unk>")
        yield Contender(path, peer, -1 if unk_id is None else unk_id, len(FIRST))


# --- The command ----------------------------------------------------------------------------------


def differing(found: dict[str, Any], wanted: dict[str, float]) -> list[str]:
    """The columns that differ. Ratios must be equal to the last bit."""
    rough = {"renyi_efficiency"}
    return [
        f"{name}: {found[name]}, not {value}"
        for name, value in wanted.items()
        if found[name] != value
        and not (name in rough and math.isclose(found[name], value, rel_tol=CLOSE))
    ]


def check(groups: dict[str, list[Path]], vocabularies: Sequence[Path], work: Path) -> bool:
    """Compares all figures; whether they are equal."""
    texts = {name: read_texts(paths).to_pylist() for name, paths in groups.items()}
    texts = {name: [text or "" for text in of_group] for name, of_group in texts.items()}
    sample = [text for of_group in texts.values() for text in of_group[::TRAIN_EVERY]]
    contenders = [*(published(path, work) for path in vocabularies), *trained(sample, work)]
    corpus = work / "corpus.parquet"
    tables = [pa.table({"text": t, "group": [name] * len(t)}) for name, t in texts.items()]
    pq.write_table(pa.concat_tables(tables), corpus, row_group_size=5000)
    began = time.perf_counter()
    places = [str(contender.path) for contender in contenders]
    table = pipelines.compare(places, on=corpus, group_column="group", quiet=True)
    print(f"compare, {len(places)} tokenizers: {time.perf_counter() - began:.1f} s", flush=True)
    rows = {(row["tokenizer"], row["group"]): row for row in table.to_pylist()}
    equal = True
    for contender in contenders:
        whole = Sums()
        peer, began = contender.peer, time.perf_counter()
        for name in sorted(texts):
            given = contender.texts(texts[name])
            sums = plain_sums(peer, contender.unk_id, given, contender.first)
            whole = whole + sums
            wrong = differing(rows[str(contender.path), name], sums.figures(peer.get_vocab_size()))
            raw = sum(map(len, peer.encode_batch(texts[name], add_special_tokens=False)))
            as_written = raw / sums.counts["tokens"] - 1
            equal = equal and not wrong
            print(
                f"{contender.path.name}, {name}: {sums.counts['words']:,} words,"
                f" {'equal' if not wrong else '; '.join(wrong)}"
                f" (tokens of the text as written: {as_written:+.3%})",
                flush=True,
            )
        wrong = differing(rows[str(contender.path), None], whole.figures(peer.get_vocab_size()))
        equal = equal and not wrong
        seconds = time.perf_counter() - began
        said = "equal" if not wrong else "; ".join(wrong)
        print(f"{contender.path.name}, all: {said}; the plain way took {seconds:.0f} s", flush=True)
    return equal


LOOP = """
import sys, pyarrow.parquet as pq
from collections import Counter
from tokenizers import Tokenizer
tokenizer, words, tokens, uses = Tokenizer.from_file(sys.argv[1]), 0, 0, Counter()
for path in sys.argv[2:]:
    for batch in pq.ParquetFile(path).iter_batches(5000, columns=["text"]):
        for row in tokenizer.encode_batch(batch["text"].to_pylist(), add_special_tokens=False):
            uses.update(row.ids)
print(sum(uses.values()))
"""


def time_jobs(paths: Sequence[str], tokenizers: Sequence[Path], work: Path, runs: int) -> None:
    """What whole processes take: compare, count, and a loop that only counts tokens."""
    command = [sys.executable, "-m", "pipelines"]
    cores = len(os.sched_getaffinity(0))
    jobs = {
        "count": [*command, "count", *paths, "--output", str(work / "words"), "--quiet"],
        **{
            f"compare {path.name}": [*command, "compare", str(path), "--on", *paths, "--json"]
            for path in tokenizers
        },
        **{
            f"loop {path.name}": [
                *(sys.executable, "-c", LOOP),
                str(path if path.suffix else path / "tokenizer.json"),
                *paths,
            ]
            for path in tokenizers
        },
    }
    seconds: dict[str, list[str]] = {name: [] for name in jobs}
    for _ in range(runs):
        for name, job in jobs.items():
            taken = run_process(job, cores, os.environ)
            seconds[name].append(f"{taken.seconds:.1f} s ({taken.peak_bytes / 1e6:.0f} MB)")
    for name, all_runs in seconds.items():
        print(f"{name}: {', '.join(all_runs)}", flush=True)


@click.command()
@click.argument("corpus", nargs=-1)
@click.option("--vocabularies", default=VOCABULARIES, type=click.Path(path_type=Path))
@click.option("--runs", default=3, help="Of each process that is timed; 0 for none.")
@click.option("--only-times", is_flag=True, help="Leave the parity out.")
def main(corpus: Sequence[str], vocabularies: Path, runs: int, only_times: bool) -> None:
    """Compares all figures with plain ones; exits with 1 if any differs."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        groups = find_groups(corpus, work)
        vocabs = sorted(vocabularies.glob("*/vocab.txt"))
        if only_times:
            texts = read_texts(next(iter(groups.values()))).to_pylist()[::TRAIN_EVERY]
            contenders = [*(published(path, work) for path in vocabs), *trained(texts, work)]
            equal, tokenizers = True, [contender.path for contender in contenders]
        else:
            equal = check(groups, vocabs, work)
            tokenizers = [*(work / path.parent.name for path in vocabs)]
            tokenizers += [work / "bpe.json", work / "unigram.json"]
        main_group = "en" if "en" in groups else next(iter(groups))
        time_jobs([str(path) for path in groups[main_group]], tokenizers, work, runs)
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
