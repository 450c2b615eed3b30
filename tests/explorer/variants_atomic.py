"""Variants of the symmetric protocol of Newtop."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.scope import PlannedCast, Scope

from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {"atomic": "Atomic"}


def atomic_that_delivers_on_arrival() -> StackPlan:
    """D is left out."""
    atomic = loaded_anew("atomic")

    def deliver_up_to_end(self: Any) -> None:
        for m in self.received.messages:
            self.deliver(m)
        self.received.messages.clear()
        self.received.numbers.clear()

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        self.receive(sender, packet)
        self.deliver_up_to_end()

    atomic.Atomic.deliver_up_to_end = deliver_up_to_end
    atomic.Atomic.on_packet = on_packet
    return plan_of(atomic.Atomic)


def atomic_with_a_clock_for_what_is_sent_only() -> StackPlan:
    """RL does not advance to what is delivered, so an answer may have the same number."""
    atomic = loaded_anew("atomic")
    delivering = atomic.Atomic.deliver_up_to_end

    def deliver_up_to_end(self: Any) -> None:
        before = self.RL
        delivering(self)
        self.RL = before

    atomic.Atomic.deliver_up_to_end = deliver_up_to_end
    return plan_of(atomic.Atomic)


def atomic_that_takes_ties_as_they_come() -> StackPlan:
    """Messages of the same number are told apart by when they came."""
    atomic = loaded_anew("atomic")
    keeping = atomic.Atomic.keep

    def keep(self: Any, m: Any, c: int, origin: int) -> None:
        waiting = self.received.numbers[self.received.delivered :]
        alike = [ts for ts in waiting if atomic.clock_of(ts) == c]
        keeping(self, m, c, len(alike))

    atomic.Atomic.keep = keep
    return plan_of(atomic.Atomic)


def atomic_that_waits_for_nobody_of_a_lower_origin() -> StackPlan:
    """A message is delivered when all have sent the number before, also those that go before it."""
    atomic = loaded_anew("atomic")
    delivering = atomic.Atomic.deliver_up_to_end

    def deliver_up_to_end(self: Any) -> None:
        before = self.end
        self.end = atomic.stamp(atomic.clock_of(before), self.size)
        delivering(self)
        self.end = before

    atomic.Atomic.deliver_up_to_end = deliver_up_to_end
    return plan_of(atomic.Atomic)


def atomic_with_a_vector_for_one_group_only() -> StackPlan:
    """D is the minimum over the members of the message's own group: figure 2.3."""
    atomic = loaded_anew("atomic")

    def deliver_up_to_end(self: Any) -> None:
        received = self.received
        for ts, m in list(zip(received.numbers, received.messages, strict=True)):
            members = {atomic.process_of(ts), *m.destinations} - {self.process}
            if atomic.clock_of(ts) <= min(self.VR[member] for member in members):
                received.numbers.remove(ts)
                received.messages.remove(m)
                self.deliver(m)

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        self.receive(sender, packet)
        self.deliver_up_to_end()

    atomic.process_of = lambda ts: ts & ((1 << 20) - 1)
    atomic.Atomic.deliver_up_to_end = deliver_up_to_end
    atomic.Atomic.on_packet = on_packet
    return plan_of(atomic.Atomic)


def atomic_that_keeps_silent() -> StackPlan:
    atomic = loaded_anew("atomic")
    atomic.Atomic.on_timer = lambda self, name: None
    return plan_of(atomic.Atomic)


def atomic_that_does_not_ask() -> StackPlan:
    """Who is in none of the message's group never learns that somebody waits for it."""
    atomic = loaded_anew("atomic")
    atomic.Atomic.want = lambda self, process, c: None
    return plan_of(atomic.Atomic)


def atomic_that_takes_packets_as_they_come() -> StackPlan:
    """A number tells that all lower ones have come, but over channels that reorder it lies."""
    atomic = loaded_anew("atomic")
    careful = atomic.Atomic.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        packet.after = self.VR[sender]
        if packet.c > packet.after:
            careful(self, sender, packet)

    atomic.Atomic.on_packet = on_packet
    return plan_of(atomic.Atomic)


BOTH = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(1, (0, 1))))
THREE = Scope(3, (PlannedCast(0, (0, 1, 2)), PlannedCast(1, (0, 1, 2))))
THEN = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(1, (0, 1)), PlannedCast(1, (0, 1))))
PART = Scope(3, (PlannedCast(2, (1, 2)),))
ONE_SENDER = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(0, (0, 1))), fifo=False)
OVERLAP = Scope(4, (PlannedCast(0, (1, 2)), PlannedCast(3, (1, 2))), groups=((0, 1, 2), (1, 2, 3)))

CASES = [
    Case(atomic_that_delivers_on_arrival, "atomic", BOTH, "acyclic order"),
    Case(atomic_with_a_clock_for_what_is_sent_only, "atomic", THEN, "acyclic order"),
    Case(atomic_that_takes_ties_as_they_come, "atomic", BOTH, "acyclic order"),
    Case(atomic_that_waits_for_nobody_of_a_lower_origin, "atomic", BOTH, "acyclic order"),
    Case(atomic_with_a_vector_for_one_group_only, "atomic", OVERLAP, "acyclic order"),
    Case(atomic_that_keeps_silent, "atomic", BOTH, "validity"),
    Case(atomic_that_does_not_ask, "atomic", PART, "validity"),
    Case(atomic_that_takes_packets_as_they_come, "atomic", ONE_SENDER, "validity"),
]
