"""The Python interface has the names of `tokenizers` and `transformers`."""

from pathlib import Path

import pyarrow as pa
import pytest
from tokenizers import Tokenizer as Peer
from transformers import AutoTokenizer

import pipelines
import wordpiece_core as wp
from tests.pipelines.corpora import english
from wordpiece_core.limits import Limits

TEXTS = english(40)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a tokenizer that was trained on cased words."""
    directory = tmp_path_factory.mktemp("saved")
    words = wp.count_words(TEXTS, lowercase=False)
    wp.train(words, vocab_size=300).tokenizer().save(directory)
    return directory


def test_ids_and_texts_have_the_forms_of_tokenizers(saved: Path) -> None:
    ours, theirs = wp.Tokenizer.load(saved), Peer.from_file(str(saved / "tokenizer.json"))
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text).ids
        assert ours.encode(text, "hug") == theirs.encode(text, "hug").ids
        plain = theirs.encode(text, add_special_tokens=False)
        assert ours.encode(text, add_special_tokens=False) == plain.ids
        assert ours.tokenize(text) == plain.tokens
    rows = ours.encode_batch(TEXTS, threads=2)
    assert rows.to_pylist() == [row.ids for row in theirs.encode_batch(TEXTS)]
    assert ours.decode_batch(rows) == theirs.decode_batch(rows.to_pylist())
    assert ours.decode_batch(rows.to_pylist(), skip_special_tokens=False) == theirs.decode_batch(
        rows.to_pylist(), skip_special_tokens=False
    )
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.vocab_size == theirs.get_vocab_size()
    for token in (*ours.vocab, "no token"):
        assert ours.token_to_id(token) == theirs.token_to_id(token)
    for number in range(len(ours.vocab) + 1):
        assert ours.id_to_token(number) == theirs.id_to_token(number)
    assert ours.id_to_token(-1) is None


def test_calls_and_other_names_match_transformers(saved: Path) -> None:
    ours, theirs = wp.Tokenizer.from_pretrained(saved), AutoTokenizer.from_pretrained(saved)
    assert ours("one text") == dict(theirs("one text"))
    assert ours(["one", "and two"]) == dict(theirs(["one", "and two"]))
    with pytest.raises(TypeError, match="return_tensors"):
        ours("one text", return_tensors="pt")  # type: ignore[call-arg]


def test_a_string_is_one_text_and_a_list_has_its_own_function() -> None:
    tokenizer = wp.Tokenizer(["[UNK]", "hug", "##s", "[CLS]", "[SEP]"])
    assert tokenizer.encode_batch("hugs").to_pylist() == [[3, 1, 2, 4]]
    assert tokenizer.encode_table("hugs", "hug").ids.to_pylist() == [[3, 1, 2, 4, 1, 4]]
    assert wp.count_words("hugs").to_pylist() == [{"word": "hugs", "count": 1}]
    with pytest.raises(wp.OptionError, match="got list; pass several texts to encode_batch"):
        tokenizer.encode(["hugs"])  # type: ignore[arg-type]
    assert tokenizer.decode_batch(pa.array([[1, 2], None])) == ["hugs", None]


@pytest.mark.parametrize(
    "options",
    [{}, {"lowercase": False}, {"pre_tokenizer": "gpt2"}, {"normalizer": ["nfkc", "lowercase"]}],
)
def test_words_in_memory_equal_the_words_of_the_job(options: dict, tmp_path: Path) -> None:
    texts = [*TEXTS, None, "", "Ça va? ÇA VA!"]
    (tmp_path / "texts.txt").write_text("\n".join(text or "" for text in texts))
    table = pipelines.count(tmp_path / "texts.txt", output=tmp_path / "words", **options)
    words = wp.count_words(texts, **options)
    assert words.equals(table.read())
    assert words.schema.metadata == table.read().schema.metadata


def test_small_tables_are_merged() -> None:
    limits = Limits(in_memory_table_bytes=1)
    assert wp.count_words(TEXTS * 3, limits=limits).equals(wp.count_words(TEXTS * 3))


def test_training_uses_the_text_options_of_the_words() -> None:
    texts = ["Hug pug", "Hug Ça"]
    words = wp.count_words(texts, lowercase=False)
    tokenizer = wp.train(words, vocab_size=15).tokenizer()
    assert tokenizer.tokenize("Hug hug") == ["Hug", "[UNK]"]  # no text has the letter h
    words = wp.count_words(texts * 9, pre_tokenizer="gpt2")
    trained = wp.train(words, model="bpe", word_boundary="bytes", vocab_size=270)
    assert trained.tokenizer().spec.text.pre_tokenizer == "gpt2"
    assert trained.tokenizer().tokenize("Hug pug") == ["Hug", "Ġpug"]
    with pytest.raises(wp.OptionError, match="bert, but gpt2 split the words of the table"):
        wp.train(words, model="bpe", word_boundary="bytes", pre_tokenizer="bert")


def test_wrong_values_are_value_errors() -> None:
    for error in (wp.OptionError, wp.InputError):
        assert issubclass(error, ValueError)
        assert issubclass(error, wp.WordpieceError)


@pytest.mark.parametrize("texts", ["one text", ["one text", "two"], ["ab", "cd"]])
def test_train_on_texts_names_count_words(texts: str | list[str]) -> None:
    with pytest.raises(wp.InputError, match=r"these are texts; pass count_words\(texts\)"):
        wp.train(texts)  # type: ignore[arg-type]


def test_save_refuses_the_name_of_a_file(tmp_path: Path, saved: Path) -> None:
    with pytest.raises(wp.OptionError, match=r"x\.json looks like a file; choose a directory"):
        wp.Tokenizer.load(saved).save(tmp_path / "x.json")
    assert not list(tmp_path.iterdir())
