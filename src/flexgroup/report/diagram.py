"""Space-time diagrams: a line for each process, an arrow for each packet, a mark for each multicast
and delivery.

A diagram is drawn from rows of a trace alone, so it serves a violation in a report and a
counterexample in a search alike. Lines run across for a wide screen, or down for a narrow one. The
colours are those of the classes in `style.css`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from flexgroup.report.markup import Markup, element, join, number
from flexgroup.report.moments import DELIVER, SEND, Event, Moment, Packet, Spacing, arrange
from flexgroup.report.scene import Scene
from flexgroup.report.strokes import Place, Stroke, arc, arrow, lost

COLOURS = 8

MARK = 10.0
RING = 14.0
LEAD = 20.0
"""From the beginning of a time line to the first event."""

BETWEEN_MISSING = 34.0
MOST_STRETCH = 2.2

UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


@dataclass(frozen=True)
class Diagram:
    """A picture for wide screens, the same for narrow ones, and what a reader should know."""

    across: Markup
    down: Markup
    notes: tuple[str, ...]
    packets: int


@dataclass(frozen=True)
class Layout:
    """Where along a time line and which line becomes where on the picture."""

    down: bool
    start: float
    """From the border to the beginning of the time lines."""
    side: float
    """From the border to the first time line."""
    lane: tuple[float, float]
    """From one time line to the next: at least, at most."""
    labels: float
    """Room beside the last time line."""
    breadth: float
    """Of the picture across the time lines, if so many fit."""
    spacing: Spacing
    time_labels: float
    """The smallest distance between two labels of time."""
    length: float
    """Of the time lines, if what happens on them would fit on shorter ones."""


ACROSS = Layout(
    down=False, start=80, side=30, lane=(48, 58), labels=58, breadth=420,
    spacing=Spacing(marked=66), time_labels=96, length=560,
)  # fmt: skip
DOWN = Layout(
    down=True, start=46, side=84, lane=(34, 62), labels=70, breadth=326,
    spacing=Spacing(), time_labels=30, length=330,
)  # fmt: skip


def diagram(
    events: Collection[Event],
    letters: Mapping[str, str],
    witness: Collection[tuple[int, int]] = (),
    processes: int | None = None,
    subject: str = "Space-time diagram",
) -> Diagram:
    """The events about a few messages. `letters` says under which letter a message is known;
    `witness` holds the (process, step) of events to be emphasised; numbers from `processes` on are
    clients."""
    scene = Scene(events, letters, frozenset(witness), processes)
    notes = ["Time runs along the lines in the order of events; distances are not to scale."]
    return Diagram(
        _Drawing(scene, ACROSS).svg(subject),
        _Drawing(scene, DOWN).svg(subject),
        (*notes, *scene.notes),
        len(scene.packets),
    )


class _Drawing:
    """A scene laid out one way."""

    def __init__(self, scene: Scene, layout: Layout) -> None:
        self.scene = scene
        self.layout = layout
        self.lane = {process: index for index, process in enumerate(scene.lanes)}
        narrowest, widest = layout.lane
        wanted = (layout.breadth - layout.side - layout.labels) / max(1, len(self.lane) - 1)
        self.lane_width = max(narrowest, min(widest, wanted))
        places = self._stretched(
            arrange(scene.moments, scene.packets, scene.witness, layout.spacing)
        )
        self.placed = list(zip(scene.moments, places, strict=True))
        self.moment = {event.place: m for m in scene.moments for event in m.events}
        self.at = {event.place: at for m, at in self.placed for event in m.events}
        self.missing = _behind(max(places, default=0.0), scene.missing)
        self.end = max([*places, *(at for _, _, at in self.missing)], default=0.0)
        self.colour = {message: index for index, message in enumerate(scene.letters)}
        self.clock = _Clock([moment.time for moment in scene.moments])

    def _point(self, at: float, lane: float) -> Place:
        along, aside = self.layout.start + at, self.layout.side + lane * self.lane_width
        return (aside, along) if self.layout.down else (along, aside)

    def _stretched(self, places: list[float]) -> list[float]:
        """A few events look cramped on a line of their own length."""
        needed = max(places, default=0.0) or 1.0
        factor = max(1.0, min(MOST_STRETCH, self.layout.length / needed))
        return [LEAD + place * factor for place in places]

    def svg(self, subject: str) -> Markup:
        length = self.end + 26
        lines = [
            self._line(process, *self._point(0, lane), *self._point(length, lane))
            for process, lane in self.lane.items()
        ]
        marks = [self._mark(m, at) for m, at in self.placed]
        along = self.layout.start + length + 12
        aside = self.layout.side + (len(self.lane) - 1) * self.lane_width + self.layout.labels
        width, height = (aside, along) if self.layout.down else (along, aside)
        return element(
            "svg",
            *lines,
            *(self._link(*link) for link in self.scene.links),
            *(self._packet(packet) for packet in self.scene.packets),
            *marks,
            *(self._missing(*each) for each in self.missing),
            *self._times(height),
            class_=f"space-time {'down' if self.layout.down else 'across'}",
            role="img",
            aria_label=f"{subject}: {self._summary()}",
            width=width,
            height=height,
            viewBox=f"0 0 {number(width)} {number(height)}",
        )

    def _summary(self) -> str:
        letters = ", ".join(self.scene.letters.values())
        names = ", ".join(self.scene.name(process) for process in self.lane)
        return f"messages {letters}; {names}; {len(self.scene.packets)} packets"

    def _line(self, process: int, x1: float, y1: float, x2: float, y2: float) -> Markup:
        line = element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="lane")
        if not self.layout.down:
            return join([line, _label(self.scene.name(process), x1 - 14, y1 + 4, "end", "lane")])
        number_of = _label(str(process), x1, y1 - 9, "middle", "lane")
        kinds = [p for p in self.lane if self.scene.is_client(p) == self.scene.is_client(process)]
        if process != kinds[0]:
            return join([line, number_of])
        kind = self.scene.name(process).partition(" ")[0]
        if len(kinds) > 1:
            kind = "clients" if kind == "client" else "processes"
        return join([line, number_of, _label(kind, x1 - 6, y1 - 26, "start", "kind")])

    def _place(self, event: Event) -> Place:
        return self._point(self.at[event.place], self.lane[event.process])

    def _class(self, kind: str, message: str) -> str:
        return f"{kind} m{self.colour[message] % COLOURS}"

    def _tells(self, verb: str, event: Event) -> str:
        letter = self.scene.letters[event.message]
        return (
            f"{self.scene.name(event.process)} {verb} {letter} (message {event.message}), "
            f"step {event.step}, {self.clock.full(event.time)}"
        )

    def _mark(self, moment: Moment, at: float) -> Markup:
        x, y = self._point(at, self.lane[moment.process])
        event = moment.mark
        if event is None:
            return self._pass(moment, x, y)
        delivered = event.kind == DELIVER
        shape = _circle if delivered else _square
        parts = [element("title", self._tells("delivered" if delivered else "multicast", event))]
        emphasised = event.place in self.scene.witness
        if emphasised:
            parts += [shape(x, y, RING, "ring"), self._step(event, x, y)]
        parts += [shape(x, y), _letter(x, y, self.scene.letters[event.message])]
        kind = f"mark {event.kind}{' witness' if emphasised else ''}"
        return element("g", *parts, class_=self._class(kind, event.message))

    def _pass(self, moment: Moment, x: float, y: float) -> Markup:
        """Packets that came or went without a multicast or a delivery."""
        for event in moment.events:
            if event.place in self.scene.witness:
                verb = "sent a packet about" if event.kind == SEND else "received a packet about"
                return element(
                    "g",
                    element("title", self._tells(verb, event)),
                    _circle(x, y, MARK / 2, "ring"),
                    _circle(x, y, 2.5),
                    self._step(event, x, y),
                    class_=self._class("mark witness", event.message),
                )
        return _circle(x, y, 2.5, self._class("pass", moment.events[0].message))

    def _step(self, event: Event, x: float, y: float) -> Markup:
        step = f"step {event.step}"
        if self.layout.down:
            return _label(step, x + RING + 4, y + 4, "start", "step")
        return _label(step, x, y + 28, "middle", "step")

    def _missing(self, process: int, message: str, at: float) -> Markup:
        x, y = self._point(at, self.lane[process])
        letter = self.scene.letters[message]
        title = f"{self.scene.name(process)} did not deliver {letter} (message {message})"
        return element(
            "g",
            element("title", title),
            _circle(x, y),
            _letter(x, y, letter),
            class_=self._class("mark missing", message),
        )

    def _link(self, multicast: Event, delivery: Event) -> Markup:
        (x1, y1), (x2, y2) = self._place(multicast), self._place(delivery)
        return element(
            "line", x1=x1, y1=y1, x2=x2, y2=y2, class_=self._class("link", multicast.message)
        )

    def _packet(self, packet: Packet) -> Markup:
        event = packet.ends[0]
        title = f"{event.packet or 'packet'} about {self.scene.letters[event.message]}"
        kind = "packet"
        if packet.send is None:
            stroke = arrow(self._stub(event, -1), self._place(event), 0.0, self._clearance(event))
            title += f" to {self.scene.name(event.process)}, whose sending was not recorded"
        elif packet.receive is None:
            stroke = lost(self._place(event), self._stub(event, +1), self._clearance(event))
            title += f" from {self.scene.name(event.process)}, not received"
            kind += " lost"
        else:
            stroke = self._journey(packet.send, packet.receive)
            title += (
                f" from {self.scene.name(packet.send.process)} (step {packet.send.step})"
                f" to {self.scene.name(packet.receive.process)} (step {packet.receive.step})"
            )
        return element(
            "g",
            element("title", title),
            element("path", d=stroke.shaft, class_="shaft"),
            element("path", d=stroke.tip),
            class_=self._class(kind, event.message),
        )

    def _journey(self, send: Event, receive: Event) -> Stroke:
        start, end = self._place(send), self._place(receive)
        if send.process == receive.process:
            return arc(start, end, RING, self.layout.down)
        return arrow(start, end, self._clearance(send), self._clearance(receive))

    def _clearance(self, event: Event) -> float:
        """How far from the point an arrow ends, so as not to run into the mark that is there."""
        mark = self.moment[event.place].mark
        if mark is None:
            return 0.0
        return RING + 1 if mark.place in self.scene.witness else MARK + 1

    def _stub(self, event: Event, direction: int) -> Place:
        """Where an arrow ends whose other end was not recorded: on the way there."""
        lane = self.lane[event.process]
        peer = None if event.peer is None else self.lane.get(event.peer)
        aside = 0.5 if peer is None or peer == lane else 0.7 * (peer - lane)
        return self._point(self.at[event.place] + direction * 30, lane + aside)

    def _times(self, height: float) -> list[Markup]:
        labels = []
        free = 0.0
        latest: int | None = None
        for moment, at in sorted(self.placed, key=lambda placed: placed[1]):
            if at >= free and (latest is None or moment.time > latest):
                x, y = self._point(at, 0)
                label = self.clock.short(moment.time)
                labels.append(
                    _label(label, 62, y + 4, "end", "time")
                    if self.layout.down
                    else _label(label, x, height - 8, "middle", "time")
                )
                free, latest = at + self.layout.time_labels, moment.time
        return labels


def _behind(end: float, missing: list[tuple[int, str]]) -> list[tuple[int, str, float]]:
    """Deliveries that did not happen, one after the other behind all that did."""
    last: dict[int, float] = {}
    placed = []
    for process, message in missing:
        last[process] = last.get(process, end) + BETWEEN_MISSING
        placed.append((process, message, last[process]))
    return placed


class _Clock:
    """Times as people read them: those of the run, or from the first event if that is long ago."""

    def __init__(self, times: list[int]) -> None:
        self.first = min(times, default=0)
        span = max(times, default=0) - self.first
        self.relative = self.first > 100 * span
        largest = span if self.relative else self.first + span
        self.size, self.unit = next((u for u in UNITS if u[0] * 2 <= largest), UNITS[-1])
        self.digits = 0 if self.size == 1 else 2 if span > self.size else 3

    def short(self, time: int) -> str:
        shown = (time - self.first if self.relative else time) / self.size
        return f"{'+' if self.relative else ''}{shown:.{self.digits}f} {self.unit}"

    def full(self, time: int) -> str:
        return f"time {time // UNITS[0][0]}.{time % UNITS[0][0]:09} s"


def _circle(x: float, y: float, radius: float = MARK, class_: str = "shape") -> Markup:
    return element("circle", cx=x, cy=y, r=radius, class_=class_)


def _square(x: float, y: float, radius: float = MARK, class_: str = "shape") -> Markup:
    side = 2 * radius - 1
    return element(
        "rect", x=x - side / 2, y=y - side / 2, width=side, height=side, rx=2, class_=class_
    )


def _letter(x: float, y: float, letter: str) -> Markup:
    return _label(letter, x, y + 4, "middle", "letter")


def _label(text: str, x: float, y: float, anchor: str, class_: str) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=class_)
