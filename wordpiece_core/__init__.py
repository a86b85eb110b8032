"""WordPiece, BPE and Unigram at corpus scale: training and encoding on Arrow arrays.

>>> import wordpiece_core as wp
>>> result = wp.train({"hug": 10, "pug": 5, "pun": 12}, vocab_size=14, min_pair_count=1)
>>> tok = wp.Tokenizer(result.vocab)
>>> tok.tokenize("hug pun")
['hug', 'pu', '##n']

`wordpiece_core.reference` is the same in plain Python: the specification.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordpiece_core import reference
    from wordpiece_core.errors import InputError, OptionError, OutputError, WordpieceError
    from wordpiece_core.options import (
        EncodingOptions,
        ExtensionOptions,
        TextOptions,
        TrainingOptions,
    )
    from wordpiece_core.tokenizer.library import EncodedByLibraryWarning
    from wordpiece_core.tokenizer.packing import Packer
    from wordpiece_core.tokenizer.reading import TakenAsCasedWarning
    from wordpiece_core.tokenizer.tokenizer import EncodedBatch, Tokenizer
    from wordpiece_core.training.extension import ExtensionResult, extend
    from wordpiece_core.training.pruning import PruningResult, prune
    from wordpiece_core.training.train import FewerTokensWarning, TrainingResult, train

    __version__: str

__all__ = [
    "EncodedBatch",
    "EncodedByLibraryWarning",
    "EncodingOptions",
    "ExtensionOptions",
    "ExtensionResult",
    "FewerTokensWarning",
    "InputError",
    "OptionError",
    "OutputError",
    "Packer",
    "PruningResult",
    "TakenAsCasedWarning",
    "TextOptions",
    "Tokenizer",
    "TrainingOptions",
    "TrainingResult",
    "WordpieceError",
    "__version__",
    "extend",
    "prune",
    "reference",
    "train",
]

# Names are loaded when they are first used: `wordpiece --help` need not wait for Arrow.
_MODULES = {
    "errors": ("InputError", "OptionError", "OutputError", "WordpieceError"),
    "options": ("EncodingOptions", "ExtensionOptions", "TextOptions", "TrainingOptions"),
    "tokenizer.library": ("EncodedByLibraryWarning",),
    "tokenizer.packing": ("Packer",),
    "tokenizer.tokenizer": ("EncodedBatch", "Tokenizer"),
    "tokenizer.reading": ("TakenAsCasedWarning",),
    "training.extension": ("ExtensionResult", "extend"),
    "training.pruning": ("PruningResult", "prune"),
    "training.train": ("FewerTokensWarning", "TrainingResult", "train"),
}


def __getattr__(name: str) -> object:
    if name == "reference":
        return import_module("wordpiece_core.reference")
    if name == "__version__":  # that of the installed distribution: pyproject.toml alone says it
        from importlib.metadata import version

        return version("wordpiece-beam")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"wordpiece_core.{module}"), name)
    raise AttributeError(f"module 'wordpiece_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
