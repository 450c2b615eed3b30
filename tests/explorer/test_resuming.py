"""Searches that are interrupted and go on: the counts stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import INTERRUPT, Exploration, explore
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions
from flexgroup.worlds.explorer.snapshot import SearchSnapshot, read_snapshot, write_snapshot

FULL = SearchOptions(reduce=False, symmetry=False)
RACE = from_clients(2, (0, 1), (0, 1), fifo=False)
CYCLIC = from_clients(4, (0, 2), (0, 2), (1, 2, 3), (1, 2, 3), (0, 3))

CASES = [
    pytest.param("skeen", RACE, FULL, id="full"),
    pytest.param("dcc", CYCLIC, SearchOptions(), id="reduced"),
    pytest.param("dcc-published", CYCLIC, SearchOptions(), id="violated"),
]


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
    )


class Impatient:
    """Interrupts after so many looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("stack", "scope", "options"), CASES)
def test_interrupted_again_and_again(
    stack: str, scope: Scope, options: SearchOptions, workers: int, tmp_path: Path
) -> None:
    plan = parse_stack(stack)
    file = tmp_path / "search"
    saved: SearchSnapshot | None = None
    interruptions = 0
    workers_saved = set()
    while True:
        exploration = Exploration(
            plan,
            scope,
            options,
            keep_going=True,
            workers=workers,
            join_at=1,
            interrupted=Impatient(4),
            keep=lambda snapshot: write_snapshot(file, snapshot),
        )
        outcome = exploration.run(saved)
        if outcome.exhausted:
            break
        assert outcome.stopped_at == INTERRUPT
        interruptions += 1
        saved = read_snapshot(file)
        workers_saved.add(len(saved.workers))
    assert interruptions >= 2
    assert max(workers_saved) == workers
    assert counts(outcome) == counts(explore(plan, scope, options, keep_going=True))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "search"
    exploration = Exploration(
        parse_stack("skeen"),
        RACE,
        interrupted=Impatient(2),
        keep=lambda snapshot: write_snapshot(file, snapshot),
    )
    assert not exploration.run().exhausted
    whole = file.read_bytes()
    older = whole.replace(b"flexgroup exploration 6", b"flexgroup exploration 5")
    assert older != whole
    for damaged in (older, whole[:-1], whole[: len(whole) // 2], b"", b"{}\n", whole[:-1] + b"?"):
        file.write_bytes(damaged)
        with pytest.raises(UsageError, match="damaged"):
            read_snapshot(file)
    with pytest.raises(UsageError, match="No such file"):
        read_snapshot(tmp_path / "elsewhere")
