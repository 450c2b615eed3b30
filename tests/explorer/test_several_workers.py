"""Workers that share a search, and searches that are larger than memory: the counts stay equal.

Workers join where a level has so many states; here it has one, so that they share all of a small
scope.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from librt.vecs import vec
from mypy_extensions import i32

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.exchange import share
from flexgroup.worlds.explorer.explorer import Exploration, SearchLimits
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.snapshot import SearchSnapshot, read_snapshot, write_snapshot

FULL = SearchOptions(reduce=False, symmetry=False)
SYMMETRY = SearchOptions(reduce=False)
REDUCED = SearchOptions()

ALIKE = from_clients(3, (0, 1), (0, 1), (2,), fifo=False)
CYCLIC = from_clients(4, (0, 2), (0, 2), (1, 2, 3), (1, 2, 3), (0, 3))
REPLICAS = Scope(
    3,
    (PlannedCast(1, (0, 1, 2)),),
    bounds=Bounds(crashes=1, suspicions=1),
    crashing=(0,),
    suspecting=((1, 0),),
    replicas=((0, 1, 2),),
)
STOCK = replace(REPLICAS, crashing=(), suspecting=(), bounds=Bounds(crashes=1))

SCOPES = {
    "full": ("skeen", ALIKE, FULL),
    "symmetry": ("skeen", ALIKE, SYMMETRY),
    "reduced": ("dcc", CYCLIC, REDUCED),
    "violated": ("dcc-published", CYCLIC, REDUCED),
    "violated, not reduced": ("dcc-published", CYCLIC, SYMMETRY),
    "faults by name": ("leader paxos", REPLICAS, FULL),
    "faults by name, reduced": ("leader paxos", REPLICAS, REDUCED),
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
    assert together.posted > 0 or name == "faults by name, reduced"


def test_most_of_what_is_found_is_not_posted() -> None:
    """Only moves of one process lead to what another worker owns, and few states of a scope do."""
    together = explored("full", 2)
    assert 5 * together.posted < together.transitions
    assert together.bytes_exchanged == together.posted * (16 + 4 * 7)


def test_what_was_handed_out_is_posted_again() -> None:
    """Its owner has to hear that the search came back to a state of an earlier level."""
    search = new_search(parse_stack("skeen"), ALIKE, FULL)
    share(search, [0], 2, 0)
    sharing = search.sharing
    assert sharing is not None
    state = vec[i32](search.first)
    lengths = []
    for _ in range(2):
        sharing.post(1, state, 5, 5, 4)
        sharing.post(1, state, 5, 5, 3)
        lengths.append([len(data) for data in sharing.collect()])
    assert lengths == [[0, 16 + 4 * len(state)]] * 2


def test_a_small_scope_is_not_divided() -> None:
    outcome = explored("full", 2, join_at=1_000_000)
    assert counts(outcome) == counts(alone("full"))
    assert outcome.posted == 0


def test_workers_that_cannot_be_forked_are_given_the_search_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    together = explored("symmetry", 2, join_at=100)
    assert counts(together) == counts(alone("symmetry"))
    assert together.posted > 0


# States that are not in memory.

TINY = 64
"""So few bytes that tables stay as small as they begin, and queues hold a single state."""


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", SCOPES)
def test_states_in_files_count_as_those_in_memory_do(name: str, workers: int) -> None:
    outcome = explored(name, workers, memory=TINY)
    assert counts(outcome) == counts(alone(name))
    if workers == 1:
        assert (outcome.in_files > 0) is (outcome.states > 700)


def test_a_folder_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"No such file.*another folder with TMPDIR"):
        explored("full", 1, memory=TINY)


@contextmanager
def files_of(at_most: int) -> Iterator[None]:
    """Let no file become larger than this, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (at_most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_loses_nothing(workers: int) -> None:
    """The search stops with what it has found, and can be saved and resumed."""
    stack, scope, options = SCOPES["full"]
    kept: list[SearchSnapshot] = []

    def keep(snapshot: SearchSnapshot) -> None:
        kept.append(replace(snapshot, workers=[list(pieces) for pieces in snapshot.workers]))

    exploration = Exploration(
        parse_stack(stack),
        scope,
        options,
        keep_going=True,
        workers=workers,
        memory=TINY,
        join_at=1,
        keep=keep,
    )
    with files_of(at_most=8192):
        stopped = exploration.run()
    assert "takes no more (File too large)" in stopped.last_line()
    assert 0 < stopped.states < alone("full").states
    assert counts(exploration.run(kept[0])) == counts(alone("full"))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_with_states_in_files_is_resumed(workers: int, tmp_path: Path) -> None:
    file = tmp_path / "search"
    stack, scope, options = SCOPES["full"]
    exploration = Exploration(
        parse_stack(stack),
        scope,
        options,
        SearchLimits(states=3000),
        keep_going=True,
        workers=workers,
        memory=TINY,
        join_at=1,
        keep=lambda snapshot: write_snapshot(file, snapshot),
    )
    stopped = exploration.run()
    assert stopped.in_files > 0
    exploration.limits = SearchLimits()
    assert counts(exploration.run(read_snapshot(file))) == counts(alone("full"))
