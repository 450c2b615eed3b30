"""With groups of one replica, every schedule of a replicated form is one of what the groups run.

So nothing that it runs promises is broken by the adapter, in any system in which it is kept; and it
delivers in no other order. That it can deliver in every order is shown by schedules in which one
message is delivered after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from random import Random

import pytest

from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.all_systems import systems
from flexgroup.worlds.explorer.comparison import acyclic_orders
from flexgroup.worlds.explorer.scope import from_clients

from . import variants_replicated
from .lockstep import Lockstep, every_order

SKEEN = parse_stack("log skeen-cft"), parse_stack("skeen")


def exhaust(plans: tuple[StackPlan, StackPlan], processes: int, messages: int) -> int:
    return sum(Lockstep(*plans, scope).exhaust() for scope in systems(processes, messages))


@pytest.mark.parametrize(("name", "states"), [("df", 2_375), ("dcc", 1_494)])
def test_every_step_of_every_schedule_is_one_of_the_plain_form(name: str, states: int) -> None:
    plans = parse_stack(f"log {name}-cft"), parse_stack(name)
    assert exhaust(plans, 3, 3) == states


def test_every_step_of_every_schedule_is_one_of_skeen() -> None:
    *small, largest = systems(3, 2)
    assert largest.casts[0].destinations == largest.casts[1].destinations == (0, 1, 2)
    assert sum(Lockstep(*SKEEN, scope).exhaust() for scope in small) == 20_625


def drive(every: int, walks: int) -> int:
    """Drive every so manieth system of four groups and four messages; return how many there are."""
    driven = 0
    for number, scope in enumerate(islice(systems(4, 4), 0, None, every)):
        lockstep = Lockstep(*SKEEN, scope)
        assert every_order(lockstep, scope) == acyclic_orders(scope)
        assert lockstep.walks(Random(number), walks) > 0
        driven += 1
    return driven


def test_four_groups_and_four_messages() -> None:
    assert drive(every=100, walks=4) == 11


@pytest.mark.large
def test_more_of_four_groups_and_four_messages() -> None:
    assert drive(every=25, walks=4) == 41


RACE = from_clients(3, (0, 1), (0, 1), (0, 2))


@pytest.mark.parametrize(
    "variant",
    [
        variants_replicated.copies_of_a_submission_that_are_all_taken,
        variants_replicated.a_packet_to_itself_that_is_forgotten,
    ],
)
def test_a_broken_adapter_is_noticed(variant: Callable[[], StackPlan]) -> None:
    with pytest.raises(AssertionError):
        Lockstep(variant(), SKEEN[1], RACE).walks(Random(1), 10)
