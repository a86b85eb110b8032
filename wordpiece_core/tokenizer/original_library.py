"""The library that a tokenizer belongs to, which `wordpiece check` compares with.

| tokenizer | library |
|---|---|
| directory or Hub name with `tokenizer_config.json` or `config.json` | transformers |
| `vocab.json` with `merges.txt` | transformers (GPT2Tokenizer) |
| `tokenizer.json`, `vocab.txt` | tokenizers |
| `.model` | sentencepiece |
| `.tiktoken`, `tekken.json` | tiktoken |

tiktoken takes the regular expression and the special tokens of an encoding from this package: it
would download its own.
"""

from __future__ import annotations

import json
import unicodedata
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

from wordpiece_core.errors import OptionError
from wordpiece_core.tokenizer.by_class import FILES, load_by_transformers
from wordpiece_core.tokenizer.formats.json_text import Json, parse
from wordpiece_core.tokenizer.formats.merges_files import GPT2_CLASS, MERGES, VOCAB
from wordpiece_core.tokenizer.formats.sentencepiece_model import MODEL_NAMES
from wordpiece_core.tokenizer.formats.tekken import TEKKEN, encoding_of_tekken, is_tekken
from wordpiece_core.tokenizer.formats.tiktoken_ranks import (
    RANK_NAMES,
    Encoding,
    encoding_of,
    is_ranks,
    ranks_of,
)
from wordpiece_core.tokenizer.hub_names import local_place
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.vocabulary import read_bytes
from wordpiece_core.uri import split_query

CONFIGS = ("tokenizer_config.json", "config.json")
Ids = list[list[int]]


@dataclass(frozen=True)
class OriginalLibrary:
    """A tokenizer in the library that it belongs to.

    Attributes:
        name: Name and version of the library, such as "tokenizers 0.23.3".
        encode: Encode texts on one thread. Returns what `ids` takes.
        ids: Return the ids of the texts from the result of `encode`.
        adds_special_tokens: True if it adds special tokens such as [CLS], as a post-processor does.
    """

    name: str
    encode: Callable[[Sequence[str]], Any]
    ids: Callable[[Any], Ids] = list
    adds_special_tokens: bool = False


def original_library(
    path: str, spec: TokenizerSpec, encoding: str | None = None
) -> OriginalLibrary:
    """Load a tokenizer in the library that it belongs to.

    Args:
        path: A path or a name, as `read_tokenizer` takes it.
        spec: The result of `read_tokenizer`.
        encoding: Encoding of a file of ranks, if its name does not say it.

    Raises OptionError if the library is not installed, and InputError if it cannot load the files.
    """
    place = local_place(path)
    base, query = split_query(place)
    name = base.rpartition("/")[2]
    if name in (VOCAB, MERGES) and read_bytes(place) is not None:
        place = f"{base.removesuffix(name) or '.'}{query}"
    data = read_bytes(place)
    if data is None:
        return _of_directory(place, path, spec, encoding)
    return _of_file(name, data, path, spec, encoding)


def _of_directory(
    place: str, path: str, spec: TokenizerSpec, encoding: str | None
) -> OriginalLibrary:
    def read(name: str) -> bytes | None:
        directory, query = split_query(place)
        return read_bytes(f"{directory.rstrip('/')}/{name}{query}")

    if encoding is None and any(read(name) is not None for name in CONFIGS):
        return _of_transformers(read, path)
    found = {name: data for name in FILES if (data := read(name)) is not None}
    if encoding is None and VOCAB in found and MERGES in found and "tokenizer.json" not in found:
        found["tokenizer_config.json"] = json.dumps({"tokenizer_class": GPT2_CLASS}).encode()
        return _of_transformers(found.get, path)
    ranked = (*RANK_NAMES,) if encoding else ()
    for name in (*ranked, "tokenizer.json", "vocab.txt", *MODEL_NAMES, *RANK_NAMES, TEKKEN):
        if name in found:
            return _of_file(name, found[name], path, spec, encoding)
    raise OptionError(f"{path}: no tokenizer file to compare with")


def _of_file(
    name: str, data: bytes, path: str, spec: TokenizerSpec, encoding: str | None
) -> OriginalLibrary:
    if is_ranks(data):
        return _tiktoken(ranks_of(data, path), encoding_of(data, encoding or name, path), path)
    if name.endswith(".model"):
        library = _library("sentencepiece", path)
        processor = library.SentencePieceProcessor(model_proto=data)
        return OriginalLibrary(
            f"sentencepiece {version('sentencepiece')}",
            lambda texts: processor.encode(list(texts), num_threads=1),
        )
    if not name.endswith(".json"):
        _library("tokenizers", path)
        from tokenizers.implementations import BertWordPieceTokenizer

        vocab = {token: i for i, token in enumerate(spec.vocab)}
        options = {"lowercase": spec.text.lowercase, "strip_accents": spec.text.strip_accents}
        return _tokenizers(BertWordPieceTokenizer(vocab, **options)._tokenizer)
    value = parse(data.decode(), path)
    if is_tekken(value):
        return _tekken(value, path)
    return _tokenizers(_library("tokenizers", path).Tokenizer.from_str(data.decode()))


def _of_transformers(read: Callable[[str], bytes | None], path: str) -> OriginalLibrary:
    _library("transformers", path)
    made = load_by_transformers(read, path, "AutoTokenizer")
    backend = getattr(made, "backend_tokenizer", None)
    name = f"transformers {version('transformers')}"
    if backend is not None:
        backend.encode_special_tokens = made.split_special_tokens
        return _tokenizers(backend, name)
    return OriginalLibrary(
        name,
        lambda texts: made(list(texts), truncation=False)["input_ids"],
        adds_special_tokens=True,
    )


def _tokenizers(tokenizer: Any, name: str | None = None) -> OriginalLibrary:
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return OriginalLibrary(
        name or f"tokenizers {version('tokenizers')}",
        lambda texts: tokenizer.encode_batch_fast(list(texts)),
        lambda encodings: [encoding.ids for encoding in encodings],
        adds_special_tokens=True,
    )


def _tekken(value: Json, path: str) -> OriginalLibrary:
    config = value["config"]
    first, size = config["default_num_special_tokens"], config["default_vocab_size"]
    ranks = {
        b64decode(token["token_bytes"]): first + rank
        for rank, token in enumerate(value["vocab"][: size - first])
    }
    return _tiktoken(ranks, encoding_of_tekken(value, path), path)


def _tiktoken(ranks: dict[bytes, int], encoding: Encoding, path: str) -> OriginalLibrary:
    form: Any = encoding.normalizer
    tokenizer = _library("tiktoken", path).Encoding(
        "checked",
        pat_str=encoding.pattern,
        mergeable_ranks=ranks,
        special_tokens=dict(encoding.special_tokens),
    )

    def encode(texts: Sequence[str]) -> Ids:
        normalized = texts if form is None else [unicodedata.normalize(form, t) for t in texts]
        return [tokenizer.encode(text, allowed_special="all") for text in normalized]

    return OriginalLibrary(f"tiktoken {version('tiktoken')}", encode)


def _library(name: str, path: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise OptionError(f"{path}: belongs to the library {name}: pip install {name}") from error
