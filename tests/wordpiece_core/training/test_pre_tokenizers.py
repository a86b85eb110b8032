"""Words of named pre-tokenizers and normalizers equal the words of `tokenizers`, in counting and in
trained tokenizers."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tokenizers
from tokenizers import normalizers, pre_tokenizers

import pipelines
import wordpiece_core as wp
from wordpiece_core import _kernel
from wordpiece_core.text_parts import NORMALIZERS, PRE_TOKENIZERS

from ...quick import parametrize

PARTS = (
    *("the ", "Word", "don't", "'LL", "camelCase", "WORD", "12", "3456", "½", "é", "e\u0301", "ß"),
    *(" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "!", "...", "/", "-", "_x", "$5", "(a)"),
    *("你好", "世", "カナ", "ひら", "ʰ", "ǅ", "\u0308", "👍🏽", "ﬁ", "Ｈ", "ſ", "\u2028", "İ"),
    "क्ष",
)
REGEX = r"\p{L}+|\s+|[^\p{L}\s]+"
COMBINED = (("digits", "gpt2"), ("whitespace", "digits"), ("bert", r"\d{2}"), REGEX, r"[\s\S]{1,5}")
SINGLE = [name for name in PRE_TOKENIZERS if name != "none"]


def texts(seed: str, count: int = 400) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(PARTS, k=rng.randrange(25))) for _ in range(count)]


def part(kind: Any, json_text: str | None) -> Any:
    """A part of `tokenizers`, of its JSON."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    value = json.loads(made.to_str())
    value[kind] = None if json_text is None else json.loads(json_text)
    return getattr(tokenizers.Tokenizer.from_str(json.dumps(value)), kind)


def counted(text: wp.TextOptions, rows: list[str]) -> Counter[str]:
    counter = _kernel.WordCounter(text.for_kernel())
    counter.count(pa.array(rows))
    ((_, _, _, words),) = counter.take(1)
    table = pa.table(words)
    return Counter(dict(zip(*(table[name].to_pylist() for name in ("word", "count")), strict=True)))


@pytest.mark.parametrize("names", [*SINGLE, *COMBINED], ids=str)
@pytest.mark.parametrize("normalizer", [(), ("nfkc", "lowercase"), ("nfd", "strip_accents")])
def test_counted_words_match_tokenizers(names: Any, normalizer: tuple[str, ...]) -> None:
    text = wp.TextOptions(pre_tokenizer=names, normalizer=normalizer)
    normalized, split = (part(kind, one) for kind, one in zip(KINDS, text.composed, strict=True))
    rows = texts(str(names))
    expected: Counter[str] = Counter()
    for row in rows:
        row = normalized.normalize_str(row) if normalized else row
        expected.update(word for word, _ in split.pre_tokenize_str(row))
    assert counted(text, rows) == expected


KINDS = ("normalizer", "pre_tokenizer")


@pytest.mark.parametrize("name", NORMALIZERS)
def test_each_normalizer_has_its_name_of_tokenizers(name: str) -> None:
    (made, _) = wp.TextOptions(pre_tokenizer="llama3", normalizer=[name]).composed
    kind = {"lowercase": "Lowercase", "strip_accents": "StripAccents"}.get(name, name.upper())
    assert isinstance(part("normalizer", made), getattr(normalizers, kind))


def test_a_text_that_is_not_split_is_counted_in_segments() -> None:
    text = wp.TextOptions(pre_tokenizer="none")
    rows = ["ACGT" * 60, "AC\nGT", ""]
    assert counted(text, rows) == Counter(["ACGT" * 25, "ACGT" * 25, "ACGT" * 10, "AC\nGT"])


CORPUS = [" ".join(texts(str(seed), 3)) for seed in range(300)]
OF_BYTES = {"model": "bpe", "word_boundary": "bytes", "vocab_size": 500}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("corpus") / "texts.jsonl"
    place.write_text("".join(json.dumps({"text": text}) + "\n" for text in CORPUS))
    return str(place)


@parametrize(
    "options",
    [
        *({**OF_BYTES, "pre_tokenizer": name} for name in (*SINGLE[2:], "none", *COMBINED[:1])),
        {**OF_BYTES, "pre_tokenizer": REGEX, "normalizer": ["nfc"]},
        {"pre_tokenizer": ["whitespace", "digits"], "normalizer": ["nfkc"], "vocab_size": 400},
        {
            "model": "bpe",
            "pre_tokenizer": ["bert", "digits"],
            "lowercase": False,
            "vocab_size": 400,
        },
    ],
    quick=3,
    ids=str,
)
def test_a_trained_tokenizer_has_the_same_ids_in_tokenizers(
    options: dict[str, Any], corpus: str, tmp_path: Path
) -> None:
    trained = pipelines.train(corpus, output=tmp_path / "t", quiet=True, **options)
    ours = trained.tokenizer
    again = wp.Tokenizer.load(tmp_path / "t")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "t" / "tokenizer.json"))
    rows = [*CORPUS[:50], *texts("more"), "a<|endoftext|>b [MASK] c"]
    adds = ours.adds_special_tokens
    expected = [encoding.ids for encoding in theirs.encode_batch(rows)]
    assert ours.encode_batch(rows, add_special_tokens=adds).to_pylist() == expected
    assert again.encode_batch(rows, add_special_tokens=adds).to_pylist() == expected
    assert (again.spec.library, again.digest) == (None, ours.digest)
    assert [ours.decode(ids) for ids in expected] == [theirs.decode(ids) for ids in expected]


def test_the_words_of_a_table_train_the_same(corpus: str, tmp_path: Path) -> None:
    options = {**OF_BYTES, "vocab_size": 400}
    pipelines.count(corpus, output=tmp_path / "words", pre_tokenizer="llama3", quiet=True)
    of_words = pipelines.train(
        word_counts=tmp_path / "words", output=tmp_path / "a", quiet=True, **options
    )
    options["pre_tokenizer"] = "llama3"
    of_text = pipelines.train(corpus, output=tmp_path / "b", quiet=True, **options)
    assert of_words.tokenizer.digest == of_text.tokenizer.digest


def test_special_tokens_have_the_roles_that_are_given(corpus: str, tmp_path: Path) -> None:
    options = {**OF_BYTES, "pre_tokenizer": "llama3"}
    plain = pipelines.train(corpus, output=tmp_path / "plain", quiet=True, **options)
    assert plain.tokenizer.special_tokens == ["<|endoftext|>"]
    tokens = ["<s>", "</s>", "<pad>"]
    roles = {"eos_token": "</s>", "pad_token": "<pad>"}
    made = pipelines.train(
        corpus,
        output=tmp_path / "roles",
        special_tokens=tokens,
        model_max_length=4096,
        quiet=True,
        **roles,
        **options,
    )
    assert made.tokenizer.spec.roles == roles
    config = json.loads((tmp_path / "roles" / "tokenizer_config.json").read_text())
    assert {name: config[name] for name in config if name.endswith("_token")} == roles
    assert config["model_max_length"] == 4096
    assert config["model_input_names"] == ["input_ids", "attention_mask"]
    unknown = pipelines.train(
        *(corpus,),
        output=tmp_path / "unknown",
        special_tokens=["<unk>"],
        unk_token="<unk>",
        limit_alphabet=20,
        model="bpe",
        vocab_size=100,
        quiet=True,
    )
    again = wp.Tokenizer.load(tmp_path / "unknown")
    assert again.tokenize("\U0010ffff") == unknown.tokenizer.tokenize("\U0010ffff") == ["<unk>"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pre_tokenizer": "lama3"}, "pre_tokenizer: 'lama3' is not one of bert, whitespace, none"),
        ({"pre_tokenizer": []}, r"pre_tokenizer: \[\] is not a pre-tokenizer, or a list of them"),
        ({"pre_tokenizer": "(a"}, 'pre_tokenizer: the regular expression "\\(a"'),
        (
            {"pre_tokenizer": "llama3"},
            "words of llama3 hold spaces, and work only with `model` bpe and",
        ),
        ({"pre_tokenizer": "llama3", "lowercase": True}, "set `normalizer` lowercase"),
        ({"model": "unigram", "normalizer": "nfc"}, "only bert and whitespace are supported"),
        ({**OF_BYTES, "eos_token": "</s>"}, "eos_token: '</s>' is not in `special_tokens`"),
        ({"special_tokens": ["<s>"]}, r"special_tokens: \['<s>'\] has no \[UNK\]; add it"),
        ({"normalizer": "nfe"}, "normalizer: 'nfe' is not one of nfc, nfd, nfkc"),
    ],
)
def test_mismatched_options_are_one_line(
    options: dict[str, Any], message: str, corpus: str, tmp_path: Path
) -> None:
    with pytest.raises(wp.OptionError, match=message):
        pipelines.train(corpus, output=tmp_path / "t", quiet=True, **options)


def test_pre_tokenizers_are_shown_by_tokenizers_as_they_are_written() -> None:
    written = wp.TextOptions(pre_tokenizer="deepseek").composed[1]
    assert isinstance(part("pre_tokenizer", written), pre_tokenizers.Sequence)
