"""Runs that are staged in the states of a search, and searches that begin in the midst of a run."""

from __future__ import annotations

from random import Random

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.bench import ImpossibleError
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.schedule import ScheduleStep, stage
from flexgroup.worlds.explorer.scope import from_clients
from flexgroup.worlds.explorer.scope_words import command_of, scope_of, words_of
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.staged import StagedRun

FOLLOWED = SearchOptions(reduce=False, symmetry=False, follow_clients=True)

SYSTEMS = {
    "skeen": {"processes": ["3"], "message": ["0,1", "1,2", "0:0,2"], "channels": ["reordering"]},
    "dcc-published/any": {"processes": ["4"], "message": ["0,2", "0,2", "1,3", "0,1,2,3"]},
    "reliable": {
        "processes": ["3"], "message": ["0:0,1,2", "1:0,2"], "channels": ["reordering"],
        "losses": ["2"], "duplicates": ["2"], "timers": ["4"], "crashes": ["1"],
    },
    "leader paxos": {
        "replicas": ["3"], "message": ["0:0,1,2", "1:0,1,2"], "crashes": ["2"], "restarts": ["2"],
        "suspicions": ["1"],
    },
    "vcube-atomic": {"processes": ["3"], "message": ["0:0,1,2", "1:0,1,2"], "crashes": ["1"]},
    "virtual-synchrony": {
        "processes": ["3"], "message": ["2:0,1,2", "2:0,1"], "view": ["0,1,2", "0,1"],
    },
}  # fmt: skip


@pytest.mark.parametrize("stack", SYSTEMS)
@pytest.mark.parametrize("seed", range(8))
def test_a_run_that_is_followed_in_a_hurry_ends_in_the_same_state(stack: str, seed: int) -> None:
    plan, scope = parse_stack(stack), scope_of(SYSTEMS[stack])
    random = Random(seed)
    search = new_search(plan, scope, FOLLOWED)
    slow = StagedRun(search, scope)
    for _ in range(60):
        possible = slow.possible()
        if not possible:
            break
        slow.take(random.choice(possible)[1])
    hurried = StagedRun(search, scope)
    hurried.follow_all(slow.steps)
    assert hurried.steps == slow.steps
    assert search.fingerprint(hurried.state) == search.fingerprint(slow.state)
    assert [step for step, _ in hurried.possible()] == [step for step, _ in slow.possible()]
    bench = stage(plan, scope, slow.steps)
    for process in range(scope.processes):
        assert slow.local(process).crashed == (process in bench.crashed)


def test_a_step_that_cannot_happen_is_told_by_its_name() -> None:
    search = new_search(parse_stack("skeen"), from_clients(2, (0, 1)), FOLLOWED)
    run = StagedRun(search, from_clients(2, (0, 1)))
    run.follow_all([ScheduleStep("cast", 2), ScheduleStep("receive", 0, source=2)])
    with pytest.raises(ImpossibleError, match="step 3, 'deliver 2->0', cannot happen there"):
        run.follow_all([ScheduleStep("receive", 0, source=2)])


CYCLE = from_clients(4, (0, 2), (0, 2), (0, 3), (2, 3))


@pytest.mark.parametrize("reduce", [True, False])
def test_a_search_from_the_middle_of_a_bad_run_ends_as_badly_and_begins_with_it(
    reduce: bool,
) -> None:
    plan = parse_stack("dcc-published")
    (found,) = explore(plan, CYCLE, SearchOptions(reduce=False, symmetry=False)).violations
    begin = found.run[:9]
    options = SearchOptions(reduce=reduce, begin=begin, follow_clients=True)
    (again,) = explore(plan, CYCLE, options).violations
    assert again.name == found.name
    assert again.run[:9] == begin
    delivered = stage(plan, CYCLE, again.run).delivered
    assert sum(map(len, delivered)) == 8
    if not reduce:
        assert len(again.run) == len(found.run)


def test_what_can_no_longer_happen_is_not_searched() -> None:
    """Once b has arrived in its turn, no circle is left; from the beginning there is one."""
    plan = parse_stack("dcc-published")
    whole = explore(plan, CYCLE, SearchOptions(reduce=False, symmetry=False))
    assert whole.broken
    casts = tuple(ScheduleStep("cast", 4 + place, number=place) for place in range(4))
    way = [(0, 4), (1, 0), (2, 1), (0, 5), (2, 0)]
    begin = (*casts, *(ScheduleStep("receive", to, source=source) for to, source in way))
    full = explore(plan, CYCLE, SearchOptions(False, False, follow_clients=True, begin=begin))
    reduced = explore(plan, CYCLE, SearchOptions(True, follow_clients=True, begin=begin))
    assert not full.broken
    assert full.exhausted
    assert reduced.terminal_orders == full.terminal_orders
    assert 0 < reduced.states < full.states < whole.states


@pytest.mark.parametrize("stack", SYSTEMS)
def test_a_scope_survives_its_words(stack: str) -> None:
    scope = scope_of(SYSTEMS[stack])
    assert scope_of(words_of(scope)) == scope
    assert command_of(stack, scope).startswith(f"flexgroup explore --protocol '{stack}' --proc")
