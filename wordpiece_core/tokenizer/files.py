"""The files from which `transformers` and `tokenizers` load a tokenizer."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from wordpiece_core.options import TextOptions
from wordpiece_core.reference import SPECIAL_TOKENS
from wordpiece_core.tokenizer.models import AddedTokens, Bpe, ByteLevel, Metaspace, Unigram
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
    model: Bpe | Unigram | None = None
    """None: WordPiece."""
    rules: ByteLevel | Metaspace | None = None
    """How text becomes words, if not by `text`."""
    roles: Mapping[str, str] | None = None
    """`unk_token`, `pad_token` and so on, if they are not BERT's."""
    added: AddedTokens | None = None
    """What is put around texts, if it is not what BERT puts."""

    def plain(self) -> dict[str, Any]:
        """As values that JSON can hold; `of_plain` makes the spec of them. What WordPiece does not
        have is left out."""
        value = {name: item for name, item in asdict(self).items() if item is not None}
        for name in ("model", "rules"):
            if name in value:
                value[name] = {"type": type(getattr(self, name)).__name__} | value[name]
        if isinstance(self.rules, Metaspace):
            value["rules"]["charsmap"] = b64encode(self.rules.charsmap).decode()
        return value

    @classmethod
    def of_plain(cls, value: Mapping[str, Any]) -> TokenizerSpec:
        """From what `plain` gives."""
        kinds = {kind.__name__: kind for kind in (Bpe, Unigram, ByteLevel, Metaspace)}
        made = dict(value) | {"text": TextOptions(**value["text"])}
        for name in ("model", "rules"):
            if name in made:
                fields = dict(made[name])
                if "charsmap" in fields:
                    fields["charsmap"] = b64decode(fields["charsmap"])
                if "merges" in fields:
                    fields["merges"] = [(left, right) for left, right in fields["merges"]]
                made[name] = kinds[fields.pop("type")](**fields)
        if "added" in made:
            made["added"] = AddedTokens(**made["added"])
        return cls(**made)

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
