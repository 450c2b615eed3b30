"""Reliable multicast and causal order with one of their ideas taken out."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {
    "reliable": "Reliable",
    "causal": "Causal",
    "causal_rst": "CausalRst",
    "causal_ses": "CausalSes",
    "causal_isis": "CausalIsis",
}


# Reliable multicast.


def reliable_that_knows_no_duplicates() -> StackPlan:
    reliable = loaded_anew("reliable")
    careful = reliable.Reliable.on_message

    def on_message(self: Any, origin: int, packet: Any, since: int) -> None:
        if packet.seq <= reliable.seq_of(self.origin(origin).have):
            self.deliver(packet.m)
        careful(self, origin, packet, since)

    reliable.Reliable.on_message = on_message
    return plan_of(reliable.Reliable)


def reliable_that_never_sends_again() -> StackPlan:
    """Whom the only message did not reach has no gap to see."""
    reliable = loaded_anew("reliable")
    reliable.Reliable.send_again = lambda self: None
    reliable.Reliable.pass_round = lambda self: None
    return plan_of(reliable.Reliable)


def reliable_that_is_content_with_one_acknowledgement() -> StackPlan:
    """An origin forgets its message when the first destination has it."""
    reliable = loaded_anew("reliable")

    def on_acks(self: Any, sender: int, acks: Any) -> None:
        self.sent.acked = [self.sent.last[sender]] * self.size
        self.advance_stable()

    reliable.Reliable.on_acks = on_acks
    return plan_of(reliable.Reliable)


def reliable_that_keeps_what_it_holds() -> StackPlan:
    """If the origin crashes, nobody else sends its message."""
    reliable = loaded_anew("reliable")
    reliable.Reliable.pass_round = lambda self: None
    return plan_of(reliable.Reliable)


# Vector clocks.


def causal_that_does_not_wait() -> StackPlan:
    causal = loaded_anew("causal")
    causal.Causal.on_packet = lambda self, sender, packet: self.deliver(packet.m)
    return plan_of(causal.Causal)


def causal_that_waits_for_the_same_sender_only() -> StackPlan:
    causal = loaded_anew("causal")

    def lacking(self: Any, i: int, vt: Any) -> tuple[int, int]:
        return (i, vt[i] - 1) if self.VT[i] < vt[i] - 1 else (causal.NOTHING_LACKING, 0)

    causal.Causal.lacking = lacking
    return plan_of(causal.Causal)


def causal_that_waits_for_others_only() -> StackPlan:
    causal = loaded_anew("causal")

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        self.VT[sender] = max(self.VT[sender], packet.vt[sender])
        self.deliver(packet.m)

    causal.Causal.on_packet = on_packet
    return plan_of(causal.Causal)


def causal_with_step_3_as_written() -> StackPlan:
    """The vector takes over that of a message before the condition is looked at: none is next."""
    causal = loaded_anew("causal")
    correct = causal.Causal.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        for k, count in enumerate(packet.vt):
            if k != sender:
                self.VT[k] = max(self.VT[k], count)
        self.VT[sender] = max(self.VT[sender], packet.vt[sender])
        if packet.vt[sender] == self.VT[sender] + 1:
            correct(self, sender, packet)

    causal.Causal.on_packet = on_packet
    return plan_of(causal.Causal)


def causal_that_looks_once() -> StackPlan:
    """What has to wait is forgotten."""
    causal = loaded_anew("causal")
    correct = causal.Causal.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        correct(self, sender, packet)
        self.waiting.clear()

    causal.Causal.on_packet = on_packet
    return plan_of(causal.Causal)


# The matrix.


def rst_that_does_not_wait() -> StackPlan:
    rst = loaded_anew("causal_rst")
    rst.CausalRst.lacking = lambda self, j, st: (rst.NOTHING_LACKING, 0)
    rst.CausalRst.on_packet = lambda self, sender, packet: self.deliver(packet.m)
    return plan_of(rst.CausalRst)


def rst_that_takes_nothing_over() -> StackPlan:
    """SENT has only what the process itself sent."""
    rst = loaded_anew("causal_rst")
    rst.CausalRst.take_over = lambda self, j, m, st: None
    return plan_of(rst.CausalRst)


def rst_that_counts_for_itself_only() -> StackPlan:
    """As in the paper, where a message has one destination: the others are not told of it."""
    rst = loaded_anew("causal_rst")

    def take_over(self: Any, j: int, m: Any, st: Any) -> None:
        place = j * self.size + self.process
        self.SENT = [max(known, told) for known, told in zip(self.SENT, st, strict=True)]
        self.SENT[place] = max(self.SENT[place], st[place] + 1)

    rst.CausalRst.take_over = take_over
    return plan_of(rst.CausalRst)


def rst_that_counts_before_it_sends() -> StackPlan:
    """A message then waits for itself."""
    rst = loaded_anew("causal_rst")
    correct = rst.CausalRst.on_cast

    def on_cast(self: Any, m: Any) -> None:
        counted = list(self.SENT)
        for j in m.destinations:
            self.SENT[self.process * self.size + j] += 1
        correct(self, m)
        self.SENT = counted
        for j in m.destinations:
            self.SENT[self.process * self.size + j] += 1

    rst.CausalRst.on_cast = on_cast
    return plan_of(rst.CausalRst)


# Vector times.


def ses_that_does_not_wait() -> StackPlan:
    ses = loaded_anew("causal_ses")
    ses.CausalSes.is_deliverable = lambda self, timed: True
    return plan_of(ses.CausalSes)


def ses_that_tells_only_what_it_sent_itself() -> StackPlan:
    """The pairs that a message came with are not added to one's own."""
    ses = loaded_anew("causal_ses")

    def take(self: Any, j: int, timed: Any) -> None:
        self.deliver(timed.m)
        self.insert(tuple([d for d in timed.m.destinations if d != j]), timed.tm)
        self.T = ses.latest(self.T, timed.tm)

    ses.CausalSes.take = take
    return plan_of(ses.CausalSes)


def ses_that_notes_nothing_for_other_destinations() -> StackPlan:
    """As in the paper, where a message has one destination."""
    ses = loaded_anew("causal_ses")

    def take(self: Any, j: int, timed: Any) -> None:
        self.deliver(timed.m)
        for d, time in ses.pairs(timed.vm, self.size).items():
            self.insert((d,), time)
        self.T = ses.latest(self.T, timed.tm)

    ses.CausalSes.take = take
    return plan_of(ses.CausalSes)


def ses_that_notes_before_it_sends() -> StackPlan:
    """A message then waits for itself, which a destination takes for an attack."""
    ses = loaded_anew("causal_ses")
    sending = ses.CausalSes.send

    def send(self: Any, to: tuple[int, ...], packet: Any) -> None:
        self.insert(to, packet.tm)
        sending(self, to, ses.Timed(packet.m, packet.tm, ses.flat(self.V)))

    ses.CausalSes.send = send
    return plan_of(ses.CausalSes)


def ses_that_looks_once() -> StackPlan:
    ses = loaded_anew("causal_ses")
    correct = ses.CausalSes.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        correct(self, sender, packet)
        self.waiting.clear()

    ses.CausalSes.on_packet = on_packet
    return plan_of(ses.CausalSes)


# Piggybacking.


def isis_that_carries_nothing() -> StackPlan:
    isis = loaded_anew("causal_isis")
    whole = isis.CausalIsis.transfer

    def transfer(self: Any, to: Any, carried: Any) -> None:
        whole(self, to, carried[-1:])

    isis.CausalIsis.transfer = transfer
    return plan_of(isis.CausalIsis)


def isis_that_carries_only_what_it_sent_itself() -> StackPlan:
    """What a process got and others may miss is not its business."""
    isis = loaded_anew("causal_isis")
    taking = isis.CausalIsis.take

    def take(self: Any, m: Any, remaining: Any) -> None:
        taking(self, m, ())

    isis.CausalIsis.take = take
    return plan_of(isis.CausalIsis)


def isis_that_forgets_what_it_has_sent() -> StackPlan:
    """As over channels in order, where what leaves first comes first."""
    isis = loaded_anew("causal_isis")
    casting = isis.CausalIsis.on_cast

    def on_cast(self: Any, m: Any) -> None:
        casting(self, m)
        self.BUF.clear()

    isis.CausalIsis.on_cast = on_cast
    return plan_of(isis.CausalIsis)


def isis_that_forgets_with_the_first_response() -> StackPlan:
    isis = loaded_anew("causal_isis")

    def on_received(self: Any, sender: int, place: int) -> None:
        for buffered in list(self.BUF):
            self.reduce(buffered.m.id, ())

    isis.CausalIsis.on_received = on_received
    return plan_of(isis.CausalIsis)


def isis_that_knows_no_copies() -> StackPlan:
    isis = loaded_anew("causal_isis")
    isis.CausalIsis.is_known = lambda self, m: isis.origin_of(m) == self.process
    return plan_of(isis.CausalIsis)


def isis_that_does_not_send_on() -> StackPlan:
    isis = loaded_anew("causal_isis")
    isis.CausalIsis.send_on = lambda self: None
    return plan_of(isis.CausalIsis)


ONE = (PlannedCast(0, (0, 1, 2)),)
TWICE = Scope(2, (PlannedCast(0, (1,)),), bounds=Bounds(duplicates=1))
LOSS = Scope(3, ONE, fifo=False, bounds=Bounds(losses=1, timers=3))
CRASH = Scope(3, ONE, fifo=False, bounds=Bounds(losses=1, crashes=1, timers=3))

REPLY = Scope(3, (PlannedCast(0, (0, 1, 2)), PlannedCast(1, (0, 1, 2))), fifo=False)
IN_A_ROW = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(0, (0, 1))), fifo=False)
RELAYED = Scope(3, (PlannedCast(0, (2,)), PlannedCast(0, (1,)), PlannedCast(1, (2,))), fifo=False)
COPIED = Scope(3, (PlannedCast(0, (1, 2)), PlannedCast(1, (2,))), fifo=False)
COPIED_ON = Scope(3, (PlannedCast(0, (1, 2)), PlannedCast(0, (2,))), fifo=False)

CASES = [
    Case(reliable_that_knows_no_duplicates, "reliable", TWICE, "integrity"),
    Case(reliable_that_never_sends_again, "reliable", LOSS, "validity"),
    Case(reliable_that_is_content_with_one_acknowledgement, "reliable", LOSS, "validity"),
    Case(reliable_that_keeps_what_it_holds, "reliable", CRASH, "agreement"),
    Case(causal_that_does_not_wait, "causal", REPLY, "causal order"),
    Case(causal_that_waits_for_the_same_sender_only, "causal", REPLY, "causal order"),
    Case(causal_that_waits_for_others_only, "causal", IN_A_ROW, "fifo order"),
    Case(causal_with_step_3_as_written, "causal", IN_A_ROW, "validity"),
    Case(causal_that_looks_once, "causal", REPLY, "validity"),
    Case(rst_that_does_not_wait, "causal_rst", RELAYED, "causal order"),
    Case(rst_that_takes_nothing_over, "causal_rst", RELAYED, "causal order"),
    Case(rst_that_counts_for_itself_only, "causal_rst", COPIED, "causal order"),
    Case(rst_that_counts_before_it_sends, "causal_rst", COPIED, "validity"),
    Case(ses_that_does_not_wait, "causal_ses", RELAYED, "causal order"),
    Case(ses_that_tells_only_what_it_sent_itself, "causal_ses", RELAYED, "causal order"),
    Case(ses_that_notes_nothing_for_other_destinations, "causal_ses", COPIED, "causal order"),
    Case(ses_that_notes_before_it_sends, "causal_ses", COPIED, "conduct"),
    Case(ses_that_looks_once, "causal_ses", RELAYED, "validity"),
    Case(isis_that_carries_nothing, "causal_isis", RELAYED, "causal order"),
    Case(isis_that_carries_only_what_it_sent_itself, "causal_isis", RELAYED, "causal order"),
    Case(isis_that_forgets_what_it_has_sent, "causal_isis", RELAYED, "causal order"),
    Case(isis_that_forgets_with_the_first_response, "causal_isis", COPIED_ON, "causal order"),
    Case(isis_that_knows_no_copies, "causal_isis", RELAYED, "integrity"),
]
