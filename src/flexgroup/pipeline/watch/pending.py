"""The messages of a run that are pending: still in flight, or delivered after such a message.

A message may be forgotten once nothing can happen to it any more: it was multicast, all its
destinations delivered it, and so did they with everything that some process delivered before it.
No later event can then make it part of a circle, come before it, or be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from flexgroup.pipeline.in_memory.event_rows import history_of_rows, integers
from flexgroup.properties.indexed_history import NONE, DeliveryQueues, Flags, IndexedHistory
from flexgroup.properties.kernels.head_merge import latest_ancestor
from flexgroup.trace.history import Ints, RunFacts

WAITING, DONE = 0, -1


class PendingHistory(IndexedHistory):
    """The kept rows, prepared for checking.

    Released messages are those that were waited for too long: they are no longer part of any
    order, but what is missing of them is still known.
    """

    def __init__(self, rows: pa.Table, about: RunFacts, released: Ints) -> None:
        super().__init__(history_of_rows(rows, about))
        self.rows = rows
        self.released: Flags = np.isin(self.identities, released)

    @cached_property
    def queues(self) -> DeliveryQueues:
        rows = np.flatnonzero(~(self.repeated | self.released[self.delivered]))
        return DeliveryQueues(rows, self.history.deliveries.process[rows], self.delivered[rows])

    @cached_property
    def is_open(self) -> Flags:
        """Whether its multicast or a delivery of it is still to come, per message."""
        is_open: Flags = self.multicast_row == NONE
        is_open[self.copies.message[self.copies.row == NONE]] = True
        return is_open

    def only(self, messages: Flags) -> IndexedHistory:
        """Return the history of some of the messages."""
        wanted = self.identities[messages]
        chosen = np.isin(integers(self.rows, "message"), wanted)
        return IndexedHistory(history_of_rows(self.rows.filter(pa.array(chosen)), self.history))


@dataclass(frozen=True)
class Removals:
    """Which messages are forgotten, which are waited for no longer, how many cyclic components
    go, and whether anything is given up that may still matter."""

    leaving: Flags
    released: Flags
    components: int
    gave_up: bool


def removals(
    run: PendingHistory, hold: int, uncertain: Flags | None = None, has_causes: bool = False
) -> Removals:
    """Return what can go; more than `hold` deliveries are not kept for the sake of order.

    Messages of which something is uncertain are waited for, too. If causes matter, what follows
    causally from messages that are kept is kept.
    """
    waiting = run.is_open & ~run.released
    released, gave_up = run.released, False
    if uncertain is not None:
        held = _behind(run, waiting | uncertain, has_causes)
        gave_up = _deliveries_of(run, held) > hold
    if uncertain is None or gave_up:
        held = _behind(run, waiting, has_causes=False)
    if _deliveries_of(run, held) > hold:
        gave_up = True
        given_up = waiting & _old(run, held)
        held_then = _behind(run, waiting & ~given_up, has_causes=False)
        if _deliveries_of(run, held_then) > hold:
            given_up, held_then = waiting, np.zeros_like(held)
        released, held = released | (given_up & ~held_then), held_then
    components = sum(1 for component in run.merge.components if not held[component[0]])
    return Removals(~held & ~run.is_open, released & run.is_open, components, gave_up)


def _deliveries_of(run: PendingHistory, held: Flags) -> int:
    return int(np.count_nonzero(held[run.queues.message]))


def _behind(run: PendingHistory, waiting: Flags, has_causes: bool) -> Flags:
    """Tell, per message, whether it waits itself, or some process delivered it after one that
    does, or, if causes matter, it follows causally from one that does."""
    queues = run.queues
    while True:
        rank = np.where(waiting, WAITING, DONE)
        behind: Flags = latest_ancestor(run.merge, queues.process, queues.message, rank) == WAITING
        if not has_causes:
            return behind
        waiting = behind | _multicast_after(run, behind)
        if np.array_equal(waiting, behind):
            return behind


def _multicast_after(run: PendingHistory, held: Flags) -> Flags:
    """Tell, per message, whether its sender had multicast or delivered one that is held before."""
    sent, deliveries = run.history.multicasts, run.history.deliveries
    known = np.flatnonzero(run.multicast_row != NONE)
    sender, step = (column[run.multicast_row[known]] for column in (sent.process, sent.step))
    kept = np.flatnonzero(held[run.delivered])
    process = np.concatenate([sender[held[known]], deliveries.process[kept]])
    steps = np.concatenate([step[held[known]], deliveries.step[kept]])
    processes, place = np.unique(process, return_inverse=True)
    first = np.full(len(processes) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, place, steps)
    at = np.searchsorted(processes, sender)
    concerned = np.append(processes, NONE)[at] == sender
    after = np.zeros(run.message_count, dtype=np.bool_)
    after[known] = concerned & (step > first[at])
    return after


def _old(run: PendingHistory, held: Flags) -> Flags:
    """Tell, per message, whether a delivery of it is among the older half of those that are held.

    Time only chooses what is given up, and so when the bound can be kept.
    """
    rows = run.queues.row[held[run.queues.message]]
    time = run.history.deliveries.time[rows]
    old = np.zeros(run.message_count, dtype=np.bool_)
    old[run.delivered[rows[time <= np.median(time)]]] = True
    return old
