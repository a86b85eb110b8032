"""Read tokenizers of other programs: a `vocab.txt`, a `tokenizer.json`, other files, a directory,
or a name on the Hub.

The library `tokenizers` encodes a `tokenizer.json` with an unsupported part (`library`). Other
tokenizers are refused if their ids could differ from `tokenizers` or `transformers`: files with
another model, and files that contradict each other.
"""

from __future__ import annotations

import json
import re
import warnings
from contextlib import suppress

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError, TokenizerWarning, one_line, opt
from wordpiece_core.options import TextOptions
from wordpiece_core.symbols import ROLES, SPECIAL_TOKENS
from wordpiece_core.tokenizer.by_class import BERT, TakenAsFileWarning, built, class_of
from wordpiece_core.tokenizer.families import bert_spec
from wordpiece_core.tokenizer.formats.configs import (
    CHAT_TEMPLATE,
    check_text,
    with_config,
    with_roles,
    with_unchanged,
)
from wordpiece_core.tokenizer.formats.configured_tokens import (
    ADDED,
    CONFIG,
    MAP,
    role_tokens,
    token_content,
    with_configured_tokens,
)
from wordpiece_core.tokenizer.formats.json_text import Json, parse
from wordpiece_core.tokenizer.formats.merges_files import (
    CLASS_ROLES,
    GPT2_CLASS,
    MERGES,
    ROBERTA_CLASS,
    VOCAB,
    of_merges_files,
    parse_merges,
)
from wordpiece_core.tokenizer.formats.sentencepiece_model import MODEL_NAMES, read_model
from wordpiece_core.tokenizer.formats.tekken import TEKKEN, is_tekken, read_tekken
from wordpiece_core.tokenizer.formats.tiktoken_ranks import (
    RANK_NAMES,
    is_ranks,
    read_ranks,
)
from wordpiece_core.tokenizer.formats.tokenizer_json_reading import from_tokenizer_json
from wordpiece_core.tokenizer.hub_names import local_place
from wordpiece_core.tokenizer.library import EncodedByLibraryWarning, library_spec
from wordpiece_core.tokenizer.models import BERT_ENDS, AddedToken, WordPiece
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.vocabulary import decoded, parse_vocabulary, read_bytes, read_text
from wordpiece_core.uri import split_query

TOKENIZER = "tokenizer.json"


class TakenAsCasedWarning(TokenizerWarning):
    """A vocabulary without information about text has capital letters in its tokens, so it is taken
    as cased. The argument is its path."""

    @property
    def fact(self) -> str:
        """The message without advice."""
        return f"{self.args[0]} has capital letters: taken as cased"

    def __str__(self) -> str:
        return f"{self.fact} (override with lowercase=True)"


def read_tokenizer(
    path: str, lowercase: bool | None = None, encoding: str | None = None
) -> TokenizerSpec:
    """Read a tokenizer directory, a `tokenizer.json`, a `vocab.txt`, a model of sentencepiece
    (`.model`), ranks of tiktoken (`cl100k_base.tiktoken`), a `tekken.json`, or a name on the Hub
    (`openai-community/gpt2`).

    The options of a directory are in its `tokenizer.json`, else in its `tokenizer_config.json`.
    Without either they are BERT's, and text is lowercased, unless a token has a capital letter,
    which lowercased text could never match. Then a TakenAsCasedWarning is issued, unless
    `lowercase` is given. `truncation` and `padding` of a `tokenizer.json` are ignored, and rows are
    padded and truncated on the right. `encoding`: encoding of a file of ranks, if its name does not
    say it.

    Raises InputError, OptionError for an `encoding` that is unknown or unnecessary, and
    StorageError for a store that cannot be reached.
    """
    place = local_place(path)
    if place == path:
        return _read(path, lowercase, encoding)
    try:
        return _read(place, lowercase, encoding)
    except InputError as error:  # its message names files of the cache
        raise InputError(f"{path}: {one_line(error)}") from error


def _read(path: str, lowercase: bool | None, encoding: str | None) -> TokenizerSpec:
    name = split_query(path)[0].rpartition("/")[2]
    data = read_bytes(path)
    if data is not None and name in (VOCAB, MERGES):
        base, query = split_query(path)
        return _from_directory(f"{base.removesuffix(name) or '.'}{query}", lowercase)
    if data is not None and is_ranks(data):
        return read_ranks(data, encoding or name, path)
    if encoding is not None:
        return _of_ranks(_Directory(path), encoding)
    if data is None:
        return _from_directory(path, lowercase)
    if name.endswith(".model"):
        return read_model(data, path)
    text = decoded(data, path)
    if not name.endswith(".json"):
        return _bare(parse_vocabulary(text, path), path, lowercase)
    value = parse(text, path)
    if is_tekken(value):
        return read_tekken(value, path)
    return _of_tokenizer_json(value, text, path)


def _of_tokenizer_json(value: Json, text: str, path: str) -> TokenizerSpec:
    """Return the tokenizer of a `tokenizer.json`. The library `tokenizers` encodes unsupported
    parts, with an EncodedByLibraryWarning."""
    if value.get("version") == "2.0":
        raise InputError(
            f"{path}: version 2.0, which tokenizers 1.0 writes, is not supported; use the"
            " tokenizer.json of version 1.0 that it was converted from"
        )
    try:
        return from_tokenizer_json(value, path)
    except InputError as refusal:
        spec = library_spec(value, text, path, refusal)
        part = str(refusal).removeprefix(f"{path}: ").partition("; ")[0]
    warnings.warn(EncodedByLibraryWarning(path, part), stacklevel=4)
    return spec


def _bare(vocab: list[str], path: str, lowercase: bool | None) -> TokenizerSpec:
    """Return the tokenizer of a vocabulary without information about text."""
    if lowercase is not None or not any(map(_has_capitals, vocab)):
        return bert_spec(vocab)
    warnings.warn(TakenAsCasedWarning(path), stacklevel=4)
    return bert_spec(vocab, TextOptions(lowercase=False))


def _has_capitals(token: str) -> bool:
    """Return True for a token that lowercased text can never match. Tokens in brackets do not
    count."""
    return _kernel.lowercase(token) != token and not re.fullmatch(r"\[.*\]|<.*>", token)


class _Directory:
    """Files of a directory. Each is read once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._texts: dict[str, str | None] = {}
        self.config = self.json(CONFIG) or {}
        self.name, self.has_code = class_of(self.config, self.json("config.json") or {})

    @property
    def configs(self) -> dict[str, Json | None]:
        """The config files that name tokens."""
        return {name: self.json(name) for name in (CONFIG, MAP, ADDED)}

    def place(self, name: str) -> str:
        """Return the path of a file."""
        directory, query = split_query(self.path)
        return f"{directory.rstrip('/')}/{name}{query}"

    def text(self, name: str) -> str | None:
        """Return the text of a file; None if there is no such file."""
        if name not in self._texts:
            self._texts[name] = read_text(self.place(name))
        return self._texts[name]

    def json(self, name: str) -> Json | None:
        """Return the content of a JSON file; None if there is no such file."""
        text = self.text(name)
        return None if text is None else parse(text, self.place(name))


def _from_directory(path: str, lowercase: bool | None) -> TokenizerSpec:
    """Return the tokenizer that `AutoTokenizer` loads. Known classes, and a `tokenizer.json`
    without a class, are read natively. `transformers` builds all others."""
    directory = _Directory(path)
    if directory.name is None and not directory.has_code:
        return _configured(_of_files(directory, lowercase), directory)
    if _may_be_native(directory):
        spec = _of_files(directory, lowercase)
        with suppress(InputError):  # about the config, which the class can read
            spec = _configured(spec, directory) if spec is not None else None
            if spec is not None and (directory.name != BERT or _is_bert(spec, directory)):
                return spec
    return _of_class(directory)


def _may_be_native(directory: _Directory) -> bool:
    """Return True if the class of a directory is known. The classes of GPT-2 and RoBERTa rebuild
    the tokenizer, with other parts than a `tokenizer.json` may have."""
    if directory.has_code or directory.name not in (BERT, GPT2_CLASS, ROBERTA_CLASS):
        return False
    config, has_file = directory.config, directory.text(TOKENIZER) is not None
    return directory.name == BERT or not (
        has_file or config.get("add_bos_token") or config.get("add_eos_token")
    )


def _of_class(directory: _Directory) -> TokenizerSpec:
    """Return the tokenizer that the class of a directory builds. Custom code is not run: its
    `tokenizer.json` is used, with a TakenAsFileWarning.

    Raises OptionError if `transformers` is not installed, because ids may differ without it.
    """
    name, whole = directory.name or "", directory.place(TOKENIZER)
    if not directory.has_code:
        text, roles = built(lambda file: read_bytes(directory.place(file)), directory.path, name)
        spec = _of_tokenizer_json(parse(text, whole), text, whole)
        spec = with_unchanged(spec, directory.config, directory.text(CHAT_TEMPLATE))
        return with_roles(spec, directory.config | roles, directory.place(CONFIG))
    if directory.text(TOKENIZER) is None:
        raise InputError(
            f"{directory.path}: its class {name} is custom code, which is not run; give"
            f" {opt.encoding} if it contains tiktoken ranks, or use a tokenizer.json"
        )
    warnings.warn(TakenAsFileWarning(whole, name), stacklevel=4)
    return _configured(_of_files(directory, None), directory)


def _is_bert(spec: TokenizerSpec, directory: _Directory) -> bool:
    """Return True if BertTokenizer, which rebuilds itself from the vocabulary and adds the tokens
    in the configs, gives the ids of the specification."""
    config, value = directory.config, directory.json(TOKENIZER)
    said = {name: token for name, token in role_tokens(directory.configs).items() if token}
    for name in ("unk_token", "cls_token", "sep_token"):  # which the class adds to texts
        if token_content(said.get(name, ROLES[name]), directory.path) != ROLES[name]:
            return False
    if not {*SPECIAL_TOKENS} <= {*spec.vocab}:
        return False
    if value is not None and "added_tokens_decoder" in config:
        configs = directory.configs | {CONFIG: ROLES | config}
        made = with_configured_tokens({**value, "added_tokens": []}, configs, directory.path)
        if not {*spec.special_tokens} <= {token["content"] for token in made["added_tokens"]}:
            return False
    text = TextOptions(
        lowercase=bool(config.get("do_lower_case", True)),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
    )
    is_same_text = spec.words.is_by_options and text.for_kernel() == spec.text.for_kernel()
    has_ends = spec.post_processor is not None and spec.post_processor.single == BERT_ENDS.single
    is_plain = all(token == AddedToken(token.content) for token in spec.added_tokens)
    return spec.model == WordPiece() and is_same_text and has_ends and is_plain


def _of_files(directory: _Directory, lowercase: bool | None) -> TokenizerSpec | None:
    """Return the tokenizer of the files of a directory, without its configs."""
    text, value = directory.text(TOKENIZER), directory.json(TOKENIZER)
    spec = _of_vocab_txt(directory, lowercase)
    if text is not None and value is not None:
        configured = with_configured_tokens(value, directory.configs, directory.path)
        if configured != value:
            value, text = configured, json.dumps(configured, ensure_ascii=False)
        made = _of_tokenizer_json(value, text, directory.place(TOKENIZER))
        _check_vocabularies(made, directory, spec)
        return made
    return spec or _of_merges(directory) or _of_model(directory)


def _configured(spec: TokenizerSpec | None, directory: _Directory) -> TokenizerSpec:
    """Return the tokenizer with the configs of its directory. Raises InputError without a
    tokenizer, and for configs that contradict it."""
    if spec is None:
        raise InputError(
            f"{directory.path}: no tokenizer found; expected a directory with"
            " tokenizer.json, vocab.txt,"
            " vocab.json and merges.txt, or a .model; a file of them; or a name on the Hub"
        )
    place = directory.place
    spec = with_unchanged(spec, directory.config, directory.text(CHAT_TEMPLATE))
    if directory.text(TOKENIZER) is not None:
        check_text(spec, directory.config, place(CONFIG))
        return with_roles(spec, role_tokens(directory.configs), place(CONFIG))
    for name in (MAP, CONFIG):
        said = directory.json(name)
        if said is not None:
            spec = with_config(spec, said, place(name))
    for token in directory.json(ADDED) or {}:
        if token not in spec.special_tokens:
            raise InputError(
                f"{place(ADDED)}: added token {token!r} is not special; only special tokens"
                " are supported here"
            )
    return spec


def _of_vocab_txt(directory: _Directory, lowercase: bool | None) -> TokenizerSpec | None:
    """Return the tokenizer of a `vocab.txt`."""
    path, text = directory.place("vocab.txt"), directory.text("vocab.txt")
    if text is None:
        return None
    vocab = parse_vocabulary(text, path)
    # Another file has the text options.
    if any(directory.text(name) is not None for name in (CONFIG, TOKENIZER)):
        return bert_spec(vocab)
    return _bare(vocab, path, lowercase)


def _check_vocabularies(
    spec: TokenizerSpec, directory: _Directory, of_vocab: TokenizerSpec | None
) -> None:
    """Raise InputError if the vocabulary of another file differs from the `tokenizer.json` in the
    same directory."""
    other = None
    beyond = {token.content for token in spec.added_tokens if not token.in_model}
    own = [token for token in spec.vocab if token not in beyond]
    if of_vocab is not None and spec.library is not None:  # its added tokens come last
        own = own[: len(of_vocab.vocab)]
    if of_vocab is not None and of_vocab.vocab != own:
        other = "vocab.txt"
    if not isinstance(spec.model, WordPiece):
        ids = {token: i for i, token in enumerate(spec.vocab)}
        listed = directory.json(VOCAB) or {}
        if any(ids.get(token) != number for token, number in listed.items()):
            other = VOCAB
    if other is not None:
        raise InputError(
            f"{directory.place(TOKENIZER)}: the vocabulary differs from {other} in the same"
            " directory;"
            " remove one"
        )


def _of_merges(directory: _Directory) -> TokenizerSpec | None:
    """Return the tokenizer of a `vocab.json` and a `merges.txt`, if the class has these files."""
    place, merges = directory.place, directory.text(MERGES)
    name = directory.name or GPT2_CLASS
    if merges is None or directory.text(VOCAB) is None or name not in CLASS_ROLES:
        return None
    return of_merges_files(
        directory.json(VOCAB) or {},
        parse_merges(merges, place(MERGES)),
        name,
        directory.config.get("add_prefix_space", False),
        place,
    )


def _of_ranks(directory: _Directory, encoding: str) -> TokenizerSpec:
    """Return the tokenizer of the ranks in a directory."""
    for name in RANK_NAMES:
        path = directory.place(name)
        data = read_bytes(path)
        if data is not None and is_ranks(data):
            spec = read_ranks(data, encoding, path)
            return with_roles(spec, directory.config, directory.place(CONFIG))
    raise OptionError(
        f"{opt.encoding}: {directory.path} contains no tiktoken ranks; remove {opt.encoding}"
    )


def _of_model(directory: _Directory) -> TokenizerSpec | None:
    """Return the tokenizer of a model of `sentencepiece`, of ranks or of a `tekken.json`, by their
    usual names."""
    for name in dict.fromkeys((*MODEL_NAMES, *RANK_NAMES)):
        path = directory.place(name)
        data = read_bytes(path)
        if data is not None and is_ranks(data):
            return read_ranks(data, name, path)
        if data is not None:
            return read_model(data, path)
    value, path = directory.json(TEKKEN), directory.place(TEKKEN)
    if value is None:
        return None
    return read_tekken(value, path)
