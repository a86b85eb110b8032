"""Encode in memory by one `tokenizer.json`, on one thread, next to other libraries; each run is a
process. The tokenizers are BPE like Llama 3's, GPT-2's, Qwen 2's and Llama 2's, and Unigram, which
are trained on all texts first, and WordPiece like BERT's.

The environment variable PEERS_PYTHON names a second interpreter, for versions that cannot be
installed together, such as `tokenizers` 1.0 and 0.23. A file that a library does not read has
no row.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
from tokenizers.models import BPE
from tokenizers.normalizers import Prepend, Replace, Sequence

from benchmarks.file_contender import LIBRARIES
from benchmarks.measure import Comparison, Row, number, run_process
from benchmarks.setting import Setting, first_bytes, megabytes, read_texts

MODULE = Path(__file__).parent / "file_contender.py"
CALLS = 4  # the first one is cold
MOST_BYTES = 10_000_000  # of text in a language: peers take seconds for it
OURS, ORACLE = "wordpiece_core", "tokenizers"
VOCAB_SIZE = 32_000
MOST_TRAINED, MOST_LINE = 4_000_000, 2_000  # bytes of each group, and characters of each line
BYTE_LEVEL = ("--model", "bpe", "--word-boundary", "bytes", "--pre-tokenizer")
TRAINED = {
    "Llama 3": ("--config", "llm-bpe"),
    "GPT-2": (*BYTE_LEVEL, "gpt2"),
    "Qwen 2": (*BYTE_LEVEL, "qwen2", "--normalizer", "nfc"),
    "Unigram": ("--model", "unigram"),
}


def encode_files(setting: Setting) -> Iterator[Row]:
    """Encoding by a tokenizer.json, one thread, MB/s; same: the ids are ours"""
    for kind, path in tokenizer_files(setting):
        for name in setting.groups:
            measured = measure(setting, path, name)
            for library, found in measured.items():
                yield {
                    "tokenizer": kind,
                    "text": name,
                    "library": library,
                    "cold": number(found.cold),
                    "warm": number(found.warm),
                    "same": "yes" if found.ids == measured[OURS].ids else "no",
                }


def compare_encoders(setting: Setting) -> Iterator[Comparison]:
    """Encoding in memory with each kind of tokenizer, warm. The best peer is the fastest library
    with the ids of `tokenizers`."""
    for kind, path in tokenizer_files(setting):
        measured = measure(setting, path, setting.main_group)
        ours = measured.pop(OURS)
        right = next(one.ids for name, one in measured.items() if name.startswith(ORACLE))
        peers = {name: one.warm for name, one in measured.items() if one.ids == right}
        best = max(peers, key=peers.__getitem__)
        name = f"encode in memory, {kind}, 1 thread"
        same, peak = ours.ids == right, ours.peak_bytes
        yield Comparison(name, "MB/s", ours.warm, best, peers[best], same, peak)


@dataclass(frozen=True)
class Measured:
    """Speeds of a library in MB/s, and the number and digest of its ids."""

    cold: float
    warm: float
    ids: list[object]
    peak_bytes: int


def measure(setting: Setting, path: Path, group: str) -> dict[str, Measured]:
    """Measure all libraries on the text of a group, by name and version; ours is `OURS`."""
    texts = first_bytes(read_texts(setting.groups[group]).combine_chunks(), MOST_BYTES)
    listed, size = setting.work / "texts.json", megabytes(texts)
    listed.write_text(json.dumps(texts.to_pylist()))
    measured = {}
    for python, library in contenders():
        runs = [run(setting, python, library, path, listed) for _ in range(setting.runs)]
        found = [one for one in runs if one is not None]
        if len(found) < len(runs):
            continue
        seconds = [one["seconds"] for one in found]
        name = OURS if library == OURS else f"{library} {found[0]['version']}"
        measured[name] = Measured(
            size / statistics.median(one[0] for one in seconds),
            size / statistics.median(s for one in seconds for s in one[1:]),
            found[0]["ids"],
            max(one["peak_bytes"] for one in found),
        )
    return measured


def tokenizer_files(setting: Setting) -> Iterator[tuple[str, Path]]:
    """Return a `tokenizer.json` of each kind."""
    size = ("--vocab-size", str(VOCAB_SIZE))
    for kind, options in TRAINED.items():
        yield kind, setting.train(kind, *options, *size, all_groups=True) / "tokenizer.json"
    yield "Llama 2", like_llama_2(setting)
    yield "BERT", setting.bert() / "tokenizer.json"


def like_llama_2(setting: Setting) -> Path:
    """Train BPE on the beginning of each text, with a normalizer that writes ▁ for spaces, no
    pre-tokenizer, and byte tokens, like files that `transformers` converts from sentencepiece."""
    lines = (
        line[:MOST_LINE]
        for paths in setting.groups.values()
        for text in first_bytes(read_texts(paths).combine_chunks(), MOST_TRAINED).to_pylist()
        for line in text.split("\n")
    )
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=model,
        model_type="bpe",
        vocab_size=VOCAB_SIZE,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        num_threads=setting.cores,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    tokens = [pieces.id_to_piece(i) for i in range(len(pieces))]
    ids = {token: i for i, token in enumerate(tokens)}
    pairs = (
        (token[:at], token[at:])
        for i, token in enumerate(tokens)
        for at in range(1, len(token))
        if not pieces.is_byte(i)
    )
    made = BPE(
        ids,
        [pair for pair in pairs if pair[0] in ids and pair[1] in ids],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = tokenizers.Tokenizer(made)
    tokenizer.normalizer = Sequence([Prepend("▁"), Replace(" ", "▁")])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    path = setting.work / "llama-2.json"
    tokenizer.save(str(path))
    return path


def contenders() -> list[tuple[str, str]]:
    """Return interpreters and libraries, ours first."""
    other = os.environ.get("PEERS_PYTHON")
    found = [(sys.executable, library) for library in LIBRARIES]
    return found + [(other, name) for name in LIBRARIES if other and name != OURS]


def run(
    setting: Setting, python: str, library: str, path: Path, texts: Path
) -> dict[str, Any] | None:
    """Measure a library in a process of its own. None if it is missing or fails."""
    result = setting.work / "result.json"
    result.unlink(missing_ok=True)
    command = [python, "-P", str(MODULE), library, str(path), str(texts), str(CALLS), str(result)]
    environment = os.environ | {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    try:
        taken = run_process(command, 1, environment)  # some libraries use more threads
    except RuntimeError:
        return None
    return {**json.loads(result.read_text()), "peak_bytes": taken.peak_bytes}
