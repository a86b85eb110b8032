"""The page: facts to one HTML file that needs nothing else.

Names, tokens and words are data. They go through `shown`, which makes every character visible, and
through Jinja's escaping. The page's policy (Content-Security-Policy) lets browsers load nothing and
run nothing but the style and the script that are in the file, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from heapq import nsmallest
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pipelines.reporting import numbers
from pipelines.reporting.cuts import better_here, better_there
from pipelines.reporting.facts import GENERATOR, Facts, Group, OnText
from pipelines.reporting.plots import (
    plot_counts,
    plot_lengths,
    plot_scores,
    plot_sizes,
    plot_uses,
    plot_whole,
)
from pipelines.reporting.uses import token_uses
from pipelines.reporting.vocabulary import alphabet, lengths, words_of_text
from wordpiece_core import Tokenizer, __version__
from wordpiece_core.measures import parity, tokens_of
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.models import Bpe, model_name
from wordpiece_core.visible import visible

FIRST_MERGES = 50
ONLY = 60  # tokens of one vocabulary alone
MOST_SHOWN_PIECES = 16  # of a word
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
        "whole": numbers.whole,
        "percent": numbers.percent,
        "bytes": numbers.size,
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


# --- Text that is given ---------------------------------------------------------------------------


def shown(text: str) -> Markup:
    """A character or a word. It is set apart from the direction of the text around it."""
    return Markup('<bdi class="token">{}</bdi>').format(visible(text))


def named(text: Group) -> Markup:
    """A name: of a file, or of a group."""
    if text is None:
        return Markup("<i>no group</i>")
    return Markup("<bdi>{}</bdi>").format(visible(text, LONGEST_NAME))


def piece(token: str) -> Markup:
    """A token. Its prefix is at the left, also before letters that are written from the right."""
    return Markup('<bdi class="piece" dir="ltr">{}</bdi>').format(visible(token))


def bar(share: float) -> Markup:
    """A bar, full for 1. The number is beside it, so it is hidden from those who listen."""
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}"
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="behind" width="100" height="10"/><rect width="{}" height="10"/></svg>'
    ).format(width)


# --- Values of the template -----------------------------------------------------------------------


def _values(facts: Facts) -> dict[str, Any]:
    merges = facts.log.merges
    uses = token_uses(facts.spec, facts.on_text.all) if facts.on_text else None
    return {
        "extended": facts.log.made_by == "extension",
        "tokens": words_of_text(facts.spec),
        "first_merges": merges.slice(0, FIRST_MERGES).to_pylist() if merges else [],
        "plot_counts": plot_counts(facts.log) if merges else None,
        "plot_scores": plot_scores(facts.log) if merges else None,
        "plot_lengths": plot_lengths(facts.spec),
        "alphabet": alphabet(facts.spec),
        "compared": list(_compared(facts)),
        "by_group": list(_by_group(facts)),
        "sizes": list(_sizes(facts)),
        "size_groups": _groups_at_sizes(facts),
        "plot_sizes": plot_sizes(facts.at_sizes) if facts.at_sizes else None,
        "plot_whole": plot_whole(facts.at_sizes) if facts.at_sizes else None,
        "uses": uses,
        "plot_uses": plot_uses(uses) if uses else None,
        "differences": list(_differences(facts)),
        "asked": list(_asked(facts)),
        "took": list(_took(facts)),
        "handling": list(_handling(facts)),
        "most_pieces": MOST_SHOWN_PIECES,
        "longest": lengths(facts.spec).longest,
    }


def _on_texts(facts: Facts) -> Iterator[tuple[str, OnText]]:
    """All tokenizers with what the text comes to, this one first."""
    if facts.on_text is not None:
        yield facts.name, facts.on_text
        yield from ((o.name, o.on_text) for o in facts.others if o.on_text is not None)


def _compared(facts: Facts) -> Iterator[dict[str, Any]]:
    for name, on_text in _on_texts(facts):
        yield {"name": name, "all": on_text.all}


def _by_group(facts: Facts) -> Iterator[dict[str, Any]]:
    """A row for each group: the sums of each tokenizer, and how it stands to its best group."""
    if facts.on_text is None or len(facts.on_text.groups) < 2:
        return
    columns = [on_text for _, on_text in _on_texts(facts)]
    parities = [
        parity({g: m.tokens_per_word for g, m in on_text.groups.items()}) for on_text in columns
    ]
    for group in list(facts.on_text.groups)[:MOST_GROUPS]:
        of_group = [on_text.groups[group] for on_text in columns]
        yield {"group": group, "of": of_group, "parity": [p[group] for p in parities]}


def _groups_at_sizes(facts: Facts) -> list[Group]:
    """The groups with a column in the table by size: those with the most words."""
    if facts.on_text is None or len(facts.on_text.groups) < 2:
        return []
    most = sorted(facts.on_text.groups.items(), key=lambda item: -item[1].words)
    chosen = {group for group, _ in most[:GROUPS_AT_SIZES]}
    return [group for group in facts.on_text.groups if group in chosen]


def _sizes(facts: Facts) -> Iterator[dict[str, Any]]:
    for size, on_text in facts.at_sizes.items():
        yield {"size": size, "all": on_text.all, "groups": on_text.groups}


def _differences(facts: Facts) -> Iterator[dict[str, Any]]:
    lists = facts.cuts.lists if facts.cuts else {}
    here = tokens_by_id_of(facts.spec)
    for i, other in enumerate(facts.others):
        yield {
            "name": other.name,
            "shared": len({*here.values()} & {*other.tokens.values()}),
            "here": len(here),
            "there": len(other.tokens),
            "only_here": _most_used(here, other.tokens, facts.on_text),
            "only_there": _most_used(other.tokens, here, other.on_text),
            "better_here": lists.get(better_here(i), []),
            "better_there": lists.get(better_there(i), []),
        }


def tokens_by_id_of(spec: TokenizerSpec) -> dict[int, str]:
    """The tokens of a tokenizer of ours by their ids, as WordPiece writes them."""
    return dict(enumerate(tokens_of(Tokenizer.of(spec))))


def _most_used(
    tokens: Mapping[int, str], others: Mapping[int, str], on_text: OnText | None
) -> list[str]:
    """Tokens of one vocabulary that the other lacks: the most used, or without a text the first."""
    uses = on_text.all.uses if on_text else None
    count = (
        dict(zip(*(uses[n].to_pylist() for n in uses.schema.names), strict=True)) if uses else {}
    )
    there = {*others.values()}
    only = [(-count.get(number, 0), number) for number, t in tokens.items() if t not in there]
    return [tokens[number] for _, number in nsmallest(ONLY, only)]


def _asked(facts: Facts) -> Iterator[tuple[str, str]]:
    """What was asked of what made the vocabulary, as options of the command line would say it."""
    training = facts.log.training or {}
    for name, value in {**facts.log.options, **(training.get("text") or {})}.items():
        yield name, _value(value)


def _took(facts: Facts) -> Iterator[tuple[str, str]]:
    """What went into that, and what it took."""
    training, run = facts.log.training or {}, facts.log.run or {}
    for name, value in facts.log.base.items():
        shown_name = "SHA-256" if name == "tokenizer" else name.replace("_", " ")
        yield f"{shown_name} of the tokenizer before", _value(value)
    smoothing = training.get("smoothing")
    if isinstance(smoothing, dict):
        yield "groups of", _value(smoothing.get("column"))
        yield "smoothing exponent", _value(smoothing.get("exponent"))
    corpus = training.get("corpus")
    for name, value in (corpus if isinstance(corpus, dict) else {}).items():
        is_bytes = name == "bytes" and isinstance(value, int)
        yield name.replace("_", " "), numbers.size(value) if is_bytes else _value(value)
    for name, value in run.items():
        if name == "seconds":
            continue
        is_bytes = isinstance(value, int) and ("memory" in name or "bytes" in name)
        shown_name = name.removesuffix("_bytes").replace("_", " ")
        yield shown_name, numbers.size(value) if is_bytes else _value(value)
    seconds = run.get("seconds")
    for name, value in (seconds if isinstance(seconds, dict) else {}).items():
        yield f"{name}, seconds", _value(value)


def _handling(facts: Facts) -> Iterator[tuple[str, str]]:
    """How the tokenizer handles text."""
    for name, value in vars(facts.spec.text).items():
        yield name.replace("_", " "), "as lowercase" if value is None else _value(value)
    if facts.spec.model is None:
        yield "continuing prefix", _value(facts.spec.continuing_prefix)
        yield "longest word, in characters", _value(facts.spec.max_word_length)
    else:
        yield "model", model_name(facts.spec.model)
        if isinstance(facts.spec.model, Bpe):
            yield "word boundary", _value(facts.spec.model.word_boundary)
        yield "byte fallback", _value(facts.spec.model.byte_fallback)
    yield "special tokens", _value(facts.spec.special_tokens)


def _value(value: Any) -> str:
    """A value of JSON as text for people."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return numbers.whole(value)
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(of)}" for key, of in value.items()) or "none"
    return str(value) or "none"
