"""WordPiece at corpus scale: training and encoding on Arrow arrays.

>>> import wordpiece_core as wp
>>> result = wp.train({"hug": 10, "pug": 5, "pun": 12}, vocab_size=20, min_pair_count=1)
>>> tok = wp.Tokenizer(result.vocab)

`wordpiece_core.reference` is the same in plain Python: the specification.
"""

from wordpiece_core import reference
from wordpiece_core.errors import InputError, OptionError, OutputError, WordpieceError
from wordpiece_core.options import TextOptions, TrainingOptions
from wordpiece_core.tokenizer import Tokenizer
from wordpiece_core.training import FewerTokensWarning, TrainingResult, train

__all__ = [
    "FewerTokensWarning",
    "InputError",
    "OptionError",
    "OutputError",
    "TextOptions",
    "Tokenizer",
    "TrainingOptions",
    "TrainingResult",
    "WordpieceError",
    "reference",
    "train",
]
