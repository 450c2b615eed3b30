"""Workers that share a search, and searches that are larger than memory: the counts stay equal.

Workers join where a level has so many states; here it has one, so that they share all of a small
scope.
"""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from functools import cache

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import Exploration
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

FULL = SearchOptions(reduce=False, symmetry=False)
SYMMETRY = SearchOptions(reduce=False)
REDUCED = SearchOptions()

RACE = from_clients(3, (0, 1), (1, 2), (0, 2), fifo=False)
ALIKE = from_clients(3, (0, 1), (0, 1), (1, 2), fifo=False)
CYCLIC = from_clients(4, (0, 2), (0, 2), (1, 2, 3), (1, 2, 3), (0, 3))
REPLICAS = Scope(
    3,
    (PlannedCast(1, (0, 1, 2)),),
    bounds=Bounds(crashes=1, suspicions=1),
    crashing=(0,),
    suspecting=((1, 0),),
    replicas=((0, 1, 2),),
)
STOCK = replace(REPLICAS, crashing=(), suspecting=())

SCOPES = {
    "full": ("skeen", ALIKE, FULL),
    "symmetry": ("skeen", ALIKE, SYMMETRY),
    "reduced": ("dcc", CYCLIC, REDUCED),
    "violated": ("dcc-published", CYCLIC, REDUCED),
    "violated, not reduced": ("dcc-published", CYCLIC, SYMMETRY),
    "faults by name": ("leader paxos", REPLICAS, REDUCED),
    "faults from a stock": ("leader paxos", STOCK, FULL),
}


def counts(outcome: ExplorationResult) -> tuple[object, ...]:
    return (
        outcome.states,
        outcome.transitions,
        outcome.depth,
        outcome.terminals,
        outcome.complete,
        outcome.broken,
        outcome.terminal_orders,
        outcome.seen_orders,
        [(violation.name, violation.steps) for violation in outcome.violations],
    )


def explored(name: str, workers: int, memory: int = 0, join_at: int = 1) -> ExplorationResult:
    stack, scope, options = SCOPES[name]
    exploration = Exploration(
        parse_stack(stack),
        scope,
        options,
        keep_going=True,
        workers=workers,
        memory=memory,
        join_at=join_at,
    )
    return exploration.run()


@cache
def alone(name: str) -> ExplorationResult:
    return explored(name, 1)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("name", SCOPES)
def test_several_workers_count_as_one_does(name: str, workers: int) -> None:
    together = explored(name, workers)
    assert counts(together) == counts(alone(name))
    assert together.posted > 0


def test_most_of_what_is_found_is_not_posted() -> None:
    """Only moves of one process lead to what another worker owns, and few states of a scope do."""
    together = explored("full", 2)
    assert 5 * together.posted < together.transitions
    assert together.bytes_exchanged == together.posted * (16 + 4 * 7)


def test_a_small_scope_is_not_divided() -> None:
    outcome = explored("full", 2, join_at=1_000_000)
    assert counts(outcome) == counts(alone("full"))
    assert outcome.posted == 0


def test_workers_that_cannot_be_forked_are_given_the_search_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    together = explored("symmetry", 2, join_at=1000)
    assert counts(together) == counts(alone("symmetry"))
    assert together.posted > 0


# States that are not in memory.

TINY = 1


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", SCOPES)
def test_states_in_files_count_as_those_in_memory_do(name: str, workers: int) -> None:
    """With one byte of memory, tables stay as small as they begin, and queues go state by state."""
    outcome = explored(name, workers, memory=TINY)
    assert counts(outcome) == counts(alone(name))
    assert outcome.in_files > 0 or outcome.states < 700
