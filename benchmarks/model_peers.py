"""BPE and Unigram as `tokenizers` and `sentencepiece` train them, for benchmarks beside them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import sentencepiece
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from wordpiece_core.reference.marks import SPACE_MARK, WORD_END


def gpt2_like(
    texts: Sequence[str], vocab_size: int, special_tokens: Sequence[str] = ()
) -> Tokenizer:
    """BPE of bytes, of GPT-2's words."""
    peer = Tokenizer(models.BPE())
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    peer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    peer.train_from_iterator(texts, trainer)
    return peer


def word_end_bpe(
    texts: Sequence[str], vocab_size: int, special_tokens: Sequence[str], *, lowercase: bool
) -> Tokenizer:
    """BPE of BERT's words, whose ends are marked. `special_tokens`: [UNK] among them."""
    peer = Tokenizer(models.BPE(unk_token="[UNK]", end_of_word_suffix=WORD_END))
    peer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special_tokens),
        end_of_word_suffix=WORD_END,
        show_progress=False,
    )
    peer.train_from_iterator(texts, trainer)
    return peer


def of_marked_words(model: Any, *, lowercase: bool) -> Tokenizer:
    """A model on BERT's words, each of which begins with the mark of a space."""
    peer = Tokenizer(model)
    peer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    marks = pre_tokenizers.Metaspace(SPACE_MARK, prepend_scheme="always", split=False)
    peer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), marks])
    return peer


def sentencepiece_model(texts: Sequence[str], vocab_size: int, **options: Any) -> bytes:
    """The file of a unigram model. `options`: more of `sentencepiece`."""
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=stream,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return stream.getvalue()
