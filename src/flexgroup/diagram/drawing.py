"""Space-time diagrams: a line for each process, an arrow for each packet, a mark for each event.

A diagram is drawn from rows of a trace alone, so it serves a violation in a report, a
counterexample of the explorer and a small run in a notebook alike. Lines run across for a wide
screen, or down for a narrow one. The colours are those of `theme.css`, light and dark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from flexgroup.diagram import marks, picture
from flexgroup.diagram.events import Place, TraceEvent, with_messages
from flexgroup.diagram.layout import ACROSS, DOWN, Orientation, arrange
from flexgroup.diagram.legend import entries
from flexgroup.diagram.marks import MARK, RING, Stroke, circle
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.diagram.picture import (
    COLOURS,
    Drawn,
    Point,
    label,
    moved,
    resources,
    shortened,
    turned,
)
from flexgroup.diagram.selection import Moment, Selection, SentPacket
from flexgroup.diagram.wording import Wording
from flexgroup.trace.names import Names
from flexgroup.trace.schema import (
    CRASH,
    DELIVER,
    RECOVER,
)

ORDER_OF_TIME = "Time runs along the lines in the order of events; distances are not to scale."

LEAD = 20.0
"""The distance from the beginning of a time line to the first event."""

WITHOUT_TIMES = 20.0
"""The distance from the border to the first line, where no times stand beside it."""

BETWEEN_MISSING = 34.0
MOST_STRETCH = 2.2
BENDS = (0.0, 24.0, -24.0, 48.0, -48.0)
"""How far from a straight line the middle of an arrow may be, so as to pass marks by."""

Segment = tuple[float, float, str, str]
"""A piece of a time line: from, to, how it is drawn, and what it hides."""

CHARACTER = 6.4
"""The width of a character of a label, roughly."""

BESIDE_NAME = 24.0
"""The room for a name of a process that it does not fill."""


@dataclass(frozen=True)
class Diagram:
    """A picture for wide screens, the same for narrow ones, and what a reader should know."""

    across: Markup
    down: Markup
    notes: tuple[str, ...]
    packets: int
    standalone: Markup
    """The wide picture as a file of its own, with a title and both themes."""

    def _repr_svg_(self) -> str:
        """The picture that a notebook shows."""
        return self.standalone


def diagram(
    events: Collection[TraceEvent],
    letters: Mapping[str, str] | None = None,
    witness: Collection[Place] = (),
    processes: int | None = None,
    title: str = "Space-time diagram",
    *,
    complete: bool = True,
    timed: bool = True,
    named: str = "what the verdict names",
    nodes: tuple[str, ...] = (),
    messages: Mapping[str, str] | None = None,
    legend: float = ACROSS.legend[1],
) -> Diagram:
    """The diagram of a run, or of the part of it that a few messages take.

    `letters` says under which letter a message is known. `witness` holds the process and step of
    events to be emphasised; if there are any, only their messages and those with letters are drawn.
    Numbers from `processes` on are clients. In a run that is not `complete`, what has not happened
    may have been about to. Without `timed`, the times of events mean nothing but their order.
    `named` says in the legend what emphasised events are. `nodes` and `messages` are what processes
    and messages are called where the run comes from; events may tell the latter as well. The legend
    of the wide picture is at most as wide as `legend`.
    """
    names = with_messages(Names(processes, nodes, messages or {}), events)
    selection = Selection(events, letters or {}, frozenset(witness), names, complete)
    summary = Wording(selection, timed).summary()
    wide = replace(ACROSS, legend=(min(legend, ACROSS.legend[0]), legend))
    across, down = (_Drawing(selection, way, timed, named).drawn() for way in (wide, DOWN))
    subject = f"{title}: {summary}"
    return Diagram(
        across.svg("space-time across", subject, sized=True),
        down.svg("space-time down", subject, sized=True),
        (ORDER_OF_TIME, *selection.notes),
        len(selection.packets),
        across.file("space-time across", title, summary, style(), selection.notes),
    )


def style() -> str:
    """Return the themes, and the style of diagrams."""
    return resources("diagram/theme.css", "diagram/diagram.css")


class _Drawing:
    """A selection of events laid out one way."""

    def __init__(
        self, selection: Selection, orientation: Orientation, timed: bool, named: str
    ) -> None:
        self.selection = selection
        self.named = named
        if orientation.down and not timed:
            orientation = replace(orientation, side=WITHOUT_TIMES)
        named_lanes = [selection.names.short(each) for each in selection.lanes]
        longest = max(map(len, named_lanes), default=0) if selection.names.nodes else 0
        room = min(longest, orientation.name) * CHARACTER + BESIDE_NAME
        orientation = replace(orientation, start=max(orientation.start, room))
        self.orientation = orientation
        self.timed = timed
        self.words = Wording(selection, timed)
        self.lane = {process: index for index, process in enumerate(selection.lanes)}
        narrowest, widest = orientation.lane
        wanted = (orientation.breadth - orientation.side - orientation.labels) / max(
            1, len(self.lane) - 1
        )
        self.lane_width = max(narrowest, min(widest, wanted))
        places = self._stretched(arrange(selection.moments, selection.packets, self._room))
        self.placed = list(zip(selection.moments, places, strict=True))
        self.moment = {event.place: m for m in selection.moments for event in m.events}
        self.at = {event.place: at for m, at in self.placed for event in m.events}
        self.marks_on: list[list[float]] = [[] for _ in self.lane]
        for moment, at in self.placed:
            if moment.mark is not None:
                self.marks_on[self.lane[moment.process]].append(at)
        self.missing = _behind(max(places, default=0.0), selection.missing)
        self.end = max([*places, *(at for _, _, at in self.missing)], default=0.0)
        self.colour = {message: index for index, message in enumerate(selection.letters)}

    def _point(self, at: float, lane: float) -> Point:
        along, aside = self.orientation.start + at, self.orientation.side + lane * self.lane_width
        return (aside, along) if self.orientation.down else (along, aside)

    def _stretched(self, places: list[float]) -> list[float]:
        """Spread a few events, which would look cramped on a line of their own length."""
        needed = max(places, default=0.0) or 1.0
        factor = max(1.0, min(MOST_STRETCH, self.orientation.length / needed))
        return [LEAD + place * factor for place in places]

    def _room(self, moment: Moment) -> float:
        """Return how far along the time line the mark of a moment and its label reach."""
        below = "" if self.orientation.down else self.words.below(moment)
        return max(MARK + 5, (len(below) + 1) * CHARACTER / 2)

    def drawn(self) -> Drawn:
        length = self.end + 26
        along = self.orientation.start + length + 12
        aside = (
            self.orientation.side + (len(self.lane) - 1) * self.lane_width + self.orientation.labels
        )
        width, height = (aside, along) if self.orientation.down else (along, aside)
        segments = {process: list(self._segments(process, length)) for process in self.lane}
        elided = any(kind == "elided" for found in segments.values() for _, _, kind, _ in found)
        parts = [
            *(self._line(process, found) for process, found in segments.items()),
            *(self._link(*link) for link in self.selection.links),
            *(self._packet(packet) for packet in self.selection.packets),
            *(self._moment(m, at) for m, at in self.placed),
            *(self._missing(*each) for each in self.missing),
            *(self._times(height) if self.timed else ()),
        ]
        if not self.timed and not self.orientation.down:
            height -= 22
        least, most = self.orientation.legend
        width = max(width, least)
        found = entries(self.selection, elided, self._class, self.named)
        key = picture.legend(found, min(width, most), height + 14)
        events = element("g", *parts, class_="events")
        return Drawn([events, *key.parts], width, height + 14 + key.height)

    def _line(self, process: int, segments: Iterable[Segment]) -> Markup:
        parts = [self._name(process)]
        for start, end, kind, words in segments:
            (x1, y1), (x2, y2) = (self._point(at, self.lane[process]) for at in (start, end))
            line = element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=f"lane {kind}".strip())
            parts.append(element("g", element("title", words), line) if words else line)
        return join(parts)

    def _name(self, process: int) -> Markup:
        x, y = self._point(0, self.lane[process])
        names = self.selection.names
        told = shortened(names.process(process), self.orientation.name)
        if not self.orientation.down:
            return label(told, x - 14, y + 4, "end", "lane")
        if process < len(names.nodes):
            return turned((x + 4, y - 9), told, "lane")
        number_of = label(str(process), x, y - 9, "middle", "lane")
        is_client = names.is_client
        kinds = [p for p in self.lane if is_client(p) == is_client(process)]
        if process != kinds[0]:
            return number_of
        kind = names.process(process).partition(" ")[0]
        if len(kinds) > 1:
            kind = "clients" if kind == "client" else "processes"
        # The word for clients stands above that for processes, which would read on.
        beside = is_client(process) and len(kinds) < len(self.lane)
        return join([number_of, label(kind, x - 6, y - (36 if beside else 26), "start", "kind")])

    def _segments(self, process: int, length: float) -> Iterator[Segment]:
        """Cut a time line into pieces."""
        at, step, down = 0.0, -1, False
        for moment, place in self.placed:
            if moment.process != process:
                continue
            hidden = moment.first_step - step - 1
            yield at, place, *_kind_of_segment(down, hidden)
            at, step = place, moment.last_step
            if moment.mark is not None and moment.mark.kind in (CRASH, RECOVER):
                down = moment.mark.kind == CRASH
        hidden = self.selection.last_step.get(process, step) - step
        yield at, length, *_kind_of_segment(down, hidden)

    def _place(self, event: TraceEvent) -> Point:
        return self._point(self.at[event.place], self.lane[event.process])

    def _class(self, kind: str, message: str | None) -> str:
        return f"{kind} {'no-message' if message is None else f'm{self.colour[message] % COLOURS}'}"

    def _moment(self, moment: Moment, at: float) -> Markup:
        point = self._point(at, self.lane[moment.process])
        named = self.selection.emphasised(moment)
        event = moment.mark or named
        if event is None:
            # Packets that came or went without anything else.
            return moved(point, circle(2.5, self._class("pass", moment.events[0].message)))
        kind = "mark"
        if moment.mark is not None:
            kind += f" {marks.look_of(event)}"
            ring = marks.outline(event.kind, RING, "ring")
            shape = marks.mark(event.kind, self.words.inside(event))
        else:
            ring, shape = circle(MARK / 2, "ring"), circle(2.5)
        parts = [element("title", self.words.event(event)), shape, self._label(moment)]
        if named is not None:
            kind += " witness"
            parts.insert(1, ring)
        concerned = moment.mark is None or event.message is not None
        return moved(point, *parts, class_=self._class(kind, event.message) if concerned else kind)

    def _label(self, moment: Moment) -> Markup:
        text = self.words.below(moment)
        kind = "step" if "step " in text else "name"
        if not self.orientation.down:
            return label(text, 0, 28, "middle", kind) if text else Markup()
        return label(text, RING + 4, 4, "start", kind) if kind == "step" else Markup()

    def _missing(self, process: int, message: str, at: float) -> Markup:
        return moved(
            self._point(at, self.lane[process]),
            element("title", self.words.missing(process, message)),
            marks.mark(DELIVER, self.selection.letters[message]),
            class_=self._class("mark missing", message),
        )

    def _link(self, multicast: TraceEvent, delivery: TraceEvent) -> Markup:
        (x1, y1), (x2, y2) = self._place(multicast), self._place(delivery)
        return element(
            "line", x1=x1, y1=y1, x2=x2, y2=y2, class_=self._class("link", multicast.message)
        )

    def _packet(self, packet: SentPacket) -> Markup:
        event = packet.ends[0]
        kind = "packet copy" if packet.is_copy else "packet"
        if packet.send is None:
            clear = self._clearance(event)
            stroke = marks.arrow(self._stub(event, -1), self._place(event), 0, clear)
        elif packet.receive is None:
            ends = self._place(event), self._stub(event, +1)
            stroke = marks.not_received(*ends, self._clearance(event), self.selection.complete)
            kind = f"packet {self.selection.ending}"
        else:
            stroke = self._journey(packet.send, packet.receive, 2 if packet.is_copy else 1)
        return element(
            "g",
            element("title", self.words.packet(packet)),
            stroke.markup(),
            class_=self._class(kind, event.message),
        )

    def _journey(self, send: TraceEvent, receive: TraceEvent, tips: int) -> Stroke:
        start, end = self._place(send), self._place(receive)
        if send.process == receive.process:
            return marks.arc(start, end, RING, self.orientation.down)
        bend = self._bend(send, receive)
        clear = self._clearance(send), self._clearance(receive)
        return marks.arrow(start, end, *clear, tips, bend)

    def _bend(self, send: TraceEvent, receive: TraceEvent) -> float:
        """Return the first bend with which an arrow runs through no mark, or through the fewest."""
        hits: list[int] = []
        for bend in BENDS:
            hits.append(self._hits(send, receive, bend))
            if not hits[-1]:
                break
        return BENDS[hits.index(min(hits))]

    def _hits(self, send: TraceEvent, receive: TraceEvent, bend: float) -> int:
        """Count the marks that an arrow would run through if it were bent so."""
        start, end = self._place(send), self._place(receive)
        first, last = self.lane[send.process], self.lane[receive.process]
        step = 1 if last > first else -1
        hits = 0
        for lane in range(first + step, last, step):
            share = (lane - first) / (last - first)
            x, y = marks.bent(start, end, bend, share)
            at = (y if self.orientation.down else x) - self.orientation.start
            hits += sum(abs(mark - at) < MARK + 4 for mark in self.marks_on[lane])
        return hits

    def _clearance(self, event: TraceEvent) -> float:
        """Return how far before a mark an arrow ends, so as not to run into it."""
        mark = self.moment[event.place].mark
        if mark is None:
            return 0.0
        return RING + 1 if mark.place in self.selection.witness else MARK + 1

    def _stub(self, event: TraceEvent, direction: int) -> Point:
        """Return where an arrow ends whose other end was not recorded: on the way there."""
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
                text = self.words.clock.short(moment.time)
                labels.append(
                    label(text, 62, y + 4, "end", "time")
                    if self.orientation.down
                    else label(text, x, height - 8, "middle", "time")
                )
                free, latest = at + self.orientation.time_labels, moment.time
        return labels


def _kind_of_segment(down: bool, hidden: int) -> tuple[str, str]:
    if down:
        return "down", "not running"
    if hidden > 0:
        return "elided", f"{hidden} {'event is' if hidden == 1 else 'events are'} not shown"
    return "", ""


def _behind(end: float, missing: list[tuple[int, str]]) -> list[tuple[int, str, float]]:
    """Place deliveries that did not happen one after the other, behind all that did."""
    last: dict[int, float] = {}
    placed = []
    for process, message in missing:
        last[process] = last.get(process, end) + BETWEEN_MISSING
        placed.append((process, message, last[process]))
    return placed
