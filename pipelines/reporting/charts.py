"""The plots of a page: specifications for Vega-Lite, drawn into SVG when the page is made.

A page holds the drawings, and no library to draw them: it is small, and runs no program of others.
Colours are variables of the page's style, so that one drawing is right in light and dark. All plots
are drawn wide and narrow; the style shows the one that fits. What is written at the axes is chosen
here, with fixed room for it: where things are does not depend on the fonts of a machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from pipelines.reporting.numbers import compact

Spec = dict[str, Any]

WIDTHS = {"wide": 680, "narrow": 330}
"""Of a whole drawing, in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 10, 44
HEIGHT = 220
LEAST_TICKS = 3
SVG = "http://www.w3.org/2000/svg"


@dataclass(frozen=True)
class Axis:
    """An axis from `least` to `most`. `kind`: "linear", "log", or "symlog" (as log, with a 0)."""

    title: str
    least: float
    most: float
    kind: str = "linear"
    share: bool = False

    def ticks(self, most_ticks: int) -> list[float]:
        """Where the axis has ticks: at most so many, at round numbers."""
        if self.kind == "symlog":
            powers = _powers(1, self.most, (1,))
            return [0.0, *powers[:: -(-len(powers) // (most_ticks - 1)) or 1]]
        if self.kind == "log":
            for numbers in ((1,), (1, 2, 5)):
                found = _powers(self.least, self.most, numbers)
                if len(found) >= LEAST_TICKS:
                    return found[:: -(-len(found) // most_ticks)]
        return _round_numbers(self.least, self.most, most_ticks)

    def label(self, value: float) -> str:
        """How a value is written at the axis."""
        return f"{value:.6g}%" if self.share else compact(value)

    def spec(self, most_ticks: int, **more: Any) -> Spec:
        """For Vega-Lite, as a channel of position."""
        ticks = self.ticks(most_ticks)
        labels = {f"{tick:.6g}": self.label(tick) for tick in ticks}
        choices = " : ".join(
            f"datum.value == {tick!r} ? '{labels[f'{tick:.6g}']}'" for tick in ticks
        )
        axis = {"values": ticks, "labelExpr": f"{choices} : ''" if ticks else "''", **more}
        scale: Spec = {"type": self.kind, "domain": [self.least, self.most], "nice": False}
        if self.kind == "linear":
            scale["zero"] = False
        return {"type": "quantitative", "title": self.title, "scale": scale, "axis": axis}


def _powers(least: float, most: float, numbers: Sequence[int]) -> list[float]:
    """The numbers times powers of ten, from the least to the most."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    found = (float(f"{number}e{power}") for power in powers for number in numbers)
    return [value for value in found if least <= value <= most]


def _round_numbers(least: float, most: float, number: int) -> list[float]:
    """At most so many numbers at equal distances, which are 1, 2, 2.5 or 5 times a power of ten."""
    span = max(most - least, 1e-12) / number
    power = math.floor(math.log10(span))
    step = next(s for n in (1, 2, 2.5, 5, 10, 20) if (s := float(f"{n}e{power}")) > span)
    first, last = math.ceil(least / step), math.floor(most / step)
    return [float(f"{i * step:.10g}") for i in range(first, last + 1)]


@dataclass(frozen=True)
class Layer:
    """Marks of a plot. `rows`: of `x` and `y`; bars have `x2` and `y2` too, areas `y2`. A row may
    have a `text`, which is shown where one points at the mark. `color`: the name of a variable of
    the style."""

    mark: str
    rows: Sequence[dict[str, Any]]
    color: str
    name: str = ""
    size: float | None = None
    dashed: bool = False
    step: bool = False


def drawn(title: str, x: Axis, y: Axis, layers: Sequence[Layer], height: int = HEIGHT) -> Markup:
    """A plot, drawn wide and narrow, as elements of HTML. `title`: what it shows, for those who do
    not see it."""
    return Markup("").join(_draw(kind, title, x, y, layers, height) for kind in WIDTHS)


def _draw(kind: str, title: str, x: Axis, y: Axis, layers: Sequence[Layer], height: int) -> Markup:
    import vl_convert  # it is large, and only this needs it

    width, is_wide = WIDTHS[kind], kind == "wide"
    bounds = {"minExtent": LEFT - 18, "maxExtent": LEFT - 18}
    across = x.spec(8 if is_wide else 5, minExtent=BOTTOM - 18, maxExtent=BOTTOM - 18)
    upward = y.spec(6, **bounds)
    spec: Spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width - LEFT - RIGHT,
        "height": height,
        "autosize": "none",
        "padding": {"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        "background": None,
        "config": CONFIG,
        "layer": [_layer(layer, across, upward) for layer in layers],
    }
    svg = vl_convert.vegalite_to_svg(spec, vl_version="6.4")
    return _for_page(svg, kind, title)


CONFIG: Spec = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "domainColor": "var(--line)",
        "gridColor": "var(--line)",
        "gridOpacity": 0.6,
        "tickColor": "var(--line)",
        "labelColor": "var(--soft)",
        "titleColor": "var(--soft)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelOverlap": False,
        "labelBound": False,
        "labelFlush": False,
    },
}


def _layer(layer: Layer, x: Spec, y: Spec) -> Spec:
    color = f"var(--{layer.color})"
    mark: Spec = {"type": layer.mark}
    if layer.mark == "line":
        mark |= {"stroke": color, "strokeWidth": 2}
        mark |= {"strokeDash": [5, 4]} if layer.dashed else {}
        mark |= {"interpolate": "step-after"} if layer.step else {}
    elif layer.mark == "point":
        mark |= {"filled": True, "fill": color, "opacity": 1, "size": layer.size or 30}
    elif layer.mark == "area":
        mark |= {"fill": color, "fillOpacity": 0.25}
    else:
        mark |= {"fill": color}
    field = {"x": x | {"field": "x"}, "y": y | {"field": "y"}}
    if layer.mark in ("rect", "area"):
        field["y2"] = {"field": "y2"}
    if layer.mark == "rect":
        field["x2"] = {"field": "x2"}
    if any("text" in row for row in layer.rows):
        field["description"] = {"field": "text", "type": "nominal"}
    data = {"values": list(layer.rows)}
    return {"name": layer.name or layer.color, "data": data, "mark": mark, "encoding": field}


def _for_page(svg: str, kind: str, title: str) -> Markup:
    """A drawing as an element of a page: without what the page does not use; descriptions of marks
    become titles, which browsers show when one points there."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        description = element.attrib.get("aria-label", "")
        is_mark = element.attrib.get("role") == "graphics-symbol" and element.tag == "path"
        for name in [n for n in element.attrib if n.startswith("aria-") or n in UNUSED]:
            del element.attrib[name]
        for name in PLACES & element.attrib.keys():
            element.attrib[name] = re.sub(r"\d+\.\d+", _shorter, element.attrib[name])
        if is_mark and element.attrib.get("d") and description:
            ElementTree.SubElement(element, "title").text = description
    _without_empty(root)
    width, height = root.attrib.pop("width"), root.attrib.pop("height")
    root.attrib |= {"class": f"plot {kind}", "role": "img", "aria-label": title}
    root.attrib["viewBox"] = f"0 0 {width} {height}"
    return Markup(ElementTree.tostring(root, encoding="unicode"))


PLACES = {"transform", "d", "x", "y", "x2", "y2", "width", "height"}
UNUSED = {"role", "version", "pointer-events", "font-family", "xmlns"}


def _shorter(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def _without_empty(element: ElementTree.Element) -> None:
    """Removes paths that draw nothing, and groups of nothing."""
    for child in list(element):
        _without_empty(child)
        is_empty = not len(child) and not (child.text or "").strip()
        nothing = child.tag == "g" or (child.tag == "path" and _draws_nothing(child))
        if is_empty and nothing:
            element.remove(child)


def _draws_nothing(path: ElementTree.Element) -> bool:
    paints = path.attrib.get("stroke") or path.attrib.get("fill")
    return path.attrib.get("class") in ("background", "foreground") and not paints
