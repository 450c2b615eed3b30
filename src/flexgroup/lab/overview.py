"""A wide window of a recorded run: how many events each process has over time, and the way into
every part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from flexgroup.diagram.density import ACROSS, DOWN, Band, Cell, Layout, Slice, density
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.lab.times import Times, since
from flexgroup.lab.window import Window, ranges_of
from flexgroup.trace.names import Names
from flexgroup.trace.schema import CRASH, KINDS
from flexgroup.trace.timeline import Timeline

NAMED_IN_A_CELL = 3
"""How many kinds of events a cell tells of, the most frequent first."""


BESIDE = replace(ACROSS, slices=40, along=12.0, legend=580)
"""How one of two runs is drawn that stand side by side."""


@dataclass(frozen=True)
class View:
    """A window where it is: on a run that is in memory, between two times of its trace."""

    window: Window
    timeline: Timeline
    first: int
    last: int
    zero: int = 0
    """The time of the trace at which times of the address begin to count."""

    def at(self, first: int, last: int) -> Window:
        """The window that reaches from one time of the trace to another."""
        return self.window.at(first - self.zero, last - self.zero)

    def told(self, time: int, parts: int = 100) -> str:
        """Return a time exactly enough for this window, if it is cut into so many parts; beside
        another run, times count from the first difference."""
        resolution = (self.last - self.first) // parts
        if self.window.beside is not None:
            return since(time - self.zero, resolution)
        return Times(*self.timeline.span).told(time, resolution)

    @property
    def names(self) -> Names:
        """What processes and clients of the run are called."""
        return self.timeline.run.names

    @property
    def shown(self) -> list[int]:
        """The processes and clients that have a line."""
        everybody = range(self.timeline.processes)
        chosen = self.window.chosen.processes
        return list(everybody if chosen is None else (p for p in chosen if p in everybody))


def overview(view: View) -> Markup:
    """Return the pictures for wide and for narrow screens."""
    across = ACROSS if view.window.beside is None else BESIDE
    return join([_picture(view, across), _picture(view, DOWN)])


def _picture(view: View, layout: Layout) -> Markup:
    span = view.last - view.first
    number = min(layout.slices, span)
    edges = [view.first + span * place // number for place in range(number + 1)]
    told = [view.told(edge, number) for edge in edges]
    bands = _bands(view, layout.most_bands)
    counts = view.timeline.counts(edges, [members for _, members in bands], view.window.chosen)
    # A window's address is that of this one with other times and processes: there are thousands.
    into = replace(view.window, first=None, last=None, skip=0).path
    inside = replace(view.window, first=None, last=None, skip=0, processes="").path
    when = [f"&from={a - view.zero}&to={b - view.zero}" for a, b in pairwise(edges)]
    named = _named(view, edges, bands)
    cells = {}
    for place, (kind, members) in enumerate(bands):
        name = _called(view, kind, members)
        who = f"&processes={ranges_of(members)}"
        for column, kinds in enumerate(counts[place]):
            count = sum(kinds)
            if not count:
                continue
            cells[place, column] = Cell(
                count,
                f"{name}, {told[column]} to {told[column + 1]}: {_counted(count, kinds)}",
                inside + when[column] + who,
                crash=kinds[KINDS.index(CRASH)] > 0,
                named=(place, column) in named,
            )
    own = f"&from={view.first - view.zero}&to={view.last - view.zero}"
    return density(
        layout,
        [
            Band(
                kind,
                _lines(view, members),
                _called(view, kind, members),
                f"only {_called(view, kind, members)}",
                f"{inside}{own}&processes={ranges_of(members)}",
            )
            for kind, members in bands
        ],
        [
            Slice(told[column], f"{told[column]} to {told[column + 1]}", into + when[column])
            for column in range(number)
        ],
        cells,
        f"Events over time, {told[0]} to {told[-1]}",
        "what a verdict names" if view.window.beside is None else "the first difference",
    )


def _bands(view: View, most: int) -> list[tuple[str, list[int]]]:
    """Divide clients and processes into bands, clients first: what they multicast flows down."""
    size = view.timeline.run.processes
    clients = [each for each in view.shown if each >= size]
    members = [each for each in view.shown if each < size]
    if len(view.shown) <= most:
        room = len(clients), len(members)
    else:
        for_clients = min(len(clients), max(most // 4, most - len(members))) if members else most
        room = for_clients, min(len(members), most - for_clients)
    return [
        *(("clients", band) for band in _divided(clients, room[0])),
        *(("processes", band) for band in _divided(members, room[1])),
    ]


def _divided(numbers: Sequence[int], most: int) -> list[list[int]]:
    """Divide numbers into at most so many parts that are as equal as possible."""
    size = -(-len(numbers) // most) if most else 1
    parts = -(-len(numbers) // size)
    edges = [len(numbers) * part // max(1, parts) for part in range(parts + 1)]
    return [list(numbers[begin:end]) for begin, end in pairwise(edges)]


def _lines(view: View, members: Sequence[int]) -> tuple[str, ...]:
    """Return what stands above a band that runs down."""
    first, last = members[0], members[-1]
    return (view.names.short(first),) if first == last else (str(first), f"-{last}")


def _called(view: View, kind: str, members: Sequence[int]) -> str:
    first, last = members[0], members[-1]
    return view.names.process(first) if first == last else f"{kind} {first}-{last}"


def _named(
    view: View, edges: Sequence[int], bands: Sequence[tuple[str, list[int]]]
) -> set[tuple[int, int]]:
    """Return the cells that have events which are to be found."""
    band_of = {process: place for place, (_, members) in enumerate(bands) for process in members}
    found = set()
    for process, step in view.window.named:
        row = view.timeline.row_at(process, step)
        if row is None or process not in band_of:
            continue
        time = view.timeline.time_of(row)
        column = sum(edge <= time for edge in edges) - 1
        if 0 <= column < len(edges) - 1:
            found.add((band_of[process], column))
    return found


def _counted(count: int, kinds: Sequence[int]) -> str:
    most = sorted(range(len(kinds)), key=lambda kind: -kinds[kind])[:NAMED_IN_A_CELL]
    told = ", ".join(f"{KINDS[kind]} {kinds[kind]:,}" for kind in most if kinds[kind])
    return f"{count:,} {'event' if count == 1 else 'events'} ({told})"


def totals(view: View) -> Markup:
    """Return how many events of each kind the window has."""
    counts = view.timeline.totals(view.first, view.last, view.window.chosen)
    told = ", ".join(f"{kind} {count:,}" for kind, count in counts.items())
    return element("p", f"Events here: {told or 'none'}.", class_="small quiet")
