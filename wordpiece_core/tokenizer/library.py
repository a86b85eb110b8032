"""Tokenizers with an unsupported part: the library `tokenizers` encodes texts with them.
`library_spec` reads such a file, and `LibraryEncoder` replaces the encoder of the kernel."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any

import pyarrow as pa

from wordpiece_core import _kernel
from wordpiece_core.errors import (
    InputError,
    OptionError,
    TokenizerWarning,
    is_fault,
    one_line,
    opt,
    shown,
)
from wordpiece_core.symbols import BYTES, ROLES, SPACE_MARK
from wordpiece_core.tokenizer.formats.json_text import Json
from wordpiece_core.tokenizer.formats.tokenizer_json_reading import model_kind
from wordpiece_core.tokenizer.models import MOST_IDS, AddedToken, Layout, Library, PostProcessor
from wordpiece_core.tokenizer.spec import TokenizerSpec, usual_roles

TEXTS_AT_ONCE = 64  # texts whose tokens are Python objects at a time
CHUNKS_AT_ONCE = 4096  # chunks of a word table at a time
BEFORE = "a"  # text before each chunk of a word table, with a space between them
FAILED = "the library tokenizers cannot encode it"
TYPES = {
    "num_tokens": pa.int32(),
    "offset_mapping": pa.list_(pa.list_(pa.int32(), 2)),
    "word_ids": pa.list_(pa.int32()),
} | dict.fromkeys(("attention_mask", "token_type_ids", "special_tokens_mask"), pa.list_(pa.int8()))
COUNTS = (
    *("tokens", "unknown", "words", "word_tokens", "truncated_rows", "truncated_tokens"),
    *("special_tokens", "longest_text"),
)
PADDING = {"offset_mapping": (0, 0), "word_ids": None, "special_tokens_mask": 1}  # 0 elsewhere

Encoding = Any  # of `tokenizers`


class EncodedByLibraryWarning(TokenizerWarning):
    """A tokenizer has an unsupported part, so the library `tokenizers` encodes texts with it. The
    arguments are its path and the part."""

    @property
    def fact(self) -> str:
        """The message."""
        path, part = self.args
        return f"{path} is encoded by the library tokenizers, at its lower speed: {part}"


# --- Reading --------------------------------------------------------------------------------------


def library_spec(value: Json, text: str, path: str, refusal: InputError) -> TokenizerSpec:
    """Return the specification of a `tokenizer.json` that cannot be read natively. The library
    decides if the file is damaged.

    Args:
        value: The JSON of the file.
        text: The text of the file.
        path: The path in errors.
        refusal: The error of reading it natively, which is raised if the library cannot read it
        either.

    Raises OptionError if the library is not installed, and InputError for random ids.
    """
    model = value.get("model")
    kind = model_kind(model) if isinstance(model, dict) else None
    if not isinstance(model, dict) or kind is None:
        raise refusal
    if model.get("dropout"):
        raise InputError(f"{path}: dropout is {shown(model['dropout'])}; set it to null")
    try:
        tokenizer, _ = loaded(text, False)
    except OptionError as error:
        raise OptionError(f"{refusal}, or {error.template}") from error
    except InputError as error:
        raise InputError(f"{refusal}; and {error.template}") from error
    added_tokens = tokenizer.get_added_tokens_decoder().values()
    _check_normalized(tokenizer, added_tokens, path)
    ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    rows = _processed(value.get("post_processor"), path)
    added = (i for row in rows for i, w in zip(row.ids, row.word_ids, strict=True) if w is None)
    size = max([*ids.values(), *added], default=-1) + 1
    if size > MOST_IDS:
        raise InputError(f"{path}: id {size - 1:,} is too large; the maximum is {MOST_IDS - 1:,}")
    vocab = _tokens_by_id(tokenizer, ids, size)
    special = {token.content for token in added_tokens if token.special}
    processor = json.dumps(value.get("post_processor"))
    is_fixed = '"BertProcessing"' in processor or '"RobertaProcessing"' in processor
    ends = PostProcessor(_layout(rows[0], vocab), _layout(rows[1], vocab), is_fixed)
    rules = {k: v for k, v in value.items() if k not in ("model", "added_tokens")}
    prefix = model.get("continuing_subword_prefix") or ""
    return TokenizerSpec(
        vocab,
        Library(text, kind, _word_boundary(rules), prefix),
        post_processor=ends,
        added_tokens=tuple(AddedToken(token) for token in vocab if token in special),
        roles=_roles(value, model, ids),
    )


def _check_normalized(tokenizer: Any, added_tokens: Iterable[Any], path: str) -> None:
    """Raise InputError for an added token that is empty after normalization. The library finds it
    inside of characters, and fails for most texts."""
    normalizer = tokenizer.normalizer
    for token in added_tokens if normalizer is not None else ():
        with one_line_errors(f"{path}: the library tokenizers cannot normalize {token.content!r}"):
            normalized = normalizer.normalize_str(token.content)
        if token.normalized and not normalized:
            raise InputError(
                f"{path}: added token {token.content!r} is empty after normalization; set its"
                " `normalized` to false"
            )


def _tokens_by_id(tokenizer: Any, ids: Mapping[str, int], size: int) -> list[str]:
    """Return the tokens by id. Ids without a token have a placeholder."""
    vocab = [no_token(number) for number in range(size)]
    for token, number in ids.items():
        vocab[number] = token
    if len({*ids.values()}) < len(ids):  # several tokens have the same id
        for number in ids.values():
            vocab[number] = tokenizer.id_to_token(number)
    return vocab


def no_token(number: int) -> str:
    """Return the placeholder in a vocabulary for an id without a token."""
    return f"<no token {number}>"


def _word_boundary(rules: Json) -> str | None:
    written = json.dumps(rules, ensure_ascii=False)
    if '"ByteLevel"' in written:
        return BYTES
    return SPACE_MARK if SPACE_MARK in written else None


def _roles(value: Json, model: Json, ids: Mapping[str, int]) -> dict[str, str]:
    """Return the roles of tokens: usual names in the vocabulary, the padding of the file, and the
    unknown token of the model."""
    roles = {role: token for role, token in ROLES.items() if token in ids} | usual_roles(ids)
    padding = value.get("padding")
    if isinstance(padding, dict) and ids.get(str(padding.get("pad_token"))) == padding.get(
        "pad_id", 0
    ):
        roles["pad_token"] = padding["pad_token"]
    roles.pop("unk_token", None)
    if model_kind(model) == "Unigram":
        unk_id = model.get("unk_id")
        unk = None if unk_id is None else model["vocab"][unk_id][0]
    else:
        unk = model.get("unk_token")
    return roles if unk is None or unk not in ids else {**roles, "unk_token": unk}


def _processed(post_processor: Any, path: str) -> list[Encoding]:
    """Return a text of one token and a pair, with the tokens of a post-processor."""
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    value = {"version": "1.0", "model": model, "post_processor": post_processor}
    with one_line_errors(f"{path}: the library tokenizers cannot put tokens around a text"):
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(json.dumps(value))
        return [tokenizer.encode("a", second) for second in (None, "a")]


def _layout(row: Encoding, vocab: Sequence[str]) -> Layout:
    """Return the layout of a row of texts with one token each."""
    texts = [i for i, word in enumerate(row.word_ids) if word is not None] or [len(row)]
    parts: list[list[tuple[str, int]]] = [[], [], []]
    for i, (number, kind, word) in enumerate(zip(row.ids, row.type_ids, row.word_ids, strict=True)):
        if word is None:
            parts[(i > texts[0]) + (i > texts[-1])].append((vocab[number], kind))
    before, between, after = parts
    types = [row.type_ids[i] for i in texts if i < len(row)]
    return Layout(before, between, after, (types[0], types[1]) if len(types) > 1 else (*types, 1))


@lru_cache(4)
def loaded(text: str, hides: bool, /) -> tuple[Any, Any]:
    """Return the tokenizer of the library, without truncation, padding and post-processor, and the
    post-processor, which may be None.

    Args:
        text: The text of its `tokenizer.json`.
        hides: True to treat special tokens in texts as text.

    Raises OptionError if the library is not installed, and InputError if it cannot read the text.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise OptionError(
            "this tokenizer needs the library tokenizers: pip install tokenizers"
        ) from error
    with one_line_errors("the library tokenizers cannot read it"):
        tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = hides
    post_processor, tokenizer.post_processor = tokenizer.post_processor, None
    return tokenizer, post_processor


@contextmanager
def one_line_errors(what: str) -> Iterator[None]:
    """Turn errors of the library, which have any class, and panics into InputErrors."""
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        if is_fault(error):
            raise InputError(f"{what} ({one_line(error)})") from error
        raise


def library_text(model: Library, tokens: Sequence[str]) -> str:
    """Return the text of tokens by the decoder of the library."""
    tokenizer, _ = loaded(model.tokenizer_json, False)
    if tokenizer.decoder is None:
        return " ".join(tokens)
    with one_line_errors("the library tokenizers cannot decode the tokens"):
        return str(tokenizer.decoder.decode(list(tokens)))


# --- Encoding -------------------------------------------------------------------------------------


class LibraryEncoder:
    """Encoder of the library `tokenizers` with the interface of `_kernel.Encoder`. The library
    tokenizes texts; rows are truncated and built here. `hides`: treat special tokens in texts as
    text."""

    def __init__(self, spec: TokenizerSpec, *, hides: bool = False) -> None:
        assert spec.library is not None
        roles, ids = spec.roles, {token: i for i, token in enumerate(spec.vocab)}
        self.pad_id, self.unk_id = (
            ids[roles[name]] if name in roles else None for name in ("pad_token", "unk_token")
        )
        self.special = {ids[token] for token in spec.special_tokens} - {self.unk_id}
        self.hides = hides
        self.tokenizer, self.post_processor = loaded(spec.library.tokenizer_json, hides)

    def encode(
        self,
        texts: pa.Array,
        pairs: pa.Array | None,
        options: Mapping[str, Any],
        *,
        pages: _kernel.IdPages | None = None,
        least_ids: int = 0,
    ) -> tuple[list[Any], _kernel.Pages | None, dict[str, int]]:
        """See `_kernel.Encoder.encode`."""
        columns = [_strings(texts)] + ([] if pairs is None else [_strings(pairs)])
        if len(columns[-1]) != len(columns[0]):
            raise InputError(f"{len(columns[0])} texts, but {len(columns[1])} second ones")
        starts = range(0, max(len(columns[0]), 1), TEXTS_AT_ONCE)
        with ThreadPoolExecutor(options["threads"]) as threads:
            parts = list(threads.map(lambda at: self._encode(columns, at, options), starts))
        counts = {name: sum(part.counts[name] for part in parts) for name in parts[0].counts}
        counts["longest_text"] = max(part.counts["longest_text"] for part in parts)
        batches = [part.batch() for part in parts]
        batches = pa.Table.from_batches(batches).combine_chunks().to_batches() or batches[:1]
        ids = sum(len(batch.column(0).values) for batch in batches)
        if pages is None or ids < least_ids:
            return batches, None, counts
        return [], pages.pages([batch.column(0) for batch in batches]), counts

    def _encode(self, columns: list[pa.Array], start: int, options: Mapping[str, Any]) -> _Rows:
        """Return the rows of some texts."""
        rows = _Rows(self.processed, options, self.pad_id, self.unk_id)
        some = [column.slice(start, TEXTS_AT_ONCE) for column in columns]
        sides = [self._tokenize(column, start) for column in some]
        for number, texts in enumerate(zip(*sides, strict=True), start):
            if None in texts:
                rows.add_null(number)
                continue
            for encoding in texts:
                pairs = zip(encoding.ids, encoding.word_ids, strict=True)
                words = [word for i, word in pairs if i not in self.special and word is not None]
                rows.counts["words"] += len({*words})
                rows.counts["word_tokens"] += len(words)
                rows.counts["special_tokens"] += sum(i in self.special for i in encoding.ids)
                longest = max(rows.counts["longest_text"], len(encoding.ids))
                rows.counts["longest_text"] = longest
            try:
                rows.add(texts, number)
            except InputError as error:
                raise InputError(f"text {number}: {error.template}") from error
        return rows

    def _tokenize(self, column: pa.Array, start: int) -> list[Encoding | None]:
        """Return the tokens of texts, without the post-processor. Null stays null."""
        texts = column.to_pylist()
        full = [text for text in texts if text is not None]
        try:
            with one_line_errors(FAILED):
                encoded = iter(self.tokenizer.encode_batch(full))
            rows = [None if text is None else next(encoded) for text in texts]
            for row in rows if self.hides else ():
                self._check_hidden(row)
        except InputError as error:
            if len(texts) == 1:
                raise InputError(f"text {start}: {error.template}") from error
            parts = [column.slice(i, 1) for i in range(len(texts))]  # find the text that fails
            return [row for i, part in enumerate(parts, start) for row in self._tokenize(part, i)]
        return rows

    def processed(self, row: Encoding) -> Encoding:
        """Return the tokens of a text with the offsets of the post-processor."""
        return row if self.post_processor is None else self.post_processor.process(row, None, False)

    def _check_hidden(self, row: Encoding | None) -> None:
        found = self.special.intersection(() if row is None else row.ids)
        if found:
            raise InputError(
                f"a word becomes the special token {min(found)}, although special tokens are text"
            )

    # --- For a word table ---

    def tokenize_chunks(self, chunks: Sequence[str]) -> list[Encoding]:
        """Tokenize chunks of text as they occur in a text: after `BEFORE` and a space. Many
        tokenizers mark the beginning of a word by the space before it, and treat the beginning of a
        text differently."""
        with one_line_errors(FAILED):
            texts = [f"{BEFORE} {chunk}" for chunk in chunks]
            return [self.processed(row) for row in self.tokenizer.encode_batch(texts)]

    def tokens_of_chunks(self, chunks: Sequence[str]) -> list[list[str]]:
        """Return the tokens of chunks, without the tokens of the space before them."""
        return [
            [t for t, (_, end) in zip(row.tokens, row.offsets, strict=True) if end > len(BEFORE)]
            for row in self.tokenize_chunks(chunks)
        ]

    def add_to(self, sums: _kernel.Measurer, chunks: pa.RecordBatch) -> None:
        """Add the tokens of the chunks of a word table to sums. A token for the space before a
        chunk has no characters."""
        for start in range(0, len(chunks), CHUNKS_AT_ONCE):
            some = chunks.slice(start, CHUNKS_AT_ONCE)
            rows = self.tokenize_chunks(some["word"].to_pylist())
            ids = [row.ids for row in rows]
            offsets = chain.from_iterable(chain.from_iterable(row.offsets for row in rows))
            counts, all_ids = _numbers(map(len, ids)), _numbers(chain.from_iterable(ids))
            sums.add_tokens(some, counts, all_ids, _numbers(offsets), len(BEFORE))


class _Rows:
    """Rows in columns, and the counts of `EncodedTable`."""

    def __init__(
        self,
        processed: Callable[[Encoding], Encoding],
        options: Mapping[str, Any],
        pad_id: int | None,
        unk_id: int | None,
    ) -> None:
        self.processed, self.options = processed, options
        self.pad_id, self.unk_id = pad_id, unk_id
        names = ["input_ids", *options["columns"]]
        names += [] if options["stride"] is None else ["source_rows"]
        self.columns: dict[str, list[Any]] = {name: [] for name in names}
        self.counts = dict.fromkeys(COUNTS, 0)

    def add_null(self, source: int) -> None:
        """Add a null row."""
        for name, column in self.columns.items():
            column.append(source if name == "source_rows" else None)

    def add(self, texts: Sequence[Encoding], source: int) -> None:
        """Add the row of a text or a pair; with a stride, all of its rows.

        Raises InputError for a pair that the options cannot truncate.
        """
        layout, stride = self.options["layouts"][len(texts) - 1], self.options["stride"]
        lengths = kept = [len(encoding) for encoding in texts]
        if self.options["max_length"] is not None:
            added = sum(len(layout[name]) for name in ("before", "between", "after"))
            room = self.options["max_length"] - added
            kept = truncated_lengths(lengths, room, self.options["truncation"])
        if stride is None:
            self.counts["truncated_rows"] += kept != lengths
            self.counts["truncated_tokens"] += sum(lengths) - sum(kept)
        for number, row in enumerate(self._truncated(texts, lengths, kept)):
            types = list(layout["types"])
            if number:  # the row does not begin with the beginning of the truncated text
                truncated = int(kept[0] == lengths[0])
                types[truncated] = layout["overflow_types"][truncated]
            first, *others = zip(row, types, strict=False)
            between = [(layout["between"], None)] if others else []
            parts = [(layout["before"], None), first, *between, *others, (layout["after"], None)]
            self._add_row(parts, source)

    def _truncated(
        self, texts: Sequence[Encoding], lengths: Sequence[int], kept: Sequence[int]
    ) -> Iterator[list[Encoding]]:
        """Return the tokens of each row of texts with these numbers of kept tokens."""
        stride = self.options["stride"]
        truncated = [i for i in range(len(texts)) if kept[i] < lengths[i]]
        if stride is not None and len(truncated) > 1:
            raise InputError(
                f"both texts of a pair are too long for {opt.max_length}, and the library"
                " tokenizers"
                f" encodes them; with {opt.stride}, set {opt.truncation} to only_first or"
                " only_second"
            )
        for i in truncated:
            if stride is not None and stride >= kept[i]:
                raise InputError(
                    f"stride {stride} is not less than the {kept[i]} tokens left of a text in a row"
                )
            texts[i].truncate(kept[i], stride=stride or 0)
        row = [self.processed(text) for text in texts]
        yield row
        for i in truncated if stride is not None else ():
            for more in row[i].overflowing:
                yield [*row[:i], more, *row[i + 1 :]]

    def _add_row(self, parts: Sequence[Any], source: int) -> None:
        ids = [i for part in parts for i in _values("input_ids", *part)]
        self.counts["tokens"] += len(ids)
        self.counts["unknown"] += 0 if self.unk_id is None else ids.count(self.unk_id)
        missing = self.options["max_length"] - len(ids) if self.options["padding"] else 0
        for name, column in self.columns.items():
            if name == "source_rows":
                column.append(source)
            elif name == "num_tokens":
                column.append(len(ids))
            elif name == "input_ids":
                column.append(ids + [self.pad_id or 0] * missing)
            else:
                values = [value for part in parts for value in _values(name, *part)]
                column.append(values + [PADDING.get(name, 0)] * missing)

    def batch(self) -> pa.RecordBatch:
        """Return the rows."""
        ids = pa.uint16() if self.options["id_type"] == "uint16" else pa.int32()
        types = {"input_ids": pa.list_(ids), "source_rows": pa.int64()} | TYPES
        return pa.record_batch(
            {name: pa.array(values, types[name]) for name, values in self.columns.items()}
        )


def _values(name: str, tokens: Any, kind: int | None) -> list[Any]:
    """Return the values of a column for the tokens of a text, which have a type, or without one for
    added tokens."""
    if kind is None:
        match name:
            case "input_ids":
                return [number for number, _ in tokens]
            case "token_type_ids":
                return [kind for _, kind in tokens]
            case "attention_mask":
                return [1] * len(tokens)
        return [PADDING[name]] * len(tokens)
    match name:
        case "input_ids":
            return list(tokens.ids)
        case "offset_mapping":
            return list(tokens.offsets)
        case "word_ids":
            return list(tokens.word_ids)
    value = {"token_type_ids": kind, "attention_mask": 1, "special_tokens_mask": 0}[name]
    return [value] * len(tokens)


def _numbers(values: Iterable[int]) -> pa.Array:
    found = array("I", values)
    return pa.Array.from_buffers(pa.uint32(), len(found), [None, pa.py_buffer(found)])


def _strings(texts: pa.Array) -> pa.Array:
    """Return texts with valid UTF-8."""
    return pa.array(_kernel.repair_utf8(texts)[0])


def truncated_lengths(lengths: Sequence[int], room: int, truncation: str) -> list[int]:
    """Return how many tokens of each sequence are kept, at most `room` together.

    "longest_first" truncates the longer of two; both if half of the room (rounded down, and up for
    the longer one) is not enough for either. "only_first" and "only_second" keep one token of the
    truncated text, or raise InputError. Without any room nothing is kept.
    """
    if sum(lengths) <= room:
        return list(lengths)
    if room == 0:
        return [0] * len(lengths)
    if truncation == "longest_first":
        if len(lengths) == 1:
            return [room]
        shorter = min(*lengths, room // 2)
        first_is_longer = lengths[0] > lengths[1]
        return [room - shorter, shorter] if first_is_longer else [shorter, room - shorter]
    text = {"only_first": 0, "only_second": 1}[truncation]
    left = room - sum(lengths) + lengths[text]
    if left <= 0:
        raise InputError(f"truncation: {truncation}, and the other text leaves no room")
    return [left if i == text else length for i, length in enumerate(lengths)]
