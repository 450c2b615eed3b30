"""Two recorded runs side by side, with the first difference of both at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flexgroup.diagram.events import TraceEvent, event_of
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.export.told import words_of
from flexgroup.lab.closeup import closeup, is_close, letters_of, most_shown, named_messages
from flexgroup.lab.overview import View, overview
from flexgroup.lab.page import document
from flexgroup.lab.times import lasting
from flexgroup.lab.window import Window
from flexgroup.lab.window_page import filters, filters_in_force, steering
from flexgroup.trace.differences import Difference
from flexgroup.trace.names import Names
from flexgroup.trace.timeline import Timeline

AROUND = 20
"""How many events before the first difference, and after it, are shown at first."""

MOST_TOLD = 40
"""How many processes are told of that part."""


@dataclass(frozen=True)
class _Side:
    """One of the two runs."""

    timeline: Timeline
    steps: tuple[int | None, ...]
    """The step of each process at which the runs part, as far as it does something there."""
    zero: int
    """The time of the first difference, at which times of the address begin to count."""
    named: tuple[tuple[int, int], ...]

    @property
    def span(self) -> tuple[int, int]:
        first, last = self.timeline.span
        return first - self.zero, last - self.zero

    def event(self, process: int, step: int | None) -> TraceEvent | None:
        row = self.timeline.row_at(process, step)
        return None if row is None else event_of(self.timeline.read([row])[0])


def compare_page(
    window: Window, ours: Timeline, theirs: Timeline, found: Sequence[Difference]
) -> Markup:
    """Return the page of a window on both runs."""
    order = sorted(found, key=lambda each: _time_of(each, ours, theirs))
    first = order[0] if order else None
    sides = [
        _side(ours, first, tuple(each.ours for each in order)),
        _side(theirs, first, tuple(each.theirs for each in order)),
    ]
    begin, end = min(side.span[0] for side in sides), max(side.span[1] for side in sides)
    shown = window
    if window.first is None or window.last is None:
        shown = _around(window, sides) if first is not None else window.at(begin, end)
    assert shown.first is not None
    assert shown.last is not None
    now = shown.first, shown.last
    views = [
        View(replace(shown, named=side.named), side.timeline, side.zero + now[0],
             side.zero + now[1], side.zero)
        for side in sides
    ]  # fmt: skip
    assert window.beside is not None
    names = window.of, window.beside
    told = (
        f"{lasting(now[1] - now[0])} of {lasting(end - begin)}; times count from "
        f"{'the first difference' if first is not None else 'the first event'} of each run"
    )
    panels = [
        element(
            "section",
            element("h2", element("a", name.run, href=replace(
                Window(name), first=view.first, last=view.last).path), class_="run"),
            element("p", f"{name.traces}: {view.timeline.run.stack}, {len(view.timeline):,} events",
                    class_="quiet small"),
            panel,
        )
        for name, view, panel in zip(names, views, _panels(views), strict=True)
    ]  # fmt: skip
    return document(
        f"{names[0].run} and {names[1].run}",
        element("h1", "Two runs side by side"),
        element("p", _summary(order, ours.run.names), class_="quiet"),
        steering(shown, now, (begin, end), told),
        filters_in_force(replace(views[0], window=shown)),
        element("div", *panels, class_="pair"),
        _table(order, sides) if order else "",
        filters(shown, ours, theirs),
        element("p", element("a", "All recorded runs", href="/traces")),
    )


def _time_of(difference: Difference, ours: Timeline, theirs: Timeline) -> int:
    """Return when a difference is, in the time of the run that has an event there."""
    row = ours.row_at(difference.process, difference.ours)
    if row is not None:
        return ours.time_of(row) - ours.span[0]
    row = theirs.row_at(difference.process, difference.theirs)
    return 0 if row is None else theirs.time_of(row) - theirs.span[0]


def _side(timeline: Timeline, first: Difference | None, steps: tuple[int | None, ...]) -> _Side:
    if first is None:
        return _Side(timeline, steps, timeline.span[0], ())
    row = timeline.row_at(first.process, steps[0])
    if row is not None:
        return _Side(timeline, steps, timeline.time_of(row), ((first.process, steps[0] or 0),))
    # The process does nothing more: the last that it did in both is as near as one can get.
    before = timeline.steps_at(first.process)
    zero = timeline.time_of(int(before[-1])) if len(before) else timeline.span[0]
    return _Side(timeline, steps, zero, ())


def _around(window: Window, sides: Sequence[_Side]) -> Window:
    """The window on a few events before and after the first difference."""
    spans = [side.timeline.around(side.zero, AROUND) for side in sides]
    first = max(span[0] - side.zero for span, side in zip(spans, sides, strict=True))
    last = min(span[1] - side.zero for span, side in zip(spans, sides, strict=True))
    return window.at(min(first, 0), max(last, 1))


def _panels(views: Sequence[View]) -> list[Markup]:
    rows = [view.timeline.rows(view.first, view.last, view.window.chosen) for view in views]
    if not all(is_close(view, len(own)) for view, own in zip(views, rows, strict=True)):
        return [
            element("div", overview(view), class_="scroll", tabindex="0", role="region",
                    aria_label=f"Events over time, {view.timeline.run.run}")
            for view in views
        ]  # fmt: skip
    shown = [own[: most_shown(view)].tolist() for view, own in zip(views, rows, strict=True)]
    letters = _letters(views, shown)
    return [
        closeup(view, own, letters) if own else element("p", "Nothing happens here.")
        for view, own in zip(views, shown, strict=True)
    ]


def _letters(views: Sequence[View], rows: Sequence[Sequence[int]]) -> dict[str, str]:
    """Return a letter for each message of either run: the same message has the same in both."""
    return letters_of(
        event_of(row)
        for view, own in zip(views, rows, strict=True)
        for row in view.timeline.read(own)
    )


def _summary(order: Sequence[Difference], names: Names) -> str:
    if not order:
        return "Every process does the same in both, event by event; only times may differ."
    return (
        f"The runs part at {names.process(order[0].process)}, after {order[0].alike:,} events of "
        f"it that are the same in both. {len(order)} processes and clients do something else in "
        "the end."
    )


def _table(order: Sequence[Difference], sides: Sequence[_Side]) -> Markup:
    rows = []
    for place, each in enumerate(order[:MOST_TOLD]):
        name = sides[0].timeline.run.names.process(each.process)
        rows.append(
            element(
                "tr",
                element("td", name),
                element("td", f"{each.alike:,}"),
                *(element("td", _said(side, each.process, side.steps[place])) for side in sides),
            )
        )
    columns = ("where", "events that are the same", "then here", "and there")
    head = element("tr", *(element("th", name, scope="col") for name in columns))
    more = len(order) - MOST_TOLD
    return element(
        "section",
        element("h2", "Where they part", id="part"),
        element(
            "div",
            element("table", element("thead", head), element("tbody", *rows), class_="events"),
            class_="scroll",
        ),
        element("p", f"{more:,} more are not listed.", class_="quiet small") if more > 0 else "",
        element("p", "What, about which message, with whom, and in which order is compared at each "
                "process; times are not.", class_="quiet small"),
        aria_labelledby="part",
    )  # fmt: skip


def _said(side: _Side, process: int, step: int | None) -> Markup:
    event = side.event(process, step)
    if event is None:
        return element("span", "nothing more", class_="quiet")
    names = side.timeline.run.names
    if event.message is not None:
        names = named_messages(side.timeline, names, [event.message])
    return join([words_of(event, names), element("span", f", step {event.step}", class_="quiet")])
