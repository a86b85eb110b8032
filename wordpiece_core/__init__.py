"""WordPiece, BPE and Unigram at corpus scale: training and encoding on Arrow arrays.

>>> import wordpiece_core as wp
>>> words = wp.count_words(["hug " * 10, "pug " * 5, "pun " * 12])
>>> tok = wp.train(words, vocab_size=14, min_pair_count=1).tokenizer()
>>> tok.tokenize("hug pun"), tok.encode("hug pun")
(['hug', 'pun'], [2, 12, 13, 3])

`wordpiece_core.reference` is a textbook of the algorithms in plain Python.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordpiece_core import reference as reference
    from wordpiece_core.counting import count_words as count_words
    from wordpiece_core.errors import InputError as InputError
    from wordpiece_core.errors import OptionError as OptionError
    from wordpiece_core.errors import OutputError as OutputError
    from wordpiece_core.errors import WordpieceError as WordpieceError
    from wordpiece_core.measures import Measures as Measures
    from wordpiece_core.measures import measure as measure
    from wordpiece_core.options import EncodingOptions as EncodingOptions
    from wordpiece_core.options import TextOptions as TextOptions
    from wordpiece_core.tokenizer.library import EncodedByLibraryWarning as EncodedByLibraryWarning
    from wordpiece_core.tokenizer.packing import Packer as Packer
    from wordpiece_core.tokenizer.reading import TakenAsCasedWarning as TakenAsCasedWarning
    from wordpiece_core.tokenizer.spec import TokenizerSpec as TokenizerSpec
    from wordpiece_core.tokenizer.tokenizer import EncodedTable as EncodedTable
    from wordpiece_core.tokenizer.tokenizer import Tokenizer as Tokenizer
    from wordpiece_core.training.extension import ExtensionResult as ExtensionResult
    from wordpiece_core.training.extension import extend as extend
    from wordpiece_core.training.pruning import PruningResult as PruningResult
    from wordpiece_core.training.pruning import prune as prune
    from wordpiece_core.training.train import FewerTokensWarning as FewerTokensWarning
    from wordpiece_core.training.train import TrainingResult as TrainingResult
    from wordpiece_core.training.train import train as train

    __version__: str

# Names are loaded when they are first used: `wordpiece --help` need not wait for Arrow.
_MODULES = {
    "counting": ("count_words",),
    "errors": ("InputError", "OptionError", "OutputError", "WordpieceError"),
    "measures": ("Measures", "measure"),
    "options": ("EncodingOptions", "TextOptions"),
    "tokenizer.spec": ("TokenizerSpec",),
    "tokenizer.library": ("EncodedByLibraryWarning",),
    "tokenizer.packing": ("Packer",),
    "tokenizer.tokenizer": ("EncodedTable", "Tokenizer"),
    "tokenizer.reading": ("TakenAsCasedWarning",),
    "training.extension": ("ExtensionResult", "extend"),
    "training.pruning": ("PruningResult", "prune"),
    "training.train": ("FewerTokensWarning", "TrainingResult", "train"),
}
__all__ = sorted(
    ["__version__", "reference", *(name for names in _MODULES.values() for name in names)]
)


def __getattr__(name: str) -> object:
    if name == "reference":
        return import_module("wordpiece_core.reference")
    if name == "__version__":  # from the installed distribution, because only pyproject.toml has it
        from importlib.metadata import version

        return version("wordpiece-beam")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"wordpiece_core.{module}"), name)
    raise AttributeError(f"module 'wordpiece_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
