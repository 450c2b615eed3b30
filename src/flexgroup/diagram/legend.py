"""The legend of a space-time diagram: what occurs in it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from flexgroup.diagram import marks
from flexgroup.diagram.events import TraceEvent
from flexgroup.diagram.marks import Point, Stroke
from flexgroup.diagram.markup import Markup, element
from flexgroup.diagram.selection import Selection
from flexgroup.trace.schema import (
    CHOICE,
    CRASH,
    DELIVER,
    MULTICAST,
    RECOVER,
    SUSPECT,
    TIMER,
    VIEW,
)

ROW = 26.0
SYMBOL = 34.0
CHARACTER = 6.6
MARGIN = 16.0
MOST_MESSAGES = 12

WORDS = {
    CRASH: "crash, and not running",
    RECOVER: "recovery",
    VIEW: "view installed, with its number",
    TIMER: "timer ran out",
    CHOICE: "choice, with the option taken",
}

Class = Callable[[str, str | None], str]
"""The class of an element of some kind that concerns a message."""

Symbol = Callable[[float, float], Markup]
"""Draws a symbol around a point."""

Drawn = Callable[[Point, Point], Stroke]
"""Draws an arrow from one point to another."""


class Legend(NamedTuple):
    markup: Markup
    height: float


class LegendEntry(NamedTuple):
    """A symbol, drawn around a point, and what it means."""

    symbol: Symbol
    words: str


def legend(selection: Selection, elided: bool, class_: Class, width: float, top: float) -> Legend:
    """The entries in rows of at most this width."""
    drawn = []
    x, y = MARGIN, top + ROW / 2
    for entry in _entries(selection, elided, class_):
        wide = SYMBOL + len(entry.words) * CHARACTER + 18
        if x > MARGIN and x + wide > width:
            x, y = MARGIN, y + ROW
        drawn.append(entry.symbol(x + SYMBOL / 2 - 4, y))
        drawn.append(marks.label(entry.words, x + SYMBOL, y + 4, "start", "key"))
        x += wide
    if not drawn:
        return Legend(Markup(""), 0.0)
    return Legend(element("g", *drawn, class_="legend"), y + ROW / 2 + 6 - top)


def _entries(selection: Selection, elided: bool, class_: Class) -> Iterator[LegendEntry]:
    yield from _messages(selection, class_)
    events = [moment.mark for moment in selection.moments if moment.mark is not None]
    first = next(iter(selection.letters), None)

    def plain(class_of: str, kind: str) -> Symbol:
        return _symbol(kind, class_(class_of, first))

    kinds = {event.kind for event in events}
    if MULTICAST in kinds:
        yield LegendEntry(plain("mark multicast", MULTICAST), "multicast")
    if DELIVER in kinds:
        yield LegendEntry(plain("mark deliver", DELIVER), "delivery")
    if any(event.message is not None and event.place in selection.witness for event in events):
        yield LegendEntry(
            plain("mark witness", DELIVER), "filled, with its step: what the verdict names"
        )
    if selection.missing:
        yield LegendEntry(plain("mark missing", DELIVER), "not delivered")
    yield from _others(events)
    yield from _arrows(selection, class_, first)
    if selection.links:
        yield LegendEntry(
            _line(class_("link", first)), "multicast to delivery; no packets recorded"
        )
    if elided:
        yield LegendEntry(_line("lane elided"), "other events, not shown")


def _messages(selection: Selection, class_: Class) -> Iterator[LegendEntry]:
    for message, letter in list(selection.letters.items())[:MOST_MESSAGES]:
        multicast = selection.multicasts.get(message)

        def symbol(x: float, y: float, message: str = message, letter: str = letter) -> Markup:
            text = marks.label(letter, x, y + 4, "middle", "letter")
            swatch = element("path", d=f"M{x - 11:.1f} {y + 9:.1f}h22", class_="shaft")
            return element("g", swatch, text, class_=class_("mark swatch", message))

        words = f"message {message}"
        if multicast is not None:
            words += f" to {{{','.join(map(str, multicast.destinations))}}}"
        yield LegendEntry(symbol, words)


def _others(events: list[TraceEvent]) -> Iterator[LegendEntry]:
    for kind, words in WORDS.items():
        found = [event for event in events if event.kind == kind]
        if found:
            yield LegendEntry(_symbol(kind, f"mark {kind}"), words)
    suspicions = [event for event in events if event.kind == SUSPECT]
    if any(not event.is_trust for event in suspicions):
        yield LegendEntry(
            _symbol(SUSPECT, f"mark {SUSPECT}"), "suspicion, with the suspect's number"
        )
    if any(event.is_trust for event in suspicions):
        yield LegendEntry(_symbol(SUSPECT, f"mark {SUSPECT} trust"), "trusted again")


def _arrows(selection: Selection, class_: Class, first: str | None) -> Iterator[LegendEntry]:
    packets = selection.packets

    def entry(kind: str, words: str, stroke: Drawn, message: str | None = first) -> LegendEntry:
        def symbol(x: float, y: float) -> Markup:
            drawn = stroke((x - 12, y), (x + 12, y))
            return element(
                "g",
                element("path", d=drawn.shaft, class_="shaft"),
                element("path", d=drawn.tip),
                class_=class_(kind, message),
            )

        return LegendEntry(symbol, words)

    if any(packet.send and packet.receive for packet in packets):
        yield entry("packet", "packet", marks.arrow)
    if any(packet.is_copy for packet in packets):
        yield entry("packet copy", "its copy", lambda a, b: marks.arrow(a, b, tips=2))
    if any(packet.receive is None for packet in packets):
        if selection.complete:
            words = "packet that nobody received"
            yield entry("packet lost", words, lambda a, b: marks.lost(a, b, 0))
        else:
            words = "packet not received by the end"
            yield entry("packet unfinished", words, lambda a, b: marks.unfinished(a, b, 0))
    if any(packet.ends[0].message is None for packet in packets):
        yield entry("packet", "packet about no message", marks.arrow, None)


def _symbol(kind: str, class_: str) -> Symbol:
    return lambda x, y: element("g", marks.mark(kind, x, y), class_=class_)


def _line(class_: str) -> Symbol:
    return lambda x, y: element("line", x1=x - 12, y1=y, x2=x + 12, y2=y, class_=class_)
