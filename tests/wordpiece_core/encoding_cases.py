"""Random tokenizers, texts and options that are hard to encode, encoded by the oracle and by
`tokenizers`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any

import tokenizers
from tokenizers.processors import TemplateProcessing

import wordpiece_core as wp
from tests import oracle
from wordpiece_core.options import (
    ENCODING_COLUMNS,
    TRUNCATIONS,
    EncodingOptions,
    TextOptions,
)

from ..parity import random_cases
from .strategies import ODD

COLUMNS = ("input_ids", *ENCODING_COLUMNS)
Rows = list[dict[str, Any] | None]


def is_old(c: str) -> bool:
    """Return True for a character that is the same in all versions of Unicode from 3.2 to the
    version of this Python, so this Python and `tokenizers` have the same rules for it."""
    old = unicodedata.ucd_3_2_0
    category = unicodedata.category(c)
    return (
        category == old.category(c) not in ("Cn", "Cs")
        and unicodedata.combining(c) == old.combining(c)
        and unicodedata.normalize("NFD", c) == old.normalize("NFD", c)
    )


@lru_cache(maxsize=1)
def old_characters() -> str:
    return "".join(c for c in map(chr, range(0x110000)) if is_old(c))


SPECIAL_TEXT = (
    *("[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]", "[mask]", "[MASK", "MASK]", "[[MASK]]"),
    *("[MASKED]", "[SE", "P]", "[", "]", "[M\u0301ASK]", "[MASK]\u0301", "[SEP][SEP]"),
    *("<s>", "</s>", "é", "##a"),
)
ALPHABETS: tuple[Sequence[str], ...] = (
    *("ab", "aab ", "abcdefg  ", "aA#", "aàáäÀb\u0301\u0300\u0308 ", "abİıIiẞßſ\u0307 "),
    "a\u0301\u0323\u0327\u0345\u0344\u0341\u0f71\u0f72\u0f73\u0fb7\u1d15\u0591",
    # kept marks, which are reordered with removed marks
    "ab\U0001d165\U0001d16d\U0001d172\u0301\u0323\u031b\u0344 ",
    *("가각한ᄀ\u1161\u11a8\u11ab글a ", "中文字豈\U0002f800\U00020000a々、。ー "),
    *("😀👩🏽\u200d\ufe0f\U0001f1e6\U0001f1e8\u20e31 ", "!?.,'-$€…—«»_^`|~+<=>a "),
    " \t\n\r\x0b\x0c\x85\xa0\u2003\u2028\u3000\u1680\x1ca",
    *("\x00\x7f\xad\u200b\u200e\u202e\ufeff\ufffdab ", "привет МИР ёй ΣΑς "),
    "\U00010400\U00010428\U0001d400\U000e0041\ue000\U000f0000\U0010ffffa ",
    [c for c in ODD if is_old(c)],
    SPECIAL_TEXT,
    [*SPECIAL_TEXT, *"ab  é.中"],
)
PREFIXES = (*["##"] * 8, "", "@", "▁", "a", "é", "[")
MORE_SPECIAL = ("<s>", "</s>", "[MASK]]", "é", "ab", "##a", " ", "[SEP][SEP]", "中", "a b")


@dataclass(frozen=True)
class Case:
    vocab: list[str]
    options: dict[str, Any]
    """Options of the tokenizer."""
    encoding: EncodingOptions
    texts: list[str | None]
    pairs: list[str | None] | None = None
    unk_scope: str = "word"

    def tokenizer(self) -> wp.Tokenizer:
        return wp.Tokenizer(self.vocab, unk_scope=self.unk_scope, **self.options)

    def rows(self) -> Iterator[tuple[str | None, str | None]]:
        """Yield each text with its pair, if there are pairs; (None, None) for a null row."""
        pairs = self.pairs or [None] * len(self.texts)
        for text, pair in zip(self.texts, pairs, strict=True):
            null = text is None or (pair is None and self.pairs is not None)
            yield (None, None) if null else (text, pair)


@dataclass(frozen=True)
class Encoded:
    """Rows of columns, with the number of the text of each."""

    rows: Rows = field(default_factory=list)
    sources: list[int] = field(default_factory=list)


def random_text(rng: Random, alphabets: Sequence[Sequence[str]], length: int) -> str:
    return "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.randint(0, length)))


def random_case(rng: Random, rows: int = 6) -> Case:
    old = [rng.choice(old_characters()) for _ in range(12)]
    alphabets = [rng.choice([*ALPHABETS, old]) for _ in range(rng.choice([1, 1, 2, 3]))]
    length = rng.choice([1, 3, 8, 8, 20, 40, 150])
    texts: list[str | None] = [random_text(rng, alphabets, length) for _ in range(rows)]
    pairs: list[str | None] | None = None
    if rng.random() < 0.5:
        pairs = [random_text(rng, alphabets, rng.choice([length, 5])) for _ in range(rows)]
    options = random_options(rng)
    vocab = random_vocabulary(rng, "".join(filter(None, texts)), options)
    for column in (texts, pairs or []):
        if rng.random() < 0.2 and column:
            column[rng.randrange(rows)] = None
    if rng.random() < 0.1:
        texts[0] = rng.choice(alphabets)[0] * rng.choice([98, 99, 100, 101, 102, 1030])
    scope = rng.choice(["word", "word", "word", "character"])
    encoding = replace(random_encoding(rng), **random_boundaries(rng, vocab, pairs is not None))
    return Case(vocab, options, encoding, texts, pairs, scope)


def random_boundaries(rng: Random, vocab: Sequence[str], pairs: bool) -> dict[str, Any]:
    """Return tokens at the ends of texts, rarely with pairs, which refuse them."""
    found: dict[str, Any] = {}
    tokens = [token for token in vocab if "\0" not in token]  # options cannot contain NUL
    for flag, name, usual in (
        ("prepend_bos", "bos_token", "[CLS]"),
        ("append_eos", "eos_token", "[SEP]"),
    ):
        if rng.random() < (0.05 if pairs else 0.3):
            found[flag] = True
            found[name] = rng.choice([rng.choice(tokens), rng.choice(tokens), usual, None])
    return found


def random_options(rng: Random) -> dict[str, Any]:
    def off(share: float) -> bool:
        return rng.random() > share

    return {
        "lowercase": off(0.4),
        "strip_accents": rng.choice([None, None, True, False]),
        "clean_text": off(0.2),
        "handle_chinese_chars": off(0.3),
        "pre_tokenizer": rng.choice(["bert", "bert", "bert", "whitespace"]),
        "max_word_length": rng.choice([100, 100, 100, 1, 2, 3, 5, 10, 2**32 - 1]),
        "continuing_prefix": rng.choice(PREFIXES),
        "more_special_tokens": rng.sample(MORE_SPECIAL, rng.choice([0, 0, 0, 1, 2, 3])),
    }


def random_vocabulary(rng: Random, text: str, options: dict[str, Any]) -> list[str]:
    """Return fragments of the words of the text, and unusual tokens."""
    prefix = options["continuing_prefix"]
    text_options = {n: options[n] for n in TextOptions.__dataclass_fields__ if n in options}
    words = [*oracle.words(text, **text_options), *text.split()] or ["a"]
    pieces = [*"ab", "ab", "a", "abc", "#", "##", "###", "", " ", "\u0301", "é", prefix]
    for _ in range(rng.choice([0, 5, 20, 60])):
        word = rng.choice(words)
        start = rng.randrange(len(word))
        pieces.append(word[start : start + rng.choice([1, 1, 2, 3, 5, 200])])
    if rng.random() < 0.7:  # all characters, so words are covered
        pieces += sorted({c for word in words for c in word})
    tokens = [form for piece in pieces for form in (piece, prefix + piece) if rng.random() < 0.8]
    missing = rng.choice([(), (), (), (), ("[CLS]",), ("[MASK]",), ("[CLS]", "[SEP]", "[PAD]")])
    tokens += [token for token in oracle.SPECIAL_TOKENS if token not in missing]
    tokens += [token for token in options["more_special_tokens"] if token != ""]
    rng.shuffle(tokens)
    return list(dict.fromkeys(tokens))


def random_encoding(rng: Random) -> EncodingOptions:
    max_length = rng.choice([None, None, rng.randint(1, 8), rng.randint(4, 16), rng.randint(8, 60)])
    strides = [None, None, 0, 1, 2, rng.randint(0, 12)]
    return EncodingOptions(
        add_special_tokens=rng.random() < 0.8,
        special_tokens_in_text="text" if rng.random() < 0.3 else "parse",
        max_length=max_length,
        truncation=rng.choice([TRUNCATIONS[0], *TRUNCATIONS]),
        stride=None if max_length is None else rng.choice(strides),
        padding=max_length is not None and rng.random() < 0.4,
        columns=ENCODING_COLUMNS,
    )


def by_reference(case: Case) -> Encoded:
    """Encode with the oracle. Raises OptionError for options that are wrong for any text, and
    InputError like the kernel."""
    tok = case.tokenizer()
    encoding = case.encoding.values()
    options = tok.spec.text.values() | encoding
    for name in ("columns", "id_type", "normalizer"):
        options.pop(name)
    options |= {
        "max_word_length": tok.spec.max_word_length,
        "continuing_prefix": tok.spec.continuing_prefix,
        "special_tokens": tok.special_tokens,
        "unk_scope": case.unk_scope,
    }
    oracle.encode_rows("", None if case.pairs is None else "", vocab=case.vocab, **options)
    encoded = Encoded()
    for source, (text, pair) in enumerate(case.rows()):
        rows: Rows = [None]
        if text is not None:
            found = oracle.encode_rows(text, pair, vocab=case.vocab, **options)
            rows = [row | {"offset_mapping": [*map(list, row["offset_mapping"])]} for row in found]
        encoded.rows.extend(rows)
        encoded.sources.extend([source] * len(rows))
    return encoded


def peer(case: Case) -> tokenizers.Tokenizer:
    """Return the same tokenizer of `tokenizers`, with truncation and padding."""
    special = [*oracle.SPECIAL_TOKENS, *case.options.get("more_special_tokens", ())]
    options = {k: v for k, v in case.options.items() if k != "more_special_tokens"}
    value = random_cases.wordpiece(case.vocab, special, **options)
    # `tokenizers` checks a stride for rows with added tokens, even if these are left out.
    if case.encoding.stride is not None and not case.encoding.add_special_tokens:
        value["post_processor"] = None
    made = random_cases.peer(value, case.encoding)
    if case.encoding.marks_boundaries:
        before, after = ends(case.encoding)
        ids = {token: case.vocab.index(token) for token in {*before, *after}}
        made.post_processor = TemplateProcessing(
            single=[*before, "$A", *after], special_tokens=[*ids.items()]
        )
    return made


def ends(encoding: EncodingOptions) -> tuple[list[str], list[str]]:
    """Return the tokens before and after a text of BERT's tokenizers, each once."""
    before, after = (["[CLS]"], ["[SEP]"]) if encoding.add_special_tokens else ([], [])
    if encoding.prepend_bos and before != [encoding.bos_token]:
        before = [str(encoding.bos_token), *before]
    if encoding.append_eos and after != [encoding.eos_token]:
        after = [*after, str(encoding.eos_token)]
    return before, after


def by_tokenizers(case: Case) -> Encoded:
    tok = peer(case)
    given = [(text, pair) for text, pair in case.rows() if text is not None]
    inputs = [text if pair is None else (text, pair) for text, pair in given]
    added = case.encoding.add_special_tokens or case.encoding.marks_boundaries
    found = iter(tok.encode_batch(inputs, add_special_tokens=added))
    encoded = Encoded()
    for source, (text, _) in enumerate(case.rows()):
        rows: Rows = [None]
        if text is not None:
            rows = [*random_cases.their_rows(next(found), case.encoding)]
        encoded.rows.extend(rows)
        encoded.sources.extend([source] * len(rows))
    return encoded


def by_kernel(case: Case, threads: int = 1) -> Encoded:
    tok = case.tokenizer()
    batch = tok.encode_table(case.texts, case.pairs, options=case.encoding, threads=threads)
    columns = {name: batch.table.column(name).to_pylist() for name in batch.table.column_names}
    rows: Rows = []
    for i, ids in enumerate(columns["input_ids"]):
        row = {name: values[i] for name, values in columns.items()}
        null = all(value is None for value in row.values())
        assert null or ids is not None
        rows.append(None if null else row)
    sources = batch.source_rows
    return Encoded(rows, list(range(len(rows))) if sources is None else sources.to_pylist())


def differences(mine: Encoded, theirs: Encoded, columns: Sequence[str] = COLUMNS) -> list[str]:
    """Describe the differences."""
    if mine.sources != theirs.sources:
        return [f"rows are of texts {mine.sources}, not {theirs.sources}"]
    found = []
    for i, (a, b) in enumerate(zip(mine.rows, theirs.rows, strict=True)):
        if a is None or b is None:
            found += [f"row {i}: {a} not {b}"] * (a is not b)
        else:
            for name in columns:
                if a[name] != b[name]:
                    found.append(f"row {i} {name}: {a[name]} not {b[name]}")
    return found
