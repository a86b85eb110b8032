"""Comparing tokenizers, as whole processes: `wordpiece compare`, `count`, and a loop of
`tokenizers` on all cores that only counts how often each token is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from benchmarks.measure import WORDPIECE, Row, in_turn, process_columns, run_process
from benchmarks.setting import Setting, megabytes, read_texts
from wordpiece_core import Tokenizer as OwnTokenizer

TRAIN_EVERY = 20  # texts, of which one is trained on
VOCAB_SIZE = 16_000
LOOP = """
import sys, pyarrow.parquet as pq
from collections import Counter
from tokenizers import Tokenizer
tokenizer, uses = Tokenizer.from_file(sys.argv[1]), Counter()
for path in sys.argv[2:]:
    for batch in pq.ParquetFile(path).iter_batches(5000, columns=["text"]):
        for row in tokenizer.encode_batch(batch["text"].to_pylist(), add_special_tokens=False):
            uses.update(row.ids)
print(sum(uses.values()))
"""


def compare_job(setting: Setting) -> Iterator[Row]:
    """Comparing tokenizers on Parquet, whole processes, beside counting and a plain loop"""
    paths = setting.groups[setting.main_group]
    texts = read_texts(paths)
    folder = setting.work / "compared"
    folder.mkdir()
    OwnTokenizer.load(setting.vocab, lowercase=True).save(folder / "wordpiece")
    bpe = folder / "bpe.json"
    gpt2_like(texts.to_pylist()[::TRAIN_EVERY], VOCAB_SIZE).save(str(bpe))
    files = list(map(str, paths))
    jobs = {"count": [WORDPIECE, "count", *files, "--output", str(folder / "words"), "--quiet"]}
    for path, file in ((folder / "wordpiece", folder / "wordpiece" / "tokenizer.json"), (bpe, bpe)):
        compare = [WORDPIECE, "compare", str(path), "--on", *files, "--json"]
        jobs[f"compare {path.name}"] = compare
        jobs[f"loop {path.name}"] = [sys.executable, "-c", LOOP, str(file), *files]
    contenders = {
        name: (lambda job=job: run_process(job, setting.cores, os.environ))
        for name, job in jobs.items()
    }
    for name, taken in in_turn(contenders, setting.runs).items():
        columns = process_columns(taken, megabytes(texts))
        yield {"text": setting.main_group, "job": name, **columns}


def gpt2_like(texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """BPE of bytes, of GPT-2's words."""
    peer = Tokenizer(models.BPE())
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    peer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False
    )
    peer.train_from_iterator(texts, trainer)
    return peer
