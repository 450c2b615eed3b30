"""A schedule that shows a problem is cut down to what the problem needs."""

from __future__ import annotations

import pickle

from flexgroup.virtual.clients import Problem
from flexgroup.virtual.schedule import Load, Schedule, draw_schedule, parse_schedule
from flexgroup.virtual.shrinking import shrink

SCHEDULE = draw_schedule(3, "SKEEN", Load(messages=100, faults=5))


def test_only_what_the_problem_needs_is_left() -> None:
    def is_bad(schedule: Schedule) -> bool:
        sends = [action for action in schedule.actions if action.what == "send"]
        return len(sends) >= 2 and any(action.who[0] == "c3" for action in sends)

    shrunk = shrink(SCHEDULE, is_bad)
    assert [client.name for client in shrunk.schedule.clients] == ["c3"]
    assert shrunk.schedule.servers == 1
    assert [(a.what, a.who[0]) for a in shrunk.schedule.actions] == [("send", "c3")] * 2


def test_no_more_executions_are_made_than_allowed() -> None:
    tried: list[Schedule] = []

    def is_bad(schedule: Schedule) -> bool:
        tried.append(schedule)
        return len(schedule.actions) > 50

    assert shrink(SCHEDULE, is_bad, most=20).executions == len(tried) == 20


def test_a_schedule_that_cannot_be_smaller_stays_as_it_is() -> None:
    assert shrink(SCHEDULE, lambda schedule: False).schedule == SCHEDULE


def test_what_is_left_of_servers_is_numbered_anew() -> None:
    schedule = parse_schedule(
        """
        stack SKEEN
        servers 4
        client ann 3 A
        0.1 kill 1
        0.2 slow 3 2 0.100
        0.3 send ann A
        """
    )

    def is_bad(schedule: Schedule) -> bool:
        return any(action.what == "slow" for action in schedule.actions)

    shrunk = shrink(schedule, is_bad).schedule
    assert (shrunk.servers, shrunk.clients) == (2, ())
    assert [str(action) for action in shrunk.actions] == ["0.200000 slow 1 0 0.100"]


def test_what_one_process_finds_another_can_be_told() -> None:
    """Schedules are judged by several processes at once."""
    found = Problem("lost", "m1 is lost")
    assert pickle.loads(pickle.dumps([found])) == [found]
