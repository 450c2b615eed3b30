"""Why one message causally precedes another: a shortest chain of reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.verdict import Step
from flexgroup.trace.schema import MULTICAST


@dataclass(frozen=True)
class CausalLink:
    """A process multicast or delivered `cause` and then multicast `effect`."""

    cause: int
    effect: int
    by: Step
    then: Step

    def reason(self, cause: str, effect: str) -> str:
        verbs = ("multicast", "") if self.by.event == MULTICAST else ("delivered", "multicast ")
        return (
            f"process {self.by.process} {verbs[0]} {cause} (step {self.by.step})"
            f" and then {verbs[1]}{effect} (step {self.then.step})"
        )


def shortest_chain(run: IndexedHistory, message: int, sought: Flags) -> list[CausalLink]:
    """Return the links from the nearest sought message to the given one, whose past holds some.

    The search is breadth first and backwards. Only that part of a process's history is read that
    was not read yet, so the cost is linear in events.
    """
    how: dict[int, CausalLink] = {}
    frontier = [message]
    past = _Past(run)
    for effect in frontier:
        then = run.multicast(effect)
        for cause, by in past.unread_before(then, int(run.multicast_row[effect])):
            if cause not in how and cause != message:
                how[cause] = CausalLink(cause, effect, by, then)
                frontier.append(cause)
                if sought[cause]:
                    return _links(how, cause, message)
    raise ValueError("no sought message is in the causal past")


def _links(how: dict[int, CausalLink], cause: int, message: int) -> list[CausalLink]:
    links = []
    while cause != message:
        links.append(how[cause])
        cause = how[cause].effect
    return links


class _Past:
    """Reads each process's history at most once, in growing prefixes."""

    def __init__(self, run: IndexedHistory) -> None:
        self._run = run
        self._multicasts_read: dict[int, int] = {}
        self._deliveries_read: dict[int, int] = {}

    def unread_before(self, then: Step, multicast_row: int) -> Iterator[tuple[int, Step]]:
        """Yield the messages multicast or delivered at the process before this step, and where."""
        run, process = self._run, then.process
        if process in run.history.faulty:
            return
        multicasts, deliveries = run.history.multicasts, run.history.deliveries
        start = int(np.searchsorted(multicasts.process, process))
        start = self._multicasts_read.get(process, start)
        self._multicasts_read[process] = max(start, multicast_row)
        for row in range(start, multicast_row):
            message = int(np.searchsorted(run.identities, multicasts.message[row]))
            if run.multicast_row[message] == row:
                yield message, run.multicast(message)
        start = int(np.searchsorted(deliveries.process, process))
        end = int(np.searchsorted(deliveries.process, process, side="right"))
        end = start + int(np.searchsorted(deliveries.step[start:end], then.step))
        start = self._deliveries_read.get(process, start)
        self._deliveries_read[process] = max(start, end)
        for row in range(start, end):
            message = int(run.delivered[row])
            if run.multicast_row[message] != NONE:
                yield message, run.delivery(row)
