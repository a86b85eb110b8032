"""Options of text handling and of training, checked where they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from wordpiece_core.errors import OptionError
from wordpiece_core.reference import SPECIAL_TOKENS

PRE_TOKENIZERS = ("bert", "whitespace")
CRITERIA = ("pmi", "likelihood", "frequency")
ALPHABET_ORDERS = ("sorted", "first_seen")
TRUNCATIONS = ("longest_first", "only_first", "only_second")
ID_TYPES = ("int32", "uint16")
ENCODING_COLUMNS = (
    *("attention_mask", "token_type_ids", "special_tokens_mask", "offset_mapping", "word_ids"),
    "num_tokens",
)
NO_LIMIT = 2**32 - 1


@dataclass(frozen=True)
class TextOptions:
    """How text becomes words: the switches of BertNormalizer, and the pre-tokenizer."""

    lowercase: bool = True
    strip_accents: bool | None = None
    """None: as `lowercase`."""
    clean_text: bool = True
    handle_chinese_chars: bool = True
    pre_tokenizer: str = "bert"

    def __post_init__(self) -> None:
        for name in ("lowercase", "clean_text", "handle_chinese_chars"):
            _check(isinstance(getattr(self, name), bool), name, getattr(self, name), "a bool")
        strip = self.strip_accents
        _check(strip is None or isinstance(strip, bool), "strip_accents", strip, "a bool or None")
        _check_choice("pre_tokenizer", self.pre_tokenizer, PRE_TOKENIZERS)

    def for_kernel(self) -> dict[str, Any]:
        """The keyword arguments that the kernel takes."""
        strip_accents = self.lowercase if self.strip_accents is None else self.strip_accents
        return asdict(self) | {"strip_accents": strip_accents}


@dataclass(frozen=True)
class EncodingOptions:
    """How texts, or pairs of texts, become rows of ids. Lengths are in tokens."""

    add_special_tokens: bool = True
    """[CLS] text [SEP], and [CLS] text [SEP] second text [SEP]."""
    split_special_tokens: bool = False
    """Take special tokens written in a text for plain text."""
    max_length: int | None = None
    """Of a row, added tokens included; what is over it is cut off."""
    truncation: str = "longest_first"
    """Which text of a pair is cut."""
    stride: int | None = None
    """What is cut off makes further rows, each beginning with so many tokens of the one before."""
    padding: bool = False
    """Fill rows up to `max_length` with [PAD]."""
    columns: tuple[str, ...] = ()
    """Beside `input_ids`: of `ENCODING_COLUMNS`."""
    id_type: str = "int32"

    def __post_init__(self) -> None:
        for name in ("add_special_tokens", "split_special_tokens", "padding"):
            _check(isinstance(getattr(self, name), bool), name, getattr(self, name), "a bool")
        _check_choice("truncation", self.truncation, TRUNCATIONS)
        _check_choice("id_type", self.id_type, ID_TYPES)
        for column in self.columns:
            _check_choice("columns", column, ENCODING_COLUMNS)
            _check(self.columns.count(column) == 1, "columns", column, "given once only")
        for name, least in (("max_length", 1), ("stride", 0)):
            value = getattr(self, name)
            valid = value is None or _is_int(value, least, 2**31)
            _check(valid, name, value, f"a whole number from {least}")
        if self.max_length is None and (self.padding or self.stride is not None):
            raise OptionError(f"{'padding' if self.padding else 'stride'}: give a max_length too")


@dataclass(frozen=True)
class TrainingOptions:
    """How a vocabulary is trained. Lengths are in characters."""

    vocab_size: int = 30_522
    criterion: str = "pmi"
    min_pair_count: int | str = "auto"
    min_word_count: int = 1
    limit_alphabet: int | None = None
    initial_alphabet: str = ""
    special_tokens: Sequence[str] | str = SPECIAL_TOKENS
    """A list, or "bert": the layout of the published BERT vocabularies."""
    max_token_length: int | None = None
    max_word_length: int = 100
    continuing_prefix: str = "##"
    alphabet_order: str = "sorted"

    def __post_init__(self) -> None:
        for name in ("vocab_size", "min_word_count", "max_word_length"):
            _check_positive(name, getattr(self, name))
        for name in ("limit_alphabet", "max_token_length"):
            if getattr(self, name) is not None:
                _check_positive(name, getattr(self, name))
        if self.min_pair_count != "auto":
            _check_positive("min_pair_count", self.min_pair_count, ' or "auto"')
        _check_choice("criterion", self.criterion, CRITERIA)
        _check_choice("alphabet_order", self.alphabet_order, ALPHABET_ORDERS)
        for name in ("initial_alphabet", "continuing_prefix"):
            _check(isinstance(getattr(self, name), str), name, getattr(self, name), "a string")
        object.__setattr__(self, "special_tokens", special_token_list(self.special_tokens))

    @classmethod
    def of(cls, **options: Any) -> TrainingOptions:
        """From keyword arguments; an unknown one is an OptionError."""
        known = {field.name for field in fields(cls)}
        for name in options:
            if name not in known:
                raise OptionError(f"unknown training option {name}; known: {', '.join(known)}")
        return cls(**options)

    def plain(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return asdict(self) | {"special_tokens": list(self.special_tokens)}


def special_token_list(special_tokens: Sequence[str] | str) -> tuple[str, ...]:
    """The special tokens in id order.

    "bert": [PAD] at 0, [UNK] [CLS] [SEP] [MASK] at 100 to 103, [unusedN] around them up to 998.
    """
    if special_tokens == "bert":
        unused = [f"[unused{n}]" for n in range(994)]
        return ("[PAD]", *unused[:99], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *unused[99:])
    _check(
        not isinstance(special_tokens, str), "special_tokens", special_tokens, 'a list or "bert"'
    )
    tokens = tuple(special_tokens)
    for token in tokens:
        _check(isinstance(token, str) and token.strip() != "", "special_tokens", token, "a token")
        _check(tokens.count(token) == 1, "special_tokens", token, "given once only")
    _check("[UNK]" in tokens, "special_tokens", list(tokens), "a list with [UNK]")
    return tokens


def _check(valid: bool, name: str, value: object, wanted: str) -> None:
    if not valid:
        raise OptionError(f"{name}: {value!r} is not {wanted}")


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    _check(value in choices, name, value, f"one of {', '.join(choices)}")


def _check_positive(name: str, value: object, more: str = "") -> None:
    _check(_is_int(value, 1, 2**63), name, value, f"a whole number from 1{more}")


def _is_int(value: object, least: int, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < end
