"""Arrows as paths of an SVG: a shaft, which may be dashed, and a tip, which is not."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from flexgroup.report.markup import number

Place = tuple[float, float]

TIP = 6.0
BEND = 30.0
CROSS = 4.0


@dataclass(frozen=True)
class Stroke:
    shaft: str
    tip: str


def arrow(start: Place, end: Place, clear_start: float, clear_end: float) -> Stroke:
    """From start to end, stopping short of what is drawn there."""
    ux, uy = _direction(start, end)
    begin = (start[0] + ux * clear_start, start[1] + uy * clear_start)
    stop = (end[0] - ux * clear_end, end[1] - uy * clear_end)
    return Stroke(f"M{_point(begin)}L{_point(stop)}", _tip(stop, (ux, uy)))


def lost(start: Place, end: Place, clear_start: float) -> Stroke:
    """An arrow that ends in a cross."""
    x, y = end
    corners = [(x - CROSS, y - CROSS), (x + CROSS, y + CROSS)]
    others = [(x - CROSS, y + CROSS), (x + CROSS, y - CROSS)]
    cross = "".join(f"M{_point(a)}L{_point(b)}" for a, b in (corners, others))
    return Stroke(arrow(start, end, clear_start, 0.0).shaft, cross)


def arc(start: Place, end: Place, clear: float, down: bool) -> Stroke:
    """Back to the same time line, beside it."""
    (x1, y1), (x2, y2) = start, end
    if down:
        bend = (x1 - BEND, (y1 + y2) / 2)
        y1, y2 = y1 + clear, y2 - clear
    else:
        bend = ((x1 + x2) / 2, y1 - BEND)
        x1, x2 = x1 + clear, x2 - clear
    tip = _tip((x2, y2), _direction(bend, (x2, y2)))
    return Stroke(f"M{_point((x1, y1))}Q{_point(bend)} {_point((x2, y2))}", tip)


def _direction(start: Place, end: Place) -> Place:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = hypot(dx, dy) or 1.0
    return dx / length, dy / length


def _tip(at: Place, direction: Place) -> str:
    (x, y), (ux, uy) = at, direction
    left = (x - TIP * (ux + uy / 2), y - TIP * (uy - ux / 2))
    right = (x - TIP * (ux - uy / 2), y - TIP * (uy + ux / 2))
    return f"M{_point(left)}L{_point(at)}L{_point(right)}"


def _point(place: Place) -> str:
    return f"{number(place[0])} {number(place[1])}"
