"""Variants of the broadcasts over VCube, of All2All, and of the failure detectors."""

from __future__ import annotations

from typing import Any

from flexgroup.core.message import origin_of
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {
    "vcube_best_effort": "VCubeBestEffort",
    "vcube_reliable": "VCubeReliable",
    "vcube_atomic": "VCubeAtomic",
    "vcube_atomic_published": "VCubeAtomicPublished",
    "all2all_atomic": "All2AllAtomic",
    "vcube_detector": "VCubeDetector",
    "heartbeat": "Heartbeat",
}


def broadcasts(processes: int, *origins: int, fifo: bool = True, **bounds: int) -> Scope:
    """Members that broadcast to all."""
    everyone = tuple(range(processes))
    casts = tuple(PlannedCast(origin, everyone) for origin in origins)
    return Scope(processes, casts, fifo, bounds=Bounds(**bounds))


# Broadcasts without order.


def best_effort_without_forwarding() -> StackPlan:
    module = loaded_anew("vcube_best_effort")
    module.VCubeBestEffort.on_tree = lambda self, j, m: self.deliver_once(m)
    return plan_of(module.VCubeBestEffort)


def best_effort_that_leaves_out_the_largest_cluster() -> StackPlan:
    module = loaded_anew("vcube_best_effort")
    module.dimension = lambda n: (n - 1).bit_length() - 1
    return plan_of(module.VCubeBestEffort)


def best_effort_that_delivers_again_when_confirmed() -> StackPlan:
    module = loaded_anew("vcube_best_effort")
    careful = module.VCubeBestEffort.on_ack

    def on_ack(self: Any, j: int, packet: Any) -> None:
        self.deliver(self.trees.pending_ack[j, (packet.m,)][0].m)
        careful(self, j, packet)

    module.VCubeBestEffort.on_ack = on_ack
    return plan_of(module.VCubeBestEffort)


def best_effort_that_confirms_twice() -> StackPlan:
    module = loaded_anew("vcube_best_effort")
    once = module.VCubeBestEffort.ack

    def ack(self: Any, source: int, m: int) -> None:
        once(self, source, m)
        once(self, source, m)

    module.VCubeBestEffort.ack = ack
    return plan_of(module.VCubeBestEffort)


def reliable_that_nobody_carries_on() -> StackPlan:
    """What a crashed process sent to some stays with them."""
    module = loaded_anew("vcube_reliable")
    carrying = module.VCubeReliable.carry

    def carry(self: Any, m: Any) -> None:
        if origin_of(m.id) == self.process:
            carrying(self, m)

    module.VCubeReliable.carry = carry
    return plan_of(module.VCubeReliable)


def reliable_that_does_not_replace_the_crashed() -> StackPlan:
    module = loaded_anew("vcube_reliable", "spanning_trees")
    of_part = module.SpanningTrees.crash.__globals__
    of_part["ff_neighbor"] = lambda i, s, n, crashed: of_part["NOBODY"]
    return plan_of(module.VCubeReliable)


def reliable_that_forgets_at_once() -> StackPlan:
    """A carrier says that all have what it is only about to send."""
    module = loaded_anew("vcube_reliable")
    careful = module.VCubeReliable.on_tree

    def on_tree(self: Any, j: int, tree: Any) -> None:
        careful(self, j, tree)
        self.kept.pop((tree.carrier, tree.number), None)

    module.VCubeReliable.on_tree = on_tree
    return plan_of(module.VCubeReliable)


# Destination agreement.


AGREEMENT = "destination_agreement"


def _without_waiting_for_lower_timestamps(module: Any, layer: Any) -> StackPlan:
    def deliverable(self: Any) -> list[Any]:
        stamped = [known for known in self.received.values() if known.sn >= 0]
        return sorted(stamped, key=lambda known: (known.sn, known.m.id))

    module.DestinationAgreement.deliverable = deliverable
    return plan_of(layer)


def _without_waiting_for_anybody(module: Any, layer: Any) -> StackPlan:
    careful = module.DestinationAgreement.check_deliverable

    def check_deliverable(self: Any, layer: Any, known: Any) -> None:
        known.missing = known.pending = 0
        careful(self, layer, known)

    module.DestinationAgreement.check_deliverable = check_deliverable
    return plan_of(layer)


def _that_waits_for_the_crashed(module: Any, layer: Any) -> StackPlan:
    def others(self: Any) -> int:
        return ((1 << self.size) - 1) & ~(1 << self.process)  # type: ignore[no-any-return]

    module.DestinationAgreement.others = others
    return plan_of(layer)


def vcube_atomic_that_does_not_wait_for_lower_timestamps() -> StackPlan:
    module = loaded_anew("vcube_atomic", AGREEMENT)
    return _without_waiting_for_lower_timestamps(module, module.VCubeAtomic)


def vcube_atomic_that_waits_for_nobody() -> StackPlan:
    module = loaded_anew("vcube_atomic", AGREEMENT)
    return _without_waiting_for_anybody(module, module.VCubeAtomic)


def vcube_atomic_that_waits_for_the_crashed() -> StackPlan:
    module = loaded_anew("vcube_atomic", AGREEMENT)
    return _that_waits_for_the_crashed(module, module.VCubeAtomic)


def vcube_atomic_that_does_not_replace_the_crashed() -> StackPlan:
    module = loaded_anew("vcube_atomic")

    def replace(self: Any, s: int, forwarded: Any) -> None:
        for T in sorted(forwarded.awaited_from(s)):
            self.confirm(s, T, forwarded)

    module.VCubeAtomic.replace = replace
    return plan_of(module.VCubeAtomic)


def vcube_atomic_that_keeps_its_timestamp_to_the_tree_it_is_in() -> StackPlan:
    """Lines 25 to 27 left out: who is not below in that tree never hears of it."""
    module = loaded_anew("vcube_atomic")
    telling = module.VCubeAtomic.forward

    def forward(self: Any, source: int, low: int, high: int, m: Any, T: Any) -> None:
        if low == 1:
            telling(self, source, low, high, m, T)

    module.VCubeAtomic.forward = forward
    return plan_of(module.VCubeAtomic)


def all2all_that_does_not_wait_for_lower_timestamps() -> StackPlan:
    module = loaded_anew("all2all_atomic", AGREEMENT)
    return _without_waiting_for_lower_timestamps(module, module.All2AllAtomic)


def all2all_that_waits_for_nobody() -> StackPlan:
    module = loaded_anew("all2all_atomic", AGREEMENT)
    return _without_waiting_for_anybody(module, module.All2AllAtomic)


def all2all_that_waits_for_the_crashed() -> StackPlan:
    module = loaded_anew("all2all_atomic", AGREEMENT)
    return _that_waits_for_the_crashed(module, module.All2AllAtomic)


# Algorithm 1, with lines as they are printed.


def published_with_line_32_as_printed() -> StackPlan:
    """ACK names the timestamps with one's own among them: nobody waits for that."""
    module = loaded_anew("vcube_atomic_published")

    def check_acks(self: Any, source: int, m: int, T: Any) -> None:
        if not self.awaited.get((source, m, T), 0) and source != self.process:
            self.send((source,), module.Ack(m, T))

    module.VCubeAtomicPublished.check_acks = check_acks
    return plan_of(module.VCubeAtomicPublished)


def published_with_line_49_as_printed() -> StackPlan:
    """A message that is stamped is still in received(i), and waits for itself."""
    module = loaded_anew("vcube_atomic_published")

    def check_deliverable(self: Any, m: int) -> None:
        known = self.received.get(m)
        if known is not None and not known.pending and self.has_all(known):
            self.deliver_stamped(known)
            self.received.pop(m)

    module.VCubeAtomicPublished.check_deliverable = check_deliverable
    return plan_of(module.VCubeAtomicPublished)


def published_with_line_55_as_printed() -> StackPlan:
    """The source of a message confirms no timestamps of it."""
    module = loaded_anew("vcube_atomic_published")
    meant = module.VCubeAtomicPublished.check_acks

    def check_acks(self: Any, source: int, m: int, T: Any) -> None:
        if module.origin_of(m) != self.process:
            meant(self, source, m, T)

    module.VCubeAtomicPublished.check_acks = check_acks
    return plan_of(module.VCubeAtomicPublished)


def published_with_line_62_as_printed() -> StackPlan:
    """What the crashed did not confirm goes back to where it came from."""
    module = loaded_anew("vcube_atomic_published")

    def crash(self: Any, j: int) -> None:
        self.crashed.add(j)
        for p, m, T in sorted(self.pending_ack):
            if p == j:
                message, source = self.pending_ack[p, m, T]
                k = module.ff_neighbor(
                    self.process, module.cluster(self.process, j), self.size, self.crashed
                )
                if source not in self.crashed and k != module.NOBODY:
                    self.send((source,), module.Tree(message, T))
                    self.pending_ack[k, m, T] = (message, source)
                    self.awaited[source, m, T] += 1
                    if m in self.received:
                        self.received[m].pending += 1
                self.remove(j, m, T)

    module.VCubeAtomicPublished.crash = crash
    return plan_of(module.VCubeAtomicPublished)


# Failure detectors.


def detector_that_does_not_hear_those_it_suspects() -> StackPlan:
    module = loaded_anew("vcube_detector")
    hearing = module.VCubeDetector.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        if sender not in self.suspected:
            hearing(self, sender, packet)

    module.VCubeDetector.on_packet = on_packet
    return plan_of(module.VCubeDetector)


def detector_that_takes_no_late_answers() -> StackPlan:
    module = loaded_anew("vcube_detector")

    def on_answer(self: Any, j: int, news: Any) -> None:
        if j not in self.silent:
            raise self.refuse(j, module.Answer(news))
        self.silent.discard(j)

    module.VCubeDetector.on_answer = on_answer
    return plan_of(module.VCubeDetector)


def detector_that_sends_to_neighbours_only() -> StackPlan:
    module = loaded_anew("vcube_detector")

    def on_cast(self: Any, m: Any) -> None:
        to = tuple(p for p in m.destinations if p in (*self.tested, self.process))
        self.send(to, module.Data(m))

    module.VCubeDetector.on_cast = on_cast
    return plan_of(module.VCubeDetector)


def heartbeat_that_does_not_hear_those_it_suspects() -> StackPlan:
    module = loaded_anew("heartbeat")
    hearing = module.Heartbeat.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        if sender not in self.suspected:
            hearing(self, sender, packet)

    module.Heartbeat.on_packet = on_packet
    return plan_of(module.Heartbeat)


def heartbeat_that_believes_it_is_never_wrong() -> StackPlan:
    module = loaded_anew("heartbeat")
    adapting = module.Heartbeat.on_alive

    def on_alive(self: Any, j: int) -> None:
        if j in self.suspected:
            raise self.refuse(j, module.Alive())
        adapting(self, j)

    module.Heartbeat.on_alive = on_alive
    return plan_of(module.Heartbeat)


def heartbeat_that_sends_nothing_to_those_it_suspects() -> StackPlan:
    module = loaded_anew("heartbeat")

    def on_cast(self: Any, m: Any) -> None:
        to = tuple(p for p in m.destinations if p not in self.suspected)
        self.send(to, module.Data(m))

    module.Heartbeat.on_cast = on_cast
    return plan_of(module.Heartbeat)


FOUR = broadcasts(4, 0)
TWO_RACE = broadcasts(2, 0, 1)
A_CRASH_OF_TWO = broadcasts(2, 0, crashes=1)
A_CRASH_OF_THREE = broadcasts(3, 0, crashes=1)
TIME_PASSES = broadcasts(2, 0, timers=2)

CASES = [
    Case(best_effort_without_forwarding, "vcube_best_effort", FOUR, "validity"),
    Case(best_effort_that_leaves_out_the_largest_cluster, "vcube_best_effort", FOUR, "validity"),
    Case(best_effort_that_delivers_again_when_confirmed, "vcube_best_effort", FOUR, "integrity"),
    Case(best_effort_that_confirms_twice, "vcube_best_effort", FOUR, "conduct"),
    Case(reliable_that_nobody_carries_on, "vcube_reliable", A_CRASH_OF_THREE, "agreement"),
    Case(reliable_that_does_not_replace_the_crashed, "vcube_reliable",
         broadcasts(4, 0, crashes=1), "validity"),
    Case(reliable_that_forgets_at_once, "vcube_reliable", A_CRASH_OF_THREE, "agreement"),
    Case(vcube_atomic_that_does_not_wait_for_lower_timestamps, "vcube_atomic",
         TWO_RACE, "acyclic order"),
    Case(vcube_atomic_that_waits_for_nobody, "vcube_atomic", TWO_RACE, "acyclic order"),
    Case(vcube_atomic_that_waits_for_the_crashed, "vcube_atomic", A_CRASH_OF_TWO, "validity"),
    Case(vcube_atomic_that_does_not_replace_the_crashed, "vcube_atomic",
         A_CRASH_OF_THREE, "agreement"),
    Case(vcube_atomic_that_keeps_its_timestamp_to_the_tree_it_is_in, "vcube_atomic",
         FOUR, "validity"),
    Case(all2all_that_does_not_wait_for_lower_timestamps, "all2all_atomic",
         TWO_RACE, "acyclic order"),
    Case(all2all_that_waits_for_nobody, "all2all_atomic", TWO_RACE, "acyclic order"),
    Case(all2all_that_waits_for_the_crashed, "all2all_atomic", A_CRASH_OF_TWO, "validity"),
    Case(published_with_line_32_as_printed, "vcube_atomic_published", TWO_RACE, "validity"),
    Case(published_with_line_49_as_printed, "vcube_atomic_published", TWO_RACE, "validity"),
    Case(published_with_line_55_as_printed, "vcube_atomic_published", TWO_RACE, "validity"),
    Case(published_with_line_62_as_printed, "vcube_atomic_published",
         A_CRASH_OF_THREE, "validity"),
    Case(detector_that_does_not_hear_those_it_suspects, "vcube_detector", TIME_PASSES, "validity"),
    Case(detector_that_takes_no_late_answers, "vcube_detector", TIME_PASSES, "conduct"),
    Case(detector_that_sends_to_neighbours_only, "vcube_detector", FOUR, "validity"),
    Case(heartbeat_that_does_not_hear_those_it_suspects, "heartbeat", TIME_PASSES, "validity"),
    Case(heartbeat_that_believes_it_is_never_wrong, "heartbeat",
         broadcasts(2, 0, timers=3), "conduct"),
    Case(heartbeat_that_sends_nothing_to_those_it_suspects, "heartbeat", TIME_PASSES, "validity"),
]  # fmt: skip
