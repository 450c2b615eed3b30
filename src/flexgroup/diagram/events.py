"""The events that a diagram is drawn from, as rows of a trace tell them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flexgroup.trace.collector import Collector
from flexgroup.trace.names import Names
from flexgroup.trace.reader import read_events
from flexgroup.trace.schema import KINDS, SUSPECT

Place = tuple[int, int]
"""The process and the step of an event, which no other event of the run shares."""


@dataclass(frozen=True)
class TraceEvent:
    """A row of a trace; a message is named `origin.seq`."""

    kind: str
    process: int
    step: int
    time: int
    message: str | None = None
    destinations: tuple[int, ...] = ()
    peer: int | None = None
    packet: str | None = None
    sent: int | None = None
    detail: str | None = None
    name: str | None = None
    """What the message is called where the run comes from."""

    @property
    def place(self) -> Place:
        return self.process, self.step

    @property
    def details(self) -> dict[str, Any]:
        """What the detail says; nothing, if it is not an object in JSON."""
        try:
            told = json.loads(self.detail or "{}")
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}

    @property
    def is_trust(self) -> bool:
        """Whether this takes a suspicion back."""
        return self.kind == SUSPECT and self.details.get("suspected") is False


def event_of(row: Mapping[str, Any]) -> TraceEvent:
    """The event of a row with the columns of a trace and its kind in the column `event`."""
    origin = row.get("origin")
    return TraceEvent(
        kind=row["event"],
        process=row["process"],
        step=row["step"],
        time=row["time"],
        message=None if origin is None else f"{origin}.{row['seq']}",
        destinations=tuple(row.get("destinations") or ()),
        peer=row.get("peer"),
        packet=row.get("packet"),
        sent=row.get("sent"),
        detail=row.get("detail"),
        name=row.get("name"),
    )


def with_messages(names: Names, events: Iterable[TraceEvent]) -> Names:
    """Return the names of a run, and of the messages that these events tell the name of."""
    told = {event.message: event.name for event in events if event.message and event.name}
    return replace(names, messages={**told, **names.messages})


def events_of_run(directory: Path, run: str) -> list[TraceEvent]:
    """All events of a run of a trace set."""
    return _events((kind, read_events(directory, run, kind)) for kind in KINDS)


def events_in_memory(collector: Collector) -> list[TraceEvent]:
    """All events of a run that was collected in memory."""
    return _events(collector.tables())


def _events(tables: Iterable[tuple[str, Any]]) -> list[TraceEvent]:
    return [event_of({**row, "event": kind}) for kind, table in tables for row in table.to_pylist()]
