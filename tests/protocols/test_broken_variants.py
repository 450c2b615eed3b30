"""The schedules bite: each protocol, with one of its ideas taken out, is caught by them.

A variant is the protocol's own source, loaded a second time under another name, with one
function replaced. (The class itself may be compiled, and then nothing in it can be.)
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from flexgroup.core.message import Packet
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.schedules import (
    CYCLE,
    STUCK,
    Finding,
    System,
    random_system,
    run_schedule,
    search,
    shrink,
)

from ..explorer.variant_parts import loaded_anew, plan_of
from ..explorer.variants import (
    dcc_wide_that_always_goes_straight_on,
    dcc_wide_that_follows_whoever_went_before,
)

SCHEDULES = 400


def skeen_without_line_14() -> StackPlan:
    """The clock does not advance to the final timestamp, so later proposals may precede it."""
    skeen = loaded_anew("skeen")
    skeen.clock_of = lambda ts: 0
    return plan_of(skeen.Skeen)


def df_without_line_9() -> StackPlan:
    """Nobody waits for END."""
    df = loaded_anew("df")

    def on_packet(self: Any, sender: int, packet: Packet) -> None:
        if not isinstance(packet, df.End):
            self.handle(packet.m)  # type: ignore[attr-defined]

    df.DelporteFauconnier.on_packet = on_packet
    return plan_of(df.DelporteFauconnier)


def dcc_without_slow_mode() -> StackPlan:
    """Messages visit their destinations only: the anomaly of figure 4.1 (d)."""
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
    """A node forgets what it only passed on, so a message behind it may go fast, and overtake."""
    dcc = loaded_anew("dcc")
    remembering = dcc.Dcc.accumulate_and_forward

    def accumulate_and_forward(self: Any, m: Any) -> None:
        before = self.last_dst
        remembering(self, m)
        self.last_dst = before

    dcc.Dcc.accumulate_and_forward = accumulate_and_forward
    return plan_of(dcc.Dcc)


def dcc_that_goes_fast_after_coming_slow() -> StackPlan:
    """What a message learnt on the way is news to those it then skips."""
    dcc = loaded_anew("dcc")
    careful = dcc.Dcc.deliver_and_forward

    def deliver_and_forward(self: Any, m: Any, src: int, came: int) -> None:
        careful(self, m, src, dcc.FAST)

    dcc.Dcc.deliver_and_forward = deliver_and_forward
    return plan_of(dcc.Dcc)


def dcc_wide_that_judges_node_by_node() -> StackPlan:
    """A node is spared if nothing is new about it, whatever is new about others."""
    wide = loaded_anew("dcc_wide")

    def next_hop(self: Any, destination: int) -> int:
        now = self.visits_below(destination)
        before = self.crossed.get(destination, (0,) * len(now))
        first = 0
        for node in range(self.process + 1, destination):
            if before[first : first + node] != now[first : first + node]:
                return node
            first += node
        return destination

    wide.DccWide.next_hop = next_hop
    return plan_of(wide.DccWide)


def schedules(plan: StackPlan, fifo: bool) -> list[Finding]:
    found = []
    for seed in range(SCHEDULES):
        random = Random(seed)
        system = random_system(random, locality=seed % 2 == 0)
        finding = run_schedule(plan, system, random, fifo)
        if finding is not None:
            found.append(finding)
    return found


@pytest.mark.parametrize(
    ("variant", "fifo", "kind"),
    [
        (skeen_without_line_14, False, CYCLE),
        (df_without_line_9, False, CYCLE),
        (dcc_without_slow_mode, True, CYCLE),
        (dcc_without_other_edges, True, STUCK),
        (dcc_wide_that_always_goes_straight_on, True, CYCLE),
        (dcc_wide_that_follows_whoever_went_before, True, CYCLE),
    ],
)
def test_a_broken_variant_is_caught(
    variant: Callable[[], StackPlan], fifo: bool, kind: str
) -> None:
    found = schedules(variant(), fifo)
    assert kind in {finding.kind for finding in found}


@pytest.mark.parametrize(
    ("module", "layer"), [("skeen", "Skeen"), ("dcc", "Dcc"), ("dcc_wide", "DccWide")]
)
def test_loaded_anew_and_left_alone_a_protocol_is_not_caught(module: str, layer: str) -> None:
    plan = plan_of(getattr(loaded_anew(module), layer))
    assert schedules(plan, fifo=True) == []


def test_a_variant_that_random_systems_rarely_show() -> None:
    """DCC goes fast by the last message *handled*, not by the last one delivered."""
    system = System(5, ((1, 3, 4), (1, 3, 4), (0, 2, 4)))
    assert search(dcc_with_a_forgetful_intermediate(), system, STUCK, fifo=True, tries=200)
    assert search(parse_stack("dcc"), system, STUCK, fifo=True, tries=200) is None


@pytest.mark.parametrize(
    ("system", "kind", "tries"),
    [
        (System(6, ((0, 3, 5), (0, 3, 5), (1, 2, 4, 5), (0, 1), (1, 2, 4, 5))), STUCK, 1000),
        (System(5, ((0, 3), (0, 3), (1, 2, 4), (0, 1), (1, 2, 4), (3, 4))), CYCLE, 7000),
    ],
)
def test_a_variant_that_few_systems_show_and_rarely(system: System, kind: str, tries: int) -> None:
    """DCC goes fast only where a message came fast: docs/protocols/dcc.md has both systems."""
    assert search(dcc_that_goes_fast_after_coming_slow(), system, kind, fifo=True, tries=tries)
    assert search(parse_stack("dcc"), system, kind, fifo=True, tries=tries) is None


def test_nodes_are_not_spared_one_by_one() -> None:
    """docs/protocols/dcc-wide.md has the system, and tells what happens."""
    system = System(5, ((1, 2), (2, 3), (1, 4), (0, 3), (0, 1), (1, 4)))
    variant = dcc_wide_that_judges_node_by_node()
    assert search(variant, system, STUCK, fifo=True, tries=2000)
    assert search(parse_stack("dcc-wide"), system, STUCK, fifo=True, tries=2000) is None


def test_the_reduced_clock_over_channels_that_reorder_is_caught() -> None:
    """A packet tells what changed since the one before it, so there must be a before."""
    found = schedules(parse_stack("dcc/rv"), fifo=False)
    assert {CYCLE, STUCK} <= {finding.kind for finding in found}


def test_what_is_caught_shrinks_to_something_small() -> None:
    """D&F without waiting: two messages to the same two processes are enough."""
    plan = df_without_line_9()
    first = next(finding for finding in schedules(plan, fifo=False) if finding.kind == CYCLE)
    assert len(first.system.messages) > 3
    small = shrink(plan, first, tries=200)
    assert small.kind == CYCLE
    assert len(small.system.messages) == 2
    assert len(small.arrivals) < len(first.arrivals)
