"""Variants of PBFT with one of its ideas taken out, which small groups show. What it takes more to
show, mostly a liar who may choose, random schedules find (`tests/protocols/pbft_variants.py`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flexgroup.protocols.catalogue import StackPlan, parse_stack

from ..protocols.pbft_variants import fresh, plan
from .variant_parts import Case
from .variants_ramcast import grouped


def pbft_that_waits_for_everybody() -> StackPlan:
    """A quorum is the whole group, so one that says nothing stops it."""
    pbft = fresh()
    pbft.Quorums.most = property(lambda self: len(self.group))
    return plan(pbft)


def pbft_that_hears_no_prepare_before_the_proposal() -> StackPlan:
    """Prepares may overtake what they are about, and nobody repeats them."""
    pbft = fresh()
    careful = pbft.Pbft.on_prepare

    def on_prepare(self: Any, sender: int, packet: Any) -> None:
        if self.slot(packet.number).is_accepted_in(packet.view):
            careful(self, sender, packet)

    pbft.Pbft.on_prepare = on_prepare
    return plan(pbft)


def pbft_that_delivers_what_is_decided_at_once() -> StackPlan:
    """Commits of a number may come before those of the one below it."""
    pbft = fresh()
    pbft.Sequence.has_next = lambda self: bool(self.batches)

    def take_next(self: Any) -> list[Any]:
        self.last += 1
        return list(self.batches.pop(min(self.batches)))

    pbft.Sequence.take_next = take_next
    return plan(pbft)


TWO_SPEAK = replace(grouped((3,), (0, (0, 1, 2))), liars=((2, "silent"),))
THREE_SPEAK = replace(grouped((4,), (0, (0, 1, 2, 3))), liars=((3, "silent"),))
TWO_NUMBERS = replace(grouped((2,), (0, (0, 1)), (0, (0, 1))), fifo=False)

CASES = [
    Case(pbft_that_waits_for_everybody, "pbft", TWO_SPEAK, "validity"),
    Case(pbft_that_hears_no_prepare_before_the_proposal, "pbft", THREE_SPEAK, "validity"),
    Case(pbft_that_delivers_what_is_decided_at_once, "pbft", TWO_NUMBERS, "acyclic order"),
]

LEFT_ALONE = {"pbft": parse_stack("pbft")}
"""The stack of which variants replace the layer."""
