"""Files of ids as the datasets of OLMo-core read them. Its wheel needs torch, so it is optional."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_core as wp

from ..corpora import ONE_WORKER, done, english, write_shard
from ..id_files import read_npy

pytest.importorskip("olmo_core", reason="OLMo-core needs torch, 2 GB")
TEXTS = english(300)
LENGTH = 32


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, wp.Tokenizer]:
    """Return a file of ids, and its tokenizer."""
    folder = tmp_path_factory.mktemp("olmo")
    write_shard(folder / "in" / "a.jsonl", TEXTS)
    call = ["--config", "gpt2", "--vocab-size", "400", "--min-word-count", "1"]
    done("train", folder / "in", *call, "--output", folder / "tokenizer")
    args = ["--tokenizer", folder / "tokenizer", "--output", folder / "out", "--format", "npy"]
    done("encode", folder / "in", *args, "--append-eos", "--shuffle", "1", *ONE_WORKER)
    return folder / "out" / "train-00000-of-00001.npy", wp.Tokenizer.load(folder / "tokenizer")


def datasets_of(path: Path, tok: wp.Tokenizer, config: str, **more: Any) -> Any:
    from olmo_core.data import NumpyDatasetDType, numpy_dataset
    from olmo_core.data.tokenizer import TokenizerConfig

    eos = tok.role_id("eos_token")
    assert eos is not None
    found = getattr(numpy_dataset, config)(
        paths=[str(path)],
        sequence_length=LENGTH,
        tokenizer=TokenizerConfig(vocab_size=len(tok), eos_token_id=eos, pad_token_id=eos),
        dtype=NumpyDatasetDType.uint16,
        work_dir=str(path.parent.parent / "work"),
        generate_doc_lengths=True,
        **more,
    ).build()
    found.prepare()
    return found


def test_concatenated_documents_are_the_texts(dataset: tuple[Path, wp.Tokenizer]) -> None:
    path, tok = dataset
    instances = datasets_of(path, tok, "NumpyFSLDatasetConfig")
    rows = [instances[n]["input_ids"].tolist() for n in range(len(instances))]
    ids = np.fromfile(path, np.uint16)
    assert np.concatenate(rows).tolist() == ids[: len(ids) // LENGTH * LENGTH].tolist()
    assert len(instances) == len(ids) // LENGTH
    documents = read_npy(path)
    texts = [tok.decode(document, skip_special_tokens=True) for document in documents]
    assert sorted(texts) == sorted(TEXTS)


def test_documents_are_packed_by_the_bounds_in_the_file(
    dataset: tuple[Path, wp.Tokenizer],
) -> None:
    path, tok = dataset
    instances = datasets_of(path, tok, "NumpyPackedFSLDatasetConfig", use_array_if_local=False)
    found: list[tuple[int, ...]] = []
    for n in range(len(instances)):
        instance = instances[n]
        start = 0
        for length in filter(None, instance["doc_lens"].tolist()):
            found.append(tuple(instance["input_ids"][start : start + length].tolist()))
            start += length
    eos = tok.role_id("eos_token")
    wanted = [tuple(document[:LENGTH]) for document in read_npy(path)]
    without_padding = [document for document in found if {*document} != {eos}]
    assert sorted(without_padding) == sorted(wanted)
