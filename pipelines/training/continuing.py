"""Continuing a training from a tokenizer directory: the options it was made with."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from pipelines.files import outputs
from pipelines.training.options import TrainCall
from pipelines.training.tokenizer_directory import TRAINING
from wordpiece_core import TextOptions, Tokenizer, TrainingOptions
from wordpiece_core.declaration import Declared
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.options import ALL, OF_OTHER_MODELS, WORDPIECE, ExtensionOptions
from wordpiece_core.tokenizer.composing import splits_as
from wordpiece_core.uri import join

Options = TypeVar("Options", bound=Declared)


@dataclass(frozen=True)
class Begun:
    """A tokenizer whose training is continued. `training`: its options, with the vocabulary size
    that is wanted now. `text`: how text is split into words. `word_table`: the digest of the words
    of the whole training; None if the vocabulary comes from more than one."""

    tokenizer: Tokenizer
    training: TrainingOptions
    text: TextOptions
    word_table: str | None

    @property
    def extension(self) -> ExtensionOptions:
        """The options with which other words extend the vocabulary. As in any training, all
        characters join it, up to `limit_alphabet`."""
        training = self.training
        of_wordpiece: dict[str, Any] = {}
        if training.model == WORDPIECE:
            of_wordpiece = {"criterion": training.criterion, "new_characters": ALL}
            if training.limit_alphabet is not None:
                prefix = training.continuing_prefix
                bare = (token.removeprefix(prefix) for token in self.tokenizer.vocab)
                known = {token for token in bare if len(token) == 1}
                of_wordpiece["new_characters"] = max(training.limit_alphabet - len(known), 0)
        return ExtensionOptions(
            vocab_size=training.vocab_size,
            min_pair_count=training.min_pair_count,
            min_word_count=training.min_word_count,
            max_token_length=training.max_token_length,
            **of_wordpiece,
        )


def begun(call: TrainCall) -> Begun:
    """What a call continues. OptionError for options that contradict it, and InputError if no
    training made it."""
    given = call.continue_from or ""
    place = given.rstrip("/")
    if place == call.output.rstrip("/"):
        raise OptionError(f"output: {place} is what `continue_from` continues; give another one")
    record = outputs.read_json(join(place, TRAINING))
    found = record if isinstance(record, dict) else {}
    if not isinstance(found.get("training"), dict) or not isinstance(found.get("text"), dict):
        raise InputError(
            f"{place}: no tokenizer that wordpiece train wrote; give the directory that it wrote,"
            " train anew, or use wordpiece extend"
        )
    tokenizer = Tokenizer.load(place)
    size, wanted = len(tokenizer.vocab), call.training.vocab_size
    if wanted <= size:
        raise OptionError(f"vocab_size: {wanted:,}, but {place} has {size:,} tokens; give more")
    training = _as_before(call, call.training, found["training"], place)
    text = _as_before(call, call.counting.text, found["text"], place)
    if not splits_as(tokenizer.spec, text):
        raise InputError(f"{place}: its files handle text otherwise than its {TRAINING} says")
    whole = None if "extension" in found else found.get("word_table")
    return Begun(tokenizer, training, text, whole)


def _as_before(call: TrainCall, now: Options, before: dict[str, Any], place: str) -> Options:
    """The options of the earlier training. `now`: those of the call. OptionError for one that is
    given now, and differs, even if it equals the default."""
    kind = type(now)
    names = [known.name for known in fields(kind)]  # type: ignore[arg-type]
    usual = kind()
    before = {name: getattr(usual, name) for name in OF_OTHER_MODELS if name in names} | before
    missing = [name for name in names if name not in before]
    if missing:
        raise InputError(f"{place}: its {TRAINING} has no {missing[0]}; train it again")
    made = kind(**{name: before[name] for name in names})
    if isinstance(now, TrainingOptions):
        made = replace(made, vocab_size=now.vocab_size)  # type: ignore[type-var]
    for option in kind.options():
        value, then = getattr(now, option.name), getattr(made, option.name)
        given = option.name in call.given or value != getattr(usual, option.name)
        if value != then and given:
            raise OptionError(f"{option.name}: {value}, but {place} was trained with {then}")
    return made
