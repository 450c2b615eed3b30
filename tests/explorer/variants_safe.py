"""Safe delivery with one of its ideas taken out."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {"safe": "Safe"}


def safe_that_only_acknowledges_with_messages() -> StackPlan:
    """Who has nothing to send keeps the others waiting."""
    safe = loaded_anew("safe")
    safe.Safe.on_timer = lambda self, name: None
    return plan_of(safe.Safe)


def safe_that_counts_for_all_destinations_together() -> StackPlan:
    """A destination that was left out of one message waits for it for ever."""
    safe = loaded_anew("safe")
    correct = safe.Safe.on_cast

    def on_cast(self: Any, m: Any) -> None:
        self.sent = [max(self.sent)] * self.size
        correct(self, m)

    safe.Safe.on_cast = on_cast
    return plan_of(safe.Safe)


def safe_that_delivers_whatever_is_safe() -> StackPlan:
    """A message to few overtakes one to many."""
    safe = loaded_anew("safe")

    def deliver_safe(self: Any) -> None:
        for packet in [packet for packet in self.held if self.is_safe(packet)]:
            self.deliver(packet.m)
            self.held.remove(packet)

    safe.Safe.deliver_safe = deliver_safe
    return plan_of(safe.Safe)


def safe_that_waits_for_the_crashed() -> StackPlan:
    safe = loaded_anew("safe")
    safe.Safe.on_notice = lambda self, notice: self.pass_on(notice)
    return plan_of(safe.Safe)


def reliable_and_safe_with(lacking: int) -> StackPlan:
    """Safe delivery over reliable multicast, content with so many acknowledgements too few."""
    safe = loaded_anew("safe")

    def is_safe(self: Any, packet: Any) -> bool:
        m = packet.m
        missing = [
            destination
            for destination, number in zip(m.destinations, packet.numbers, strict=True)
            if destination != self.process
            and destination not in self.suspects
            and self.peers[destination].acked.get(safe.origin_of(m.id), 0) <= number
        ]
        return len(missing) <= lacking

    safe.Safe.is_safe = is_safe
    return StackPlan.of(PROTOCOLS["reliable"], Protocol("safe-variant", safe.Safe, "", ""))


ONE = (PlannedCast(0, (0, 1, 2)),)
MANY_AND_FEW = Scope(3, (PlannedCast(0, (0, 1, 2)), PlannedCast(0, (0, 1))))
FEW_AND_MANY = Scope(3, (PlannedCast(0, (0, 1)), PlannedCast(0, (0, 2))), fifo=False)
CRASH = Scope(3, ONE, fifo=False, bounds=Bounds(crashes=1))

CASES = [
    Case(safe_that_only_acknowledges_with_messages, "safe", Scope(3, ONE), "validity"),
    Case(safe_that_counts_for_all_destinations_together, "safe", FEW_AND_MANY, "validity"),
    Case(safe_that_delivers_whatever_is_safe, "safe", MANY_AND_FEW, "fifo order"),
    Case(safe_that_waits_for_the_crashed, "safe", CRASH, "validity"),
]
