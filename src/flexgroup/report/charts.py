"""Charts as inline SVG: curves with confidence intervals, and bars, with their axes.

Colours are those of the classes in `style.css`, so that a chart follows the page into the dark; a
series also has a marker of its own, for eyes and printers that do not tell colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, cos, floor, isfinite, log10, pi, sin

from flexgroup.diagram.markup import Markup, element, join, number
from flexgroup.report.tables import number_text

COLOURS = 8
WIDTH = 400
HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 48, 18, 28, 44

BAR = 12
BETWEEN_BARS = 2
BETWEEN_GROUPS = 12
ROOM_FOR_VALUE = 54

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

LEAST = 1e-300
"""Smaller values count as nothing, because no step fits below them."""

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


@dataclass(frozen=True)
class Scale:
    label: str
    log: bool = False


def curves(series: Sequence[ChartSeries], across: Scale, up: Scale, subject: str) -> Markup:
    """Draw a curve for each series, its points joined in the order in which they are given."""
    points = [point for each in series for point in each.points]
    x = axis(_reach(points, "x"), LEFT, WIDTH - RIGHT, across.log, most=5)
    y = axis(_reach(points, "y"), HEIGHT - BOTTOM, TOP, up.log)
    return _chart(
        HEIGHT,
        subject,
        *_grid_up(y),
        *_grid_across(x, HEIGHT - BOTTOM),
        _text(up.label, 0, 14),
        _text(across.label, WIDTH - RIGHT, HEIGHT - 6, "end"),
        *(_curve(each, x, y) for each in series),
    )


def _reach(points: Sequence[ChartPoint], name: str) -> list[float]:
    """List all that must fit on an axis: the ends of the intervals."""
    values = [(getattr(point, name), getattr(point, f"{name}_half")) for point in points]
    return [end for value, half in values for end in (value - half, value + half) if end >= 0]


def _curve(series: ChartSeries, x: Axis, y: Axis) -> Markup:
    colour = f"s{series.style % COLOURS}"
    places = [(x.place(point.x), y.place(point.y)) for point in series.points]
    parts = [_interval(point, x, y, colour) for point in series.points]
    if len(places) > 1:
        steps = "L".join(f"{number(px)} {number(py)}" for px, py in places)
        parts.append(element("path", d=f"M{steps}", class_=f"curve {colour}"))
    for point, (px, py) in zip(series.points, places, strict=True):
        parts.append(
            element(
                "g",
                element(
                    "title", point.title or f"{series.name}: {short(point.x)}, {short(point.y)}"
                ),
                marker(px, py, series.style),
                class_=f"point {colour}",
            )
        )
    return element("g", *parts, class_="series")


def _interval(point: ChartPoint, x: Axis, y: Axis, colour: str) -> Markup:
    px, py = x.place(point.x), y.place(point.y)
    path = ""
    if point.x_half > 0:
        low, high = x.place(max(x.low, point.x - point.x_half)), x.place(point.x + point.x_half)
        path += f"M{number(low)} {number(py)}H{number(high)}"
        path += "".join(f"M{number(end)} {number(py - 3)}v6" for end in (low, high))
    if point.y_half > 0:
        low, high = y.place(max(y.low, point.y - point.y_half)), y.place(point.y + point.y_half)
        path += f"M{number(px)} {number(low)}V{number(high)}"
        path += "".join(f"M{number(px - 3)} {number(end)}h6" for end in (low, high))
    return element("path", d=path, class_=f"interval {colour}") if path else Markup()


def bars(
    groups: Sequence[str],
    series: Sequence[ChartSeries],
    scale: Scale,
    subject: str,
) -> Markup:
    """Draw a group of bars for each name in `groups`; x of a point is the number of its group."""
    x = axis([p.y + p.y_half for s in series for p in s.points], 0, WIDTH - ROOM_FOR_VALUE)
    parts: list[Markup] = []
    top = 8.0
    for group, name in enumerate(groups):
        here = [(s, p) for s in series for p in s.points if p.x == group]
        parts.append(_text(name, 0, top + 11))
        top += 18
        for each, point in here:
            parts.append(_bar(each, point, x, top))
            top += BAR + BETWEEN_BARS
        top += BETWEEN_GROUPS
    bottom = top - BETWEEN_GROUPS + 4
    return _chart(
        round(bottom + BOTTOM),
        subject,
        *_grid_across(x, bottom, top=4),
        _text(scale.label, WIDTH - ROOM_FOR_VALUE, bottom + BOTTOM - 6, "end"),
        *parts,
    )


def _bar(series: ChartSeries, point: ChartPoint, x: Axis, top: float) -> Markup:
    end = x.place(point.y)
    middle = top + BAR / 2
    whisker = Markup()
    if point.y_half > 0:
        low, high = (
            x.place(max(0.0, point.y - point.y_half)),
            x.place(point.y + point.y_half),
        )
        whisker = element(
            "path",
            d=f"M{number(low)} {number(middle)}H{number(high)}"
            + "".join(f"M{number(at)} {number(middle - 3)}v6" for at in (low, high)),
            class_="interval over",
        )
        end = max(end, high)
    return element(
        "g",
        element("title", point.title or f"{series.name}: {number_text(point.y)}"),
        element(
            "rect",
            x=0,
            y=top,
            width=max(0.5, x.place(point.y)),
            height=BAR,
            class_=f"bar s{series.style % COLOURS}",
        ),
        whisker,
        _text(short(point.y), end + 5, middle + 4, class_="tick"),
    )


def marker(x: float, y: float, style: int) -> Markup:
    """Draw one of six shapes, hollow in every other round of colours."""
    hollow = "hollow" if style // COLOURS % 2 else None
    kind = style % 6
    if kind == 0:
        return element("circle", cx=x, cy=y, r=3.6, class_=hollow)
    if kind == 1:
        return element("rect", x=x - 3.3, y=y - 3.3, width=6.6, height=6.6, class_=hollow)
    if kind == 4:
        return element(
            "path",
            d=f"M{number(x - 3.5)} {number(y - 3.5)}l7 7M{number(x - 3.5)} {number(y + 3.5)}l7 -7",
        )
    corners = {2: (3, -pi / 2, 4.8), 3: (4, 0.0, 4.8), 5: (3, pi / 2, 4.8)}[kind]
    return element("path", d=_polygon(x, y, *corners), class_=hollow)


def _polygon(x: float, y: float, corners: int, turned: float, radius: float) -> str:
    angles = [turned + 2 * pi * corner / corners for corner in range(corners)]
    places = [f"{number(x + radius * cos(a))} {number(y + radius * sin(a))}" for a in angles]
    return f"M{'L'.join(places)}Z"


def legend(names: Sequence[tuple[str, int]], line: bool = True) -> Markup:
    """Draw what each colour and marker stands for."""
    items = []
    for name, style in names:
        colour = f"s{style % COLOURS}"
        sample = (
            join(
                [
                    element("path", d="M1 6H25", class_=f"curve {colour}"),
                    element("g", marker(13, 6, style), class_=f"point {colour}"),
                ]
            )
            if line
            else element("rect", x=3, y=0, width=20, height=12, class_=f"bar {colour}")
        )
        items.append(
            element("li", element("svg", sample, viewBox="0 0 26 12", aria_hidden="true"), name)
        )
    return element("ul", *items, class_="legend")


def _chart(height: float, subject: str, *parts: Markup) -> Markup:
    return element(
        "svg",
        *parts,
        class_="chart",
        role="img",
        aria_label=subject,
        viewBox=f"0 0 {WIDTH} {number(height)}",
    )


def _grid_up(y: Axis) -> list[Markup]:
    parts = []
    for value in y.ticks(6):
        at = y.place(value)
        kind = "axis" if value == y.low else "grid"
        parts.append(element("path", d=f"M{LEFT} {number(at)}H{WIDTH - RIGHT}", class_=kind))
        parts.append(_text(short(value), LEFT - 6, at + 4, "end", "tick"))
    return parts


def _grid_across(x: Axis, bottom: float, top: float = TOP) -> list[Markup]:
    parts = []
    for value in x.ticks(6):
        at = x.place(value)
        kind = "axis" if value == x.low else "grid"
        parts.append(
            element("path", d=f"M{number(at)} {number(top)}V{number(bottom)}", class_=kind)
        )
        anchor = "start" if at < 6 else "middle"
        parts.append(_text(short(value), at, bottom + 16, anchor, "tick"))
    return parts


def _text(
    words: str, x: float, y: float, anchor: str | None = None, class_: str | None = None
) -> Markup:
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=class_)


@dataclass(frozen=True)
class Axis:
    """Maps a value to its place between two ends."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        if self.log:
            share = (log10(max(value, self.low)) - log10(self.low)) / (
                log10(self.high) - log10(self.low)
            )
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

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
        low, high = min(shown), max(shown)
        return Axis(_round_down(low), _round_up(high, low), start, end, log=True)
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


def _round_down(value: float) -> float:
    magnitude = 10.0 ** floor(log10(value))
    return max(s for s in (1.0, 2.0, 5.0) if s * magnitude <= value * (1 + 1e-9)) * magnitude


def _round_up(value: float, above: float) -> float:
    magnitude = 10.0 ** floor(log10(value))
    found = min(s for s in (1.0, 2.0, 5.0, 10.0) if s * magnitude >= value * (1 - 1e-9)) * magnitude
    return found if found > _round_down(above) else found * 2


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
