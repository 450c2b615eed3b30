"""The shapes of a space-time diagram: arrows for packets, and a mark for each kind of event."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, hypot, pi, sin

from flexgroup.diagram.markup import Markup, element, join, number
from flexgroup.trace.schema import CHOICE, CRASH, DELIVER, MULTICAST, RECOVER, SUSPECT, TIMER, VIEW

Point = tuple[float, float]

MARK = 10.0
"""The distance from the middle of a mark to its border."""

RING = 14.0
"""The distance from the middle of a mark that is emphasised to the border of its ring."""

TIP = 6.0
BEND = 30.0
CROSS = 4.0


@dataclass(frozen=True)
class Stroke:
    """An arrow as paths of an SVG: a shaft, which may be dashed, and a tip, which is not."""

    shaft: str
    tip: str


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
    way = f"Q{_point(control)} {_point(stop)}" if bend else f"L{_point(stop)}"
    return Stroke(f"M{_point(begin)}{way}", "".join(_tip(head, (vx, vy)) for head in heads))


def bent(start: Point, end: Point, bend: float, share: float) -> Point:
    """Return the point of a bent line after this share of the way."""
    ux, uy = _direction(start, end)
    aside = 4 * share * (1 - share) * bend
    return (
        start[0] + share * (end[0] - start[0]) - uy * aside,
        start[1] + share * (end[1] - start[1]) + ux * aside,
    )


def unfinished(start: Point, end: Point, clear_start: float) -> Stroke:
    """Draw an arrow that ends in a small ring: nobody knows where it leads."""
    x, y = end
    r = number(CROSS - 1)
    ring = f"M{_point((x - CROSS + 1, y))}a{r} {r} 0 1 0 {number(2 * CROSS - 2)} 0"
    ring += f"a{r} {r} 0 1 0 -{number(2 * CROSS - 2)} 0"
    return Stroke(arrow(start, end, clear_start, CROSS - 1).shaft, ring)


def lost(start: Point, end: Point, clear_start: float) -> Stroke:
    """Draw an arrow that ends in a cross."""
    x, y = end
    corners = [(x - CROSS, y - CROSS), (x + CROSS, y + CROSS)]
    others = [(x - CROSS, y + CROSS), (x + CROSS, y - CROSS)]
    cross = "".join(f"M{_point(a)}L{_point(b)}" for a, b in (corners, others))
    return Stroke(arrow(start, end, clear_start).shaft, cross)


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
    return Stroke(f"M{_point((x1, y1))}Q{_point(bend)} {_point((x2, y2))}", tip)


def mark(kind: str, x: float, y: float, text: str = "") -> Markup:
    """Draw the mark of an event of this kind, with a letter or a number in it if there is one."""
    if kind in _PLAIN:
        return _PLAIN[kind](x, y)
    shape = outline(kind, x, y, MARK)
    lower = 3.0 if kind == SUSPECT else 0.0
    return join([shape, label(text, x, y + 4 + lower, "middle", "letter")]) if text else shape


def outline(kind: str, x: float, y: float, radius: float, class_: str = "shape") -> Markup:
    """Draw the outline by which one sees of which kind an event is."""
    if kind == MULTICAST:
        side = 2 * radius - 1
        return element(
            "rect", x=x - side / 2, y=y - side / 2, width=side, height=side, rx=2, class_=class_
        )
    if kind == VIEW:
        return _polygon(x, y, radius + 1, 6, 0.0, class_)
    if kind == CHOICE:
        return _polygon(x, y, radius + 2.5, 4, 0.0, class_)
    if kind == SUSPECT:
        return _polygon(x, y + 2, radius + 4, 3, -pi / 2, class_)
    assert kind in (DELIVER, CRASH, RECOVER, TIMER)
    return circle(x, y, radius, class_)


def circle(x: float, y: float, radius: float = MARK, class_: str = "shape") -> Markup:
    return element("circle", cx=x, cy=y, r=radius, class_=class_)


def label(text: str, x: float, y: float, anchor: str, class_: str) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=class_)


def _polygon(x: float, y: float, radius: float, corners: int, start: float, class_: str) -> Markup:
    """Draw a regular polygon whose first corner lies at this angle."""
    angles = [start + 2 * pi * corner / corners for corner in range(corners)]
    points = [(x + radius * cos(angle), y + radius * sin(angle)) for angle in angles]
    return element("path", d=f"M{'L'.join(map(_point, points))}Z", class_=class_)


def _cross(x: float, y: float) -> Markup:
    r = MARK - 2
    ends = [((x - r, y - r), (x + r, y + r)), ((x - r, y + r), (x + r, y - r))]
    path = "".join(f"M{_point(start)}L{_point(end)}" for start, end in ends)
    return join([circle(x, y, MARK + 1, "behind"), element("path", d=path, class_="stroke")])


def _clock(x: float, y: float) -> Markup:
    hands = f"M{_point((x, y - 4.5))}L{_point((x, y))}L{_point((x + 3.5, y + 2))}"
    return join([circle(x, y, 7.5), element("path", d=hands, class_="stroke")])


def _restart(x: float, y: float) -> Markup:
    """Draw three quarters of a circle with a tip: it goes round again."""
    r = MARK - 3
    arc = f"M{_point((x, y - r))}A{number(r)} {number(r)} 0 1 1 {_point((x - r, y))}"
    tip = _tip((x - r, y - 2), (0.0, -1.0))
    return join([circle(x, y, MARK + 1, "behind"), element("path", d=arc + tip, class_="stroke")])


_PLAIN = {CRASH: _cross, RECOVER: _restart, TIMER: _clock}


def _direction(start: Point, end: Point) -> Point:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = hypot(dx, dy) or 1.0
    return dx / length, dy / length


def _tip(at: Point, direction: Point) -> str:
    (x, y), (ux, uy) = at, direction
    left = (x - TIP * (ux + uy / 2), y - TIP * (uy - ux / 2))
    right = (x - TIP * (ux - uy / 2), y - TIP * (uy + ux / 2))
    return f"M{_point(left)}L{_point(at)}L{_point(right)}"


def _point(place: Point) -> str:
    return f"{number(place[0])} {number(place[1])}"
