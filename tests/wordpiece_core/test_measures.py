"""Measures of tokenizers, compared with a few plain lines over complete texts with `tokenizers`."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer
from tokenizers import Tokenizer as PeerTokenizer

from tests.oracle import WHITE_SPACE, normalize, pre_tokenize
from tests.wordpiece_core.strategies import ODD
from wordpiece_core import Tokenizer, _kernel, train
from wordpiece_core.errors import InputError
from wordpiece_core.measures import SUMS, Measures, measure, overlap, parity

VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "b", "##b", "##ab", "aab", "é"),
    *("##é", "e", "##e", "!", "?", "[", "]", "mask", "中", "##中", "漢", "σ", "##σ", "0", "##0"),
    "A",
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"lowercase": False},
    {"lowercase": True, "strip_accents": False, "handle_chinese_chars": False},
    {"clean_text": False, "lowercase": False},
]


def chunks_of(texts: list[str]) -> tuple[pa.Array, pa.Array]:
    """The chunks of texts with their counts, by the kernel."""
    counter = _kernel.WordCounter.of_chunks()
    counter.count(pa.array(texts, pa.string()))
    taken = [pa.record_batch(words) for _, _, _, words in counter.take(1)]
    words, counts = ([x for b in taken for x in b[name].to_pylist()] for name in ("word", "count"))
    return pa.array(words, pa.string()), pa.array(counts, pa.int64())


def words_of(text: str) -> list[tuple[int, int]]:
    """The places of words, by the definition: characters are looked at one by one."""
    places: list[tuple[int, int]] = []
    open_word = False
    for at, c in enumerate(text):
        kept = normalize(c, lowercase=False)
        pieces = pre_tokenize(kept)
        if c in WHITE_SPACE and c not in "\v\f\x85":
            open_word = False
        elif not pieces:
            continue  # removed: it ends no word, and begins none
        elif pre_tokenize(f"a{kept}") != [f"a{c}"]:  # it stands alone
            places.append((at, at + 1))
            open_word = False
        elif open_word:
            places[-1] = (places[-1][0], at + 1)
        else:
            places.append((at, at + 1))
            open_word = True
    return places


def plain_measures(peer: Any, unk_id: int | None, texts: list[str]) -> dict[str, Any]:
    """The measures, from the tokens that a tokenizer of `tokenizers` makes of whole texts."""
    sums, uses = Counter(dict.fromkeys(SUMS, 0)), Counter[int]()
    for text in texts:
        encoding = peer.encode(text, add_special_tokens=False)
        uses.update(encoding.ids)
        tokens = list(zip(encoding.ids, encoding.offsets, strict=True))
        visible = [at for at, c in enumerate(text) if c not in WHITE_SPACE]
        known = {at for i, (start, end) in tokens if i != unk_id for at in range(start, end)}
        places = words_of(text)
        over = [[t for t in tokens if t[1][0] < e and t[1][1] > s] for s, e in places]
        sums["words"] += len(places)
        sums["tokens"] += len(tokens)
        sums["characters"] += len(visible)
        sums["dropped_characters"] += sum(at not in known for at in visible)
        sums["continued_words"] += sum(len(found) > 1 for found in over)
        sums["unknown_words"] += sum(any(i == unk_id for i, _ in found) for found in over)
        sums["whole_words"] += sum(
            len(found) == 1
            and found[0][0] != unk_id
            and sum(found[0][1][0] < e and found[0][1][1] > s for s, e in places) == 1
            for found in over
        )
    return {**sums, "uses": dict(sorted(uses.items()))}


def measured(tokenizer: Any, texts: list[str]) -> dict[str, Any]:
    """Return the same measures by the kernel, from chunks."""
    measures = measure(tokenizer, *chunks_of(texts))
    columns = (measures.uses[name].to_pylist() for name in ("token", "count"))
    uses = dict(zip(*columns, strict=True))
    return {name: getattr(measures, name) for name in SUMS} | {"uses": uses}


def bert(options: dict[str, Any]) -> Any:
    """BERT's tokenizer of `tokenizers`."""
    return BertWordPieceTokenizer({token: i for i, token in enumerate(VOCAB)}, **options)


TEXTS = st.lists(st.text(st.sampled_from("aabb é!?[]mskMASK" + ODD), max_size=30), max_size=6)


@pytest.mark.parametrize("options", OPTIONS)
@example(texts=["aab aab\x0caab aab!!", "a[MASK]b [SEP]", "中a漢é中 e\u0301 e\u0301e"])
@given(texts=TEXTS)
def test_measures_match_whole_texts(options: dict[str, Any], texts: list[str]) -> None:
    found = measured(Tokenizer(VOCAB, **options), texts)
    assert found == plain_measures(bert(options), VOCAB.index("[UNK]"), texts)


@given(texts=st.lists(st.text(ODD, max_size=20), max_size=4))
def test_chunks_are_what_is_between_white_space(texts: list[str]) -> None:
    plain = Counter[str]()
    for text in texts:
        spaced = "".join(" " if c in WHITE_SPACE and c not in "\v\f\x85" else c for c in text)
        plain.update(chunk for chunk in spaced.split(" ") if chunk)
    words, counts = chunks_of(texts)
    assert dict(zip(words.to_pylist(), counts.to_pylist(), strict=True)) == plain


@pytest.mark.parametrize(
    "split", ["gpt2", "llama3", "cl100k", "o200k", "qwen2", ["digits", "gpt2"]]
)
def test_words_of_bytes_are_measured_behind_a_space(split: Any, tmp_path: Path) -> None:
    chunks = ["the", "hug", "hugs", "1999", "don't", "x-ray", "über", "日本", "(the)", "the", "hug"]
    words = Counter(f" {chunk}" for chunk in chunks)
    options: dict[str, Any] = {"model": "bpe", "word_boundary": "bytes", "min_pair_count": 1}
    trained = train(dict(words), vocab_size=300, pre_tokenizer=split, **options)
    tokenizer = trained.tokenizer(pre_tokenizer=split)
    tokenizer.save(tmp_path)
    peer = PeerTokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert "Ġthe" in tokenizer.vocab
    assert measured(tokenizer, chunks) == plain_measures(peer, None, [f" {c}" for c in chunks])


def test_figures_are_ratios_of_the_sums() -> None:
    tok = Tokenizer(VOCAB)
    measures = measure(tok, ["aab", "aaab", "é!", "x\x00"], [5, 2, 1, 2])
    # aab | a ##a ##b? no: a ##a ##ab is the longest match; é is e without its accent; x is unknown
    assert measures.tokens_per_word == (5 * 1 + 2 * 3 + 2 + 2) / (5 + 2 + 2 + 2)
    characters = 5 * 3 + 2 * 4 + 2 + 4
    assert measures.characters_per_token == characters / 15
    assert measures.bytes_per_token is None  # of chunks, the text between them is not known
    assert replace(measures, text_bytes=45).bytes_per_token == 3
    assert (measures.whole_share, measures.continued_share) == (7 / 11, 2 / 11)
    assert (measures.unknown_share, measures.dropped_share) == (2 / 11, 4 / characters)
    assert (measures.used_tokens, measures.rare_tokens) == (7, 7)
    assert measure(tok, ["aab", "b"], [10, 9]).rare_tokens == 1


def test_renyi_efficiency_matches_its_definition() -> None:
    drawn = random.Random(1)
    counts = [drawn.randint(1, 10 ** drawn.randint(1, 15)) for _ in range(20)]
    letters = [chr(ord("a") + i) for i in range(20)]
    tok = Tokenizer(["[UNK]", *letters, *(f"##{c}" for c in letters)])
    total = sum(counts)
    entropy = math.log2(sum((n / total) ** 2.5 for n in counts)) / (1 - 2.5)
    efficiency = measure(tok, letters, counts).renyi_efficiency
    assert efficiency == pytest.approx(entropy / math.log2(41), rel=1e-12)
    assert measure(tok, ["a"], [7]).renyi_efficiency == 0
    uniform = [*letters, *(c + c for c in letters), "?"]
    flat = measure(tok, uniform, [1] * 20 + [1] * 20 + [1])
    assert flat.renyi_efficiency is not None
    assert 0.9 < flat.renyi_efficiency < 1
    assert Measures(41).renyi_efficiency is None
    assert measure(Tokenizer(["[UNK]"]), ["a"], [1]).renyi_efficiency is None


@given(texts=TEXTS, cut=st.integers(0, 6))
def test_measures_of_parts_add_up_in_any_order(texts: list[str], cut: int) -> None:
    tok = Tokenizer(VOCAB)
    parts = [measure(tok, *chunks_of(some)) for some in (texts[:cut], texts[cut:])]
    whole = measure(tok, *chunks_of(texts))
    assert parts[0] + parts[1] == parts[1] + parts[0] == whole + Measures(tok.vocab_size) == whole
    assert (parts[0] + parts[1]).renyi_efficiency == whole.renyi_efficiency


def test_nothing_to_divide_by_is_none() -> None:
    empty = measure(Tokenizer(VOCAB), [], [])
    assert empty == Measures(len(VOCAB))
    assert (empty.tokens_per_word, empty.bytes_per_token, empty.dropped_share) == (None, None, None)
    only_control = measure(Tokenizer(VOCAB), ["\x00\x01"], [3])
    assert (only_control.words, only_control.tokens, only_control.dropped_share) == (0, 0, 1.0)


def test_bad_tables_and_sums_are_refused() -> None:
    tok = Tokenizer(VOCAB)
    with pytest.raises(InputError, match="no valid word or count"):
        measure(tok, ["a", None], [1, 1])
    with pytest.raises(InputError, match="no valid word or count"):
        measure(tok, ["a"], [-1])
    with pytest.raises(InputError, match="more than 2"):
        measure(tok, ["aaaa"], [2**62])
    half = measure(tok, ["a"], [2**62])
    with pytest.raises(InputError, match="more than 2"):
        half + half
    with pytest.raises(ValueError, match="different"):
        half + Measures(1)


def test_tokens_from_elsewhere_are_checked() -> None:
    sums = _kernel.Measurer(vocab_size=2, unk_id=None)
    words = pa.record_batch([pa.array(["ab"]), pa.array([2])], ["word", "count"])

    def numbers(*values: int | None) -> pa.Array:
        return pa.array(values, pa.uint32())

    good = numbers(2), numbers(0, 1), numbers(0, 1, 1, 4)
    sums.add_tokens(words, *good, 1)  # "a ab": the first token belongs to the a
    assert sums.take()[0][:4] == [2, 2, 4, 2]
    for place, bad in [
        *((0, numbers(1)), (0, numbers(3)), (0, numbers(None)), (0, numbers(1, 1))),
        *((1, numbers(0, 2)), (1, numbers(0)), (1, pa.array([0, 1]))),
        *((2, numbers(0, 1, 1)), (2, numbers(0, 1, 1, 4, 4, 5))),
    ]:
        with pytest.raises(InputError):
            sums.add_tokens(words, *good[:place], bad, *good[place + 1 :], 1)
    assert sums.take()[0][0] == 0


def test_overlap_is_the_share_that_the_first_has_too() -> None:
    assert overlap(["a", "b"], ["b", "c", "d"]) == 0.5
    assert overlap(VOCAB, VOCAB) == 1
    assert overlap(["x"], []) == 0


def test_parity_is_relative_to_the_best_group() -> None:
    assert parity({"en": 1.5, "de": 3.0, "none": None}) == {"en": 1.0, "de": 2.0, "none": None}
    assert parity({}) == {}
