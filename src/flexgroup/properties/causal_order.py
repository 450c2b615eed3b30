"""Causal order (Hadzilacos & Toueg 1994; precedence as by Lamport 1978), for any process.

If the multicast of m causally precedes that of m', no destination of both delivers m' unless it
has delivered m before.

The multicast of m causally precedes that of m' if the same process multicast m before m', or
if it delivered m before it multicast m', or through a chain of such steps, which may well pass
through messages that are not addressed to the destination. Violations are counted in
deliveries that came too early (m' at one process).

A trace in which a message precedes itself contradicts itself. Of the messages that follow from
there only FIFO order is asked; if nothing violates it, and nothing else is wrong, the verdict is
unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flexgroup.properties.explanations import Letters, at, holds, plural, violated
from flexgroup.properties.fifo_order import (
    earliest,
    latest_of_same_sender,
    positions,
    premature,
    premature_line,
)
from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.kernels.causal_past import latest_in_causal_past
from flexgroup.properties.kernels.grouping import marked
from flexgroup.properties.kernels.layered_clocks import LayeredClocks
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import MULTICAST

NAME = "causal order"

Edges = tuple[Ints, Ints]


def check(run: IndexedHistory) -> Verdict:
    wrong, order = too_early(run)
    if len(wrong):
        return violation(run, wrong)
    if len(order) < run.message_count:
        caught = np.setdiff1d(np.arange(run.message_count), order)
        return contradiction(len(caught), run.name(int(caught[0])))
    return holds(run, NAME)


def too_early(run: IndexedHistory) -> tuple[Ints, Ints]:
    """Return the copies that were delivered too early; and the messages, in an order in which none
    comes before what precedes it: not all of them if the trace contradicts itself."""
    by_sender, by_delivery = _precedence(run)
    # If nobody multicast after a delivery, as when all senders are clients, FIFO is all.
    if len(by_delivery[0]) == 0:
        return premature(run, latest_of_same_sender(run)), np.arange(run.message_count)
    sources = np.concatenate([by_sender[0], by_delivery[0]])
    targets = np.concatenate([by_sender[1], by_delivery[1]])
    precedence = LayeredClocks(sources, targets, run.message_count)
    copies = run.copies
    latest = latest_in_causal_past(precedence, copies.message, copies.process, positions(run))
    if len(precedence.order) < run.message_count:
        # Those that are in the order have in their past what their sender multicast before.
        latest = np.maximum(latest, latest_of_same_sender(run))
    return premature(run, latest), precedence.order


def _precedence(run: IndexedHistory) -> tuple[Edges, Edges]:
    """Return edges that generate causal precedence: by the same sender, and by delivery before."""
    multicasts, deliveries, queues = run.history.multicasts, run.history.deliveries, run.queues
    rows = np.sort(run.multicast_row[run.multicast_row != NONE])
    message = np.searchsorted(run.identities, multicasts.message[rows])
    process = multicasts.process[rows]
    together = (process[1:] == process[:-1]) & ~run.faulty_by_design(process[1:])
    by_sender = message[:-1][together], message[1:][together]
    steps = 1 + max(int(multicasts.step.max(initial=0)), int(deliveries.step.max(initial=0)))
    after = np.searchsorted(
        process * steps + multicasts.step[rows],
        queues.process * steps + deliveries.step[queues.row],
    )
    useful = np.flatnonzero(after < len(rows))
    useful = useful[process[after[useful]] == queues.process[useful]]
    useful = useful[run.multicast_row[queues.message[useful]] != NONE]
    return by_sender, (queues.message[useful], message[after[useful]])


def violation(run: IndexedHistory, wrong: Ints) -> Verdict:
    copies = run.copies
    copy = earliest(run, wrong)
    here = np.flatnonzero(copies.process == copies.process[copy])
    late = here[positions(run)[here] > copies.row[copy]]
    sought = marked(run.message_count, copies.message[late])
    chain = shortest_chain(run, int(copies.message[copy]), sought)
    letter = Letters(run, [chain[0].cause, *(link.effect for link in chain)])
    lines = [letter.let()]
    witness = []
    for link in chain:
        cause, effect = letter[link.cause], letter[link.effect]
        lines.append(f"{cause} -> {effect}, because {link.reason(run, cause, effect)}")
        witness += [link.by, link.then]
    row = int(copies.row[late[copies.message[late] == chain[0].cause]][0])
    lines.append(premature_line(run, letter[chain[-1].effect], copy, letter[chain[0].cause], row))
    witness.append(run.delivery(int(copies.row[copy])))
    if row != NONE:
        witness.append(run.delivery(row))
    return violated(run, NAME, len(wrong), witness, lines)


def contradiction(caught: int, message: str) -> Verdict:
    """Return the verdict on a run in which so many messages, this one among them, lie on loops of
    causes or behind them."""
    explanation = (
        f"the trace contradicts itself: following causes back from"
        f" {plural(caught, 'message')}, message {message}"
        f" among them, leads to a message that was delivered before it was multicast"
    )
    return Verdict(NAME, Outcome.UNKNOWN, 0, None, explanation)


# Why one message causally precedes another: a shortest chain of reasons.


@dataclass(frozen=True)
class CausalLink:
    """A process multicast or delivered `cause` and then multicast `effect`."""

    cause: int
    effect: int
    by: Step
    then: Step

    def reason(self, run: IndexedHistory, cause: str, effect: str) -> str:
        verbs = ("multicast", "") if self.by.event == MULTICAST else ("delivered", "multicast ")
        return (
            f"{run.node(self.by.process)} {verbs[0]} {cause} {at(self.by)}"
            f" and then {verbs[1]}{effect} {at(self.then)}"
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
