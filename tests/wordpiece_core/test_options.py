"""Options are checked where they are made, and the error names the option."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers.models import WordPiece

import wordpiece_core as wp
from tests import oracle
from wordpiece_core.errors import shown
from wordpiece_core.options import TrainingOptions


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"vocab_size": 0}, "vocab_size: 0 is not a whole number from 1"),
        ({"vocab_size": True}, "vocab_size: True is not"),
        ({"criterion": "bpe"}, "criterion: 'bpe' is not one of pmi, likelihood, frequency"),
        ({"min_pair_count": "none"}, "min_pair_count: 'none' is not .*, or auto"),
        ({"min_word_count": 1.5}, "min_word_count: 1.5 is not"),
        ({"limit_alphabet": -1}, "limit_alphabet: -1 is not"),
        ({"alphabet_order": "random"}, "alphabet_order: 'random' is not one of"),
        ({"special_tokens": ["[PAD]"]}, r"special_tokens: \['\[PAD\]'\] has no \[UNK\]; add it"),
        ({"special_tokens": ["[UNK]", "[UNK]"]}, "is given twice; give it once"),
        ({"special_tokens": 5}, 'special_tokens: 5 is not a list or "bert"'),
        # Numbers have an upper end too, however they are written.
        ({"vocab_size": 2**31}, "vocab_size: 2147483648 is not a whole number from 1 to 2,147,483"),
        ({"vocab_size": 10**5000}, "vocab_size: a number of thousands of digits is not"),
        ({"min_word_count": 2**63}, "min_word_count: 9223372036854775808 is not a whole number"),
        ({"min_pair_count": float("nan")}, "min_pair_count: nan is not"),
        ({"max_word_length": 2**32}, "max_word_length: 4294967296 is not"),  # nor could it be read
        *(({"round_budget": n}, "round_budget: ") for n in (-1, 2, float("nan"), "x", 10**400)),
        ({"pre_tokenizer": "{"}, "pre_tokenizer: '{' is not one of bert"),
        *(
            ({"driver_memory": n}, r"driver_memory: .* is (not a size|too (small|large))")
            for n in (0, 1.5, "x", float("inf"), 2**63)
        ),
        # Options are checked against the vocabulary before anything is counted.
        ({"vocab_size": 4}, "vocab_size: 4 is too small for 5 special tokens; make it 5 or more"),
        (
            {"vocab_size": 10, "initial_alphabet": "aabc"},
            "too small for 5 special tokens and the initial alphabet of 6; make it 11 or more",
        ),
    ],
    ids=shown,
)
def test_a_wrong_training_option_is_named(option: dict[str, object], said: str) -> None:
    with pytest.raises(wp.OptionError, match=said) as raised:
        wp.train({"ab": 1}, **{"vocab_size": 20} | option)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("model", "role"),
    [
        ({"model": "bpe", "word_boundary": "bytes"}, {"eos_token": "<|endoftext|>"}),
        ({"model": "unigram"}, {"unk_token": "[UNK]", "pad_token": "[PAD]"}),
        ({}, {"mask_token": "[MASK]"}),
    ],
    ids=str,
)
def test_a_role_that_a_token_has_anyway_is_the_default(
    model: dict[str, Any], role: dict[str, Any]
) -> None:
    assert TrainingOptions(**model, **role) == TrainingOptions(**model)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"columns": None}, "columns: None is not a list"),
        ({"max_length": float("inf")}, "max_length: inf is not a whole number from 1 to"),
        ({"max_length": 2**31}, "max_length: 2147483648 is not"),
        ({"max_length": 8, "stride": -1}, "stride: -1 is not a whole number from 0 to"),
    ],
    ids=str,
)
def test_a_wrong_encoding_option_is_named(option: dict[str, Any], said: str) -> None:
    with pytest.raises(wp.OptionError, match=said):
        wp.EncodingOptions(**option)


# Readers of vocab.txt trim lines, or end them at other characters than a line feed.
UNHELD = {
    **dict.fromkeys(("a\nb", "a\rb", "a\x0bb", "a\x1cb", "a\x85b", "a\u2028b"), "a line end"),
    **dict.fromkeys((" a", "\ta", "\x1fa", "\u3000a", "\ufeffa"), "white space, or a byte order"),
    "a\ud800": "(half a surrogate pair|is not UTF-8)",
    "a\0": "the character NUL",
}


@pytest.mark.parametrize("token", UNHELD, ids=ascii)
def test_tokens_that_vocab_txt_cannot_hold_are_refused(token: str) -> None:
    odd = token.strip("ab")
    for option in (
        {"special_tokens": ["[UNK]", token]},
        {"continuing_prefix": token},
        {"initial_alphabet": f"x{odd}"},
    ):
        with pytest.raises(wp.OptionError, match=f"{next(iter(option))}: .* {UNHELD[token]}"):
            wp.train({"ab": 1}, vocab_size=50, **option)


def load_vocab(path: Path) -> list[str]:
    """As `transformers` reads a vocab.txt in Python."""
    with open(path, encoding="utf-8") as reader:
        return [line.rstrip("\n") for line in reader.readlines()]


READERS: dict[str, Callable[[Path], list[str]]] = {
    "wordpiece_core": lambda path: wp.Tokenizer.load(path, lowercase=False).vocab,
    "tokenizers": lambda path: list(WordPiece.read_file(str(path))),  # in the order of its hashes
    "transformers": load_vocab,
    "trimmed": lambda path: [line.strip() for line in path.read_text("utf-8").split("\n")[:-1]],
    "splitlines": lambda path: path.read_text("utf-8").splitlines(),
}


@given(
    token=st.text(st.characters(), max_size=4) | st.text(st.sampled_from("a \n\r\x1c\x85\ufeff"))
)
@pytest.mark.filterwarnings("ignore::wordpiece_core.FewerTokensWarning")
@example("a\x07b")
@example("a b")
def test_accepted_tokens_survive_every_reader(token: str) -> None:
    options = {"special_tokens": [token, "[UNK]"], "continuing_prefix": token}
    try:
        vocab = wp.train({"xy": 1}, vocab_size=20, **options, initial_alphabet="z").vocab
    except wp.OptionError:
        return
    with TemporaryDirectory() as directory:
        path = Path(directory) / "vocab.txt"
        wp.Tokenizer(vocab, continuing_prefix=token).save(directory)
        for name, read in READERS.items():
            found = read(path)
            assert (sorted(found) if name == "tokenizers" else found) == (
                sorted(vocab) if name == "tokenizers" else vocab
            ), name


def test_accents_go_with_lower_case_unless_said_otherwise() -> None:
    assert wp.TextOptions().for_kernel()["strip_accents"] is True
    assert wp.TextOptions(lowercase=False).for_kernel()["strip_accents"] is False
    assert wp.TextOptions(strip_accents=False).for_kernel()["strip_accents"] is False


def test_bert_lays_special_tokens_out_as_the_published_vocabularies() -> None:
    tokens = TrainingOptions(special_tokens="bert").special_tokens
    places = {token: place for place, token in enumerate(tokens)}
    assert len(tokens) == 999
    assert [places[t] for t in oracle.SPECIAL_TOKENS] == [0, 100, 101, 102, 103]
    assert [places[t] for t in ("[unused0]", "[unused98]", "[unused99]", "[unused993]")] == [
        *(1, 99, 104, 998)
    ]


def test_a_vocabulary_too_small_for_its_alphabet_is_refused_with_the_size_it_needs() -> None:
    with pytest.raises(wp.OptionError, match=r"vocab_size: 6 is too small.*make it 8 or more"):
        wp.train({"abc": 1}, vocab_size=6)
    assert len(wp.train({"abc": 1}, vocab_size=8).vocab) == 8


def test_counts_that_pass_63_bits_are_an_error_and_large_ones_are_exact() -> None:
    for budget in (0.1, 1.0):
        with pytest.raises(wp.InputError, match="2\\^63"):
            wp.train({"ab": 2**62, "ac": 2**62}, vocab_size=20, round_budget=budget)
    with pytest.raises(wp.InputError):
        wp.train({"ab": 2**63}, vocab_size=20)
    merges = wp.train({"ab": 2**61, "ac": 2**61 - 1}, vocab_size=9, min_pair_count=1).merges
    assert merges.column("pair_count").to_pylist() == [2**61]


def test_a_table_with_nulls_or_negative_counts_is_refused() -> None:
    with pytest.raises(wp.InputError, match="row 0"):
        wp.train({"ab": -1}, vocab_size=20)
    with pytest.raises(wp.InputError, match="row 1"):
        wp.train([("ab", 1), (None, 2)], vocab_size=20)


def test_fewer_tokens_than_asked_for_are_a_warning() -> None:
    with pytest.warns(wp.FewerTokensWarning, match="has 8 tokens, not 100"):
        result = wp.train({"ab": 2}, vocab_size=100)
    assert result.vocab[-1] == "ab"


@pytest.mark.parametrize("table", [["ab"], "abc", [("ab", 1, 2)], [("\ud800", 1)], {"a": 2**70}])
def test_values_other_than_word_counts_are_input_errors(table: object) -> None:
    with pytest.raises(wp.InputError, match=r"word (counts|table)"):
        wp.train(table, vocab_size=20)


@pytest.mark.parametrize("threads", [-1, 0, 1025, 2**64, 1.5, True, None])
def test_threads_that_cannot_be_had_are_an_option_error(threads: Any) -> None:
    tok = wp.Tokenizer(["[UNK]", "a"])
    with pytest.raises(wp.OptionError, match=r"threads: .* is not a whole number from 1 to 1,024"):
        tok.encode_batch(["a"], add_special_tokens=False, threads=threads)
    assert tok.encode_batch(["a"], add_special_tokens=False, threads=1024).to_pylist() == [[1]]


def test_rows_of_a_length_that_cannot_be_had_are_an_option_error() -> None:
    most = 2**24
    for option in ({"padding": True}, {"stride": 0}):
        wp.EncodingOptions(max_length=most, **option)
        for length in (most + 1, 2**31 - 1):
            with pytest.raises(wp.OptionError, match=f"max_length: {length} is not 16,777,216 or"):
                wp.EncodingOptions(max_length=length, **option)
    tok = wp.Tokenizer(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "a"])
    assert len(tok.encode_table(["a"], options=wp.EncodingOptions(max_length=2**31 - 1)).table) == 1
    with pytest.raises(wp.OptionError, match="max_length: 16777217 is more than 16,777,216"):
        wp.Packer(tok, wp.EncodingOptions(max_length=most + 1))


def test_more_ids_than_a_batch_can_have_are_an_error_before_memory_is_used_up() -> None:
    tok = wp.Tokenizer(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "a"])
    options = wp.EncodingOptions(max_length=2**24, stride=2**24 - 3)
    assert len(tok.encode_table(["a a"], options=options).table) == 1
    options = wp.EncodingOptions(max_length=4002, stride=3999)
    texts = ["a " * 600_000]  # 2.4 G ids
    with pytest.raises(wp.InputError, match="more than 2\\^31 ids in one batch"):
        tok.encode_table(texts, options=options)
    with pytest.raises(wp.InputError, match="pair 0: more than 2\\^31 ids in one batch"):
        tok.encode_table(texts, texts, options=wp.EncodingOptions(max_length=600, stride=290))


def test_functions_take_their_arguments_by_name() -> None:
    result = wp.train(word_counts={"hug": 10, "pug": 5}, vocab_size=9)
    more = wp.extend(
        tokenizer=result.tokenizer(), word_counts={"pun": 9}, new_tokens=5, new_characters="all"
    )
    assert len(more.vocab) > 9
