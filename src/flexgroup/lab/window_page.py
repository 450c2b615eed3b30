"""The page of a window on a recorded run: what happened in it, what was promised, and the ways to
other windows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flexgroup.core.errors import UsageError
from flexgroup.core.message import name_of
from flexgroup.diagram.markup import Markup, element, join, text
from flexgroup.lab.closeup import closeup, is_close, most_shown, named_messages
from flexgroup.lab.judging import JudgedProperty, Judging
from flexgroup.lab.overview import View, overview, totals
from flexgroup.lab.page import document
from flexgroup.lab.recorded import MOST_STEPPED, STEPPED
from flexgroup.lab.times import lasting
from flexgroup.lab.traces import Reading
from flexgroup.lab.window import MOST_CHOSEN, TOP, RunName, Window, ranges_of, set_of
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.message_names import messages_called
from flexgroup.trace.run import Run
from flexgroup.trace.schema import KINDS
from flexgroup.trace.timeline import Timeline

MOST_JUDGED = 2_000_000
"""Larger runs are checked when one asks for it: it may take a core for some time."""

MOST_GROUPS = 60
MOST_OTHERS = 300
MOST_NODES = 200
"""So many names of processes are suggested."""


def window_page(
    window: Window,
    timeline: Timeline,
    judged: Reading[Judging] | None,
    others: Sequence[RunName],
    token: str,
) -> Markup:
    """Return the page of a window on one run."""
    view = view_of(window, timeline)
    rows = timeline.rows(view.first, view.last, window.chosen)
    run = timeline.run
    if is_close(view, len(rows)):
        most = most_shown(view)
        shown = rows[window.skip : window.skip + most].tolist()
        body = join([_pages(view, len(rows), most), closeup(view, shown)])
    else:
        body = join(
            [
                element("div", overview(view), class_="scroll", tabindex="0", role="region",
                        aria_label="Events over time"),
                element("p", "Each cell leads into it; so do times, and the names of processes. "
                        "The stronger the colour, the more events.", class_="quiet small"),
                totals(view),
            ]
        )  # fmt: skip
    return document(
        f"{run.run}, {view.told(view.first)}",
        _heading(run, len(timeline)),
        _steering_of(view, len(rows)),
        filters_in_force(view),
        _broken(window, judged),
        body,
        _verdicts(view, judged, token),
        filters(window, timeline),
        _elsewhere(view, others),
    )


def by_name(window: Window, timeline: Timeline) -> Window:
    """Return the window on the messages of a name; a UsageError says that there is none."""
    found = messages_called(timeline, window.called)[:MOST_CHOSEN]
    if not found:
        raise UsageError(f"no message of run '{timeline.run.run}' is called '{window.called}'")
    return replace(window.whole, messages=tuple(map(name_of, found)), named=(), called="")


def view_of(window: Window, timeline: Timeline, zero: int = 0) -> View:
    """Return the window where it is: as far as its events reach, if it has no times."""
    first, last = timeline.span_of(window.chosen)
    if window.first is None and window.last is None and window.named and not window.messages:
        rows = [timeline.row_at(*place) for place in window.named]
        times = [timeline.time_of(row) for row in rows if row is not None]
        if times:
            first, last = min(times), max(times) + 1
    first = first if window.first is None else window.first + zero
    last = last if window.last is None else window.last + zero
    return View(window, timeline, first, max(last, first + 1), zero)


def _heading(run: Run, events: int) -> Markup:
    clients = f", {run.clients} client{'s' * (run.clients > 1)}" if run.clients else ""
    state = "complete" if run.complete else "cut short"
    words = (
        f"{run.stack}, {run.processes} processes{clients}, recorded by {run.world}: "
        f"{events:,} events, {state}."
    )
    return join([element("h1", run.run, class_="run"), element("p", words, class_="quiet")])


def _steering_of(view: View, count: int) -> Markup:
    begin, end = view.timeline.span
    told = (
        f"{count:,} {'event' if count == 1 else 'events'} from {view.told(view.first)} to "
        f"{view.told(view.last)}, which is {lasting(view.last - view.first)} of "
        f"{lasting(end - begin)}"
    )
    return steering(view.window, (view.first, view.last), (begin, end), told)


def steering(window: Window, now: tuple[int, int], whole: tuple[int, int], told: str) -> Markup:
    """The way to other times; those of the window and of the whole are as addresses have them."""
    (first, last), (begin, end) = now, whole
    span = last - first
    half = max(1, span // 2)
    is_whole = first <= begin and last >= end
    parts = [
        ("Whole run", window.at(begin, end), not is_whole, None),
        ("Out", window.at(max(begin, first - span), min(end, last + span)), not is_whole, None),
        ("Earlier", window.at(first - half, last - half), first > begin, "ArrowLeft"),
        ("Later", window.at(first + half, last + half), last < end, "ArrowRight"),
    ]
    links = [
        element("a", words, href=where.path, data_key=key)
        if possible
        else element("span", words, class_="idle", aria_disabled="true")
        for words, where, possible, key in parts
    ]
    return element(
        "nav",
        element("ul", *(element("li", link) for link in links)),
        element("p", told, role="status"),
        class_="steering",
        aria_label="Time",
    )


def filters_in_force(view: View) -> Markup:
    """What the window leaves out, each with a link that takes it back."""
    window, names = view.window, view.names
    told = named_messages(view.timeline, names, window.messages)
    messages = " ".join(map(told.message, window.messages))
    processes = window.processes
    if names.nodes and len(view.shown) <= MOST_NODES:
        processes = names.listed(view.shown)
    everybody = replace(window, processes="", skip=0)
    found = [
        (window.processes, f"processes {processes}", everybody),
        (window.kinds, f"kinds {', '.join(window.kinds)}", replace(window, kinds=(), skip=0)),
        (window.messages, f"messages {messages}",
         replace(window, messages=(), named=(), skip=0)),
        (window.destinations, f"messages to {set_of(window.chosen.destinations or (), names)}",
         replace(window, destinations="", skip=0)),
    ]  # fmt: skip
    items = [
        element("li", f"only {words} ",
                element("a", "all", href=without.path, aria_label=f"all, not only {words}"))
        for is_set, words, without in found
        if is_set
    ]  # fmt: skip
    return element("ul", *items, class_="chips") if items else Markup()


def _pages(view: View, count: int, most: int) -> Markup:
    """The way to events that are too many to be shown at once, and cannot be cut by time."""
    if count <= most:
        return Markup()
    skip = view.window.skip
    parts: list[object] = [f"Events {skip + 1:,} to {min(count, skip + most):,} of {count:,}, "
                           "which all happened at one time. "]  # fmt: skip
    for words, place in (("Those before", skip - most), ("Those after", skip + most)):
        if -most < place < count:
            window = replace(view.window, skip=max(0, place))
            parts += [element("a", words, href=window.path), " "]
    return element("p", *parts)


def _verdicts(view: View, judged: Reading[Judging] | None, token: str) -> Markup:
    """What was promised, and where it was broken."""
    window = view.window
    body: list[object]
    if judged is None:
        body = [
            element("p", "Whether the run kept its promises has not been checked yet. For a run "
                    "of this size, that takes a core for some time."),
            element(
                "form",
                element("input", type="hidden", name="token", value=token),
                element("input", type="hidden", name="window", value=window.query),
                element("button", "Check it", type="submit"),
                method="post",
                action="/judge",
            ),
        ]  # fmt: skip
    elif not judged.over:
        body = [
            element("p", f"{judged.told()}. ", element("a", "Look again", href=window.path),
                    role="status", data_search=f"/told?{window.query}"),
        ]  # fmt: skip
    elif judged.problem:
        body = [element("p", f"This run cannot be checked: {judged.problem}", class_="violated")]
    else:
        order = sorted(judged.get(), key=lambda each: each.outcome is not Outcome.VIOLATED)
        body = [element("dl", *(_verdict(window, each) for each in order), class_="verdicts")]
    return element(
        "section",
        element("h2", "What was promised", id="verdicts"),
        *body,
        aria_labelledby="verdicts",
    )


def _broken(window: Window, judged: Reading[Judging] | None) -> Markup:
    """What is violated, with the way to it: more important than all that is below."""
    if judged is None or judged.result is None:
        return Markup()
    broken = [each for each in judged.result if each.outcome is Outcome.VIOLATED]
    if not broken:
        return Markup()
    links = join([_way_to(window, each, each.name) for each in broken], ", ")
    return element("p", element("span", "Violated: ", class_="violated"), links, ".")


def _way_to(window: Window, judged: JudgedProperty, words: str) -> Markup:
    """The link to the events that show a violation, if any do."""
    if not judged.named:
        return text(words)
    shown = Window(window.of, messages=judged.messages, named=judged.named)
    return element("a", words, href=f"{shown.path}{TOP}")


def _verdict(window: Window, judged: JudgedProperty) -> Markup:
    words: list[object] = [element("span", judged.outcome.value, class_=judged.outcome)]
    if judged.outcome is Outcome.VIOLATED:
        if judged.named:
            words += [" ", _way_to(window, judged, f"see where {judged.name} is violated")]
        words.append(element("pre", judged.explanation, class_="explanation"))
    return element("div", element("dt", judged.name), element("dd", *words))


def filters(window: Window, timeline: Timeline, beside: Timeline | None = None) -> Markup:
    """The form by which one chooses events; it offers the groups of the first run."""
    kept = [("traces", window.of.traces), ("run", window.of.run)]
    if window.beside is not None:
        kept.append(("with", f"{window.beside.traces}/{window.beside.run}"))
    if window.first is not None:
        kept += [("from", str(window.first)), ("to", str(window.last))]
    hidden = [element("input", type="hidden", name=name, value=value) for name, value in kept]
    runs = [timeline] if beside is None else [timeline, beside]
    occurring = {kind for run in runs for kind in run.totals(*run.span)}
    kinds = [
        element(
            "label",
            element("input", type="checkbox", name="kind", value=kind,
                    checked="" if kind in window.kinds else None),
            f" {kind}",
        )
        for kind in KINDS
        if kind in occurring
    ]  # fmt: skip
    fields = [
        _field("Processes and clients, as 0-3,7", "processes", window.processes, "parts"),
        _field("Messages, as 5.0 7.2", "message", " ".join(window.messages)),
        element("label", element("span", "Messages to"), _groups(window, timeline)),
    ]
    if timeline.naming_files():
        fields.insert(2, _field("A message by its name", "called", ""))
    parts = [element("option", value=ranges_of(members), label=name) for name, members in
             _named_processes(timeline.run).items()]  # fmt: skip
    parts += [element("option", value=number, label=name)
              for number, name in enumerate(timeline.run.nodes[:MOST_NODES])]  # fmt: skip
    return element(
        "section",
        element("h2", "Only some events", id="filter"),
        element(
            "form",
            *hidden,
            element("div", *fields, class_="fields"),
            element("fieldset", element("legend", "Kinds; none of them means all"),
                    element("div", *kinds, class_="kinds")),
            element("datalist", *parts, id="parts"),
            element("button", "Show", type="submit"),
            method="get",
            action=window.path.partition("?")[0],
        ),
        aria_labelledby="filter",
    )  # fmt: skip


def _field(words: str, name: str, value: str, suggestions: str | None = None) -> Markup:
    control = element("input", name=name, value=value, autocomplete="off", list=suggestions)
    return element("label", element("span", words), control)


def _groups(window: Window, timeline: Timeline) -> Markup:
    """The sets of processes to which messages were multicast, as a choice."""
    name_of = {tuple(members): name for name, members in _named_processes(timeline.run).items()}
    chosen = window.chosen.destinations
    groups = timeline.groups[:MOST_GROUPS]
    if chosen is not None and chosen not in [members for members, _ in groups]:
        groups = [(chosen, 0), *groups]
    options = [element("option", "anybody", value="")]
    for members, count in groups:
        told = set_of(members, timeline.run.names)
        if members in name_of:
            told = f"{name_of[members]} {told}"
        options.append(
            element(
                "option",
                f"{told}: {count:,} {'message' if count == 1 else 'messages'}",
                value=",".join(map(str, members)),
                selected="" if members == chosen else None,
            )
        )
    return element("select", *options, name="destinations")


def _named_processes(run: Run) -> Mapping[str, Sequence[int]]:
    """Return the groups that the row of a run names, or numbers, with their processes."""
    told = json.loads(run.groups or "{}")
    if isinstance(told, list):
        return {f"group {number}": members for number, members in enumerate(told)}
    return {
        str(name): sorted(members)
        for name, members in told.items()
        if isinstance(members, list) and all(type(each) is int for each in members)
    }


def _elsewhere(view: View, others: Sequence[RunName]) -> Markup:
    window = view.window
    parts: list[object] = []
    if len(view.timeline) <= MOST_STEPPED and view.timeline.run.world in STEPPED:
        step = Window(window.of)
        parts.append(element("p", element("a", "Step through this run", href=f"/step?{step.query}"),
                             ", with the state of every process."))  # fmt: skip
    if others:
        options = [
            element("option", told_of(name, window.of.traces), value=f"{name.traces}/{name.run}")
            for name in others[:MOST_OTHERS]
        ]
        parts.append(
            element(
                "form",
                element("input", type="hidden", name="traces", value=window.of.traces),
                element("input", type="hidden", name="run", value=window.of.run),
                element("label", element("span", "Another run "),
                        element("select", *options, name="with")),
                " ",
                element("button", "See both side by side", type="submit"),
                method="get",
                action="/compare",
            )
        )  # fmt: skip
    parts.append(element("p", element("a", "All recorded runs", href="/traces")))
    return element(
        "section", element("h2", "Elsewhere", id="elsewhere"), *parts, aria_labelledby="elsewhere"
    )


def told_of(name: RunName, traces: str) -> str:
    """Return a run as one calls it on a page about this trace set."""
    return name.run if name.traces == traces else f"{name.run} in {name.traces}"


def reading_page(readings: Iterable[Reading[Any]], window: Window) -> Markup:
    """Return the page that says how far the reading of a run is."""
    told = next(reading.told() for reading in readings if not reading.over)
    return document(
        "Reading",
        element("h1", window.of.run, class_="run"),
        element("p", told, role="status", data_search=f"/told?{window.query}"),
        element("p", "A run is read once; after that, its windows come at once.", class_="quiet"),
        refresh=1,
    )
