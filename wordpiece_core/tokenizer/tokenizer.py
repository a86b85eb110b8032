"""The tokenizer: text to tokens and ids, and back."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.declared import check_option, is_utf8
from wordpiece_core.errors import InputError, OptionError, SpecialTokenError, opt, shown
from wordpiece_core.option_types import Characters
from wordpiece_core.options import (
    AS_TEXT,
    PACKED_COLUMNS,
    TEXT_OPTIONS,
    EncodingColumn,
    EncodingOptions,
    UnkScope,
    check_threads,
)
from wordpiece_core.text_parts import Normalizer
from wordpiece_core.text_types import holds_text
from wordpiece_core.tokenizer.decoding import decoded
from wordpiece_core.tokenizer.families import bert_spec
from wordpiece_core.tokenizer.formats.stored_spec import identity
from wordpiece_core.tokenizer.kernel_model import kernel_model
from wordpiece_core.tokenizer.library import LibraryEncoder, no_token
from wordpiece_core.tokenizer.models import (
    NOTHING_ADDED,
    AddedToken,
    Layout,
    PostProcessor,
    WordPiece,
    model_name,
)
from wordpiece_core.tokenizer.reading import read_tokenizer
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.vocabulary import check_vocabulary
from wordpiece_core.tokenizer.writing import write_tokenizer

PLAIN = EncodingOptions()
Texts: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[str | None]
"""Texts: an Arrow array of strings, UTF-8 bytes or a dictionary of them; a list; or one string."""


@dataclass(frozen=True)
class EncodedTable:
    """Encoded texts from `Tokenizer.encode_table`.

    Attributes:
        table: The column `input_ids` (`list<int32>` or `list<uint16>`), and columns on request.
        source_rows: With a stride, the number of the text of each row; else None.
        tokens: Number of tokens in all rows, without padding.
        unknown: Number of [UNK] tokens.
        words: Number of words in the texts.
        word_tokens: Number of tokens of words, without added and special tokens.
        truncated_rows: Number of rows that were truncated to `max_length`; 0 with a stride.
        truncated_tokens: Number of tokens that were removed.
        special_tokens: Number of special tokens that are written in the texts.
        longest_text: Number of tokens of the longest text, before truncation, and without the
            tokens around it.
        pages: The ids as Parquet pages, if `encode_pages` made them; then the table is empty.

    >>> batch = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug"]).encode_table(["hug a hug"])
    >>> batch.table["input_ids"].to_pylist(), batch.tokens, batch.unknown
    ([[1, 3, 0, 3, 2]], 5, 1)
    >>> batch.words, batch.word_tokens
    (3, 3)
    """

    table: pa.Table
    source_rows: pa.ChunkedArray | None
    tokens: int
    unknown: int
    words: int
    word_tokens: int
    truncated_rows: int
    truncated_tokens: int
    special_tokens: int
    longest_text: int
    pages: _kernel.Pages | None = field(default=None, kw_only=True)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.pages.rows if self.pages else self.table.num_rows

    @property
    def ids(self) -> pa.ListArray:
        """The column `input_ids` as one array."""
        ids = self.table.column("input_ids")
        return ids.combine_chunks() if ids.num_chunks != 1 else ids.chunk(0)

    @property
    def nulls(self) -> int:
        """Number of null rows."""
        return self.pages.nulls if self.pages else self.table.column("input_ids").null_count


class TokenizerKeywords(TypedDict, total=False):
    """Arguments of `Tokenizer` after the vocabulary, and of `Tokenizer.load`. None keeps the
    options of the files."""

    lowercase: bool | None
    strip_accents: bool | None
    clean_text: bool | None
    handle_chinese_chars: bool | None
    pre_tokenizer: str | Sequence[str] | None
    normalizer: Sequence[Normalizer] | None
    max_word_length: int | None
    continuing_prefix: str | None
    more_special_tokens: Collection[str]


class Tokenizer:
    """Tokenizer of text to tokens and ids, and back. A vocabulary alone gives a WordPiece tokenizer
    with
    BERT's text handling; `load` reads every other model.

    >>> tok = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"])
    >>> tok.tokenize("unaffordable")
    ['un', '##afford', '##able']
    """

    def __init__(
        self,
        vocab: Sequence[str],
        *,
        unk_scope: UnkScope = "word",
        **options: Unpack[TokenizerKeywords],
    ) -> None:
        """Create a tokenizer from a vocabulary.

        Args:
            vocab: Tokens in id order, including [UNK].
            unk_scope: If no token fits, the complete "word" becomes [UNK], as in BERT, or one
            "character". **options: Fields of `TextOptions`; `max_word_length` in characters (longer
            words become [UNK]);
                `continuing_prefix`; and `more_special_tokens`, which are found in texts like BERT's
                five.

        Raises:
            InputError: For a bad vocabulary.
            OptionError: For a bad option.
        """
        if isinstance(vocab, str | Mapping) or not isinstance(vocab, Iterable):
            raise OptionError("vocab: expected a list of tokens in id order")
        vocab = list(vocab)
        check_vocabulary(vocab, "vocab")
        self._init(_with_options(bert_spec(vocab), options), unk_scope)

    def _init(self, spec: TokenizerSpec, unk_scope: UnkScope) -> None:
        check_option("unk_scope", UnkScope, unk_scope)
        if unk_scope != "word" and not isinstance(spec.model, WordPiece):
            raise OptionError(
                f"{opt.unk_scope}: only for WordPiece; other models always replace single"
                " characters"
            )
        self.spec = spec
        self.unk_scope = unk_scope
        self.vocab: list[str] = list(spec.vocab)
        self.ids = {token: i for i, token in enumerate(self.vocab)}
        self.special_tokens = spec.special_tokens
        self._roles = spec.roles

    def __repr__(self) -> str:
        """Return the model and the number of tokens.

        >>> Tokenizer(["[UNK]", "hug", "##s"])
        Tokenizer(model=WordPiece, vocab_size=3)
        """
        return f"Tokenizer(model={model_name(self.spec.model)}, vocab_size={self.vocab_size})"

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        unk_scope: UnkScope = "word",
        encoding: str | None = None,
        **options: Unpack[TokenizerKeywords],
    ) -> Tokenizer:
        """Load a tokenizer from a path, a URI or the Hub.

        It can be a directory; a `tokenizer.json`, a `vocab.txt` or a `tekken.json`; a model of
        sentencepiece (`.model`); the ranks of an encoding of tiktoken (`cl100k_base.tiktoken`, or
        with `encoding="cl100k_base"` under any name); or a name on the Hub, with a revision if that
        matters (`openai-community/gpt2@main`). A path on disk wins over a name on the Hub.

        `unk_scope` and `options` override the files. A `vocab.txt` without a config is uncased,
        unless a token has a capital letter (except tokens in brackets, like [CLS]). Then it is
        cased, with a TakenAsCasedWarning.

        A `tokenizer.json` with an unsupported part is encoded by the library `tokenizers`, more
        slowly and with an EncodedByLibraryWarning.

        Raises InputError if there is no tokenizer, or if its ids could differ from the original
        library; OptionError for a bad option, and if the library `tokenizers` is needed and not
        installed.

        >>> Tokenizer(["[UNK]", "hug", "##s"]).save("my-tokenizer")[-1]
        'my-tokenizer/vocab.txt'
        >>> Tokenizer.load("my-tokenizer").tokenize("HUGS")
        ['hug', '##s']
        """
        spec = read_tokenizer(os.fspath(path), options.get("lowercase"), encoding)
        spec = _with_options(spec, options)
        return cls.from_spec(spec, unk_scope)

    from_pretrained = load  # as `transformers` calls it

    @classmethod
    def from_spec(cls, spec: TokenizerSpec, unk_scope: UnkScope = "word") -> Tokenizer:
        """Build a tokenizer from a checked specification."""
        tokenizer = cls.__new__(cls)
        tokenizer._init(spec, unk_scope)
        return tokenizer

    def save(self, directory: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write the files that `load`, `transformers` and `tokenizers` read into a local directory
        or one in a store (`s3://bucket/tok`), and return their paths.

        An existing tokenizer is replaced: if the process is killed meanwhile, the directory has
        the old tokenizer, the new one, or none. Raises OptionError for a path that is not writable
        or ends with `.json`, and StorageError if writing fails.
        """
        path = os.fspath(directory)
        if path.endswith(".json"):
            raise OptionError(f"directory: {path} looks like a file; choose a directory")
        return write_tokenizer(path, self.spec)

    save_pretrained = save  # as `transformers` calls it

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        return len(self.vocab) if self.spec.library is None else len(self.get_vocab())

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all tokens.

        >>> Tokenizer(["[UNK]", "hug"]).get_vocab()
        {'[UNK]': 0, 'hug': 1}
        """
        if self.spec.library is None:
            return dict(self.ids)
        return {token: i for token, i in self.ids.items() if token != no_token(i)}

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token; None if it is not in the vocabulary."""
        return self.ids.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token of an id; None if there is none."""
        token = self.vocab[token_id] if 0 <= token_id < len(self.vocab) else None
        is_gap = self.spec.library is not None and token == no_token(token_id)
        return None if is_gap else token

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that ids depend on, in hexadecimal digits."""
        value = identity(self.spec) | {"unk_scope": self.unk_scope}
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

    @cached_property
    def kernel(self) -> _kernel.Encoder | LibraryEncoder:
        """The encoder of the kernel, or of the library."""
        return self._encoder(split_special_tokens=False)

    @cached_property
    def _splitting_kernel(self) -> _kernel.Encoder | LibraryEncoder:
        """The encoder that treats special tokens in texts as text."""
        return self._encoder(split_special_tokens=True)

    def clear_caches(self) -> None:
        """Free the caches: up to 256 MiB, and as much again with `split_special_tokens`."""
        for name in ("kernel", "_splitting_kernel"):
            self.__dict__.pop(name, None)

    def _encoder(self, *, split_special_tokens: bool) -> _kernel.Encoder | LibraryEncoder:
        if self.spec.library is not None:
            return LibraryEncoder(self.spec, hides=split_special_tokens)
        spec = self.spec
        searched = self.searched_tokens(split_special_tokens=split_special_tokens)
        hidden = {token.content for token in spec.added_tokens if not token.in_model}
        hidden |= {*self.special_tokens} - {token.content for token in searched}
        return _kernel.Encoder(
            self.vocab,
            spec.text.for_kernel() | {"rules": spec.words.rules()},
            {
                "unk_token": self._roles.get("unk_token"),
                "continuing_prefix": spec.continuing_prefix,
                "max_word_length": spec.max_word_length,
                "unk_scope": self.unk_scope,
                "added_tokens": [token.for_kernel() for token in searched],
                "hidden": sorted(hidden),
                "model": kernel_model(spec),
                "pad_id": self.pad_id,
                "trim_offsets": list(self._ends.trims),
            },
        )

    def searched_tokens(self, *, split_special_tokens: bool = False) -> list[AddedToken]:
        """Return the tokens that are found in texts before texts are split into words."""
        # sentencepiece does not find its control tokens in texts either.
        hides = split_special_tokens or self.spec.of_sentencepiece
        return [token for token in self.spec.added_tokens if not (hides and token.special)]

    @property
    def _ends(self) -> PostProcessor:
        return self.spec.post_processor or NOTHING_ADDED

    def _layouts(self, options: EncodingOptions) -> list[dict[str, Any]]:
        """Return the single and pair templates in kernel format."""
        ends, adds = self._ends, options.add_special_tokens
        return [
            {
                name: [(self.ids[token], kind) for token, kind in tokens]
                for name, tokens in self._added(layout, options).items()
            }
            | {
                "types": layout.types,
                "overflow_types": layout.types if adds and ends.fixed_type else (0, 1),
            }
            for layout in (ends.single, ends.pair)
        ]

    def _added(
        self, layout: Layout, options: EncodingOptions
    ) -> dict[str, Sequence[tuple[str, int]]]:
        """Return the tokens before, between and after the texts of a row, with their types. A token
        at an end is not added twice."""
        if not options.add_special_tokens:
            layout = replace(layout, before=(), between=(), after=())
        before, after = layout.before, layout.after
        first, last = self.boundary_tokens(options)
        if first is not None and [token for token, _ in before[:1]] != [first]:
            before = [(first, layout.types[0]), *before]
        if last is not None and [token for token, _ in after[-1:]] != [last]:
            after = [*after, (last, layout.types[0])]
        return {"before": before, "between": layout.between, "after": after}

    def boundary_tokens(self, options: EncodingOptions) -> tuple[str | None, str | None]:
        """Return the tokens that `prepend_bos` and `append_eos` add. Raises OptionError if one is
        unknown, or not in the vocabulary."""
        first = self._boundary_token(options.prepend_bos, "bos_token", options.bos_token)
        return first, self._boundary_token(options.append_eos, "eos_token", options.eos_token)

    def _boundary_token(self, is_wanted: bool, role: str, token: str | None) -> str | None:
        if not is_wanted:
            return None
        if token is None and role not in self._roles:
            raise OptionError(f"the tokenizer has no {role}; set {opt[role]}")
        if token is not None and token not in self.ids:
            raise OptionError(f"{opt[role]}: {shown(token)} is not in the vocabulary")
        return self._roles[role] if token is None else token

    @property
    def unk_id(self) -> int | None:
        """The id of the unknown token, if there is one."""
        return self.role_id("unk_token")

    @property
    def pad_id(self) -> int | None:
        """The id of the padding token, if there is one."""
        return self.role_id("pad_token")

    @property
    def fill_id(self) -> int | None:
        """The id that fills rows: the pad_token, or the eos_token of a tokenizer without one."""
        return self.role_id("eos_token") if self.pad_id is None else self.pad_id

    def token_of(self, role: str) -> str | None:
        """Return the token of a role, such as `eos_token`, if there is one."""
        return self._roles.get(role)

    def role_id(self, role: str) -> int | None:
        """Return the id of the token of a role, if there is one."""
        token = self.token_of(role)
        return None if token is None else self.ids[token]

    @property
    def adds_special_tokens(self) -> bool:
        """True if special tokens for texts are known: [CLS] and [SEP] if the vocabulary has them,
        or the post-processor of the files, which may be empty."""
        return self.spec.post_processor is not None

    def encode(
        self, text: str, text_pair: str | None = None, *, add_special_tokens: bool = True
    ) -> list[int]:
        """Return the ids of a text, or of a pair of texts, with special tokens if the tokenizer has
        a template for them.

        Raises:
            OptionError: For several texts.
            InputError: For a text that is not a string.

        >>> tok = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug", "##s"])
        >>> tok.encode("hugs hug"), tok.encode("hugs", add_special_tokens=False)
        ([1, 3, 4, 3, 2], [3, 4])
        """
        for given in (text, text_pair or ""):
            if not isinstance(given, str):
                raise OptionError(
                    f"text: expected a string, got {type(given).__name__}; pass several texts to"
                    " encode_batch"
                )
        pairs = None if text_pair is None else [text_pair]
        options = self._usual_options(add_special_tokens)
        ids: list[int] = self.encode_table([text], pairs, options=options).ids[0].as_py()
        return ids

    def encode_batch(
        self,
        texts: Texts,
        *,
        add_special_tokens: bool = True,
        threads: int = 1,
    ) -> pa.ListArray:
        """Encode texts to an array of ids, `list<int32>`, one row for each text. Null stays null.

        Adds special tokens if the tokenizer has a template for them. Special tokens that are
        written in a text are parsed, as by `tokenizers`. Raises the errors of `encode_table`.

        >>> tok = Tokenizer(["[UNK]", "hug", "##s"])
        >>> tok.encode_batch(["hugs hug", None], threads=2).to_pylist()
        [[1, 2, 1], None]
        """
        options = self._usual_options(add_special_tokens)
        return self.encode_table(texts, options=options, threads=threads).ids

    def _usual_options(self, add_special_tokens: bool) -> EncodingOptions:
        adds = add_special_tokens and self.adds_special_tokens
        return EncodingOptions(add_special_tokens=adds)

    def encode_table(
        self,
        texts: Texts,
        pairs: Texts | None = None,
        *,
        options: EncodingOptions = PLAIN,
        threads: int = 1,
    ) -> EncodedTable:
        """Encode texts, or pairs of `texts` and `pairs`, as `tokenizers` does with the same
        options. A row is null if one of its texts is null. With several threads the columns have
        several chunks.

        Raises:
            OptionError: For options that do not fit the vocabulary, and for too many threads.
            InputError: For an invalid array, for a pair that the options cannot truncate, and for a
                text with a special token if the options forbid it.

        >>> tok = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug", "pun"])
        >>> options = EncodingOptions(columns=["token_type_ids"])
        >>> tok.encode_table(["hug"], ["pun"], options=options).table.to_pylist()
        [{'input_ids': [1, 3, 2, 4, 2], 'token_type_ids': [0, 0, 0, 1, 1]}]
        """
        check_threads(threads)
        self.check_options(options, pairs is not None)
        batches, _, counts = self._kernel_encode(
            text_array(texts),
            None if pairs is None else text_array(pairs),
            options,
            threads=threads,
        )
        table = pa.Table.from_batches([pa.record_batch(batch) for batch in batches])
        sources = None if options.stride is None else table.column("source_rows")
        return EncodedTable(
            table.select(["input_ids", *options.columns]), sources, pages=None, **counts
        )

    def encode_pages(
        self,
        texts: pa.Array,
        pairs: pa.Array | None,
        *,
        options: EncodingOptions,
        maker: _kernel.IdPages,
        least_ids: int,
    ) -> EncodedTable:
        """Encode texts like `encode_table`, but return `least_ids` ids and more as Parquet pages.
        `options` must have neither columns nor a stride. Raises the errors of `encode_table`."""
        batches, pages, counts = self._kernel_encode(
            texts,
            pairs,
            options,
            pages=maker,
            least_ids=least_ids,
        )
        tables = [pa.record_batch(batch) for batch in batches]
        table = pa.Table.from_batches(tables, None if tables else pa.schema([]))
        return EncodedTable(table, None, pages=pages, **counts)

    def _kernel_encode(
        self,
        texts: pa.Array,
        pairs: pa.Array | None,
        options: EncodingOptions,
        threads: int = 1,
        **pages: Any,
    ) -> tuple[list[Any], _kernel.Pages | None, dict[str, int]]:
        in_text = options.special_tokens_in_text
        kernel = self._splitting_kernel if in_text == AS_TEXT else self.kernel
        how = options.values() | {"threads": threads, "layouts": self._layouts(options)}
        batches, pages_of_ids, counts = kernel.encode(texts, pairs, how, **pages)
        if in_text == "error" and counts["special_tokens"]:
            raise self._special_token_error(texts, pairs)
        return batches, pages_of_ids, counts

    def _special_token_error(self, texts: pa.Array, pairs: pa.Array | None) -> SpecialTokenError:
        """Return the error for the first of these texts that has a special token."""
        options = EncodingOptions(add_special_tokens=False)

        def has_token(start: int, end: int) -> bool:
            some = [None if each is None else each[start:end] for each in (texts, pairs)]
            return bool(self.encode_table(*some, options=options).special_tokens)

        start, end = 0, len(texts)
        while end - start > 1:
            middle = (start + end) // 2
            start, end = (start, middle) if has_token(start, middle) else (middle, end)
        special = {self.ids[token.content] for token in self.searched_tokens() if token.special}
        both = texts[start:end] if pairs is None else [texts[start].as_py(), pairs[start].as_py()]
        ids = self.encode_table(both, options=options).table["input_ids"].to_pylist()
        token = next((i for row in ids for i in row or () if i in special), None)
        name = "a special token" if token is None else f"the special token {self.vocab[token]!r}"
        error = SpecialTokenError(
            f"text {start} has {name} and {opt.special_tokens_in_text} is error"
        )
        error.text = start
        return error

    def check_options(self, options: EncodingOptions, pairs: bool = False) -> None:
        """Raise OptionError for options that do not fit this vocabulary. `pairs`: True for pairs of
        texts."""
        if options.add_special_tokens and not self.adds_special_tokens:
            missing = "[SEP]" if "[CLS]" in self.ids else "[CLS]"
            raise OptionError(f"{opt.add_special_tokens}: the vocabulary has no {missing}")
        if pairs and options.marks_boundaries:
            name = opt.append_eos if options.append_eos else opt.prepend_bos
            raise OptionError(f"{name}: cannot be combined with pairs of texts")
        self.boundary_tokens(options)
        for column in options.columns:
            if column in PACKED_COLUMNS:
                raise OptionError(
                    f"{opt.columns}: {column} is only available for packed rows; set {opt.pack}"
                )
        if options.padding and self.pad_id is None:
            raise OptionError(f"{opt.padding}: the vocabulary has no [PAD], and no other pad_token")
        if options.id_type == "uint32":
            raise OptionError(f"{opt.id_type}: uint32 is only for files of ids, {opt.format} npy")
        if options.id_type == "uint16" and len(self) > 2**16:
            raise OptionError(f"{opt.id_type}: uint16 cannot hold the ids of {len(self):,} tokens")
        if options.truncation == "only_second" and not pairs:
            raise OptionError(f"{opt.truncation}: only_second needs pairs of texts")
        if options.max_length is not None:
            _check_room(options.max_length, options, pairs, self._added_tokens(options, pairs))

    def _added_tokens(self, options: EncodingOptions, pairs: bool) -> int:
        """Return the number of tokens around a row."""
        added = self._added(self._ends.pair if pairs else self._ends.single, options)
        return sum(map(len, added.values()))

    def __call__(
        self,
        text: str | Sequence[str],
        text_pair: str | Sequence[str] | None = None,
        *,
        add_special_tokens: bool = True,
        padding: bool | str = False,
        truncation: bool | str | None = None,
        max_length: int | None = None,
        stride: int = 0,
        return_token_type_ids: bool = True,
        return_attention_mask: bool = True,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
    ) -> dict[str, list[Any]]:
        """Encode one text, or a list of texts, with the arguments and the result of a tokenizer of
        `transformers`: lists of ids and other columns.

        Args:
            padding: True pads to the longest row, "max_length" to that length.
            truncation: Text of a pair to truncate; True truncates the longest first.
            max_length: Length of rows; by default the `model_max_length` of the files. Without
                either, rows are neither truncated nor padded to a length.

        Raises OptionError for other values. For large data, `encode_table` is faster.

        >>> tok = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"])
        >>> tok("unaffordable")["input_ids"]
        [1, 3, 4, 5, 2]
        """
        single = isinstance(text, str)
        texts = [text] if isinstance(text, str) else text
        pairs = [text_pair] if isinstance(text_pair, str) else text_pair
        limit = max_length or self.spec.model_max_length
        wanted = max_length if truncation is None else truncation not in (False, "do_not_truncate")
        truncates = bool(wanted) and limit is not None
        side: Any = truncation if isinstance(truncation, str) and wanted else "longest_first"
        asked: dict[EncodingColumn, bool] = {
            "token_type_ids": return_token_type_ids,
            "attention_mask": return_attention_mask,
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
        }
        options = EncodingOptions(
            add_special_tokens=add_special_tokens and self.adds_special_tokens,
            max_length=limit if truncates else None,
            truncation=side,
            stride=stride if truncates and return_overflowing_tokens else None,
            columns=tuple(name for name, wanted in asked.items() if wanted),
        )
        encoded = self._padded(texts, pairs, options, padding, limit)
        columns = {name: encoded.table[name].to_pylist() for name in encoded.table.column_names}
        if encoded.source_rows is not None:
            return columns | {"overflow_to_sample_mapping": encoded.source_rows.to_pylist()}
        return {name: rows[0] for name, rows in columns.items()} if single else columns

    def _padded(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None,
        options: EncodingOptions,
        padding: bool | str,
        limit: int | None,
    ) -> EncodedTable:
        """Encode with the meaning of `padding` in `transformers`."""
        if padding not in (False, "do_not_pad", True, "longest", "max_length"):
            raise OptionError(
                f"{opt.padding}: {shown(padding)} is not a bool, longest or max_length"
            )
        if padding in (False, "do_not_pad") or (padding == "max_length" and limit is None):
            return self.encode_table(texts, pairs, options=options)
        rows = self.encode_table(texts, pairs, options=options).table["input_ids"]
        length = longest = pc.max(pc.list_value_length(rows)).as_py() or 0
        if padding == "max_length":
            length = limit
        if longest > length:
            raise OptionError(
                f"{opt.padding}: a row has {longest} tokens, not {length}; enable truncation"
            )
        options = replace(options, max_length=length or None, padding=length > 0)
        return self.encode_table(texts, pairs, options=options)

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text, without special tokens around it."""
        return [self.vocab[i] for i in self.encode(text, add_special_tokens=False)]

    def decode(
        self,
        ids: Iterable[int] | pa.Array | pa.Scalar,
        *,
        skip_special_tokens: bool = True,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> str:
        """Return the text of ids in a list or an Arrow array, as `transformers` does with the same
        options.

        Args:
            skip_special_tokens: Leave special tokens out.
            clean_up_tokenization_spaces: Remove spaces before punctuation; BPE never does. None
                removes them with WordPiece, as `transformers` always does.

        Raises InputError for an id that is not in the vocabulary.

        >>> Tokenizer(["[UNK]", "hug", "##s", "!"]).decode([1, 2, 3])
        'hugs!'
        """
        if isinstance(ids, pa.Array | pa.Scalar):
            ids = ids.to_pylist() if isinstance(ids, pa.Array) else ids.as_py()
        tokens = list(map(self.surface, ids))
        if skip_special_tokens:
            tokens = [token for token in tokens if token not in self.skipped_tokens]
        if self.spec.library is not None:  # which leaves out ids without a token
            tokens = [token for token in tokens if token != no_token(self.ids[token])]
        return decoded(self.spec, tokens, clean_up_tokenization_spaces)

    def decode_batch(
        self,
        rows: Iterable[Iterable[int] | None] | pa.Array | pa.ChunkedArray,
        *,
        skip_special_tokens: bool = True,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> list[str | None]:
        """Return the texts of rows of ids, as `decode` does. A null row has no text.

        >>> Tokenizer(["[UNK]", "hug", "##s"]).decode_batch([[1, 2], [1], None])
        ['hugs', 'hug', None]
        """
        rows = rows.to_pylist() if isinstance(rows, pa.Array | pa.ChunkedArray) else rows
        how: Any = {
            "skip_special_tokens": skip_special_tokens,
            "clean_up_tokenization_spaces": clean_up_tokenization_spaces,
        }
        return [None if ids is None else self.decode(ids, **how) for ids in rows]

    @cached_property
    def _surfaces(self) -> dict[str, str]:
        """Text of added tokens that differs from their content: `tokenizers` decodes a token that
        is searched for in normalized text as its normalized content."""
        rules = self.spec.words.rules()
        if rules is None:
            return {}
        found = {
            t.content: rules.normalized(t.content) for t in self.spec.added_tokens if t.normalized
        }
        return {content: text for content, text in found.items() if text != content}

    def surface(self, token_id: int) -> str:
        """Return a token as the decoder gets it. Raises InputError for an unknown id."""
        token = self._token(token_id)
        return self._surfaces.get(token, token)

    @cached_property
    def skipped_tokens(self) -> frozenset[str]:
        """Special tokens, which `decode` leaves out. Other added tokens stay in decoded text."""
        return frozenset(token.content for token in self.spec.added_tokens if token.special)

    def _token(self, token_id: int) -> str:
        if not 0 <= token_id < len(self.vocab):
            raise InputError(f"id {token_id} is not in the vocabulary of {len(self.vocab)} tokens")
        return self.vocab[token_id]

    def __len__(self) -> int:
        return len(self.vocab)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer.from_spec, (self.spec, self.unk_scope)


def _with_options(spec: TokenizerSpec, options: Mapping[str, Any]) -> TokenizerSpec:
    """Return the specification with all options other than None."""
    given = {name: value for name, value in options.items() if value is not None}
    _check_of_model(spec, given)
    text = {name: given.pop(name) for name in given.keys() & {*TEXT_OPTIONS}}
    for name in given.keys() - {"max_word_length", "continuing_prefix", "more_special_tokens"}:
        raise OptionError(f"unknown tokenizer option {name}")
    more = given.setdefault("more_special_tokens", ())
    listed = isinstance(more, Collection) and not isinstance(more, str)
    if not listed or not all(isinstance(token, str) for token in more):
        raise OptionError(f"{opt.more_special_tokens}: {shown(more)} is not a list of tokens")
    prefix = given.get("continuing_prefix", "")
    if not isinstance(prefix, str) or not is_utf8(prefix):
        raise OptionError(f"{opt.continuing_prefix}: {shown(prefix)} is not a string")
    check_option("max_word_length", Characters, given.get("max_word_length", 1))
    if text:
        spec = spec.with_text(replace(spec.text, **text))
    if more:
        spec = spec.with_special_tokens(more)
    del given["more_special_tokens"]
    return spec.with_word_pieces(**given) if given else spec


def _check_of_model(spec: TokenizerSpec, given: Mapping[str, Any]) -> None:
    """Raise OptionError for an option that the model of a specification lacks."""
    of_wordpiece = {"max_word_length", "continuing_prefix"}
    if not isinstance(spec.model, WordPiece) and (others := of_wordpiece & {*given}):
        raise OptionError(f"{min(others)}: only for WordPiece")
    if not spec.words.is_by_options and (others := {*TEXT_OPTIONS}.intersection(given)):
        raise OptionError(f"{min(others)}: the tokenizer has its own normalizer and pre-tokenizer")


def _check_room(max_length: int, options: EncodingOptions, pairs: bool, added: int) -> None:
    """Raise OptionError unless a row has room for the added tokens, and for more text than the
    stride. The kernel checks pairs, because it depends on the lengths of both texts."""
    room = max_length - added
    if room < 0:
        raise OptionError(
            f"{opt.max_length}: {max_length} has no room for the {added} tokens added"
        )
    if options.stride is None:
        return
    if options.stride >= room:
        raise OptionError(
            f"{opt.stride}: {options.stride} is not less than the {room} tokens of text in a row"
        )
    if pairs and options.truncation == "longest_first" and room < 2:
        raise OptionError(f"{opt.max_length}: {max_length} has no room for a token of each text")


def text_array(texts: Any) -> pa.Array:
    """Return texts as an Arrow array of strings or bytes. Raises InputError for other values."""
    if isinstance(texts, str):
        texts = [texts]
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if not isinstance(texts, pa.Array):
        try:
            if isinstance(texts, list | tuple):
                return pa.array(_kernel.string_array(texts))
            return pa.array(texts, pa.string())
        except (pa.ArrowException, InputError, TypeError, UnicodeError) as error:
            raise InputError(f"texts: {error}") from error
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if not holds_text(texts.type):
        raise InputError(f"texts: an array of {texts.type}, not of strings or bytes")
    return texts
