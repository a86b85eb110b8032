"""Options of text handling and of training, checked where they are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from reprlib import Repr
from typing import Any

from wordpiece_core.errors import OptionError
from wordpiece_core.reference import SPECIAL_TOKENS, WHITE_SPACE

PRE_TOKENIZERS = ("bert", "whitespace")
CRITERIA = ("pmi", "likelihood", "frequency")
ALPHABET_ORDERS = ("sorted", "first_seen")
TRUNCATIONS = ("longest_first", "only_first", "only_second")
ID_TYPES = ("int32", "uint16")
UNK_SCOPES = ("word", "character")
ENCODING_COLUMNS = (
    *("attention_mask", "token_type_ids", "special_tokens_mask", "offset_mapping", "word_ids"),
    "num_tokens",
)
NO_LIMIT = 2**32 - 1
MOST_PADDED = 2**24  # tokens, as the kernel has it
MOST_THREADS = 1024

# The most that a number may be; the least is 1.
MOST_COUNT = 2**63 - 1
MOST_TOKENS = 2**31 - 1  # ids are int32, and so are the lengths of rows
MOST_CHARACTERS = NO_LIMIT

# The least of memory, in bytes; less of it saves nothing (measured: docs/memory.md). With smaller
# tables the frequent words are handed on so often that they take more than the tables save.
LEAST_WORKER_MEMORY = 16 << 20
# Of the command's rounds: what their pipelines take beside it is several times as much.
LEAST_DRIVER_MEMORY = 64 << 20

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80

# Where programs that read text line by line end a line: Python's `readlines` at the first two,
# `str.splitlines` at all.
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_TRIMMED = "".join(WHITE_SPACE) + LINE_ENDS + "\x1f\ufeff"  # by one reader of vocab.txt or another


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
    """Of a row, added tokens included; what is over it is cut off. With `padding` or `stride`, and
    where documents are packed, `MOST_PADDED` at most: rows are as long then, or as many, whatever
    the texts, and memory for them cannot be had."""
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
        _check(isinstance(self.columns, tuple | list), "columns", self.columns, "a list of columns")
        for column in self.columns:
            _check_choice("columns", column, ENCODING_COLUMNS)
            _check(self.columns.count(column) == 1, "columns", column, "given once only")
        for name, least in (("max_length", 1), ("stride", 0)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), MOST_TOKENS, least=least)
        if self.max_length is None and (self.padding or self.stride is not None):
            raise OptionError(f"{'padding' if self.padding else 'stride'}: give a max_length too")
        if self.padding or self.stride is not None:
            wanted = f"{MOST_PADDED:,} or less, with {'padding' if self.padding else 'stride'}"
            _check((self.max_length or 0) <= MOST_PADDED, "max_length", self.max_length, wanted)


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
        check_whole("vocab_size", self.vocab_size, MOST_TOKENS)
        check_whole("min_word_count", self.min_word_count, MOST_COUNT)
        if self.min_pair_count != "auto":
            check_whole("min_pair_count", self.min_pair_count, MOST_COUNT, more=' or "auto"')
        for name in ("limit_alphabet", "max_token_length", "max_word_length"):
            if name == "max_word_length" or getattr(self, name) is not None:
                check_whole(name, getattr(self, name), MOST_CHARACTERS)
        _check_choice("criterion", self.criterion, CRITERIA)
        _check_choice("alphabet_order", self.alphabet_order, ALPHABET_ORDERS)
        self._check_tokens()

    def _check_tokens(self) -> None:
        """What is known of the vocabulary before anything is counted."""
        prefix, initial = self.continuing_prefix, self.initial_alphabet
        for name in ("initial_alphabet", "continuing_prefix"):
            _check(isinstance(getattr(self, name), str), name, getattr(self, name), "a string")
        check_token("continuing_prefix", prefix, more="x")
        for character in initial:
            check_token("initial_alphabet", character)
        special = special_token_list(self.special_tokens)
        object.__setattr__(self, "special_tokens", special)
        alphabet = {form for character in initial for form in (character, prefix + character)}
        least = len(alphabet.union(special))
        if least > self.vocab_size:
            and_initial = f" and the initial alphabet of {len(alphabet)}" if alphabet else ""
            raise OptionError(
                f"vocab_size: {self.vocab_size} is too small for {len(special)} special tokens"
                f"{and_initial}; make it {least} or more"
            )

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


def check_threads(threads: int) -> None:
    """Raises OptionError for a number of threads that cannot be had."""
    check_whole("threads", threads, MOST_THREADS)


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
    _check(
        isinstance(special_tokens, Iterable), "special_tokens", special_tokens, 'a list or "bert"'
    )
    tokens = tuple(special_tokens)
    for token in tokens:
        _check(isinstance(token, str) and token.strip() != "", "special_tokens", token, "a token")
        check_token("special_tokens", token)
    if len(set(tokens)) < len(tokens):
        twice = next(token for token in tokens if tokens.count(token) > 1)
        _check(False, "special_tokens", twice, "given once only")
    _check("[UNK]" in tokens, "special_tokens", list(tokens), "a list with [UNK]")
    return tokens


def shown(value: object) -> str:
    """A value in a message, shortened, however large and deep it is."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "a number of thousands of digits"


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can hold a text: lone surrogates, of names that are not UTF-8, it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_token(name: str, token: str, more: str = "") -> None:
    """OptionError if a line of a `vocab.txt` cannot hold a token, with `more` behind it, so that
    every program reads it as it was written: `tokenizers` and `transformers`, and those that trim
    lines, or end them at other characters than a line feed."""
    line = token + more
    reason = None
    if any(end in line for end in LINE_ENDS):
        reason = "a line end"
    elif line.strip(_TRIMMED) != line:
        reason = "white space, or a byte order mark, at an end"
    elif not is_utf8(line):
        reason = "half a surrogate pair, which UTF-8 cannot hold"
    elif "\0" in line:
        reason = "the character NUL"
    if reason is not None or not line:
        raise OptionError(
            f"{name}: {token!r} has {reason or 'no characters'}; a line of vocab.txt cannot hold it"
        )


def check_whole(name: str, value: object, most: int, *, least: int = 1, more: str = "") -> None:
    """OptionError unless a value is a whole number in its bounds."""
    valid = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    _check(valid, name, value, f"a whole number from {least} to {most:,}{more}")


def _check(valid: bool, name: str, value: object, wanted: str) -> None:
    if not valid:
        raise OptionError(f"{name}: {shown(value)} is not {wanted}")


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    _check(value in choices, name, value, f"one of {', '.join(choices)}")
