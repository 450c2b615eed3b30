"""All events of a run together: whether they contradict each other, or what is told of the run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flexgroup.core.errors import UsageError
from flexgroup.core.message import name_of
from flexgroup.trace import schema
from flexgroup.trace.history import Ints, by_pairs, no_ints
from flexgroup.trace.reader import ints, messages
from flexgroup.trace.rules import SEE, Flags, rows_told
from flexgroup.trace.run import Run, lost_processes
from flexgroup.trace.run_files import other_number

KEPT = {schema.RECEIVE: ("peer", "sent"), schema.MULTICAST: ("origin", "seq")}
"""The columns that `RunEvents` needs besides process and step."""


def kept_columns(kind: str) -> tuple[str, ...]:
    """Return the columns of events of this kind that `RunEvents` needs."""
    return "process", "step", *KEPT.get(kind, ())


class RunEvents:
    """What is kept of the events of a run, kind by kind, to see whether they contradict each
    other or what is told of the run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._steps: dict[str, tuple[Ints, Ints]] = {}
        self._multicast = no_ints()
        self._received = no_ints(), no_ints()

    def take(self, kind: str, rows: pa.Table) -> None:
        """Take all events of one kind, with the columns that are kept of them."""
        self._steps[kind] = ints(rows, "process"), ints(rows, "step")
        if kind == schema.MULTICAST:
            self._multicast = messages(rows)
        if kind == schema.RECEIVE:
            self._received = ints(rows, "peer", -1), ints(rows, "sent", -1)

    def refuse_contradictions(self) -> None:
        """Raise a UsageError if there are any among the events that were taken."""
        name = self.run.run
        for kind, (process, _) in self._steps.items():
            told, found = self.run.told_events, len(process)
            if told is not None and told.get(kind, 0) != found:
                raise UsageError(f"run '{name}' {other_number(kind, told.get(kind, 0), found)}")
        if self._steps:
            columns = zip(*self._steps.values(), strict=True)
            processes, steps = (np.concatenate(column) for column in columns)
            refuse_repeated_steps(name, processes, steps)
        refuse_repeated_multicasts(name, self._multicast)
        sends = self._steps.get(schema.SEND, (no_ints(), no_ints()))
        if len(sends[0]):
            self._refuse_unsent(sends)

    def _refuse_unsent(self, sends: tuple[Ints, Ints]) -> None:
        """Refuse packets that were received, but not sent at the step of the peer that the receive
        row names, unless the last events of that peer are lost."""
        peer, sent = self._received
        known = (peer >= 0) & (sent >= 0) & ~np.isin(peer, lost_processes(self.run.lost))
        peer, sent = peer[known], sent[known]
        wrong = np.flatnonzero(~_among(peer, sent, *sends))
        if len(wrong):
            raise UsageError(
                f"run '{self.run.run}' has {rows_told(len(wrong))} of packets that process "
                f"{peer[wrong[0]]} did not send: it sent nothing at step {sent[wrong[0]]}; send "
                f"events are missing: copy the trace set again, or record the run again; {SEE}"
            )


def refuse_repeated_steps(run: str, process: Ints, step: Ints) -> None:
    """Raise a UsageError if a process took a step twice, in whatever kinds of events."""
    if _are_distinct(process, step):
        return
    order = by_pairs(process, step)
    process, step = process[order], step[order]
    same = np.flatnonzero((process[1:] == process[:-1]) & (step[1:] == step[:-1]))
    twice = int(process[same[0]]), int(step[same[0]])
    rows = int(np.count_nonzero((process == twice[0]) & (step == twice[1])))
    raise mixed_runs(run, *twice, rows)


def mixed_runs(run: str, process: int, step: int, rows: int) -> UsageError:
    return UsageError(
        f"in run '{run}' process {process} has {rows} events at step {step}: "
        "two runs with the same name are mixed; keep one of them "
        "(`flexgroup validate` names the files)"
    )


def refuse_repeated_multicasts(run: str, message: Ints) -> None:
    """Raise a UsageError if one of these messages was multicast twice."""
    ordered = np.sort(message)
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(again):
        raise UsageError(multicast_twice(run, name_of(int(ordered[again[0]]))))


def multicast_twice(run: str, message: str) -> str:
    return (
        f"in run '{run}' message {message} was multicast twice, and a message has one multicast: "
        f"number the messages of each origin; {SEE}"
    )


SPARSE = 64
"""Pairs are looked up in a table of flags if that has at most so many for each pair."""


def _table_span(process: Ints, step: Ints) -> int | None:
    """Return by how much the places of a process and the next lie apart in a table of flags for
    these pairs; None where that would be too large."""
    if len(process) == 0 or min(int(process.min()), int(step.min())) < 0:
        return None
    span = int(step.max()) + 1
    return span if (int(process.max()) + 1) * span <= SPARSE * len(process) else None


def _are_distinct(process: Ints, step: Ints) -> bool:
    span = _table_span(process, step)
    if span is not None:
        return int(np.count_nonzero(_table(process, step, span))) == len(process)
    order = by_pairs(process, step)
    process, step = process[order], step[order]
    return not ((process[1:] == process[:-1]) & (step[1:] == step[:-1])).any()


def _among(process: Ints, step: Ints, processes: Ints, steps: Ints) -> Flags:
    """Tell which of these pairs are among those pairs."""
    span = _table_span(processes, steps)
    if span is None:  # steps that lie far apart, as times do: their places in order do not
        distinct, places = np.unique(steps, return_inverse=True)
        place = np.minimum(np.searchsorted(distinct, step), len(distinct) - 1)
        count = len(distinct)
        known: Flags = np.isin(process * count + place, processes * count + places)
        known &= distinct[place] == step
        return known
    table = _table(processes, steps, span)
    inside = (step < span) & (process < len(table) // span)
    found: Flags = inside & table[np.where(inside, process * span + step, 0)]
    return found


def _table(process: Ints, step: Ints, span: int) -> Flags:
    table = np.zeros((int(process.max()) + 1) * span, dtype=np.bool_)
    table[process * span + step] = True
    return table
