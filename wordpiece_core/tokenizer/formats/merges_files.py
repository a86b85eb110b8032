"""GPT-2's two files: `vocab.json` with the ids of tokens, and `merges.txt` with one merge per
line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from wordpiece_core.errors import InputError, shown
from wordpiece_core.options import END_OF_TEXT
from wordpiece_core.symbols import WORD_END
from wordpiece_core.tokenizer.families import gpt2_spec
from wordpiece_core.tokenizer.formats.json_text import Json, written
from wordpiece_core.tokenizer.models import NOTHING_ADDED, Bpe, PostProcessor, around
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.vocabulary import check_vocabulary

VOCAB, MERGES = "vocab.json", "merges.txt"
VERSION = "#version: 0.2"


def merges_files(spec: TokenizerSpec) -> dict[str, bytes]:
    """Return both files of a BPE tokenizer by name."""
    assert isinstance(spec.model, Bpe)
    separated = {number for number, token in enumerate(spec.vocab) if re.search("[ \n\r]", token)}
    for pair in spec.model.merges:
        if not separated.isdisjoint(pair):
            line = " ".join(spec.vocab[token] for token in pair)
            raise InputError(f"{MERGES}: the merge {line!r} has a space or line end in a token")
    lines = [f"{spec.vocab[left]} {spec.vocab[right]}" for left, right in spec.model.merges]
    return {
        VOCAB: written({token: i for i, token in enumerate(spec.vocab)}),
        MERGES: "".join(f"{line}\n" for line in (VERSION, *lines)).encode(),
    }


def vocabulary_of(ids: Json, path: str, unk: str | None) -> list[str]:
    """Return the tokens in id order, from an object with the id of each."""
    numbers = list(ids.values())
    if any(type(number) is not int for number in numbers) or sorted(numbers) != [*range(len(ids))]:
        raise InputError(f"{path}: the ids of the vocabulary are not 0 to {len(ids) - 1}")
    tokens = sorted(ids, key=ids.__getitem__)
    check_vocabulary(tokens, path, unk=unk)
    return tokens


def parse_merges(text: str, path: str) -> list[tuple[str, str]]:
    """Return the merges of a `merges.txt` in order."""
    merges = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if line.startswith("#version") or not line:
            continue
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise InputError(f"{path} line {number}: {shown(line)} is not two tokens and a space")
        merges.append((left, right))
    return merges


def merges_by_id(
    merges: list[tuple[str, str]], ids: dict[str, int], path: str
) -> list[tuple[int, int]]:
    """Return merges as pairs of ids, each once: `tokenizers` uses the last of equal ones. Raises
    InputError for tokens that are not in the vocabulary."""
    found: dict[tuple[int, int], None] = {}
    for left, right in merges:
        for token in (left, right, left + right):
            if token not in ids:
                raise InputError(
                    f"{path}: the merge of {left!r} and {right!r} needs {token!r}, which is not in"
                    " the vocabulary"
                )
        pair = (ids[left], ids[right])
        found.pop(pair, None)
        found[pair] = None
    return list(found)


# The classes of `transformers` that have these files, with the roles of their tokens.
GPT2_CLASS, ROBERTA_CLASS = "GPT2Tokenizer", "RobertaTokenizer"
CLASS_ROLES = {
    GPT2_CLASS: {"bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT},
    ROBERTA_CLASS: {
        **{"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>"},
        **{"pad_token": "<pad>", "mask_token": "<mask>"},
    },
}


def of_merges_files(
    ids: Json,
    merges: list[tuple[str, str]],
    kind: str,
    add_prefix_space: object,
    place: Callable[[str], str],
) -> TokenizerSpec:
    """Return the tokenizer that `transformers` builds of both files.

    Args:
        kind: GPT2_CLASS or ROBERTA_CLASS.
        place: Return the path of a file.
    """
    vocab = vocabulary_of(ids, place(VOCAB), None)
    roles = CLASS_ROLES[kind]
    if any(token.endswith(WORD_END) for token in vocab):
        raise InputError(
            f"{place(VOCAB)}: tokens end with {WORD_END}, unlike GPT-2's; use its tokenizer.json"
        )
    named = {*roles.values(), *(["<unk>"] if kind == ROBERTA_CLASS else [])}
    return gpt2_spec(
        vocab,
        merges_by_id(merges, ids, place(MERGES)),
        special_tokens=named,
        roles=roles,
        post_processor=_post_processor(kind, ids, add_prefix_space is True, place),
        add_prefix_space=add_prefix_space is True,
    )


def _post_processor(
    name: str, ids: Json, add_prefix_space: bool, place: Callable[[str], str]
) -> PostProcessor:
    if name == GPT2_CLASS:
        return NOTHING_ADDED
    for token in ("<s>", "</s>"):
        if token not in ids:
            raise InputError(f"{place(VOCAB)}: no {token}, which {ROBERTA_CLASS} puts around texts")
    ends = around(["<s>"], ["</s>", "</s>"], ["</s>"], 0)
    return replace(ends, fixed_type=True, trims=(add_prefix_space,))
