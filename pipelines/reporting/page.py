"""The page: facts to one HTML file that needs nothing else.

Names, tokens and words are data. They go through `shown`, which makes every character visible, and
through Jinja's escaping. The page's policy (Content-Security-Policy) lets browsers load nothing and
run nothing but the style and the script that are in the file, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from heapq import nsmallest
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from jinja2.filters import do_filesizeformat as size
from markupsafe import Markup

from pipelines.reporting.facts import GENERATOR, Facts, Group, OnText, counts_by_id, token_uses
from pipelines.reporting.plots import (
    plot_coverage,
    plot_sizes,
    plot_uses,
)
from pipelines.reporting.tokenized_words import fewer_here, fewer_there
from pipelines.reporting.vocabulary import json_object
from wordpiece_core import Tokenizer, __version__
from wordpiece_core.errors import OptionError
from wordpiece_core.measures import Measures, parity, tokens_of
from wordpiece_core.tokenizer.composing import text_options
from wordpiece_core.tokenizer.models import Bpe, Unigram, WordPiece, model_name
from wordpiece_core.tokenizer.parts import types
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.visible import visible

ONLY = 60  # tokens of one vocabulary alone
MOST_SHOWN = 16  # tokens of a word
MOST_LISTED = 120  # tokens of a list
MOST_GROUPS = 40  # in a table; the others are added up in the line for all
GROUPS_AT_SIZES = 8  # of the table by size
LONGEST_NAME = 80  # characters of a path or a name


def page(facts: Facts) -> bytes:
    """The page, in UTF-8. Equal facts give equal bytes."""
    here = files("pipelines.reporting")
    style, script = ((here / name).read_text("utf-8") for name in ("page.css", "page.js"))
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "whole": "{:,}".format,
        "percent": percent,
        "shown": shown,
        "named": named,
        "piece": piece,
        "bar": bar,
    }
    template = environment.from_string((here / "page.html").read_text("utf-8"))
    text = template.render(
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        generator=Markup(GENERATOR),
        version=__version__,
        facts=facts,
        **_values(facts),
    )
    return text.encode()


def _policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}';"
        f" script-src 'sha256-{digest(script)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


# --- Filters of the template ----------------------------------------------------------------------


def percent(share: float) -> str:
    """A share from 0 to 1 in per cent, with as many digits as distinguish it from 0 and from 100 %.

    >>> percent(0.5), percent(0.00001), percent(0), percent(1), percent(0.99999)
    ('50.0 %', '0.0010 %', '0 %', '100 %', '99.9990 %')
    >>> percent(1e-9), percent(1 - 1e-9)
    ('<0.0001 %', '>99.9999 %')
    """
    near = min(share, 1 - share)
    if near == 0:
        return f"{share:.0%}".replace("%", " %")
    if near < 0.000001:
        return "<0.0001 %" if share < 0.5 else ">99.9999 %"
    digits = 1 if near >= 0.001 else 2 if near >= 0.0001 else 4
    return f"{share * 100:.{digits}f} %"


def shown(text: str) -> Markup:
    """A character or a word, isolated from the direction of the surrounding text."""
    return Markup('<bdi class="token">{}</bdi>').format(visible(text))


def named(text: Group) -> Markup:
    """The name of a file or a group."""
    if text is None:
        return Markup("<i>no group</i>")
    return Markup("<bdi>{}</bdi>").format(visible(text, LONGEST_NAME))


def piece(token: str) -> Markup:
    """A token. Its prefix is at the left, also before letters that are written right to left."""
    return Markup('<bdi class="piece" dir="ltr">{}</bdi>').format(visible(token))


def bar(share: float) -> Markup:
    """A bar, full for 1. Hidden from screen readers, because the number is next to it."""
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}"
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="behind" width="100" height="10"/><rect width="{}" height="10"/></svg>'
    ).format(width)


# --- Values of the template -----------------------------------------------------------------------


def _values(facts: Facts) -> dict[str, Any]:
    uses = None if facts.counts is None else token_uses(facts.spec, facts.counts)
    return {
        "model": model_name(facts.spec.model),
        "extended": facts.log.made_by == "extension",
        "compared": _on_texts(facts),
        "by_group": list(_by_group(facts)),
        "size_groups": _groups_at_sizes(facts),
        "plot_sizes": plot_sizes(facts.at_sizes) if facts.at_sizes else None,
        "plot_coverage": plot_coverage(facts.at_sizes) if facts.at_sizes else None,
        "uses": uses,
        "counted": "text" if facts.dataset_counts is None else "dataset",
        "plot_uses": plot_uses(uses) if uses else None,
        "differences": list(_differences(facts)),
        "given": _given(facts),
        "resources": list(_resources(facts)),
        "preparation": list(_preparation(facts)),
        "most_tokens": MOST_SHOWN,
        "most_listed": MOST_LISTED,
    }


def _on_texts(facts: Facts) -> list[tuple[str, OnText]]:
    """All tokenizers with their measures, this one first."""
    found = [(facts.name, facts.on_text), *((o.name, o.on_text) for o in facts.others)]
    return [(name, on_text) for name, on_text in found if on_text is not None]


def _by_group(facts: Facts) -> Iterator[tuple[Group, list[tuple[Measures, float | None]]]]:
    """Each group with its measures and its parity in each tokenizer."""
    if facts.on_text is None or len(facts.on_text.groups) < 2:
        return
    columns = [on_text.groups for _, on_text in _on_texts(facts)]
    parities = [parity({g: m.tokens_per_word for g, m in of.items()}) for of in columns]
    for group in list(facts.on_text.groups)[:MOST_GROUPS]:
        yield group, [(of[group], p[group]) for of, p in zip(columns, parities, strict=True)]


def _groups_at_sizes(facts: Facts) -> list[Group]:
    """The groups with a column in the table by size: those with the most words."""
    if facts.on_text is None or len(facts.on_text.groups) < 2:
        return []
    groups = facts.on_text.groups
    chosen = sorted(groups, key=lambda group: -groups[group].words)[:GROUPS_AT_SIZES]
    return [group for group in groups if group in chosen]


def _differences(facts: Facts) -> Iterator[dict[str, Any]]:
    lists = facts.words.lists if facts.words else {}
    here = dict(enumerate(tokens_of(Tokenizer.from_spec(facts.spec))))
    for i, other in enumerate(facts.others):
        yield {
            "name": other.name,
            "shared": len({*here.values()} & {*other.tokens.values()}),
            "here": len(here),
            "there": len(other.tokens),
            "only_here": _most_used(here, other.tokens, facts.on_text),
            "only_there": _most_used(other.tokens, here, other.on_text),
            "fewer_here": lists.get(fewer_here(i), []),
            "fewer_there": lists.get(fewer_there(i), []),
        }


def _most_used(
    tokens: Mapping[int, str], others: Mapping[int, str], on_text: OnText | None
) -> list[str]:
    """Tokens that the other vocabulary lacks: the most used, or without a text the first."""
    counts = counts_by_id(on_text.all) if on_text else {}
    there = {*others.values()}
    only = [(-counts.get(number, 0), number) for number, t in tokens.items() if t not in there]
    return [tokens[number] for _, number in nsmallest(ONLY, only)]


def _given(facts: Facts) -> list[tuple[str, str]]:
    """The options of what made the vocabulary, as the command line names them."""
    text = json_object(facts.log.training, "text")
    return [(name, _value(value)) for name, value in {**facts.log.options, **text}.items()]


def _resources(facts: Facts) -> Iterator[tuple[str, str]]:
    """The text of the training, and the resources that it took."""
    training, run = facts.log.training, facts.log.run
    for name, value in json_object(training, "base").items():
        label = "SHA-256" if name == "tokenizer" else name.replace("_", " ")
        yield f"{label} of the base tokenizer", _value(value)
    if smoothing := json_object(training, "smoothing"):
        yield "group column", _value(smoothing.get("column"))
        yield "smoothing exponent", _value(smoothing.get("exponent"))
    for name, value in {**json_object(training, "corpus"), **run}.items():
        is_bytes = isinstance(value, int) and ("memory" in name or "bytes" in name)
        if name != "seconds":
            label = name.removesuffix("_bytes").replace("_", " ")
            yield label, size(value) if is_bytes else _value(value)
    for name, value in json_object(run, "seconds").items():
        yield f"{name}, seconds", _value(value)


def _preparation(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the options by which the tokenizer prepares text, and their values."""
    for name, value in _text_options(facts.spec).items():
        yield name.replace("_", " "), "as lowercase" if value is None else _value(value)
    if isinstance(facts.spec.model, WordPiece):
        yield "continuing prefix", _value(facts.spec.continuing_prefix)
        yield "longest word, in characters", _value(facts.spec.max_word_length)
    else:
        yield "model", model_name(facts.spec.model)
        if isinstance(facts.spec.model, Bpe):
            yield "word boundary", _value(facts.spec.word_boundary)
    if isinstance(facts.spec.model, Bpe | Unigram):
        yield "byte fallback", _value(facts.spec.model.byte_fallback)
    yield "special tokens", _value(facts.spec.special_tokens)


def _text_options(spec: TokenizerSpec) -> dict[str, Any]:
    """Return the options by which text becomes words. Without options: the names of the parts of
    `tokenizer.json`."""
    with suppress(OptionError):
        return text_options(spec).values()
    parts = {"normalizer": spec.normalizer, "pre_tokenizer": spec.pre_tokenizer}
    return {name: types(part) for name, part in parts.items()}


def _value(value: Any) -> str:
    """A JSON value in ordinary words."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(of)}" for key, of in value.items()) or "none"
    return str(value) or "none"
