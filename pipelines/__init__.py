"""The jobs of wordpiece-beam as functions, and transforms for your own Beam pipelines.

>>> import pipelines
>>> table = pipelines.count("corpus/", output="words")
>>> trained = pipelines.train(word_counts="words", output="tokenizer", vocab_size=17)
>>> trained.tokenizer.tokenize("hug hugs")
['hug', 'hugs']
>>> encoded = pipelines.encode("corpus/", tokenizer="tokenizer", output="dataset")
>>> encoded.shards
['a.parquet']

A folder imports only from the folders below it in this list:

    functions.py, transforms.py     what this module exports
    commands    the command line: arguments, and what is printed
    encoding    texts to ids, shard by shard, or resharded: joined, packed, shuffled, split
    reporting   an HTML report about a tokenizer and how it tokenizes text
    training    a word table to a tokenizer, in exact rounds
    comparing   tokenizers measured on text, side by side
    counting    text to a word table
    options.py, threads.py, summary.py     options, threads and lines that jobs share
    token_counts.py                        the file of `encode --token-counts`
    beam.py     Beam: runners, plans, workarounds
    progress.py     metrics and progress
    io          inputs, one reader for each format, complete files, locks

The algorithms are in `wordpiece_core`, which does not import Beam. Its module `storage` opens all
files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.comparing.check import Checked as Checked
    from pipelines.counting.word_table import WordTable as WordTable
    from pipelines.encoding.result import Encoded as Encoded
    from pipelines.functions import JobWarning as JobWarning
    from pipelines.functions import check as check
    from pipelines.functions import compare as compare
    from pipelines.functions import count as count
    from pipelines.functions import encode as encode
    from pipelines.functions import extend as extend
    from pipelines.functions import prune as prune
    from pipelines.functions import report as report
    from pipelines.functions import train as train
    from pipelines.reporting.report import Report as Report
    from pipelines.training.extend import Extended as Extended
    from pipelines.training.prune import Pruned as Pruned
    from pipelines.training.train import Trained as Trained
    from pipelines.transforms import CountWords as CountWords
    from pipelines.transforms import EncodeTexts as EncodeTexts

    __version__: str

# Names are loaded when they are first used: `wordpiece --help` need not wait for Beam.
_MODULES = {
    "functions": (
        "JobWarning",
        "check",
        "compare",
        "count",
        "encode",
        "extend",
        "prune",
        "report",
        "train",
    ),
    "transforms": ("CountWords", "EncodeTexts"),
    "comparing.check": ("Checked",),
    "counting.word_table": ("WordTable",),
    "reporting.report": ("Report",),
    "training.extend": ("Extended",),
    "training.prune": ("Pruned",),
    "training.train": ("Trained",),
    "encoding.result": ("Encoded",),
}
__all__ = sorted(["__version__", *(name for names in _MODULES.values() for name in names)])


def __getattr__(name: str) -> object:
    if name == "__version__":
        import wordpiece_core

        return wordpiece_core.__version__
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(import_module(f"pipelines.{module}"), name)
            globals()[name] = value  # the next access does not call this function
            return value
    raise AttributeError(f"module 'pipelines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
