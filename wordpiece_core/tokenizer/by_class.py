"""Tokenizers of directories whose class builds them by code, which the library `transformers` runs.

A directory of the Hub names a class of `transformers` in its `tokenizer_config.json`, or the type
of the model in its `config.json`. Many of these classes rebuild the tokenizer, so a
`tokenizer.json` or a `vocab.txt` alone does not determine the ids of `AutoTokenizer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wordpiece_core.errors import InputError, OptionError, TokenizerWarning, is_fault, one_line
from wordpiece_core.tokenizer.formats.json_text import Json
from wordpiece_core.tokenizer.formats.merges_files import GPT2_CLASS, ROBERTA_CLASS
from wordpiece_core.tokenizer.formats.sentencepiece_model import MODEL_NAMES
from wordpiece_core.tokenizer.formats.tekken import TEKKEN
from wordpiece_core.tokenizer.formats.tiktoken_ranks import RANK_NAMES
from wordpiece_core.tokenizer.spec import ROLE_NAMES

TAKES_FILE = {"PreTrainedTokenizer", "TokenizersBackend", "PythonBackend"}
"""Classes that use a `tokenizer.json` unchanged, without "Fast"."""
BERT = "BertTokenizer"
SAME_CLASS = {
    **dict.fromkeys(("DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer"), BERT),
    **dict.fromkeys(("ConvBertTokenizer", "SqueezeBertTokenizer", "LayoutLMTokenizer"), BERT),
    **dict.fromkeys(("bert", "distilbert", "electra", "convbert", "squeezebert", "ernie"), BERT),
    **dict.fromkeys(("megatron-bert", "layoutlm", "nezha", "nomic_bert"), BERT),
    "gpt2": GPT2_CLASS,
    **dict.fromkeys(("roberta", "bart", "longformer"), ROBERTA_CLASS),
    **dict.fromkeys(("BartTokenizer", "LongformerTokenizer"), ROBERTA_CLASS),
}
"""Other names of a class, and types of models with this class."""
FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("config.json", "chat_template.jinja", "vocab.txt", "vocab.json", "merges.txt"),
    *(*MODEL_NAMES, *RANK_NAMES, TEKKEN),
)
INSTALL = "install it with `pip install transformers`"


class TakenAsFileWarning(TokenizerWarning):
    """A `tokenizer.json` is used unchanged, although its directory names a class that may build
    another tokenizer. The arguments are its path and the class."""

    @property
    def fact(self) -> str:
        """The message."""
        path, name = self.args
        return f"{path} is read alone; the class {name} of transformers may give other ids"


def class_of(config: Json, model: Json) -> tuple[str | None, bool]:
    """Return the class or the type of model that a directory names, and True if the class is custom
    code.
    None without a class, and for a class that uses a `tokenizer.json` unchanged.
    `fix_mistral_regex` replaces the pattern of some files, so it counts as a class.

    Args:
        config: JSON of `tokenizer_config.json`.
        model: JSON of `config.json`.

    >>> class_of({"tokenizer_class": "ElectraTokenizerFast"}, {})
    ('BertTokenizer', False)
    """
    own = config.get("auto_map")
    own = own.get("AutoTokenizer") if isinstance(own, dict) else own
    if own:
        named = next(filter(None, reversed(own)), own) if isinstance(own, list) else own
        return str(named), True
    named = config.get("tokenizer_class") or model.get("tokenizer_class")
    kind = model.get("model_type") if isinstance(model.get("model_type"), str) else None
    name = named.removesuffix("Fast") if isinstance(named, str) else None
    if name is None or (name in TAKES_FILE and kind not in SAME_CLASS):
        name = kind
    if name is None or name in TAKES_FILE:
        return ("fix_mistral_regex" if config.get("fix_mistral_regex") else None), False
    if kind is not None and SAME_CLASS.get(kind, kind) != SAME_CLASS.get(name, name):
        return f"{name} of the model {kind}", False  # some models have another class
    return SAME_CLASS.get(name, name), False


def built(read: Callable[[str], bytes | None], path: str, name: str) -> tuple[str, dict[str, str]]:
    """Return the `tokenizer.json` of the tokenizer that `transformers` builds from a directory, and
    the roles of its tokens. Arguments and errors: see `load_by_transformers`.

    Raises InputError if the tokenizer is written in Python.
    """
    made = load_by_transformers(read, path, name)
    backend = getattr(made, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            f"{path}: its class {type(made).__name__} is written in Python, without a"
            " tokenizer.json; such tokenizers are not supported"
        )
    roles = {role: getattr(made, role, None) for role in ROLE_NAMES}
    text: str = backend.to_str()
    return text, {role: str(token) for role, token in roles.items() if token is not None}


def load_by_transformers(read: Callable[[str], bytes | None], path: str, name: str) -> Any:
    """Load the tokenizer of a directory with `AutoTokenizer`.

    Args:
        read: Return the bytes of a file of the directory; None if there is no such file.
        path: The path in errors.
        name: The class in errors.

    Raises OptionError if the library is not installed, and InputError if it cannot load the
    directory.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        has_file = read("tokenizer.json") is not None
        file = f", or use {path.rstrip('/')}/tokenizer.json to read that file alone"
        raise OptionError(
            f"{path}: its class {name} needs the library transformers;"
            f" {INSTALL}{file if has_file else ''}"
        ) from error
    with TemporaryDirectory() as directory:
        for file in FILES:
            data = read(file)
            if data is not None:
                Path(directory, file).write_bytes(data)
        try:
            return AutoTokenizer.from_pretrained(
                directory, local_files_only=True, trust_remote_code=False
            )
        except BaseException as error:  # errors of any library, and panics
            if not is_fault(error):
                raise
            reason = re.sub(re.escape(directory), "it", one_line(error))
            raise InputError(
                f"{path}: transformers cannot load its class {name} ({reason}); use"
                " a tokenizer.json"
            ) from error
