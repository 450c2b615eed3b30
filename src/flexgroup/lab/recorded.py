"""A recorded run as a script, so that it opens as scripts do.

A trace tells what each process was told, and when. The packets that arrived are found again in
their channels by the steps in which they were sent; those that never arrived stay there, unless
others that arrived must have overtaken them: then they were lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee
from flexgroup.diagram.events import Place, TraceEvent, events_of_run
from flexgroup.lab.address import Address
from flexgroup.lab.opened import open_script
from flexgroup.lab.stepping import stand_at
from flexgroup.trace.reader import read_runs
from flexgroup.trace.run import Run
from flexgroup.trace.schema import (
    CHOICE,
    CRASH,
    MULTICAST,
    RECEIVE,
    RECOVER,
    SEND,
    SUSPECT,
    TIMER,
    VIEW,
)
from flexgroup.trace.timeline import events_told_of

MOST_STEPPED = 5_000
"""Runs of so many events are tried to be stepped through: longer ones have more than 500 moves."""


STEPPED = ("explorer", "simulator")
"""The worlds whose runs can be stepped through, if they are small: others tell less."""


def steps_of(directory: Path, run: Run, runs: Collection[str] = ()) -> Address:
    """Return a recorded run as one to be stepped through, all of it ahead; a UsageError says why
    that is not possible."""
    count = events_told_of(directory, run, runs)
    if count > MOST_STEPPED:
        raise UsageError(
            f"run '{run.run}' has {count:,} events, and up to {MOST_STEPPED:,} can be stepped "
            "through: look at it as a whole"
        )
    try:
        return stand_at(open_script(script_of_trace(directory, run.run)).whole).address.at(0)
    except UsageError as error:
        raise UsageError(f"run '{run.run}' cannot be stepped through: {error}") from None


def script_of_trace(directory: Path, name: str | None = None) -> str:
    """Return the run of this name, or the only one, of a trace set as a script."""
    run = run_of_name(directory, name)
    return "\n".join([_head(run), *_Telling(run).commands(directory), ""])


def run_of_name(directory: Path, name: str | None = None) -> Run:
    """Return the run of this name, or the only one, of a trace set."""
    runs = {row.run: row for row in read_runs(directory)}
    if name is None and len(runs) == 1:
        name = next(iter(runs))
    if name is None or name not in runs:
        known = ", ".join(list(runs)[:20])
        raise UsageError(f"which run of '{directory}'? Give --run and one of these: {known}")
    return runs[name]


def _head(run: Run) -> str:
    channels = "fifo" if Guarantee.FIFO.value in (run.channels or ()) else "reordering"
    sizes = ",".join(str(len(group)) for group in run.replicas)
    told = f", replicas {sizes}" if sizes else ""
    return f"stack {run.stack} over {channels} channels, processes {run.processes}{told}"


class _Telling:
    """The events of a run told as commands, in the order of time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._fifo = Guarantee.FIFO.value in (run.channels or ())
        self._channels: defaultdict[tuple[int, int], list[Place]] = defaultdict(list)

    def commands(self, directory: Path) -> Iterator[str]:
        events = events_of_run(directory, self._run.run)
        for event in sorted(events, key=lambda event: (event.time, event.process, event.step)):
            yield from self._told(event)

    def _told(self, event: TraceEvent) -> Iterator[str]:
        process, details = event.process, event.details
        kind = event.kind
        if kind == MULTICAST:
            to = ",".join(map(str, event.destinations))
            yield f"cast {process} m{str(event.message).replace('.', '_')} to={to}"
        elif kind == SEND and event.peer is not None:
            self._channels[process, event.peer].append(event.place)
        elif kind == RECEIVE:
            yield from self._arrival(event)
        elif kind == TIMER:
            yield f"timer {process} {details['name']}"
        elif kind == CHOICE:
            yield f"choose {process} {details['chosen']}"
        elif kind == CRASH:
            yield f"crash {process}"
        elif kind == RECOVER:
            yield f"recover {process}"
        elif kind == SUSPECT:
            yield f"{'trust' if event.is_trust else 'suspect'} {process} {event.peer}"
        elif kind == VIEW and details.get("told"):
            members = ",".join(map(str, details["members"]))
            yield f"view {process} {details['number']} of={members}"

    def _arrival(self, event: TraceEvent) -> Iterator[str]:
        channel = self._channels[event.peer or 0, event.process]
        sent = (event.peer or 0, event.sent if event.sent is not None else -1)
        if sent not in channel:
            raise UsageError(
                f"run '{self._run.run}' has a packet that arrives twice, or whose sending was not "
                f"recorded (process {event.process}, step {event.step}); the lab cannot follow it"
            )
        place = channel.index(sent)
        if self._fifo:
            yield from [f"drop {event.peer}->{event.process}"] * place
            del channel[: place + 1]
            place = 0
        else:
            del channel[place]
        yield f"deliver {event.peer}->{event.process}" + (f" {place}" if place else "")
