"""Tokenizers that others have written: read to the same ids, or refused."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertTokenizer

import wordpiece_core as wp

from ...parity.random_cases import assert_same

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = [*SPECIAL, "a", "b", "A", "<", "ent", ">", "<ent>", "<s>", "##b", "é"]
TEXTS = ["a ab A<ent>é b", "a[SEP]b [MASK]", "<s>x", "É"]
PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
CLS, SEP, A, B = (
    {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
    {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}},
    {"Sequence": {"id": "B", "type_id": 0}},
)

Change = Callable[[dict[str, Any]], Any]


def added(token: str, **more: Any) -> dict[str, Any]:
    return {"id": VOCAB.index(token), "content": token, **PLAIN, "special": True, **more}


def written(token: str) -> dict[str, Any]:
    return {"__type": "AddedToken", "content": token, **PLAIN, "special": True}


def changed(tmp_path: Path, change: Change) -> Path:
    """A tokenizer.json that has been changed."""
    wp.Tokenizer(VOCAB).save(tmp_path)
    path = tmp_path / "tokenizer.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
    return path


def check_refused_or_of_library(place: Path, path: Path, reason: str) -> None:
    """A tokenizer that is not known here is refused with the reason if `tokenizers` cannot read it
    either; else that library encodes with it, and a warning has the reason."""
    try:
        peer = Tokenizer.from_file(str(path))
    except BaseException:  # also a panic
        with pytest.raises(wp.InputError) as raised:
            wp.Tokenizer.load(place)
        message = str(raised.value)
    else:
        peer.no_truncation()
        peer.no_padding()
        with pytest.warns(wp.EncodedByLibraryWarning) as caught:
            mine = wp.Tokenizer.load(place)
        message = str(caught[0].message)
        assert mine.spec.library is not None
        for text in ("", "Hugging  the café! [CLS] <s> a", "日本 ab\n x"):
            try:
                theirs = peer.encode(text).ids
            except Exception:
                with pytest.raises(wp.InputError, match=r"^text 0: the library"):
                    mine.encode_batch([text])
            else:
                assert mine.encode_batch([text]).to_pylist() == [theirs]
        reason = reason.partition(";")[0]
    assert message.startswith(str(path))
    assert reason in message
    assert "\n" not in message


BERT_PROCESSING = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}


@pytest.mark.parametrize(
    "change",
    [
        lambda j: None,
        lambda j: j.update(post_processor=BERT_PROCESSING),
        lambda j: j["added_tokens"].append(added("<ent>")),
        lambda j: j["added_tokens"].reverse(),
        lambda j: j["normalizer"].update(lowercase=False),
        lambda j: j["normalizer"].update(lowercase=False, strip_accents=True),
        lambda j: j["model"].update(max_input_chars_per_word=1),
        lambda j: j["model"].update(continuing_subword_prefix="#"),
        lambda j: j["model"].pop("type"),  # as in bert-base-uncased's
        lambda j: j["post_processor"]["single"].insert(1, SEP),
        lambda j: j["post_processor"]["single"].pop(),
        lambda j: j["post_processor"].update(pair=[CLS, A, SEP, B, SEP]),
        lambda j: j.update(post_processor=None),
        lambda j: j.update(added_tokens=[]),
        lambda j: j["added_tokens"].pop(),
        lambda j: j.pop("added_tokens"),
        lambda j: j["added_tokens"].append(added("<s>", special=False)),
        lambda j: j["added_tokens"].append(added("<s>", lstrip=True)),
        lambda j: j["added_tokens"].append(added("<s>", id=1)),
        lambda j: j["model"].update(unk_token="<s>"),
        lambda j: j.update(post_processor=BERT_PROCESSING | {"cls": ["[SEP]", 3]}),
    ],
)
def test_changed_files_have_the_ids_of_tokenizers(tmp_path: Path, change: Change) -> None:
    assert_same(json.loads(changed(tmp_path, change).read_text()), TEXTS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda j: j["post_processor"]["special_tokens"]["[SEP]"].update(ids=[4]), "post_pro"),
        (
            lambda j: j.update(post_processor="x"),
            "post_processor is 'x', not an object with a type",
        ),
        (lambda j: j.update(added_tokens=None), "added_tokens is None, not a list"),
        (lambda j: j["added_tokens"].append("[CLS]"), "'[CLS]' is not an added token"),
        (lambda j: j.update(normalizer="x"), "normalizer is 'x', not an object"),
        (lambda j: j["normalizer"].update(lowercase="no"), "lowercase: 'no' is not True or False"),
        (lambda j: j.update(pre_tokenizer={"type": "UnicodeScripts"}), "unknown type `Un"),
        (lambda j: j["model"].update(vocab=VOCAB), "not an object"),
        (lambda j: j["model"]["vocab"].update(a=0.5), "the ids of the vocabulary are not 0 to 14"),
        (lambda j: j["model"]["vocab"].update(a=99), "the ids of the vocabulary are not 0 to 14"),
        (lambda j: j["model"].update(vocab={"a": 0}), "post_processor (Template"),
        (lambda j: j["model"].update(max_input_chars_per_word="9"), "is '9', not a whole number"),
        (lambda j: j["model"].update(max_input_chars_per_word=-1), "is -1, not 1 or more"),
        (lambda j: j["model"].update(continuing_subword_prefix=None), "is None, not a string"),
    ],
)
def test_unknown_parts_are_refused_or_left_to_the_library(
    tmp_path: Path, change: Change, reason: str
) -> None:
    path = changed(tmp_path, change)
    for name in ("vocab.txt", "tokenizer_config.json", "special_tokens_map.json"):
        (tmp_path / name).unlink()
    for place in (path, tmp_path):
        check_refused_or_of_library(place, path, reason)


def with_file(tmp_path: Path, name: str, value: object, *, whole: bool) -> Path:
    """A directory with a vocab.txt, another file, and a tokenizer.json if it is `whole`."""
    wp.Tokenizer(VOCAB).save(tmp_path)
    for other in ("tokenizer_config.json", "special_tokens_map.json"):
        (tmp_path / other).unlink()
    if not whole:
        (tmp_path / "tokenizer.json").unlink()
    (tmp_path / name).write_text(json.dumps(value))
    return tmp_path


def check_read_or_refused(directory: Path, name: str, reason: str | None, **options: bool) -> None:
    """The file is refused with the reason, or changes nothing."""
    if reason is None:
        assert wp.Tokenizer.load(directory, **options).digest == wp.Tokenizer(VOCAB).digest
        return
    with pytest.raises(wp.InputError) as raised:
        wp.Tokenizer.load(directory, **options)
    assert str(raised.value).startswith(f"{directory / name}: ")
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("tokenizer_config.json", {"cls_token": "<s>"}, "cls_token is '<s>'; only [CLS]"),
        ("special_tokens_map.json", {"unk_token": "<s>"}, "unk_token is '<s>'; only [UNK]"),
        ("tokenizer_config.json", {"additional_special_tokens": ["<new>"]}, "is not in the voc"),
        ("tokenizer_config.json", {"additional_special_tokens": 3}, "is 3, not a list"),
        ("tokenizer_config.json", {"added_tokens_decoder": []}, None),
        (
            "tokenizer_config.json",
            {"split_special_tokens": True},
            "split_special_tokens is set; remove it",
        ),
        ("tokenizer_config.json", {"do_lower_case": "false"}, "do_lower_case is 'false', not tru"),
        ("tokenizer_config.json", {"do_lower_case": None}, "do_lower_case is None, not true or"),
        ("tokenizer_config.json", {"eos_token": "<new>"}, "special token '<new>' is not in the v"),
        ("added_tokens.json", {"<ent>": 11}, "added token '<ent>' is not special"),
        ("added_tokens.json", {"[PAD]": 0}, None),
        ("special_tokens_map.json", {"cls_token": "[CLS]", "bos_token": None}, None),
    ],
)
def test_files_next_to_the_vocabulary_are_used(
    tmp_path: Path, name: str, value: object, reason: str | None
) -> None:
    directory = with_file(tmp_path, name, value, whole=False)
    check_read_or_refused(directory, name, reason, lowercase=True)


@pytest.mark.parametrize(
    "config",
    [
        {"additional_special_tokens": ["<ent>"]},
        {"extra_special_tokens": ["<ent>"]},
        {"bos_token": "<ent>", "eos_token": "[SEP]"},
        {"additional_special_tokens": [written("<ent>")]},
        {"do_lower_case": False},
        {"strip_accents": False},
        {"tokenize_chinese_chars": False, "cls_token": written("[CLS]")},
    ],
)
def test_a_config_beside_a_vocab_txt_is_taken_as_transformers_takes_it(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    value = {"tokenizer_class": "BertTokenizer", **config}
    directory = with_file(tmp_path, "tokenizer_config.json", value, whole=False)
    theirs = AutoTokenizer.from_pretrained(directory)
    mine = wp.Tokenizer.load(directory)
    assert mine.encode_batch(TEXTS).to_pylist() == theirs(TEXTS)["input_ids"]
    mine.save(tmp_path / "again")
    assert wp.Tokenizer.load(tmp_path / "again").digest == mine.digest


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("tokenizer_config.json", {"cls_token": "<s>"}),
        ("tokenizer_config.json", {"additional_special_tokens": ["<ent>", "<new>"]}),
        ("tokenizer_config.json", {"eos_token": "<new>", "image_token": "<ent>"}),
        ("tokenizer_config.json", {"model_specific_special_tokens": {"think_token": "<ent>"}}),
        ("tokenizer_config.json", {"do_lower_case": False}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"11": {"content": "<ent>"}}}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"4": added("[MASK]", lstrip=True)}}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"0": added("b", single_word=True)}}),
        ("special_tokens_map.json", {"unk_token": "<s>", "cls_token": "[CLS]"}),
        ("special_tokens_map.json", {"mask_token": {"content": "[MASK]", "normalized": True}}),
        ("added_tokens.json", {"<ent>": 11, "[PAD]": 0, "<new>": 99}),
    ],
)
def test_configs_next_to_a_tokenizer_json_add_tokens_as_in_transformers(
    tmp_path: Path, name: str, config: dict[str, Any]
) -> None:
    config = {
        n: {i: {k: v for k, v in t.items() if k != "id"} for i, t in tokens.items()}
        if n == "added_tokens_decoder"
        else tokens
        for n, tokens in config.items()
    }
    config |= {"tokenizer_class": "PreTrainedTokenizerFast"} if "config" in name else {}
    directory = with_file(tmp_path, name, config, whole=True)
    texts = [*TEXTS, "a <new> [MASK] b<ent>", "b ab"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wp.EncodedByLibraryWarning)
        mine = wp.Tokenizer.load(directory)
    assert mine(texts)["input_ids"] == AutoTokenizer.from_pretrained(directory)(texts)["input_ids"]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            {"do_lower_case": False},
            "contradicts tokenizer.json in how text is handled; fix one of them",
        ),
        ({"added_tokens_decoder": []}, "added_tokens_decoder is [], not an object"),
        ({"extra_special_tokens": 3}, "extra_special_tokens is 3, not a list"),
        ({"extra_special_tokens": [3]}, "3 is not a special token"),
        ({"added_tokens_decoder": {"x": {}}}, "a key of added_tokens_decoder is not a number"),
        ({"added_tokens_decoder": {"1": added("a", lstrip=1)}}, "lstrip of 'a' is 1, not true or"),
        ({"do_lower_case": True, "strip_accents": True}, None),
        ({"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"}, None),
        ({"mask_token": {"content": "[MASK]", "normalized": True}}, None),
    ],
)
def test_configs_that_transformers_cannot_read_are_refused(
    tmp_path: Path, config: dict[str, Any], reason: str | None
) -> None:
    directory = with_file(tmp_path, "tokenizer_config.json", config, whole=True)
    check_read_or_refused(directory, "tokenizer_config.json", reason)


def test_a_special_token_searched_for_in_another_way_is_refused(tmp_path: Path) -> None:
    config = {"mask_token": {"content": "[MASK]", "lstrip": True}}
    directory = with_file(tmp_path, "tokenizer_config.json", config, whole=False)
    with pytest.raises(wp.InputError, match=r"added token '\[MASK\]' is lstrip; only special"):
        wp.Tokenizer.load(directory)


def test_a_directory_as_the_hub_has_them_is_read(tmp_path: Path) -> None:
    decoder = {str(i): {**written(token)} for i, token in enumerate(SPECIAL)}
    roles = {"cls_token": "[CLS]", "mask_token": "[MASK]", "pad_token": "[PAD]"}
    config = {
        "added_tokens_decoder": decoder,
        "clean_up_tokenization_spaces": True,
        "do_basic_tokenize": True,
        "do_lower_case": True,
        "extra_special_tokens": {},
        "max_length": 128,
        "model_max_length": 512,
        "never_split": None,
        "pad_to_multiple_of": None,
        "padding_side": "right",
        "stride": 0,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "tokenizer_class": "BertTokenizer",
        "truncation_side": "right",
        **roles,
    }
    for whole in (False, True):
        directory = with_file(tmp_path / str(whole), "tokenizer_config.json", config, whole=whole)
        (directory / "special_tokens_map.json").write_text(json.dumps(roles))
        assert wp.Tokenizer.load(directory).digest == wp.Tokenizer(VOCAB).digest


def test_the_empty_token_is_no_special_one() -> None:
    tokenizer = wp.Tokenizer([*SPECIAL, "a", "b", ""], more_special_tokens=[""])
    assert tokenizer.tokenize("a b") == ["a", "b"]


# --- A vocab.txt that does not say how text is handled --------------------------------------------


def bare(tmp_path: Path, *tokens: str) -> Path:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in [*SPECIAL, *tokens]))
    return path


def test_a_vocabulary_with_capital_letters_is_taken_as_cased_with_a_warning(
    tmp_path: Path,
) -> None:
    letters = [*"BÉRTbérteu", *(f"##{c}" for c in "BÉRTbérteu"), "Bert", "##RT", "été", "Été"]
    path = bare(tmp_path, *letters)
    texts = ["Bert BERT bert", "Été été ete ÉTÉ", "[SEP] Tür"]
    theirs = BertTokenizer(str(path), do_lower_case=False)
    for place in (path, tmp_path):
        with pytest.warns(wp.TakenAsCasedWarning, match="has capital letters: taken as cased"):
            mine = wp.Tokenizer.load(place)
        assert mine.encode_batch(texts).to_pylist() == theirs(texts)["input_ids"]
        assert mine.digest == wp.Tokenizer.load(place, lowercase=False).digest
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            uncased = wp.Tokenizer.load(place, lowercase=True)
        assert uncased.digest == wp.Tokenizer(mine.vocab).digest
    mine.save(tmp_path / "saved")  # which says how text is handled
    assert wp.Tokenizer.load(tmp_path / "saved").digest == mine.digest


@pytest.mark.parametrize(
    "token", ["[unused1]", "[ENTITY]", "<S>", "東京", "ß", "ſ", "ʼn", "##é", "ǰ"]
)
@pytest.mark.filterwarnings("error")
def test_tokens_of_lowercased_text_do_not_make_a_vocabulary_cased(
    tmp_path: Path, token: str
) -> None:
    tokenizer = wp.Tokenizer.load(bare(tmp_path, "a", token))
    assert tokenizer.spec.text == wp.TextOptions().resolve()


@pytest.mark.parametrize("token", ["A", "##A", "aB", "Ä", "ẞ", "Я", "İ", "ǅ", "A]", "COVID-19"])
def test_one_letter_is_enough(tmp_path: Path, token: str) -> None:
    with pytest.warns(wp.TakenAsCasedWarning):
        tokenizer = wp.Tokenizer.load(bare(tmp_path, "a", token))
    assert tokenizer.spec.text.for_kernel() == wp.TextOptions(lowercase=False).for_kernel()


# --- Values of wrong types ------------------------------------------------------------------------

WRONG = (None, True, -1, 1.5, 2**70, float("nan"), "x", "\ud800", [], [1], [[None]], {}, {"": 1})
BESIDE: dict[str, Any] = {
    "tokenizer_config.json": {
        "added_tokens_decoder": {"0": written("[PAD]")},
        "additional_special_tokens": ["[PAD]"],
        "extra_special_tokens": {"pad": "[PAD]"},
        "bos_token": "[CLS]",
        "eos_token": written("[SEP]"),
        "unk_token": "[UNK]",
        "do_lower_case": True,
        "strip_accents": None,
        "split_special_tokens": False,
        "tokenizer_class": "BertTokenizer",
    },
    "special_tokens_map.json": {"cls_token": "[CLS]", "unk_token": {"content": "[UNK]"}},
    "added_tokens.json": {"[PAD]": 0},
}


def wrongly_typed(value: Any) -> Iterator[Any]:
    """The value with each part of it, and itself, replaced by each wrong value."""
    yield from WRONG
    parts = value.items() if isinstance(value, dict) else ()
    parts = enumerate(value) if isinstance(value, list) else parts
    for place, part in parts:
        for wrong in wrongly_typed(part):
            copy = value.copy()
            copy[place] = wrong
            yield copy


@pytest.mark.filterwarnings("ignore::wordpiece_core.EncodedByLibraryWarning")
@pytest.mark.parametrize("name", ["tokenizer.json", *BESIDE])
def test_a_wrong_type_anywhere_is_an_input_error_or_does_no_harm(tmp_path: Path, name: str) -> None:
    wp.Tokenizer([*SPECIAL, "a", "##b"]).save(tmp_path)
    path = tmp_path / name
    if name in BESIDE:
        (tmp_path / "tokenizer.json").unlink()
    faults = []
    for value in wrongly_typed(BESIDE.get(name) or json.loads(path.read_text())):
        path.write_text(json.dumps(value))
        try:
            wp.Tokenizer.load(tmp_path).encode_batch(["a ab"])
        except wp.InputError as error:
            faults.append(str(error))
    assert len(faults) > 5
    places = (f"{path}: ", f"{tmp_path}: ")  # a class is one of the directory
    assert [f for f in faults if not (f.startswith(places) and f.isascii())] == []


@pytest.mark.parametrize("depth", [40, 700, 50_000])
def test_a_file_too_deep_is_an_input_error(tmp_path: Path, depth: int) -> None:
    wp.Tokenizer(VOCAB).save(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = tmp_path / name
        text = path.read_text()
        path.write_text(f'{{"x": {"[" * depth}{"]" * depth}, {text[1:]}')
        with pytest.raises(wp.InputError, match="more than 32 lists and objects inside each oth"):
            wp.Tokenizer.load(path if name == "tokenizer.json" else tmp_path)
        path.write_text(text)


def test_an_unknown_type_is_named(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda j: j["pre_tokenizer"].update(type=[1]))
    with pytest.raises(wp.InputError, match="not an object with a type; and the library"):
        wp.Tokenizer.load(path)
