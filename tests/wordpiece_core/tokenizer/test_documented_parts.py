"""The parts of a `tokenizer.json` behave as `docs/reference/tokenizer-files.md` documents."""

import json
import re
import warnings
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import wordpiece_core as wp

from ..sentencepiece_models import charsmap
from .peers import added

Json = dict[str, Any]
PAGE = Path(__file__).parents[3] / "docs/reference/tokenizer-files.md"
SPACE = {"String": " "}
OPTIONS: dict[str, Json] = {
    "BertNormalizer": {
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "Strip": {"strip_left": True, "strip_right": True},
    "Replace": {"pattern": SPACE, "content": "_"},
    "Prepend": {"prepend": "_"},
    "Precompiled": {"precompiled_charsmap": b64encode(charsmap("nmt_nfkc")).decode()},
    "ByteLevel": {"add_prefix_space": False, "trim_offsets": True},
    "CharDelimiterSplit": {"delimiter": "-"},
    "Digits": {"individual_digits": True},
    "Metaspace": {"replacement": "▁", "prepend_scheme": "always", "split": True},
    "Punctuation": {"behavior": "Isolated"},
    "Split": {"pattern": {"Regex": r"\p{N}{1,3}"}, "behavior": "Isolated", "invert": False},
    "FixedLength": {"length": 5},
}


def of_model(**options: Any) -> Json:
    """A BPE tokenizer of a few letters. `options`: of its model."""
    vocab = {token: number for number, token in enumerate(["[UNK]", "a", "b", "ab", "é"])}
    model = {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]], "unk_token": "[UNK]"}
    return {
        "version": "1.0",
        "added_tokens": [added("[UNK]", 0)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": model | options,
    }


def wordpiece(**flags: bool) -> Json:
    made = of_model()
    names = ("vocab", "unk_token")
    made["model"] = {"type": "WordPiece"} | {name: made["model"][name] for name in names}
    made["model"] |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    made["normalizer"] = {"type": "BertNormalizer"} | OPTIONS["BertNormalizer"]
    made["pre_tokenizer"] = {"type": "BertPreTokenizer"}
    made["added_tokens"].append(added("é", 4, **flags))
    return made


def with_template(single: list[str], pair: list[str]) -> Json:
    made, ids = of_model(), {"a": 1, "b": 2}

    def piece(name: str) -> Json:
        if name in "AB":
            return {"Sequence": {"id": name, "type_id": 0}}
        return {"SpecialToken": {"id": name, "type_id": 0}}

    made["post_processor"] = {
        "type": "TemplateProcessing",
        "single": list(map(piece, single)),
        "pair": list(map(piece, pair)),
        "special_tokens": {
            name: {"id": name, "ids": [number], "tokens": [name]} for name, number in ids.items()
        },
    }
    return made


def with_late_trimming() -> Json:
    made = with_template(["a", "A"], ["a", "A", "B"])
    trims = {"type": "ByteLevel"} | OPTIONS["ByteLevel"]
    made["post_processor"] = {"type": "Sequence", "processors": [made["post_processor"], trims]}
    return made


def with_part(place: str, kind: str) -> Json:
    return of_model() | {place: {"type": kind} | OPTIONS.get(kind, {})}


def with_gap() -> Json:
    made = of_model()
    made["model"]["vocab"]["z"] = 9
    return made


def with_vanishing_token() -> Json:
    made = with_part("normalizer", "Strip")
    made["added_tokens"].append(added(" ", 5, normalized=True))
    return made


def with_replace(regex: str) -> Json:
    made = with_part("pre_tokenizer", "ByteLevel")
    pattern = {"Regex": regex}
    return made | {"normalizer": {"type": "Replace", "pattern": pattern, "content": "a"}}


def with_other_unknown_token() -> Json:
    made = wordpiece()
    made["model"]["unk_token"] = "a"
    return made


def word_level() -> Json:
    made = of_model()
    made["model"] = {"type": "WordLevel", "vocab": made["model"]["vocab"], "unk_token": "[UNK]"}
    return made


BY_LIBRARY: dict[str, list[Callable[[], Json]]] = {
    "the model WordLevel": [word_level],
    "the pre-tokenizer `UnicodeScripts`": [lambda: with_part("pre_tokenizer", "UnicodeScripts")],
    "BPE with `continuing_subword_prefix`, or with an `end_of_word_suffix` other than `</w>`": [
        lambda: of_model(continuing_subword_prefix="##", merges=[]),
        lambda: of_model(end_of_word_suffix="_"),
    ],
    "`byte_fallback` without a token for each byte": [lambda: of_model(byte_fallback=True)],
    "a template that does not have each text once, the first before the second": [
        lambda: with_template(["a", "A"], ["B", "a", "A"]),
        lambda: with_template(["a", "A", "A"], ["A", "B"]),
    ],
    "a post-processor with `trim_offsets` after a post-processor that adds special tokens": [
        with_late_trimming
    ],
    "ids without a token between others": [with_gap],
    "a `Replace` by a regular expression that may match nothing, such as `^` or `x*`, and"
    " `ByteLevel`": [partial(with_replace, regex) for regex in ("(?=b)", "a|", "a{0,2}")],
}


def table(heading: str) -> list[list[str]]:
    """The cells of the rows of the first table below a heading of the page."""
    part = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*) \|$", part, re.M)
    return [[cell.strip() for cell in re.split(r" \|(?: |$)", row)] for row in rows][1:]


def library_part(tokenizer: Json, path: Path) -> str | None:
    """The part of a tokenizer that the library is needed for; None if the kernel encodes it."""
    path.write_text(json.dumps(tokenizer))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wp.Tokenizer.load(str(path))(["ab a"])
    found = [w.message for w in caught if isinstance(w.message, wp.EncodedByLibraryWarning)]
    return found[0].args[1] if found else None


def test_the_kernel_encodes_what_differs_in_no_part(tmp_path: Path) -> None:
    usual = [of_model(), wordpiece(), wordpiece(words="WhitespaceSplit")]
    usual += [
        wordpiece() | {"post_processor": with_template(["a", "A"], ["A", "B"])["post_processor"]}
    ]
    usual += [with_other_unknown_token(), wordpiece(special=False)]
    flags = ("lstrip", "rstrip", "single_word", "normalized")
    usual += [wordpiece(**{flag: True}) for flag in flags]
    usual += map(with_replace, (r"\s+", " {2,}", r"\n|\r\n", r"[^a\]]", "a|b", r"\p{Lu}"))
    for made in [*usual, with_template(["a", "A"], ["b", "A", "a", "B"])]:
        assert library_part(made, tmp_path / "tokenizer.json") is None


def test_the_page_lists_what_the_library_encodes() -> None:
    listed = [cells[0] for cells in table("Encoded by the library tokenizers")]
    assert listed == [*BY_LIBRARY]


@pytest.mark.parametrize("row", BY_LIBRARY)
def test_the_library_encodes_what_the_page_says(row: str, tmp_path: Path) -> None:
    for made in BY_LIBRARY[row]:
        assert library_part(made(), tmp_path / "tokenizer.json"), row


def natively(name: str) -> list[str]:
    """The parts of a kind that the page says the kernel encodes."""
    rows = {cells[0]: cells[1] for cells in table("Encoded by the kernel")}
    return re.findall(r"`(\w+)`", rows[name])


PARTS = [
    (place, kind)
    for place in ("normalizer", "pre_tokenizer")
    for kind in natively(place.replace("_", "-") + "s")
]


def test_an_added_token_that_is_normalized_to_nothing_is_an_error(tmp_path: Path) -> None:
    listed = [cells[0] for cells in table("Not supported")]
    assert "an added token that is empty after normalization" in listed
    with pytest.raises(wp.InputError, match="added token ' ' is empty after normalization; set"):
        library_part(with_vanishing_token(), tmp_path / "tokenizer.json")


@pytest.mark.parametrize(("place", "kind"), PARTS)
def test_the_kernel_encodes_parts(place: str, kind: str, tmp_path: Path) -> None:
    assert library_part(with_part(place, kind), tmp_path / "tokenizer.json") is None


def test_the_page_lists_all_parts_of_the_kernel() -> None:
    """All kinds that `core` reads of a `tokenizer.json` are on the page."""
    composed = PAGE.parents[2] / "wordpiece_core/kernel/core/src/text/composed"
    for name, enum in (("normalizer", "NormalizerJson"), ("pre_tokenizer", "PreTokenizerJson")):
        source = (composed / f"{name}.rs").read_text(encoding="utf-8")
        body = source.partition(f"pub enum {enum} {{\n")[2].partition("\n}")[0]
        body = re.sub(r'#\[serde\(rename = "(\w+)"\)\]\n    \w+', r"\1", body)
        kinds = {*re.findall(r"^    (\w+)(?: \{|\(|,)", body, re.M)} - {"Sequence"}
        listed = {*natively(name.replace("_", "-") + "s")}
        assert kinds
        assert kinds - {"SentencePiece"} == listed  # that is a whole model's, not of such files
