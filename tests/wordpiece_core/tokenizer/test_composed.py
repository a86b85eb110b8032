"""Tokenizers of any normalizers, pre-tokenizers, models, added tokens and templates give what
`tokenizers` gives: ids, offsets, words, and the columns of pairs."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import wordpiece_core as wp
from wordpiece_core.tokenizer.formats.json_text import parse
from wordpiece_core.tokenizer.formats.tokenizer_json_reading import from_tokenizer_json

Json = dict[str, Any]

SPECIAL = ["<unk>", "<s>", "</s>"]
TEXT = """
the The THE cat's we'll it's naïve café cafe\u0301 Straße İstanbul ﬁne 1999 ²½Ⅷ x+y=z don't
привет Мир 你好世界 日本語 カナ かな 한국어 a\u0301\u0308b e\u0301\u0323 __init__ (foo) [bar]
--- ... ſ \u212a 👨\u200d👩\u200d👧
"""
WORDS = TEXT.split()
GAPS = [
    *(" ", "  ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u200b", "", "", "▁", ",", "<s>"),
]

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PATTERNS = [
    {"Regex": LLAMA3},
    {"Regex": r"\p{N}{1,2}"},
    {"Regex": r"\s+"},
    {"Regex": r"(?=[A-Z])"},
    {"String": " "},
    {"String": "e"},
]


def normalizers(random: Random, of_bytes: bool) -> Json | None:
    """A normalizer, or none."""
    known: list[Json] = [
        *({"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")),
        {"type": "Nmt"},
        {
            "type": "Strip",
            "strip_left": random.random() < 0.7,
            "strip_right": random.random() < 0.7,
        },
        {"type": "Replace", "pattern": {"String": " "}, "content": random.choice(["▁", "", "__"])},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": random.choice([" ", "▁▁"])},
        {"type": "Prepend", "prepend": random.choice(["▁", "ab"])},
        {
            "type": "BertNormalizer",
            "clean_text": random.random() < 0.5,
            "handle_chinese_chars": random.random() < 0.5,
            "strip_accents": random.choice([None, True, False]),
            "lowercase": random.random() < 0.5,
        },
    ]
    if not of_bytes:
        known.append({"type": "ByteLevel"})
    return sequence("normalizers", random.sample(known, random.choice([0, 1, 1, 2, 3])))


def cutters(random: Random, of_bytes: bool) -> Json | None:
    """A pre-tokenizer, or none. `of_bytes`: the last one writes bytes."""
    known: list[Json] = [
        {"type": "Whitespace"},
        {"type": "WhitespaceSplit"},
        {"type": "BertPreTokenizer"},
        {"type": "Digits", "individual_digits": random.random() < 0.5},
        {"type": "Punctuation", "behavior": random.choice(BEHAVIORS)},
        {"type": "CharDelimiterSplit", "delimiter": random.choice(" e-")},
        {"type": "FixedLength", "length": random.randrange(1, 7)},
        {
            "type": "Split",
            "pattern": random.choice(PATTERNS),
            "behavior": random.choice(BEHAVIORS),
            "invert": random.random() < 0.3,
        },
        {
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": random.choice(["always", "first", "never"]),
            "split": random.random() < 0.5,
        },
    ]
    found = random.sample(known, random.choice([0, 1, 1, 2, 3]))
    if of_bytes or random.random() < 0.2:
        bytes_: Json = {
            "type": "ByteLevel",
            "add_prefix_space": random.random() < 0.3,
            "trim_offsets": True,
            "use_regex": random.random() < 0.5,
        }
        found.insert(len(found) if of_bytes else random.randrange(len(found) + 1), bytes_)
    return sequence("pretokenizers", found)


def sequence(name: str, parts: list[Json]) -> Json | None:
    """Nothing, a part, or a sequence of them."""
    if len(parts) > 1:
        return {"type": "Sequence", name: parts}
    return parts[0] if parts else None


@cache
def trained(kind: str) -> str:
    """The JSON of a small tokenizer."""
    made = Tokenizer(
        {"bpe": models.BPE, "bytes": models.BPE, "end": models.BPE}.get(kind, models.Unigram)()
    )
    text = [" ".join(WORDS), "▁".join(WORDS), "the ▁the ▁cat ▁café"] * 3
    options: Json = {"vocab_size": 400, "special_tokens": SPECIAL, "show_progress": False}
    if kind == "unigram":
        trainer: Any = trainers.UnigramTrainer(unk_token="<unk>", **options)
        made.pre_tokenizer = pre_tokenizers.Metaspace()
    else:
        more = {"end_of_word_suffix": "</w>"} if kind == "end" else {}
        alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "bytes" else []
        trainer = trainers.BpeTrainer(initial_alphabet=alphabet, **options, **more)
        made.pre_tokenizer = (
            pre_tokenizers.ByteLevel() if kind == "bytes" else pre_tokenizers.WhitespaceSplit()
        )
    made.train_from_iterator(text, trainer)
    made.decoder = decoders.Fuse()
    return str(made.to_str())


def tokenizer(random: Random, kind: str) -> Json:
    """A tokenizer of parts drawn at random."""
    value: Json = json.loads(trained(kind))
    of_bytes = kind == "bytes"
    model = value["model"]
    value["normalizer"] = normalizers(random, of_bytes)
    value["pre_tokenizer"] = cutters(random, of_bytes)
    if kind in ("bpe", "end"):
        model["unk_token"] = random.choice([None, "<unk>"])
        model["fuse_unk"] = random.random() < 0.5
        model["ignore_merges"] = random.random() < 0.5
    ids = {t: i for i, (t, _) in enumerate(model["vocab"])} if kind == "unigram" else model["vocab"]
    more = random.sample(["the", "cat", "Мир ", "--", " x"], random.randrange(4))
    known = [(token, ids.get(token)) for token in (*SPECIAL, *more)]
    next_id = len(ids)
    value["added_tokens"] = []
    for content, number in known:
        number, next_id = (next_id, next_id + 1) if number is None else (number, next_id)
        flags = {
            flag: random.random() < 0.3
            for flag in ("single_word", "lstrip", "rstrip", "normalized")
        }
        special = content in SPECIAL or random.random() < 0.3
        token = {"id": number, "content": content, **flags, "special": special}
        value["added_tokens"].append(token)
    value["added_tokens"].sort(key=lambda token: token["id"])
    value["post_processor"] = template(random, ids)
    return value


def template(random: Random, ids: dict[str, int]) -> Json:
    """Tokens around texts, and their token types."""

    def special() -> list[Json]:
        tokens = random.sample(SPECIAL, random.randrange(3))
        return [{"SpecialToken": {"id": t, "type_id": random.randrange(3)}} for t in tokens]

    def text(name: str) -> list[Json]:
        return [{"Sequence": {"id": name, "type_id": random.randrange(2)}}]

    return {
        "type": "TemplateProcessing",
        "single": [*special(), *text("A"), *special()],
        "pair": [*special(), *text("A"), *special(), *text("B"), *special()],
        "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in SPECIAL},
    }


def texts(random: Random) -> list[str]:
    """Texts that all parts have something to do with."""
    made = ["", " ", "  the cat ", "The 1999-cat<s> x"]
    for _ in range(24):
        words = [random.choice(WORDS) + random.choice(GAPS) for _ in range(random.randrange(9))]
        made.append(random.choice(GAPS) + "".join(words))
    return made


def check(value: Json, given: list[str]) -> None:
    """Compares everything of the texts, and of pairs of them."""
    peer = Tokenizer.from_str(json.dumps(value))
    ours = wp.Tokenizer.of(from_tokenizer_json(parse(json.dumps(value), "it"), "it"))
    columns = ["offset_mapping", "word_ids", "token_type_ids", "special_tokens_mask"]
    for adds in (False, True):
        options = wp.EncodingOptions(add_special_tokens=adds, columns=columns)
        plain = wp.EncodingOptions(add_special_tokens=adds)
        for pairs in (None, given[::-1]):
            wanted = peer.encode_batch(
                given if pairs is None else list(zip(given, pairs, strict=True)),
                add_special_tokens=adds,
            )
            rows = ours.encode_batch(given, pairs, options=options).table.to_pylist()
            ids = ours.encode_batch(given, pairs, options=plain).table["input_ids"].to_pylist()
            for text, row, row_ids, want in zip(given, rows, ids, wanted, strict=True):
                found = (
                    row_ids,
                    row["input_ids"],
                    [
                        tuple(at.values()) if isinstance(at, dict) else tuple(at)
                        for at in row["offset_mapping"]
                    ],
                    row["word_ids"],
                    row["token_type_ids"],
                    row["special_tokens_mask"],
                )
                same = (want.ids, want.ids, want.offsets, want.word_ids, want.type_ids)
                assert found == (*same, want.special_tokens_mask), (text, want.tokens)


@pytest.mark.parametrize("kind", ["bytes", "bpe", "end", "unigram"])
@pytest.mark.parametrize("seed", range(4))
def test_random_parts_give_what_tokenizers_gives(kind: str, seed: int) -> None:
    random = Random(f"{kind} {seed}")
    for _ in range(60):
        check(tokenizer(random, kind), texts(random))


@pytest.mark.parametrize("text", ["a ☃", " ☃ a", "☃  ☃b☃ ", "é ☃ é"])
def test_offsets_of_unknown_tokens_are_trimmed(text: str) -> None:
    value = json.loads(Tokenizer(models.Unigram([("<unk>", 0), ("a", -1), ("b", -1)], 0)).to_str())
    value["normalizer"] = {"type": "NFC"}
    trims = {"add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    value["post_processor"] = {"type": "ByteLevel", **trims}
    check(value, [text, text])  # the second one is known already


def test_a_regular_expression_that_takes_too_long_is_an_error_that_names_it() -> None:
    value = json.loads(Tokenizer(models.Unigram([("<unk>", 0), ("a", -1)], 0)).to_str())
    pattern = {"Regex": "(?:a|a)*b"}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    replace = {"type": "Replace", "pattern": pattern, "content": "a"}
    for part in ({"pre_tokenizer": split}, {"normalizer": replace}):
        tokenizer = wp.Tokenizer.of(
            from_tokenizer_json(parse(json.dumps(value | part), "it"), "it")
        )
        with pytest.raises(wp.InputError, match=r'^the regular expression "\(\?:a\|a\)\*b": .*$'):
            tokenizer.encode_batch(["a" * 30 + "cb"])


def test_what_is_found_in_white_space_that_is_taken() -> None:
    value = json.loads(Tokenizer(models.Unigram([("<unk>", 0), ("a", -1), ("b", -1)], 0)).to_str())
    contents = ["\n", "\n\n", "<s>", " x"]
    for seed in range(200):
        random = Random(seed)
        value["normalizer"] = random.choice([None, {"type": "NFC"}])
        value["added_tokens"] = [
            {
                "id": 1 + at,
                "content": content,
                "special": False,
                "lstrip": False,
                "rstrip": random.random() < 0.7,
                "single_word": random.random() < 0.3,
                "normalized": False,
            }
            for at, content in enumerate(contents)
        ]
        tokens = [*contents, "a"]
        value["model"]["vocab"] = [["<unk>", 0], *([token, -1] for token in tokens)]
        parts = ["\n", "\n", " ", "<s>", " x", "a", "☃"]
        check(value, ["".join(random.choices(parts, k=random.randrange(12))) for _ in range(6)])
