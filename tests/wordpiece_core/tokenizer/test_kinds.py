"""Tokenizers of all kinds have the ids of the library that their file belongs to, and stay the same
when they are saved, stored and sent."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
import pytest
import sentencepiece
from tokenizers import Tokenizer
from transformers import AutoTokenizer

import wordpiece_core as wp
from wordpiece_core.tokenizer.bytes_as_text import bytes_of
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.texts_of_ids import TextsOfIds

from ...parity.random_cases import assert_same
from ..real_text import real_lines
from .kinds import KINDS
from .peers import TEXTS

MORE = ["[MASK] inside [SEP]text[CLS] and [unk] [UNK]", "x" * 120, "日本 ☃x", "ｶﾞ ﬁn\u3000½ ①"]
WITHOUT_ENDS = "trained cased"  # its vocabulary has neither [CLS] nor [SEP]
AS_TEXT = {"add_special_tokens": False, "special_tokens_in_text": "text"}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@cache
def files(kind: str) -> Path:
    """Return the path of a tokenizer, written once."""
    return KINDS[kind](Path(mkdtemp()))


def tokenizer_json(kind: str) -> Path | None:
    """Return the `tokenizer.json` of a kind, if it has one."""
    path = files(kind)
    return path / "tokenizer.json" if path.is_dir() else path if path.suffix == ".json" else None


def library(kind: str) -> tuple[Callable[[str], list[int]], Callable[..., str]]:
    """Return how the library of a file encodes a text, and decodes ids: `transformers` for a
    directory, otherwise `tokenizers` or `sentencepiece`."""
    path = files(kind)
    if path.is_dir():
        of_directory = AutoTokenizer.from_pretrained(path)
        return lambda text: list(of_directory(text)["input_ids"]), of_directory.decode
    if path.suffix == ".json":
        of_file = Tokenizer.from_file(str(path))
        return lambda text: of_file.encode(text).ids, of_file.decode
    of_model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return of_model.encode, lambda ids, **_: str(of_model.decode(ids))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_match_the_library(kind: str) -> None:
    ours = wp.Tokenizer.load(files(kind))
    path = tokenizer_json(kind)
    if path and not ours.spec.library and kind != WITHOUT_ENDS:
        assert_same(json.loads(path.read_text()), [*TEXTS, *MORE])  # all columns, and pairs
    texts = [*TEXTS, *MORE, *real_lines(20_000)]
    encode, _ = library(kind)
    wanted = [encode(text) for text in texts]
    more = {"add_special_tokens": ours.adds_special_tokens} if path else AS_TEXT
    for columns in ((), (), ("offset_mapping", "word_ids")):  # words are known the second time
        options = wp.EncodingOptions(columns=columns, **more)
        table = ours.encode_table(texts, options=options).table
        assert table["input_ids"].to_pylist() == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_ids_matches_the_library(kind: str) -> None:
    ours, (encode, decode) = wp.Tokenizer.load(files(kind)), library(kind)
    draw = random.Random(1)
    rows = [
        [draw.randrange(len(ours.vocab)) for _ in range(draw.randrange(12))] for _ in range(300)
    ]
    for ids in [*map(encode, TEXTS), *rows]:
        for skip in (True, False) if tokenizer_json(kind) else (False,):
            wanted = decode(ids, skip_special_tokens=skip)
            assert ours.decode(ids, skip_special_tokens=skip) == wanted, ids
        if files(kind).is_dir():
            clean = {"skip_special_tokens": False, "clean_up_tokenization_spaces": True}
            assert ours.decode(ids, **clean) == decode(ids, **clean), ids


def is_utf8(data: bytes) -> bool:
    return data.decode(errors="ignore").encode() == data


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_ids_become_texts_that_give_them_again(kind: str) -> None:
    tok, draw = wp.Tokenizer.load(files(kind)), random.Random(2)
    texts = [*TEXTS, *MORE, *real_lines(5_000), ""]
    options = wp.EncodingOptions(add_special_tokens=tok.adds_special_tokens)
    rows: list[list[int] | None] = tok.encode_table(texts, options=options).ids.to_pylist()
    rows += [[draw.randrange(len(tok)) for _ in range(draw.randrange(9))] for _ in range(300)]
    rows.insert(3, None)
    decoder = TextsOfIds(tok)
    found = decoder(pa.chunked_array([rows[:20], rows[20:]], pa.large_list(pa.int64())))
    special = {tok.ids[token] for token in tok.skipped_tokens} - {tok.unk_id}
    of_bytes = tok.spec.word_boundary == "bytes" and tok.spec.library is None
    how = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
    changed = 0
    for row, text in zip(rows, found.to_pylist(), strict=True):
        if row is None:
            assert text is None
            continue
        kept = [i for i, token in enumerate(row) if token not in special]
        inside = row[kept[0] : kept[-1] + 1] if kept else []
        again = tok.encode(text, add_special_tokens=False)
        slow, is_known = tok.decode(inside, **how), tok.unk_id not in inside
        if is_known and again == inside:
            continue
        if (
            is_known
            and of_bytes
            and text == slow
            and is_utf8(b"".join(map(bytes_of, map(tok.surface, inside))))
        ):
            continue
        changed += 1
        assert text == slow or again == inside, row
    assert decoder.changed == changed


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_that_is_saved_stored_and_sent_stays_the_same(
    kind: str, tmp_path: Path
) -> None:
    ours = wp.Tokenizer.load(files(kind))
    ids = ours.encode_batch(TEXTS).to_pylist()
    stored = json.loads(json.dumps(ours.spec.to_dict()))
    ours.save(tmp_path)
    for again in (
        wp.Tokenizer.load(tmp_path),
        wp.Tokenizer.from_spec(TokenizerSpec.from_dict(stored)),
        pickle.loads(pickle.dumps(ours)),
    ):
        assert again.spec.to_dict() == ours.spec.to_dict()
        assert again.digest == ours.digest
        assert again.encode_batch(TEXTS).to_pylist() == ids
    if not ours.spec.of_sentencepiece:  # whose normalizer `tokenizers` lacks
        values = [stored] * (ours.spec.library is None)
        values.append(json.loads((tmp_path / "tokenizer.json").read_text()))
        for value in values:
            theirs = Tokenizer.from_str(json.dumps(value))
            assert [row.ids for row in theirs.encode_batch(TEXTS)] == ids
        assert AutoTokenizer.from_pretrained(tmp_path)(TEXTS)["input_ids"] == ids
    if ours.spec.library:
        assert (tmp_path / "tokenizer.json").read_bytes() == files(kind).read_bytes()
    if kind.startswith("own"):
        (tmp_path / "tokenizer_config.json").unlink()
        assert wp.Tokenizer.load(tmp_path).spec.to_dict() == ours.spec.to_dict()
    assert all(other == kind or digest(other) != ours.digest for other in KINDS)


@cache
def digest(kind: str) -> str:
    return wp.Tokenizer.load(files(kind)).digest
