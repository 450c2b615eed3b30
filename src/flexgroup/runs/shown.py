"""Runs as pictures, and as notebooks show them by themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flexgroup.core.errors import UsageError
from flexgroup.diagram.drawing import Diagram, diagram
from flexgroup.diagram.events import TraceEvent
from flexgroup.diagram.markup import Markup, element, join
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.report.charts import ChartPoint, ChartSeries, Scale, bars, chart_file, curves
from flexgroup.trace.schema import MULTICAST

if TYPE_CHECKING:
    import pandas as pd

FIRST_MESSAGES = 3
"""How many messages are drawn of a run in which nothing is to be shown."""

POINTS = 24
"""How many points the curve of a distribution has."""

LOOKS = """
.flexgroup pre { margin: 0.4em 0; white-space: pre-wrap; }
.flexgroup .violated { color: #b3261e; font-weight: 600; }
.flexgroup svg { max-width: 100%; height: auto; }
"""


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, which a notebook shows."""

    svg: Markup

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg


def distribution(latencies: pd.DataFrame, title: str) -> Picture:
    """Draw which share of messages was delivered within which time, first and last."""
    drawn = []
    for style, (name, column) in enumerate(
        (("first delivery", "first"), ("last delivery", "last"))
    ):
        known = np.sort(latencies[column].dropna().to_numpy()) * 1000
        if not len(known):
            raise UsageError("no message was delivered in this run, so there is nothing to plot")
        shares = np.linspace(1, len(known), min(POINTS, len(known))).astype(int)
        points = tuple(
            ChartPoint(
                float(known[rank - 1]),
                100 * rank / len(latencies),
                f"{100 * rank / len(latencies):.1f}% within {known[rank - 1]:.3f} ms",
            )
            for rank in shares.tolist()
        )
        drawn.append(ChartSeries(name, style, points))
    picture = curves(drawn, Scale("latency (ms)"), Scale("messages (%)"))
    subject = "the share of messages delivered within a time"
    return Picture(chart_file(picture, f"{title}: latency", subject))


def steps_of_messages(latencies: pd.DataFrame, title: str) -> Picture:
    """Draw in how many steps each message was delivered, first and last."""
    drawn = [
        ChartSeries(
            name,
            style,
            tuple(
                ChartPoint(place, float(steps), f"{message}, {name}: {steps:g} steps")
                for place, (message, steps) in enumerate(latencies[column].items())
                if steps == steps  # it was delivered
            ),
        )
        for style, (name, column) in enumerate(
            (("first delivery", "steps_first"), ("last delivery", "steps"))
        )
    ]
    picture = bars([str(message) for message in latencies.index], drawn, Scale("steps"))
    subject = "the steps until messages were delivered"
    return Picture(chart_file(picture, f"{title}: steps", subject))


def run_diagram(
    events: Collection[TraceEvent],
    verdicts: Iterable[Verdict],
    messages: Sequence[str],
    processes: int,
    title: str,
    *,
    complete: bool,
) -> Diagram:
    """Draw what verdicts name, or these messages, or the first ones of the run."""
    known = {event.message: event for event in events if event.kind == MULTICAST}
    for message in messages:
        if message not in known:
            raise UsageError(f"there is no message '{message}'; latencies has the names of all")
    witness = {
        (step.process, step.step)
        for verdict in verdicts
        for step in verdict.witness or ()
        if not messages
    }
    if not messages and not witness:
        by_time = sorted(known.values(), key=lambda event: (event.time, event.place))
        messages = [event.message or "" for event in by_time[:FIRST_MESSAGES]]
    if messages:
        events = [e for e in events if e.message is None or e.message in messages]
    letters = {message: chr(ord("a") + place % 26) for place, message in enumerate(messages)}
    return diagram(events, letters, witness, processes, title, complete=complete)


def page(
    summary: Sequence[str],
    verdicts: Sequence[Verdict],
    notes: Sequence[str],
    picture: Diagram,
) -> str:
    """Return a run as a notebook shows it."""
    told = [
        element("pre", str(verdict), class_="violated")
        for verdict in verdicts
        if verdict.outcome is Outcome.VIOLATED
    ]
    for outcome in (Outcome.UNKNOWN, Outcome.HOLDS):
        names = [verdict.property for verdict in verdicts if verdict.outcome is outcome]
        if names:
            told.append(element("p", f"{', '.join(names)}: {outcome.value}"))
    return element(
        "div",
        element("style", Markup(LOOKS)),
        element("pre", "\n".join(summary)),
        join(told),
        *(element("p", f"Note: {note}") for note in notes),
        Markup(picture.standalone),
        class_="flexgroup",
    )
