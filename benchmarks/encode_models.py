"""Encoding text in memory on one thread by BPE and Unigram, against `tokenizers`, `sentencepiece`,
and `gigatoken` if it is installed.

The models are trained here, by the peers, on the first of the text. Tokenizers are made anew for
every run, outside the time; those that are *warm* have encoded the same text once before.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sentencepiece
import tokenizers
from tokenizers import models

from benchmarks.encode_kernel import BATCH_ROWS, MOST_BYTES, Contender, first_bytes, one_thread
from benchmarks.measure import Row, Spread, in_turn, number
from benchmarks.model_peers import (
    gpt2_like,
    of_marked_words,
    sentencepiece_model,
    word_end_bpe,
)
from benchmarks.setting import Setting, megabytes, read_texts
from wordpiece_core import EncodedBatch, EncodingOptions, Tokenizer
from wordpiece_core.options import TextOptions
from wordpiece_core.reference.marks import BYTES, WORD_END
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.formats.json_text import as_tokenizers
from wordpiece_core.tokenizer.models import Bpe, Metaspace, Unigram

TRAINED_BYTES = 3_000_000
BPE_SIZE, UNIGRAM_SIZE = 16_000, 8_000
UNK = "[UNK]"
OPTIONS = EncodingOptions(add_special_tokens=False, split_special_tokens=True)


@dataclass
class Model:
    """`spec`: ours. `peers`: the same, by the name of the tool; the first is the reference."""

    spec: TokenizerSpec
    peers: dict[str, Contender]


def encode_models(setting: Setting) -> Iterator[Row]:
    """Encoding text in memory by BPE and Unigram, one thread; times and rows: to the first peer"""
    for name, paths in setting.groups.items():
        texts = first_bytes(read_texts(paths).combine_chunks(), MOST_BYTES)
        size = megabytes(texts)
        for kind, made in all_models(texts).items():
            contenders = {
                "wordpiece_core": own(made.spec, texts, warm=False),
                "wordpiece_core, warm": own(made.spec, texts, warm=True),
                **made.peers,
            }
            runs = {tool: contender.run for tool, contender in contenders.items()}
            with one_thread():
                seconds = in_turn(runs, setting.runs)
            reference = next(iter(made.peers))
            usual = statistics.median(seconds[reference])
            for tool, contender in contenders.items():
                pairs = zip(contender.found or [], made.peers[reference].found or [], strict=True)
                yield {
                    "text": name,
                    "MB": number(size),
                    "model": kind,
                    "tool": tool,
                    "MB/s": str(Spread.of([size / run for run in seconds[tool]])),
                    "times": number(usual / statistics.median(seconds[tool])),
                    "rows": f"{len(texts):,}",
                    "rows that differ": f"{sum(ids != expected for ids, expected in pairs):,}",
                }


def own(spec: TokenizerSpec, texts: pa.Array, *, warm: bool) -> Contender:
    """All texts in one call."""

    def prepare() -> Callable[[], EncodedBatch]:
        tokenizer = Tokenizer.of(spec)
        tokenizer.encode_batch(texts if warm else [""], options=OPTIONS)
        return lambda: tokenizer.encode_batch(texts, options=OPTIONS)

    return Contender(prepare, lambda encoded: encoded.table.column("input_ids").to_pylist())


def all_models(texts: pa.Array) -> dict[str, Model]:
    """One of each kind."""
    listed = texts.to_pylist()
    trained = first_bytes(texts, TRAINED_BYTES).to_pylist()
    return {
        "BPE of bytes, GPT-2's words": gpt2(trained, listed),
        f"BPE, {WORD_END}, BERT's words": bpe(trained, listed),
        **unigrams(trained, listed),
    }


def gpt2(trained: list[str], texts: list[str]) -> Model:
    other = gpt2_like(trained, BPE_SIZE)
    spec = bpe_spec(other, TextOptions(pre_tokenizer="gpt2"), BYTES, {})
    peers = {"tokenizers": of_tokenizers(other, texts)}
    if importlib.util.find_spec("gigatoken"):
        peers["gigatoken"] = of_gigatoken(other, texts)
    return Model(spec, peers)


def bpe(trained: list[str], texts: list[str]) -> Model:
    other = word_end_bpe(trained, BPE_SIZE, [UNK], lowercase=True)
    spec = bpe_spec(other, TextOptions(), WORD_END, {"unk_token": UNK})
    return Model(spec, {"tokenizers": of_tokenizers(other, texts)})


def bpe_spec(
    other: tokenizers.Tokenizer, text: TextOptions, boundary: str, roles: dict[str, str]
) -> TokenizerSpec:
    model = json.loads(other.to_str())["model"]
    ids = model["vocab"]
    merges = [(ids[left], ids[right]) for left, right in model["merges"]]
    return TokenizerSpec(
        vocab=sorted(ids, key=ids.__getitem__),
        text=text,
        model=Bpe(merges, word_boundary=boundary),
        roles=roles,
    )


def unigrams(trained: list[str], texts: list[str]) -> dict[str, Model]:
    """The same pieces as `tokenizers` uses them, behind BERT's text handling, and as sentencepiece
    does."""
    model = sentencepiece_model(
        trained, UNIGRAM_SIZE, normalization_rule_name="identity", unk_piece=UNK
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocab = [processor.id_to_piece(i) for i in range(len(processor))]
    scores = [processor.get_score(i) for i in range(len(processor))]
    unigram = models.Unigram(list(zip(vocab, scores, strict=True)), vocab.index(UNK), False)
    other = of_marked_words(unigram, lowercase=True)
    as_read = [as_tokenizers(repr(score)) for score in scores]
    plain = TokenizerSpec(vocab, model=Unigram(as_read), roles={"unk_token": UNK})
    of_sentencepiece = TokenizerSpec(
        vocab,
        model=Unigram(scores, of_sentencepiece=True),
        rules=Metaspace(),
        more_special_tokens=("<s>", "</s>"),
        roles={"unk_token": UNK},
    )
    by_processor = Contender(
        lambda: lambda: processor.encode(texts, num_threads=1), lambda rows: rows
    )
    return {
        "Unigram, BERT's words": Model(plain, {"tokenizers": of_tokenizers(other, texts)}),
        "Unigram of sentencepiece": Model(of_sentencepiece, {"sentencepiece": by_processor}),
    }


def of_tokenizers(other: tokenizers.Tokenizer, texts: list[str]) -> Contender:
    """Batches, as `datasets.map` would make them."""
    batches = [texts[start : start + BATCH_ROWS] for start in range(0, len(texts), BATCH_ROWS)]
    written = other.to_str()

    def prepare() -> Callable[[], list[Any]]:
        made = tokenizers.Tokenizer.from_str(written)
        return lambda: [made.encode_batch_fast(b, add_special_tokens=False) for b in batches]

    return Contender(prepare, lambda result: [row.ids for batch in result for row in batch])


def of_gigatoken(other: tokenizers.Tokenizer, texts: list[str]) -> Contender:
    """All texts in one call."""
    gigatoken = importlib.import_module("gigatoken")

    def prepare() -> Callable[[], Any]:
        made = gigatoken.Tokenizer(other)
        return lambda: made.encode_batch(texts, parallel=False)

    return Contender(prepare, lambda rows: rows.to_list())
