"""A simulated run: what happened, what the checks say, what it achieved, and how it looks."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.diagram.events import TraceEvent, events_in_memory, events_of_run
from flexgroup.liars.named import in_words, parse_liars
from flexgroup.metrics.catalogue import HEADLINES, METRICS, Number
from flexgroup.metrics.costs import Costs
from flexgroup.metrics.in_memory import metrics_of, span_of
from flexgroup.metrics.period import SECOND, measured_period
from flexgroup.properties.catalogue import check as check_properties
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.runs.options import each
from flexgroup.runs.remarks import remarks
from flexgroup.trace import schema
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.trace.reader import load_history, read_run
from flexgroup.trace.run import Run
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import (
    Progress,
    Scenario,
    SimulationResult,
    description,
    parse_groups,
    record_scenario,
    run_scenario,
)

if TYPE_CHECKING:
    import pandas as pd

    from flexgroup.diagram.drawing import Diagram
    from flexgroup.runs.shown import Picture


CHECKS = ("promised", "all", "none")
"""Which properties may be checked after a run."""


class HandlerRaisedError(Exception):
    """A handler of a layer raised an error, which ends a simulation."""

    def __init__(self, scenario: Scenario, failure: str) -> None:
        explanation = (
            f"a handler raised {failure}\n"
            f"the explorer looks for a smallest run of it, as a script: flexgroup explore "
            f"--protocol '{scenario.stack}' --processes 2 --message 0:0,1 --message 1:0,1"
        )
        super().__init__(explanation)
        self.run = scenario.run
        self.verdict = Verdict("conduct", Outcome.VIOLATED, 1, None, explanation)


@dataclass(frozen=True)
class SimulatedRun:
    """A run of the simulator; a notebook shows it as its summary, its verdicts and a picture."""

    scenario: Scenario
    outcome: SimulationResult
    described: Run
    checked: tuple[Verdict, ...]
    """What the checks say, with explanations and witnesses."""
    history: History | None
    """None where nobody asked for checks of a run that was written into files."""
    source: Collector | Path
    """The rows of the run, or the trace set that has them."""

    @property
    def violated(self) -> bool:
        return any(verdict.outcome is Outcome.VIOLATED for verdict in self.checked)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What has to be known to read verdicts and numbers."""
        return tuple(remarks(self.scenario, self.outcome, self.history, self.checked))

    @cached_property
    def metrics(self) -> dict[str, Number]:
        """All metrics of docs/measures.md; none of a run without history."""
        return {} if self.history is None else metrics_of(self.described, self.history)

    @cached_property
    def events(self) -> list[TraceEvent]:
        """The events of the run as rows of its trace tell them."""
        if isinstance(self.source, Collector):
            return events_in_memory(self.source)
        return events_of_run(self.source, self.outcome.run)

    def summary(self) -> list[str]:
        """Say in a few lines what happened and what it achieved."""
        ended = "complete" if self.outcome.complete else "cut short"
        if self.history is None:
            measure = f"flexgroup measure {self.source} tells what it achieved"
            return [
                f"run {self.outcome.run}",
                f"  {self.outcome.events} events; {ended}; {measure}",
            ]
        metrics = self.metrics
        throughput, latency = ((METRICS[name], float(metrics[name] or 0.0)) for name in HEADLINES)
        begin, end, _ = measured_period(self.described, span_of(self.described, self.history))
        return [
            f"run {self.outcome.run}",
            f"  {metrics['messages']} multicasts, {self.answered} answered, "
            f"{metrics['deliveries']} deliveries, {self.outcome.events} events; {ended}",
            f"  throughput {throughput[0].text(throughput[1])} messages/s, "
            f"mean latency {latency[0].text(latency[1])} ms until the last delivery, "
            f"both from {begin / SECOND:g} to {end / SECOND:g} s",
            f"  {Costs.among(metrics)}",
        ]

    @property
    def answered(self) -> int:
        """How many messages were delivered by all their destinations that never crash."""
        return int(self.metrics["messages"] or 0) - int(self.metrics["unanswered"] or 0)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """A row for each property that was checked."""
        from flexgroup.runs.frames import verdict_table

        return verdict_table(self.checked)

    @cached_property
    def latencies(self) -> pd.DataFrame:
        """A row for each message, in seconds; `measured` are those behind the mean latency."""
        from flexgroup.runs.frames import latency_table

        return latency_table(self._history, self.described)

    def plot(self) -> Picture:
        """The share of messages that were delivered within a time."""
        from flexgroup.runs.shown import distribution

        return distribution(self.latencies, self.scenario.stack)

    def diagram(self, *messages: str) -> Diagram:
        """The space-time diagram of what a check found, or of these messages, named as `16.0`.

        Without either, of the first messages of the run.
        """
        from flexgroup.runs.shown import run_diagram

        return run_diagram(
            self.events,
            self.checked,
            messages,
            self.scenario.processes,
            self.outcome.run,
            complete=self.outcome.complete,
        )

    @property
    def _history(self) -> History:
        if self.history is None:
            raise FlexGroupError("nothing was read of this run: simulate it with check='promised'")
        return self.history

    @property
    def command(self) -> str:
        """The command that simulates the run again."""
        from flexgroup.report.production import commands

        return commands(asdict(self.described))[0]

    def to_json(self) -> dict[str, object]:
        """Return what the command prints as JSON."""
        known = bool(self.metrics)
        throughput, latency = (self.metrics.get(name) for name in HEADLINES)
        return {
            "run": self.outcome.run,
            "complete": self.outcome.complete,
            "events": self.outcome.events,
            "silent": [asdict(silent) for silent in self.outcome.silent],
            "turned_away": self.outcome.turned_away,
            "multicasts": self.metrics.get("messages"),
            "answered": self.answered if known else None,
            "deliveries": self.metrics.get("deliveries"),
            "throughput": throughput,
            "mean_latency": latency,
            "costs": Costs.among(self.metrics).to_json() if known else None,
            "verdicts": [verdict.to_json() for verdict in self.checked],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(
            [*self.summary(), *map(str, self.checked), *(f"note: {note}" for note in self.notes)]
        )

    def _repr_html_(self) -> str:
        from flexgroup.runs.shown import page

        return page(self.summary(), self.checked, self.notes, self.diagram())

    def _repr_svg_(self) -> str:
        return self.diagram()._repr_svg_()


def simulate(
    protocol: str,
    *,
    processes: int | None = None,
    groups: str = "",
    clients: int = 16,
    workload: str = "random:4",
    network: str = "lan",
    link: str | Sequence[str] = (),
    duration: float = 1.0,
    drain: float = 10.0,
    answers: str = "",
    rate: float = 0.0,
    cast: str | Sequence[str] = (),
    seed: int = 1,
    out: str | Path | None = None,
    force: bool = False,
    part_rows: int | None = None,
    check: str = "promised",
    crash: str | Sequence[str] = (),
    recover: str | Sequence[str] = (),
    partition: str | Sequence[str] = (),
    suspect: str | Sequence[str] = (),
    view: str | Sequence[str] = (),
    detection: str | None = None,
    twin: str | Sequence[str] = (),
    liar: str | Sequence[str] = (),
    progress: Progress | None = None,
) -> SimulatedRun:
    """Simulate a stack, and check what it promises, `all` or `none` of the properties.

    Arguments are the options of `flexgroup simulate`; what may be given several times there is a
    list here. With `out`, the run is written into that trace set, otherwise it is kept in memory.
    Raises a HandlerRaisedError where a layer raises.
    """
    if part_rows is not None and (part_rows < 1 or out is None):
        raise UsageError("--part-rows needs --out, and a number of rows from 1 on")
    if check not in CHECKS:
        raise UsageError(f"check='{check}' is not possible; write {', '.join(CHECKS)}")
    if processes is None:
        processes = sum(map(len, parse_groups(groups))) or 16
    scenario = Scenario(
        stack=" ".join(protocol.lower().split()),
        processes=processes,
        clients=clients,
        workload=workload,
        network=network,
        duration=duration,
        seed=seed,
        rate=rate,
        drain=drain,
        faults=Faults(
            crashes=each(crash),
            recoveries=each(recover),
            partitions=each(partition),
            suspicions=each(suspect),
            detection=detection,
            views=each(view),
            liars=tuple(in_words(parse_liars(each(twin), each(liar)))),
        ),
        casts=" ".join(each(cast)),
        groups=groups,
        answers=answers,
        links=" ".join(each(link)),
    )
    try:
        if out is None:
            return _in_memory(scenario, check, progress)
        outcome = record_scenario(scenario, Path(out), force, progress, part_rows)
    except FlexGroupError:
        raise
    except Exception as error:
        place = _handler_that_raised(scenario, error)
        if place is None:
            raise
        failure = f"{type(error).__name__}: {error} ({place})"
        raise HandlerRaisedError(scenario, failure) from error
    row = read_run(Path(out), outcome.run)
    history = None if check == "none" else load_history(Path(out), row)
    verdicts = _checked(row, history, check)
    return SimulatedRun(scenario, outcome, row, verdicts, history, Path(out))


def _in_memory(scenario: Scenario, checks: str, progress: Progress | None) -> SimulatedRun:
    collector = Collector()
    outcome = run_scenario(scenario, collector, progress)
    ended = schema.COMPLETE if outcome.complete else schema.CUT
    row = replace(description(scenario), outcome=ended)
    history = collector.history(row.run, row.processes, row.complete, row.faulty)
    verdicts = _checked(row, history, checks)
    return SimulatedRun(scenario, outcome, row, verdicts, history, collector)


def _checked(row: Run, history: History | None, checks: str) -> tuple[Verdict, ...]:
    if history is None or checks == "none":
        return ()
    return tuple(check_properties(history, None if checks == "all" else row.promised))


def _handler_that_raised(scenario: Scenario, error: Exception) -> str | None:
    """Return the place in a layer at which an error arose, if it did there."""
    files = {
        getattr(sys.modules.get(layer.__module__), "__file__", None)
        for layer in parse_stack(scenario.stack).layers
    }
    inner = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    if not inner:
        return None
    return f"{inner[-1].name}, {Path(inner[-1].filename).name}, line {inner[-1].lineno}"
