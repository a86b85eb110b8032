"""Text options with the words of a tokenizer."""

from __future__ import annotations

from contextlib import suppress

from wordpiece_core.errors import OptionError, opt
from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import BYTES
from wordpiece_core.text_parts import (
    GPT2,
    NORMALIZERS,
    PRE_TOKENIZERS,
    names_of_pre_tokenizers,
)
from wordpiece_core.tokenizer.parts import normalizers_of, pre_tokenizers_of
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.words import AS_IT_IS


def text_options(spec: TokenizerSpec) -> TextOptions:
    """Return the text options that split text into the words of a tokenizer. Raises OptionError if
    there are none."""
    words = spec.words
    if words.is_by_options or spec.library is not None:
        return spec.text
    if words.collapses_spaces:
        return AS_IT_IS  # words between spaces, which the tokenizer normalizes itself
    if words.is_metaspace or words.adds_space:
        raise OptionError(
            f"{opt.tokenizer}: its pre-tokenizer is not supported for counting; choose another"
            " tokenizer"
        )
    names = []
    for part in spec.normalizer:
        name = next((name for name, known in NORMALIZERS.items() if known == part), None)
        if name is None:
            raise OptionError(
                f"{opt.tokenizer}: normalizer {part['type']} is not supported for counting; choose"
                " another tokenizer"
            )
        names.append(name)
    steps = list(spec.pre_tokenizer)
    if words.boundary == BYTES:
        last = steps.pop()
        if last.get("add_prefix_space", True):
            raise OptionError(
                f"{opt.tokenizer}: a pre-tokenizer that adds a space before texts is not supported"
                " for counting"
            )
        if last.get("use_regex", True):
            steps += PRE_TOKENIZERS[GPT2]
    return TextOptions(pre_tokenizer=names_of_pre_tokenizers(steps), normalizer=names)


def splits_as(spec: TokenizerSpec, text: TextOptions) -> bool:
    """Return True if a tokenizer splits text into the words that text options give."""
    own = None
    with suppress(OptionError):
        own = text_options(spec)
    if not text.is_composed:
        return own is not None and own.resolved() == text.resolved()
    if spec.words.text is not None or spec.words.is_metaspace:
        return False

    def parts(text: TextOptions) -> tuple[object, object]:
        return normalizers_of(text), pre_tokenizers_of(text, spec.word_boundary)

    written = [(spec.normalizer, spec.pre_tokenizer), *([parts(own)] if own is not None else [])]
    return parts(text) in written
