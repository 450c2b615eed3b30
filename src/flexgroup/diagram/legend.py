"""The legend of a space-time diagram: what occurs in it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from flexgroup.diagram.marks import Stroke, arrow, look_of, mark, not_received
from flexgroup.diagram.markup import Markup, element
from flexgroup.diagram.picture import LegendEntry, label, path
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

MOST_MESSAGES = 12
ENDS = (-12.0, 0.0), (12.0, 0.0)
"""Where a line begins and ends."""

OTHERS = {
    CRASH: "crash, and not running",
    RECOVER: "recovery",
    VIEW: "view installed, with its number",
    TIMER: "timer ran out",
    CHOICE: "choice, with the option taken",
    SUSPECT: "suspicion, with the suspect's number",
    f"{SUSPECT} trust": "trusted again",
}
"""What the marks of events are that concern no message, by how they look."""

ClassOf = Callable[[str, str | None], str]
"""The class of an element of some kind that concerns a message."""


def entries(
    selection: Selection, elided: bool, class_of: ClassOf, emphasised: str
) -> list[LegendEntry]:
    """Return what is to be explained; `emphasised` is what marks with a ring are."""
    events = [moment.mark for moment in selection.moments if moment.mark is not None]
    looks = {look_of(event) for event in events}
    named = [event for event in events if event.message and event.place in selection.witness]
    packets = selection.packets
    first = next(iter(selection.letters), None)

    def about_one(kind: str) -> str:
        return class_of(kind, first)

    late = "packet that nobody received" if selection.complete else "packet not received by the end"
    everything = [
        (MULTICAST in looks, _mark(MULTICAST, about_one("mark multicast")), "multicast"),
        (DELIVER in looks, _mark(DELIVER, about_one("mark deliver")), "delivery"),
        (named, _mark(DELIVER, about_one("mark witness")),
         f"filled, step n: {emphasised}"),
        (selection.missing, _mark(DELIVER, about_one("mark missing")), "not delivered"),
        *((look in looks, _mark(look.split()[0], f"mark {look}"), _of_others(selection, look))
          for look in OTHERS),
        (any(packet.send and packet.receive for packet in packets),
         _arrow(arrow(*ENDS), about_one("packet")), "packet"),
        (any(packet.is_copy for packet in packets),
         _arrow(arrow(*ENDS, tips=2), about_one("packet copy")), "its copy"),
        (any(packet.receive is None for packet in packets),
         _arrow(not_received(*ENDS, 0, selection.complete),
                about_one(f"packet {selection.ending}")), late),
        (any(packet.ends[0].message is None for packet in packets),
         _arrow(arrow(*ENDS), class_of("packet", None)), "packet about no message"),
        (selection.links, _line(about_one("link")), "multicast to delivery; no packets recorded"),
        (elided, _line("lane elided"), "other events, not shown"),
    ]  # fmt: skip
    shown = list(selection.letters)[:MOST_MESSAGES]
    return [
        *(_message(selection, message, class_of) for message in shown),
        *(LegendEntry(symbol, words) for occurs, symbol, words in everything if occurs),
    ]


def _of_others(selection: Selection, look: str) -> str:
    # A name has no room in the mark of a suspicion.
    return "suspicion" if look == SUSPECT and selection.names.nodes else OTHERS[look]


def _message(selection: Selection, message: str, class_of: ClassOf) -> LegendEntry:
    multicast = selection.multicasts.get(message)
    words = f"message {selection.names.message(message)}"
    if multicast is not None:
        words += f" to {{{selection.names.listed(multicast.destinations)}}}"
    swatch = path("M-11 9h22", "shaft")
    letter = label(selection.letters[message], 0, 4, "middle", "letter")
    return LegendEntry(element("g", swatch, letter, class_=class_of("mark swatch", message)), words)


def _mark(kind: str, class_: str) -> Markup:
    return element("g", mark(kind), class_=class_)


def _arrow(stroke: Stroke, class_: str) -> Markup:
    return element("g", stroke.markup(), class_=class_)


def _line(class_: str) -> Markup:
    return element("line", x1=ENDS[0][0], x2=ENDS[1][0], class_=class_)
