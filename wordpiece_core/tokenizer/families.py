"""Specifications of known families of tokenizers, and of trained vocabularies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from wordpiece_core.options import UNK, TextOptions
from wordpiece_core.symbols import BYTES
from wordpiece_core.text_parts import GPT2
from wordpiece_core.tokenizer.models import (
    BERT_ENDS,
    NOTHING_ADDED,
    AddedToken,
    Bpe,
    PostProcessor,
    Unigram,
    WordPiece,
)
from wordpiece_core.tokenizer.parts import (
    byte_level,
    decoder_of,
    normalizers_of,
    pre_tokenizers_of,
)
from wordpiece_core.tokenizer.spec import (
    TokenizerSpec,
    added_in,
    bert_roles,
    tokens_in_texts,
    usual_roles,
)


def bert_spec(
    vocab: Sequence[str],
    text: TextOptions | None = None,
    *,
    model: WordPiece | None = None,
    special_tokens: Collection[str] = (),
) -> TokenizerSpec:
    """Return the tokenizer of a `vocab.txt`: WordPiece with BERT's parts.

    Args:
        text: Normalization and pre-tokenization; BERT's by default.
        special_tokens: Special tokens in addition to BERT's five.

    >>> bert_spec(["[UNK]", "[CLS]", "[SEP]", "hug"]).post_processor.single.before
    [('[CLS]', 0)]
    """
    model, text = model or WordPiece(), text or TextOptions()
    return TokenizerSpec(
        vocab,
        model,
        normalizers_of(text),
        pre_tokenizers_of(text, None),
        BERT_ENDS if {"[CLS]", "[SEP]"} <= {*vocab} else None,
        decoder_of(None, model.continuing_prefix, byte_fallback=False),
        added_in(vocab, special_tokens),
        bert_roles(vocab),
    )


def gpt2_spec(
    vocab: Sequence[str],
    merges: Sequence[tuple[int, int]],
    *,
    special_tokens: Collection[str],
    roles: Mapping[str, str],
    post_processor: PostProcessor = NOTHING_ADDED,
    add_prefix_space: bool = False,
) -> TokenizerSpec:
    """Return the tokenizer of a `vocab.json` and a `merges.txt`: BPE of bytes with GPT-2's parts.

    Args:
        merges: Pairs of ids, by rank.
        add_prefix_space: Put a space before each text.
    """
    return TokenizerSpec(
        vocab,
        Bpe(merges),
        (),
        (byte_level(add_prefix_space=add_prefix_space, use_regex=True),),
        post_processor,
        decoder_of(BYTES, None, byte_fallback=False),
        tuple(AddedToken(token) for token in vocab if token in special_tokens),
        {role: token for role, token in roles.items() if token in vocab},
    )


def trained_spec(
    vocab: Sequence[str],
    model: WordPiece | Bpe | Unigram,
    text: TextOptions,
    word_boundary: str | None,
    *,
    special_tokens: Sequence[str],
    roles: Mapping[str, str] | None = None,
    model_max_length: int | None = None,
) -> TokenizerSpec:
    """Return the tokenizer of a trained vocabulary.

    Args:
        text: Options that split text into the words of the training.
        word_boundary: How these words were marked: `</w>`, `▁`, "bytes", or None.
        special_tokens: Special tokens of the training.
        roles: Tokens by role; by default their usual roles.

    >>> trained_spec(["<s>", "▁", "a"], Unigram([0, -1, -2]), TextOptions(), "▁",
    ...     special_tokens=["<s>"]).roles
    {'bos_token': '<s>'}
    """
    of_text = [token.content for token in tokens_in_texts(special_tokens)]
    added = added_in(vocab, of_text)
    if roles is None:
        usual = {} if isinstance(model, WordPiece) else usual_roles({t.content for t in added})
        roles = usual | bert_roles(vocab)
    if isinstance(model, WordPiece):
        spec = bert_spec(vocab, text, model=model, special_tokens=of_text)
        if spec.post_processor is None and roles.get("unk_token") != UNK:
            spec = replace(spec, post_processor=NOTHING_ADDED)
        return replace(spec, roles=roles, model_max_length=model_max_length)
    ends = BERT_ENDS if {"[CLS]", "[SEP]"} <= {*vocab} else NOTHING_ADDED
    by_gpt2 = text.pre_tokenizer == GPT2 and not text.is_composed
    return TokenizerSpec(
        vocab,
        model,
        normalizers_of(text),
        pre_tokenizers_of(text, word_boundary),
        replace(ends, trims=(False,)) if by_gpt2 else ends,
        decoder_of(word_boundary, None, byte_fallback=model.byte_fallback),
        added,
        roles,
        model_max_length,
    )
