"""Calls as users write them, for mypy, which `make lint` runs: it accepts the right ones, and
reports each wrong one, or `warn_unused_ignores` reports that it does not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import pipelines
import wordpiece_core as wp
from wordpiece_core import Tokenizer


def right(tokenizer: Tokenizer) -> pa.Table:
    table = pipelines.count(["a.txt", Path("b.txt")], output="words", worker_memory=64 << 20)
    trained = pipelines.train(word_counts=table.path, output=Path("tokenizer"), vocab_size=1000)
    more = pipelines.extend("tokenizer", ["a.txt"], output="more", new_tokens=5, min_pair_count=2)
    fewer = pipelines.prune("tokenizer", word_counts="words", output="fewer", vocab_size=900)
    pipelines.encode("a.txt", tokenizer=tokenizer, output="ids", columns=["word_ids"], padding=True)
    pipelines.encode("in/", tokenizer="t", output="ids", splits={"train": 0.9, "test": 0.1})
    done = pipelines.encode("in/", tokenizer="t", output="ids", follow=True, until_idle=1.5)
    checked = pipelines.check("tokenizer", on=["a.txt", Path("b.txt")], sample=1 << 20)
    page = pipelines.report(tokenizer, on="a.txt", output="a.html", compare_with=[tokenizer, "t"])
    pipelines.EncodeTexts(tokenizer, max_length=128, columns=["word_ids"], batch_size=10)
    pipelines.CountWords("body", lowercase=False).with_exception_handling()
    wp.train({"a": 1}, vocab_size=10, model="bpe", word_boundary="bytes").save("t", lowercase=False)
    wp.extend(Tokenizer.load("t", max_word_length=50), {"a": 1}, new_tokens=1, into="unused")
    numbers: list[int] = [trained.rounds, more.saved_tokens, fewer.more_tokens, done.rows]
    texts: list[str] = [checked.encoder, page.output, *trained.vocab]
    return pipelines.compare([trained.tokenizer, tokenizer], on="a.txt", quiet=not numbers + texts)


def wrong() -> None:
    pipelines.count("a.txt", outptu="words")  # type: ignore[call-arg]
    pipelines.count("a.txt")  # type: ignore[call-arg]
    pipelines.count("a.txt", output="words", worker_memory="64MiB")  # type: ignore[arg-type]
    pipelines.train("a.txt", output="t", vocab_size="many")  # type: ignore[arg-type]
    pipelines.train("a.txt", output="t", normalizer=["nfx"])  # type: ignore[list-item]
    pipelines.extend("t", "a.txt", output="t", into="vocab")  # type: ignore[arg-type]
    pipelines.prune("t", "a.txt", output="t")  # type: ignore[call-arg]
    pipelines.encode("a.txt", tokenizer="t", output="o", columns=["ids"])  # type: ignore[list-item]
    pipelines.encode("a.txt", tokenizer="t", output="o", id_type="int8")  # type: ignore[arg-type]
    pipelines.encode("a.txt", "t", output="o")  # type: ignore[arg-type, call-arg]
    pipelines.encode("a.txt", output="o")  # type: ignore[call-arg]
    pipelines.check("t", on="a.txt", beam_args=["x"])  # type: ignore[call-arg]
    pipelines.compare("t", on="a.txt", vocab_sizes=["many"])  # type: ignore[list-item]
    pipelines.report("t", on="a.txt")  # type: ignore[call-arg]
    pipelines.EncodeTexts("t", max_len=128)  # type: ignore[call-arg]
    pipelines.CountWords(lowercase="no")  # type: ignore[arg-type]
    wp.train({}, vocab_sise=20)  # type: ignore[call-arg]
    wp.train({}, model="word")  # type: ignore[arg-type]
    wp.train({}).tokenizer(lower=True)  # type: ignore[call-arg]
    wp.extend(Tokenizer([]), {}, into="vocab")  # type: ignore[arg-type]
    Tokenizer([], lowercas=True)  # type: ignore[call-arg]
    Tokenizer.load("t", max_word_length="a")  # type: ignore[arg-type]
    vocab: int = pipelines.train("a.txt", output="t").vocab  # type: ignore[assignment]
    del vocab
