"""The plots of a page: Vega-Lite draws each once, as SVG, when the page is made.

So a page holds no plotting library. Colours are variables of the page's style, so that one drawing
is right in light and dark. Each plot shows a bounded number of points, chosen exactly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from pipelines.reporting.facts import OnText, Uses
from wordpiece_core.visible import visible

WIDTH, HEIGHT = 400, 240  # in pixels, with axes and legend
POINTS = 160  # places along a logarithmic axis
HOVERED = 40  # points of a line with a tooltip
SVG = "{http://www.w3.org/2000/svg}"
UNUSED = {"role", "aria-roledescription", "aria-hidden", "pointer-events", "font-family"}
FONT = "Liberation Sans"  # ships with vl-convert: the layout does not depend on a machine's fonts
SOFT, LINE = "var(--soft)", "var(--line)"
CONFIG = {
    "font": FONT,
    "background": None,
    "autosize": {"type": "fit", "contains": "padding"},
    "view": {"stroke": None},
    "axis": {"domainColor": LINE, "gridColor": LINE, "gridOpacity": 0.6, "tickColor": LINE}
    | {"labelColor": SOFT, "titleColor": SOFT, "labelFontSize": 12, "titleFontSize": 12}
    | {
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelOverlap": "greedy",
        "labelSeparation": 5,
    },
    "legend": {"orient": "top", "title": None, "labelColor": SOFT, "labelFontSize": 12}
    | {"columns": 3, "columnPadding": 20, "symbolType": "square", "symbolOpacity": 1},
}

Row = dict[str, Any]
Spec = dict[str, Any]


def plot_sizes(at_sizes: Mapping[int, OnText]) -> Markup:
    """Tokens per word by the size of the vocabulary."""
    rows = []
    for size, on_text in at_sizes.items():
        value = on_text.all.tokens_per_word or 0.0
        rows.append({"x": size, "y": value, "text": f"{size:,} tokens: {value:.3f} per word"})
    return _drawn(
        "Tokens per word by the size of the vocabulary.",
        _log("tokens in the vocabulary", at_sizes),
        _linear("tokens per word", zero=False, nice=True),
        [_layer("line", rows), _points(rows)],
        {"": "a"},
    )


def plot_coverage(at_sizes: Mapping[int, OnText]) -> Markup:
    """The shares of words that are one token and that are known, by the vocabulary's size."""
    whole, known = "words that are one token", "words without [UNK]"
    layers = []
    for series in (known, whole):
        rows = []
        for size, on_text in at_sizes.items():
            sums = on_text.all
            share = sums.whole_share if series == whole else 1 - (sums.unknown_share or 0.0)
            text = f"{size:,} tokens: {share or 0.0:.3%} {series}"
            rows.append({"x": size, "y": share or 0.0, "text": text})
        layers += [_layer("line", rows, series), _points(rows, series)]
    return _drawn(
        "The shares of words that are known, and that are one token, by the vocabulary's size.",
        _log("tokens in the vocabulary", at_sizes),
        _linear("share of the words", ".0%", domain=[0, 1]),
        layers,
        {whole: "a", known: "b"},
    )


def plot_uses(uses: Uses) -> Markup:
    """Uses of tokens by rank: common, rare and unused ones in colours of their own."""
    total = len(uses.ranked)
    colors = {"10 times or more": "a", "rare": "b", "unused": "d"}
    bounds = [0, uses.common, uses.used, total]
    layers = []
    for series, start, end in zip(colors, bounds, bounds[1:], strict=False):
        chosen = {i for i in _spread(total, POINTS) if start <= i < end}
        chosen |= {start, end - 1} if end > start else set()
        rows = [{"x": i + 1, "y": uses.ranked[i][1]} for i in sorted(chosen)]
        line = {"type": "line", "interpolate": "step-after", "strokeWidth": 3}
        layers.append(_layer(line, rows, series))
    points = []
    unused = [uses.used, total - 1] if uses.used < total else []
    for i in [*_spread(uses.used, HOVERED), *unused]:
        token, count = uses.ranked[i]
        series = next(name for name, end in zip(colors, bounds[1:], strict=True) if i < end)
        text = f"rank {i + 1:,}: {visible(token)}, {count:,} times"
        points.append({"x": i + 1, "y": count, "text": text, "series": series})
    layers.append(_points(points))
    most = uses.ranked[0][1] if uses.used else 1
    powers = [0, *(10**n for n in range(len(str(most))))]
    y = _linear("uses", ",d", type="symlog")  # a logarithmic scale that has a 0
    y["axis"] |= {"values": powers}
    return _drawn(
        "How often tokens are used, by their rank, with rare and unused ones marked.",
        _log("rank of the token", [1, max(total, 1)]),
        y,
        layers,
        colors,
    )


def _spread(number: int, places: int) -> list[int]:
    """Some of the first `number` indices, evenly along a logarithmic axis, the last included."""
    if number < 1:
        return []
    last = number ** (1 / max(places - 1, 1))
    return sorted({min(round(last**i), number) - 1 for i in range(places)} | {number - 1})


# --- Vega-Lite ------------------------------------------------------------------------------------


def _linear(title: str, number_format: str = "", **scale: Any) -> Spec:
    axis = {"format": number_format, "tickCount": 5}
    return {"title": title, "type": "quantitative", "scale": {"nice": False} | scale, "axis": axis}


def _log(title: str, values: Collection[float], number_format: str = "~s") -> Spec:
    decades = math.floor(math.log10(max(values) / min(values)))
    ticks = min(decades, 6) if decades > 1 else 5  # powers of ten, or multiples of them
    axis = {"format": number_format, "tickCount": ticks}
    scale = {"type": "log", "nice": False}
    return {"title": title, "type": "quantitative", "scale": scale, "axis": axis}


def _layer(mark: str | Spec, rows: Sequence[Row], series: str = "") -> Spec:
    return {"mark": mark, "data": {"values": [{"series": series} | row for row in rows]}}


def _points(rows: Sequence[Row], series: str = "") -> Spec:
    layer = _layer({"type": "point", "filled": True, "opacity": 1}, rows, series)
    return layer | {"encoding": {"description": {"field": "text", "type": "nominal"}}}


def _drawn(
    title: str, x: Spec, y: Spec, layers: Sequence[Spec], colors: Mapping[str, str]
) -> Markup:
    """A plot as an element of the page. `title`: what it shows, for readers who do not see it;
    `colors`: for each series, the name of a variable of the page's style."""
    import vl_convert  # it is large, and only this needs it

    scale = {"domain": [*colors], "range": [f"var(--{color})" for color in colors.values()]}
    series: Spec = {"field": "series", "type": "nominal", "scale": scale}
    encoding = {"x": x | {"field": "x"}, "y": y | {"field": "y"}, "color": series}
    if len(colors) == 1:
        series["legend"] = None
    spec = {"width": WIDTH, "height": HEIGHT, "config": CONFIG, "encoding": encoding}
    svg = vl_convert.vegalite_to_svg(spec | {"layer": layers}, vl_version="6.4")
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        label = element.attrib.pop("aria-label", "")
        if element.attrib.get("aria-roledescription") in ("point", "bar"):
            ElementTree.SubElement(element, "title").text = label  # browsers show it as a tooltip
        for name in element.attrib.keys() & UNUSED:
            del element.attrib[name]
    size = {"viewBox": root.attrib["viewBox"]}
    root.attrib = size | {"class": "plot", "role": "img", "aria-label": title}
    return Markup(ElementTree.tostring(root, encoding="unicode"))
