"""Random files of `tokenizers`, and texts for them that are full of what normalization turns into
their special tokens."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from random import Random
from typing import Any

from wordpiece_core.symbols import BYTE_CHARACTERS

from ..wordpiece_core import sentencepiece_models
from ..wordpiece_core.tokenizer import peers

Json = dict[str, Any]

LETTERS = "abcdeot"
OTHERS = [
    *("é", "ß", "ж", "中", "日", "한", "１", "2", "34", ".", "'s", "'", "-", "😀", "\u0301", "ﬁ"),
    "İ",
]
SPACES = [" ", "  ", "   ", "\n", "\t", "\u00a0", "\u3000", " \n ", "\u2028"]
MARKED = ["\u0344", "\u0600", "\u0d4e", "\u200c", "が", "か\u3099", "\x85", "\xa8", "\x0b", "\r\n"]
HIDDEN = ["\x00", "\x01", "\u200b", "\u00ad", "\u0301", "\ufeff", "\u200d"]
ADDED = [
    *("[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]", "<s>", "</s>", "<pad>", "<unk>", "<mask>"),
    *("<extra_id_1>", "<|endoftext|>", "eos", "ab", "abc", "a", "\n", "\n\n", "  ", "Ġ", "ĠĠ", "▁"),
    *("▁▁", "##a", "é", "b c", " a", "a "),
]
LINE = (
    "the The THE cat's we'll it's naïve café cafe\u0301 Straße İstanbul ﬁne 1999 ²½Ⅷ x+y=z "
    "don't привет Мир 你好世界 日本語 カナ かな 한국어 a\u0301\u0308b e\u0301\u0323 __init__ (foo) "
    "[bar] --- ... ſ \u212a 👨\u200d👩\u200d👧 Мир-- ab abc"
)
WORDS = LINE.split()
# Characters that the normalizers of published tokenizers turn into ASCII.
LOOKALIKES = {
    "<": "＜‹",
    ">": "＞›",
    "/": "／",
    "[": "［",
    "]": "］",
    "|": "｜",
    "_": "＿",
    "1": "１¹",
}


def _pieces(rng: Random, marks: Sequence[str]) -> list[str]:
    """Random strings, some of them with a mark of words before them."""
    alphabet = [*LETTERS, *OTHERS]
    pieces = [c for c in alphabet if rng.random() < 0.8]
    for _ in range(rng.choice([5, 20, 60])):
        pieces.append("".join(rng.choices(alphabet[: rng.choice([3, 8, 24])], k=rng.randint(2, 5))))
    pieces += [mark + rng.choice(pieces) for mark in marks for _ in pieces if rng.random() < 0.6]
    return list(dict.fromkeys(pieces))


def _numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def _wordpiece(rng: Random) -> Json:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_pieces(rng, ["##", "##"])]
    return {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": rng.choice([3, 100]),
        "vocab": _numbered(tokens),
    }


def _merged(rng: Random, tokens: list[str], last: Sequence[str]) -> list[list[str]]:
    """Return random merges, and append their tokens. `last`: tokens that are never a left side."""
    merges = []
    for _ in range(rng.choice([0, 10, 40, 120])):
        left, right = rng.choice(tokens), rng.choice(tokens)
        made = left + right
        if left in last or len(made) > 12 or [left, right] in merges:
            continue
        if made.endswith("</w>"):
            last = [*last, made]
        if made not in tokens:
            tokens.append(made)
        merges.append([left, right])
    return merges


def _bpe(tokens: Sequence[str], merges: list[list[str]], **more: Any) -> Json:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": _numbered(tokens),
        "merges": merges,
        **more,
    }


def _word_bpe(rng: Random) -> Json:
    suffix = rng.choice([None, "</w>"])
    tokens = [c for c in [*LETTERS, *OTHERS, "▁"] if len(c) == 1 and rng.random() < 0.8] or ["a"]
    ends = [token + suffix for token in tokens if suffix and rng.random() < 0.8]
    tokens += ends
    merges = _merged(rng, tokens, ends)
    unk = rng.choice([None, "[UNK]", "[UNK]"])
    fallback = suffix is None and rng.random() < 0.3
    head = ["[PAD]", "[UNK]", *([f"<0x{byte:02X}>" for byte in range(256)] if fallback else [])]
    return _bpe(
        [*head, *tokens],
        merges,
        unk_token=unk,
        end_of_word_suffix=suffix,
        fuse_unk=rng.random() < 0.5,
        byte_fallback=fallback,
        ignore_merges=rng.random() < 0.2,
    )


def _byte_bpe(rng: Random) -> Json:
    share = rng.choice([1.0, 1.0, 0.8])  # some bytes may be without a token
    tokens = [c for c in sorted(BYTE_CHARACTERS) if rng.random() < share]
    common = ["Ġ", *LETTERS, "Ċ", "Ã", "©", "'", "s"]
    merges = _merged(rng, common, ())
    tokens += [token for token in common if token not in tokens]
    flags = {name: rng.random() < 0.3 for name in ("ignore_merges", "fuse_unk")}
    return _bpe(["<s>", "</s>", *tokens], merges, unk_token=rng.choice([None, "<s>"]), **flags)


def _unigram(rng: Random) -> Json:
    fallback = rng.random() < 0.3
    head = ["<pad>", "<unk>", "</s>", *([f"<0x{byte:02X}>" for byte in range(256)] * fallback)]
    pieces = _numbered([*head, "▁", *_pieces(rng, ["▁", "▁"])])
    many = [0.0, -0.5, -1.0, -2.5, -3.7, -8.123456789, -20.0]
    scores = rng.choice([many, many, [-1.0, -2.0, -3.0], [0.0, 3.0]])
    rows = [[piece, 0.0 if piece in head else rng.choice(scores)] for piece in pieces]
    return {"type": "Unigram", "unk_id": 1, "vocab": rows, "byte_fallback": fallback}


BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = [
    *({"Regex": pattern} for pattern in (LLAMA3, r"\p{N}{1,2}", r"\s+", r"(?=[A-Z])")),
    *({"String": " "}, {"String": "e"}),
]
MODELS = {
    **{"wordpiece": _wordpiece, "word_bpe": _word_bpe, "byte_bpe": _byte_bpe},
    **{"bert_bytes": _byte_bpe, "unigram": _unigram, "metaspace": _unigram},
}
COMPOSED = ["gpt2", "mark", "word_end", "unigram"]  # models of `peers`


def random_tokenizer(rng: Random) -> Json:
    """The `tokenizer.json` of a tokenizer of a kind that is supported."""
    kind = rng.choice([*MODELS, *COMPOSED])
    model = MODELS[kind](rng) if kind in MODELS else peers.trained(kind)["model"]
    value: Json = {
        **{"version": "1.0", "truncation": None, "padding": None, "added_tokens": []},
        **{"normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None},
        "model": model,
    }
    if kind in COMPOSED:
        value["normalizer"] = _any_normalizer(rng, of_bytes=kind == "gpt2")
        value["pre_tokenizer"] = _any_pre_tokenizer(rng, of_bytes=kind == "gpt2")
        if kind in ("mark", "word_end"):
            model["unk_token"] = rng.choice([None, "[UNK]"])
            model |= {name: rng.random() < 0.5 for name in ("fuse_unk", "ignore_merges")}
    elif kind == "byte_bpe":
        value["pre_tokenizer"] = _byte_level(rng, use_regex=True)
    elif kind == "metaspace":
        value["normalizer"], value["pre_tokenizer"] = _sentencepiece_text(rng)
    else:
        value["normalizer"], value["pre_tokenizer"] = _bert_text(rng, kind, model)
    value["added_tokens"] = _added_tokens(rng, kind, value)
    value["post_processor"] = _post_processor(rng, kind, value)
    return value


def _any_normalizer(rng: Random, of_bytes: bool) -> Json | None:
    names = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")
    known: list[Json] = [
        *({"type": name} for name in names),
        {"type": "Strip", "strip_left": rng.random() < 0.7, "strip_right": rng.random() < 0.7},
        {"type": "Replace", "pattern": {"String": " "}, "content": rng.choice(["▁", "", "__"])},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": rng.choice([" ", "▁▁"])},
        {"type": "Prepend", "prepend": rng.choice(["▁", "ab"])},
        _bert_normalizer(rng),
        *[{"type": "ByteLevel"}] * (not of_bytes),
    ]
    return _sequence("normalizers", rng.sample(known, rng.choice([0, 1, 1, 2, 3])))


def _any_pre_tokenizer(rng: Random, of_bytes: bool) -> Json | None:
    """`of_bytes`: the last part writes bytes."""
    split = {"pattern": rng.choice(PATTERNS), "behavior": rng.choice(BEHAVIORS)}
    scheme = rng.choice(["always", "first", "never"])
    known: list[Json] = [
        *({"type": name} for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")),
        {"type": "Digits", "individual_digits": rng.random() < 0.5},
        {"type": "Punctuation", "behavior": rng.choice(BEHAVIORS)},
        {"type": "CharDelimiterSplit", "delimiter": rng.choice(" e-")},
        {"type": "FixedLength", "length": rng.randrange(1, 7)},
        {"type": "Split", "invert": rng.random() < 0.3, **split},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme}
        | {"split": rng.random() < 0.5},
    ]
    found = rng.sample(known, rng.choice([0, 1, 1, 2, 3]))
    if of_bytes or rng.random() < 0.2:
        at = len(found) if of_bytes else rng.randrange(len(found) + 1)
        found.insert(at, _byte_level(rng, rng.random() < 0.5, rng.random() < 0.3))
    return _sequence("pretokenizers", found)


def _sequence(name: str, parts: list[Json]) -> Json | None:
    """Nothing, a part, or a sequence of them."""
    if len(parts) > 1:
        return {"type": "Sequence", name: parts}
    return parts[0] if parts else None


def _byte_level(rng: Random, use_regex: bool, add_prefix_space: bool | None = None) -> Json:
    prefix = rng.random() < 0.5 if add_prefix_space is None else add_prefix_space
    return {
        "type": "ByteLevel",
        "add_prefix_space": prefix,
        "trim_offsets": rng.random() < 0.5,
        "use_regex": use_regex,
    }


def _bert_normalizer(rng: Random) -> Json:
    return {
        **{"type": "BertNormalizer", "strip_accents": rng.choice([None, True, False])},
        **{"clean_text": rng.random() < 0.7, "handle_chinese_chars": rng.random() < 0.7},
        "lowercase": rng.random() < 0.6,
    }


def _bert_text(rng: Random, kind: str, model: Json) -> tuple[Json | None, Json | None]:
    without = kind != "wordpiece" and rng.random() < 0.2
    normalizer = None if without else _bert_normalizer(rng)
    cutters: list[Json] = [{"type": rng.choice(["BertPreTokenizer", "WhitespaceSplit"])}]
    if kind == "bert_bytes":
        cutters.append(_byte_level(rng, use_regex=False, add_prefix_space=True))
    elif kind == "unigram" or (kind == "word_bpe" and not model["end_of_word_suffix"]):
        mark = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
        if kind == "unigram" or rng.random() < 0.5:
            cutters.append(mark)
    return normalizer, _sequence("pretokenizers", cutters)


def _sentencepiece_text(rng: Random) -> tuple[Json | None, Json]:
    value = peers.sentencepiece_like(rng.choice(["t5", "converted"]))
    normalizer, splitter = value["normalizer"], value["pre_tokenizer"]
    charsmap = b64encode(sentencepiece_models.charsmap(rng.choice(["nmt_nfkc", "nmt_nfkc_cf"])))
    precompiled = {"type": "Precompiled", "precompiled_charsmap": charsmap.decode()}
    if splitter["type"] != "Metaspace":
        return rng.choice([precompiled, precompiled, None]), splitter
    steps = [precompiled, *normalizer["normalizers"][1:]]
    kept = rng.choice([[], steps[:1], steps[1:], steps, steps])
    scheme = rng.choice(["always", "first", "never"])
    return _sequence("normalizers", kept), splitter | {"prepend_scheme": scheme}


def _added_tokens(rng: Random, kind: str, value: Json) -> list[Json]:
    model = value["model"]
    listed = model["vocab"]
    ids = dict(listed) if isinstance(listed, dict) else {row[0]: i for i, row in enumerate(listed)}
    wanted = [token for token in peers.BERT_FIVE if token in ids]
    wanted += [
        token for token in ("<s>", "</s>", "<pad>", "<unk>", "<|endoftext|>") if token in ids
    ]
    wanted += rng.sample(ADDED, rng.choice([0, 2, 5]))
    if rng.random() < 0.5:
        wanted += rng.sample(sorted(ids), 2)
    added = []
    for token in dict.fromkeys(wanted):
        if token not in ids and kind == "wordpiece":
            listed[token] = len(listed)
        names = ("single_word", "lstrip", "rstrip", "normalized")
        flags = {name: kind != "wordpiece" and rng.random() < 0.25 for name in names}
        flags["special"] = kind == "wordpiece" or rng.random() < 0.6
        number = ids.setdefault(token, len(ids))
        added.append({"id": number, "content": token, **flags})
    return sorted(added, key=lambda token: token["id"])


def _post_processor(rng: Random, kind: str, value: Json) -> Json | None:
    ids = {token["content"]: token["id"] for token in value["added_tokens"]}
    if kind == "wordpiece":
        return peers._template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ids, 1)
    if kind in COMPOSED:
        return _any_template(rng, ids)
    parts = []
    if rng.random() < 0.5:
        parts.append(_byte_level(rng, use_regex=True))
    names = rng.sample(sorted(ids), min(2, len(ids)))
    if len(names) == 2 and rng.random() < 0.8:
        parts.append(_around(rng, names, ids))
    return _sequence("processors", parts)


def _any_template(rng: Random, ids: dict[str, int]) -> Json:
    """Tokens around texts, and their token types."""

    def special() -> list[Json]:
        tokens = rng.sample(sorted(ids), rng.randrange(min(3, len(ids))))
        return [{"SpecialToken": {"id": t, "type_id": rng.randrange(3)}} for t in tokens]

    a, b = ({"Sequence": {"id": name, "type_id": rng.randrange(2)}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [*special(), a, *special()],
        "pair": [*special(), a, *special(), b, *special()],
        "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in ids.items()},
    }


def _around(rng: Random, names: Sequence[str], ids: dict[str, int]) -> Json:
    first, last = names
    kind = rng.choice(["RobertaProcessing", "BertProcessing", "TemplateProcessing"])
    if kind == "TemplateProcessing":
        return _any_template(rng, ids)
    made: Json = {"type": kind, "sep": [last, ids[last]], "cls": [first, ids[first]]}
    if kind == "RobertaProcessing":
        made |= {"trim_offsets": rng.random() < 0.5, "add_prefix_space": rng.random() < 0.5}
    return made


def random_text(rng: Random, value: Json) -> str:
    """A text of pieces of a tokenizer's vocabulary, and of what may become its added tokens."""
    vocab = [row if isinstance(row, str) else row[0] for row in value["model"]["vocab"]]
    added = [token["content"] for token in value["added_tokens"]]
    parts = []
    for _ in range(rng.choice([0, 1, 2, 4, 8, 20])):
        source = rng.randrange(9)
        if source < 3:
            token = rng.choice(vocab).removesuffix("</w>").removeprefix("##")
            part = token.replace("▁", " ").replace("Ġ", " ").replace("Ċ", "\n")
        elif source == 3:
            part = rng.choice(SPACES)
        elif source == 4:
            part = rng.choice([*OTHERS, *HIDDEN, *MARKED, chr(rng.randrange(0xD800))])
        elif source == 8:
            part = rng.choice(WORDS) * rng.choice([1, 1, 1, 1, 15])
        elif added:
            part = rng.choice(added)
            if source > 5:
                part = _mangled(rng, part)
        else:
            part = rng.choice(ADDED)
        parts.append(part)
    text = "".join(part + rng.choice(["", "", " "]) for part in parts)
    return text.encode("utf-8", "ignore").decode()


def _mangled(rng: Random, token: str) -> str:
    """A token with lookalikes, hidden characters, or other letters."""
    characters = []
    for character in token:
        if rng.random() < 0.4:
            character = rng.choice([*LOOKALIKES.get(character, character), character.swapcase()])
        if rng.random() < 0.15:
            character += rng.choice(HIDDEN)
        characters.append(character)
    return "".join(characters)
