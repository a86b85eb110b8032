"""Whether BPE and Unigram give the ids of `tokenizers` and `sentencepiece` in every row of a text,
by language, with tokenizers that those trained, and with ours.

The speeds are only a first look: ours ends at Arrow arrays, theirs at lists of Python, and they may
use more threads. `encode_models` compares like with like."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sentencepiece
from tokenizers import Tokenizer as Peer
from tokenizers import models, trainers

import pipelines
from benchmarks.measure import Row, number
from benchmarks.model_peers import (
    gpt2_like,
    of_marked_words,
    sentencepiece_model,
    word_end_bpe,
)
from benchmarks.setting import Setting, megabytes, read_texts
from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core.reference import SPECIAL_TOKENS
from wordpiece_core.tokenizer.formats import sentencepiece_proto

VOCAB_SIZE = 8_000
TRAIN_EVERY = 20  # of so many texts one is trained on
BATCH = 1_000  # texts
OURS: dict[str, dict[str, Any]] = {  # options of training
    "bpe </w>": {"model": "bpe"},
    "bpe ▁": {"model": "bpe", "word_boundary": "▁"},
    "bpe bytes": {"model": "bpe", "word_boundary": "bytes"},
    "bpe bytes, gpt2": {"model": "bpe", "word_boundary": "bytes", "pre_tokenizer": "gpt2"},
    "unigram": {"model": "unigram"},
}
PLAIN = EncodingOptions(add_special_tokens=False)
UNSEEN = EncodingOptions(add_special_tokens=False, split_special_tokens=True)

Encode = Callable[[list[str]], list[list[int]]]


@dataclass(frozen=True)
class Contest:
    """A tokenizer of ours, and the same of another program."""

    name: str
    trained_by: str
    peer: str
    ours: Tokenizer
    theirs: Encode
    options: EncodingOptions = PLAIN


def model_parity(setting: Setting) -> Iterator[Row]:
    """BPE and Unigram of 8,000 tokens: rows whose ids differ from those of others, and MB/s"""
    for name, paths in setting.groups.items():
        texts = read_texts(paths)
        folder = setting.work / "model-parity" / name
        folder.mkdir(parents=True)
        sample = texts.take(pa.array(range(0, len(texts), TRAIN_EVERY)))
        for contest in [*_of_peers(sample, folder), *_of_ours(sample, folder)]:
            yield {"text": name, **_result(contest, texts)}


def _result(contest: Contest, texts: pa.ChunkedArray) -> Row:
    differ = 0
    seconds = [0.0, 0.0]
    for start in range(0, len(texts), BATCH):
        some = texts.slice(start, BATCH).combine_chunks()
        plain = some.to_pylist()
        begun = time.perf_counter()
        mine = contest.ours.encode_batch(some, options=contest.options).table["input_ids"]
        between = time.perf_counter()
        theirs = contest.theirs(plain)
        seconds[1] += time.perf_counter() - between
        seconds[0] += between - begun
        differ += sum(a != b for a, b in zip(mine.to_pylist(), theirs, strict=True))
    size = megabytes(texts)
    return {
        "tokenizer": contest.name,
        "trained by": contest.trained_by,
        "against": contest.peer,
        "rows": f"{len(texts):,}",
        "rows that differ": f"{differ:,}",
        "ours, MB/s": number(size / seconds[0]),
        "theirs, MB/s": number(size / seconds[1]),
    }


def _by_tokenizers(path: Path) -> Encode:
    peer = Peer.from_file(str(path))
    return lambda texts: [
        row.ids for row in peer.encode_batch_fast(texts, add_special_tokens=False)
    ]


def _by_sentencepiece(path: Path) -> Encode:
    peer = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return lambda texts: list(peer.encode(texts, num_threads=1))


# --- Trained by others ----------------------------------------------------------------------------


def _of_peers(sample: pa.ChunkedArray, folder: Path) -> Iterator[Contest]:
    texts = sample.to_pylist()
    for name, value in (
        ("bpe, GPT-2-like", gpt2_like(texts, VOCAB_SIZE, ["<|endoftext|>"])),
        ("bpe </w>", word_end_bpe(texts, VOCAB_SIZE, SPECIAL_TOKENS, lowercase=False)),
        ("unigram", _unigram(texts)),
    ):
        yield _written(name, "tokenizers", value.to_str(), folder)
    model = sentencepiece_model(texts, VOCAB_SIZE)
    yield _written("unigram, T5-like", "sentencepiece", _t5_like(model), folder)
    path = folder / "trained.model"
    path.write_bytes(model)
    made = Tokenizer.load(path)
    encode = _by_sentencepiece(path)
    yield Contest("unigram, .model", "sentencepiece", "sentencepiece", made, encode)


def _written(name: str, by: str, value: str, folder: Path) -> Contest:
    path = folder / f"{name.replace('/', '')}.json"
    path.write_text(value)
    return Contest(name, by, "tokenizers", Tokenizer.load(path), _by_tokenizers(path))


def _unigram(texts: Sequence[str]) -> Peer:
    peer = of_marked_words(models.Unigram(), lowercase=False)
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        unk_token="[UNK]",
        show_progress=False,
    )
    peer.train_from_iterator(texts, trainer)
    return peer


def _t5_like(data: bytes) -> str:
    """The `tokenizer.json` that T5's is, of a model of `sentencepiece`."""
    model = sentencepiece_proto.parsed(data)
    pieces = [[piece.piece, piece.score] for piece in model.pieces][3:]
    charsmap = b64encode(model.normalizer_spec.precompiled_charsmap).decode()
    mark = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    value: Any = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, mark],
        },
        "post_processor": None,
        "decoder": mark,
        "model": {
            "type": "Unigram",
            "unk_id": 2,
            "vocab": [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], *pieces],
            "byte_fallback": False,
        },
    }
    return json.dumps(value)


# --- Trained by us --------------------------------------------------------------------------------


def _of_ours(sample: pa.ChunkedArray, folder: Path) -> Iterator[Contest]:
    place = folder / "sample.parquet"
    pq.write_table(pa.table({"text": sample}), place)
    for name, options in OURS.items():
        output = folder / name.replace("/", "")
        text = {} if "pre_tokenizer" in options else {"lowercase": False}
        pipelines.train(
            str(place),
            output=str(output),
            vocab_size=VOCAB_SIZE,
            quiet=True,
            **(options | text),
        )
        made = Tokenizer.load(output)
        encode = _by_tokenizers(output / "tokenizer.json")
        yield Contest(name, "wordpiece", "tokenizers", made, encode)
        if (output / "spiece.model").exists():
            encode = _by_sentencepiece(output / "spiece.model")
            yield Contest(name, "wordpiece", "sentencepiece", made, encode, UNSEEN)
