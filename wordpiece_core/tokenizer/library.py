"""Tokenizers with a part that is not known here: the library `tokenizers` encodes texts with them.
`library_spec` reads such a file, and `LibraryEncoder` stands in for the kernel's encoder."""

from __future__ import annotations

import json
import os
import re
import secrets
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError, TokenizerWarning, one_line, shown
from wordpiece_core.rules import truncated_lengths
from wordpiece_core.symbols import BYTES, SPACE_MARK
from wordpiece_core.tokenizer.files import AS_IT_IS, ROLES, TokenizerSpec, usual_roles
from wordpiece_core.tokenizer.formats.json_text import Json
from wordpiece_core.tokenizer.formats.tokenizer_json_reading import model_kind
from wordpiece_core.tokenizer.models import Layout, Library, Template

PARALLELISM = "TOKENIZERS_PARALLELISM"
TEXTS_AT_ONCE = 1024  # of texts: their tokens are Python objects for a while
CHARACTERS_AT_ONCE = 1 << 18
IDS_AT_ONCE = 1 << 28  # of a batch
MOST_IDS = 1 << 24  # with those that have no token
CHUNKS_AT_ONCE = 4096  # of a word table
BEFORE = "a"  # what each chunk of a word table is tokenized after, with a space between
FAILED = "the library tokenizers cannot encode it"
INT8 = ("attention_mask", "token_type_ids", "special_tokens_mask")

Encoding = Any  # of `tokenizers`


class EncodedByLibraryWarning(TokenizerWarning):
    """A tokenizer has a part that is not known here, so the library `tokenizers` encodes texts with
    it. The arguments are its path and the part."""

    @property
    def fact(self) -> str:
        """The message."""
        path, part = self.args
        return f"{path} is encoded by the library tokenizers, at its lower speed: {part}"


# --- Reading --------------------------------------------------------------------------------------


def library_spec(value: Json, text: str, path: str, refusal: InputError) -> TokenizerSpec:
    """The spec of a `tokenizer.json` that cannot be read natively. What the library reads is not
    damaged, so it decides.

    Args:
        value: The JSON of the file.
        text: The same as text.
        path: What errors name.
        refusal: Why it cannot be read natively. It is raised if the library cannot read it either.

    Raises OptionError if the library is not installed, and InputError for ids that are random.
    """
    model = value.get("model")
    kind = model_kind(model) if isinstance(model, dict) else None
    if not isinstance(model, dict) or kind is None:
        raise refusal
    if model.get("dropout"):
        raise InputError(f"{path}: dropout is {shown(model['dropout'])}; set it to null")
    try:
        tokenizer = loaded(text)
    except OptionError as error:
        raise OptionError(f"{refusal}, or {error}") from error
    except InputError as error:
        raise InputError(f"{refusal}; and {error}") from error
    ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    rows = _processed(tokenizer, path)
    added = (i for row in rows for i, w in zip(row.ids, row.word_ids, strict=True) if w is None)
    size = max([*ids.values(), *added], default=-1) + 1
    if size > MOST_IDS:
        raise InputError(f"{path}: there is an id {size - 1:,}, and only {MOST_IDS:,} are possible")
    vocab = _tokens_by_id(tokenizer, ids, size)
    special = [t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special]
    around = _layout(rows[0], vocab), _layout(rows[1], vocab)
    rules = {k: v for k, v in value.items() if k not in ("model", "added_tokens")}
    return TokenizerSpec(
        vocab,
        AS_IT_IS,
        continuing_prefix=model.get("continuing_subword_prefix") or "",
        more_special_tokens=tuple(special),
        model=Library(text, kind, _word_boundary(rules)),
        roles=_roles(value, model, ids),
        added=Template(*around),
    )


def _tokens_by_id(tokenizer: Any, ids: Mapping[str, int], size: int) -> list[str]:
    """The tokens by id. Where there is none, its place is marked."""
    vocab = [no_token(number) for number in range(size)]
    for token, number in ids.items():
        vocab[number] = token
    if len({*ids.values()}) < len(ids):  # several tokens have the same id
        for number in ids.values():
            vocab[number] = tokenizer.id_to_token(number)
    return vocab


def no_token(number: int) -> str:
    """What stands in a vocabulary for an id without a token."""
    return f"<no token {number}>"


def _word_boundary(rules: Json) -> str | None:
    written = json.dumps(rules, ensure_ascii=False)
    if '"ByteLevel"' in written:
        return BYTES
    return SPACE_MARK if SPACE_MARK in written else None


def _roles(value: Json, model: Json, ids: Mapping[str, int]) -> dict[str, str]:
    """The roles of tokens: the usual names of those in the vocabulary; how the file pads; and the
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


def _processed(tokenizer: Any, path: str) -> list[Encoding]:
    """A text, and two, with the tokens that the post-processor puts around them."""
    first, second = (_encoding([0], ["a"], [0], [(0, 1)], kind) for kind in (0, 1))
    with one_line_errors(f"{path}: the library tokenizers cannot put tokens around a text"):
        return [tokenizer.post_process(first, pair, True) for pair in (None, second)]


def _layout(row: Encoding, vocab: Sequence[str]) -> Layout:
    """What a row of texts with one token each is made of."""
    texts = [i for i, word in enumerate(row.word_ids) if word is not None] or [len(row)]
    parts: list[list[tuple[str, int]]] = [[], [], []]
    for i, (number, kind, word) in enumerate(zip(row.ids, row.type_ids, row.word_ids, strict=True)):
        if word is None:
            parts[(i > texts[0]) + (i > texts[-1])].append((vocab[number], kind))
    before, between, after = parts
    return Layout(before, between, after)


def _encoding(
    ids: Sequence[int],
    tokens: Sequence[str],
    words: Sequence[int | None],
    offsets: Sequence[tuple[int, int]],
    type_id: int,
    *,
    is_added: bool = False,
) -> Encoding:
    """An encoding of the library of these tokens of a text. There is no constructor of one, but it
    can be pickled."""
    from tokenizers import Encoding

    state = {
        "ids": ids,
        "type_ids": [type_id] * len(ids),
        "tokens": tokens,
        "words": words,
        "offsets": offsets,
        "special_tokens_mask": [int(is_added)] * len(ids),
        "attention_mask": [1] * len(ids),
        "overflowing": [],
        "sequence_ranges": {},
    }
    encoding = Encoding()
    encoding.__setstate__(json.dumps(state).encode())
    return encoding


@lru_cache(4)
def loaded(
    text: str,
    max_length: int | None = None,
    stride: int = 0,
    cut: str = "longest_first",
    *,
    is_bare: bool = False,
    hides: bool = False,
) -> Any:
    """The tokenizer of the library, without the truncation and padding of its file.

    Args:
        text: The text of its `tokenizer.json`.
        max_length: What it truncates rows to, if it does.
        stride: How many tokens the rows of a text share.
        cut: Which text of a pair is truncated.
        is_bare: Whether the post-processor is left out.
        hides: Whether special tokens are not searched for in texts.

    Raises OptionError if the library is not installed, and InputError for what it cannot read.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise OptionError(
            "to encode with the library tokenizers: pip install 'wordpiece-beam[tokenizers]'"
        ) from error
    # The threads of a job are those that call the library. With threads of its own for each of
    # them there would be too many.
    os.environ.setdefault(PARALLELISM, "false")
    with one_line_errors("the library tokenizers cannot read it"):
        tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    post_processor, tokenizer.post_processor = tokenizer.post_processor, None
    if max_length is not None:
        # Without a post-processor it is not checked against tokens that may not be added at all.
        tokenizer.enable_truncation(max_length, stride=stride, strategy=cut)
    if not is_bare:
        tokenizer.post_processor = post_processor
    tokenizer.encode_special_tokens = hides
    return tokenizer


@contextmanager
def one_line_errors(what: str) -> Iterator[None]:
    """Errors of the library, which are of any class, or panics, as InputError."""
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise InputError(f"{what} ({one_line(error)})") from error
        raise


def library_text(model: Library, tokens: Sequence[str]) -> str:
    """The text of tokens, as the decoder of the library makes it."""
    tokenizer = loaded(model.tokenizer_json)
    if tokenizer.decoder is None:
        return " ".join(tokens)
    with one_line_errors("the library tokenizers cannot decode the tokens"):
        return str(tokenizer.decoder.decode(list(tokens)))


# --- Encoding -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Encoded:
    """The rows of a text or a pair, and the ids of the first. `tokens`: how many tokens its texts
    have; `kept`: how many of them are in the first row; `words` and `word_tokens`: see
    `EncodedBatch`."""

    rows: list[Encoding]
    ids: list[int]
    tokens: int
    kept: int
    words: int
    word_tokens: int


@dataclass
class _Rows:
    """Rows column by column, and the counts of `EncodedBatch`."""

    options: Mapping[str, Any]
    pad_id: int | None
    unk_id: int | None
    columns: dict[str, array[int]] = field(init=False)
    ends: array[int] = field(init=False)
    valid: bytearray = field(init=False)
    sources: array[int] = field(init=False)
    batches: list[pa.RecordBatch] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0] * 6)

    def __post_init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        kinds = {"input_ids": "H" if self.options["id_type"] == "uint16" else "i"}
        kinds |= {name: "b" if name in INT8 else "i" for name in self.options["columns"]}
        self.columns = {name: array(kind) for name, kind in kinds.items()}
        self.ends, self.valid, self.sources = array("i", [0]), bytearray(), array("q")

    def push_all(self, encoded: _Encoded, source: int) -> None:
        """Adds the rows of a text or a pair."""
        one_row = self.options["stride"] is None
        self.push(encoded.rows[0], encoded.ids, source)
        for encoding in () if one_row else encoded.rows[1:]:
            self.push(encoding, encoding.ids, source)
        self.counts[2] += encoded.words
        self.counts[3] += encoded.word_tokens
        if one_row and encoded.kept < encoded.tokens:
            self.counts[4] += 1
            self.counts[5] += encoded.tokens - encoded.kept

    def push_null(self, source: int) -> None:
        """Adds a row that is null."""
        if "num_tokens" in self.columns:
            self.columns["num_tokens"].append(0)
        self._end(source, valid=False)

    def push(self, encoding: Encoding, ids: list[int], source: int) -> None:
        """Adds a row, with padding if that is wanted."""
        length = len(ids)
        missing = (self.options["max_length"] - length) if self.options["padding"] else 0
        for name, column in self.columns.items():
            if name == "input_ids":
                column.fromlist(ids)
                column.extend([self.pad_id or 0] * missing)
            elif name == "attention_mask":
                column.extend([1] * length + [0] * missing)
            elif name == "num_tokens":
                column.append(length)
            elif name == "offset_mapping":
                column.extend(chain.from_iterable(encoding.offsets))
                column.extend([0] * (2 * missing))
            elif name == "word_ids":
                column.extend(-1 if word is None else word for word in encoding.word_ids)
                column.extend([-1] * missing)
            elif name == "token_type_ids":
                column.fromlist(encoding.type_ids)
                column.extend([0] * missing)
            else:
                column.fromlist(encoding.special_tokens_mask)
                column.extend([1] * missing)
        self.counts[0] += length
        if self.unk_id is not None:
            self.counts[1] += ids.count(self.unk_id)
        self._end(source, valid=True)

    def _end(self, source: int, *, valid: bool) -> None:
        self.ends.append(len(self.columns["input_ids"]))
        self.valid.append(valid)
        if self.options["stride"] is not None:
            self.sources.append(source)
        if len(self.columns["input_ids"]) >= IDS_AT_ONCE:
            self.batches.append(self._batch())
            self._clear()

    def finish(self) -> list[pa.RecordBatch]:
        """The batches of all rows; one at least."""
        if self.valid or not self.batches:
            self.batches.append(self._batch())
        return self.batches

    def _batch(self) -> pa.RecordBatch:
        rows = len(self.valid)
        is_null = pa.array([not valid for valid in self.valid], pa.bool_())
        ends = pa.Array.from_buffers(pa.int32(), rows + 1, [None, pa.py_buffer(self.ends)])
        mask = None if all(self.valid) else is_null
        made = {
            name: self._column(name, values, ends, mask) for name, values in self.columns.items()
        }
        if self.options["stride"] is not None:
            made["source_rows"] = pa.Array.from_buffers(
                pa.int64(), rows, [None, pa.py_buffer(self.sources)]
            )
        return pa.RecordBatch.from_pydict(made)

    def _column(
        self, name: str, values: array[int], ends: pa.Array, mask: pa.Array | None
    ) -> pa.Array:
        kind = {"H": pa.uint16(), "i": pa.int32(), "b": pa.int8()}[values.typecode]
        flat = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
        if name == "num_tokens":
            return flat if mask is None else pc.if_else(mask, None, flat)
        if name == "offset_mapping":
            flat = pa.FixedSizeListArray.from_arrays(flat, 2)
        elif name == "word_ids":
            flat = pc.if_else(pc.less(flat, 0), None, flat)
        return pa.ListArray.from_arrays(ends, flat, mask=mask)


class LibraryEncoder:
    """Encodes with the library `tokenizers` as `_kernel.Encoder` does: the same arguments, columns
    and counts. `hides`: texts do not become special tokens (`split_special_tokens`)."""

    def __init__(self, spec: TokenizerSpec, *, hides: bool = False) -> None:
        assert spec.library is not None
        roles, ids = spec.tokens_by_role, {token: i for i, token in enumerate(spec.vocab)}
        text = spec.library.tokenizer_json
        self.unk_token = roles.get("unk_token")
        self.pad_id, self.unk_id = (
            ids[roles[name]] if name in roles else None for name in ("pad_token", "unk_token")
        )
        self.special = {ids[token] for token in spec.special_tokens}
        self.around = spec.added or Template()
        added = {token for token, _ in [*self.around.single.added, *self.around.pair.added]}
        self.adds_special_alone = added <= {*spec.special_tokens}
        self.vocab = spec.vocab
        self.forbidden: set[int] = set()
        if hides:
            self.forbidden = self.special - {self.unk_id}
            self.special = set()
            text = _without_special_tokens(text, self.unk_token)
        # They stay loaded, however many tokenizers are in use.
        self._loaded = lru_cache(4)(partial(loaded, text, hides=hides))

    def encode(
        self,
        texts: pa.Array,
        pairs: pa.Array | None,
        options: Mapping[str, Any],
        *,
        pages: _kernel.IdPages | None = None,
        least_ids: int = 0,
    ) -> tuple[list[Any], _kernel.Pages | None, list[int]]:
        """See `_kernel.Encoder.encode`."""
        columns = [_strings(texts)] + ([] if pairs is None else [_strings(pairs)])
        rows = len(columns[0])
        if len(columns[-1]) != rows:
            raise InputError(f"{rows} texts, but {len(columns[1])} second ones")
        step = max(-(-rows // options["threads"]), 1)
        starts = range(0, rows, step) or range(1)
        with ThreadPoolExecutor(len(starts)) if len(starts) > 1 else nullcontext() as threads:
            run = map if threads is None else threads.map
            parts = list(run(lambda at: self._part(columns, at, at + step, options), starts))
        counts = [sum(some) for some in zip(*(part.counts for part in parts), strict=True)]
        batches = [batch for part in parts for batch in part.finish()]
        ids = sum(len(batch.column(0).values) for batch in batches)
        if pages is None or ids < least_ids:
            return batches, None, counts
        return [], pages.pages([batch.column(0) for batch in batches]), counts

    def _part(
        self, columns: list[pa.Array], start: int, end: int, options: Mapping[str, Any]
    ) -> _Rows:
        """The rows of some texts."""
        made = _Rows(options, self.pad_id, self.unk_id)
        for group in _groups(columns, start, end):
            full = {
                number: tuple(text for text in row if text is not None)
                for number, row in group.items()
                if None not in row
            }
            encoded = iter(self._encoded(full, options))
            for number in group:
                if number in full:
                    made.push_all(next(encoded), number)
                else:
                    made.push_null(number)
        return made

    def _encoded(
        self, rows: Mapping[int, tuple[str, ...]], options: Mapping[str, Any]
    ) -> list[_Encoded]:
        """Encodes texts or pairs, by their numbers."""
        encode = self._pairs if any(len(row) > 1 for row in rows.values()) else self._texts
        try:
            return encode([*rows.values()], options)
        except InputError as error:
            if len(rows) == 1:
                (number,) = rows
                raise InputError(f"text {number}: {error}") from error
        # One of them is to blame.
        return [found for row in rows.items() for found in self._encoded(dict([row]), options)]

    def _texts(self, rows: list[tuple[str, ...]], options: Mapping[str, Any]) -> list[_Encoded]:
        most, stride = options["max_length"], options["stride"] or 0
        first, last = self._boundaries(options)
        if most is not None:
            most -= len(first) + len(last)
        tokenizer = self._library(most, stride, options["truncation"])
        texts = [text for (text,) in rows]
        with one_line_errors(FAILED):
            encodings = tokenizer.encode_batch(
                texts, add_special_tokens=options["add_special_tokens"]
            )
        found = []
        for text, encoding in zip(texts, encodings, strict=True):
            made = [encoding] if most is None else [encoding, *encoding.overflowing]
            ids = [row.ids for row in made]
            tally = self._tally(text, made, ids, stride)
            if first or last:
                made = [row.merge([*first, row, *last], growing_offsets=False) for row in made]
            found.append(_Encoded(made, made[0].ids, *tally))
        return found

    def _boundaries(self, options: Mapping[str, Any]) -> tuple[list[Encoding], list[Encoding]]:
        """What marks the beginning and the end of a text beside what the post-processor adds, as
        rows."""
        own = self.around.single if options["add_special_tokens"] else Layout()
        layout = options["layouts"][0]
        before = layout["before"][: len(layout["before"]) - len(own.before)]
        after = layout["after"][len(own.after) :]

        def rows(tokens: Sequence[tuple[int, int]]) -> list[Encoding]:
            return [
                _encoding([i], [self.vocab[i]], [None], [(0, 0)], kind, is_added=True)
                for i, kind in tokens
            ]

        return rows(before), rows(after)

    def _pairs(self, rows: list[tuple[str, ...]], options: Mapping[str, Any]) -> list[_Encoded]:
        """Pairs are truncated here, because the library combines all that it truncates of one text
        with all of the other, which may be more than fits into memory."""
        adds, most, stride = (options[n] for n in ("add_special_tokens", "max_length", "stride"))
        plain = self._library()
        raw = self._loaded(is_bare=True)
        with one_line_errors(FAILED):
            sides = [
                raw.encode_batch([row[i] for row in rows], add_special_tokens=False) for i in (0, 1)
            ]
        room = None if most is None else most - adds * plain.num_special_tokens_to_add(True)
        found = []
        for texts, pair in zip(rows, zip(*sides, strict=True), strict=True):
            lengths = kept = [len(encoding) for encoding in pair]
            if room is not None:
                kept = truncated_lengths(lengths, room, options["truncation"])
            cuts, joined = kept, plain
            if stride is not None and kept != lengths:
                _check_stride(stride, lengths, kept)
                cuts, joined = lengths, self._library(most, stride, options["truncation"])
            types_matter = "token_type_ids" in options["columns"]
            first, second = (
                encoding
                if length == cut and not (types_matter and type_id)
                else _first_tokens(encoding, cut, type_id)
                for type_id, (encoding, length, cut) in enumerate(
                    zip(pair, lengths, cuts, strict=True)
                )
            )
            with one_line_errors(FAILED):
                row = joined.post_process(first, second, adds)
            words = [self._tally(t, [e], [e.ids], 0) for t, e in zip(texts, pair, strict=True)]
            found.append(
                _Encoded(
                    [row, *row.overflowing],
                    row.ids,
                    sum(lengths),
                    sum(kept),
                    *(sum(some) for some in zip(*(w[2:] for w in words), strict=True)),
                )
            )
        return found

    def _library(self, max_length: int | None = None, stride: int = 0, cut: str = "") -> Any:
        """A tokenizer of the library that truncates like this."""
        return self._loaded() if max_length is None else self._loaded(max_length, stride, cut)

    def _tally(
        self, text: str, rows: Sequence[Encoding], all_ids: Sequence[list[int]], stride: int
    ) -> tuple[int, int, int, int]:
        """Of a text with these rows and their ids: the number of its tokens, those in the first
        row, its words and their tokens. `stride`: how many tokens each row has from the one
        before."""
        all_words: set[int | None] = set()
        tokens = kept = word_tokens = 0
        for number, (row, ids) in enumerate(zip(rows, all_ids, strict=True)):
            words = row.word_ids
            if self.forbidden and not self.forbidden.isdisjoint(ids):
                self._check_hidden(ids, words)
            again = stride if number else 0
            added = words.count(None)
            tokens += len(ids) - added - again
            if number == 0:
                kept = tokens
            if again or self._may_have_special(ids, added):
                words = self._own_words(row, ids, words, text)[again:]
                words = [word for word in words if word is not None]
                added = 0
            all_words.update(words)
            word_tokens += len(words) - added
        all_words.discard(None)
        return tokens, kept, len(all_words), word_tokens

    def _may_have_special(self, ids: list[int], added: int) -> bool:
        """Whether special tokens may be written in a text, which are not words."""
        special = sum(map(self.special.__contains__, ids)) if self.special else 0
        return special > 0 and not (self.adds_special_alone and special == added)

    def _own_words(
        self, row: Encoding, ids: list[int], words: list[int | None], text: str
    ) -> list[int | None]:
        """The word of each token of the text; None if it is a special token that is written there.
        The unknown token may also stand for a word."""
        offsets = row.offsets if self.unk_id in self.special else ()
        own: list[int | None] = []
        for place, (token, word) in enumerate(zip(ids, words, strict=True)):
            if word is None:
                continue
            written = token in self.special and (
                token != self.unk_id or text[slice(*offsets[place])].strip() == self.unk_token
            )
            own.append(None if written else word)
        return own

    def _check_hidden(self, ids: Sequence[int], words: Sequence[int | None]) -> None:
        for token, word in zip(ids, words, strict=True):
            if word is not None and token in self.forbidden:
                raise InputError(
                    f"a word becomes the special token {token}, in spite of `split_special_tokens`"
                )

    # --- For a word table ---

    def tokenize_chunks(self, chunks: Sequence[str]) -> list[Encoding]:
        """Tokenizes what is between white space, as it stands in a text: after `BEFORE` and a
        space. Many tokenizers mark the beginning of a word by the space before it, and treat the
        beginning of a text in a way of its own."""
        with one_line_errors(FAILED):
            texts = [f"{BEFORE} {chunk}" for chunk in chunks]
            return list(self._library().encode_batch(texts, add_special_tokens=False))

    def tokens_of_chunks(self, chunks: Sequence[str]) -> list[list[str]]:
        """The tokens of chunks, without those of the space in front."""
        return [
            [t for t, (_, end) in zip(row.tokens, row.offsets, strict=True) if end > len(BEFORE)]
            for row in self.tokenize_chunks(chunks)
        ]

    def add_to(self, sums: _kernel.Measurer, chunks: pa.RecordBatch) -> None:
        """Tokenizes the chunks of a word table, and adds their tokens to sums. A token for the
        space in front stands for no character."""
        for start in range(0, len(chunks), CHUNKS_AT_ONCE):
            some = chunks.slice(start, CHUNKS_AT_ONCE)
            rows = self.tokenize_chunks(some["word"].to_pylist())
            ids = [row.ids for row in rows]
            offsets = chain.from_iterable(chain.from_iterable(row.offsets for row in rows))
            counts, all_ids = _numbers(map(len, ids)), _numbers(chain.from_iterable(ids))
            sums.add_tokens(some, counts, all_ids, _numbers(offsets), len(BEFORE))


def _numbers(values: Iterable[int]) -> pa.Array:
    found = array("I", values)
    return pa.Array.from_buffers(pa.uint32(), len(found), [None, pa.py_buffer(found)])


def _strings(texts: pa.Array) -> pa.Array:
    """Texts whose invalid UTF-8 is replaced."""
    return pa.array(_kernel.repair_utf8(texts)[0])


def _groups(
    columns: list[pa.Array], start: int, end: int
) -> Iterator[dict[int, tuple[str | None, ...]]]:
    """Texts or pairs by their numbers, some at a time."""
    group: dict[int, tuple[str | None, ...]] = {}
    size = 0
    for at in range(start, min(end, len(columns[0])), TEXTS_AT_ONCE):
        slices = [column.slice(at, min(TEXTS_AT_ONCE, end - at)).to_pylist() for column in columns]
        for number, row in enumerate(zip(*slices, strict=True), at):
            group[number] = row
            size += sum(len(text) for text in row if text is not None)
            if size >= CHARACTERS_AT_ONCE:
                yield group
                group, size = {}, 0
        yield group
        group, size = {}, 0


def _check_stride(stride: int, lengths: Sequence[int], kept: Sequence[int]) -> None:
    for length, left in zip(lengths, kept, strict=True):
        if left < length and stride >= left:
            raise InputError(
                f"stride {stride} is not less than the {left} tokens left of a text in a row"
            )


def _first_tokens(encoding: Encoding, length: int, type_id: int) -> Encoding:
    """The first tokens of a text, with another token type."""
    kept = slice(length)
    return _encoding(
        encoding.ids[kept],
        encoding.tokens[kept],
        encoding.word_ids[kept],
        encoding.offsets[kept],
        type_id,
    )


@lru_cache(2)
def _without_special_tokens(text: str, unk_token: str | None) -> str:
    """The `tokenizer.json` of the same tokenizer whose special tokens, except the unknown one, have
    names that no text contains. So no text becomes one."""
    secret = secrets.token_hex(16)
    # The digits of numbers stay: the library does not always read the float that is nearest.
    value: Json = json.loads(text, parse_float=lambda digits: f"{secret} {digits}")
    model = value["model"]
    added = value.get("added_tokens") or []
    special = {token["content"] for token in added if token["special"]}
    special.discard(unk_token)
    for merge in model.get("merges", ()):  # their results must keep their names
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        special -= {left, right, left + right}
    names = {token: f"{token} {secret}" for token in special}
    for token in added:
        token["content"] = names.get(token["content"], token["content"])
    if isinstance(model["vocab"], dict):
        model["vocab"] = {names.get(t, t): number for t, number in model["vocab"].items()}
    else:
        model["vocab"] = [[names.get(t, t), score] for t, score in model["vocab"]]
    return re.sub(f'"{secret} ([^"]+)"', r"\1", json.dumps(value, ensure_ascii=False))
