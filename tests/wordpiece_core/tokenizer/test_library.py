"""Tokenizers with an unsupported part have the ids of the library `tokenizers`, which encodes
them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    models,
    pre_tokenizers,
    processors,
)

import wordpiece_core as wp
from tests.oracle import SPECIAL_TOKENS
from tests.wordpiece_core.strategies import ODD
from wordpiece_core.options import ENCODING_COLUMNS
from wordpiece_core.tokenizer.inspection import Inspector
from wordpiece_core.tokenizer.library import library_spec

from .library_kinds import KINDS, unigram, word_level

TEXTS: list[Any] = [
    *("the quick brown fox", "", None, "<s>the  dog</s>? [UNK] zzz", "12345 cafés 日本"),
    *("x" * 50, "the fox the fox the dog jumps over it", None, "\0é e\u0301\n", "a [SEP] <unk>"),
]
SECONDS: list[Any] = [*TEXTS[3:], *TEXTS[:3]]


def loaded(peer: Any, tmp_path: Path) -> wp.Tokenizer:
    path = tmp_path / "tokenizer.json"
    peer.save(str(path))
    with pytest.warns(wp.EncodedByLibraryWarning):
        return wp.Tokenizer.load(path)


def library_rows(
    peer: Any, texts: list[Any], seconds: list[Any] | None, options: wp.EncodingOptions
) -> list[Any]:
    """The rows that the library gives, a list for each text."""
    made = Tokenizer.from_str(peer.to_str())
    made.encode_special_tokens = options.special_tokens_in_text == "text"
    if options.max_length is not None:
        made.enable_truncation(
            options.max_length, stride=options.stride or 0, strategy=options.truncation
        )
    if options.padding:
        made.enable_padding(length=options.max_length, pad_id=1, pad_token="<pad>")
    found: list[Any] = []
    for text, second in zip(texts, seconds or texts, strict=True):
        if text is None or second is None:
            found.append([None])
            continue
        arguments = (text, second) if seconds else (text,)
        row = made.encode(*arguments, add_special_tokens=options.add_special_tokens)
        rows = [row, *row.overflowing] if options.stride is not None else [row]
        found.append([columns(each) for each in rows])
    return found


def columns(row: Any) -> dict[str, Any]:
    return {
        "input_ids": row.ids,
        "attention_mask": row.attention_mask,
        "token_type_ids": row.type_ids,
        "special_tokens_mask": row.special_tokens_mask,
        "offset_mapping": [list(offsets) for offsets in row.offsets],
        "word_ids": row.word_ids,
        "num_tokens": sum(row.attention_mask),
    }


OPTIONS = (
    *({}, {"add_special_tokens": False}, {"max_length": 8}, {"max_length": 14, "stride": 2}),
    *({"max_length": 6, "padding": True}, {"max_length": 12, "stride": 0, "padding": True}),
    {"max_length": 9, "stride": 3, "add_special_tokens": False},
    {"max_length": 90, "truncation": "only_first"},
    {"max_length": 6, "stride": 4, "add_special_tokens": False},
)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("given_options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_match_the_library(
    tmp_path: Path, kind: str, given_options: dict[str, Any], pairs: bool, threads: int
) -> None:
    tokenizer = loaded(KINDS[kind], tmp_path)
    texts, seconds = TEXTS, SECONDS if pairs else None
    if pairs and "stride" in given_options:  # of both texts only one can be truncated
        short = [None if text is None else "the fox" for text in SECONDS]
        is_first = given_options["stride"] == 2
        texts, seconds = (TEXTS, short) if is_first else (short, TEXTS)
        truncation = "only_first" if is_first else "only_second"
        given_options = {**given_options, "truncation": truncation, "max_length": 20}
    options = wp.EncodingOptions(columns=ENCODING_COLUMNS, **given_options)
    done = tokenizer.encode_table(texts, seconds, options=options, threads=threads)
    by_text = library_rows(KINDS[kind], texts, seconds, options)
    rows = [row for rows in by_text for row in rows]
    null = dict.fromkeys(["input_ids", *ENCODING_COLUMNS])
    assert done.table.to_pylist() == [row or null for row in rows]
    like = wp.Tokenizer(SPECIAL_TOKENS).encode_table(texts, seconds, options=options)
    assert done.table.schema == like.table.schema
    assert done.tokens == sum(row["num_tokens"] for row in rows if row)
    assert done.unknown == sum(row["input_ids"].count(tokenizer.unk_id) for row in rows if row)
    if options.stride is not None:
        assert done.source_rows is not None
        assert done.source_rows.to_pylist() == [i for i, some in enumerate(by_text) for _ in some]
    plain = wp.EncodingOptions(add_special_tokens=False)
    full = library_rows(KINDS[kind], texts, seconds, plain)
    lengths = [0 if row is None else len(row["input_ids"]) for (row,) in full]
    added = KINDS[kind].num_special_tokens_to_add(pairs) if options.add_special_tokens else 0
    room = (options.max_length or 10**6) - added
    cut = [max(0, length - room) for length in lengths] if options.stride is None else []
    assert done.truncated_tokens == sum(cut)
    assert done.truncated_rows == sum(map(bool, cut))


def test_counts_of_words_are_without_special_tokens(tmp_path: Path) -> None:
    tokenizer = loaded(KINDS["word level"], tmp_path)
    texts = ["<s>the dog</s> what fox", "zzz", "</s>", None]
    for options in ({}, {"max_length": 4}, {"max_length": 5, "stride": 2}):
        done = tokenizer.encode_table(texts, options=wp.EncodingOptions(**options))
        assert (done.words, done.word_tokens) == (5, 5), options
    none = tokenizer.encode_table(texts, options=wp.EncodingOptions(max_length=2))
    assert none.table["input_ids"].to_pylist() == [[2, 3], [2, 3], [2, 3], None]
    assert (none.words, none.truncated_rows, none.truncated_tokens) == (5, 3, 8)
    bytes_ = loaded(KINDS["replacing"], tmp_path)
    for options in ({}, {"max_length": 6}, {"max_length": 8, "stride": 3}):
        done = bytes_.encode_table(["the quxz fox<s>!"] * 2, options=wp.EncodingOptions(**options))
        ids = KINDS["replacing"].encode("the quxz fox<s>!", add_special_tokens=False).ids
        assert (done.words, done.word_tokens) == (8, 2 * (len(ids) - 1)), options


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(st.text(st.sampled_from("the <s>é" + ODD), max_size=20), max_size=4))
def test_ids_of_odd_texts_match_the_library(kind: str, texts: list[str]) -> None:
    value = KINDS[kind].to_str()
    tokenizer = wp.Tokenizer.from_spec(library_spec(json.loads(value), value, "x", wp.InputError()))
    assert tokenizer.encode_batch(texts).to_pylist() == [
        KINDS[kind].encode(text).ids for text in texts
    ]


@pytest.mark.parametrize("given_options", OPTIONS[:-2])
def test_ends_are_marked_as_a_post_processor_marks_them(
    tmp_path: Path, given_options: dict[str, Any]
) -> None:
    given_options = {**given_options, "add_special_tokens": True}
    peer = unigram()
    marks = {"prepend_bos": True, "append_eos": True, "bos_token": "<s>", "eos_token": "</s>"}
    options = wp.EncodingOptions(columns=ENCODING_COLUMNS, **given_options, **marks)
    done = loaded(peer, tmp_path).encode_table(TEXTS, options=options)
    peer.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "$A $B", [("<s>", 2), ("</s>", 3)]
    )
    rows = [row for rows in library_rows(peer, TEXTS, None, options) for row in rows]
    null = dict.fromkeys(["input_ids", *ENCODING_COLUMNS])
    assert done.table.to_pylist() == [row or null for row in rows]
    tokenizer = loaded(peer, tmp_path)  # whose texts are marked already
    assert tokenizer.encode_table(TEXTS, options=options).table.equals(done.table)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_do_not_become_special_tokens(tmp_path: Path, kind: str) -> None:
    tokenizer = loaded(KINDS[kind], tmp_path)
    options = wp.EncodingOptions(special_tokens_in_text="text")
    for text in ("</s>", "a </s> <s>b<pad>", "▁</s>"):
        ids = tokenizer.encode_table([text], options=options).table["input_ids"][0].as_py()
        around = tokenizer.encode_batch([""])[0].as_py()
        assert sum(i in (1, 2, 3) for i in ids) == len(around), text
    plain = wp.EncodingOptions(special_tokens_in_text="text", columns=ENCODING_COLUMNS)
    text = "the quick café"
    theirs = columns(KINDS[kind].encode(text))
    assert tokenizer.encode_table([text], options=plain).table.to_pylist() == [theirs]


def test_a_special_token_that_merges_make_is_an_error(tmp_path: Path) -> None:
    ids = {token: i for i, token in enumerate(["a", "b", "c", "ab", "abc"])}
    peer = Tokenizer(models.BPE(ids, [("a", "b"), ("ab", "c")]))
    peer.pre_tokenizer = pre_tokenizers.UnicodeScripts()
    peer.add_special_tokens(["abc"])
    tokenizer = loaded(peer, tmp_path)
    options = wp.EncodingOptions(special_tokens_in_text="text")
    with pytest.raises(
        wp.InputError, match=r"^text 1: a word becomes the special token 4, although"
    ):
        tokenizer.encode_table(["b", "abc"], options=options)


def test_pairs_of_long_texts_are_truncated_in_little_memory(tmp_path: Path) -> None:
    tokenizer = loaded(KINDS["word level"], tmp_path)
    text = "the fox " * 20_000  # the library makes a row of each part of one with each of the other
    options = wp.EncodingOptions(max_length=12, columns=("token_type_ids",))
    done = tokenizer.encode_table([text], [text], options=options)
    the, fox = map(KINDS["word level"].token_to_id, ["the", "fox"])
    ids = [2, the, fox, the, fox, 3, 2, the, fox, the, fox, 3]
    row = {"input_ids": ids, "token_type_ids": [0] * 7 + [1] * 5}
    assert done.table.to_pylist() == [row]
    assert done.truncated_tokens == 80_000 - 8
    with pytest.raises(
        wp.InputError, match=r"^text 0: both texts of a pair are too long for `max_"
    ):
        tokenizer.encode_table([text], [text], options=replace(options, stride=2))


def test_bytes_that_are_no_utf_8_are_replaced(tmp_path: Path) -> None:
    tokenizer = loaded(KINDS["replacing"], tmp_path)
    texts = [b"the \xff fox", None, b"\xe4\xb8"]
    replaced = ["the \ufffd fox", None, "\ufffd"]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert tokenizer.encode_batch(pa.array(texts, kind)).equals(
            tokenizer.encode_batch(replaced)
        )
    assert tokenizer.encode_batch(pa.nulls(2)).to_pylist() == [None, None]
    assert tokenizer.encode_batch([]).type == pa.list_(pa.int32())


def test_truncation_and_padding_of_the_file_are_options_of_the_call(tmp_path: Path) -> None:
    peer = word_level()
    plain = loaded(peer, tmp_path).encode_batch(TEXTS)
    peer.enable_truncation(3, direction="left")
    peer.enable_padding(direction="left", pad_id=1, pad_token="<pad>", length=70)
    limited = loaded(peer, tmp_path)
    assert limited.encode_batch(TEXTS).equals(plain)
    options = wp.EncodingOptions(max_length=4, padding=True)
    rows = limited.encode_table(["the fox the", "the"], options=options).table["input_ids"]
    the, fox = peer.token_to_id("the"), peer.token_to_id("fox")
    assert rows.to_pylist() == [[2, the, fox, 3], [2, the, 3, 1]]


def test_roles_match_the_config_or_the_usual_ones(tmp_path: Path) -> None:
    tokenizer = loaded(KINDS["word level"], tmp_path)
    roles = {"unk": 0, "pad": 1, "bos": 2, "eos": 3}
    assert {name: tokenizer.role_id(f"{name}_token") for name in roles} == roles
    config = {"eos_token": {"content": "<s>"}, "pad_token": "none", "unk_token": "the"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.warns(wp.EncodedByLibraryWarning):
        changed = wp.Tokenizer.load(tmp_path)
    added = changed.vocab_size - 1  # `transformers` adds a token that is not in the vocabulary
    found = {name: changed.role_id(f"{name}_token") for name in roles}
    assert found == roles | {"eos": 2, "pad": added}


def test_the_warning_names_the_part(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    KINDS["word level"].save(str(path))
    with pytest.warns(wp.EncodedByLibraryWarning) as caught:
        wp.Tokenizer.load(path)
    assert len(caught) == 1
    assert str(caught[0].message) == (
        f"{path} is encoded by the library tokenizers, at its lower speed: model WordLevel is not"
        " supported"
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_length": 1}, "max_length: 1 has no room for the 2 tokens added"),
        ({"max_length": 5, "stride": 3}, "stride: 3 is not less than the 3 tokens of text"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    tokenizer = loaded(KINDS["replacing"], tmp_path)
    with pytest.raises(wp.OptionError, match=reason):
        tokenizer.encode_table(["a"], options=wp.EncodingOptions(**options))
    with pytest.raises(wp.OptionError, match="lowercase"):
        wp.Tokenizer.load(tmp_path, lowercase=True)


def test_ids_beyond_uint16_are_refused(tmp_path: Path) -> None:
    peer = Tokenizer(models.WordLevel({"<unk>": 0, "a": 2**16 - 1}, "<unk>"))
    options = wp.EncodingOptions(id_type="uint16")
    tokenizer = loaded(peer, tmp_path)
    assert len(tokenizer) == 2**16
    assert tokenizer.vocab_size == 2
    assert tokenizer.encode_table(["a"], options=options).table["input_ids"].to_pylist() == [
        [65535]
    ]
    peer.add_tokens(["b"])
    value = json.loads(peer.to_str())
    value["model"]["vocab"]["b"] = 2**16
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    with pytest.warns(wp.EncodedByLibraryWarning):
        tokenizer = wp.Tokenizer.load(tmp_path)
    with pytest.raises(
        wp.OptionError, match="id_type: uint16 cannot hold the ids of 65,537 tokens"
    ):
        tokenizer.encode_table(["a"], options=options)


def test_a_text_that_the_library_cannot_encode_is_named(tmp_path: Path) -> None:
    tokenizer = loaded(Tokenizer(models.Unigram([("a", -1.0)], None, False)), tmp_path)
    with pytest.raises(wp.InputError, match=r"^text 2: the library tokenizers cannot encode it \("):
        tokenizer.encode_batch(["a", None, "b", "a"])


def test_an_inspection_has_tokens_and_words(tmp_path: Path) -> None:
    tokenizer = loaded(KINDS["word level"], tmp_path)
    inspection = Inspector(tokenizer).inspect("<s>the what")
    kinds = [(token.source, token.kind) for token in inspection.tokens]
    assert kinds == [
        *(("", "added"), ("<s>", "special"), ("the", "text"), ("what", "unknown"), ("", "added")),
    ]
    assert inspection.reasons is None


USE = """
import logging, os, signal, sys, threading, warnings
before = {**os.environ}, [*warnings.filters], logging.getLogger().filters[:], threading.excepthook
handlers = {s: signal.getsignal(s) for s in signal.valid_signals()}
import pipelines, wordpiece_core as wp
for path in sys.argv[1:]:
    wp.Tokenizer.load(path).encode_batch(["the"], add_special_tokens=False)
pipelines.count("a.txt", output="words", quiet=True)
after = {**os.environ}, [*warnings.filters], logging.getLogger().filters[:], threading.excepthook
ours = [f for f in after[1] if f not in before[1] and "wordpiece" in str(f)]
assert after[0] == before[0], {**after[0].items() - before[0].items()}
assert (ours, after[2:]) == ([], before[2:]), (ours, after[2:])
assert handlers == {s: signal.getsignal(s) for s in signal.valid_signals()}
"""


def test_use_from_python_changes_nothing_of_the_process(tmp_path: Path) -> None:
    KINDS["word level"].save(str(tmp_path / "tokenizer.json"))
    own = tmp_path / "own"  # which transformers builds
    own.mkdir()
    (own / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n")
    (own / "tokenizer_config.json").write_text('{"tokenizer_class": "MPNetTokenizer"}')
    (tmp_path / "a.txt").write_text("a b")
    environment = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    call = [sys.executable, "-c", USE, str(tmp_path), str(own)]
    done = subprocess.run(call, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_the_library_an_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokenizer.json"
    KINDS["unigram"].save(str(path))
    from wordpiece_core.tokenizer import library

    library.loaded.cache_clear()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(wp.OptionError) as raised:
        wp.Tokenizer.load(path)
    message = str(raised.value)
    assert message.startswith(
        f"{path}: pre_tokenizer: unknown type `UnicodeScripts`, or this tokenizer"
    )
    assert message.endswith("tokenizers: pip install tokenizers")


@pytest.mark.parametrize("kind", ["BPE", "WordPiece", "WordLevel", "Unigram"])
def test_a_model_without_a_type_is_taken_as_the_library_takes_it(tmp_path: Path, kind: str) -> None:
    model = {
        "BPE": models.BPE({"a": 0, "b": 1, "ab": 2, "<unk>": 3}, [("a", "b")], unk_token="<unk>"),
        "WordPiece": models.WordPiece({"a": 0, "##b": 1, "<unk>": 2}, unk_token="<unk>"),
        "WordLevel": models.WordLevel({"ab": 0, "<unk>": 1}, "<unk>"),
        "Unigram": models.Unigram([("a", -1.0), ("b", -1.5), ("<unk>", 0.0)], 2, False),
    }[kind]
    peer = Tokenizer(model)
    peer.pre_tokenizer = pre_tokenizers.Whitespace()
    value = json.loads(peer.to_str())
    del value["model"]["type"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    warns = pytest.warns(wp.EncodedByLibraryWarning)
    with warns if kind == "WordLevel" else nullcontext():
        tokenizer = wp.Tokenizer.load(tmp_path)
    library = tokenizer.spec.library
    assert (kind if library is None else library.kind) == kind
    assert tokenizer.encode_batch(["ab b"]).to_pylist() == [peer.encode("ab b").ids]
    assert tokenizer.unk_id == peer.token_to_id("<unk>")
