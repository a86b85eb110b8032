"""Tokenizers that only the library `tokenizers` encodes."""

from __future__ import annotations

from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

CORPUS = ["the quick brown fox", "jumps over the lazy dog, 12345 times!", "the café's naïve fox"]
SPECIAL = ["<unk>", "<pad>", "<s>", "</s>"]


def word_level() -> Any:
    """Words by a regular expression, ids without tokens, and added tokens that are not special."""
    words = sorted({word for text in CORPUS for word in text.split()})
    ids = {token: i for i, token in enumerate([*SPECIAL, *words])} | {"dog": 40, "fox": 50}
    made = Tokenizer(models.WordLevel(ids, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}{1,3}"), "removed", invert=True)
    made.add_special_tokens(SPECIAL)
    made.add_tokens(["zzz", AddedToken("it", single_word=True, lstrip=True)])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A:1 </s>",
        pair="<s> $A </s> <s> $B:1 </s>:1",
        special_tokens=[("<s>", 2), ("</s>", 3)],
    )
    return made


def replacing() -> Any:
    """Byte-level BPE with a normalizer that replaces, whose post-processor trims offsets."""
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Sequence([normalizers.Replace("é", "ee"), normalizers.NFC()])
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.UnicodeScripts(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(CORPUS, trainer)
    made.post_processor = processors.RobertaProcessing(("</s>", 3), ("<s>", 2))
    return made


def unigram() -> Any:
    """Unigram on lowercased text, without anything around it."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.UnicodeScripts(), pre_tokenizers.Metaspace()]
    )
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=60, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator(CORPUS, trainer)
    return made


KINDS = {"word level": word_level(), "replacing": replacing(), "unigram": unigram()}
