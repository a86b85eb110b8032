"""Directories as the Hub has them: the ids that `AutoTokenizer` gives, or one line with the reason.

A directory is random files of a tokenizer, with a class and options of `transformers`.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from transformers import AutoTokenizer

import wordpiece_core as wp
from wordpiece_core.symbols import BYTE_CHARACTERS
from wordpiece_core.tokenizer.by_class import TakenAsFileWarning

from . import peers
from .peers import added

TEXTS = [
    *("a", "Hello hello", " a  12 b ", "caf\u00e9 \u00c9 \u4e2d\u6587", "x\u0301 don't 3.14", ""),
    *("newtok a newtok", "<s> a </s>", "[MASK] hello [SEP]", "\n\na\t", "ab<mask>"),
    *("a<new>b <new> x", "<think> a <think>b", "a <pad> <unk> [UNK] b"),
]

WORDS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    *("hello", "Hello", "a", "b", "##b", "ab", "caf", "##\u00e9", "cafe", "12", "\u4e2d", "newtok"),
]
PIECES = [
    *("<s>", "<pad>", "</s>", "<unk>", "\u2581", "\u2581a", "a", "b", "\u2581hello", "\u2581Hello"),
    *("1", "2", "\u2581b", "\u00e9", "caf", "e", "h", "l", "o", "\u2581\u2581", "<mask>", "en_XX"),
]
Json = dict[str, Any]


def byte_vocabulary() -> dict[str, int]:
    tokens = [
        *("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"),
        *BYTE_CHARACTERS,
        *("12", "he", "ll"),
    ]
    return {token: i for i, token in enumerate(tokens)}


MERGES = [["1", "2"], ["h", "e"], ["l", "l"]]


def whole(rng: Random, model: Json, normalizer: Any, splitter: Any, special: list[str]) -> Json:
    vocab = model["vocab"]
    ids = vocab if isinstance(vocab, dict) else {row[0]: i for i, row in enumerate(vocab)}
    tokens = [added(token, ids[token]) for token in special if token in ids]
    if rng.random() < 0.4:
        tokens.append(added("newtok", len(ids), normalized=True, special=False))
    parts = {"normalizer": normalizer, "pre_tokenizer": splitter, "post_processor": None}
    value = {"version": "1.0", "truncation": None, "padding": None, "decoder": None, **parts}
    return {**value, "added_tokens": sorted(tokens, key=lambda t: t["id"]), "model": model}


def wordpiece_files(rng: Random) -> dict[str, Any]:
    vocab = {token: i for i, token in enumerate(WORDS)}
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": rng.random() < 0.8,
        "strip_accents": rng.choice([None, None, True, False]),
        "lowercase": rng.random() < 0.5,
    }
    model = {
        **{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"},
        **{"max_input_chars_per_word": rng.choice([100, 100, 3]), "vocab": vocab},
    }
    value = whole(rng, model, normalizer, {"type": "BertPreTokenizer"}, peers.BERT_FIVE)
    ids = {token: vocab[token] for token in ("[CLS]", "[SEP]")}
    value["post_processor"] = peers._template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ids, 1)
    return {"tokenizer.json": value, "vocab.txt": "".join(f"{token}\n" for token in WORDS)}


def bpe_files(rng: Random) -> dict[str, Any]:
    vocab = byte_vocabulary()
    model = {
        **{"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None},
        **{"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False},
        **{"ignore_merges": False, "vocab": vocab, "merges": MERGES},
    }
    splitter = {
        **{"type": "ByteLevel", "add_prefix_space": rng.random() < 0.5},
        **{"trim_offsets": True, "use_regex": True},
    }
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"]
    merges = "#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in MERGES)
    return {
        "tokenizer.json": whole(rng, model, None, splitter, special),
        **{"vocab.json": vocab, "merges.txt": merges},
    }


def unigram_files(rng: Random) -> dict[str, Any]:
    rows = [
        [piece, 0.0 if piece.startswith("<") else -1.0 - i / 8] for i, piece in enumerate(PIECES)
    ]
    model = {"type": "Unigram", "unk_id": 3, "vocab": rows, "byte_fallback": False}
    scheme = rng.choice(["always", "first", "never"])
    splitter = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": scheme,
        "split": True,
    }
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}
    normalizer = rng.choice([None, {"type": "Sequence", "normalizers": [strip, spaces]}])
    return {
        "tokenizer.json": whole(rng, model, normalizer, splitter, ["<s>", "<pad>", "</s>", "<unk>"])
    }


KINDS = {
    wordpiece_files: [
        *("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizerFast"),
        *("MPNetTokenizer", "FunnelTokenizer", "LxmertTokenizer", "MobileBertTokenizer"),
        *("SplinterTokenizer", "BertJapaneseTokenizer", "EsmTokenizer", "RoFormerTokenizer"),
        *("PreTrainedTokenizerFast", "TokenizersBackend", "NoSuchTokenizer"),
    ],
    bpe_files: [
        *("GPT2Tokenizer", "GPT2TokenizerFast", "RobertaTokenizer", "BartTokenizer"),
        "LEDTokenizer",
        *("Qwen2Tokenizer", "CodeGenTokenizer", "GPTNeoXTokenizer", "WhisperTokenizer"),
        *("LlamaTokenizer", "DebertaTokenizer", "BlenderbotTokenizer", "PreTrainedTokenizerFast"),
    ],
    unigram_files: [
        *("T5Tokenizer", "T5TokenizerFast", "XLMRobertaTokenizer", "AlbertTokenizer"),
        *("LlamaTokenizer", "CamembertTokenizer", "PegasusTokenizer", "NllbTokenizer"),
        *("MBartTokenizer", "XLNetTokenizer", "BigBirdTokenizer", "PreTrainedTokenizerFast"),
    ],
}
MODEL_TYPES = {
    wordpiece_files: ["bert", "distilbert", "electra", "mpnet", "convbert", "esm", "nomic_bert"],
    bpe_files: ["gpt2", "roberta", "bart", "qwen2", "opt", "gpt_neox", "longformer", "whisper"],
    unigram_files: ["t5", "xlm-roberta", "albert", "llama", "pegasus", "mbart", "camembert"],
}
OPTIONS: Json = {
    **{"do_lower_case": [True, False], "strip_accents": [True, False, None]},
    **{"tokenize_chinese_chars": [True, False], "add_prefix_space": [True, False]},
    **{"add_bos_token": [True, False], "add_eos_token": [True, False], "legacy": [True, False]},
    **{
        "model_max_length": [512],
        "src_lang": ["en_XX"],
        "bos_token": ["<s>"],
        "eos_token": ["</s>"],
    },
    **{"unk_token": ["<unk>"], "clean_up_tokenization_spaces": [True, False]},
}


def write_directory(rng: Random, path: Path) -> None:
    """The files of a random tokenizer, and what the Hub has of it."""
    kind = rng.choice(list(KINDS))
    files = kind(rng)
    if len(files) > 1 and rng.random() < 0.5:
        del files["tokenizer.json"]
    elif rng.random() < 0.5:
        files = {"tokenizer.json": files["tokenizer.json"]}
    names = [name for name in OPTIONS if rng.random() < 0.15]
    if kind is wordpiece_files:
        names = [name for name in names if "token" not in name or "chinese" in name]
    config = {name: rng.choice(OPTIONS[name]) for name in names}
    how = rng.random()
    if how < 0.6:
        config["tokenizer_class"] = rng.choice(KINDS[kind])
    if how > 0.4:
        files["config.json"] = {"model_type": rng.choice(MODEL_TYPES[kind])}
    files["tokenizer_config.json"] = config
    path.mkdir()
    for name, value in files.items():
        (path / name).write_text(value if isinstance(value, str) else json.dumps(value))


ROLES = [
    *("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"),
    *("think_token", "image_token"),
]


def configure_tokens(rng: Random, path: Path) -> None:
    """Name tokens in the config files of a directory: roles, flags and tokens that are new."""
    value = json.loads((path / "tokenizer.json").read_text())
    vocab = value["model"]["vocab"]
    tokens = [*(vocab if isinstance(vocab, dict) else [row[0] for row in vocab])]
    tokens = [*tokens[:6], *rng.sample(tokens, 3), "newtok", "<new>", "<think>"]

    def flags(**more: Any) -> Json:
        names = ("single_word", "lstrip", "rstrip", "normalized", "special")
        return {name: rng.random() < 0.3 for name in names if rng.random() < 0.8} | more

    def named() -> Any:
        token = rng.choice(tokens)
        if rng.random() < 0.7:
            return token
        return flags(content=token, __type="AddedToken")

    def roles(share: float) -> Json:
        return {role: named() for role in ROLES if rng.random() < share}

    config = json.loads((path / "tokenizer_config.json").read_text()) | roles(0.15)
    for name in ("extra_special_tokens", "additional_special_tokens"):
        if rng.random() < 0.2:
            config[name] = [named() for _ in range(rng.randrange(3))]
    for name in ("extra_special_tokens", "additional_special_tokens"):
        if rng.random() < 0.1:
            config[name] = {"audio_token": rng.choice(tokens)}
    if rng.random() < 0.1:
        config["model_specific_special_tokens"] = {"video_token": rng.choice(tokens)}
    if rng.random() < 0.5:
        some = rng.sample(tokens, rng.randrange(4))
        listed = {t["content"]: t["id"] for t in value["added_tokens"]}
        config["added_tokens_decoder"] = {
            str(listed.get(token, rng.randrange(400))): flags(content=token) for token in some
        }
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    if rng.random() < 0.3:
        more = roles(0.15)
        if rng.random() < 0.6:
            more["additional_special_tokens"] = rng.choice([[], ["<new>"], ["<new>", "a"]])
        if rng.random() < 0.3:
            more["extra_special_tokens"] = rng.choice([[], ["<think>"], [flags(content="newtok")]])
        more = {n: {**t, "__type": None} if isinstance(t, dict) else t for n, t in more.items()}
        for token in more.values():
            if isinstance(token, dict):
                del token["__type"]
        (path / "special_tokens_map.json").write_text(json.dumps(more))
    if rng.random() < 0.2:
        some = rng.sample(tokens, 2)
        added = {token: rng.randrange(400) for token in some}
        (path / "added_tokens.json").write_text(json.dumps(added))


def ids_of(load: Any, path: Path) -> list[list[int]] | Exception:
    try:
        tokenizer = load(path)
        return [list(map(int, tokenizer([text])["input_ids"][0])) for text in TEXTS]
    except Exception as error:
        return error


def check_directory(seed: int, path: Path) -> str:
    """Return True if ids are equal, False if the directory is refused; AssertionError if they
    differ."""
    rng = Random(seed)
    write_directory(rng, path)
    if (path / "tokenizer.json").exists() and rng.random() < 0.6:
        configure_tokens(rng, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = ids_of(wp.Tokenizer.load, path)
        if isinstance(ours, Exception):
            assert isinstance(ours, wp.WordpieceError), (seed, repr(ours))
            return "refused"
        theirs = ids_of(AutoTokenizer.from_pretrained, path)
    if isinstance(theirs, Exception):
        return "refused by transformers"
    assert ours == theirs, (seed, sorted(p.name for p in path.iterdir()))
    return "equal"


SEEDS = [range(40 * part, 40 * part + 40) for part in range(4)]


@pytest.mark.parametrize("seeds", [*SEEDS, pytest.param(range(1000, 3000), marks=pytest.mark.soak)])
def test_ids_of_directories_match_auto_tokenizer(tmp_path: Path, seeds: range) -> None:
    found = [check_directory(seed, tmp_path / str(seed)) for seed in seeds]
    assert found.count("equal") > len(seeds) / 2


def bert_japanese(path: Path) -> Path:
    path.mkdir()
    (path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\na\nb\n")
    config = {"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "basic"}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path


def test_classes_that_are_not_of_tokenizers_are_named(tmp_path: Path) -> None:
    path = bert_japanese(tmp_path / "ja")
    with pytest.raises(wp.InputError, match=f"^{path}: its class BertJapaneseTokenizer is written"):
        wp.Tokenizer.load(path)
    config = {"auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]}}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(wp.InputError, match=r"class own.OwnTokenizer is custom code"):
        wp.Tokenizer.load(path)
    (path / "tokenizer.json").write_text(json.dumps(wordpiece_files(Random(1))["tokenizer.json"]))
    (path / "vocab.txt").unlink()
    with pytest.warns(
        TakenAsFileWarning, match=r"tokenizer.json is read alone; the class own.OwnTok"
    ):
        of_directory = wp.Tokenizer.load(path)
    assert of_directory.digest == wp.Tokenizer.load(path / "tokenizer.json").digest


def test_values_of_other_types_are_one_line(tmp_path: Path) -> None:
    value = wordpiece_files(Random(2))["tokenizer.json"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    expected = wp.Tokenizer.load(tmp_path).digest
    (tmp_path / "config.json").write_text('{"model_type": []}')
    assert wp.Tokenizer.load(tmp_path).digest == expected  # no class is named
    (tmp_path / "added_tokens.json").write_text('{"<new>": "12"}')
    with pytest.raises(wp.InputError, match=r"added_tokens\.json"):
        wp.Tokenizer.load(tmp_path)


def test_without_transformers_a_class_is_named(tmp_path: Path) -> None:
    path = bert_japanese(tmp_path / "ja")
    with mock.patch.dict(sys.modules, {"transformers": None}):
        with pytest.raises(wp.OptionError, match="install it with `pip install transformers`"):
            wp.Tokenizer.load(path)
        (path / "vocab.txt").unlink()
        value = wordpiece_files(Random(2))["tokenizer.json"]
        (path / "tokenizer.json").write_text(json.dumps(value))
        with pytest.raises(wp.OptionError, match=f"use {path}/tokenizer.json"):
            wp.Tokenizer.load(path)
        wp.Tokenizer.load(path / "tokenizer.json")


@pytest.mark.parametrize(
    "model",
    [
        {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]},
        {"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1}, "merges": []},
    ],
    ids=["unigram", "bpe"],
)
def test_an_unknown_token_that_is_not_added_stays_so(tmp_path: Path, model: dict[str, Any]) -> None:
    value = {"version": "1.0", "added_tokens": [], "normalizer": {"type": "NFC"}, "model": model}
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    first = wp.Tokenizer.load(tmp_path / "tokenizer.json")
    first.save(tmp_path / "saved")
    again = wp.Tokenizer.load(tmp_path / "saved")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "saved")
    for text in ("a", "b", "<unk>a"):
        ids = first.encode_batch([text], add_special_tokens=False)[0].as_py()
        assert again.encode_batch([text], add_special_tokens=False)[0].as_py() == ids
        assert theirs.encode(text, add_special_tokens=False) == ids


def test_a_file_of_merges_stands_for_both(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps(byte_vocabulary()))
    (tmp_path / "merges.txt").write_text("".join(f"{a} {b}\n" for a, b in MERGES))
    whole = wp.Tokenizer.load(tmp_path)
    for name in ("vocab.json", "merges.txt"):
        assert wp.Tokenizer.load(tmp_path / name).digest == whole.digest
    assert whole.tokenize("12 hell") == ["12", "\u0120", "he", "ll"]
