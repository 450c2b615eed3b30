"""What diagrams and charts share: places, text, a legend in rows, and files of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from math import cos, pi, sin
from textwrap import wrap
from typing import NamedTuple

from flexgroup.diagram.markup import Markup, element, join, number

COLOURS = 8
"""How many the themes have for messages and series."""

LEGEND_ROW = 26.0
SYMBOL = 34.0
CHARACTER = 6.6
"""The width of a character of a legend, roughly."""
WIDE, WIDER = "mwMW#@%", 4.0
"""Characters that take more, and how much more."""
MARGIN = 16.0
LINE = 16.0
"""The distance from one line of notes to the next."""

Point = tuple[float, float]


class LegendEntry(NamedTuple):
    """A symbol, drawn around the origin, and what it means."""

    symbol: Markup
    words: str


class Drawn(NamedTuple):
    """What is drawn, and its width and height."""

    parts: Sequence[Markup]
    width: float
    height: float

    def svg(self, kind: str, subject: str, sized: bool = False, role: str = "img") -> Markup:
        """Return the picture as an element of a page, which says what it shows.

        Unless it is `sized`, it is as large as its place on the page. A picture with links in it
        is no image to who cannot see it, but a `group`.
        """
        return element(
            "svg",
            *self.parts,
            class_=kind,
            role=role,
            aria_label=subject,
            width=self.width if sized else None,
            height=self.height if sized else None,
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
        )

    def file(
        self, kind: str, title: str, subject: str, style: str, notes: Iterable[str] = ()
    ) -> Markup:
        """Return the picture as a file that needs nothing else to be looked at."""
        heading = wrap(title, int(self.width / 9))
        top = 20 + 20.0 * len(heading)
        below = list(notes)
        height = top + self.height + LINE * len(below)
        return element(
            "svg",
            element("title", title),
            element("desc", subject),
            element("style", Markup(style.replace(":root", f"svg.{kind.split()[0]}"))),
            element("rect", width="100%", height="100%", class_="background"),
            *(label(words, MARGIN, 26 + 20 * i, "start", "heading")
              for i, words in enumerate(heading)),
            element("g", *self.parts, transform=f"translate(0 {number(top)})"),
            *(label(note, MARGIN, top + self.height + LINE * i, "start", "time")
              for i, note in enumerate(below)),
            xmlns="http://www.w3.org/2000/svg",
            class_=kind,
            role="img",
            width=self.width,
            height=height,
            viewBox=f"0 0 {number(self.width)} {number(height)}",
        )  # fmt: skip


def place(point: Point) -> str:
    """Write a point of a path."""
    return f"{number(point[0])} {number(point[1])}"


def path(lines: str, class_: str | None = None) -> Markup:
    return element("path", d=lines, class_=class_)


def cross(radius: float, middle: Point = (0.0, 0.0)) -> str:
    """Return the lines of a diagonal cross."""
    x, y = middle
    r, side = radius, number(2 * radius)
    return f"M{place((x - r, y - r))}l{side} {side}M{place((x - r, y + r))}l{side} -{side}"


def polygon(corners: int, turned: float, radius: float, lower: float = 0.0) -> str:
    """Return the lines of a regular polygon whose first corner lies at this angle."""
    angles = [turned + 2 * pi * corner / corners for corner in range(corners)]
    points = [(radius * cos(angle), radius * sin(angle) + lower) for angle in angles]
    return f"M{'L'.join(map(place, points))}Z"


def label(
    text: str, x: float, y: float, anchor: str | None = None, class_: str | None = None
) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=class_)


def turned(point: Point, text: str, class_: str | None = None) -> Markup:
    """Return a text that is written upwards from this point."""
    return element("text", text, class_=class_, transform=f"translate({place(point)}) rotate(-90)")


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text that has no room: at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def moved(point: Point, *parts: object, class_: str | None = None) -> Markup:
    """Return parts that are drawn around the origin, around this point."""
    x, y = (round(value, 1) for value in point)
    return element("g", *parts, class_=class_, transform=f"translate({x:g} {y:g})")


def legend(entries: Iterable[LegendEntry], width: float, top: float) -> Drawn:
    """Draw the entries in rows of at most this width, the first of them below `top`."""
    drawn = []
    x, y = MARGIN, top + LEGEND_ROW / 2
    for symbol, words in entries:
        words = shortened(words, int((width - SYMBOL) / CHARACTER))
        wide = SYMBOL + _breadth(words) + 18
        if x > MARGIN and x + wide > width:
            x, y = MARGIN, y + LEGEND_ROW
        drawn.append(moved((x + SYMBOL / 2 - 4, y), symbol))
        drawn.append(label(words, x + SYMBOL, y + 4, "start", "key"))
        x += wide
    if not drawn:
        return Drawn((), width, 0.0)
    height = y + LEGEND_ROW / 2 + 6 - top
    return Drawn([element("g", join(drawn), class_="legend")], width, height)


def _breadth(words: str) -> float:
    return len(words) * CHARACTER + WIDER * sum(each in WIDE for each in words)


@cache
def resources(*names: str) -> str:
    """Return files of ours, such as the style sheet `diagram/theme.css`, as one text."""
    return "\n".join(files("flexgroup").joinpath(name).read_text("utf-8") for name in names)
