"""`sample_alpha` and `bpe_dropout` of `encode`: the ids of a row are the same by every way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to

import pipelines
import wordpiece_core as wp
from wordpiece_core.options import EncodingOptions
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.models import Bpe, Unigram

from ..corpora import column, manifest, multilingual, write_shard, write_shards

TEXTS = multilingual(90)
LETTERS = sorted(set("".join(TEXTS).lower()) - {" "})
PAIRS = [a + b for a in "aeiourstn" for b in "aeiourstn"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
UNIGRAM_VOCAB = [*SPECIAL, "▁", *LETTERS, *PAIRS, *(f"▁{pair}" for pair in PAIRS)]
BPE_VOCAB = [*SPECIAL, *LETTERS, *(f"{letter}</w>" for letter in LETTERS), *PAIRS]
TOKENIZERS: dict[str, tuple[wp.Tokenizer, dict[str, Any]]] = {
    "unigram": (
        wp.Tokenizer.of(
            TokenizerSpec(
                UNIGRAM_VOCAB, model=Unigram([-2.0 - len(token) / 3 for token in UNIGRAM_VOCAB])
            )
        ),
        {"sample_alpha": 0.2, "sample_seed": 7},
    ),
    "bpe": (
        wp.Tokenizer.of(
            TokenizerSpec(
                BPE_VOCAB,
                model=Bpe([(BPE_VOCAB.index(a), BPE_VOCAB.index(b)) for a, b in PAIRS]),
            )
        ),
        {"bpe_dropout": 0.3, "sample_seed": 7},
    ),
}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_ids_depend_on_no_files_threads_or_runs(tmp_path: Path, kind: str) -> None:
    tokenizer, sampling = TOKENIZERS[kind]
    options = EncodingOptions(**sampling)
    wanted = tokenizer.encode_batch(TEXTS, options=options).table["input_ids"].to_pylist()
    assert wanted != tokenizer.encode(TEXTS).to_pylist()

    one = write_shard(tmp_path / "one" / "shard.parquet", TEXTS)
    three = write_shards(tmp_path / "three", TEXTS, 3, ".parquet")
    for source, workers in ((one, 1), (one, 2), (three, 2)):
        output = tmp_path / f"out-{Path(source).name}-{workers}"
        beam_args = [f"--direct_num_workers={workers}"]
        pipelines.encode(
            source, tokenizer=tokenizer, output=output, beam_args=beam_args, **sampling
        )
        found = zip(column(output, "text"), column(output, "input_ids"), strict=True)
        assert dict(found) == dict(zip(TEXTS, wanted, strict=True))

    with beam.Pipeline() as pipeline:
        rows = pipeline | beam.Create([{"text": text} for text in TEXTS])
        encoded = (
            rows | pipelines.EncodeTexts(tokenizer, **sampling) | beam.Map(lambda r: r["input_ids"])
        )
        assert_that(encoded, equal_to(wanted))


def test_the_options_are_part_of_what_a_dataset_is(tmp_path: Path) -> None:
    tokenizer, sampling = TOKENIZERS["unigram"]
    shard = write_shard(tmp_path / "shard.parquet", TEXTS)
    pipelines.encode(shard, tokenizer=tokenizer, output=tmp_path / "out", **sampling)
    assert manifest(tmp_path / "out")["options"] | sampling == manifest(tmp_path / "out")["options"]
    first = column(tmp_path / "out", "input_ids")
    with pytest.raises(wp.OptionError):
        pipelines.encode(
            shard, tokenizer=tokenizer, output=tmp_path / "out", **sampling | {"sample_seed": 8}
        )
    assert column(tmp_path / "out", "input_ids") == first
    pipelines.encode(shard, tokenizer=tokenizer, output=tmp_path / "plain")
    assert not set(sampling) & set(manifest(tmp_path / "plain")["options"])


def test_packed_documents_are_drawn_like_rows(tmp_path: Path) -> None:
    tokenizer, sampling = TOKENIZERS["unigram"]
    shard = write_shard(tmp_path / "shard.parquet", TEXTS)
    out = tmp_path / "out"
    pipelines.encode(shard, tokenizer=tokenizer, output=out, pack=True, max_length=64, **sampling)
    options = EncodingOptions(add_special_tokens=False, **sampling)
    documents = tokenizer.encode_batch(TEXTS, options=options).table["input_ids"].to_pylist()
    special = {tokenizer.ids[token] for token in ("[PAD]", "[CLS]", "[SEP]")}
    found = [
        i
        for path in sorted(out.rglob("*.parquet"))
        for row in pq.read_table(path)["input_ids"].to_pylist()
        for i in row
    ]
    wanted = [i for document in documents for i in document if i not in special]
    kept = [i for i in found if i not in special]
    assert kept == wanted[: len(kept)]
    assert len(kept) > 0.9 * len(wanted)
