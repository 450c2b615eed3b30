"""Scopes that were explored whole: verdicts, and state counts that only a change can change."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import SearchLimits, explore
from flexgroup.worlds.explorer.result import ExplorationResult, pairs_to_see
from flexgroup.worlds.explorer.scope import PlannedCast, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

FULL = SearchOptions(reduce=False, symmetry=False)

SKEEN = from_clients(3, (0, 1), (1, 2), (0, 2), fifo=False)
CYCLIC = from_clients(4, (0, 2), (0, 2), (1, 2, 3), (1, 2, 3), (0, 3))
STUCK_IF_ANY = from_clients(4, (0, 2), (0, 2), (1, 3), (0, 1, 2, 3), (0, 1, 2, 3))
STUCK = from_clients(5, (0, 3), (0, 1, 4), (0, 1, 3, 4))


def counts(outcome: ExplorationResult) -> tuple[int, int, int, int]:
    return outcome.states, outcome.transitions, outcome.depth, outcome.terminals


def test_skeen_three_processes_whole() -> None:
    """Destinations exchange proposals over channels that reorder; whoever meets may race."""
    outcome = explore(parse_stack("skeen"), SKEEN, FULL)
    assert outcome.exhausted
    assert not outcome.violations
    assert counts(outcome) == (86_134, 498_278, 19, 16)
    assert outcome.complete == outcome.terminals
    assert set(pairs_to_see(SKEEN)) == outcome.seen_orders


def test_published_dcc_can_end_in_a_cycle() -> None:
    outcome = explore(parse_stack("dcc-published"), CYCLIC, FULL)
    assert outcome.broken == {"acyclic order"}
    (violation,) = outcome.violations
    assert violation.shortest
    assert violation.steps == 12


def test_repaired_dcc_cannot() -> None:
    whole = explore(parse_stack("dcc"), CYCLIC, FULL)
    assert whole.exhausted
    assert not whole.violations
    assert counts(whole) == (5_815, 13_784, 17, 120)


@pytest.mark.parametrize(
    ("stack", "scope", "stuck"),
    [
        ("dcc-published", STUCK, True),
        ("dcc-published/any", STUCK, True),
        ("dcc-published", STUCK_IF_ANY, False),
        ("dcc-published/any", STUCK_IF_ANY, True),
        ("dcc", STUCK, False),
        ("dcc/any", STUCK, False),
        ("dcc", STUCK_IF_ANY, False),
        ("dcc/any", STUCK_IF_ANY, False),
    ],
)
def test_deadlock_is_a_finding(stack: str, scope: Scope, stuck: bool) -> None:
    """One scope gets stuck only if any enabled message in the buffer may go next."""
    outcome = explore(parse_stack(stack), scope, keep_going=True)
    assert outcome.exhausted
    assert outcome.broken == ({"validity", "agreement"} if stuck else set())
    assert (outcome.complete < outcome.terminals) is stuck


@pytest.mark.parametrize("stack", ["dcc", "dcc-published"])
def test_the_reduced_search_visits_at_most_a_tenth(stack: str) -> None:
    whole = explore(parse_stack(stack), CYCLIC, FULL, keep_going=True)
    reduced = explore(parse_stack(stack), CYCLIC, keep_going=True)
    assert reduced.broken == whole.broken
    assert reduced.terminal_orders == whole.terminal_orders
    assert 10 * reduced.states <= whole.states


def test_every_bound_is_named_where_the_search_stops() -> None:
    plan = parse_stack("skeen")
    for limits, said in (
        (SearchLimits(states=1000), "--max-states 1000"),
        (SearchLimits(depth=3), "--max-depth 3"),
        (SearchLimits(seconds=0.0), "--max-seconds 0"),
        (SearchLimits(memory=1 << 20), "--max-memory 1"),
    ):
        outcome = explore(plan, SKEEN, FULL, limits)
        assert outcome.stopped_at == said
        assert not outcome.exhausted
        assert outcome.frontier > 0
        assert outcome.last_line().startswith(f"stopped at {said}: ")


def test_the_last_line_of_a_whole_search() -> None:
    outcome = explore(parse_stack("df"), SKEEN)
    assert outcome.last_line() == "exhausted: 97 states, depth 10; no property is violated"


def test_a_stored_state_takes_less_than_400_bytes() -> None:
    outcome = explore(parse_stack("skeen"), SKEEN, FULL)
    assert outcome.memory < 400 * outcome.states


def test_members_multicast_too_in_order_or_in_any() -> None:
    """Two casts of one member: FIFO order is promised for the order in which they were made."""
    casts = (PlannedCast(0, (1, 2)), PlannedCast(0, (1,)), PlannedCast(1, (2,)))
    plan = parse_stack("fifo")
    in_order = explore(plan, Scope(3, casts, fifo=False), FULL)
    any_order = explore(plan, Scope(3, casts, fifo=False, any_order=True), FULL)
    assert in_order.exhausted
    assert any_order.exhausted
    assert not in_order.violations + any_order.violations
    assert any_order.states > in_order.states
    assert any_order.terminal_orders > in_order.terminal_orders


def test_a_client_may_multicast_more_than_once() -> None:
    casts = (PlannedCast(2, (0, 1)), PlannedCast(2, (0, 1)))
    outcome = explore(parse_stack("fifo"), Scope(2, casts, fifo=False), FULL)
    assert outcome.exhausted
    assert not outcome.violations
    assert len(outcome.terminal_orders) == 1


def test_a_stack_that_needs_more_than_the_channels_give_is_refused() -> None:
    with pytest.raises(UsageError, match="missing fifo"):
        explore(parse_stack("dcc"), from_clients(2, (0, 1), fifo=False))


def test_a_stack_of_two_layers() -> None:
    outcome = explore(parse_stack("fifo dcc"), from_clients(3, (0, 2), (0, 1), fifo=False))
    assert outcome.exhausted
    assert not outcome.violations
    assert set(pairs_to_see(outcome.scope)) == outcome.seen_orders


FINGERPRINTS = """
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.scope import from_clients
scope = from_clients(2, (0, 1), (0, 1), fifo=False)
search = new_search(parse_stack("skeen"), scope, SearchOptions())
while True:
    while search.expand(1000): pass
    if not search.next_level(): break
print(sorted(search.visited.rows()))
"""


def test_fingerprints_do_not_depend_on_the_hash_seed() -> None:
    seen = {
        subprocess.run(
            [sys.executable, "-c", FINGERPRINTS],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    assert len(seen.pop()) > 1000
