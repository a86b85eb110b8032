"""The files by which `transformers` and `tokenizers` load a tokenizer, written and read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from wordpiece_core.errors import InputError
from wordpiece_core.options import TextOptions
from wordpiece_core.reference import SPECIAL_TOKENS
from wordpiece_core.vocabulary import UNK, parse_vocabulary, read_text, split_query, vocabulary_text

ADDED_TOKEN_FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
PRE_TOKENIZER_TYPES = {"bert": "BertPreTokenizer", "whitespace": "WhitespaceSplit"}


@dataclass(frozen=True)
class TokenizerSpec:
    """All that the ids of a tokenizer depend on."""

    vocab: Sequence[str]
    text: TextOptions = field(default_factory=TextOptions)
    max_word_length: int = 100
    continuing_prefix: str = "##"
    more_special_tokens: Sequence[str] = ()
    """Beside BERT's five: found as they are written in a text too."""

    @property
    def special_tokens(self) -> list[str]:
        """BERT's five, as far as the vocabulary has them, and those of this tokenizer's own."""
        known = set(self.vocab)
        return [t for t in (*SPECIAL_TOKENS, *self.more_special_tokens) if t in known]


def own_special_tokens(tokens: Sequence[str]) -> list[str]:
    """The special tokens of a training that are neither BERT's five nor its [unusedN], which
    BERT's tokenizers do not look for in a text."""
    return [t for t in tokens if t not in SPECIAL_TOKENS and not re.fullmatch(r"\[unused\d+\]", t)]


def tokenizer_files(spec: TokenizerSpec) -> dict[str, str]:
    """The texts of the files of a tokenizer directory, by name."""
    five = [token for token in spec.special_tokens if token in SPECIAL_TOKENS]
    roles = {f"{token.strip('[]').lower()}_token": token for token in five}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 512,
        "do_lower_case": spec.text.lowercase,
        "strip_accents": spec.text.strip_accents,
        "tokenize_chinese_chars": spec.text.handle_chinese_chars,
        "clean_up_tokenization_spaces": True,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **roles,
    }
    return {  # in the order of writing: the first alone says how text is handled
        "tokenizer.json": _json(_tokenizer_json(spec)),
        "tokenizer_config.json": _json(config),
        "special_tokens_map.json": _json(roles),
        "vocab.txt": vocabulary_text(spec.vocab, "vocab.txt"),
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _tokenizer_json(spec: TokenizerSpec) -> dict[str, Any]:
    ids = {token: i for i, token in enumerate(spec.vocab)}
    normalizer = asdict(spec.text)
    pre_tokenizer = normalizer.pop("pre_tokenizer")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": ids[token], "content": token, **ADDED_TOKEN_FLAGS, "special": True}
            for token in sorted(spec.special_tokens, key=ids.__getitem__)
        ],
        "normalizer": {"type": "BertNormalizer", **normalizer},
        "pre_tokenizer": {"type": PRE_TOKENIZER_TYPES[pre_tokenizer]},
        "post_processor": _post_processor(ids),
        "decoder": {"type": "WordPiece", "prefix": spec.continuing_prefix, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": spec.continuing_prefix,
            "max_input_chars_per_word": spec.max_word_length,
            "vocab": ids,
        },
    }


def _post_processor(ids: dict[str, int]) -> dict[str, Any] | None:
    """[CLS] A [SEP], and [CLS] A [SEP] B [SEP] for pairs."""
    if not {"[CLS]", "[SEP]"} <= ids.keys():
        return None

    def special(token: str, type_id: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": type_id}}

    def sequence(name: str, type_id: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": type_id}}

    single = [special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)]
    added = {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in ("[CLS]", "[SEP]")}
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, sequence("B", 1), special("[SEP]", 1)],
        "special_tokens": added,
    }


def read_tokenizer(path: str) -> TokenizerSpec:
    """Reads a tokenizer directory or a `vocab.txt`.

    A directory's options are those of its `tokenizer.json`, else of its `tokenizer_config.json`,
    else BERT's (lowercase). Raises InputError.
    """
    text = read_text(path)
    if text is not None and split_query(path)[0].endswith(".json"):
        return _from_tokenizer_json(_parse(text, path), path, None)
    if text is not None:
        return TokenizerSpec(parse_vocabulary(text, path))
    directory, query = split_query(path)
    vocab_path = f"{directory.rstrip('/')}/vocab.txt{query}"
    text = read_text(vocab_path)
    vocab = None if text is None else parse_vocabulary(text, vocab_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        file = f"{directory.rstrip('/')}/{name}{query}"
        text = read_text(file)
        if text is not None and name == "tokenizer.json":
            return _from_tokenizer_json(_parse(text, file), file, vocab)
        if text is not None and vocab is not None:
            return TokenizerSpec(vocab, _text_of_config(_parse(text, file)))
    if vocab is None:
        raise InputError(f"{path}: no tokenizer; give a directory with vocab.txt, or a vocab.txt")
    return TokenizerSpec(vocab)


def _parse(text: str, path: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: not a JSON object")
    return value


def _text_of_config(config: dict[str, Any]) -> TextOptions:
    return TextOptions(
        lowercase=bool(config.get("do_lower_case", True)),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
    )


def _from_tokenizer_json(
    value: dict[str, Any], path: str, vocab: list[str] | None
) -> TokenizerSpec:
    model = value.get("model") or {}
    normalizer = dict(value.get("normalizer") or {})
    pre_tokenizer = (value.get("pre_tokenizer") or {}).get("type")
    types = {name: kind for kind, name in PRE_TOKENIZER_TYPES.items()}
    found = (model.get("type"), normalizer.pop("type", None), pre_tokenizer)
    if found[:2] != ("WordPiece", "BertNormalizer") or pre_tokenizer not in types:
        raise InputError(f"{path}: {found} is not a WordPiece tokenizer with BERT's normalizer")
    if model.get("unk_token") != UNK:
        raise InputError(f"{path}: unk_token is {model.get('unk_token')!r}, not {UNK}")
    ids: dict[str, int] = model.get("vocab") or {}
    in_order = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in in_order] != list(range(len(in_order))):
        raise InputError(f"{path}: the ids of the vocabulary are not 0 to {len(in_order) - 1}")
    if vocab is not None and vocab != in_order:
        raise InputError(f"{path}: another vocabulary than the vocab.txt beside it; remove one")
    _check_post_processor(value, path, ids)
    known = {field.name for field in fields(TextOptions)}
    return TokenizerSpec(
        vocab=in_order,
        text=TextOptions(
            **{name: normalizer[name] for name in known & normalizer.keys()},
            pre_tokenizer=types[pre_tokenizer],
        ),
        max_word_length=model.get("max_input_chars_per_word", 100),
        continuing_prefix=model.get("continuing_subword_prefix", "##"),
        more_special_tokens=_more_special_tokens(value, path, ids),
    )


def _more_special_tokens(value: dict[str, Any], path: str, ids: dict[str, int]) -> tuple[str, ...]:
    """The added tokens beside BERT's five. InputError for one that would be searched for in
    another way than as it is written."""
    added = value.get("added_tokens") or []
    for token in added:
        content = token.get("content")
        flags = {name: token.get(name, False) for name in ADDED_TOKEN_FLAGS}
        if flags != ADDED_TOKEN_FLAGS or ids.get(content) != token.get("id"):
            raise InputError(
                f"{path}: added token {content!r} is not a plain one of the vocabulary"
            )
    return tuple(t["content"] for t in added if t["content"] not in SPECIAL_TOKENS)


def _check_post_processor(value: dict[str, Any], path: str, ids: dict[str, int]) -> None:
    """Whether [CLS] and [SEP] are put around a text must go by the vocabulary alone."""
    kind = (value.get("post_processor") or {}).get("type")
    wanted = ("TemplateProcessing", "BertProcessing") if _post_processor(ids) else (None,)
    if kind not in wanted:
        raise InputError(f"{path}: post_processor is {kind}, not {wanted[0]}, for this vocabulary")
