"""Servers that do something else than they should, or always what they seldom do."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexgroup.membership import machine
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.virtual.campaign import STACKS
from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Load, Schedule, draw_schedule, parse_schedule
from flexgroup.virtual.shrinking import shrink

from ..membership.broken_memberships import puts_what_nobody_delivered_last
from .forcing import freeze_at_every_change
from .test_schedules_of_servers import report

CHANGES = Load(messages=150, seconds=0.5, changes=12)

FEW = Load(clients=2, messages=20, faults=2)
"""Waiting in vain costs by the clients that try to come back."""

OUTAGE = """
seed 1
stack SKEEN
servers 3
patience 0.5
client ann 0 A
client bob 1 A
0.1 send ann A
0.2 join bob B
0.3 cut 0 1
0.3 cut 1 0
0.3 cut 0 2
0.3 cut 2 0
0.3 cut 1 2
0.3 cut 2 1
0.5 send bob A
1.5 heal
"""


@pytest.mark.parametrize("stack", STACKS)
def test_orders_hold_over_changes_that_freeze_what_is_under_way(
    stack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze_at_every_change(monkeypatch)
    for seed in range(2):
        assert report(seed, stack, CHANGES) == ""


def test_a_flush_that_puts_what_nobody_delivered_last_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it was: a server outside of its destinations may have delivered something later."""
    puts_what_nobody_delivered_last(monkeypatch)
    freeze_at_every_change(monkeypatch)
    assert any(
        "order is violated" in report(seed, "RELIABLE ATOMIC", CHANGES) for seed in range(20)
    )


def test_servers_that_end_when_they_hear_too_few_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it was: an outage of all links for long enough ended every server."""
    monkeypatch.setattr(
        machine.Membership, "_stand_still", lambda self, _: self._exclude("too few are heard")
    )
    assert any("in vain" in report(seed, "SKEEN", FEW) for seed in range(12))


def test_orders_that_servers_lose_at_a_change_are_seen_in_their_traces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each run by its name, and with the processes that it has in a trace set."""
    puts_what_nobody_delivered_last(monkeypatch)
    freeze_at_every_change(monkeypatch)
    for seed in range(20):
        execution = Execution(draw_schedule(seed, "RELIABLE ATOMIC", CHANGES))
        execution.run()
        violations = list(execution.recordings.violations())
        if violations:
            break
    execution.recordings.write(tmp_path)
    found = {
        (row.run, verdict.property, verdict.explanation)
        for row in read_runs(tmp_path)
        for verdict in check(load_history(tmp_path, row), row.promises)
        if verdict.outcome is Outcome.VIOLATED
    }
    assert found == {(run, v.property, v.explanation) for run, v in violations} != set()


def test_a_fault_of_servers_is_told_in_a_few_lines_that_show_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Servers that end when they hear too few, as they once did, are lost in an outage."""
    monkeypatch.setattr(
        machine.Membership, "_stand_still", lambda self, _: self._exclude("too few are heard")
    )

    def is_bad(schedule: Schedule) -> bool:
        execution = Execution(schedule)
        execution.run()
        return any("in one configuration" in problem.kind for problem in problems(execution))

    bad = parse_schedule(OUTAGE)
    shrunk = shrink(bad, is_bad, most=25).schedule
    assert shrunk.clients == ()
    assert {action.what for action in shrunk.actions} <= {"cut", "heal"}
    assert is_bad(parse_schedule(str(shrunk)))
