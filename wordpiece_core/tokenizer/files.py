"""The files from which `transformers` and `tokenizers` load a tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from wordpiece_core.options import TextOptions
from wordpiece_core.reference import SPECIAL_TOKENS
from wordpiece_core.tokenizer.vocabulary import UNK, vocabulary_text

ADDED_TOKEN_FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
ROLES = {f"{token.strip('[]').lower()}_token": token for token in SPECIAL_TOKENS}
PRE_TOKENIZER_TYPES = {"bert": "BertPreTokenizer", "whitespace": "WhitespaceSplit"}


@dataclass(frozen=True)
class TokenizerSpec:
    """Everything that the ids of a tokenizer depend on."""

    vocab: Sequence[str]
    text: TextOptions = field(default_factory=TextOptions)
    max_word_length: int = 100
    continuing_prefix: str = "##"
    more_special_tokens: Sequence[str] = ()
    """Special tokens beside BERT's five. They are found where they are written in a text."""

    @property
    def special_tokens(self) -> list[str]:
        """Those of BERT's five that the vocabulary has, and `more_special_tokens`."""
        known = set(self.vocab)
        wanted = dict.fromkeys((*SPECIAL_TOKENS, *self.more_special_tokens))
        return [token for token in wanted if token in known and token != ""]


def own_special_tokens(tokens: Sequence[str]) -> list[str]:
    """Those special tokens of a training that are neither BERT's five nor its [unusedN]. BERT's
    tokenizers do not look for [unusedN] in a text."""
    return [t for t in tokens if t not in SPECIAL_TOKENS and not re.fullmatch(r"\[unused\d+\]", t)]


def tokenizer_files(spec: TokenizerSpec) -> dict[str, str]:
    """The texts of the files of a tokenizer directory, by name."""
    roles = {name: token for name, token in ROLES.items() if token in spec.special_tokens}
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
        "post_processor": post_processor(ids),
        "decoder": {"type": "WordPiece", "prefix": spec.continuing_prefix, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": spec.continuing_prefix,
            "max_input_chars_per_word": spec.max_word_length,
            "vocab": ids,
        },
    }


def post_processor(ids: dict[str, int]) -> dict[str, Any] | None:
    """[CLS] A [SEP], and [CLS] A [SEP] B [SEP] for pairs, if the vocabulary has them."""
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
