"""Whether `compare` gives the measures that NumPy computes from the tokens and offsets of
`tokenizers`, over complete texts, by language.

The tokenizers are published vocabularies, and a byte-level BPE and a Unigram that `tokenizers`
trains on some of the text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

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
from wordpiece_core import Tokenizer as OwnTokenizer

BATCH = 2000  # texts
FIRST = "a"  # the word before the texts of tokenizers that are not BERT's
TRAIN_EVERY = 20  # of so many texts one is trained on
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


def trained(texts: Sequence[str], vocab_size: int, work: Path) -> Iterator[Contender]:
    """A byte-level BPE and a Unigram."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    size: dict[str, Any] = {"vocab_size": vocab_size, "show_progress": False}
    of_bpe = trainers.BpeTrainer(initial_alphabet=alphabet, **size)
    of_unigram = trainers.UnigramTrainer(unk_token="<unk>", special_tokens=["<unk>"], **size)
    for name, peer, trainer in (("bpe", bpe, of_bpe), ("unigram", unigram, of_unigram)):
        peer.train_from_iterator(texts, trainer)
        path = work / f"{name}.json"
        peer.save(str(path))
        unk_id = peer.token_to_id("<unk>")
        yield Contender(path, peer, -1 if unk_id is None else unk_id, len(FIRST))


# --- The check ------------------------------------------------------------------------------------


def differing(found: dict[str, Any], wanted: dict[str, float]) -> list[str]:
    """The columns that differ. Ratios must be equal to the last bit."""
    rough = {"renyi_efficiency"}
    return [
        f"{name}: {found[name]}, not {value}"
        for name, value in wanted.items()
        if found[name] != value
        and not (name in rough and math.isclose(found[name], value, rel_tol=CLOSE))
    ]


def measure_parity(
    texts: Mapping[str, Sequence[str]], vocabularies: Sequence[Path], vocab_size: int, work: Path
) -> Iterator[tuple[str, int, int]]:
    """What was compared, how many measures, and how many of them differ."""
    sample = [text for of_language in texts.values() for text in of_language[::TRAIN_EVERY]]
    contenders = [
        *(published(path, work) for path in vocabularies),
        *trained(sample, vocab_size, work),
    ]
    corpus = work / "corpus.parquet"
    tables = [pa.table({"text": list(t), "group": [name] * len(t)}) for name, t in texts.items()]
    pq.write_table(pa.concat_tables(tables), corpus, row_group_size=5000)
    places = [str(contender.path) for contender in contenders]
    table = pipelines.compare(places, on=corpus, group_column="group", quiet=True)
    rows = {(row["tokenizer"], row["group"]): row for row in table.to_pylist()}
    for contender in contenders:
        total = Sums()
        for name in [*sorted(texts), None]:
            sums = total
            if name is not None:
                given = contender.texts(texts[name])
                sums = plain_sums(contender.peer, contender.unk_id, given, contender.first)
                total = total + sums
            wanted = sums.figures(contender.peer.get_vocab_size())
            wrong = differing(rows[str(contender.path), name], wanted)
            where = f" ({'; '.join(wrong)})" if wrong else ""
            yield f"{contender.path.name}, {name or 'all'}{where}", len(wanted), len(wrong)
