"""Charts as SVG: curves with confidence intervals, and bars, with their axes and a legend.

Colours are those of the classes in `charts.css`, so that a chart follows the page into the dark; a
series also has a marker of its own, for eyes and printers that do not tell colours.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10, pi

from flexgroup.diagram.markup import Markup, element, join, number
from flexgroup.diagram.picture import (
    COLOURS,
    MARGIN,
    Drawn,
    LegendEntry,
    Point,
    cross,
    label,
    legend,
    moved,
    path,
    place,
    polygon,
    resources,
)

WIDTH = 400
HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 48, 18, 28, 44

BAR = 12
BETWEEN_BARS = 2
BETWEEN_GROUPS = 12
ROOM_FOR_VALUE = 54

CAP = 3
"""Half the length of the line at the end of a confidence interval."""

MARKERS = (
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0Z",
    polygon(4, pi / 4, 4.7),
    polygon(3, -pi / 2, 4.8),
    polygon(4, 0.0, 4.8),
    cross(3.5),
    polygon(3, pi / 2, 4.8),
)

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

LEAST = 1e-300
"""Smaller values count as nothing, because no step fits below them."""

ROUND = [float(f"{digit}e{power}") for power in range(-301, 308) for digit in (1, 2, 5)]
"""Where a logarithmic axis may begin and end."""

LOG_FROM = 40.0
"""How many times the smallest value the largest must be for a logarithmic axis: on one with equal
distances the small ones could not be seen."""


@dataclass(frozen=True)
class ChartPoint:
    """A point, with half the widths of its confidence intervals: 0 if nothing was repeated."""

    x: float
    y: float
    title: str = ""
    x_half: float = 0.0
    y_half: float = 0.0


@dataclass(frozen=True)
class ChartSeries:
    """The points of one name; `style` is the number of its colour and its marker."""

    name: str
    style: int
    points: tuple[ChartPoint, ...]

    @property
    def colour(self) -> str:
        return f"s{self.style % COLOURS}"


@dataclass(frozen=True)
class Scale:
    label: str
    log: bool = False


def curves(series: Sequence[ChartSeries], across: Scale, up: Scale) -> Drawn:
    """Draw a curve for each series, its points joined in the order in which they are given."""
    points = [point for each in series for point in each.points]
    x = axis(_ends((p.x, p.x_half) for p in points), LEFT, WIDTH - RIGHT, across.log, most=5)
    y = axis(_ends((p.y, p.y_half) for p in points), HEIGHT - BOTTOM, TOP, up.log)
    parts = [
        *_grid_up(y),
        *_grid_across(x, HEIGHT - BOTTOM),
        label(up.label, 0, 14),
        label(across.label, WIDTH - RIGHT, HEIGHT - 6, "end"),
        *(_curve(each, x, y) for each in series),
    ]
    samples = [(path("M-12 0H12", f"curve {s.colour}"), _point(s, (0.0, 0.0))) for s in series]
    return _with_legend(parts, HEIGHT, series, map(join, samples))


def chart_file(picture: Drawn, title: str, subject: str) -> Markup:
    """Return a chart as a file of its own."""
    framed = Drawn([moved((MARGIN, 0), *picture.parts)], picture.width + 2 * MARGIN, picture.height)
    style = resources("diagram/theme.css", "report/charts.css")
    return framed.file("chart", title, subject, style)


def _ends(intervals: Iterable[tuple[float, float]]) -> list[float]:
    """List all that must fit on an axis: the ends of the intervals."""
    ends = [end for value, half in intervals for end in (value - half, value + half)]
    return [end for end in ends if end >= 0]


def _curve(series: ChartSeries, x: Axis, y: Axis) -> Markup:
    places = [(x.place(point.x), y.place(point.y)) for point in series.points]
    parts = []
    for point, (px, py) in zip(series.points, places, strict=True):
        whiskers = ""
        if point.x_half > 0:
            whiskers += _interval_across(x.interval(point.x, point.x_half), py)
        if point.y_half > 0:
            ends = y.interval(point.y, point.y_half)
            whiskers += f"M{place((px, ends[0]))}V{number(ends[1])}"
            whiskers += "".join(f"M{place((px - CAP, end))}h{2 * CAP}" for end in ends)
        if whiskers:
            parts.append(path(whiskers, f"interval {series.colour}"))
    if len(places) > 1:
        parts.append(path(f"M{'L'.join(map(place, places))}", f"curve {series.colour}"))
    for point, at in zip(series.points, places, strict=True):
        parts.append(_point(series, at, element("title", point.title)))
    return element("g", *parts, class_="series")


def _interval_across(ends: tuple[float, float], y: float) -> str:
    caps = "".join(f"M{place((end, y - CAP))}v{2 * CAP}" for end in ends)
    return f"M{place((ends[0], y))}H{number(ends[1])}{caps}"


def _point(series: ChartSeries, at: Point, *title: Markup) -> Markup:
    return moved(at, *title, marker(series.style), class_=f"point {series.colour}")


def marker(style: int) -> Markup:
    """Draw one of six shapes, hollow in every other round of colours."""
    hollow = "hollow" if style // COLOURS % 2 else None
    return path(MARKERS[style % len(MARKERS)], hollow)


def bars(groups: Sequence[str], series: Sequence[ChartSeries], scale: Scale) -> Drawn:
    """Draw a group of bars for each name in `groups`; x of a point is the number of its group."""
    x = axis([p.y + p.y_half for s in series for p in s.points], 0, WIDTH - ROOM_FOR_VALUE)
    parts: list[Markup] = []
    top = 8.0
    for group, name in enumerate(groups):
        parts.append(label(name, 0, top + 11))
        top += 18
        for each, point in [(s, p) for s in series for p in s.points if p.x == group]:
            parts.append(_bar(each, point, x, top))
            top += BAR + BETWEEN_BARS
        top += BETWEEN_GROUPS
    bottom = top - BETWEEN_GROUPS + 4
    axes = [
        *_grid_across(x, bottom, top=4),
        label(scale.label, WIDTH - ROOM_FOR_VALUE, bottom + BOTTOM - 6, "end"),
    ]
    samples = [element("rect", x=-10, y=-6, width=20, height=12, class_=f"bar {s.colour}")
               for s in series]  # fmt: skip
    return _with_legend([*axes, *parts], bottom + BOTTOM, series, samples)


def _bar(series: ChartSeries, point: ChartPoint, x: Axis, top: float) -> Markup:
    end = x.place(point.y)
    middle = top + BAR / 2
    parts = [
        element("title", point.title),
        element("rect", y=top, width=max(0.5, end), height=BAR, class_=f"bar {series.colour}"),
    ]
    if point.y_half > 0:
        ends = x.interval(point.y, point.y_half)
        parts.append(path(_interval_across(ends, middle), "interval over"))
        end = max(end, ends[1])
    return element("g", *parts, label(short(point.y), end + 5, middle + 4, class_="tick"))


def _with_legend(
    parts: Sequence[Markup], height: float, series: Sequence[ChartSeries], samples: Iterable[Markup]
) -> Drawn:
    """Put below a chart what each colour and marker stands for."""
    names = [each.name for each in series]
    key = legend(map(LegendEntry, samples, names), WIDTH, height)
    return Drawn([*parts, *key.parts], WIDTH, height + key.height)


def _grid_up(y: Axis) -> Iterable[Markup]:
    for value in y.ticks(6):
        at = y.place(value)
        yield path(f"M{place((LEFT, at))}H{WIDTH - RIGHT}", y.line(value))
        yield label(short(value), LEFT - 6, at + 4, "end", "tick")


def _grid_across(x: Axis, bottom: float, top: float = TOP) -> Iterable[Markup]:
    for value in x.ticks(6):
        at = x.place(value)
        yield path(f"M{place((at, top))}V{number(bottom)}", x.line(value))
        yield label(short(value), at, bottom + 16, "start" if at < 6 else "middle", "tick")


@dataclass(frozen=True)
class Axis:
    """Maps a value to its place between two ends."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = log10(low), log10(high), log10(max(value, low))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def interval(self, value: float, half: float) -> Point:
        """Return the places of both ends of an interval."""
        return self.place(max(self.low, value - half)), self.place(value + half)

    def line(self, value: float) -> str:
        """Return how the line at a value is drawn: as the axis, or as part of the grid."""
        return "axis" if value == self.low else "grid"

    def ticks(self, most: int) -> list[float]:
        if self.log:
            return _log_ticks(self.low, self.high, most)
        step = _step(self.high - self.low, most)
        first = ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, floor(self.high / step + 1e-9) + 1)]


def axis(
    values: Iterable[float], start: float, end: float, log: bool = False, most: int = 6
) -> Axis:
    """Return an axis for all values, from 0 unless it is logarithmic, that ends at a round one."""
    shown = [value for value in values if isfinite(value) and (value >= LEAST or not log)]
    if log and shown:
        first = bisect_right(ROUND, min(shown) * (1 + 1e-9)) - 1
        last = max(first + 1, bisect_left(ROUND, max(shown) * (1 - 1e-9)))
        return Axis(ROUND[first], ROUND[last], start, end, log=True)
    low, high = min(0.0, *shown, 0.0), max(0.0, *shown, 0.0)
    if high - low < LEAST:
        low, high = 0.0, 1.0
    step = _step(high - low, most)
    return Axis(floor(low / step) * step, ceil(high / step - 1e-9) * step, start, end)


def spans_wide(values: Iterable[float]) -> bool:
    """Tell whether the values are better seen on a logarithmic axis."""
    shown = [value for value in values if isfinite(value) and value > 0]
    return bool(shown) and max(shown) >= LOG_FROM * min(shown)


def _step(span: float, most: int) -> float:
    rough = span / most
    magnitude = 10.0 ** floor(log10(rough))
    return next((s * magnitude for s in STEPS if s * magnitude >= rough * (1 - 1e-9)), 10 * rough)


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    every = max(1, ceil(len(decades) / most))
    for digits in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [d * 10.0**n for n in decades[::every] for d in digits]
        found = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(found) <= most:
            break
    return found


def short(value: float) -> str:
    """Write a number as at an axis: 0, 0.25, 2.5, 40, 1.2k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (1 - 1e-9):
            return f"{_plain(value / size)}{letter}"
    return _plain(value)


def _plain(value: float) -> str:
    written = f"{value:.3g}"
    return f"{float(written):g}" if "e" in written and abs(value) >= 1e-4 else written
