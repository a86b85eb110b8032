"""The model of a tokenizer, its added tokens, and its post-processor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

MOST_IDS = 1 << 24  # maximum size of a vocabulary, including ids without a token
BERT_LENGTH = 100  # characters; longer words become [UNK]


# --- Models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordPiece:
    """WordPiece: greedy longest match.

    Attributes:
        continuing_prefix: Prefix of tokens that do not begin a word.
        max_word_length: Longer words, in characters, become the unknown token.
    """

    continuing_prefix: str = "##"
    max_word_length: int = BERT_LENGTH


@dataclass(frozen=True)
class Bpe:
    """Byte-pair encoding. Words begin as characters, or as bytes if the pre-tokenizer says so.

    Attributes:
        merges: Distinct pairs of ids, by rank. The token of a pair is the concatenation of both.
        end_of_word_suffix: `</w>` if it is part of the last symbol of a word.
        byte_fallback: An unknown character becomes the tokens <0xNN> of its bytes.
        fuse_unk: Adjacent unknown symbols are one unknown token.
        ignore_merges: A word that is a token is not split.
        of_sentencepiece: True for a model of sentencepiece.
        tied: Indices of merges that share the rank of the previous merge.
    """

    merges: Sequence[tuple[int, int]]
    end_of_word_suffix: str | None = None
    byte_fallback: bool = False
    fuse_unk: bool = False
    ignore_merges: bool = False
    of_sentencepiece: bool = False
    tied: Sequence[int] = ()


@dataclass(frozen=True)
class Unigram:
    """A unigram language model. Words begin with `▁`.

    Attributes:
        scores: Natural logarithms of probabilities, by id; 0 for special tokens.
        byte_fallback: An unknown character becomes the tokens <0xNN> of its bytes.
        of_sentencepiece: True if sums of scores are rounded as by sentencepiece (32 bits, over the
            complete text), and only ordinary pieces are found in texts. Otherwise they are rounded
            as by `tokenizers` (64 bits, over each word).
        user_defined: Ids of the user-defined symbols of sentencepiece, which win over other pieces.
    """

    scores: Sequence[float]
    byte_fallback: bool = False
    of_sentencepiece: bool = False
    user_defined: Sequence[int] = ()


@dataclass(frozen=True)
class Library:
    """A tokenizer that the library `tokenizers` runs, because the kernel lacks a part of it.

    Attributes:
        tokenizer_json: The text of its file, which alone decides about ids.
        kind: The type of its model.
        word_boundary: BYTES or SPACE_MARK if tokens that begin words begin with one of these. It
            only decides how tokens are shown.
        continuing_prefix: As in `WordPiece`, likewise.
    """

    tokenizer_json: str
    kind: str
    word_boundary: str | None = None
    continuing_prefix: str = ""


Model = WordPiece | Bpe | Unigram | Library


def model_name(model: type[Model] | Model) -> str:
    """Return the usual name of a model, or of the class of a model."""
    if isinstance(model, Library):
        return f"{model.kind} of the library tokenizers"
    kind = model if isinstance(model, type) else type(model)
    return "BPE" if kind is Bpe else kind.__name__


# --- Added tokens ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class AddedToken:
    """A token that is found in texts before they are split into words. The names are the names of
    `tokenizers`, and the defaults are the defaults of a special token.

    Attributes:
        lstrip: True to include the white space before the token.
        rstrip: True to include the white space after the token.
        single_word: True to find it only without adjacent word characters.
        normalized: True to search for it in normalized text.
        special: False to find it even if special tokens are text like any other.
        in_model: True if it is also a token of the model.
    """

    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False
    special: bool = True
    in_model: bool = True

    def for_kernel(self) -> dict[str, Any]:
        """Return the content and the flags."""
        flags = ("content", "lstrip", "rstrip", "single_word", "normalized", "special")
        return {flag: getattr(self, flag) for flag in flags}


def in_model(tokens: Sequence[AddedToken]) -> tuple[AddedToken, ...]:
    """Return the tokens as tokens of the model."""
    return tuple(replace(token, in_model=True) for token in tokens)


# --- Post-processors ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Layout of a row: `before` A `after`, or `before` A `between` B `after`, with the token type
    of each added token. `types`: token types of A and B."""

    before: Sequence[tuple[str, int]] = ()
    between: Sequence[tuple[str, int]] = ()
    after: Sequence[tuple[str, int]] = ()
    types: tuple[int, int] = (0, 1)

    @property
    def added(self) -> list[tuple[str, int]]:
        """All added tokens with their types."""
        return [*self.before, *self.between, *self.after]


@dataclass(frozen=True)
class PostProcessor:
    """Tokens around texts, and offsets without white space.

    Attributes:
        single: Layout of a text.
        pair: Layout of two texts.
        fixed_type: True if texts have their types in all rows of a stride, as with BertProcessing
            and RobertaProcessing of `tokenizers`. With TemplateProcessing, B has type 1 in rows
            that do not begin with the beginning of B.
        trims: The `add_prefix_space` of each post-processor that trims offsets.
    """

    single: Layout = Layout()
    pair: Layout = Layout()
    fixed_type: bool = False
    trims: tuple[bool, ...] = ()


def around(
    before: Sequence[str], between: Sequence[str], after: Sequence[str], second_type: int = 1
) -> PostProcessor:
    """Return the post-processor that puts the same tokens around a text and around a pair.
    `second_type`: type of B and of the tokens after it."""
    first = [(token, 0) for token in before]
    return PostProcessor(
        Layout(first, (), [(token, 0) for token in after]),
        Layout(
            first,
            [(token, 0) for token in between],
            [(token, second_type) for token in after],
            (0, second_type),
        ),
    )


NOTHING_ADDED = PostProcessor()
BERT_ENDS = around(["[CLS]"], ["[SEP]"], ["[SEP]"])
