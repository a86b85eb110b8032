"""What a tokenizer's files say: everything that its ids depend on. `writing` writes them, and
`reading` reads them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import ROLES, SPACE_MARK, SPECIAL_TOKENS
from wordpiece_core.text_parts import GPT2
from wordpiece_core.tokenizer.models import (
    BERT_TEMPLATE,
    AddedToken,
    Bpe,
    ByteLevel,
    Composed,
    Layout,
    Library,
    Metaspace,
    Model,
    Template,
    Unigram,
)
from wordpiece_core.tokenizer.vocabulary import is_unused

# The roles of tokens by what they are usually called, for files that do not say them.
USUAL_ROLES = {
    "pad_token": ("<pad>", "[PAD]"),
    "mask_token": ("<mask>", "[MASK]"),
    "bos_token": ("<s>", "<|endoftext|>", "<|begin_of_text|>"),
    "eos_token": ("</s>", "<|endoftext|>", "<|end_of_text|>"),
}
ROLE_NAMES = (*ROLES, "bos_token", "eos_token")
NO_TEMPLATE = Template()
AS_IT_IS = TextOptions(
    lowercase=False,
    strip_accents=False,
    clean_text=False,
    handle_chinese_chars=False,
    pre_tokenizer="whitespace",
)
"""The text options of a tokenizer whose `rules` are a Metaspace, or that the library `tokenizers`
runs: those say how text is handled."""


@dataclass(frozen=True)
class TokenizerSpec:
    """Everything that the ids of a tokenizer depend on.

    >>> from wordpiece_core import Tokenizer
    >>> Tokenizer(["[UNK]", "hug", "##s"]).spec.vocab
    ['[UNK]', 'hug', '##s']
    """

    vocab: Sequence[str]
    text: TextOptions = field(default_factory=TextOptions)
    max_word_length: int = 100
    continuing_prefix: str = "##"
    more_special_tokens: Sequence[str] = ()
    """Special tokens beside BERT's five. They are found where they are written in a text."""
    model: Model | None = None
    """None: WordPiece."""
    rules: ByteLevel | Metaspace | Composed | None = None
    """How text becomes words, if not by `text`."""
    roles: Mapping[str, str] | None = None
    """`unk_token`, `pad_token` and so on, if they are not BERT's."""
    added: Template | None = None
    """What is put around texts, if it is not what BERT puts."""
    added_tokens: Sequence[AddedToken] | None = None
    """How those special tokens are found that are not found as special tokens usually are."""
    model_max_length: int | None = None
    """The maximum number of tokens of the model that the tokenizer is for. Ids do not depend on it.
    """
    trim_offsets: Sequence[bool] | None = None
    """The `add_prefix_space` of each post-processor that trims offsets. None: as GPT-2 does."""
    decoder: str | None = None
    """The decoder as JSON, if it is not the usual one of the model. Ids do not depend on it."""
    config: Mapping[str, Any] | None = None
    """Keys of the `tokenizer_config.json` that was read, such as the chat template, which are
    written again. Ids do not depend on them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.resolve())

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON can hold; `from_dict` makes the spec of them. What WordPiece does not
        have is left out."""
        value = {name: item for name, item in vars(self).items() if item is not None}
        value["text"] = asdict(self.text)
        if self.added is not None:
            value["added"] = asdict(self.added)
        if self.added_tokens is not None:
            value["added_tokens"] = [vars(token) for token in self.added_tokens]
        for name in ("model", "rules"):
            if name in value:  # its merges are many: they are not copied
                value[name] = {"type": type(value[name]).__name__} | vars(value[name])
        if isinstance(self.rules, Metaspace):
            value["rules"]["charsmap"] = b64encode(self.rules.charsmap).decode()
        return value

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TokenizerSpec:
        """From what `to_dict` returns."""
        of = (Bpe, Unigram, Library, ByteLevel, Metaspace, Composed)
        kinds = {kind.__name__: kind for kind in of}
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
            made["added"] = _template_from_dict(made["added"])
        if "added_tokens" in made:
            made["added_tokens"] = tuple(AddedToken(**token) for token in made["added_tokens"])
        return cls(**made)

    @property
    def tokens_found_otherwise(self) -> dict[str, AddedToken]:
        """`added_tokens` by their content."""
        return {token.content: token for token in self.added_tokens or ()}

    @property
    def library(self) -> Library | None:
        """The model, if the library `tokenizers` runs the tokenizer."""
        return self.model if isinstance(self.model, Library) else None

    @property
    def of_sentencepiece(self) -> bool:
        """Whether it was read from a model of sentencepiece, and does what that does."""
        return isinstance(self.model, Bpe | Unigram) and self.model.of_sentencepiece

    @property
    def tokens_by_role(self) -> dict[str, str]:
        """The token of each role (`unk_token`, `pad_token`, ...) that the vocabulary has."""
        known = set(self.vocab)
        roles = ROLES if self.roles is None else self.roles
        if self.roles is None and self.model is not None:
            roles = usual_roles(self.special_tokens) | ROLES
        return {name: token for name, token in roles.items() if token in known}

    @property
    def special_tokens(self) -> list[str]:
        """The tokens that are found where they are written in a text: `more_special_tokens`, and
        those of BERT's five that the vocabulary has, unless there are other `roles`."""
        known = set(self.vocab)
        of_bert = SPECIAL_TOKENS if self.roles is None else ()
        wanted = dict.fromkeys((*of_bert, *self.more_special_tokens))
        return [token for token in wanted if token in known and token != ""]

    def with_roles(self, roles: Mapping[str, str]) -> TokenizerSpec:
        """Return the tokenizer with these roles in the place of BERT's. Its special tokens stay."""
        return replace(
            self,
            roles=roles,
            more_special_tokens=tuple(self.special_tokens),
            added=self.around or NO_TEMPLATE,
        )

    @property
    def word_boundary(self) -> str | None:
        """How words are marked: see `Bpe`. None: not at all, or as WordPiece does."""
        if isinstance(self.model, Unigram):
            return SPACE_MARK
        return None if self.model is None else self.model.word_boundary

    @property
    def offset_trimming(self) -> list[bool]:
        """The `add_prefix_space` of each post-processor that trims offsets."""
        if self.trim_offsets is None:
            return [False] if self.text.pre_tokenizer == GPT2 else []
        return list(self.trim_offsets)

    @property
    def around(self) -> Template | None:
        """What is put around texts. None: the vocabulary lacks [CLS] or [SEP]."""
        if self.added is None and {"[CLS]", "[SEP]"} <= {*self.vocab}:
            return BERT_TEMPLATE
        return self.added


def _template_from_dict(value: Mapping[str, Any]) -> Template:
    """The tokens around texts, from what JSON has of them."""

    def layout(plain: Mapping[str, Any]) -> Layout:
        tokens = {
            name: [(token, kind) for token, kind in plain[name]]
            for name in ("before", "between", "after")
        }
        first, second = plain["types"]
        return Layout(**tokens, types=(first, second))

    return Template(layout(value["single"]), layout(value["pair"]), value["fixed_type"])


def unless_usual(rules: ByteLevel) -> ByteLevel | None:
    """The rules of GPT-2's words; None if they are those that the text option `gpt2` says alone."""
    return None if rules == ByteLevel() else rules


def trimming_unless_usual(trimming: Sequence[bool], text: TextOptions) -> Sequence[bool] | None:
    """The `trim_offsets` of a spec; None if they are those that the text options say alone."""
    usual = TokenizerSpec((), text).offset_trimming
    return None if list(trimming) == usual else trimming


def usual_roles(special_tokens: Collection[str]) -> dict[str, str]:
    """The roles of special tokens, as they are usually called."""
    found = {}
    for role, usual in USUAL_ROLES.items():
        tokens = [token for token in usual if token in special_tokens]
        if tokens:
            found[role] = tokens[0]
    return found


def own_special_tokens(tokens: Sequence[str]) -> list[str]:
    """Those special tokens of a training that are neither BERT's five nor its [unusedN]. BERT's
    tokenizers do not look for [unusedN] in a text."""
    return [t for t in tokens if t not in SPECIAL_TOKENS and not is_unused(t)]


def tokens_in_texts(special_tokens: Sequence[str]) -> list[AddedToken]:
    """Return the special tokens of a training that its tokenizer finds in texts: not [unusedN]."""
    return [AddedToken(token) for token in special_tokens if token and not is_unused(token)]
