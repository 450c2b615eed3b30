"""Variants of Paxos that go wrong about slots that are set aside, which they do one by one."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan

from .variant_parts import loaded_anew


def short_paxos(*parts: str) -> Any:
    paxos = loaded_anew("paxos", *parts)
    paxos.CUT = 1
    return paxos


def on_an_oracle(paxos: Any) -> StackPlan:
    return StackPlan.of(PROTOCOLS["leader"], Protocol("variant", paxos.Paxos, "", ""))


def nothing_taken_out() -> StackPlan:
    return on_an_oracle(short_paxos())


def slots_that_nobody_has_although_a_replica_lacks_them() -> StackPlan:
    paxos = short_paxos()
    careful = paxos.Paxos.on_recall
    paxos.Paxos.on_recall = lambda self, asked, entries: careful(self, asked, [])
    return on_an_oracle(paxos)


def a_promise_that_is_silent_about_what_is_set_aside() -> StackPlan:
    """A leader that was down has something else chosen for a slot that others have delivered."""
    paxos = short_paxos("ledger", "leading")
    paxos.Ledger.lacks_what_is_set_aside = lambda self, first: False
    return on_an_oracle(paxos)


def a_first_piece_without_a_second() -> StackPlan:
    paxos = short_paxos()
    paxos.Paxos.ask_on = lambda self: None
    return on_an_oracle(paxos)


def a_piece_that_is_taken_for_all() -> StackPlan:
    """Who gets a part of what it lacks goes on behind all of it."""
    paxos = short_paxos()

    def ask_on(self: Any) -> None:
        if self.asks:
            self.ledger.next = max(self.ledger.next, self.asks[1])
            self.asks = ()

    paxos.Paxos.ask_on = ask_on
    return on_an_oracle(paxos)


def what_is_set_aside_is_taken_for_stable_after_a_restart() -> StackPlan:
    paxos = short_paxos("ledger", "leading")
    careful = paxos.Ledger.restore

    def restore(self: Any, stored: Any, is_top: bool) -> Any:
        lacking = careful(self, stored, is_top)
        self.stable = self.recent
        return lacking

    paxos.Ledger.restore = restore
    return on_an_oracle(paxos)


def slots_set_aside_without_what_was_delivered_in_them() -> StackPlan:
    """Who starts again behind them does not know which messages they had."""
    paxos = short_paxos("ledger", "leading")
    careful = paxos.Ledger.promised

    def promised(self: Any, ballot: int) -> Any:
        whole = careful(self, ballot)
        return paxos.Promised(whole.ballot, whole.recent, whole.delivered, (), ())

    paxos.Ledger.promised = promised
    return on_an_oracle(paxos)


def what_an_earlier_leader_says_that_hides_the_rest() -> StackPlan:
    """Channels that reorder let it come last: what the leader said of the rest is forgotten."""
    paxos = short_paxos()
    careful = paxos.Paxos.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        if isinstance(packet, paxos.More):
            self.asks = ()
        careful(self, sender, packet)

    paxos.Paxos.on_packet = on_packet
    return on_an_oracle(paxos)


VARIANTS = [
    slots_that_nobody_has_although_a_replica_lacks_them,
    a_promise_that_is_silent_about_what_is_set_aside,
    a_first_piece_without_a_second,
    a_piece_that_is_taken_for_all,
    what_is_set_aside_is_taken_for_stable_after_a_restart,
    slots_set_aside_without_what_was_delivered_in_them,
]
