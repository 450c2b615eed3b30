"""What was confirmed is not lost, whatever the stack and whichever server fails then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexgroup.virtual.checks import problems
from flexgroup.virtual.clients import Sent
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Action, Load, draw_schedule, parse_schedule

SCHEDULE = """
seed 1
stack {stack}
servers 3
latency 0.0002 0.001
patience 1.0
client ann 0 A
client bob 1 A
client eve 2 A
0.010000 send eve A
0.011000 confirm eve A
0.100000 cut 0 2
0.100000 cut 2 0
0.100000 cut 1 2
0.100000 cut 2 1
0.110000 send eve A
0.111000 confirm eve A
0.500000 kill 2
"""
"""Server 2 is off the network when its client sends for the second time, and is then killed."""

LOAD = Load(messages=60, seconds=0.5, changes=0, faults=2)


@pytest.mark.parametrize("stack", ["RELIABLE", "RELIABLE ATOMIC", "RELIABLE SAFE"])
def test_a_server_off_the_network_confirms_nothing(stack: str) -> None:
    execution = Execution(parse_schedule(SCHEDULE.format(stack=stack)))
    execution.run()
    assert problems(execution) == []
    first, second = execution.clients["eve"].lives[0].sent[:2]
    assert first.is_confirmed
    assert not second.is_confirmed


@pytest.mark.parametrize("stack", ["RELIABLE", "RELIABLE ATOMIC", "RELIABLE ATOMIC SAFE"])
def test_what_is_confirmed_all_get_who_were_there_and_stay(stack: str) -> None:
    confirmed = 0
    for seed in range(5):
        drawn = draw_schedule(seed, stack, LOAD)
        sends = [action for action in drawn.actions if action.what == "send"]
        confirms = [Action(send.at + 0.001, "confirm", send.who[:2]) for send in sends]
        actions = sorted([*drawn.actions, *confirms], key=lambda action: action.at)
        execution = Execution(replace(drawn, actions=tuple(actions)))
        execution.run()
        assert problems(execution) == []
        first_lives = [client.lives[0] for client in execution.clients.values()]
        sent = [one for life in first_lives for one in life.sent if one.is_confirmed]
        confirmed += len(sent)
        for one in sent:
            assert not lacking(execution, one), f"{one}\n{execution.schedule}"
    assert confirmed > 100


def lacking(execution: Execution, sent: Sent) -> list[str]:
    """The members from the beginning to the end that were not given a message."""
    return [
        life.process
        for client in execution.clients.values()
        for life in client.lives[:1]
        for membership in life.memberships
        if membership.group in sent.groups
        and membership.ended_at is None
        and sent.name not in life.given()
    ]
