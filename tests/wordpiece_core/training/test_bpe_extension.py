"""The kernel extends and prunes BPE of bytes as the reference does; old ids stay, and a new token
is what the old ones were that it replaces. Unigram is also pruned."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

import wordpiece_core as wp
from tests.oracle import bpe_training, unigram_training
from wordpiece_core.errors import OptionError
from wordpiece_core.symbols import BYTES
from wordpiece_core.tokenizer.models import Unigram

from ..sentencepiece_models import model
from ..strategies import small_rounds, word_tables

pytestmark = pytest.mark.filterwarnings("ignore")

TABLES = word_tables("ab ", "é a", "abc", "\na ")
OPTIONS = st.dictionaries(
    st.sampled_from(["min_pair_count", "min_word_count", "max_token_length"]),
    st.integers(1, 3),
    max_size=2,
)
ROUNDS = st.sampled_from([(1.0, 99), (0.3, 2), (0.05, 1)])  # the budget, and how many candidates
OF_BYTES: dict[str, Any] = {"model": "bpe", "word_boundary": BYTES, "pre_tokenizer": "gpt2"}


def base_of(table: dict[str, int], more: int, unused: list[str]) -> wp.Tokenizer:
    """A tokenizer of bytes, with tokens that no merge makes at the end."""
    trained = wp.train(table, vocab_size=257 + more, **OF_BYTES)
    spec = trained.tokenizer_spec(wp.TextOptions(pre_tokenizer="gpt2"))
    vocab = [*spec.vocab, *(token for token in unused if token not in spec.vocab)]
    return wp.Tokenizer.from_spec(type(spec)(**vars(spec) | {"vocab": vocab}))


def ids_of(tokenizer: wp.Tokenizer, texts: list[str]) -> list[list[int]]:
    """Encode texts, and check that `tokenizers` gives the same ids with the written files."""
    ids: list[list[int]] = tokenizer.encode_batch(texts, add_special_tokens=False).to_pylist()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        theirs = tokenizers.Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    assert [row.ids for row in theirs.encode_batch(texts, add_special_tokens=False)] == ids
    return ids


@given(
    TABLES,
    TABLES,
    st.integers(0, 9),
    st.sampled_from([1, 2, 5, 30]),
    st.sampled_from([[], ["ab", "Ġa"], ["aa", "ba", "ĠĠ"]]),
    OPTIONS,
    ROUNDS,
)
def test_the_kernel_extends_bpe_as_the_reference(
    known: dict[str, int],
    table: dict[str, int],
    more: int,
    room: int,
    unused: list[str],
    options: dict[str, Any],
    rounds: tuple[float, int],
) -> None:
    base = base_of(known, more, unused)
    assert base.spec.model is not None
    merges = [(base.vocab[left], base.vocab[right]) for left, right in base.spec.model.merges]
    round_budget, candidates = rounds
    limits = small_rounds(candidates, 2)
    given = {"min_pair_count": 1} | options
    mine = wp.extend(
        base, table, new_tokens=room, round_budget=round_budget, limits=limits, **given
    )
    specified = bpe_training.extend(table, base.vocab, merges, room, **options)
    assert mine.vocab == specified.vocab
    assert mine.merges.to_pylist() == [merge._asdict() for merge in specified.merges]
    replaced = {row["new_id"]: row["old_ids"] for row in mine.replaced.to_pylist()}
    texts = [*known, *table, *(f"{a}{b}" for a in known for b in table)]
    for before, after in zip(ids_of(base, texts), ids_of(mine.tokenizer(), texts), strict=True):
        assert [old for token in after for old in replaced.get(token, [token])] == before


@pytest.mark.parametrize("ignores", [False, True])
def test_added_tokens_behind_the_model_keep_their_ids(ignores: bool, tmp_path: Path) -> None:
    base = wp.train({"ab": 5, " ab": 3}, vocab_size=259, **OF_BYTES)
    wp.Tokenizer.from_spec(base.tokenizer_spec(wp.TextOptions(pre_tokenizer="llama3"))).save(
        tmp_path
    )
    path = tmp_path / "tokenizer.json"
    value = json.loads(path.read_text())
    value["model"]["ignore_merges"] = ignores
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for number, content in enumerate(["<|begin|>", "    "], 259):
        special = content != "    "
        value["added_tokens"].append({"id": number, "content": content, "special": special} | flags)
    path.write_text(json.dumps(value))
    old = wp.Tokenizer.load(path)
    result = wp.extend(old, {" abab": 4, "ba": 2}, new_tokens=2)
    assert str(tmp_path / "more" / "new_tokens.parquet") in result.save(tmp_path / "more")
    ours = wp.Tokenizer.load(tmp_path / "more")
    assert result.new_tokens == ["Ġabab", "ba"]
    assert result.replaced["old_tokens"].to_pylist() == [["Ġab", "ab"], ["b", "a"]]
    assert ours.vocab[:261] == old.vocab
    assert ids_of(ours, ["<|begin|> abab    abab ba<|begin|>", "ab    ab", " ababab"])


@given(
    word_tables("ab", "abc", "ж"),
    word_tables("ab", "abc", "ж", "x"),
    st.integers(0, 12),
    st.sampled_from([1, 2, 5, 30]),
    OPTIONS,
    ROUNDS,
)
def test_the_kernel_extends_unigram_as_the_reference(
    known: dict[str, int],
    table: dict[str, int],
    more: int,
    room: int,
    options: dict[str, Any],
    rounds: tuple[float, int],
) -> None:
    size = 6 + len({*"".join(known)}) + more
    base = wp.train(known, model="unigram", vocab_size=size).tokenizer()
    assert isinstance(base.spec.model, Unigram)
    scores = dict(zip(base.vocab, base.spec.model.scores, strict=True))
    round_budget, candidates = rounds
    limits = small_rounds(candidates, 2)
    given = {"min_pair_count": 1} | options
    mine = wp.extend(
        base, table, new_tokens=room, round_budget=round_budget, limits=limits, **given
    )
    specified = unigram_training.extend(table, scores, room, **options)
    assert isinstance(mine.spec.model, Unigram)
    found = list(zip(mine.vocab, mine.spec.model.scores, strict=True))
    assert found == list(specified.scores.items())
    assert mine.merges.to_pylist() == [merge._asdict() for merge in specified.merges]
    texts = [*known, *table, *(f"{a}{b} {a}" for a in known for b in table)]
    after = ids_of(mine.tokenizer(), texts)
    replaced = {row["token"]: row["old_tokens"] for row in mine.replaced.to_pylist()}
    for text, ids in zip(texts, after, strict=True):
        tokens = [mine.vocab[i] for i in ids]
        old = [part for token in tokens for part in replaced.get(token, [token])]
        before = base.tokenize(text)
        if "[UNK]" not in before:  # of equal ways to split a word another one may be taken
            assert sum(map(scores.__getitem__, old)) == sum(map(scores.__getitem__, before))
            assert len(tokens) <= len(old)


@given(word_tables("ab", "abc"), word_tables("ab", "abc", "x"), st.sampled_from(["</w>", "▁"]))
def test_bpe_of_characters_is_extended_behind_its_merges(
    known: dict[str, int], table: dict[str, int], word_boundary: str
) -> None:
    options: dict[str, Any] = {"model": "bpe", "word_boundary": word_boundary}
    base = wp.train(known, vocab_size=15, **options).tokenizer()
    mine = wp.extend(base, table, new_tokens=5, min_pair_count=1)
    assert mine.vocab[: len(base.vocab)] == base.vocab
    texts = [*known, *table, *(f"{a}{b} {a}" for a in known for b in table)]
    after = ids_of(mine.tokenizer(), texts)
    replaced = {row["new_id"]: row["old_ids"] for row in mine.replaced.to_pylist()}
    for before, ids in zip(ids_of(base, texts), after, strict=True):
        assert [old for token in ids for old in replaced.get(token, [token])] == before
    covered = {
        token for word in table for token in mine.tokenizer().encode_batch([word]).to_pylist()[0]
    }
    assert {*range(len(base.vocab), len(mine.vocab))} & covered or not mine.new_tokens


def test_other_models_are_refused(tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(model("nfkc"))
    with pytest.raises(OptionError, match="a sentencepiece model cannot be extended"):
        wp.extend(wp.Tokenizer.load(tmp_path / "spiece.model"), {"ab": 1}, new_tokens=1)
    base = wp.train({"ab": 3}, vocab_size=258, **OF_BYTES)
    tokenizer = wp.Tokenizer.from_spec(base.tokenizer_spec(wp.TextOptions(pre_tokenizer="gpt2")))
    for option in ({"criterion": "likelihood"}, {"new_characters": 3}):
        with pytest.raises(
            OptionError, match=f"{next(iter(option))}: only for WordPiece; remove it"
        ):
            wp.extend(tokenizer, {"ab": 1}, new_tokens=1, **option)


@given(TABLES, TABLES, st.integers(0, 30), st.integers(1, 20))
def test_the_kernel_prunes_bpe_as_the_reference(
    known: dict[str, int], table: dict[str, int], more: int, fewer: int
) -> None:
    base = base_of(known, more, ["ab", "ĠĠ"])
    assert base.spec.model is not None
    merges = [(base.vocab[left], base.vocab[right]) for left, right in base.spec.model.merges]
    size = len(base.vocab) - fewer
    # A word is encoded as a text is: where GPT-2's expression splits it, tokens are used in pieces.
    words = {word: n for word, n in table.items() if len(pieces_of(word)) <= 1}
    mine = wp.prune(base, words, vocab_size=size)
    special = base.special_tokens
    assert mine.vocab == bpe_training.prune(words, base.vocab, merges, size, special)
    assert len(ids_of(mine.tokenizer(), [*known, *table])) == len(known) + len(table)


def pieces_of(text: str) -> list[Any]:
    return pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)


def test_unigram_is_pruned() -> None:
    words = {"walking": 9, "talking": 8, "walked": 7, "talked": 6, "king": 5, "win": 4}
    base = wp.train(words, model="unigram", vocab_size=45).tokenizer()
    result = wp.prune(base, {"walking": 3, "king": 1}, vocab_size=19)
    assert len(result.vocab) == 19
    assert [base.vocab.index(token) for token in result.vocab] == result.kept
    assert {t for t in base.vocab if len(t) == 1} | {*base.special_tokens} <= {*result.vocab}
    assert "[UNK]" not in result.tokenizer().tokenize("walking talked win")
    assert result.tokenizer().tokenize("walking") == base.tokenize("walking")
    assert ids_of(result.tokenizer(), ["walking talking", "king win talked"])
