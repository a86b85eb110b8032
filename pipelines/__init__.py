"""The jobs of wordpiece-beam as functions, and transforms for Beam pipelines of one's own.

>>> import pipelines
>>> table = pipelines.count(["corpus/"], output="words")                          # doctest: +SKIP
>>> trained = pipelines.train(word_counts="words", output="tokenizer")            # doctest: +SKIP
>>> done = pipelines.encode(["corpus/"], tokenizer="tokenizer", output="dataset") # doctest: +SKIP

A folder is a room, and a room imports from those behind it only:

    functions.py, transforms.py     what this module gives
    commands    the command line: what is asked, what is said
    encoding    texts to ids, shard by shard
    training    a word table to a tokenizer, in exact rounds
    counting    text to a word table
    running     Beam's runner, progress, threads
    files       where data is, how it is read, and how it is written whole or not at all

The algorithms are in `wordpiece_core`, which knows neither Beam nor files but a tokenizer's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.counting.word_table import WordTable
    from pipelines.encoding.encode import Encoded
    from pipelines.functions import JobWarning, count, encode, train
    from pipelines.training.train import Trained
    from pipelines.transforms import CountWords, EncodeTexts

__all__ = [
    "CountWords",
    "EncodeTexts",
    "Encoded",
    "JobWarning",
    "Trained",
    "WordTable",
    "count",
    "encode",
    "train",
]

# Names are loaded when they are first used: `wordpiece --help` need not wait for Beam.
_MODULES = {
    "functions": ("JobWarning", "count", "encode", "train"),
    "transforms": ("CountWords", "EncodeTexts"),
    "counting.word_table": ("WordTable",),
    "training.train": ("Trained",),
    "encoding.encode": ("Encoded",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            from pipelines.running.load_beam import load_beam

            load_beam()
            return getattr(import_module(f"pipelines.{module}"), name)
    raise AttributeError(f"module 'pipelines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
