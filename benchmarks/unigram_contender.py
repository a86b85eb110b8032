"""Train a unigram language model on lines of text with this project or with sentencepiece, as a
script, with two threads. Neither normalizes the text; both split words at spaces and keep all
characters.

Arguments: "wordpiece" or "sentencepiece", the file to write with the pieces and the seconds from
text to pieces (without loading Python and modules), vocabulary size, text.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import sentencepiece

from wordpiece_core import TextOptions, _kernel, train

SPECIAL_TOKENS = ["[UNK]", "[CLS]", "[SEP]"]  # as many as sentencepiece has
BYTES_AT_ONCE = 1 << 24
THREADS = 2


def with_wordpiece(text: str, vocab_size: int) -> dict[str, float]:
    """Return the pieces and their scores, by this project."""
    as_it_is = TextOptions(
        lowercase=False,
        strip_accents=False,
        clean_text=False,
        handle_chinese_chars=False,
        pre_tokenizer="whitespace",
    )
    counter = _kernel.WordCounter(as_it_is.for_kernel())
    with open(text, encoding="utf-8") as file:
        while lines := file.readlines(BYTES_AT_ONCE):
            counter.count(pa.array(lines, pa.string()))
    tables = [words for *_, words in counter.take(partitions=1)]
    weights = [1 << _kernel.FRACTION_BITS] * len(tables)
    words = pa.record_batch(_kernel.weigh_sorted_words(tables, weights, min_count=1))
    made = train(
        pa.Table.from_batches([words]),
        model="unigram",
        vocab_size=vocab_size,
        special_tokens=SPECIAL_TOKENS,
    )
    assert made.pieces is not None
    columns = (made.pieces[name].to_pylist() for name in ("token", "score"))
    return dict(zip(*columns, strict=True))


def with_sentencepiece(text: str, vocab_size: int) -> dict[str, float]:
    """Return the pieces and their scores, by sentencepiece."""
    model = f"{text}.{vocab_size}"
    sentencepiece.SentencePieceTrainer.train(
        input=text,
        model_prefix=model,
        vocab_size=vocab_size,
        model_type="unigram",
        normalization_rule_name="identity",
        character_coverage=1.0,
        max_sentence_length=1 << 30,
        num_threads=THREADS,
        minloglevel=2,
    )
    made = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")
    pieces = range(len(SPECIAL_TOKENS), made.get_piece_size())
    return {made.id_to_piece(piece): made.get_score(piece) for piece in pieces}


if __name__ == "__main__":
    tool, output, size, text = sys.argv[1:]
    make = with_wordpiece if tool == "wordpiece" else with_sentencepiece
    if make is with_wordpiece:
        pa.array([""])  # imports pandas, where it is installed
    started = time.perf_counter()
    pieces = make(text, int(size))
    made = {"seconds": time.perf_counter() - started, "pieces": pieces}
    Path(output).write_text(json.dumps(made), encoding="utf-8")
