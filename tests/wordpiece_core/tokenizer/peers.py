"""Tokenizers of other kinds, trained by `tokenizers` and `sentencepiece` on text of the tests."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from typing import Any

import sentencepiece
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from wordpiece_core.tokenizer.formats import sentencepiece_proto

BERT_FIVE = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = [
    "The cat sat on the mat, and the dog sat on the log; neither of them said a word.",
    "It's not that they'd been hugging the pug: they hadn't seen 12 or 345 puns in 2024!",
    "Der Hund läuft über die Straße und bellt. Größe, Übung, Äpfel und Öl.",
    "Кошка сидела на коврике, а собака лежала рядом и спала.",
    "猫はマットの上に座っていた。犬は丸太の上に座っていた。",
    "我能吞下玻璃而不伤身体。今天天气很好。",
    "naïve café déjà-vu; e-mail: someone@example.org, see http://example.org/a?b=c#d",
]
TEXTS = [
    *SENTENCES,
    *("", " ", "   ", "a", " a", "a ", "  the   cat  ", "\tthe\ncat\r\n sat", "the cat\u3000sat"),
    *("[CLS] the [SEP]cat[MASK]", "<s>the</s> <pad><unk> <mask> cat", "  <mask> a\n <mask>"),
    "<|endoftext|> the",
    *("x\u0301y \u0416 \U0001f600\U0001f600 ok", "▁the ▁ cat▁sat", "\x00\x01the\u200bcat\ufeff"),
    *("ﬁne Ⅳ ＡＢＣ ①", "don't DON'T I'll we've", "12345 1 2  3", "…—“quoted” ‘x’", "😀👍🏽 z"),
    *(
        "가나다 각",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "pug" * 40,
        "ÄÖÜ ß",
        "the\u00a0cat",
    ),
]


def corpus() -> list[str]:
    """The lines that the peers are trained on."""
    return SENTENCES * 20


KINDS = ("word_end", "mark", "bert_bytes", "unigram", "gpt2", "roberta")


def train(kind: str, texts: Sequence[str], vocab_size: int) -> str:
    """The `tokenizer.json` of a tokenizer of one of KINDS that `tokenizers` trained."""
    options: dict[str, Any] = {"vocab_size": vocab_size, "show_progress": False}
    options["special_tokens"] = BERT_FIVE
    of_bytes = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    mark = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    words = pre_tokenizers.BertPreTokenizer()
    made = Tokenizer(models.BPE(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.decoder = decoders.ByteLevel()
    if kind == "word_end":
        made.model = models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>")
        made.pre_tokenizer = words
        made.decoder = decoders.BPEDecoder(suffix="</w>")
        options["end_of_word_suffix"] = "</w>"
    elif kind in ("mark", "unigram"):
        made.pre_tokenizer = pre_tokenizers.Sequence([words, mark])
        made.decoder = decoders.Metaspace()
    elif kind == "bert_bytes":
        made.pre_tokenizer = pre_tokenizers.Sequence([words, of_bytes])
        made.post_processor = processors.ByteLevel(trim_offsets=False)
    elif kind in ("gpt2", "roberta"):
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        gpt2 = kind == "gpt2"
        options["special_tokens"] = ["<|endoftext|>"] if gpt2 else ["<s>", "<pad>", "</s>", "<unk>"]
    else:
        raise ValueError(kind)
    if kind == "unigram":
        made.model = models.Unigram()
        trainer: Any = trainers.UnigramTrainer(unk_token="[UNK]", **options)
    else:
        if kind in ("bert_bytes", "gpt2", "roberta"):
            options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(**options)
    made.train_from_iterator(texts, trainer)
    if kind == "roberta":
        made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    elif kind == "gpt2":
        made.post_processor = processors.ByteLevel(trim_offsets=False)
    return str(made.to_str())


@cache
def _trained(kind: str) -> str:
    return train(kind, corpus(), {"word_end": 400, "mark": 400, "unigram": 300}.get(kind, 500))


def trained(kind: str) -> dict[str, Any]:
    """The `tokenizer.json` of a tokenizer: BPE of "word_end", "mark", "bert_bytes", "gpt2" or
    "roberta"; or "unigram", all with the text handling that their names say."""
    value = json.loads(_trained(kind))
    if value["model"]["type"] == "BPE":  # its trainer writes no pairs twice, but tells of ties
        value["model"].pop("dropout", None)
    return dict(value)


def train_sentencepiece(texts: Sequence[str], vocab_size: int, **options: Any) -> bytes:
    """A model that `sentencepiece` trained, with these options besides the usual ones."""
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=stream,
        vocab_size=vocab_size,
        **{"hard_vocab_limit": False, "minloglevel": 2} | options,
    )
    return stream.getvalue()


@cache
def sentencepiece_model(options: tuple[tuple[str, Any], ...] = ()) -> bytes:
    """A model that `sentencepiece` trained on `corpus`, with these options."""
    return train_sentencepiece(corpus(), **{"vocab_size": 250} | dict(options))


def ids_of(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids that `tokenizers` gives."""
    return [row.ids for row in tokenizer.encode_batch(list(texts))]


def added(content: str, number: int, **flags: bool) -> dict[str, Any]:
    """An added token of a `tokenizer.json`, special unless the flags say otherwise."""
    usual = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, "special": True} | usual | flags


def _template(single: str, pair: str, ids: dict[str, int], second_type: int) -> dict[str, Any]:
    """A TemplateProcessing of texts like "<s> $A </s>"."""

    def items(text: str) -> list[dict[str, Any]]:
        found, type_id = [], 0
        for item in text.split():
            if item == "$B":
                type_id = second_type
            name = {"$A": "A", "$B": "B"}.get(item)
            kind = "SpecialToken" if name is None else "Sequence"
            found.append({kind: {"id": name or item, "type_id": type_id}})
        return found

    used = {token for token in f"{single} {pair}".split() if token in ids}
    tokens = {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in used}
    made = {"single": items(single), "pair": items(pair), "special_tokens": tokens}
    return {"type": "TemplateProcessing", **made}


def sentencepiece_like(kind: str, trained: bytes | None = None) -> dict[str, Any]:
    """The `tokenizer.json` of a tokenizer made of a model of `sentencepiece`: as of "t5", of
    "xlm_roberta", or as newer versions of `transformers` make it ("converted")."""
    model = sentencepiece_proto.parsed(trained or sentencepiece_model())
    pieces = [[piece.piece, piece.score] for piece in model.pieces][3:]
    charsmap = b64encode(model.normalizer_spec.precompiled_charsmap).decode()
    more = [[f"<extra_id_{n}>", 0.0] for n in range(3)]
    if kind == "xlm_roberta":
        vocab = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], *pieces]
        unk_id, special = 3, ["<s>", "<pad>", "</s>", "<unk>"]
        around = ("<s> $A </s>", "<s> $A </s> </s> $B </s>", 0)
    else:
        vocab = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], *pieces, *more]
        unk_id, special = 2, ["<pad>", "</s>", "<unk>", *(f"<extra_id_{n}>" for n in range(3))]
        around = ("$A </s>", "$A </s> $B </s>", 0)
    tokens = [token for token, _ in vocab]
    ids = {token: i for i, token in enumerate(tokens)}
    normalizer: dict[str, Any] = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    mark = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    splitter: dict[str, Any] = {
        "type": "Sequence",
        "pretokenizers": [{"type": "WhitespaceSplit"}, mark],
    }
    if kind == "converted":
        strip = {"type": "Strip", "strip_left": False, "strip_right": True}
        replace = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}
        normalizer = {"type": "Sequence", "normalizers": [normalizer, strip, replace]}
        splitter = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(tokens[i], i) for i in sorted(map(tokens.index, special))],
        "normalizer": normalizer,
        "pre_tokenizer": splitter,
        "post_processor": _template(*around[:2], ids, around[2]),
        "decoder": mark,
        "model": {"type": "Unigram", "unk_id": unk_id, "vocab": vocab, "byte_fallback": False},
    }
