"""Compare the ids of BPE and Unigram with `tokenizers` and `sentencepiece` for each text of a
corpus, with tokenizers of their training and of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sentencepiece
from tokenizers import Tokenizer as Peer

import pipelines
from wordpiece_core import EncodingOptions, Tokenizer

from ..wordpiece_core.tokenizer import peers
from .bert import batches

VOCAB_SIZE = 8_000
TRAIN_EVERY = 20  # training uses every 20th text
OURS: dict[str, dict[str, Any]] = {  # options of training
    "bpe </w>": {"model": "bpe", "lowercase": False},
    "bpe ▁": {"model": "bpe", "word_boundary": "▁", "lowercase": False},
    "bpe bytes": {"model": "bpe", "word_boundary": "bytes", "lowercase": False},
    "bpe bytes, gpt2": {"model": "bpe", "word_boundary": "bytes", "pre_tokenizer": "gpt2"},
    "unigram": {"model": "unigram", "lowercase": False},
}
PLAIN = EncodingOptions(add_special_tokens=False)
UNSEEN = EncodingOptions(add_special_tokens=False, special_tokens_in_text="text")

Encode = Callable[[list[str]], list[list[int]]]


def model_parity(
    texts: Mapping[str, Sequence[str]], vocab_size: int, work: Path
) -> Iterator[tuple[str, int, int]]:
    """Return a description of the comparison, the number of texts, and the number of texts with
    other ids."""
    for language, of_language in texts.items():
        folder = work / language
        folder.mkdir(parents=True)
        sample = of_language[::TRAIN_EVERY]
        for name, theirs, ours, options in (
            *_trained_by_others(sample, vocab_size, folder),
            *_trained_by_us(sample, vocab_size, folder),
        ):
            wrong = 0
            for some in batches(of_language):
                found = ours.encode_table(some, options=options).table["input_ids"].to_pylist()
                wrong += sum(a != b for a, b in zip(found, theirs(some), strict=True))
            yield f"{language}, {name}", len(of_language), wrong


Compared = tuple[str, Encode, Tokenizer, EncodingOptions]


def _by_tokenizers(path: Path) -> Encode:
    peer = Peer.from_file(str(path))
    return lambda texts: [
        row.ids for row in peer.encode_batch_fast(texts, add_special_tokens=False)
    ]


def _by_sentencepiece(path: Path) -> Encode:
    peer = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return lambda texts: list(peer.encode(texts, num_threads=1))


def _trained_by_others(sample: Sequence[str], vocab_size: int, folder: Path) -> Iterator[Compared]:
    model = peers.train_sentencepiece(sample, vocab_size)
    values = {kind: peers.train(kind, sample, vocab_size) for kind in peers.KINDS}
    values["t5"] = json.dumps(peers.sentencepiece_like("t5", model))
    for kind, value in values.items():
        path = folder / f"{kind}.json"
        path.write_text(value)
        yield f"{kind} of tokenizers", _by_tokenizers(path), Tokenizer.load(path), PLAIN
    path = folder / "trained.model"
    path.write_bytes(model)
    yield "model of sentencepiece", _by_sentencepiece(path), Tokenizer.load(path), PLAIN


def _trained_by_us(sample: Sequence[str], vocab_size: int, folder: Path) -> Iterator[Compared]:
    source = folder / "sample.parquet"
    pq.write_table(pa.table({"text": pa.array(sample)}), source)
    for name, options in OURS.items():
        output = folder / name.replace("/", "")
        pipelines.train(
            str(source), output=str(output), vocab_size=vocab_size, quiet=True, **options
        )
        ours = Tokenizer.load(output)
        yield f"our {name} in tokenizers", _by_tokenizers(output / "tokenizer.json"), ours, PLAIN
        if (output / "spiece.model").exists():
            theirs = _by_sentencepiece(output / "spiece.model")
            yield f"our {name} in sentencepiece", theirs, ours, UNSEEN
