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

import numpy as np

from flexgroup.core.message import name_of
from flexgroup.properties.causal_chain import shortest_chain
from flexgroup.properties.explanations import Letters, holds, plural, violated
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.causal_past import latest_in_causal_past
from flexgroup.properties.kernels.graphs import peel
from flexgroup.properties.premature_deliveries import (
    earliest,
    latest_of_same_sender,
    positions,
    premature,
    premature_line,
)
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.history import Ints

NAME = "causal order"

Edges = tuple[Ints, Ints]


def check(run: IndexedHistory) -> Verdict:
    by_sender, by_delivery = _precedence(run)
    latest = latest_of_same_sender(run)
    order = np.arange(run.message_count)
    # If nobody multicast after a delivery, as when all senders are clients, FIFO is all.
    if len(by_delivery[0]):
        sources = np.concatenate([by_sender[0], by_delivery[0]])
        targets = np.concatenate([by_sender[1], by_delivery[1]])
        order = peel(sources, targets, run.message_count)
        copies = run.copies
        in_past = latest_in_causal_past(
            order,
            sources,
            targets,
            copies.message,
            copies.process,
            positions(run),
            run.message_count,
        )
        latest = np.maximum(latest, in_past)
    wrong = premature(run, latest)
    if len(wrong):
        return _violation(run, wrong)
    if len(order) < run.message_count:
        return _contradiction(run, order)
    return holds(run, NAME)


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


def _violation(run: IndexedHistory, wrong: Ints) -> Verdict:
    copies = run.copies
    copy = earliest(run, wrong)
    here = np.flatnonzero(copies.process == copies.process[copy])
    late = here[positions(run)[here] > copies.row[copy]]
    sought = np.zeros(run.message_count, dtype=np.bool_)
    sought[copies.message[late]] = True
    chain = shortest_chain(run, int(copies.message[copy]), sought)
    letter = Letters(run, [chain[0].cause, *(link.effect for link in chain)])
    lines = [letter.let()]
    witness = []
    for link in chain:
        cause, effect = letter[link.cause], letter[link.effect]
        lines.append(f"{cause} -> {effect}, because {link.reason(cause, effect)}")
        witness += [link.by, link.then]
    row = int(copies.row[late[copies.message[late] == chain[0].cause]][0])
    lines.append(premature_line(run, letter[chain[-1].effect], copy, letter[chain[0].cause], row))
    witness.append(run.delivery(int(copies.row[copy])))
    if row != NONE:
        witness.append(run.delivery(row))
    return violated(NAME, len(wrong), witness, lines)


def _contradiction(run: IndexedHistory, order: Ints) -> Verdict:
    caught = np.setdiff1d(np.arange(run.message_count), order)
    explanation = (
        f"the trace contradicts itself: following causes back from"
        f" {plural(len(caught), 'message')}, message {name_of(run.identity(int(caught[0])))}"
        f" among them, leads to a message that was delivered before it was multicast"
    )
    return Verdict(NAME, Outcome.UNKNOWN, 0, None, explanation)
