"""Reliable multicast and causal order with one of their ideas taken out."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {"reliable": "Reliable", "causal": "Causal", "causal_rst": "CausalRst"}


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


ONE = (PlannedCast(0, (0, 1, 2)),)
TWICE = Scope(2, (PlannedCast(0, (1,)),), bounds=Bounds(duplicates=1))
LOSS = Scope(3, ONE, fifo=False, bounds=Bounds(losses=1, timers=3))
CRASH = Scope(3, ONE, fifo=False, bounds=Bounds(losses=1, crashes=1, timers=3))

REPLY = Scope(3, (PlannedCast(0, (0, 1, 2)), PlannedCast(1, (0, 1, 2))), fifo=False)
IN_A_ROW = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(0, (0, 1))), fifo=False)
RELAYED = Scope(3, (PlannedCast(0, (2,)), PlannedCast(0, (1,)), PlannedCast(1, (2,))), fifo=False)
COPIED = Scope(3, (PlannedCast(0, (1, 2)), PlannedCast(1, (2,))), fifo=False)

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
]
