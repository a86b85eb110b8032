"""The words of texts: the plan of the kernel for normalizers and pre-tokenizers.

The kernel has a fast way for BERT's and GPT-2's words, which text options describe, and for the
words of T5 (Metaspace). All other parts are applied one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError
from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import BYTES, SPACE_MARK
from wordpiece_core.text_parts import GPT2, GPT2_PATTERN, Json, sequence
from wordpiece_core.tokenizer.formats.json_text import get
from wordpiece_core.tokenizer.models import Bpe, Unigram, WordPiece
from wordpiece_core.tokenizer.parts import (
    AT_MARKS,
    PRE_TOKENIZER_TYPES,
    REPLACE,
    STRIP,
    Parts,
    bert_text,
    charsmap,
    metaspace,
    prepend_scheme,
    types,
)

if TYPE_CHECKING:
    from wordpiece_core.tokenizer.spec import TokenizerSpec

KINDS = {name: kind for kind, name in PRE_TOKENIZER_TYPES.items()}
AS_IT_IS = TextOptions(
    lowercase=False,
    strip_accents=False,
    clean_text=False,
    handle_chinese_chars=False,
    pre_tokenizer="whitespace",
)
"""Text options that change nothing, and split at white space."""


@dataclass(frozen=True)
class Words:
    """Words of a tokenizer.

    Attributes:
        text: Text options with the same words; None if there are none that the kernel has a fast
            way for.
        normalizers: Normalizers to apply, if there are no text options.
        pre_tokenizers: Pre-tokenizers to apply, likewise.
        boundary: BYTES if words are bytes, SPACE_MARK if words begin with a mark, else None.
        is_metaspace: True for words that begin at marks, as in T5 and XLM-RoBERTa.
        adds_space: True for GPT-2's words after a space that is put before each text.
    """

    text: TextOptions | None
    boundary: str | None
    normalizers: Parts = ()
    pre_tokenizers: Parts = ()
    is_metaspace: bool = False
    adds_space: bool = False

    @property
    def is_by_options(self) -> bool:
        """True if text options alone give the words."""
        return self.text is not None and not self.adds_space

    @property
    def collapses_spaces(self) -> bool:
        """True for marked words between any number of spaces."""
        if self.pre_tokenizers == (AT_MARKS,):
            return bool(self.normalizers[0].get("remove_extra_whitespaces"))
        return self.is_metaspace and (
            types(self.pre_tokenizers)[:1] == ["WhitespaceSplit"]
            or self.normalizers[-2:] == (STRIP, REPLACE)
        )

    def rules(self) -> _kernel.Composed | None:
        """Return the kernel's form of the parts; None if text options give the words. Raises
        InputError for a part that the kernel lacks."""
        if self.adds_space:
            return _kernel.Composed.gpt2(add_prefix_space=True)
        if self.text is not None:
            return None
        return _kernel.Composed(
            sequence(self.normalizers, "normalizers"),
            sequence(self.pre_tokenizers, "pretokenizers"),
            of_bytes=self.boundary == BYTES and not self.is_metaspace,
        )


def words_of(spec: TokenizerSpec, path: str = "tokenizer.json") -> Words:
    """Return the words of a tokenizer. `path`: path of its file in errors."""
    normalizers, pre_tokenizers = spec.normalizer, spec.pre_tokenizer
    suffix = spec.model.end_of_word_suffix if isinstance(spec.model, Bpe) else None
    is_changed = bool(normalizers) and any(token.normalized for token in spec.added_tokens)
    found = None if is_changed else _fast_words(normalizers, pre_tokenizers, path)
    if isinstance(spec.model, WordPiece):
        is_bert = types(normalizers) == ["BertNormalizer"]
        if found is not None and is_bert and found.boundary is None:
            return found
        return Words(None, None, normalizers, pre_tokenizers)
    if isinstance(spec.model, Unigram):
        if found is not None and found.boundary == SPACE_MARK:
            return found
        is_metaspace = pre_tokenizers == (AT_MARKS,)
        return Words(None, SPACE_MARK, normalizers, pre_tokenizers, is_metaspace=is_metaspace)
    if found is not None and not (found.boundary and suffix):
        return replace(found, boundary=suffix or found.boundary)
    of_bytes = isinstance(spec.model, Bpe) and not suffix
    of_bytes = of_bytes and types(pre_tokenizers[-1:]) == ["ByteLevel"]
    return Words(None, BYTES if of_bytes else suffix, normalizers, pre_tokenizers)


def _fast_words(normalizers: Parts, pre_tokenizers: Parts, path: str) -> Words | None:
    return (
        _gpt2_words(normalizers, pre_tokenizers, path)
        or _bert_words(normalizers, pre_tokenizers, path)
        or _metaspace_words(normalizers, pre_tokenizers, path)
    )


def _gpt2_words(normalizers: Parts, pre_tokenizers: Parts, path: str) -> Words | None:
    """GPT-2's words: unchanged text, split by the regular expression of ByteLevel."""
    kinds = types(pre_tokenizers)
    if normalizers or kinds not in (["ByteLevel"], ["Split", "ByteLevel"]):
        return None
    adds_space = get(pre_tokenizers[-1], "add_prefix_space", bool, path, True)
    by_regex = get(pre_tokenizers[-1], "use_regex", bool, path, True)
    if len(kinds) == 2 and (by_regex or adds_space or not _is_gpt2_split(pre_tokenizers[0])):
        return None
    if len(kinds) == 1 and not by_regex:
        return None
    return Words(TextOptions(pre_tokenizer=GPT2).resolve(), BYTES, adds_space=adds_space)


def _is_gpt2_split(part: Json) -> bool:
    wanted = {"pattern": {"Regex": GPT2_PATTERN}, "behavior": "Isolated", "invert": False}
    return {name: part.get(name) for name in wanted} == wanted


def _bert_words(normalizers: Parts, pre_tokenizers: Parts, path: str) -> Words | None:
    """BERT's words, or words between white space, with or without marks."""
    kind = KINDS.get(pre_tokenizers[0]["type"]) if pre_tokenizers else None
    if kind is None or types(normalizers) not in ([], ["BertNormalizer"]):
        return None
    text = replace(AS_IT_IS, pre_tokenizer=kind).resolve()
    if normalizers:
        text = bert_text(normalizers[0], kind, path)
    marks = pre_tokenizers[1:]
    if not marks:
        return Words(text, None)
    if marks == (metaspace("always", split=False),):
        return Words(text, SPACE_MARK)
    if types(marks) != ["ByteLevel"]:
        return None
    adds_space = get(marks[0], "add_prefix_space", bool, path, True)
    by_regex = get(marks[0], "use_regex", bool, path, True)
    return Words(text, BYTES) if adds_space and not by_regex else None


def _metaspace_words(normalizers: Parts, pre_tokenizers: Parts, path: str) -> Words | None:
    """Words that begin at marks, as `tokenizers` has them for models of sentencepiece."""
    rest, before = list(normalizers), list[Json]()
    if types(rest[:1]) == ["Precompiled"]:
        charsmap(rest[0], path)
        before = [rest.pop(0)]
    replaces = rest[:1] == [STRIP] and rest[1:] in ([REPLACE], [REPLACE | {"content": " "}])
    splits = types(pre_tokenizers) == ["WhitespaceSplit", "Metaspace"]
    if not (splits or types(pre_tokenizers) == ["Metaspace"]) or (splits if replaces else rest):
        return None
    mark = pre_tokenizers[-1]
    is_split = get(mark, "split", bool, path, True)
    if get(mark, "replacement", str, path, SPACE_MARK) != SPACE_MARK or not is_split:
        return None
    scheme = prepend_scheme(mark, path)
    if splits and scheme != "always":
        return None
    collapsing: list[Json] = [STRIP, REPLACE] if replaces else []
    return Words(
        None,
        SPACE_MARK,
        tuple(before + collapsing),
        (*pre_tokenizers[:-1], metaspace(scheme, split=True)),
        is_metaspace=True,
    )


def check_words(words: Words, path: str) -> None:
    """Raise InputError if the kernel lacks a part of the words."""
    try:
        words.rules()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
