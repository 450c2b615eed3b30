"""Variants of the qualities of service of xAMP."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {
    "xamp_best_effort": "XampBestEffort",
    "xamp_at_least": "XampAtLeast",
    "xamp_reliable": "XampReliable",
    "xamp_causal": "XampCausal",
    "xamp_atomic": "XampAtomic",
}


def that_forgets_what_it_delivered(module: str) -> StackPlan:
    """A repetition is taken for another message."""
    layer = getattr(loaded_anew(module), LAYERS[module])
    taking = layer.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        part = self if module == "xamp_best_effort" else self.at_least
        part.received = KnownMessages()
        taking(self, sender, packet)

    layer.on_packet = on_packet
    return plan_of(layer)


def that_forgets_the_last_destination(module: str) -> StackPlan:
    loaded = loaded_anew(module)
    layer = getattr(loaded, LAYERS[module])
    sending = layer.send

    def send(self: Any, to: tuple[int, ...], packet: Any) -> None:
        sending(self, to[:-1] if isinstance(packet, loaded.Data) else to, packet)

    layer.send = send
    return plan_of(layer)


def that_does_not_count(module: str) -> StackPlan:
    """All messages have the same number, so the second is taken for a repetition."""
    loaded = loaded_anew(module, "at_least")
    telling = loaded.AtLeast.tr_w_resp

    def tr_w_resp(self: Any, layer: Any, m: Any, numbers: Any, send: bool) -> None:
        telling(self, layer, m, (0,) * len(numbers), send)

    loaded.AtLeast.tr_w_resp = tr_w_resp
    return plan_of(getattr(loaded, LAYERS[module]))


def best_effort_that_forgets_what_it_delivered() -> StackPlan:
    return that_forgets_what_it_delivered("xamp_best_effort")


def best_effort_that_forgets_the_last_destination() -> StackPlan:
    return that_forgets_the_last_destination("xamp_best_effort")


def best_effort_that_does_not_count() -> StackPlan:
    loaded = loaded_anew("xamp_best_effort")
    loaded.numbered = lambda sent, destinations: (0,) * len(destinations)
    return plan_of(loaded.XampBestEffort)


def at_least_that_forgets_what_it_delivered() -> StackPlan:
    return that_forgets_what_it_delivered("xamp_at_least")


def at_least_that_forgets_the_last_destination() -> StackPlan:
    return that_forgets_the_last_destination("xamp_at_least")


def at_least_that_does_not_count() -> StackPlan:
    return that_does_not_count("xamp_at_least")


def reliable_that_forgets_what_it_delivered() -> StackPlan:
    return that_forgets_what_it_delivered("xamp_reliable")


def reliable_that_forgets_the_last_destination() -> StackPlan:
    return that_forgets_the_last_destination("xamp_reliable")


def reliable_that_does_not_count() -> StackPlan:
    return that_does_not_count("xamp_reliable")


def causal_that_does_not_look_at_histories() -> StackPlan:
    causal = loaded_anew("xamp_causal")
    causal.XampCausal.is_stable = lambda self, packet: True
    return plan_of(causal.XampCausal)


def causal_that_keeps_only_what_it_sent_and_delivered_itself() -> StackPlan:
    """The history that a message came with is not added to one's own."""
    causal = loaded_anew("xamp_causal")
    adding = causal.XampCausal.add_to_history

    def add_to_history(self: Any, packet: Any) -> None:
        adding(self, causal.Data(packet.m, packet.numbers, ()))

    causal.XampCausal.add_to_history = add_to_history
    return plan_of(causal.XampCausal)


def causal_that_waits_for_what_is_not_meant_for_it() -> StackPlan:
    causal = loaded_anew("xamp_causal")

    def is_stable(self: Any, packet: Any) -> bool:
        return all(
            self.has_delivered(causal.origin_of(m), number)
            for m, destinations in causal.pairs(packet.history).items()
            for _, number in destinations
        )

    causal.XampCausal.is_stable = is_stable
    return plan_of(causal.XampCausal)


def two_phase_accept_in_order_of_arrival() -> StackPlan:
    """As published, for a network in which frames cross in one order."""
    atomic = loaded_anew("xamp_atomic")
    plan = plan_of(atomic.XampAtomic)
    return StackPlan(plan.name, plan.protocols, (frozenset({"published"}),))


def two_phase_accept_at_the_lowest_place() -> StackPlan:
    atomic = loaded_anew("xamp_atomic")

    def on_response(self: Any, sender: int, packet: Any) -> None:
        transmission = self.transmissions.get(packet.m)
        if transmission is not None and packet.attempt == transmission.attempt:
            transmission.respond(sender)
            self.highest[packet.m] = min(self.highest[packet.m] or packet.place, packet.place)
            self.decide_if_enough(packet.m)

    atomic.XampAtomic.on_response = on_response
    return plan_of(atomic.XampAtomic)


def two_phase_accept_that_delivers_when_accepted() -> StackPlan:
    """Nothing waits for what is before it in the queue and not accepted yet."""
    atomic = loaded_anew("xamp_atomic")

    def deliver_head(self: Any) -> None:
        for place in list(self.queue):
            m = self.at[place]
            if self.entries[m].accepted:
                self.leave_queue(place)
                self.deliver(self.entries.pop(m).m)

    atomic.XampAtomic.deliver_head = deliver_head
    return plan_of(atomic.XampAtomic)


def two_phase_accept_after_one_response() -> StackPlan:
    atomic = loaded_anew("xamp_atomic")
    whole = atomic.Transmission
    atomic.Transmission = lambda m, packet, Pr, nr, ord: whole(m, packet, Pr, 1, ord)
    return plan_of(atomic.XampAtomic)


PAIR = Scope(3, (PlannedCast(0, (1, 2)), PlannedCast(0, (2,))), fifo=False)
REPEATED = Scope(2, (PlannedCast(0, (1,)),), fifo=False, bounds=Bounds(timers=1))
ANSWER = Scope(3, (PlannedCast(0, (1, 2)), PlannedCast(1, (2,))), fifo=False)
CHAIN = Scope(3, (PlannedCast(0, (2,)), PlannedCast(0, (1,)), PlannedCast(1, (2,))), fifo=False)
BOTH = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(1, (0, 1))))

CASES = [
    Case(best_effort_that_forgets_what_it_delivered, "xamp_best_effort", REPEATED, "integrity"),
    Case(best_effort_that_forgets_the_last_destination, "xamp_best_effort", PAIR, "validity"),
    Case(best_effort_that_does_not_count, "xamp_best_effort", PAIR, "validity"),
    Case(at_least_that_forgets_what_it_delivered, "xamp_at_least", REPEATED, "integrity"),
    Case(at_least_that_forgets_the_last_destination, "xamp_at_least", PAIR, "validity"),
    Case(at_least_that_does_not_count, "xamp_at_least", PAIR, "validity"),
    Case(reliable_that_forgets_what_it_delivered, "xamp_reliable", REPEATED, "integrity"),
    Case(reliable_that_forgets_the_last_destination, "xamp_reliable", PAIR, "validity"),
    Case(reliable_that_does_not_count, "xamp_reliable", PAIR, "validity"),
    Case(causal_that_does_not_look_at_histories, "xamp_causal", ANSWER, "causal order"),
    Case(causal_that_keeps_only_what_it_sent_and_delivered_itself, "xamp_causal", CHAIN,
         "causal order"),
    Case(causal_that_waits_for_what_is_not_meant_for_it, "xamp_causal", CHAIN, "validity"),
    Case(two_phase_accept_in_order_of_arrival, "xamp_atomic", BOTH, "acyclic order"),
    Case(two_phase_accept_at_the_lowest_place, "xamp_atomic", BOTH, "acyclic order"),
    Case(two_phase_accept_that_delivers_when_accepted, "xamp_atomic", BOTH, "acyclic order"),
    Case(two_phase_accept_after_one_response, "xamp_atomic", BOTH, "validity"),
]  # fmt: skip
