"""The specification of a tokenizer: everything that its ids depend on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import ROLES, SPACE_MARK, SPECIAL_TOKENS
from wordpiece_core.text_parts import Json
from wordpiece_core.tokenizer.models import (
    NOTHING_ADDED,
    AddedToken,
    Bpe,
    Library,
    Model,
    PostProcessor,
    Unigram,
    WordPiece,
)
from wordpiece_core.tokenizer.parts import Parts, normalizers_of, pre_tokenizers_of
from wordpiece_core.tokenizer.vocabulary import is_unused
from wordpiece_core.tokenizer.words import AS_IT_IS, Words, words_of

# Usual names of tokens by role, for files that do not name roles.
USUAL_ROLES = {
    "pad_token": ("<pad>", "[PAD]"),
    "mask_token": ("<mask>", "[MASK]"),
    "bos_token": ("<s>", "<|endoftext|>", "<|begin_of_text|>"),
    "eos_token": ("</s>", "<|endoftext|>", "<|end_of_text|>"),
}
ROLE_NAMES = (*ROLES, "bos_token", "eos_token")


@dataclass(frozen=True)
class TokenizerSpec:
    """The parts of a `tokenizer.json`, and what the config files next to it add.

    Attributes:
        vocab: Tokens in id order, including added tokens.
        model: The model.
        normalizer: Normalizers, as JSON objects.
        pre_tokenizer: Pre-tokenizers, as JSON objects.
        post_processor: Tokens around texts. None if they are unknown, because the vocabulary of a
            `vocab.txt` lacks [CLS] or [SEP].
        decoder: The decoder, as a JSON object. None puts spaces between tokens.
        added_tokens: Tokens that are found in texts before they are split, in id order.
        roles: Tokens by role: `unk_token`, `pad_token` and so on.
        model_max_length: Maximum number of tokens of the model that the tokenizer is for.
        config: Other keys of the `tokenizer_config.json` that was read, such as the chat template,
            which are written again.

    Ids depend neither on `decoder` nor on the last two.

    >>> from wordpiece_core import Tokenizer
    >>> spec = Tokenizer(["[UNK]", "hug", "##s"]).spec
    >>> spec.model, spec.pre_tokenizer
    (WordPiece(continuing_prefix='##', max_word_length=100), ({'type': 'BertPreTokenizer'},))
    """

    vocab: Sequence[str]
    model: Model
    normalizer: Parts = ()
    pre_tokenizer: Parts = ()
    post_processor: PostProcessor | None = NOTHING_ADDED
    decoder: Json | None = None
    added_tokens: tuple[AddedToken, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    model_max_length: int | None = None
    config: Mapping[str, Any] | None = None

    @cached_property
    def words(self) -> Words:
        """The words of texts, and the plan of the kernel for them."""
        return words_of(self)

    @property
    def text(self) -> TextOptions:
        """Text options with the same words. Options that change nothing, if only the parts give
        the words."""
        return self.words.text or AS_IT_IS

    def with_text(self, text: TextOptions) -> TokenizerSpec:
        """Return the tokenizer for words that text options give."""
        parts = normalizers_of(text), pre_tokenizers_of(text, self.word_boundary)
        return replace(self, normalizer=parts[0], pre_tokenizer=parts[1])

    def with_special_tokens(self, more: Collection[str]) -> TokenizerSpec:
        """Return the tokenizer with more special tokens, if the vocabulary has them."""
        known = {token.content: token for token in self.added_tokens}
        known |= {token: AddedToken(token) for token in more if token and token not in known}
        added = tuple(known[token] for token in self.vocab if token in known)
        return replace(self, added_tokens=added)

    def with_word_pieces(self, **options: Any) -> TokenizerSpec:
        """Return the tokenizer with other options of `WordPiece`."""
        assert isinstance(self.model, WordPiece)
        model, decoder = replace(self.model, **options), self.decoder
        if decoder is not None and decoder["type"] == "WordPiece":
            decoder = {**decoder, "prefix": model.continuing_prefix}
        return replace(self, model=model, decoder=decoder)

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as values that JSON can hold: its `tokenizer.json`, whose model
        also has the key `wordpiece_beam` for everything else."""
        from wordpiece_core.tokenizer.formats.stored_spec import spec_to_dict

        return spec_to_dict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TokenizerSpec:
        """Return the specification from the result of `to_dict`."""
        from wordpiece_core.tokenizer.formats.stored_spec import spec_from_dict

        return spec_from_dict(value)

    @property
    def special_tokens(self) -> list[str]:
        """The added tokens."""
        return [token.content for token in self.added_tokens]

    @property
    def library(self) -> Library | None:
        """The model, if the library `tokenizers` runs the tokenizer."""
        return self.model if isinstance(self.model, Library) else None

    @property
    def of_sentencepiece(self) -> bool:
        """True for a model of sentencepiece."""
        return isinstance(self.model, Bpe | Unigram) and self.model.of_sentencepiece

    @property
    def word_boundary(self) -> str | None:
        """The mark of words: `</w>`, `▁`, "bytes", or None."""
        if isinstance(self.model, Library):
            return self.model.word_boundary
        if isinstance(self.model, WordPiece):
            return None
        return SPACE_MARK if isinstance(self.model, Unigram) else self.words.boundary

    @property
    def continuing_prefix(self) -> str:
        """Prefix of tokens that do not begin a word; empty for models without one."""
        has_prefix = isinstance(self.model, WordPiece | Library)
        return self.model.continuing_prefix if has_prefix else ""  # type: ignore[union-attr]

    @property
    def max_word_length(self) -> int:
        """Length of the longest words of WordPiece, in characters."""
        model = self.model if isinstance(self.model, WordPiece) else WordPiece()
        return model.max_word_length


def usual_roles(special_tokens: Collection[str]) -> dict[str, str]:
    """Return the roles of special tokens by their usual names."""
    found = {}
    for role, usual in USUAL_ROLES.items():
        tokens = [token for token in usual if token in special_tokens]
        if tokens:
            found[role] = tokens[0]
    return found


def bert_roles(vocab: Collection[str]) -> dict[str, str]:
    """Return the roles of BERT's special tokens in a vocabulary."""
    return {role: token for role, token in ROLES.items() if token in vocab}


def tokens_in_texts(special_tokens: Sequence[str]) -> list[AddedToken]:
    """Return the special tokens of a training that its tokenizer finds in texts: not [unusedN]."""
    return [AddedToken(token) for token in special_tokens if token and not is_unused(token)]


def added_in(vocab: Sequence[str], special_tokens: Collection[str]) -> tuple[AddedToken, ...]:
    """Return BERT's five and other special tokens in a vocabulary, in id order."""
    wanted = {*SPECIAL_TOKENS, *special_tokens} - {""}
    return tuple(AddedToken(token) for token in vocab if token in wanted)
