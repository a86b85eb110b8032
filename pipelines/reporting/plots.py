"""Which plots a page has, and of what. Each shows a bounded number of points, chosen exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from pipelines.reporting.charts import Axis, Layer, drawn
from pipelines.reporting.facts import OnText
from pipelines.reporting.uses import Uses
from pipelines.reporting.vocabulary import TrainingLog, lengths, supports
from wordpiece_core.measures import RARE
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.visible import visible

POINTS = 160  # places along a logarithmic axis
HOVERED = 40  # points of a line that say what they are
LONGEST_BAR = 30  # characters; longer tokens are counted together

Row = dict[str, object]


def plot_counts(log: TrainingLog) -> Markup:
    """Counts of the merged pairs, and the support, by step."""
    assert log.merges is not None
    counts = log.merges["pair_count"].to_pylist()
    layers = _course(counts, "a")
    support = supports(log)
    if support is not None:
        layers.append(Layer("line", _last(support), "b", "support", step=True))
    layers.append(Layer("point", _merges_said(log, "pair_count"), "a", "merges", size=22))
    least = min([*counts, *(support or [])])
    return drawn(
        "How often each merged pair occurred, and how often a pair had to occur, by step.",
        Axis("step (merge)", 1, max(len(counts), 2), "log"),
        _upward("count", max(least, 1), max(counts)),
        layers,
    )


def plot_scores(log: TrainingLog) -> Markup:
    """The scores of the merges, by step."""
    assert log.merges is not None
    scores = log.merges["score"].to_pylist()
    return drawn(
        "The score of each merge, by step.",
        Axis("step (merge)", 1, max(len(scores), 2), "log"),
        _upward("score", min(scores), max(scores)),
        [*_course(scores, "c"), Layer("point", _merges_said(log, "score"), "c", "merges", size=22)],
    )


def _upward(title: str, least: float, most: float) -> Axis:
    """A logarithmic axis, if the values allow it."""
    if least > 0:
        return Axis(title, least / 1.15, most * 1.15, "log")
    return Axis(title, min(least, 0), max(most, least + 1))


def _merges_said(log: TrainingLog, column: str) -> list[Row]:
    assert log.merges is not None
    rows = []
    for i in _spread(len(log.merges), HOVERED):
        merge = log.merges.slice(i, 1).to_pylist()[0]
        left, right, token = (visible(merge[name]) for name in ("left", "right", "token"))
        met = f"{merge['pair_count']:,} times, score {merge['score']:.3g}"
        said = f"step {merge['step']:,}: {left} + {right} → {token}, {met}"
        rows.append({"x": i + 1, "y": merge[column], "text": said})
    return rows


def _spread(number: int, places: int) -> list[int]:
    """Some of the first `number` indices, evenly along a logarithmic axis, the last included."""
    if number < 1:
        return []
    last = number ** (1 / max(places - 1, 1))
    return sorted({min(round(last**i), number) - 1 for i in range(places)} | {number - 1})


def _course(values: Sequence[float], color: str) -> list[Layer]:
    """The course of values by step. In each piece of the axis: the middle one, and a band from the
    least to the most."""
    band: list[Row] = []
    middle: list[Row] = []
    ends = [i + 1 for i in _spread(len(values), POINTS)]
    for start, end in zip([0, *ends], ends, strict=False):
        piece = sorted(values[start:end])
        step = (start + 1 + end) / 2
        band.append({"x": step, "y": piece[0], "y2": piece[-1]})
        middle.append({"x": step, "y": piece[len(piece) // 2]})
    return [Layer("area", band, color, "band"), Layer("line", middle, color, "middle")]


def _last(values: Sequence[float]) -> list[Row]:
    """A line through values that fall in steps."""
    return [{"x": i + 1, "y": values[i]} for i in _spread(len(values), POINTS)]


def plot_lengths(spec: TokenizerSpec) -> Markup:
    """Tokens by their length, those that begin words under those that go on."""
    found = lengths(spec)
    rows: dict[str, list[Row]] = {"a": [], "b": []}
    most = 1
    longest = min(max(found.longest, 1), LONGEST_BAR)
    for length in range(1, longest + 1):
        is_last = length == longest
        base = 0
        for color, counts in (("a", found.begin), ("b", found.go_on)):
            number = sum(n for of, n in counts.items() if of == length or (is_last and of > length))
            top = base + number
            edges: Row = {"x": length - 0.42, "x2": length + 0.42, "y": base, "y2": top}
            rows[color].append(edges)
            base = top
        most = max(most, base)
    return drawn(
        "How many tokens have so many characters.",
        Axis("characters, without the prefix", 0.4, longest + 0.6),
        Axis("tokens", 0, most * 1.05),
        [Layer("rect", rows["a"], "a", "begin"), Layer("rect", rows["b"], "b", "go on")],
        height=170,
    )


def plot_sizes(at_sizes: Mapping[int, OnText]) -> Markup:
    """Tokens per word against the size of the vocabulary."""
    points: list[Row] = []
    for size, on_text in at_sizes.items():
        value = on_text.all.tokens_per_word or 0.0
        said = f"{size:,} tokens: {value:.3f} tokens per word"
        points.append({"x": size, "y": value, "text": said})
    values = [float(str(point["y"])) for point in points]
    room = max((max(values) - min(values)) * 0.08, 0.01)
    return drawn(
        "Tokens per word against the size of the vocabulary.",
        _size_axis(at_sizes),
        Axis("tokens per word", max(min(values) - room, 0), max(values) + room),
        [Layer("line", _plain(points), "a"), Layer("point", points, "a", "sizes", size=45)],
    )


def plot_whole(at_sizes: Mapping[int, OnText]) -> Markup:
    """The shares of words that are whole and unknown against the size of the vocabulary."""
    whole: list[Row] = []
    known: list[Row] = []
    for size, on_text in at_sizes.items():
        share = 100 * (on_text.all.whole_share or 0.0)
        covered = 100 * (1 - (on_text.all.unknown_share or 0.0))
        whole.append({"x": size, "y": share, "text": f"{size:,} tokens: {share:.1f} % whole"})
        known.append({"x": size, "y": covered, "text": f"{size:,} tokens: {covered:.3f} % known"})
    layers = [
        Layer("line", _plain(known), "b"),
        Layer("line", _plain(whole), "a"),
        Layer("point", known, "b", "known sizes", size=45),
        Layer("point", whole, "a", "whole sizes", size=45),
    ]
    return drawn(
        "The share of words that are known, and that are one token, by the vocabulary's size.",
        _size_axis(at_sizes),
        Axis("words", 0, 103, share=True),
        layers,
    )


def _size_axis(at_sizes: Mapping[int, OnText]) -> Axis:
    least, most = min(at_sizes), max(at_sizes)
    return Axis("tokens in the vocabulary", least * 0.95, max(most, least + 1) * 1.05, "log")


def _plain(points: Sequence[Row]) -> list[Row]:
    return [{"x": point["x"], "y": point["y"]} for point in points]


def plot_uses(uses: Uses) -> Markup:
    """Uses of tokens by rank: common, rare and unused ones in colours of their own."""
    total = max(len(uses.counts), 2)
    ranges = {"a": (0, uses.common), "b": (uses.common, uses.used), "d": (uses.used, total)}
    layers = []
    for color, (start, end) in ranges.items():
        rows = list(_ranked(uses, start, min(end, len(uses.counts))))
        if rows:
            layers.append(Layer("line", rows, color, step=color == "b"))
            layers.append(Layer("point", rows[:1] + rows[-1:], color, f"{color} ends", size=22))
    said: list[Row] = []
    for i in _spread(uses.used, HOVERED):
        text = f"rank {i + 1:,}: {visible(uses.tokens[i])}, {uses.counts[i]:,} times"
        color = "a" if uses.counts[i] >= RARE else "b"
        said.append({"x": i + 1, "y": uses.counts[i], "text": text, "color": color})
    for color in ("a", "b"):
        points = [row for row in said if row["color"] == color]
        if points:
            layers.append(Layer("point", points, color, f"{color} tokens", size=22))
    return drawn(
        "How often tokens are used, by their rank, with rare and unused ones marked.",
        Axis("rank of the token", 1, total, "log"),
        Axis("uses", 0, max([*uses.counts[:1], 10]) * 1.3, "symlog"),
        layers,
        height=260,
    )


def _ranked(uses: Uses, start: int, end: int) -> Iterator[Row]:
    """Points of the ranks from `start` to `end`: evenly along the axis, with the ends."""
    chosen = {i for i in _spread(len(uses.counts), POINTS) if start <= i < end}
    if end > start:
        chosen |= {start, end - 1}
    for i in sorted(chosen):
        yield {"x": i + 1, "y": uses.counts[i]}
