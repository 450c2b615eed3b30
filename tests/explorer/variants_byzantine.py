"""Variants of what stands among liars, with one of their ideas taken out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flexgroup.protocols.catalogue import Protocol, StackPlan, parse_stack
from flexgroup.protocols.parts.vouched_channels import AS_THEY_COME
from flexgroup.worlds.explorer.scope import Scope

from .variant_parts import Case, loaded_anew
from .variants_replicated import between_groups


def among_liars(sizes: list[int], *messages: tuple[int, ...], **liars: int) -> Scope:
    """Groups of these sizes, messages to them by clients, and liars: the kind, and who it is."""
    scope = between_groups(sizes, *messages)
    return replace(scope, liars=tuple(sorted((process, kind) for kind, process in liars.items())))


def on_a_log(layer: Any, *options: str) -> StackPlan:
    top = Protocol("variant", layer, "", "", always=frozenset(options))
    return StackPlan.of(*parse_stack("log").protocols, top)


def with_channels() -> tuple[Any, Any]:
    """ByzCast, and the channels that it rests on."""
    byzcast = loaded_anew("byzcast", "vouched_channels")
    return byzcast, byzcast.Vouched


# What both have in common: the channels between groups.


def without_comparison(self: Any, member: Any, packet: Any, group: Any, in_order: bool) -> Any:
    """What f + 1 members send under a number is taken as the last of them has it."""
    if self.incoming.is_known(packet.number):
        return []
    copies = self.copies.setdefault(packet.number, {})
    copies[member] = packet
    return self.incoming.take(packet, in_order) if len(copies) > (len(group) - 1) // 3 else []


def f_copies_are_enough() -> StackPlan:
    byzcast, vouched = with_channels()
    careful = vouched.add

    def add(self: Any, member: Any, packet: Any, group: Any, in_order: bool) -> Any:
        return careful(self, member, packet, group[:1], in_order)

    vouched.add = add
    return on_a_log(byzcast.ByzCast)


def copies_of_one_member_count_twice() -> StackPlan:
    """Algorithm 3.4, line 9, read as it is printed: so often m was delivered."""
    byzcast, vouched = with_channels()
    careful = vouched.add

    def add(self: Any, member: Any, packet: Any, group: Any, in_order: bool) -> Any:
        come = sum(map(len, self.copies.values()))
        return careful(self, (come, member), packet, group, in_order)

    vouched.add = add
    return on_a_log(byzcast.ByzCast)


def contents_are_not_compared() -> StackPlan:
    byzcast, vouched = with_channels()
    vouched.add = without_comparison
    return on_a_log(byzcast.ByzCast)


def relays_are_taken_from_any_group() -> StackPlan:
    byzcast, _ = with_channels()
    careful = byzcast.ByzCast.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        if isinstance(packet, byzcast.Transfer) and self.x > 0:
            self.on_transfer(byzcast.parent_of(self.shape, self.x), sender, packet)
        else:
            careful(self, sender, packet)

    byzcast.ByzCast.on_packet = on_packet
    return on_a_log(byzcast.ByzCast)


def whoever_submits_a_message_is_believed() -> StackPlan:
    byzcast, _ = with_channels()
    careful = byzcast.ByzCast.is_submitted
    byzcast.ByzCast.is_submitted = lambda self, sender, m: careful(self, byzcast.origin_of(m.id), m)
    return on_a_log(byzcast.ByzCast)


def a_lie_stops_who_hears_it() -> StackPlan:
    byzcast, _ = with_channels()
    byzcast.ByzCast.AMONG_LIARS = False
    return on_a_log(byzcast.ByzCast)


def transfers_overtake_each_other() -> StackPlan:
    """As chapter 5 prints it, with the published DCC inside."""
    bft = loaded_anew("replicated_bft")
    return on_a_log(bft.ReplicatedBft, "dcc-published", AS_THEY_COME)


def hops_are_not_compared() -> StackPlan:
    bft = loaded_anew("replicated_bft", "vouched_channels")
    bft.Vouched.add = without_comparison
    return on_a_log(bft.ReplicatedBft, "dcc")


def the_source_of_a_message_is_a_process() -> StackPlan:
    """Algorithm 5.5, line 6, as it stands: em.src is n, and every member sends something else."""
    bft = loaded_anew("replicated_bft")
    careful = bft.ReplicatedBft.transfer

    def transfer(self: Any, effect: Any, own: Any) -> None:
        hop = effect.packet
        literal = type(hop)(hop.m, self.process, hop.mode, hop.evc)
        careful(self, bft.Send(effect.to, literal), own)

    bft.ReplicatedBft.transfer = transfer
    return on_a_log(bft.ReplicatedBft, "dcc-published", AS_THEY_COME)


def submissions_are_not_checked() -> StackPlan:
    bft = loaded_anew("replicated_bft")
    bft.ReplicatedBft.is_submitted = lambda self, sender, m: m.destinations == (self.number,)
    return on_a_log(bft.ReplicatedBft, "dcc")


ONE = ([4, 1], (0, 1))
RING = ([4, 1, 1], (0, 1), (0, 2), (1, 2))

CASES = [
    Case(f_copies_are_enough, "byzcast", among_liars(*ONE, forge=3), "integrity"),
    Case(copies_of_one_member_count_twice, "byzcast", among_liars(*ONE, insist=3), "integrity"),
    Case(contents_are_not_compared, "byzcast", among_liars(*ONE, forge=3), "integrity"),
    Case(relays_are_taken_from_any_group, "byzcast",
         among_liars([1, 4, 1], (1, 2), invent=4), "integrity"),
    Case(whoever_submits_a_message_is_believed, "byzcast",
         among_liars(*ONE, impersonate=3), "integrity"),
    Case(a_lie_stops_who_hears_it, "byzcast",
         among_liars([4], (0,), (0,), impersonate=3), "validity"),
    Case(transfers_overtake_each_other, "dcc-bft", among_liars(*RING, skip=3), "acyclic order"),
    Case(hops_are_not_compared, "dcc-bft", among_liars(*ONE, forge=3), "integrity"),
    Case(the_source_of_a_message_is_a_process, "dcc-bft", between_groups(*ONE), "validity"),
    Case(submissions_are_not_checked, "dcc-bft", among_liars(*ONE, impersonate=3), "integrity"),
]  # fmt: skip

LEFT_ALONE = {name: parse_stack(f"log {name}") for name in ("byzcast", "dcc-bft")}
"""The stacks of which variants replace a layer."""
