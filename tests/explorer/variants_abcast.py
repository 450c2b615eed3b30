"""Variants of ABCAST."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.scope import PlannedCast, Scope

from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {"abcast": "Abcast"}


def abcast_whose_token_moves_after(run: int) -> StackPlan:
    """It moves after so few requests in a row that small systems show it."""
    abcast = loaded_anew("abcast")
    abcast.RUN = run
    return plan_of(abcast.Abcast, "abcast")


def abcast_that_delivers_on_arrival() -> StackPlan:
    """What `after` says is not heeded."""
    abcast = loaded_anew("abcast")

    def arrive(self: Any, s: int, after: int, m: Any) -> None:
        self.deliver(m)

    abcast.Abcast.arrive = arrive
    return plan_of(abcast.Abcast)


def abcast_that_delivers_its_own_at_once() -> StackPlan:
    """An origin does not wait for the number."""
    abcast = loaded_anew("abcast")
    casting = abcast.Abcast.on_cast
    arriving = abcast.Abcast.arrive

    def on_cast(self: Any, m: Any) -> None:
        if self.order is None and self.process in m.destinations:
            self.deliver(m)
        casting(self, m)

    def arrive(self: Any, s: int, after: int, m: Any) -> None:
        before = len(self.effects)
        arriving(self, s, after, m)
        self.effects[before:] = [
            effect
            for effect in self.effects[before:]
            if self.order is not None or abcast.origin_of(effect.message.id) != self.process
        ]

    abcast.Abcast.on_cast = on_cast
    abcast.Abcast.arrive = arrive
    return plan_of(abcast.Abcast)


def abcast_that_takes_requests_as_they_come() -> StackPlan:
    """Requests have no numbers, though the channels reorder."""
    abcast = loaded_anew("abcast")

    def take(self: Any, order: Any, origin: int, n: int, m: Any) -> None:
        order.taken[origin] = n
        self.multicast(order, origin, m)
        order.taken[origin] = 0

    abcast.Abcast.take = take
    return plan_of(abcast.Abcast)


def abcast_whose_token_forgets_what_was_told() -> StackPlan:
    """The new holder takes everybody for one who has got all numbers so far."""
    abcast = loaded_anew("abcast")
    abcast.RUN = 1
    coming = abcast.Abcast.on_token

    def on_token(self: Any, sender: int, packet: Any) -> None:
        told = (packet.s,) * self.size
        coming(self, sender, abcast.Token(packet.s, told, packet.taken, packet.moves))

    abcast.Abcast.on_token = on_token
    return plan_of(abcast.Abcast)


def abcast_whose_requests_do_not_follow_the_token() -> StackPlan:
    """Who held the token goes on to drop what comes too late."""
    abcast = loaded_anew("abcast")
    abcast.RUN = 1
    taking = abcast.Abcast.on_request

    def on_request(self: Any, sender: int, packet: Any) -> None:
        if self.order is not None or packet.moves > self.moves:
            taking(self, sender, packet)

    abcast.Abcast.on_request = on_request
    return plan_of(abcast.Abcast)


RACE = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(1, (0, 1))))
REORDERED = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(0, (0, 1))), fifo=False)
TWO_OF_ONE = Scope(2, (PlannedCast(1, (0,)), PlannedCast(1, (0,))), fifo=False)
OVERLAPPING = Scope(3, (PlannedCast(1, (0,)), PlannedCast(1, (2,))))

CASES = [
    Case(abcast_that_delivers_on_arrival, "abcast", REORDERED, "acyclic order"),
    Case(abcast_that_delivers_its_own_at_once, "abcast", RACE, "acyclic order"),
    Case(abcast_that_takes_requests_as_they_come, "abcast", TWO_OF_ONE, "fifo order"),
    Case(abcast_whose_token_forgets_what_was_told, "abcast", OVERLAPPING, "validity"),
    Case(abcast_whose_requests_do_not_follow_the_token, "abcast", TWO_OF_ONE, "validity"),
]
