"""Protocols with one of their ideas taken out, and systems in which that shows.

A variant is the protocol's own source, loaded a second time, with one function replaced. (The
class itself may be compiled, and then nothing in it can be.)
"""

from __future__ import annotations

from bisect import insort
from typing import Any

from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Packet
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.scope import PlannedCast, Scope, from_clients

from . import (
    variants_abcast,
    variants_atomic,
    variants_byzantine,
    variants_causal,
    variants_majority,
    variants_paxos,
    variants_pbft,
    variants_primcast,
    variants_ramcast,
    variants_replicated,
    variants_safe,
    variants_vcube,
    variants_virtual_synchrony,
    variants_white_box,
    variants_xamp,
)
from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {
    "best_effort": "BestEffort",
    "fifo": "Fifo",
    "skeen": "Skeen",
    "df": "DelporteFauconnier",
    "dcc": "Dcc",
    "dcc_published": "DccPublished",
    "dcc_wide": "DccWide",
    **variants_abcast.LAYERS,
    **variants_atomic.LAYERS,
    **variants_xamp.LAYERS,
    **variants_causal.LAYERS,
    **variants_majority.LAYERS,
    **variants_safe.LAYERS,
    **variants_vcube.LAYERS,
    **variants_virtual_synchrony.LAYERS,
}
LEFT_ALONE = {
    **variants_paxos.LEFT_ALONE,
    **variants_pbft.LEFT_ALONE,
    **variants_primcast.LEFT_ALONE,
    **variants_ramcast.LEFT_ALONE,
    **variants_byzantine.LEFT_ALONE,
    **variants_replicated.LEFT_ALONE,
    **variants_white_box.LEFT_ALONE,
}


def left_alone(module: str) -> StackPlan:
    if module in LEFT_ALONE:
        return LEFT_ALONE[module]
    layer: type[Layer] = getattr(loaded_anew(module), LAYERS[module])
    return plan_of(layer)


# Best-effort multicast.


def best_effort_that_forgets_the_last_destination() -> StackPlan:
    module = loaded_anew("best_effort")

    def on_cast(self: Any, m: Any) -> None:
        self.send(m.destinations[:-1], module.Data(m))

    module.BestEffort.on_cast = on_cast
    return plan_of(module.BestEffort)


def best_effort_that_delivers_twice() -> StackPlan:
    module = loaded_anew("best_effort")
    once = module.BestEffort.on_packet

    def on_packet(self: Any, sender: int, packet: Packet) -> None:
        once(self, sender, packet)
        once(self, sender, packet)

    module.BestEffort.on_packet = on_packet
    return plan_of(module.BestEffort)


def best_effort_to_everybody() -> StackPlan:
    module = loaded_anew("best_effort")
    module.BestEffort.on_cast = lambda self, m: self.send(tuple(range(self.size)), module.Data(m))
    module.BestEffort.on_packet = lambda self, sender, packet: self.deliver(packet.m)
    return plan_of(module.BestEffort)


# FIFO order.


def fifo_that_does_not_wait() -> StackPlan:
    module = loaded_anew("fifo")
    module.Fifo.on_packet = lambda self, sender, packet: self.deliver(packet.m)
    return plan_of(module.Fifo)


def fifo_that_counts_for_all_destinations_together() -> StackPlan:
    """A destination that was left out of one message waits for it for ever."""
    module = loaded_anew("fifo")

    def on_cast(self: Any, m: Any) -> None:
        number = self.sent.get(0, 0)
        self.sent[0] = number + 1
        self.send(m.destinations, module.Numbered(m, (number,) * len(m.destinations)))

    module.Fifo.on_cast = on_cast
    return plan_of(module.Fifo)


def fifo_that_drops_what_is_early() -> StackPlan:
    module = loaded_anew("fifo")
    keeping = module.Fifo.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        place = packet.m.destinations.index(self.process)
        if packet.numbers[place] == self.next.get(sender, 0):
            keeping(self, sender, packet)

    module.Fifo.on_packet = on_packet
    return plan_of(module.Fifo)


# Skeen.


def skeen_without_line_14() -> StackPlan:
    """The clock does not advance to the final timestamp, so later proposals may precede it."""
    skeen = loaded_anew("skeen")
    skeen.clock_of = lambda ts: 0
    return plan_of(skeen.Skeen)


def skeen_that_does_not_wait_for_lower_proposals() -> StackPlan:
    skeen = loaded_anew("skeen")

    def try_deliver(self: Any) -> None:
        for ts in sorted(self.final):
            self.pending.remove(ts)
            self.deliver(self.final.pop(ts))

    skeen.Skeen.try_deliver = try_deliver
    return plan_of(skeen.Skeen)


def skeen_that_takes_the_lowest_proposal() -> StackPlan:
    skeen = loaded_anew("skeen")

    def on_local_ts(self: Any, m: int, ts: int) -> None:
        known = self.undecided.setdefault(m, skeen.Undecided())
        known.received += 1
        known.highest = min(known.highest or ts, ts)
        if known.m is not None and known.received == len(known.m.destinations):
            self.on_all_local_ts(known.m, known)

    skeen.Skeen.on_local_ts = on_local_ts
    return plan_of(skeen.Skeen)


def skeen_that_breaks_ties_by_itself() -> StackPlan:
    """Timestamps are made different by the number of the message, seen from here."""
    skeen = loaded_anew("skeen")

    def on_all_local_ts(self: Any, m: Any, known: Any) -> None:
        final = skeen.stamp(skeen.clock_of(known.highest), (m.id + self.process) % 3)
        del self.undecided[m.id]
        self.final[final] = m
        self.clock = max(self.clock, skeen.clock_of(final))
        self.pending.remove(known.local)
        insort(self.pending, final)
        self.try_deliver()

    skeen.Skeen.on_all_local_ts = on_all_local_ts
    return plan_of(skeen.Skeen)


def skeen_with_line_18_as_printed() -> StackPlan:
    """ "There is an m'" with a higher timestamp, where the text says "all": who is alone waits."""
    skeen = loaded_anew("skeen")

    def try_deliver(self: Any) -> None:
        for ts in list(self.pending):
            if ts in self.final and any(other > ts for other in self.pending):
                self.pending.remove(ts)
                self.deliver(self.final.pop(ts))

    skeen.Skeen.try_deliver = try_deliver
    return plan_of(skeen.Skeen)


# D&F.


def df_that_does_not_wait() -> StackPlan:
    df = loaded_anew("df")

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        if not isinstance(packet, df.End):
            self.handle(packet.m)

    df.DelporteFauconnier.on_packet = on_packet
    return plan_of(df.DelporteFauconnier)


def df_that_ends_only_the_one_before() -> StackPlan:
    df = loaded_anew("df")
    sending = df.DelporteFauconnier.send

    def send(self: Any, to: tuple[int, ...], packet: Any) -> None:
        sending(self, to[-1:], packet)

    df.DelporteFauconnier.send = send
    return plan_of(df.DelporteFauconnier)


def df_that_empties_its_queue_at_once() -> StackPlan:
    df = loaded_anew("df")

    def on_end(self: Any) -> None:
        self.waiting_for = df.NO_MESSAGE
        while self.queue:
            self.handle(self.queue.pop(0))

    df.DelporteFauconnier.on_end = on_end
    return plan_of(df.DelporteFauconnier)


# DCC, repaired and published.


def dcc_wide_that_always_goes_straight_on() -> StackPlan:
    """Genuine, and in circles."""
    wide = loaded_anew("dcc_wide")
    wide.DccWide.next_hop = lambda self, destination: destination
    return plan_of(wide.DccWide)


def dcc_wide_that_follows_whoever_went_before() -> StackPlan:
    """Straight on if a message went to the same destination before, whatever is known since."""
    wide = loaded_anew("dcc_wide")
    careful = wide.DccWide.next_hop

    def next_hop(self: Any, destination: int) -> int:
        hop: int = destination if destination in self.crossed else careful(self, destination)
        return hop

    wide.DccWide.next_hop = next_hop
    return plan_of(wide.DccWide)


def dcc_wide_without_other_edges() -> StackPlan:
    """A node does not wait for what others say went before, and misses it later."""
    wide = loaded_anew("dcc_wide")

    def can_handle(self: Any, visit: Any) -> bool:
        edge = self.incoming[visit.decider]
        return bool(visit.evc[edge] == self.EVC[edge] + 1)

    wide.DccWide.can_handle = can_handle
    return plan_of(wide.DccWide)


def dcc_without_slow_mode() -> StackPlan:
    dcc = loaded_anew("dcc")
    dcc.SLOW = dcc.FAST
    return plan_of(dcc.Dcc)


def dcc_without_other_edges() -> StackPlan:
    """A node does not wait for what others say went before, and misses it later."""
    dcc = loaded_anew("dcc")

    def can_handle(self: Any, m: Any, decided_by: int) -> bool:
        edge = self.incoming[decided_by]
        return bool(m.evc[edge] == self.EVC[edge] + 1)

    dcc.Dcc.can_handle = can_handle
    return plan_of(dcc.Dcc)


def dcc_with_a_forgetful_intermediate() -> StackPlan:
    """A node forgets what it only passed on, so a message behind it may go fast."""
    dcc = loaded_anew("dcc")
    remembering = dcc.Dcc.accumulate_and_forward

    def accumulate_and_forward(self: Any, m: Any) -> None:
        before = self.last_dst
        remembering(self, m)
        self.last_dst = before

    dcc.Dcc.accumulate_and_forward = accumulate_and_forward
    return plan_of(dcc.Dcc)


def dcc_that_goes_fast_after_coming_slow() -> StackPlan:
    dcc = loaded_anew("dcc")
    careful = dcc.Dcc.deliver_and_forward

    def deliver_and_forward(self: Any, m: Any, src: int, came: int) -> None:
        careful(self, m, src, dcc.FAST)

    dcc.Dcc.deliver_and_forward = deliver_and_forward
    return plan_of(dcc.Dcc)


def published_mended(*lines: int, last_handled: bool = False) -> StackPlan:
    """The published DCC with some of its faulty lines mended, and nothing else.

    12: fast if the last message *delivered* here has the same destinations. 33: at an
    intermediate node every edge counts, that of m.src too. 25: a message keeps its own positions.
    `last_handled`: for line 12, a message that was only forwarded is a last message, too.
    """
    dcc = loaded_anew("dcc_published")

    class Mended(dcc.DccPublished):  # type: ignore[misc, name-defined]
        __slots__ = ("last_dst",)

        def __init__(self, context: Context) -> None:
            super().__init__(context)
            self.last_dst: tuple[int, ...] = ()

        def can_forward(self, m: Any) -> bool:
            its_for_me = self.process in m.m.destinations
            return all(
                m.evc[edge] <= self.EVC[edge] or (s == m.src and (its_for_me or 33 not in lines))
                for s, edge in enumerate(self.incoming)
            )

        def deliver_and_forward(self, m: Any, external: bool) -> None:
            self.deliver(m.m)
            mode = self.update_compare_evc(m, external)
            if 12 in lines:
                mode = dcc.FAST if m.m.destinations == self.last_dst else dcc.SLOW
                self.last_dst = m.m.destinations
            self.fast_or_slow(m.m, m.src, mode)

        def accumulate_and_forward(self, m: Any) -> None:
            if last_handled:
                self.last_dst = m.m.destinations
            evc = list(m.evc)
            dcc.raise_to(evc, tuple(self.EVC))
            if 25 in lines:
                for d in m.m.destinations[1:]:
                    edge = dcc.edge_number(self.size, m.src, d)
                    evc[edge] = m.evc[edge]
            self.send_hop(self.process + 1, dcc.Hop(m.m, m.src, m.mode, tuple(evc)))

    return plan_of(Mended)


def published_without_slow_mode() -> StackPlan:
    dcc = loaded_anew("dcc_published")
    dcc.SLOW = dcc.FAST
    return plan_of(dcc.DccPublished)


def published_without_clock_update() -> StackPlan:
    """Line 21 left out: a node does not take over the clock of what it delivers."""
    dcc = loaded_anew("dcc_published")
    dcc.raise_to = lambda clock, other: None
    return plan_of(dcc.DccPublished)


def published_that_forwards_at_once() -> StackPlan:
    """Lines 32 to 35 left out: an intermediate node never keeps a message back."""
    dcc = loaded_anew("dcc_published")
    dcc.DccPublished.can_forward = lambda self, m: True
    return plan_of(dcc.DccPublished)


PAIRS = from_clients(3, (0, 1), (1, 2), (0, 2), fifo=False)
ALIKE = from_clients(2, (0, 1), (0, 1), fifo=False)
ONE = from_clients(3, (0, 2))
ONE_SENDER = Scope(
    3, (PlannedCast(0, (1, 2)), PlannedCast(0, (2,)), PlannedCast(0, (1, 2))), fifo=False
)

CASES = [
    Case(best_effort_that_forgets_the_last_destination, "best_effort", ONE, "validity"),
    Case(best_effort_that_delivers_twice, "best_effort", ONE, "integrity"),
    Case(best_effort_to_everybody, "best_effort", ONE, "integrity"),
    Case(fifo_that_does_not_wait, "fifo", ONE_SENDER, "fifo order"),
    Case(fifo_that_counts_for_all_destinations_together, "fifo", ONE_SENDER, "validity"),
    Case(fifo_that_drops_what_is_early, "fifo", ONE_SENDER, "validity"),
    Case(skeen_without_line_14, "skeen", PAIRS, "acyclic order"),
    Case(skeen_that_does_not_wait_for_lower_proposals, "skeen", ALIKE, "acyclic order"),
    Case(skeen_that_takes_the_lowest_proposal, "skeen", ALIKE, "acyclic order"),
    Case(skeen_that_breaks_ties_by_itself, "skeen", ALIKE, "acyclic order"),
    Case(skeen_with_line_18_as_printed, "skeen", from_clients(1, (0,)), "validity"),
    Case(df_that_does_not_wait, "df", ALIKE, "acyclic order"),
    Case(df_that_ends_only_the_one_before, "df", from_clients(3, (0, 1, 2), (0, 1)), "validity"),
    Case(df_that_empties_its_queue_at_once, "df", from_clients(2, (0, 1), (0, 1), (0, 1),
                                                               fifo=False), "acyclic order"),
    Case(dcc_without_slow_mode, "dcc", from_clients(3, (0, 2), (1, 2), (0, 1)), "acyclic order"),
    Case(dcc_without_other_edges, "dcc",
         from_clients(3, (0, 1), (0, 2), (0, 2), (1, 2)), "validity"),
    Case(dcc_with_a_forgetful_intermediate, "dcc",
         from_clients(5, (1, 3, 4), (1, 3, 4), (0, 2, 4)), "validity"),
    Case(dcc_that_goes_fast_after_coming_slow, "dcc",
         from_clients(5, (0, 3), (0, 3), (1, 2, 4), (0, 1), (1, 2, 4), (3, 4)), "acyclic order"),
    Case(dcc_wide_that_always_goes_straight_on, "dcc_wide",
         from_clients(3, (0, 2), (1, 2), (0, 1)), "acyclic order"),
    Case(dcc_wide_that_follows_whoever_went_before, "dcc_wide",
         from_clients(3, (0, 1), (0, 2), (0, 2), (1, 2)), "acyclic order"),
    Case(dcc_wide_without_other_edges, "dcc_wide",
         from_clients(3, (0, 2), (1, 2), (0, 1)), "validity"),
    Case(published_without_slow_mode, "dcc_published",
         from_clients(3, (0, 2), (1, 2), (0, 1)), "acyclic order"),
    Case(published_without_clock_update, "dcc_published",
         from_clients(3, (0, 1), (0, 1), (1, 2)), "validity"),
    Case(published_that_forwards_at_once, "dcc_published",
         from_clients(4, (1, 3), (1, 3), (0, 1), (0, 3)), "validity"),
    *variants_abcast.CASES,
    *variants_atomic.CASES,
    *variants_xamp.CASES,
    *variants_causal.CASES,
    *variants_majority.CASES,
    *variants_paxos.CASES,
    *variants_pbft.CASES,
    *variants_ramcast.CASES,
    *variants_primcast.CASES,
    *variants_byzantine.CASES,
    *variants_replicated.CASES,
    *variants_safe.CASES,
    *variants_vcube.CASES,
    *variants_virtual_synchrony.CASES,
    *variants_white_box.CASES,
]  # fmt: skip


def named(case: Case) -> str:
    return case.variant.__name__
