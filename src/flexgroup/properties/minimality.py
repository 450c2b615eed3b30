"""Minimality, or genuineness (Guerraoui & Schiper 2001; Defago, Schiper & Urban 2004).

Every process that sends or receives a packet about a message is its origin or one of its
destinations.

Violations are counted in pairs (process, message) of an outsider and what it took part in. A
message that was never multicast has no destinations. Messages from processes that are faulty by
design are left out: nobody knows where else these sent them. Unknown if the trace has no packets
about messages, or if nothing is wrong but with messages whose multicast, and with it their
destinations, may be among events that are lost.
"""

from __future__ import annotations

import numpy as np

from flexgroup.core.message import ORIGIN_MASK
from flexgroup.properties.explanations import describe, lost_events, plural, violated
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.kernels.grouping import distinct, lookup
from flexgroup.properties.verdict import Outcome, Step, Verdict
from flexgroup.trace.history import Ints, Packets, RunFacts, may_be_lost
from flexgroup.trace.schema import RECEIVE, SEND

NAME = "minimality"

NOTHING_SEEN = "the trace has no packets about messages"


def check(run: IndexedHistory) -> Verdict:
    sends, receives = run.history.sends, run.history.receives
    passed = sum(int(np.count_nonzero(packets.message >= 0)) for packets in (sends, receives))
    if passed == 0:
        return Verdict(NAME, Outcome.UNKNOWN, 0, None, NOTHING_SEEN)
    (sent, unclear), (received, more_unclear) = _outsiders(run, sends), _outsiders(run, receives)
    if len(sent) + len(received) == 0:
        messages = len(distinct(np.concatenate([unclear, more_unclear])))
        if messages:
            return Verdict(NAME, Outcome.UNKNOWN, 0, None, undecided(run.history, messages))
        return Verdict(NAME, Outcome.HOLDS, 0, None, checked(passed))
    sent_first = len(received) == 0 or (
        len(sent) > 0 and sends.time[sent].min() <= receives.time[received].min()
    )
    first = (SEND, sends, sent) if sent_first else (RECEIVE, receives, received)
    step, reason = _evidence(run, *first)
    pairs = _count_pairs(sends, sent, receives, received)
    return violated(run, NAME, pairs, [step], [_let(run, step), reason])


def checked(passed: int) -> str:
    return f"checked {passed} sends and receives of packets about messages"


def undecided(about: RunFacts, messages: int) -> str:
    return f"{lost_events(about)}, and with them where {plural(messages, 'message')} had to go"


def _outsiders(run: IndexedHistory, packets: Packets) -> tuple[Ints, Ints]:
    """Return the rows at processes that are neither origin nor destination of the message; and the
    messages of rows at processes that may be destinations, because their multicast may be lost."""
    rows = np.flatnonzero(
        (packets.message >= 0) & (packets.message & ORIGIN_MASK != packets.process)
    )
    message, known = lookup(run.identities, packets.message[rows])
    _, is_destination = lookup(run.copy_keys, run.keys(message, packets.process[rows]))
    rows = rows[~(known & is_destination)]
    messages = packets.message[rows]
    is_multicast = np.isin(messages, run.history.multicasts.message)
    unclear = may_be_lost(run.history.lost, messages) & ~is_multicast
    return rows[~unclear], messages[unclear]


def _count_pairs(sends: Packets, sent: Ints, receives: Packets, received: Ints) -> int:
    process = np.concatenate([sends.process[sent], receives.process[received]])
    message = np.concatenate([sends.message[sent], receives.message[received]])
    number = np.searchsorted(distinct(message), message)
    return len(distinct(number * (1 + int(process.max(initial=0))) + process))


def _evidence(run: IndexedHistory, event: str, packets: Packets, rows: Ints) -> tuple[Step, str]:
    row = int(rows[np.argmin(packets.time[rows])])
    process, message = int(packets.process[row]), int(packets.message[row])
    step = Step(process, int(packets.step[row]), event, message)
    kind = packets.packet[int(packets.packet_code[row])]
    passing = "sent to" if event == SEND else "received from"
    reason = (
        f"{run.node(process)} {passing} {run.node(int(packets.peer[row]))} the packet {kind}"
        f" about a (step {step.step}), and is neither its origin nor a destination"
    )
    return step, reason


def _let(run: IndexedHistory, step: Step) -> str:
    message, known = lookup(run.identities, np.array([step.message]))
    if known[0]:
        return f"let a = {describe(run, int(message[0]))}"
    return f"let a = message {run.name_of_identity(step.message)} (never multicast)"
