"""Normalizers, pre-tokenizers and decoders as JSON objects, which is how `tokenizer.json` has them.

A sequence of parts is a tuple: sequences inside of sequences are flattened when they are read.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from wordpiece_core.errors import InputError, OptionError, shown
from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import BYTES, SPACE_MARK, WORD_END
from wordpiece_core.text_parts import GPT2, NORMALIZERS, Json, pre_tokenizer_parts
from wordpiece_core.tokenizer.formats.json_text import get

Parts = tuple[Json, ...]

ROBERTA, BERT = "RobertaProcessing", "BertProcessing"
PRE_TOKENIZER_TYPES = {"bert": "BertPreTokenizer", "whitespace": "WhitespaceSplit"}
# Normalizers that collapse spaces and drop spaces at the end.
STRIP = {"type": "Strip", "strip_left": False, "strip_right": True}
REPLACE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE_MARK}
SENTENCEPIECE = "SentencePiece"
"""Type of the normalizer of a sentencepiece model, which `tokenizers` does not have."""
AT_MARKS = {
    "type": "Split",
    "pattern": {"String": SPACE_MARK},
    "behavior": "MergedWithNext",
    "invert": False,
}
"""Pre-tokenizer of a sentencepiece model whose pieces do not cross words: a word begins at each
mark."""


# --- Reading and writing --------------------------------------------------------------------------


def read_parts(value: Json, name: str, inside: str, path: str) -> Parts:
    """Read the parts of an entry of a `tokenizer.json`.

    Args:
        value: The JSON of the file.
        name: Name of the entry, for example `normalizer`.
        inside: Name of the list in a sequence, for example `normalizers`.
        path: Path of the file in errors.

    Raises InputError for a part without a type.
    """
    found = value.get(name)
    return () if found is None else tuple(_flattened(found, name, inside, path))


def _flattened(part: Any, name: str, inside: str, path: str) -> Iterator[Json]:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise InputError(f"{path}: {name} is {shown(part)}, not an object with a type")
    if part["type"] != "Sequence":
        yield part
        return
    for each in get(part, inside, list, path):
        yield from _flattened(each, name, inside, path)


def one_of(parts: Sequence[Json], inside: str) -> Json | None:
    """Return the entry of a `tokenizer.json` with these parts."""
    if len(parts) > 1:
        return {"type": "Sequence", inside: list(parts)}
    return parts[0] if parts else None


def types(parts: Sequence[Json]) -> list[str]:
    """Return the types of parts."""
    return [part["type"] for part in parts]


# --- Parts ----------------------------------------------------------------------------------------


def byte_level(*, add_prefix_space: bool, use_regex: bool) -> Json:
    """Return the part that writes bytes as characters, and splits as GPT-2 does with
    `use_regex`."""
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def metaspace(prepend: str, *, split: bool) -> Json:
    """Return the part that writes spaces as `▁`. `prepend`: "always", "first" or "never"."""
    return {
        "type": "Metaspace",
        "replacement": SPACE_MARK,
        "prepend_scheme": prepend,
        "split": split,
    }


def sentencepiece_normalizer(
    charsmap: bytes = b"",
    *,
    add_dummy_prefix: bool = True,
    remove_extra_whitespaces: bool = True,
    escape_whitespaces: bool = True,
    treat_whitespace_as_suffix: bool = False,
    user_defined_symbols: Sequence[str] = (),
) -> Json:
    """Return the normalizer of a sentencepiece model. The arguments are its options there."""
    return {
        "type": SENTENCEPIECE,
        "precompiled_charsmap": b64encode(charsmap).decode(),
        "add_dummy_prefix": add_dummy_prefix,
        "remove_extra_whitespaces": remove_extra_whitespaces,
        "escape_whitespaces": escape_whitespaces,
        "treat_whitespace_as_suffix": treat_whitespace_as_suffix,
        "user_defined_symbols": list(user_defined_symbols),
    }


def prepend_scheme(mark: Json, path: str) -> str:
    """Return where a Metaspace adds a mark: "always", "first" or "never"."""
    usual = "always" if get(mark, "add_prefix_space", bool, path, True) else "never"
    scheme = get(mark, "prepend_scheme", str, path, usual)
    if scheme not in ("always", "first", "never"):
        raise InputError(f"{path}: prepend_scheme is {shown(scheme)}, not always, first or never")
    return scheme


def charsmap(part: Json, path: str) -> bytes:
    """Return the compiled character map of a Precompiled or a SentencePiece normalizer."""
    try:
        return b64decode(get(part, "precompiled_charsmap", str, path), validate=True)
    except ValueError as error:
        raise InputError(f"{path}: precompiled_charsmap is not base64") from error


def bert_text(normalizer: Json, kind: str, path: str) -> TextOptions:
    """Return the text options of a BertNormalizer. `kind`: the pre-tokenizer."""
    known = {"lowercase", "strip_accents", "clean_text", "handle_chinese_chars"} & normalizer.keys()
    try:
        return TextOptions(**{n: normalizer[n] for n in known}, pre_tokenizer=kind).resolve()
    except OptionError as error:
        raise InputError(f"{path}: {error}") from error


# --- Parts of text options ------------------------------------------------------------------------


def normalizers_of(text: TextOptions) -> Parts:
    """Return the normalizers of text options."""
    if text.pre_tokenizer == GPT2 and not text.normalizer:
        return ()
    values = text.resolve().values()
    del values["pre_tokenizer"], values["normalizer"]
    if not text.is_composed:
        return ({"type": "BertNormalizer", **values},)
    names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    switches = {name: values[name] for name in names}
    bert = [{"type": "BertNormalizer", **switches}] if any(switches.values()) else []
    return (*(NORMALIZERS[name] for name in text.normalizer), *bert)


def pre_tokenizers_of(text: TextOptions, word_boundary: str | None) -> Parts:
    """Return the pre-tokenizers of text options and of how words are marked."""
    of_bytes = word_boundary == BYTES
    if text.is_composed:
        own = pre_tokenizer_parts(text.pre_tokenizers)
        marks = [byte_level(add_prefix_space=False, use_regex=False)] if of_bytes else []
        return (*own, *marks)
    if text.pre_tokenizer == GPT2:
        return (byte_level(add_prefix_space=False, use_regex=True),)
    words = {"type": PRE_TOKENIZER_TYPES[str(text.resolve().pre_tokenizer)]}
    if of_bytes:
        return words, byte_level(add_prefix_space=True, use_regex=False)
    return (words, metaspace("always", split=False)) if word_boundary == SPACE_MARK else (words,)


def decoder_of(word_boundary: str | None, prefix: str | None, *, byte_fallback: bool) -> Json:
    """Return the decoder of a trained model. `prefix`: continuing prefix of WordPiece, or None."""
    if prefix is not None:
        return {"type": "WordPiece", "prefix": prefix, "cleanup": True}
    if word_boundary == BYTES:
        return byte_level(add_prefix_space=True, use_regex=True)
    if word_boundary == WORD_END:
        return {"type": "BPEDecoder", "suffix": WORD_END}
    fallback = [{"type": "ByteFallback"}] if byte_fallback else []
    decoder = one_of([*fallback, metaspace("always", split=True)], "decoders")
    assert decoder is not None
    return decoder
