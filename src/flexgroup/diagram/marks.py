"""The shapes of a space-time diagram: arrows for packets, and a mark for each kind of event.

A mark is drawn around the origin, and moved to where it belongs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, pi

from flexgroup.diagram.events import TraceEvent
from flexgroup.diagram.markup import Markup, element, join, number
from flexgroup.diagram.picture import Point, cross, label, path, place, polygon
from flexgroup.trace.schema import CHOICE, CRASH, MULTICAST, RECOVER, SUSPECT, TIMER, VIEW

MARK = 10.0
"""The distance from the middle of a mark to its border."""

RING = 14.0
"""The distance from the middle of a mark that is emphasised to the border of its ring."""

TIP = 6.0
BEND = 30.0
CROSS = 4.0

POLYGONS = {VIEW: (6, 0.0, 1.0), CHOICE: (4, 0.0, 2.5), SUSPECT: (3, -pi / 2, 4.0)}
"""The marks that have corners: how many, where the first is, and how far beyond the border."""

LOWER = {SUSPECT: 2.0}
"""How far below the others a mark is drawn, so that a letter fits."""


@dataclass(frozen=True)
class Stroke:
    """An arrow as paths of an SVG: a shaft, which may be dashed, and a tip, which is not."""

    shaft: str
    tip: str

    def markup(self) -> Markup:
        return join([path(self.shaft, "shaft"), path(self.tip)])


def arrow(
    start: Point,
    end: Point,
    clear_start: float = 0.0,
    clear_end: float = 0.0,
    tips: int = 1,
    bend: float = 0.0,
) -> Stroke:
    """Draw an arrow from start to end that stops short of what is drawn there.

    A bent one passes the middle between them at the given distance.
    """
    middle = bent(start, end, bend, 0.5)
    control = (2 * middle[0] - (start[0] + end[0]) / 2, 2 * middle[1] - (start[1] + end[1]) / 2)
    ux, uy = _direction(start, control)
    vx, vy = _direction(control, end)
    begin = (start[0] + ux * clear_start, start[1] + uy * clear_start)
    stop = (end[0] - vx * clear_end, end[1] - vy * clear_end)
    heads = [(stop[0] - vx * TIP * i, stop[1] - vy * TIP * i) for i in range(tips)]
    way = f"Q{place(control)} {place(stop)}" if bend else f"L{place(stop)}"
    return Stroke(f"M{place(begin)}{way}", "".join(_tip(head, (vx, vy)) for head in heads))


def bent(start: Point, end: Point, bend: float, share: float) -> Point:
    """Return the point of a bent line after this share of the way."""
    ux, uy = _direction(start, end)
    aside = 4 * share * (1 - share) * bend
    return (
        start[0] + share * (end[0] - start[0]) - uy * aside,
        start[1] + share * (end[1] - start[1]) + ux * aside,
    )


def not_received(start: Point, end: Point, clear_start: float, complete: bool) -> Stroke:
    """Draw an arrow that ends in a cross or, if nobody knows where it leads, in a small ring."""
    if complete:
        return Stroke(arrow(start, end, clear_start).shaft, cross(CROSS, end))
    r = CROSS - 1
    half = f"a{number(r)} {number(r)} 0 1 0"
    ring = f"M{place((end[0] - r, end[1]))}{half} {number(2 * r)} 0{half} -{number(2 * r)} 0"
    return Stroke(arrow(start, end, clear_start, r).shaft, ring)


def arc(start: Point, end: Point, clear: float, down: bool) -> Stroke:
    """Draw an arrow beside a time line from one place on it to another."""
    (x1, y1), (x2, y2) = start, end
    if down:
        bend = (x1 - BEND, (y1 + y2) / 2)
        y1, y2 = y1 + clear, y2 - clear
    else:
        bend = ((x1 + x2) / 2, y1 - BEND)
        x1, x2 = x1 + clear, x2 - clear
    tip = _tip((x2, y2), _direction(bend, (x2, y2)))
    return Stroke(f"M{place((x1, y1))}Q{place(bend)} {place((x2, y2))}", tip)


def look_of(event: TraceEvent) -> str:
    """Return the classes by which the mark of an event is drawn."""
    return f"{event.kind} trust" if event.is_trust else event.kind


def mark(kind: str, text: str = "") -> Markup:
    """Draw the mark of an event of this kind, with a letter or a number in it if there is one."""
    if kind in PLAIN:
        return PLAIN[kind]
    shape = outline(kind, MARK)
    lower = 4 + 1.5 * LOWER.get(kind, 0.0)
    return join([shape, label(text, 0, lower, "middle", "letter")]) if text else shape


def outline(kind: str, radius: float, class_: str = "shape") -> Markup:
    """Draw the outline by which one sees of which kind an event is."""
    if kind == MULTICAST:
        side = 2 * radius - 1
        corner = -side / 2
        return element("rect", x=corner, y=corner, width=side, height=side, rx=2, class_=class_)
    if kind in POLYGONS:
        corners, turned, beyond = POLYGONS[kind]
        return path(polygon(corners, turned, radius + beyond, LOWER.get(kind, 0.0)), class_)
    return circle(radius, class_)


def circle(radius: float, class_: str = "shape") -> Markup:
    return element("circle", r=radius, class_=class_)


def _direction(start: Point, end: Point) -> Point:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = hypot(dx, dy) or 1.0
    return dx / length, dy / length


def _tip(at: Point, direction: Point) -> str:
    (x, y), (ux, uy) = at, direction
    left = (x - TIP * (ux + uy / 2), y - TIP * (uy - ux / 2))
    right = (x - TIP * (ux - uy / 2), y - TIP * (uy + ux / 2))
    return f"M{place(left)}L{place(at)}L{place(right)}"


PLAIN = {
    CRASH: join([circle(MARK + 1, "behind"), path(cross(MARK - 2), "stroke")]),
    # Three quarters of a circle with a tip: it goes round again.
    RECOVER: join(
        [
            circle(MARK + 1, "behind"),
            path(f"M0 -7A7 7 0 1 1 -7 0{_tip((-7.0, -2.0), (0.0, -1.0))}", "stroke"),
        ]
    ),
    # The hands of a clock.
    TIMER: join([circle(7.5), path("M0 -4.5L0 0L3.5 2", "stroke")]),
}
"""The marks without a letter."""
