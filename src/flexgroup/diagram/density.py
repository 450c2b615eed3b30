"""How many events each process has over time: what a run looks like from so far away that single
events cannot be seen.

Every cell is a process, or several, for some time; its colour is the stronger, the more events it
has. Cells, times and names are links. Lines run across for a wide screen, or down for a narrow one,
as those of space-time diagrams do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from flexgroup.diagram import picture
from flexgroup.diagram.markup import Markup, element
from flexgroup.diagram.picture import LegendEntry, cross, label, moved, path, shortened, turned

SHADES = 6

MOST_ABOVE = 5
"""A band that runs down has so many characters above it, or a name that is written upwards."""

LONGEST_NAME = 18
CHARACTER = 6.6


@dataclass(frozen=True)
class Band:
    """A process, or several that have one line."""

    kind: str
    """What stands above the first of a kind: processes, or clients."""
    lines: tuple[str, ...]
    """What stands above it where it runs down."""
    called: str
    """The name where there is room for more."""
    words: str
    href: str


@dataclass(frozen=True)
class Slice:
    """Some time, which all cells of a row or a column share."""

    name: str
    words: str
    href: str


@dataclass(frozen=True)
class Cell:
    """What a band has in a slice."""

    count: int
    words: str
    href: str
    crash: bool = False
    named: bool = False
    """Whether an event is in it that is to be found."""


@dataclass(frozen=True)
class Layout:
    """Where bands and slices are drawn."""

    down: bool
    most_bands: int
    slices: int
    along: float
    """How much of the axis of time a slice takes."""
    band: tuple[float, float]
    """The smallest and the largest breadth of a band."""
    breadth: float
    """How broad all bands are together, if there is room."""
    side: float
    """The room for what stands before the first slice of a band, or the first band of a slice."""
    top: float
    every: int
    """Each so many slices, one has its time written beside it."""
    legend: float
    upwards: float = 0.0
    """The room above bands for names that are written upwards."""


ACROSS = Layout(
    down=False, most_bands=40, slices=80, along=13.5, band=(14, 26), breadth=420, side=96, top=26,
    every=8, legend=900,
)  # fmt: skip
DOWN = Layout(
    down=True, most_bands=8, slices=48, along=16, band=(20, 40), breadth=244, side=82, top=52,
    every=2, legend=326,
)  # fmt: skip

Cells = Mapping[tuple[int, int], Cell]
"""The cells with events, by the number of their band and of their slice."""


def density(
    layout: Layout,
    bands: Sequence[Band],
    slices: Sequence[Slice],
    cells: Cells,
    subject: str,
    named: str,
) -> Markup:
    """Return the picture as an element of a page; cells without events are not links. `named` says
    in the legend what is to be found in cells with a frame."""
    longest = min(LONGEST_NAME, max((len(band.called) for band in bands), default=0))
    if layout.down and any(len(line) > MOST_ABOVE for band in bands for line in band.lines):
        upwards = longest * CHARACTER
        layout = replace(layout, top=layout.top + upwards, upwards=upwards)
    elif not layout.down:
        layout = replace(layout, side=max(layout.side, longest * CHARACTER + 12))
    scale = _Scale([cell.count for cell in cells.values()])
    least, widest = layout.band
    breadth = max(least, min(widest, layout.breadth / max(1, len(bands))))
    drawing = _Drawing(layout, breadth, scale)
    parts = [
        *drawing.bands(bands, len(slices)),
        *drawing.slices(slices, len(bands)),
        *(drawing.cell(at, cell) for at, cell in cells.items()),
    ]
    along, aside = layout.along * len(slices), breadth * len(bands)
    width = layout.side + (aside if layout.down else along) + 12
    height = layout.top + (along if layout.down else aside) + 8
    key = picture.legend(_legend(scale, cells, named), max(width, layout.legend), height)
    drawn = picture.Drawn([*parts, *key.parts], max(width, layout.legend), height + key.height)
    kind = f"space-time density {'down' if layout.down else 'across'}"
    return drawn.svg(kind, subject, sized=True, role="group")


class _Scale:
    """Which shade stands for how many events: each for some times as many as the one before."""

    def __init__(self, counts: Sequence[int]) -> None:
        least, self.most = min(counts, default=1), max(counts, default=1)
        steps = [float((self.most / least) ** (shade / SHADES)) for shade in range(SHADES)]
        self.bounds = sorted({round(least * step) for step in steps})

    def shade(self, count: int) -> int:
        """Return the class of so many events, from 1 on."""
        return sum(bound <= count for bound in self.bounds) + SHADES - len(self.bounds)

    def ranges(self) -> Iterator[tuple[int, int, int]]:
        """Yield each shade with the least and the largest number that it stands for."""
        for least, beyond in pairwise([*self.bounds, self.most + 1]):
            yield self.shade(least), least, beyond - 1


class _Drawing:
    def __init__(self, layout: Layout, breadth: float, scale: _Scale) -> None:
        self.layout = layout
        self.breadth = breadth
        self.scale = scale

    def _rect(self, band: float, at: float, bands: float, slices: float, class_: str) -> Markup:
        """Draw what reaches over so many bands and slices."""
        layout = self.layout
        aside, along = band * self.breadth, at * layout.along
        broad, long = bands * self.breadth, slices * layout.along
        if layout.down:
            aside, along, broad, long = along, aside, long, broad
        return element("rect", x=layout.side + along, y=layout.top + aside,
                       width=long, height=broad, class_=class_)  # fmt: skip

    def bands(self, bands: Sequence[Band], slices: int) -> Iterator[Markup]:
        layout = self.layout
        kinds: list[str] = []
        for number, band in enumerate(bands):
            yield self._rect(number, 0, 1, slices, "band")
            middle = (number + 0.5) * self.breadth
            if layout.down:
                lines = self._heading(band, layout.side + middle)
                if band.kind not in kinds:
                    x = layout.side + number * self.breadth
                    above = layout.top - layout.upwards - 26
                    above -= 12 * (len(kinds) == 0 and bands[-1].kind != band.kind)
                    yield label(band.kind, x, above, "start", "kind")
            else:
                y = layout.top + middle + 4
                told = shortened(band.called, LONGEST_NAME)
                lines = [label(told, layout.side - 6, y, "end", "lane")]
            kinds.append(band.kind)
            yield _link(band.href, band.words, *lines)

    def _heading(self, band: Band, x: float) -> list[Markup]:
        """Write what stands above a band: a word upwards, where it is no number."""
        top = self.layout.top - 4
        if max(map(len, band.lines)) > MOST_ABOVE:
            return [turned((x + 4, top), shortened(band.lines[0], LONGEST_NAME), "lane")]
        return [
            label(line, x, top - 10 * place, "middle", "lane")
            for place, line in enumerate(reversed(band.lines))
        ]

    def slices(self, slices: Sequence[Slice], bands: int) -> Iterator[Markup]:
        layout = self.layout
        for number, each in enumerate(slices):
            along = number * layout.along
            if layout.down:
                strip = element("rect", x=0, y=layout.top + along, width=layout.side - 2,
                                height=layout.along, class_="strip")  # fmt: skip
                name = label(each.name, layout.side - 6, layout.top + along + 12, "end", "time")
            else:
                strip = element("rect", x=layout.side + along, y=layout.top - 22,
                                width=layout.along, height=20, class_="strip")  # fmt: skip
                name = label(each.name, layout.side + along, layout.top - 8, "start", "time")
            written = [name] if number % layout.every == 0 else []
            yield _link(each.href, each.words, strip, *written)

    def cell(self, at: tuple[int, int], cell: Cell) -> Markup:
        band, slice_ = at
        parts = [self._rect(band, slice_, 1, 1, f"cell n{self.scale.shade(cell.count)}")]
        layout = self.layout
        middle = (slice_ + 0.5) * layout.along, (band + 0.5) * self.breadth
        x, y = reversed(middle) if layout.down else middle
        if cell.crash:
            mark = path(cross(4), "stroke")
            parts.append(moved((layout.side + x, layout.top + y), mark, class_="crash"))
        if cell.named:
            parts.append(self._rect(band, slice_, 1, 1, "named"))
        # With the keyboard, times and names lead everywhere; there may be thousands of cells.
        return _link(cell.href, cell.words, *parts, tabindex="-1")


def _link(href: str, words: str, *parts: Markup, tabindex: str | None = None) -> Markup:
    return element("a", element("title", words), *parts, href=href, tabindex=tabindex)


def _legend(scale: _Scale, cells: Cells, named: str) -> Iterator[LegendEntry]:
    for shade, least, most in scale.ranges():
        told = f"{least:,}" if least == most else f"{least:,}-{most:,}"
        swatch = element("rect", x=-7.0, y=-7.0, width=14, height=14, class_=f"cell n{shade}")
        yield LegendEntry(swatch, f"{told} {'event' if told == '1' else 'events'}")
    if any(cell.crash for cell in cells.values()):
        yield LegendEntry(element("g", path(cross(4), "stroke"), class_="crash"), "crash")
    if any(cell.named for cell in cells.values()):
        box = element("rect", x=-7.0, y=-7.0, width=14, height=14, class_="named")
        yield LegendEntry(box, named)
