"""Runs that were tampered with, of any size: one kind of tampering each, and what must be found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from flexgroup.core.message import MessageId, message_id
from flexgroup.trace.history import Faults, History, View, views_of

from .tampering import (
    PROCESSES,
    ROOM,
    changed,
    correct,
    delivering,
    destinations,
    keeping,
    multicasting,
    row_in_the_middle,
    step_in_the_middle,
)


@dataclass(frozen=True)
class Tampered:
    history: History
    violated: str = ""
    """The property that must be found violated; nothing at all if this is empty."""
    messages: frozenset[MessageId] = frozenset()
    """The messages of the witness, where there is only one that they can be."""


FIRST, SECOND, THIRD = 900, 901, 902
"""Clients that multicast nothing in a correct run."""


def swapped(deliveries: int) -> Tampered:
    """Two deliveries of process 3 swapped, of messages that another process delivers too."""
    history = correct(deliveries)
    history, one, other = _swapped_after(history, row_in_the_middle(history, 3))
    return Tampered(replace(history, run="swapped"), "acyclic order", frozenset({one, other}))


def _swapped_after(history: History, row: int) -> tuple[History, MessageId, MessageId]:
    rows = history.deliveries
    while True:
        one, other = (int(rows.message[place]) for place in (row, row + 1))
        if len(destinations(history, one) & destinations(history, other)) > 1:
            break
        row += 1
    message = rows.message.copy()
    message[[row, row + 1]] = other, one
    return replace(history, deliveries=replace(rows, message=message)), one, other


def swapped_in_three_places(deliveries: int) -> Tampered:
    """Far from each other, so that no slice holds two of them."""
    history = correct(deliveries)
    start, end = np.searchsorted(history.deliveries.process, [3, 4])
    for share in (0.2, 0.5, 0.8):
        history, _, _ = _swapped_after(history, int(start + share * (end - start)))
    return Tampered(replace(history, run="swapped-in-three-places"), "acyclic order")


def cycle(deliveries: int) -> Tampered:
    """Three processes, three messages; no two processes share two of them."""
    history = correct(deliveries)
    a, b, c = (message_id(client, 0) for client in (FIRST, SECOND, THIRD))
    sent = [((FIRST, 0, a), (0, 2)), ((SECOND, 0, b), (0, 1)), ((THIRD, 0, c), (1, 2))]
    at = {process: step_in_the_middle(history, process) for process in range(3)}
    delivered = [
        (0, at[0], a), (0, at[0] + 1, b), (1, at[1], b), (1, at[1] + 1, c),
        (2, at[2], c), (2, at[2] + 1, a),
    ]  # fmt: skip
    tampered = delivering(multicasting(history, sent), delivered)
    return Tampered(replace(tampered, run="cycle"), "acyclic order", frozenset({a, b, c}))


def opposite_orders(deliveries: int) -> Tampered:
    """Two messages of two senders to the same two processes, which disagree."""
    history = correct(deliveries)
    a, b = message_id(FIRST, 0), message_id(SECOND, 0)
    sent = [((FIRST, 0, a), (0, 1)), ((SECOND, 0, b), (0, 1))]
    at = {process: step_in_the_middle(history, process) for process in range(2)}
    delivered = [(0, at[0], a), (0, at[0] + 1, b), (1, at[1], b), (1, at[1] + 1, a)]
    tampered = delivering(multicasting(history, sent), delivered)
    return Tampered(replace(tampered, run="opposite-orders"), "local order", frozenset({a, b}))


def reordered_at_one(deliveries: int) -> Tampered:
    """A client's second message comes before its first, at one of three processes."""
    tampered, a, b = _two_of_one_client(deliveries, {0: "ba", 1: "ab", 2: "ab"})
    return Tampered(replace(tampered, run="reordered-at-one"), "fifo order", frozenset({a, b}))


def reordered_at_all(deliveries: int) -> Tampered:
    """A client's second message comes before its first everywhere: nobody disagrees."""
    tampered, a, b = _two_of_one_client(deliveries, {0: "ba", 1: "ba", 2: "ba"})
    return Tampered(replace(tampered, run="reordered-at-all"), "fifo order", frozenset({a, b}))


def _two_of_one_client(
    deliveries: int, orders: dict[int, str]
) -> tuple[History, MessageId, MessageId]:
    history = correct(deliveries)
    names = {"a": message_id(FIRST, 0), "b": message_id(FIRST, 1)}
    to = tuple(orders)
    sent = [((FIRST, step, names[name]), to) for step, name in enumerate("ab")]
    delivered = [
        (process, step_in_the_middle(history, process) + place, names[name])
        for process, order in orders.items()
        for place, name in enumerate(order)
    ]
    tampered = delivering(multicasting(history, sent), delivered)
    return tampered, names["a"], names["b"]


def reversed_far(deliveries: int) -> Tampered:
    """What a process delivered first, it delivers last: most of the run is one cyclic component."""
    history = correct(deliveries)
    rows = history.deliveries
    start, end = np.searchsorted(rows.process, [3, 4])
    message = rows.message.copy()
    message[start:end] = np.roll(message[start:end], -1)
    tampered = replace(history, run="reversed-far", deliveries=replace(rows, message=message))
    return Tampered(tampered, "pairwise order")


def duplicate(deliveries: int) -> Tampered:
    history = correct(deliveries)
    row = row_in_the_middle(history, 5)
    message = int(history.deliveries.message[row])
    again = [(5, int(history.deliveries.step[row]) + 3, message)]
    tampered = delivering(history, again)
    return Tampered(replace(tampered, run="duplicate"), "integrity", frozenset({message}))


def duplicate_far(deliveries: int) -> Tampered:
    """The first message of a process comes again at the end of the run."""
    history = correct(deliveries)
    rows = history.deliveries
    start, end = np.searchsorted(rows.process, [5, 6])
    message = int(rows.message[start])
    tampered = delivering(history, [(5, int(rows.step[end - 1]) + 3, message)])
    return Tampered(replace(tampered, run="duplicate-far"), "integrity", frozenset({message}))


def lost(deliveries: int) -> Tampered:
    history = correct(deliveries)
    row = row_in_the_middle(history, 5)
    message = int(history.deliveries.message[row])
    tampered = delivering(history, [], without=row)
    return Tampered(replace(tampered, run="lost"), "agreement", frozenset({message}))


def lost_everywhere(deliveries: int) -> Tampered:
    """A message that was multicast and that nobody delivered: agreement has nothing to object."""
    history = correct(deliveries)
    message = int(history.deliveries.message[row_in_the_middle(history, 5)])
    tampered = keeping(history, history.deliveries.message != message)
    return Tampered(replace(tampered, run="lost-everywhere"), "validity", frozenset({message}))


def tail_lost(deliveries: int) -> Tampered:
    """The run is called complete, and a process did not deliver the last five messages to it."""
    return Tampered(replace(_without_tail(deliveries, 5), run="tail-lost"), "validity")


def cut_short(deliveries: int) -> Tampered:
    """The same deliveries are missing, and the run says that it was cut short."""
    tampered = _without_tail(deliveries, 5)
    return Tampered(replace(tampered, run="cut-short", complete=False))


def _without_tail(deliveries: int, number: int) -> History:
    history = correct(deliveries)
    end = int(np.searchsorted(history.deliveries.process, 3))
    kept = np.ones(len(history.deliveries.process), dtype=np.bool_)
    kept[end - number : end] = False
    return keeping(history, kept)


def multicast_lost(deliveries: int) -> Tampered:
    """The row of a multicast is gone, and its deliveries are there."""
    history = correct(deliveries)
    message = int(history.deliveries.message[row_in_the_middle(history, 2)])
    tampered = changed(history, message, None)
    return Tampered(replace(tampered, run="multicast-lost"), "integrity", frozenset({message}))


def multicast_late(deliveries: int) -> Tampered:
    """A message was delivered before it was multicast."""
    history = correct(deliveries)
    row = row_in_the_middle(history, 2)
    message = int(history.deliveries.message[row])
    sent = history.multicasts
    time = np.where(sent.message == message, history.deliveries.time[row] + 1, sent.time)
    tampered = replace(history, run="multicast-late", multicasts=replace(sent, time=time))
    return Tampered(tampered, "real-time order", frozenset({message}))


def real_time_inverted(deliveries: int) -> Tampered:
    """A message that was multicast after another was delivered is ordered before it."""
    history = correct(deliveries)
    a, b = message_id(FIRST, 0), message_id(SECOND, 0)
    at = {process: step_in_the_middle(history, process) for process in range(3)}
    history = multicasting(history, [((FIRST, 0, a), (0, 1)), ((SECOND, 0, b), (1, 2))])
    history = delivering(
        history, [(0, at[0], a), (1, at[1] + 4, b), (1, at[1] + 5, a), (2, at[2] + 5, b)]
    )
    sent, rows = history.multicasts, history.deliveries
    first = int(rows.time[rows.message == a].min())
    time = np.where(sent.message == b, first + 1, sent.time)
    tampered = replace(history, run="real-time-inverted", multicasts=replace(sent, time=time))
    return Tampered(tampered, "real-time order", frozenset({a, b}))


def clock_behind(deliveries: int) -> Tampered:
    """The clock of a process is wrong by half the run. Only real-time order looks at clocks."""
    history = correct(deliveries)
    rows = history.deliveries
    wrong = int(rows.time.max()) // 2
    time = np.where(rows.process == 4, rows.time - wrong, rows.time)
    tampered = replace(history, run="clock-behind", deliveries=replace(rows, time=time))
    return Tampered(tampered, "real-time order")


def never_sent(deliveries: int) -> Tampered:
    history = correct(deliveries)
    message = message_id(FIRST, 7)
    tampered = delivering(history, [(2, step_in_the_middle(history, 2), message)])
    return Tampered(replace(tampered, run="never-sent"), "integrity", frozenset({message}))


def forged_everywhere(deliveries: int) -> Tampered:
    """Everybody delivers a message that nobody multicast, two of them twice."""
    history = correct(deliveries)
    message = message_id(FIRST, 7)
    at = {process: step_in_the_middle(history, process) for process in range(PROCESSES)}
    forged = [(process, step, message) for process, step in at.items()]
    tampered = delivering(history, [*forged, (0, at[0] + 2, message), (1, at[1] + 2, message)])
    return Tampered(replace(tampered, run="forged-everywhere"), "integrity", frozenset({message}))


def stray(deliveries: int) -> Tampered:
    """A message delivered where it was not meant to go."""
    history = correct(deliveries)
    row = row_in_the_middle(history, 2)
    while 6 in destinations(history, int(history.deliveries.message[row])):
        row += 1
    message = int(history.deliveries.message[row])
    tampered = delivering(history, [(6, step_in_the_middle(history, 6), message)])
    return Tampered(replace(tampered, run="stray"), "integrity", frozenset({message}))


def other_destination(deliveries: int) -> Tampered:
    """One of the destinations that were multicast was changed."""
    history = correct(deliveries)
    message = int(history.deliveries.message[row_in_the_middle(history, 2)])
    to = destinations(history, message)
    other = next(process for process in count() if process not in to)
    tampered = changed(history, message, tuple(sorted(to - {2} | {other})))
    return Tampered(replace(tampered, run="other-destination"), "integrity", frozenset({message}))


def causal_inversion(deliveries: int) -> Tampered:
    """Process 0 answers a question; process 1 delivers the answer and only then the question."""
    history = correct(deliveries)
    question, answer = message_id(FIRST, 0), message_id(0, 1 << 30)
    at = {process: step_in_the_middle(history, process) for process in range(3)}
    sent = [((FIRST, 0, question), (0, 1)), ((0, at[0] + 1, answer), (1, 2))]
    delivered = [
        (0, at[0], question), (1, at[1], answer), (1, at[1] + 1, question), (2, at[2], answer),
    ]  # fmt: skip
    tampered = delivering(multicasting(history, sent), delivered)
    return Tampered(
        replace(tampered, run="causal-inversion"), "causal order", frozenset({question, answer})
    )


def causal_chain(deliveries: int) -> Tampered:
    """An answer to an answer overtakes the question, which its sender never saw."""
    history = correct(deliveries)
    question, answer, reply = message_id(FIRST, 0), message_id(0, 1 << 30), message_id(1, 1 << 30)
    at = {process: step_in_the_middle(history, process) for process in range(3)}
    sent = [
        ((FIRST, 0, question), (0, 2)), ((0, at[0] + 1, answer), (1,)),
        ((1, at[1] + 1, reply), (2,)),
    ]  # fmt: skip
    delivered = [
        (0, at[0], question), (1, at[1], answer), (2, at[2], reply), (2, at[2] + 1, question),
    ]  # fmt: skip
    tampered = delivering(multicasting(history, sent), delivered)
    return Tampered(
        replace(tampered, run="causal-chain"),
        "causal order",
        frozenset({question, answer, reply}),
    )


def crashed(deliveries: int) -> Tampered:
    """A process crashed in the middle of the run, and nothing is wrong with that."""
    return Tampered(replace(_crashed_in_the_middle(deliveries), run="crashed"))


def delivered_by_the_crashed_alone(deliveries: int) -> Tampered:
    """Its client crashed, too: validity and agreement have nothing to object."""
    history = _crashed_in_the_middle(deliveries)
    message = message_id(FIRST, 0)
    history = multicasting(history, [((FIRST, 0, message), (5, 6))])
    history = delivering(history, [(5, step_in_the_middle(history, 5), message)])
    tampered = _crashing(history, FIRST, 1)
    return Tampered(
        replace(tampered, run="crashed-alone"), "uniform agreement", frozenset({message})
    )


def skipped_by_the_crashed(deliveries: int) -> Tampered:
    """Nobody may expect a delivery of a process that crashed; but it may not skip one."""
    history = correct(deliveries)
    last = int(history.deliveries.step[history.deliveries.process == 5].max())
    row = row_in_the_middle(history, 5)
    tampered = _crashing(delivering(history, [], without=row), 5, last + 1)
    return Tampered(replace(tampered, run="crashed-skipped"), "prefix order")


def _crashed_in_the_middle(deliveries: int) -> History:
    history = correct(deliveries)
    rows, last = history.deliveries, step_in_the_middle(history, 5) + ROOM // 2
    return _crashing(keeping(history, (rows.process != 5) | (rows.step < last)), 5, last)


def _crashing(history: History, process: int, step: int) -> History:
    crashes = zip((*history.crashes.process, process), (*history.crashes.step, step), strict=True)
    columns = np.array([(at, when, when) for at, when in sorted(crashes)], dtype=np.int64).T
    return replace(history, crashes=Faults(*columns))


def last_events_lost(deliveries: int) -> Tampered:
    """Process 4 was killed: that it multicast a message may be among what it did not write."""
    history = correct(deliveries)
    message = message_id(4, 0)
    tampered = delivering(history, [(2, step_in_the_middle(history, 2), message)])
    lost = ((4, 0),)
    return Tampered(replace(tampered, run="last-events-lost", complete=False, lost=lost))


def faulty_by_design(deliveries: int) -> Tampered:
    """Nothing that such a process does counts: it delivers everything the other way round."""
    history = correct(deliveries)
    rows = history.deliveries
    start, end = np.searchsorted(rows.process, [3, 4])
    message = rows.message.copy()
    message[start:end] = message[start:end][::-1]
    tampered = replace(history, deliveries=replace(rows, message=message), faulty=(3,))
    return Tampered(replace(tampered, run="faulty-by-design"))


def with_views(deliveries: int) -> Tampered:
    """All processes go through three views at the same places of the order."""
    return Tampered(replace(_with_views(correct(deliveries)), run="with-views"))


def view_crossed(deliveries: int) -> Tampered:
    """A process delivers a message one view later than the others."""
    history = _with_views(correct(deliveries))
    rows = history.deliveries
    second = history.views.step[(history.views.process == 2) & (history.views.view == 1)]
    row = int(np.flatnonzero((rows.process == 2) & (rows.step < second))[-1])
    message, step = int(rows.message[row]), int(rows.step[row])
    tampered = delivering(history, [(2, step + 9, message)], without=row)
    return Tampered(
        replace(tampered, run="view-crossed"), "virtual synchrony", frozenset({message})
    )


def _with_views(history: History) -> History:
    rows = history.deliveries
    installed = []
    for process in range(PROCESSES):
        for number, share in enumerate((0.0, 0.3, 0.6, 0.9)):
            before = (rows.process == process) & (rows.time <= share * rows.time.max())
            step = int(rows.step[before].max(initial=-4)) + 5
            installed.append((process, step, step, number))
    process, step, time, number = np.array(installed, dtype=np.int64).T
    everybody = tuple(range(PROCESSES))
    views = views_of(process, step, time, [View(int(each), everybody) for each in number])
    return replace(history, views=views)


def with_views_and_packets(deliveries: int, run: str) -> History:
    """Nothing is wrong with it, and it has all that a run can have."""
    return replace(_with_views(correct(deliveries, packets=True)), run=run)


def outsider(deliveries: int) -> Tampered:
    """A process that a message does not concern sends a packet about it."""
    history = correct(deliveries, packets=True)
    row = row_in_the_middle(history, 2)
    while 7 in destinations(history, int(history.deliveries.message[row])):
        row += 1
    message = int(history.deliveries.message[row])
    sends = history.sends
    packets = replace(
        sends,
        process=np.append(sends.process, 7),
        step=np.append(sends.step, 0),
        time=np.append(sends.time, sends.time.max() // 2),
        message=np.append(sends.message, message),
        peer=np.append(sends.peer, 2),
        packet_code=np.append(sends.packet_code, 0),
    )
    return Tampered(
        replace(history, run="outsider", sends=packets), "minimality", frozenset({message})
    )


def untampered(deliveries: int) -> Tampered:
    return Tampered(correct(deliveries, packets=True))


TAMPERINGS = (
    untampered, swapped, swapped_in_three_places, cycle, opposite_orders, reordered_at_one,
    reordered_at_all, reversed_far, duplicate, duplicate_far, lost, lost_everywhere, tail_lost,
    cut_short, multicast_lost, multicast_late, real_time_inverted, clock_behind, never_sent,
    forged_everywhere, stray, other_destination, causal_inversion, causal_chain, crashed,
    delivered_by_the_crashed_alone, skipped_by_the_crashed, last_events_lost, faulty_by_design,
    with_views, view_crossed, outsider,
)  # fmt: skip
