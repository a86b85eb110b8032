"""The options of text handling, training and encoding. Each is declared once, with its type,
default, bounds and help (`wordpiece_core.declaration`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordpiece_core.declaration import (
    IDS,
    MAIN,
    TOKENIZER,
    Declared,
    checked,
    option,
    same_option,
)
from wordpiece_core.errors import InputError, OptionError, shown
from wordpiece_core.option_kinds import (
    Choice,
    Flag,
    Names,
    Text,
    Whole,
    is_utf8,
    refusal,
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
    PRE_TOKENIZERS,
    WHITESPACE,
    PreTokenizers,
    pre_tokenizer_parts,
    sequence,
    split,
)

MODELS = WORDPIECE, BPE, UNIGRAM = ("wordpiece", "bpe", "unigram")
WORD_BOUNDARIES = (WORD_END, SPACE_MARK, BYTES)
CRITERIA = ("pmi", "likelihood", "frequency")
ALPHABET_ORDERS = ("sorted", "first_seen")
TRUNCATIONS = ("longest_first", "only_first", "only_second")
ENCODING_NAMES = (
    *("r50k_base", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony"),
    *("llama3", "qwen"),
)
"""Those of ranks that are read (`tokenizer.formats.tiktoken_ranks`)."""
ID_TYPES = ("int32", "uint16")
WITH_BERT = " with bert, whitespace"
END_OF_TEXT, UNK = "<|endoftext|>", "[UNK]"
TOKEN_ROLES = ("unk_token", "bos_token", "eos_token", "pad_token", "mask_token")
BOUNDARIES = ("prepend_bos", "append_eos", "bos_token", "eos_token")
PLACES_OF_TOKENS = ("append", "unused")
PARSE, AS_TEXT, ERROR = SPECIAL_TOKENS_IN_TEXT = ("parse", "text", "error")
UNK_SCOPES = ("word", "character")
ENCODING_COLUMNS = (
    *("attention_mask", "token_type_ids", "special_tokens_mask", "offset_mapping", "word_ids"),
    "num_tokens",
)
NO_LIMIT = 2**32 - 1
SEEDS = 1_000_000
MOST_PADDED = 2**24  # tokens, as the kernel has it
MOST_THREADS = 1024

# The largest values of numbers; the smallest is 1.
MOST_COUNT = 2**63 - 1
ALL = "all"  # in place of a number
MOST_TOKENS = 2**31 - 1  # ids are int32, and so are the lengths of rows
MOST_CHARACTERS = NO_LIMIT

# The smallest memory, in bytes. Less saves nothing (measured: benchmarks/memory.md): with smaller
# tables, frequent words are passed on so often that they need more memory than the tables save.
LEAST_WORKER_MEMORY = 16 << 20
# For the rounds of the command. Their pipelines need several times as much beside it.
LEAST_DRIVER_MEMORY = 64 << 20

# The characters at which programs end a line: Python's `readlines` at the first two,
# `str.splitlines` at all of them.
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_TRIMMED = "".join(WHITE_SPACE) + LINE_ENDS + "\x1f\ufeff"  # some readers of vocab.txt trim these


class SpecialTokens(Names):
    """Comma-separated tokens, or "bert"."""

    def check(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) and value != "bert":
            value = super().check(value)
        return special_token_list(value)


@dataclass(frozen=True)
class TextOptions(Declared):
    """How text becomes words: the switches of `tokenizers`' BertNormalizer, and the pre-tokenizer.

    Raises OptionError for a value that an option does not take, and for an unknown name:

    >>> TextOptions.of(lowercas=False)
    Traceback (most recent call last):
    wordpiece_core.errors.UnknownOptionError: unknown option lowercas; did you mean lowercase?
    """

    SECTION = TOKENIZER

    lowercase: bool = option(
        None, Flag(), "Lowercase the text.", shown_default=f"on{WITH_BERT}", section=MAIN
    )
    strip_accents: bool | None = option(
        None, Flag(), "Remove accents.", shown_default="as lowercase"
    )
    clean_text: bool = option(
        None,
        Flag(),
        "Remove control characters.",
        shown_default=f"on{WITH_BERT}",
        in_config=True,
    )
    handle_chinese_chars: bool = option(
        None,
        Flag(),
        "Make each CJK character a word.",
        shown_default=f"on{WITH_BERT}",
        in_config=True,
    )
    pre_tokenizer: str | Sequence[str] = option(
        BERT,
        PreTokenizers(),
        f"Pre-tokenizer: {', '.join(PRE_TOKENIZERS)}, a regular expression, or a list of them.",
    )
    normalizer: Sequence[str] = option(
        (),
        Names("normalizers", tuple(NORMALIZERS)),
        f"Normalizers, applied first: {', '.join(NORMALIZERS)}.",
        shown_default="none",
    )

    def __post_init__(self) -> None:
        """The switches of BERT's normalizer are off for words that are not split as BERT's."""
        super().__post_init__()
        is_as_bert = bool({BERT, WHITESPACE}.intersection(self.pre_tokenizers))
        for name in ("lowercase", "clean_text", "handle_chinese_chars", "strip_accents"):
            if getattr(self, name) and not is_as_bert:
                hint = f"; set `normalizer` {name}" if name in NORMALIZERS else ""
                raise OptionError(
                    f"{name}: not with `pre_tokenizer` {self.pre_tokenizer}, which"
                    f" takes text as it is{hint}"
                )
            if getattr(self, name) is None and name != "strip_accents":
                object.__setattr__(self, name, is_as_bert)
        if self.is_composed:
            self._check_parts()

    def _check_parts(self) -> None:
        """OptionError for a regular expression that is not known here."""
        from wordpiece_core import _kernel

        try:
            _kernel.Composed(*self.composed, of_bytes=False)
        except InputError as error:
            raise OptionError(f"pre_tokenizer: {error}") from error

    @property
    def pre_tokenizers(self) -> tuple[str, ...]:
        """The pre-tokenizers, also if there is one alone."""
        names = self.pre_tokenizer
        return (names,) if isinstance(names, str) else tuple(names)

    @property
    def is_composed(self) -> bool:
        """Whether more is asked for than BERT's words, those between white space or GPT-2's."""
        return bool(self.normalizer) or self.pre_tokenizer not in (BERT, WHITESPACE, GPT2)

    @property
    def holds_spaces(self) -> bool:
        """Whether words hold the white space of the text."""
        return not {BERT, WHITESPACE}.intersection(self.pre_tokenizers)

    @property
    def composed(self) -> tuple[str | None, str | None]:
        """The normalizer and the pre-tokenizer, as JSON."""
        normalizers = [NORMALIZERS[name] for name in self.normalizer]
        names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
        switches = {name: getattr(self, name) for name in names}
        if any(switches.values()):
            normalizers.append({"type": "BertNormalizer", **switches})
        parts = pre_tokenizer_parts(self.pre_tokenizers)
        return sequence(normalizers, "normalizers"), sequence(parts, "pretokenizers")

    def plain(self) -> dict[str, Any]:
        """The options as values that JSON can hold."""
        return {name: _listed(value) for name, value in asdict(self).items()}

    def resolved(self) -> dict[str, Any]:
        """The options, with what those that are not given depend on."""
        strip_accents = self.lowercase if self.strip_accents is None else self.strip_accents
        return asdict(self) | {"strip_accents": strip_accents}

    def for_kernel(self) -> dict[str, Any]:
        """The options as the kernel takes them. For counting, a text that is not split into words
        becomes segments of a bounded length."""
        options = self.resolved()
        del options["normalizer"]
        if self.is_composed:
            normalizer, pre_tokenizer = self.composed
            segments = json.dumps(split(rf"[\s\S]{{1,{LONGEST_SEGMENT}}}"))
            options["composed"] = (normalizer, pre_tokenizer or segments)
            options["pre_tokenizer"] = WHITESPACE
        return options


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class EncodingOptions(Declared):
    """How texts, or pairs of texts, become rows of ids. Lengths are in tokens.

    >>> from wordpiece_core import Tokenizer
    >>> tok = Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "hug"])
    >>> options = EncodingOptions(max_length=5, padding=True, columns=["attention_mask"])
    >>> tok.encode_batch(["hug"], options=options).table.to_pylist()
    [{'input_ids': [2, 4, 3, 0, 0], 'attention_mask': [1, 1, 1, 0, 0]}]

    With `padding` or `stride`, and where documents are packed, `max_length` must not be more than
    `MOST_PADDED`: the size of the rows then depends on it, and not on the texts. Raises OptionError
    for a value that an option does not take, and for options that contradict each other.
    """

    SECTION = IDS

    add_special_tokens: bool = option(
        True, Flag(), "Put [CLS] and [SEP] around texts.", off="--no-special-tokens"
    )
    append_eos: bool = option(
        False, Flag(), "End each text with the tokenizer's eos_token, or `eos_token`."
    )
    eos_token: str | None = option(
        None, Text("TOKEN"), "Token for `append_eos`.", shown_default="the tokenizer's"
    )
    prepend_bos: bool = option(False, Flag(), "Begin each text with its bos_token, or `bos_token`.")
    bos_token: str | None = option(
        None, Text("TOKEN"), "Token for `prepend_bos`.", shown_default="the tokenizer's"
    )
    special_tokens_in_text: str = option(
        PARSE,
        Choice(SPECIAL_TOKENS_IN_TEXT),
        "Special tokens written in a text: parse them, treat them as plain text (for untrusted"
        " text), or fail.",
    )
    max_length: int | None = option(
        None,
        Whole(MOST_TOKENS),
        "Maximum number of tokens per row; longer rows are truncated.",
        section=MAIN,
    )
    truncation: str = option("longest_first", Choice(TRUNCATIONS), "Text of a pair to truncate.")
    stride: int | None = option(
        None,
        Whole(MOST_TOKENS, least=0),
        "Put truncated tokens into additional rows that overlap by this many tokens.",
    )
    padding: bool = option(False, Flag(), "Pad rows to `max_length`.")
    columns: tuple[str, ...] = option(
        (),
        Names("columns", ENCODING_COLUMNS),
        f"Additional columns: {', '.join(ENCODING_COLUMNS)}.",
    )
    id_type: str = option("int32", Choice(ID_TYPES), "Type of input_ids.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, wanted in (("bos_token", "prepend_bos"), ("eos_token", "append_eos")):
            if getattr(self, name) is not None and not getattr(self, wanted):
                raise OptionError(f"{name}: also set `{wanted}`")
        if self.max_length is None and (self.padding or self.stride is not None):
            raise OptionError(f"{'padding' if self.padding else 'stride'}: also set `max_length`")
        if self.padding or self.stride is not None:
            wanted = f"{MOST_PADDED:,} or less, with {'padding' if self.padding else 'stride'}"
            _check((self.max_length or 0) <= MOST_PADDED, "max_length", self.max_length, wanted)

    @property
    def marks_boundaries(self) -> bool:
        """Whether texts have a token of their own at their beginning or end."""
        return self.append_eos or self.prepend_bos

    @property
    def of_documents(self) -> EncodingOptions:
        """Return the options for packed documents: no length, and no special tokens except the ones
        that mark their ends. Rows are filled later."""
        kept = ("special_tokens_in_text", "id_type", *BOUNDARIES)
        return EncodingOptions(
            add_special_tokens=False, **{name: getattr(self, name) for name in kept}
        )


def _role(of: str, usual: str) -> Any:
    return option(None, Text("TOKEN"), f"Token that {of}.", shown_default=usual)


@dataclass(frozen=True)
class TrainingOptions(Declared):
    """How a vocabulary is trained. Lengths are in characters.

    Raises OptionError for a value that an option does not take, and for what can be known to be
    wrong before any word is counted:

    >>> TrainingOptions(criterion="best")
    Traceback (most recent call last):
    wordpiece_core.errors.OptionError: criterion: 'best' is not one of pmi, likelihood, frequency
    """

    SECTION = TOKENIZER

    vocab_size: int = option(
        30_522,
        Whole(MOST_TOKENS),
        "Size of the vocabulary, including special tokens and the alphabet.",
        section=MAIN,
    )
    model: str = option("wordpiece", Choice(MODELS), "Algorithm to train.", section=MAIN)
    word_boundary: str = option(
        None,
        Choice(WORD_BOUNDARIES),
        "Word-boundary marker of BPE: after words, before words, or GPT-2's byte alphabet.",
        shown_default="</w>; unigram: ▁",
    )
    byte_fallback: bool = option(
        False,
        Flag(),
        "Add a token for each byte, so that no character is unknown.",
    )
    seed_size: int = option(
        SEEDS,
        Whole(MOST_TOKENS),
        "Only for unigram: number of initial substrings.",
        in_config=True,
    )
    criterion: str = option(
        None, Choice(CRITERIA), "Score of pairs.", shown_default="pmi; bpe: frequency"
    )
    min_pair_count: int | str = option(
        "auto",
        Whole(MOST_COUNT, word="auto"),
        "Minimum pair count; auto starts high and decays.",
    )
    min_word_count: int = option(
        1, Whole(MOST_COUNT), "Minimum count of a word; rarer words are left out."
    )
    limit_alphabet: int | None = option(
        None, Whole(MOST_CHARACTERS), "Maximum number of characters in the alphabet."
    )
    initial_alphabet: str = option(
        "", Text("CHARS"), "Characters that are always in the alphabet.", in_config=True
    )
    special_tokens: Sequence[str] | str = option(
        None,
        SpecialTokens(metavar="LIST|bert"),
        "Special tokens, comma-separated, from id 0; bert: the ids of the published BERT models.",
        shown_default="BERT's five",
        section=MAIN,
    )
    unk_token: str | None = _role("replaces unknown text", UNK)
    bos_token: str | None = _role("begins a text", f"{END_OF_TEXT} with bytes")
    eos_token: str | None = _role("ends a text", f"{END_OF_TEXT} with bytes")
    pad_token: str | None = _role("fills rows", "[PAD]")
    mask_token: str | None = _role("replaces masked tokens", "[MASK]")
    model_max_length: int | None = option(
        None,
        Whole(MOST_TOKENS),
        "Maximum number of tokens of the model.",
        shown_default="none",
    )
    max_token_length: int | None = option(
        None,
        Whole(MOST_CHARACTERS),
        "Maximum token length in characters; in bytes for byte-level BPE.",
        shown_default="none; unigram: 16",
    )
    max_word_length: int = option(
        100,
        Whole(MOST_CHARACTERS),
        "Maximum word length in characters, for training.",
    )
    continuing_prefix: str = option(
        None,
        Text(),
        "Prefix of tokens that continue a word.",
        shown_default="##; none for bpe and unigram",
        in_config=True,
    )
    alphabet_order: str = option(
        "sorted", Choice(ALPHABET_ORDERS), "Order of the alphabet's ids.", in_config=True
    )

    def __post_init__(self) -> None:
        """Also checks what is known about the vocabulary before anything is counted."""
        super().__post_init__()
        self._resolve_model()
        self._resolve_special_tokens()
        if self.continuing_prefix or self.model == WORDPIECE:
            check_token("continuing_prefix", self.continuing_prefix, more="x")
        for character in self.initial_alphabet:
            check_token("initial_alphabet", character)
        special, alphabet = self.special_tokens, {*self.byte_tokens, *self.wanted_symbols()}
        least = len(alphabet.union(special))
        if least > self.vocab_size:
            and_initial = f" and the initial alphabet of {len(alphabet)}" if alphabet else ""
            raise OptionError(
                f"vocab_size: {self.vocab_size} is too small for {len(special)} special tokens"
                f"{and_initial}; make it {least} or more"
            )

    def _resolve_special_tokens(self) -> None:
        """Puts in the usual special tokens; a role that is given to the token that has it anyway
        is not an option. OptionError if a token with a role is not among them, or if there is none
        for unknown text."""
        of_bytes = self.word_boundary == BYTES
        if self.special_tokens is None:
            usual = (END_OF_TEXT,) if of_bytes else SPECIAL_TOKENS
            object.__setattr__(self, "special_tokens", usual)
            for name in ("bos_token", "eos_token") if of_bytes else ():
                if getattr(self, name) is None:
                    object.__setattr__(self, name, END_OF_TEXT)
        roles = self.roles
        for name, token in roles.items():
            if token not in self.special_tokens:
                raise OptionError(f"{name}: {token} is not in `special_tokens`")
            if ROLES.get(name) == token:
                object.__setattr__(self, name, None)  # it has this role anyway
        if self.model == WORDPIECE and self.unk_token is not None:
            raise OptionError(f"unk_token: WordPiece always uses {UNK}; remove `unk_token`")
        if not of_bytes and "unk_token" not in roles and UNK not in self.special_tokens:
            or_role = "" if self.model == WORDPIECE else ", or set `unk_token`"
            raise OptionError(
                f"special_tokens: {list(self.special_tokens)} has no {UNK}; add it{or_role}"
            )

    @property
    def roles(self) -> dict[str, str]:
        """The tokens that were given roles."""
        return {name: token for name in TOKEN_ROLES if (token := getattr(self, name)) is not None}

    def _resolve_model(self) -> None:
        """Puts in what the model decides. OptionError for an option that it does not take."""
        for name, value in _OF_MODEL[self.model].items():
            found = getattr(self, name)
            if found is None:
                object.__setattr__(self, name, value)
            elif name in _FIXED[self.model] and found != value:
                raise OptionError(f"{name}: {found!r} is not for the model {self.model}")
        bytes_alone = self.word_boundary == BYTES
        for name, is_wrong, why in (
            ("seed_size", self.seed_size != SEEDS and self.model != UNIGRAM, "without unigram"),
            (
                "byte_fallback",
                self.byte_fallback and self.word_boundary != SPACE_MARK,
                f"without unigram, or bpe with word_boundary {SPACE_MARK}",
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
                raise OptionError(f"{name}: not {why}")

    @property
    def base_alphabet(self) -> Sequence[str]:
        """The characters that are in the alphabet whatever the words: of bytes, those that GPT-2
        writes for them; the mark, where it is a symbol."""
        return ALWAYS.get(self.word_boundary, [])

    @property
    def byte_tokens(self) -> list[str]:
        """Byte tokens as SentencePiece writes them, if there are any."""
        return byte_tokens(self.byte_fallback)

    def symbol(self, character: str, marked: bool) -> str:
        """A symbol of the alphabet. `marked`: whether it carries the mark of words."""
        if self.word_boundary == WORD_END:
            return character + WORD_END * marked
        return self.continuing_prefix * marked + character

    def wanted_symbols(self) -> set[str]:
        """The symbols that are in the alphabet whatever the words."""
        forms = {self.symbol(c, marked) for c in self.initial_alphabet for marked in (False, True)}
        return forms.union(self.base_alphabet)

    def word_marks(self, text: TextOptions) -> str | None:
        """How the kernel marks the words of this training. None: as WordPiece does; else a word
        boundary; GPT2: words are bytes as they are, with no space put before them. `text`: how text
        was split into words. OptionError if such words are not for this training."""
        if self.word_boundary == BYTES and (text.is_composed or text.pre_tokenizer == GPT2):
            return GPT2
        if text.holds_spaces:
            raise OptionError(
                f"pre_tokenizer: words of {text.pre_tokenizer} hold spaces, and work"
                f" only with model bpe and word_boundary {BYTES}; or put bert or whitespace first"
            )
        if text.is_composed and self.word_boundary == SPACE_MARK:
            raise OptionError(
                f"`pre_tokenizer`, `normalizer`: with `word_boundary`"
                f" {SPACE_MARK}, only bert and whitespace are supported"
            )
        return self.word_boundary if self.model == BPE else None

    def plain(self) -> dict[str, Any]:
        """The options that the model has, as values that JSON can hold."""
        value = asdict(self) | {"special_tokens": list(self.special_tokens)}
        unused = {WORDPIECE: OF_OTHER_MODELS, BPE: ("seed_size",)}.get(self.model, ())
        return {name: item for name, item in value.items() if name not in unused}


_ALL_BYTES = f"with word_boundary {BYTES}: its alphabet is all bytes"
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
class ExtensionOptions(Declared):
    """How a vocabulary is extended. `new_tokens` or `vocab_size` says by how much; with
    `into="unused"` neither needs to be given, and all free slots are filled.

    Raises OptionError for a value that an option does not take, and for options that contradict
    each other:

    >>> ExtensionOptions(into="unused", vocab_size=31_000)
    Traceback (most recent call last):
    wordpiece_core.errors.OptionError: vocab_size: not with `into` unused; set `new_tokens`
    """

    SECTION = TOKENIZER

    new_tokens: int | None = option(
        None,
        Whole(MOST_TOKENS),
        "Number of tokens to add.",
        shown_default="all [unusedN] with `into` unused",
        section=MAIN,
    )
    vocab_size: int | None = option(
        None,
        Whole(MOST_TOKENS),
        "Final size of the vocabulary, instead of the number to add.",
        section=MAIN,
    )
    into: str = option(
        "append",
        Choice(PLACES_OF_TOKENS),
        "Put new tokens at the end, or in place of [unusedN] tokens.",
        section=MAIN,
    )
    criterion: str = same_option(TrainingOptions, "criterion")
    min_pair_count: int | str = same_option(TrainingOptions, "min_pair_count")
    min_word_count: int = same_option(TrainingOptions, "min_word_count")
    new_characters: int | str = option(
        0,
        Whole(MOST_CHARACTERS, least=0, word=ALL),
        "Maximum number of missing characters to add, the most frequent first.",
        shown_default="0",
    )
    max_token_length: int | None = same_option(TrainingOptions, "max_token_length")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.criterion is None:
            object.__setattr__(self, "criterion", "pmi")
        if self.into == "unused" and self.vocab_size is not None:
            raise OptionError("vocab_size: not with `into` unused; set `new_tokens`")
        if self.new_tokens is not None and self.vocab_size is not None:
            raise OptionError("set either `new_tokens` or `vocab_size`")

    def check_size(self) -> None:
        """OptionError unless it is said how many tokens are wanted."""
        if self.into == "append" and self.new_tokens is None and self.vocab_size is None:
            raise OptionError("set `new_tokens` or `vocab_size`")


def check_threads(threads: int) -> None:
    """Raises OptionError for a wrong number of threads."""
    check_whole("threads", threads, MOST_THREADS)


def special_token_list(special_tokens: Sequence[str] | str) -> tuple[str, ...]:
    """The special tokens in id order.

    "bert": [PAD] at 0, [UNK] [CLS] [SEP] [MASK] at 100 to 103, [unusedN] around them up to 998.
    """
    if special_tokens == "bert":
        unused = [f"[unused{n}]" for n in range(994)]
        return ("[PAD]", *unused[:99], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *unused[99:])
    is_list = isinstance(special_tokens, list | tuple)  # a set has no order
    _check(is_list, "special_tokens", special_tokens, 'a list or "bert"')
    tokens = tuple(special_tokens)
    for token in tokens:
        _check(isinstance(token, str) and token.strip() != "", "special_tokens", token, "a token")
        check_token("special_tokens", token)
    if len(set(tokens)) < len(tokens):
        twice = next(token for token in tokens if tokens.count(token) > 1)
        raise OptionError(f"special_tokens: {shown(twice)} is given twice; give it once")
    return tokens


def check_token(name: str, token: str, more: str = "") -> None:
    """OptionError if a line of a `vocab.txt` cannot hold a token followed by `more`. Every program
    must read the line as it was written: `tokenizers`, `transformers`, and programs that trim lines
    or end them at other characters than a line feed."""
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


def check_whole(name: str, value: object, most: int) -> None:
    """OptionError unless a value is a whole number from 1 to `most`."""
    checked(Whole(most), name, value)


def _check(valid: bool, name: str, value: object, wanted: str) -> None:
    if not valid:
        raise OptionError(f"{name}: {refusal(value, wanted)}")
