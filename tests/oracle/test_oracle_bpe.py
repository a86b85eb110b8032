"""BPE in plain Python, compared with the corpus of a textbook, its variants, and `tokenizers`."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from tests.oracle import SPECIAL_TOKENS, Merge, bpe, bpe_training, count_words, symbols
from wordpiece_core.errors import OptionError

TEXTBOOK = 100 * ["the cat sat on the mat", "the dog sat on the log", "the cat chased the dog"]


def words_of(texts: list[str]) -> dict[str, int]:
    """A word table, the commonest word first, then by code point."""
    counts = Counter(word for text in texts for word in text.split())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def pairs_of(merges: list[Merge]) -> list[tuple[str, str]]:
    return [(merge.left, merge.right) for merge in merges]


def test_the_textbooks_corpus_runs_out_of_pairs_before_the_vocabulary_is_full() -> None:
    words = words_of(TEXTBOOK)
    assert dict(islice(words.items(), 3)) == {"the": 600, "cat": 200, "dog": 200}
    assert words == dict(count_words(TEXTBOOK))
    training = bpe_training.train(words, 100)
    assert [merge.token for merge in training.merges] == [
        *("th", "the</w>", "at</w>", "og</w>", "cat</w>", "dog</w>", "on</w>", "sat</w>"),
        *("ch", "cha", "chas", "chase", "chased</w>", "log</w>", "mat</w>"),
    ]
    counts = [600, 600, 500, 300, 200, 200, 200, 200, *[100] * 7]
    assert [merge.pair_count for merge in training.merges] == counts
    alphabet = ["a", "c", "d", "d</w>", "e", "e</w>", "g</w>", "h", "l", "m", "n</w>", "o", "s"]
    assert training.vocab[: 5 + 15] == [*SPECIAL_TOKENS, *alphabet, "t", "t</w>"]
    assert len(training.vocab) == 5 + 15 + 15  # not 100: every word is one token
    for word in words:
        tokens = bpe.tokenize(word, training.vocab, pairs_of(training.merges))
        assert tokens == [word + symbols.WORD_END]


def test_pairs_that_overlap_count_each_time_and_merge_once() -> None:
    training = bpe_training.train({"aaa": 1, "bc": 1}, 20, word_boundary=symbols.SPACE_MARK)
    assert [(m.token, m.pair_count) for m in training.merges[:2]] == [("aa", 2), ("▁aa", 1)]


def test_bytes_match_gpt2() -> None:
    assert len(set(symbols.BYTE_CHARACTERS)) == 256
    assert symbols.symbols("é", symbols.BYTES) == ["Ġ", "Ã", "©"]
    assert symbols.symbols(" the", symbols.BYTES) == ["Ġ", "t", "h", "e"]
    assert symbols.symbols("\nthe", symbols.BYTES, add_space=False) == ["Ċ", "t", "h", "e"]
    vocab = bpe_training.train({}, 300, word_boundary=symbols.BYTES).vocab
    assert vocab == ["<|endoftext|>", *sorted(symbols.BYTE_CHARACTERS)]
    assert vocab[1:4] == ["!", '"', "#"]  # as in GPT-2's vocab.json
    assert vocab[-1] == "Ń"


def test_a_character_without_a_token_is_unknown_or_its_bytes() -> None:
    assert bpe.tokenize("aé", ["a"], [], word_boundary=symbols.WORD_END) == ["a", "[UNK]"]
    vocab = ["▁", "a", *symbols.byte_tokens(True)]
    tokens = bpe.tokenize("aé", vocab, [], word_boundary=symbols.SPACE_MARK, byte_fallback=True)
    assert tokens == ["▁", "a", "<0xC3>", "<0xA9>"]


def test_too_small_a_vocabulary_is_refused() -> None:
    with pytest.raises(OptionError, match="begins with 257 tokens"):
        bpe_training.train({"a": 1}, 256, word_boundary=symbols.BYTES)
