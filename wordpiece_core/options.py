"""The options of text handling, training and encoding (see `wordpiece_core.declared`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from wordpiece_core.declared import (
    IDS,
    MAIN,
    RARE,
    TOKENIZER,
    Form,
    Ge,
    Le,
    Options,
    check_distinct,
    check_option,
    checked,
    declared,
    is_utf8,
    refusal,
)
from wordpiece_core.errors import InputError, OptionError, opt, shown
from wordpiece_core.option_types import (
    MOST_CHARACTERS,
    Characters,
    Count,
    Regex,
    Text,
    Tokens,
)
from wordpiece_core.symbols import (
    ALWAYS,
    BYTES,
    ROLES,
    SPACE_MARK,
    SPECIAL_TOKENS,
    WHITE_SPACE,
    WORD_END,
    byte_tokens,
)
from wordpiece_core.text_parts import (
    BERT,
    GPT2,
    LONGEST_SEGMENT,
    NORMALIZERS,
    WHITESPACE,
    Normalizer,
    check_pre_tokenizers,
    parse_pre_tokenizers,
    pre_tokenizer_parts,
    sequence,
    split,
)

WORDPIECE: Final = "wordpiece"
BPE: Final = "bpe"
UNIGRAM: Final = "unigram"
END_OF_TEXT, UNK = "<|endoftext|>", "[UNK]"
TOKEN_ROLES = ("unk_token", "bos_token", "eos_token", "pad_token", "mask_token")
BOUNDARIES = ("prepend_bos", "append_eos", "bos_token", "eos_token")
AS_TEXT = "text"
NO_LIMIT = 2**32 - 1
SEEDS = 1_000_000
MOST_PADDED = 2**24  # tokens, as the kernel has it
ALL = "all"  # in place of a number

Model = Literal["wordpiece", "bpe", "unigram"]
WordBoundary = Literal["</w>", "▁", "bytes"]
Criterion = Literal["pmi", "likelihood", "frequency"]
UnkScope = Literal["word", "character"]
SpecialTokensInText = Literal["parse", "text", "error"]
EncodingName = Literal[
    "r50k_base", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony", "llama3", "qwen"
]
"""Encodings of tiktoken (`tokenizer.formats.tiktoken_ranks`)."""
Truncation = Literal["longest_first", "only_first", "only_second"]
EncodingColumn = Literal[
    "attention_mask",
    "token_type_ids",
    "special_tokens_mask",
    "offset_mapping",
    "word_ids",
    "num_tokens",
]
PreTokenizer = Annotated[
    str | Sequence[str],
    Form("LIST|REGEX", "", parse_pre_tokenizers, check=check_pre_tokenizers),
]
ENCODING_COLUMNS: tuple[EncodingColumn, ...] = get_args(EncodingColumn)
PackedColumn = Literal["position_ids", "document_ids", "document_lengths"]
PACKED_COLUMNS: tuple[PackedColumn, ...] = get_args(PackedColumn)
ENCODING_NAMES: tuple[str, ...] = get_args(EncodingName)
TRUNCATIONS: tuple[Truncation, ...] = get_args(Truncation)
Threads = Annotated[int, Ge(1), Le(1024)]

# The characters at which programs end a line: Python's `readlines` at the first two,
# `str.splitlines` at all of them.
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_TRIMMED = "".join(WHITE_SPACE) + LINE_ENDS + "\x1f\ufeff"  # some readers of vocab.txt trim these


def special_token_list(special_tokens: Sequence[str] | str) -> tuple[str, ...]:
    """Return the special tokens in id order. Raises ValueError for tokens that a vocabulary cannot
    have.

    "bert": [PAD] at 0, [UNK] [CLS] [SEP] [MASK] at 100 to 103, [unusedN] around them up to 998.
    """
    if special_tokens == "bert":
        unused = [f"[unused{n}]" for n in range(994)]
        return ("[PAD]", *unused[:99], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *unused[99:])
    if isinstance(special_tokens, str):
        special_tokens = [special_tokens]
    if not isinstance(special_tokens, list | tuple):  # a set has no order
        raise refusal(special_tokens, 'a list or "bert"')
    tokens = tuple(special_tokens)
    for token in tokens:
        if not isinstance(token, str) or token.strip() == "":
            raise refusal(token, "a token")
        checked(str, token)
        check_line(token)
    return check_distinct(tokens)


def _parse_special_tokens(text: str) -> Sequence[str] | str:
    return text if text == "bert" else [t for item in text.split(",") if (t := item.strip())]


def check_line(token: str, more: str = "") -> None:
    """Raise ValueError if a line of a `vocab.txt` cannot hold a token followed by `more`. Every
    program must read the line as it was written: `tokenizers`, `transformers`, and programs that
    trim lines or end them at other characters than a line feed."""
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
        raise ValueError(
            f"{token!r} has {reason or 'no characters'}; a line of vocab.txt cannot hold it"
        )


SpecialTokens = Annotated[
    Literal["bert"] | Sequence[str],
    Form("LIST|bert", "", _parse_special_tokens, check=special_token_list),
]


@dataclass(frozen=True, kw_only=True)
class TextOptions(Options, section=TOKENIZER):
    """Options of normalization and pre-tokenization. The switches have the names that
    BertNormalizer of `tokenizers` gives them.

    Raises OptionError for a value that an option does not take, and for switches that do not fit
    the pre-tokenizer.

    >>> TextOptions(lowercase=False).to_dict()["clean_text"]
    True
    """

    lowercase: Annotated[bool | None, MAIN] = None
    """Lowercase the text (default: on with bert, whitespace)."""
    strip_accents: bool | None = None
    """Remove accents (default: as lowercase)."""
    clean_text: Annotated[bool | None, RARE] = None
    """Remove control characters (default: on with bert, whitespace)."""
    handle_chinese_chars: Annotated[bool | None, RARE] = None
    """Make each CJK character a word (default: as `clean_text`)."""
    pre_tokenizer: PreTokenizer | None = None
    """Pre-tokenizer: bert, whitespace, none, digits, gpt2, cl100k, o200k, llama3, qwen2, tekken,
    deepseek, a regular expression, or a list of them (default: bert)."""
    normalizer: Annotated[Sequence[Normalizer], Form("LIST")] = ()
    """Normalizers, applied first: nfc, nfd, nfkc, nfkd, lowercase, strip_accents (default: none).
    """

    def __post_init__(self) -> None:
        """The switches of BERT's normalizer are off for words that are not split as BERT's."""
        super().__post_init__()
        for name in (*_SWITCHES, "strip_accents"):
            if getattr(self, name) and not self.is_as_bert:
                hint = f"; set {opt.normalizer} {name}" if name in NORMALIZERS else ""
                raise OptionError(
                    f"{opt[name]}: not with {opt.pre_tokenizer} {self.pre_tokenizer}, which keeps"
                    f" the text unchanged{hint}"
                )
        if self.is_composed:
            self._check_parts()

    def _check_parts(self) -> None:
        """Raise OptionError for a regular expression that is not supported."""
        from wordpiece_core import _kernel

        try:
            _kernel.Composed(*self.composed, of_bytes=False)
        except InputError as error:
            raise OptionError(f"{opt.pre_tokenizer}: {error.template}") from error

    def _values(self) -> dict[str, Any]:
        """Return the options by name, with the defaults that depend on the pre-tokenizer."""
        values = {name: getattr(self, name) for name in TEXT_OPTIONS}
        unset = (name for name in _SWITCHES if values[name] is None)
        usual = {"pre_tokenizer": self.pre_tokenizer or BERT}
        return values | usual | dict.fromkeys(unset, self.is_as_bert)

    def resolve(self) -> TextOptions:
        """Return the text options with the defaults that depend on the pre-tokenizer."""
        values = self._values()
        is_resolved = type(self) is TextOptions and values == self.values()
        return self if is_resolved else TextOptions(**values)

    @property
    def is_as_bert(self) -> bool:
        """True if text is split at white space, as BERT does."""
        return bool({BERT, WHITESPACE}.intersection(self.pre_tokenizers))

    @property
    def pre_tokenizers(self) -> tuple[str, ...]:
        """The pre-tokenizers, even if there is only one."""
        names = self.pre_tokenizer or BERT
        return (names,) if isinstance(names, str) else tuple(names)

    @property
    def is_composed(self) -> bool:
        """True if text is split in another way than by BERT, white space or GPT-2."""
        is_usual = self.pre_tokenizer in (None, BERT, WHITESPACE, GPT2)
        return bool(self.normalizer) or not is_usual

    @property
    def holds_spaces(self) -> bool:
        """True if words include the white space of the text."""
        return not self.is_as_bert

    @property
    def composed(self) -> tuple[str | None, str | None]:
        """The normalizer and the pre-tokenizer as JSON."""
        normalizers, values = [NORMALIZERS[name] for name in self.normalizer], self._values()
        names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
        switches = {name: values[name] for name in names}
        if any(switches.values()):
            normalizers.append({"type": "BertNormalizer", **switches})
        parts = pre_tokenizer_parts(self.pre_tokenizers)
        return sequence(normalizers, "normalizers"), sequence(parts, "pretokenizers")

    def to_dict(self) -> dict[str, Any]:
        """Return the resolved options as values that JSON can hold."""
        return {name: _as_json(value) for name, value in self._values().items()}

    def resolved(self) -> dict[str, Any]:
        """Return the resolved options by name, including `strip_accents`."""
        values = self._values()
        if values["strip_accents"] is None:
            values["strip_accents"] = values["lowercase"]
        return values

    def for_kernel(self) -> dict[str, Any]:
        """Return the options as the kernel takes them. For counting, a text that is not split into
        words becomes segments of a bounded length."""
        options = self.resolved()
        del options["normalizer"]
        if self.is_composed:
            normalizer, pre_tokenizer = self.composed
            segments = json.dumps(split(rf"[\s\S]{{1,{LONGEST_SEGMENT}}}"))
            options["composed"] = (normalizer, pre_tokenizer or segments)
            options["pre_tokenizer"] = WHITESPACE
        return options


_SWITCHES = ("lowercase", "clean_text", "handle_chinese_chars")
TEXT_OPTIONS = (
    *("lowercase", "strip_accents", "clean_text", "handle_chinese_chars"),
    *("pre_tokenizer", "normalizer"),
)


@dataclass(frozen=True, kw_only=True)
class EncodingOptions(Options, section=IDS):
    """Options of encoding texts, or pairs of texts, into rows of ids. Lengths are in tokens.

    >>> from wordpiece_core import Tokenizer
    >>> tok = Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "hug"])
    >>> options = EncodingOptions(max_length=5, padding=True, columns=["attention_mask"])
    >>> tok.encode_table(["hug"], options=options).table.to_pylist()
    [{'input_ids': [2, 4, 3, 0, 0], 'attention_mask': [1, 1, 1, 0, 0]}]

    With `padding` or `stride`, and for packed documents, `max_length` must not exceed
    `MOST_PADDED`, because memory then depends on it and not on the texts. Raises OptionError for a
    value that an option does not take, and for options that contradict each other.
    """

    max_length: Annotated[Tokens | None, MAIN] = None
    """Maximum number of tokens per row; longer rows are truncated."""
    add_special_tokens: bool = True
    """Put [CLS] and [SEP] around texts."""
    append_eos: bool = False
    """End each text with the tokenizer's eos_token, or `eos_token`."""
    eos_token: Text | None = None
    """Token for `append_eos` (default: the tokenizer's)."""
    prepend_bos: bool = False
    """Begin each text with its bos_token, or `bos_token`."""
    bos_token: Text | None = None
    """Token for `prepend_bos` (default: the tokenizer's)."""
    special_tokens_in_text: SpecialTokensInText = "parse"
    """Special tokens written in a text: parse them, treat them as plain text (for untrusted text),
    or fail."""
    truncation: Truncation = "longest_first"
    """Text of a pair to truncate."""
    stride: Annotated[int, Ge(0), Le(2**31 - 1)] | None = None
    """Put truncated tokens into additional rows that overlap by this many tokens."""
    padding: bool = False
    """Pad rows to `max_length`."""
    columns: Annotated[Sequence[EncodingColumn | PackedColumn], Form("LIST")] = ()
    """Additional columns: attention_mask, token_type_ids, special_tokens_mask, offset_mapping,
    word_ids, num_tokens; of packed rows also position_ids, document_ids, document_lengths."""
    id_type: Literal["int32", "uint16", "uint32"] = "int32"
    """Type of input_ids; uint32 only with `format` npy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, wanted in (("bos_token", "prepend_bos"), ("eos_token", "append_eos")):
            if getattr(self, name) is not None and not getattr(self, wanted):
                raise OptionError(f"{opt[name]}: also set {opt[wanted]}")
        if self.padding or self.stride is not None:
            name, length = "padding" if self.padding else "stride", self.max_length
            if length is None:
                raise OptionError(f"{opt[name]}: also set {opt.max_length}")
            if length > MOST_PADDED:
                raise OptionError(
                    f"{opt.max_length}: {length} is not {MOST_PADDED:,} or less, with {opt[name]}"
                )

    @property
    def marks_boundaries(self) -> bool:
        """True if a token marks where each text begins or ends."""
        return self.append_eos or self.prepend_bos

    @property
    def of_documents(self) -> EncodingOptions:
        """Return the options for packed documents: no length, and no special tokens except the ones
        that mark their ends. Rows are filled later."""
        kept = ("special_tokens_in_text", "id_type", *BOUNDARIES)
        values = {name: getattr(self, name) for name in kept}
        return EncodingOptions(add_special_tokens=False, limits=self.limits, **values)


@dataclass(frozen=True, kw_only=True)
class SuperwordOptions(Options, section=TOKENIZER):
    """Options of training superwords: tokens of byte-level BPE that may cross spaces."""

    superwords: Annotated[int, Ge(0), Le(2**31 - 1)] = 0
    """Number of tokens that may cross spaces; for byte-level BPE."""
    max_superword_words: Annotated[int, Ge(2), Le(2**31 - 1)] = 4
    """Maximum number of words of a superword."""


@dataclass(frozen=True, kw_only=True)
class SegmentOptions(Options, section=TOKENIZER):
    """Options of splitting text into segments, on which superwords are trained."""

    superword_pattern: Regex | None = None
    """Regular expression of superwords (default: as `pre_tokenizer`)."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options, section=TOKENIZER):
    """Options of training a vocabulary. Lengths are in characters.

    Raises OptionError for a value that an option does not take, and for what can be known to be
    wrong before any word is counted:

    >>> TrainingOptions(criterion="best")
    Traceback (most recent call last):
    wordpiece_core.errors.OptionError: criterion: 'best' is not one of pmi, likelihood, frequency
    """

    vocab_size: Annotated[Tokens, MAIN] = 30_522
    """Size of the vocabulary, including special tokens and the alphabet."""
    model: Annotated[Model, MAIN] = "wordpiece"
    """Algorithm to train."""
    special_tokens: Annotated[SpecialTokens | None, MAIN] = None
    """Special tokens, comma-separated, from id 0; bert: the ids of the published BERT models
    (default: BERT's five)."""
    word_boundary: WordBoundary | None = None
    """Word-boundary marker of BPE: after words, before words, or GPT-2's byte alphabet (default:
    </w>; unigram: ▁)."""
    byte_fallback: bool = False
    """Add a token for each byte, so that no character is unknown."""
    criterion: Criterion | None = None
    """Score of pairs (default: pmi; bpe: frequency)."""
    min_pair_count: Count | Literal["auto"] = "auto"
    """Minimum pair count; auto starts high and decays."""
    min_word_count: Count = 1
    """Minimum count of a word; rarer words are left out."""
    limit_alphabet: Characters | None = None
    """Maximum number of characters in the alphabet."""
    unk_token: Text | None = None
    """Token that replaces unknown text (default: [UNK])."""
    bos_token: Text | None = None
    """Token that begins a text (default: <|endoftext|> with bytes)."""
    eos_token: Text | None = None
    """Token that ends a text (default: <|endoftext|> with bytes)."""
    pad_token: Text | None = None
    """Token that fills rows (default: [PAD])."""
    mask_token: Text | None = None
    """Token that replaces masked tokens (default: [MASK])."""
    model_max_length: Tokens | None = None
    """Maximum number of tokens of the model (default: none)."""
    max_token_length: Characters | None = None
    """Maximum token length in characters; in bytes for byte-level BPE (default: none; unigram: 16).
    """
    max_word_length: Characters = 100
    """Maximum word length in characters, for training."""
    seed_size: Annotated[Tokens, RARE] = SEEDS
    """Number of initial substrings of unigram."""
    initial_alphabet: Annotated[str, RARE] = ""
    """Characters that are always in the alphabet."""
    continuing_prefix: Annotated[str | None, RARE] = None
    """Prefix of tokens inside words (default: ##; bpe, unigram: none)."""
    alphabet_order: Annotated[Literal["sorted", "first_seen"], RARE] = "sorted"
    """Order of the alphabet's ids."""

    def __post_init__(self) -> None:
        """Also check that the vocabulary has room for its special tokens and alphabet."""
        super().__post_init__()
        self._resolve_model()
        self._resolve_special_tokens()
        if self.continuing_prefix or self.model == WORDPIECE:
            _check_line("continuing_prefix", self.prefix, more="x")
        for character in self.initial_alphabet:
            _check_line("initial_alphabet", character)
        special, alphabet = self.listed_tokens, {*self.byte_tokens, *self.wanted_symbols()}
        least = len(alphabet.union(special))
        if least > self.vocab_size:
            and_initial = f" and the initial alphabet of {len(alphabet)}" if alphabet else ""
            raise OptionError(
                f"{opt.vocab_size}: {self.vocab_size} is too small for {len(special)} special"
                f" tokens{and_initial}; make it {least} or more"
            )

    def _resolve_special_tokens(self) -> None:
        """Set the default special tokens, and forget a role that its token has anyway.

        Raises OptionError if a token with a role is not among them, or if there is none for unknown
        text.
        """
        of_bytes = self.word_boundary == BYTES
        if self.special_tokens is None:
            usual = (END_OF_TEXT,) if of_bytes else SPECIAL_TOKENS
            object.__setattr__(self, "special_tokens", usual)
            for name in ("bos_token", "eos_token") if of_bytes else ():
                if getattr(self, name) is None:
                    object.__setattr__(self, name, END_OF_TEXT)
        roles = self.roles
        for name, token in roles.items():
            if token not in self.listed_tokens:
                raise OptionError(f"{opt[name]}: {shown(token)} is not in {opt.special_tokens}")
            if ROLES.get(name) == token:
                object.__setattr__(self, name, None)
        if self.model == WORDPIECE and self.unk_token is not None:
            raise OptionError(
                f"{opt.unk_token}: WordPiece always uses {UNK}; remove {opt.unk_token}"
            )
        if not of_bytes and "unk_token" not in roles and UNK not in self.listed_tokens:
            or_role = "" if self.model == WORDPIECE else f", or set {opt.unk_token}"
            raise OptionError(
                f"{opt.special_tokens}: {list(self.listed_tokens)} has no {UNK}; add it{or_role}"
            )

    @property
    def listed_tokens(self) -> tuple[str, ...]:
        """The special tokens in id order."""
        return tuple(self.special_tokens or ())

    @property
    def prefix(self) -> str:
        """The continuing prefix, which can be empty."""
        return self.continuing_prefix or ""

    @property
    def roles(self) -> dict[str, str]:
        """The tokens that were given roles."""
        return {name: token for name in TOKEN_ROLES if (token := getattr(self, name)) is not None}

    def _resolve_model(self) -> None:
        """Set the defaults of the model. Raises OptionError for an option that it does not have."""
        for name, value in _OF_MODEL[self.model].items():
            found = getattr(self, name)
            if found is None:
                object.__setattr__(self, name, value)
            elif name in _FIXED[self.model] and found != value:
                raise OptionError(f"{opt[name]}: {found!r} is not for the model {self.model}")
        bytes_alone = self.word_boundary == BYTES
        for name, is_wrong, why in (
            ("seed_size", self.seed_size != SEEDS and self.model != UNIGRAM, "without unigram"),
            (
                "byte_fallback",
                self.byte_fallback and self.word_boundary != SPACE_MARK,
                f"without unigram, or bpe with {opt.word_boundary} {SPACE_MARK}",
            ),
            (
                "min_pair_count",
                self.min_pair_count != "auto" and self.model == UNIGRAM,
                "for the model unigram, which merges no pairs",
            ),
            (
                "alphabet_order",
                self.alphabet_order != "sorted" and self.model == UNIGRAM,
                "for the model unigram, whose ids go by score",
            ),
            ("limit_alphabet", bytes_alone and self.limit_alphabet is not None, _ALL_BYTES),
            ("initial_alphabet", bytes_alone and self.initial_alphabet != "", _ALL_BYTES),
        ):
            if is_wrong:
                raise OptionError(f"{opt[name]}: not {why}")

    @property
    def base_alphabet(self) -> Sequence[str]:
        """The characters that are in the alphabet with any words: for bytes, the characters that
        GPT-2 writes for them; the word boundary, where it is a symbol."""
        return ALWAYS.get(self.word_boundary or "", [])

    @property
    def byte_tokens(self) -> list[str]:
        """Byte tokens as SentencePiece writes them, if there are any."""
        return byte_tokens(self.byte_fallback)

    def symbol(self, character: str, marked: bool) -> str:
        """Return a symbol of the alphabet. `marked`: True if it carries the word boundary."""
        if self.word_boundary == WORD_END:
            return character + WORD_END * marked
        return self.prefix * marked + character

    def wanted_symbols(self) -> set[str]:
        """Return the symbols that are in the alphabet with any words."""
        forms = {self.symbol(c, marked) for c in self.initial_alphabet for marked in (False, True)}
        return forms.union(self.base_alphabet)

    def word_marks(self, text: TextOptions) -> str | None:
        """Return how the kernel marks the words of this training: None as WordPiece does, a word
        boundary, or GPT2 for words that are bytes with no space put before them.

        Raises OptionError if words that `text` splits are not for this training.
        """
        if self.word_boundary == BYTES and (text.is_composed or text.pre_tokenizer == GPT2):
            return GPT2
        if text.holds_spaces:
            raise OptionError(
                f"{opt.pre_tokenizer}: words of {text.pre_tokenizer} hold spaces, and work only"
                f" with {opt.model} bpe and {opt.word_boundary} {BYTES}; or put bert or whitespace"
                " first"
            )
        if text.is_composed and self.word_boundary == SPACE_MARK:
            raise OptionError(
                f"{opt.pre_tokenizer}, {opt.normalizer}: with {opt.word_boundary} {SPACE_MARK},"
                " only bert and whitespace are supported"
            )
        return self.word_boundary if self.model == BPE else None

    def to_dict(self) -> dict[str, Any]:
        """Return the options that the model has, as values that JSON can hold."""
        unused = {WORDPIECE: OF_OTHER_MODELS, BPE: ("seed_size",)}.get(self.model, ())
        return {name: value for name, value in super().to_dict().items() if name not in unused}


_ALL_BYTES = f"with {opt.word_boundary} {BYTES}: its alphabet is all bytes"
OF_OTHER_MODELS = ("word_boundary", "byte_fallback", "seed_size")
_OF_MODEL: dict[str, dict[str, Any]] = {  # what options are if they are not given
    WORDPIECE: {"criterion": "pmi", "continuing_prefix": "##", "word_boundary": None},
    BPE: {"criterion": "frequency", "continuing_prefix": "", "word_boundary": WORD_END},
    UNIGRAM: {
        **{"criterion": None, "continuing_prefix": "", "word_boundary": SPACE_MARK},
        "max_token_length": 16,
    },
}
_FIXED = {  # and cannot be anything else
    WORDPIECE: ("word_boundary",),
    BPE: ("criterion", "continuing_prefix"),
    UNIGRAM: ("criterion", "continuing_prefix", "word_boundary"),
}


@dataclass(frozen=True, kw_only=True)
class ExtensionOptions(Options, section=TOKENIZER):
    """Options of extending a vocabulary. `new_tokens` or `vocab_size` sets the number of new
    tokens; with `into="unused"` neither is required, and all free slots are filled.

    Raises OptionError for a value that an option does not take, and for options that contradict
    each other:

    >>> ExtensionOptions(into="unused", vocab_size=31_000)
    Traceback (most recent call last):
    wordpiece_core.errors.OptionError: vocab_size: not with `into` unused; set `new_tokens`
    """

    new_tokens: Annotated[Tokens | None, MAIN] = None
    """Number of tokens to add (default: all [unusedN] with `into` unused)."""
    vocab_size: Annotated[Tokens | None, MAIN] = None
    """Final size of the vocabulary, instead of the number to add."""
    into: Annotated[Literal["append", "unused"], MAIN] = "append"
    """Put new tokens at the end, or in place of [unusedN] tokens."""
    criterion: Criterion | None = None
    """Score of pairs (default: pmi; bpe: frequency)."""
    min_pair_count: Count | Literal["auto"] = "auto"
    """Minimum pair count; auto starts high and decays."""
    min_word_count: Count = 1
    """Minimum count of a word; rarer words are left out."""
    new_characters: Annotated[int, Ge(0), Le(MOST_CHARACTERS)] | Literal["all"] = 0
    """Maximum number of missing characters to add, the most frequent first."""
    max_token_length: Characters | None = None
    """Maximum token length in characters; in bytes for byte-level BPE (default: none; unigram: 16).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.criterion is None:
            object.__setattr__(self, "criterion", "pmi")
        if self.into == "unused" and self.vocab_size is not None:
            raise OptionError(f"{opt.vocab_size}: not with {opt.into} unused; set {opt.new_tokens}")
        if self.new_tokens is not None and self.vocab_size is not None:
            raise OptionError(f"set either {opt.new_tokens} or {opt.vocab_size}")

    def check_size(self) -> None:
        """Raise OptionError unless a number of tokens is given."""
        if self.into == "append" and self.new_tokens is None and self.vocab_size is None:
            raise OptionError(f"set {opt.new_tokens} or {opt.vocab_size}")


def _check_line(name: str, token: str, more: str = "") -> None:
    try:
        check_line(token, more)
    except ValueError as error:
        raise OptionError(f"{opt[name]}: {error}") from error


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def defaults(kind: type[Options]) -> dict[str, Any]:
    """Return the defaults of options as values that JSON can hold."""
    return {o.name: _as_json(o.default) for o in declared(kind) if not o.is_required}


def changed(kind: type[Options], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of options that differ from their defaults.

    So a dataset or a tokenizer that was made before an option existed is still the same one.
    """
    usual = defaults(kind)
    return {k: value for k, value in values.items() if k not in usual or value != usual[k]}


def check_threads(threads: int) -> None:
    """Raise OptionError for a wrong number of threads."""
    check_option("threads", Threads, threads)
