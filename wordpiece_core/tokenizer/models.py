"""What a tokenizer has beside its vocabulary and WordPiece's options: the merges of BPE, the scores
of Unigram; and how text becomes words where that is not BERT's way."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from wordpiece_core.symbols import SPACE_MARK, WORD_END

MOST_IDS = 1 << 24  # of a vocabulary, with ids that have no token

# How the normalizer makes several spaces one, where the pre-tokenizer does not.
STRIP = {"type": "Strip", "strip_left": False, "strip_right": True}
REPLACE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE_MARK}


@dataclass(frozen=True)
class Bpe:
    """Byte-pair encoding. `merges`: distinct pairs of ids, by rank. The token of a pair is the
    concatenation of both tokens. `word_boundary`: WORD_END is part of the last
    symbol of a word; SPACE_MARK is put before a word; with BYTES a word's symbols are its bytes, as
    the characters that GPT-2 writes for them, a space first unless `pre_tokenizer` is gpt2; None:
    words are not marked. `byte_fallback`: a character that is no token becomes the tokens <0xNN> of
    its bytes. `fuse_unk`: unknown symbols side by side are one unknown token. `ignore_merges`: a
    word that is a token is not split. `of_sentencepiece`: it is a model of sentencepiece. `tied`:
    indices of merges that share the rank of the previous merge."""

    merges: Sequence[tuple[int, int]]
    word_boundary: str | None = WORD_END
    byte_fallback: bool = False
    fuse_unk: bool = False
    ignore_merges: bool = False
    of_sentencepiece: bool = False
    tied: Sequence[int] = ()


@dataclass(frozen=True)
class Unigram:
    """A unigram language model. `scores`: natural logarithms of probabilities, by id; those of
    special tokens are 0. Words begin with SPACE_MARK. `byte_fallback`: an unknown character becomes
    the tokens <0xNN> of its bytes. `of_sentencepiece`: sums of scores are rounded as sentencepiece
    rounds them (32 bits, over the whole text), and only ordinary pieces are found in texts; else as
    `tokenizers` does (64 bits, over each word). `user_defined`: the ids of its user-defined
    symbols, which win over other pieces."""

    scores: Sequence[float]
    byte_fallback: bool = False
    of_sentencepiece: bool = False
    user_defined: Sequence[int] = ()


@dataclass(frozen=True)
class Library:
    """A tokenizer that the library `tokenizers` runs, because a part of it is not known here.
    `tokenizer_json`: the text of its file, which alone decides about ids. `kind`: its model.
    `word_boundary`: BYTES or SPACE_MARK, if tokens that begin words begin with one of these. It
    says how tokens are shown, and nothing about ids."""

    tokenizer_json: str
    kind: str
    word_boundary: str | None = None


Model = Bpe | Unigram | Library


def model_name(model: type[Bpe | Unigram] | Model | None) -> str:
    """What people call a model, or the kind of one; None: WordPiece."""
    if isinstance(model, Library):
        return f"{model.kind} of the library tokenizers"
    kind = model if isinstance(model, type) else type(model)
    return {Bpe: "BPE", Unigram: "Unigram"}.get(kind, "WordPiece")


@dataclass(frozen=True)
class ByteLevel:
    """How GPT-2 splits text: by its regular expression, into pieces that keep their space.
    `add_prefix_space`: a space is put before a text that has none."""

    add_prefix_space: bool = False


@dataclass(frozen=True)
class Metaspace:
    """How SentencePiece makes words of text: characters are normalized by a compiled map, spaces
    become SPACE_MARK, and a word begins at each. `charsmap`: the map, as SentencePiece's models
    have it; empty: none. `by_grapheme`: the map is applied as `tokenizers` applies it; else as
    sentencepiece does, the longest match first. `collapse_spaces`: several spaces are one, and
    those at both ends of the text are dropped. `prepend`: whether SPACE_MARK is put before a text:
    "always" (also behind each special token), "first" (only at the beginning) or "never".
    `by_replacement`: `tokenizers` collapses spaces by Strip and Replace, not by WhitespaceSplit."""

    charsmap: bytes = b""
    by_grapheme: bool = False
    collapse_spaces: bool = True
    prepend: str = "always"
    by_replacement: bool = False

    @property
    def normalizers(self) -> list[dict[str, Any]]:
        """The normalizers by which `tokenizers` makes these words."""
        parts: list[dict[str, Any]] = []
        if self.charsmap:
            compiled = b64encode(self.charsmap).decode()
            parts.append({"type": "Precompiled", "precompiled_charsmap": compiled})
        return parts + ([STRIP, REPLACE] if self.collapse_spaces and self.by_replacement else [])

    @property
    def pre_tokenizers(self) -> list[dict[str, Any]]:
        """The same for its pre-tokenizers."""
        by_split = self.collapse_spaces and not self.by_replacement
        parts: list[dict[str, Any]] = [{"type": "WhitespaceSplit"}] if by_split else []
        return [*parts, metaspace(self.prepend, split=True)]

    @property
    def normalizer_spec(self) -> dict[str, Any]:
        """The options by which sentencepiece makes them."""
        return {
            "precompiled_charsmap": b64encode(self.charsmap).decode(),
            "add_dummy_prefix": self.prepend != "never",
            "remove_extra_whitespaces": self.collapse_spaces,
            "escape_whitespaces": True,
            "treat_whitespace_as_suffix": False,
        }


def metaspace(prepend: str, *, split: bool) -> dict[str, Any]:
    """The pre-tokenizer of `tokenizers` that makes spaces visible."""
    return {
        "type": "Metaspace",
        "replacement": SPACE_MARK,
        "prepend_scheme": prepend,
        "split": split,
    }


@dataclass(frozen=True)
class Composed:
    """The normalizer and the pre-tokenizer of a `tokenizer.json`, as JSON; None: there is none.
    `of_bytes`: words are bytes, written as the characters that GPT-2 writes for them. `decoder`:
    what makes text of tokens again, as JSON."""

    normalizer: str | None = None
    pre_tokenizer: str | None = None
    of_bytes: bool = False
    decoder: str | None = None


@dataclass(frozen=True)
class Layout:
    """What a row is made of: `before` A `after`, or `before` A `between` B `after`, with the token
    type of each added token. `types`: the token types of A and B."""

    before: Sequence[tuple[str, int]] = ()
    between: Sequence[tuple[str, int]] = ()
    after: Sequence[tuple[str, int]] = ()
    types: tuple[int, int] = (0, 1)

    @property
    def added(self) -> list[tuple[str, int]]:
        """All added tokens, with their types."""
        return [*self.before, *self.between, *self.after]


@dataclass(frozen=True)
class AddedToken:
    """How a token is found in texts. The names are those of `tokenizers`, and the defaults those of
    a special token. `in_model`: whether words can become it, too."""

    content: str
    lstrip: bool = False
    """Whether it takes the white space before it."""
    rstrip: bool = False
    """Whether it takes the white space behind it."""
    single_word: bool = False
    """Whether it is found only where no word character is next to it."""
    normalized: bool = False
    """Whether it is searched for only between the others."""
    special: bool = True
    """False: it is found also where special tokens are text like any other."""
    in_model: bool = True

    def for_kernel(self) -> dict[str, Any]:
        """The content and the flags that the kernel searches for."""
        flags = ("content", "lstrip", "rstrip", "single_word", "normalized", "special")
        return {flag: getattr(self, flag) for flag in flags}


def in_model(tokens: Sequence[AddedToken] | None) -> tuple[AddedToken, ...] | None:
    """The same tokens where all are in the model, without those that are found as usual."""
    changed = [replace(token, in_model=True) for token in tokens or ()]
    return tuple(token for token in changed if token != AddedToken(token.content)) or None


@dataclass(frozen=True)
class Template:
    """The tokens that are put around texts. `single`: around a text. `pair`: around two.
    `fixed_type`: texts have their types in all rows of a stride, as BertProcessing and
    RobertaProcessing of `tokenizers` do it; with its TemplateProcessing B has 1 in rows that do not
    begin with the beginning of B."""

    single: Layout = Layout()
    pair: Layout = Layout()
    fixed_type: bool = False


def around(
    before: Sequence[str], between: Sequence[str], after: Sequence[str], second_type: int = 1
) -> Template:
    """The same tokens around a text and around two. `second_type`: that of B, and of what is after
    it."""
    first = [(token, 0) for token in before]
    return Template(
        Layout(first, (), [(token, 0) for token in after]),
        Layout(
            first,
            [(token, 0) for token in between],
            [(token, second_type) for token in after],
            (0, second_type),
        ),
    )


BERT_TEMPLATE = around(["[CLS]"], ["[SEP]"], ["[SEP]"])
