"""Random schedules of ByzCast and DCC-bft, with liars in every group that is large enough."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.replica_schedules import (
    INTEGRITY,
    ORDER,
    Load,
    Outcome,
    ReplicaSchedule,
    replica_schedule,
)
from flexgroup.testing.script import rewrite

LOGS = ["log byzcast", "log byzcast/chain", "log df-bft", "log dcc-bft", "log dcc-bft/sealed"]
STACKS = [*LOGS, "pbft byzcast", "pbft dcc-bft"]

SIZES = ((4, 4), (4, 1, 1), (1, 4, 1), (4, 4, 4))


def outcome(stack: str, sizes: tuple[int, ...], seed: int, liars: int = 1) -> Outcome:
    """The same schedules as those of `benchmarks/replica_schedules.py`."""
    load = Load(2 + seed % 4, depth=(0, 3)[seed % 2], liars=liars, first_may_lie="pbft" in stack)
    return replica_schedule(parse_stack(stack), sizes, load, seed)


@settings(max_examples=60, deadline=None)
@given(stack=st.sampled_from(STACKS), sizes=st.sampled_from(SIZES), seed=st.integers(0, 1 << 32))
def test_every_schedule_keeps_what_is_promised(
    stack: str, sizes: tuple[int, ...], seed: int
) -> None:
    found = outcome(stack, sizes, seed)
    assert found.broken == "", found.script()


@pytest.mark.parametrize("stack", STACKS)
def test_in_200_schedules(stack: str) -> None:
    found = Counter(outcome(stack, SIZES[seed // 2 % 4], seed).broken for seed in range(200))
    assert found == {"": 200}


@pytest.mark.large
@pytest.mark.parametrize("stack", STACKS)
def test_in_2000_schedules(stack: str) -> None:
    found = Counter(outcome(stack, SIZES[seed // 2 % 4], seed).broken for seed in range(2000))
    assert found == {"": 2000}


def test_every_kind_of_liar_is_among_them() -> None:
    plan = parse_stack("log byzcast")
    kinds = {
        kind
        for seed in range(50)
        for _, kind in ReplicaSchedule(plan, (4, 4), Load(1, liars=1), seed).lying
    }
    assert len(kinds) == 9


def test_as_printed_the_order_of_byzcast_breaks_and_the_schedule_is_a_script() -> None:
    found = outcome("log byzcast-published", SIZES[3], 223)
    assert found.broken == ORDER
    *commands, last = found.script().split("\nverdict\n")
    assert last == ""
    assert "acyclic order: violated" in rewrite(commands[0] + "\nverdict\n----\n")


def test_with_one_liar_too_many_a_message_is_forged() -> None:
    """So these schedules can find what they look for."""
    assert outcome("log byzcast", SIZES[1], 107, liars=2).broken == INTEGRITY
