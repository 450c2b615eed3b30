"""Two stacks compared in all systems of a size: where they are alike, and how far that is known."""

from __future__ import annotations

from flexgroup.core.message import message_id
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.explorer.all_systems import explore_all
from flexgroup.worlds.explorer.comparison import (
    Comparison,
    acyclic_orders,
    compare,
    orders_one_by_one,
)
from flexgroup.worlds.explorer.explorer import SearchLimits
from flexgroup.worlds.explorer.scope import from_clients

from .variants import skeen_without_line_14


def beside(
    plans: tuple[StackPlan, StackPlan], states: int | None = None, walks: int = 0
) -> Comparison:
    limits = SearchLimits(states=states)
    rows = [explore_all(plan, 3, 2, limits=limits).verdicts for plan in plans]
    return compare(plans, zip(*rows, strict=True), walks)


def test_orders_of_two_messages_are_known() -> None:
    a, b = message_id(3, 0), message_id(4, 0)
    assert acyclic_orders(from_clients(3, (0, 1), (1, 2))) == {
        ((a,), (a, b), (b,)),
        ((a,), (b, a), (b,)),
    }
    # Nobody delivers both: there is only one way.
    assert acyclic_orders(from_clients(4, (0, 1), (2, 3))) == {((4,), (4,), (5,), (5,))}


def test_one_message_after_the_other_leads_to_all_of_them() -> None:
    ring = from_clients(3, (0, 1), (1, 2), (0, 2))
    assert len(acyclic_orders(ring)) == 6
    for stack in ("skeen", "df", "dcc"):
        assert orders_one_by_one(parse_stack(stack), ring) == acyclic_orders(ring)


def test_alike_where_both_are_exhausted() -> None:
    found = beside((parse_stack("dcc"), parse_stack("df")))
    assert (found.exhausted, found.reached, found.unlike) == (10, 0, [])


def test_unlike_where_one_breaks_what_both_promise_or_ends_in_other_orders() -> None:
    found = beside((parse_stack("dcc"), parse_stack("best-effort")))
    assert found.exhausted == 3
    # Two messages meet at two processes.
    assert [len(scope.casts) for scope in found.unlike] == [2] * 7


def test_what_is_not_exhausted_is_compared_by_the_orders_that_are_reached() -> None:
    found = beside((parse_stack("skeen"), parse_stack("log skeen-cft")), states=100, walks=2)
    assert found.exhausted + found.reached == 10
    assert found.reached > 0
    assert found.walks == 2 * found.reached
    assert not found.unlike


def test_walks_find_what_the_orders_do_not_show() -> None:
    plans = parse_stack("skeen"), skeen_without_line_14()
    assert not beside(plans, states=50).unlike
    assert beside(plans, states=50, walks=300).unlike
