"""A run as a space-time diagram: a line for each process, an arrow for each packet."""

from __future__ import annotations

from html import escape

from flexgroup.core.journal import CHOICE, CRASH, DELIVER, MULTICAST, RECEIVE, SUSPECT, TIMER
from flexgroup.core.message import MessageId, name_of
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.trace.events import Event, EventList
from flexgroup.worlds.bench import MOMENT
from flexgroup.worlds.explorer.outcome import Happening
from flexgroup.worlds.explorer.scope import LETTERS, Scope
from flexgroup.worlds.explorer.staged import stage

COLUMN = 56
LINE = 64
LEFT = 90
TOP = 56

_COLOURS = "#1f77b4 #d62728 #2ca02c #9467bd #ff7f0e #17becf #8c564b #e377c2 #7f7f7f #bcbd22".split()


def diagram(plan: StackPlan, scope: Scope, run: tuple[Happening, ...], title: str) -> str:
    """The diagram as SVG, which needs nothing else to be looked at."""
    journal = EventList()
    stage(plan, scope, run, journal)
    return _Drawing(scope, journal.events, title).svg()


class _Drawing:
    def __init__(self, scope: Scope, log: list[Event], title: str) -> None:
        self.scope = scope
        self.log = log
        self.title = title
        self.times = {(row.process, row.step): row.time for row in log}
        # Clients multicast before anything else; that takes one column, not one for each.
        starts = [row.time // MOMENT for row in log if row.process < scope.processes]
        self.skipped = max(0, min(starts, default=1) - 2)
        self.columns = max([self._column(row.time) for row in log] or [1])
        self.letters = {
            row.message: LETTERS[place]
            for place, row in enumerate(r for r in log if r.kind == MULTICAST)
        }

    def _column(self, time: int) -> int:
        return max(1, time // MOMENT - self.skipped)

    def _x(self, time: int) -> float:
        return LEFT + COLUMN * self._column(time)

    def _y(self, process: int) -> float:
        return TOP + LINE * min(process, self.scope.processes)

    def _colour(self, message: MessageId) -> str:
        letter = self.letters.get(message, "a")
        return _COLOURS[LETTERS.index(letter) % len(_COLOURS)]

    def _name(self, message: MessageId) -> str:
        return self.letters.get(message) or name_of(message)

    def svg(self) -> str:
        width = LEFT + COLUMN * (self.columns + 1)
        height = TOP + LINE * self.scope.processes + 40
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
            f"<title>{escape(self.title)}</title>",
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="12" y="22" font-weight="bold">{escape(self.title)}</text>',
        ]
        for process in range(self.scope.processes):
            y = self._y(process)
            parts.append(
                f'<line x1="{LEFT}" y1="{y}" x2="{width - 12}" y2="{y}" stroke="#888"/>'
                f'<text x="12" y="{y + 4}">process {process}</text>'
            )
        parts.append(f'<text x="12" y="{self._y(self.scope.processes) + 4}">clients</text>')
        parts += [self._arrow(row) for row in self.log if row.kind == RECEIVE]
        parts += [self._mark(row) for row in self.log]
        return "\n".join([*parts, "</svg>", ""])

    def _arrow(self, row: Event) -> str:
        colour = self._colour(row.message)
        x1, y1 = self._x(self.times[row.peer, row.sent]), self._y(row.peer)
        x2, y2 = self._x(row.time), self._y(row.process)
        label = f"{type(row.packet).__name__} {self._name(row.message)}"
        if row.peer == row.process:
            path = f"M {x1} {y1} C {x1} {y1 - 28}, {x2} {y2 - 28}, {x2} {y2}"
        else:
            path = f"M {x1} {y1} L {x2} {y2}"
        # The head is a triangle that ends where the packet arrives.
        length = max(1.0, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        if row.peer == row.process:
            dx, dy = 0.0, 1.0
        head = " ".join(
            f"{x2 - 9 * dx + side * 4 * dy:.1f},{y2 - 9 * dy - side * 4 * dx:.1f}"
            for side in (-1, 1)
        )
        return (
            f'<g><title>{escape(label)}</title><path d="{path}" stroke="{colour}" fill="none"/>'
            f'<polygon points="{x2:.1f},{y2:.1f} {head}" fill="{colour}"/></g>'
        )

    def _mark(self, row: Event) -> str:
        x, y = self._x(row.time), self._y(row.process)
        name = self._name(row.message) if row.message >= 0 else ""
        if row.kind == DELIVER:
            ahead = [
                other
                for other in self.log
                if other.kind == DELIVER
                and (other.process, other.time) == (row.process, row.time)
                and other.step < row.step
            ]
            x += 16 * len(ahead)
            return (
                f'<circle cx="{x}" cy="{y}" r="8" fill="{self._colour(row.message)}"/>'
                f'<text x="{x}" y="{y + 4}" fill="white" text-anchor="middle" '
                f'font-weight="bold">{escape(name)}</text>'
            )
        if row.kind == MULTICAST:
            shift = 14 * LETTERS.index(name) if row.process >= self.scope.processes else 0
            return (
                f'<text x="{x + shift}" y="{y + 20}" fill="{self._colour(row.message)}" '
                f'text-anchor="middle">{escape(name)}</text>'
            )
        words = {CRASH: "crashes", TIMER: "timer", CHOICE: "choice", SUSPECT: "suspects"}
        if row.kind in words:
            return f'<text x="{x}" y="{y - 12}" text-anchor="middle">{words[row.kind]}</text>'
        return ""
