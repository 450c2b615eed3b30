"""The page with all recorded runs that the lab was given."""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.diagram.markup import Markup, element
from flexgroup.lab.page import document
from flexgroup.lab.traces import TraceSets
from flexgroup.lab.window import RunName, Window
from flexgroup.trace.run import Run

MOST_RUNS = 300


def runs_page(sets: TraceSets) -> Markup:
    """Return the page with all recorded runs that the lab was given."""
    parts: list[object] = [element("h1", "Recorded runs")]
    if not sets.directories:
        parts.append(element("p", "This lab was given none. Begin it with the directory of a "
                             "trace set: ", element("code", "flexgroup lab traces")))  # fmt: skip
    for name, directory in sets.directories.items():
        runs = list(sets.runs(name).values())
        heading = element("h2", name, id=f"set-{name}")
        more = len(runs) - MOST_RUNS
        parts += [
            heading,
            element("p", str(directory), class_="quiet small"),
            _list(name, runs[:MOST_RUNS]),
            element("p", f"{more:,} more runs are not listed; flexgroup lab --run opens them.")
            if more > 0
            else "",
        ]
    return document("Recorded runs", *parts)


def _list(traces: str, runs: Sequence[Run]) -> Markup:
    items = [
        element(
            "li",
            element("a", run.run, href=Window(RunName(traces, run.run)).path),
            element("div", _told(run), class_="quiet small"),
        )
        for run in runs
    ]
    return element("ul", *items, class_="runs")


def _told(run: Run) -> str:
    told = run.told_events
    events = [] if told is None else [f"{sum(told.values()):,} events"]
    return ", ".join([run.stack, f"{run.processes} processes", *events, run.outcome])
