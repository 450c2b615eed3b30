"""Members come and go while messages go on: a view takes its place among them.

A stack with a total order and `SAFE` gives all servers of a group the same sequence, even those
that fail. There a join or leave stops nothing, as long as messages go to the same servers.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from flexgroup.client.message import View
from flexgroup.membership.configuration import Configuration, GroupEntry, Member, Server
from flexgroup.membership.next_configuration import NextConfiguration
from flexgroup.membership.operations import JoinGroup, RemoveClient
from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import parse_schedule

LATENCY = 0.02
"""Between any two machines, one way, as a rule: it has a tail."""

USUAL = 0.25
"""So long messages keep each other waiting on such links, with nothing else going on."""

SENDS = "\n".join(f"{at / 250:.3f} send {('ann', 'bob')[at % 2]} A" for at in range(1000))
"""One of the two sends every four milliseconds."""

CHANGES = "\n".join(f"{0.5 + at / 2} {('join', 'leave')[at % 2]} eve A" for at in range(6))

SCHEDULE = f"""
seed 1
stack {{stack}}
servers 3
latency {LATENCY} {LATENCY}
patience 1.0
client ann 0 A
client bob 1 A
client eve {{at}}
{SENDS}
{CHANGES}
"""


def executed(stack: str, at: int) -> Execution:
    execution = Execution(parse_schedule(SCHEDULE.format(stack=stack, at=at)))
    execution.run()
    assert problems(execution) == []
    return execution


def longest_gap(execution: Execution) -> float:
    """The longest time in which a member was given nothing, while another came and went."""
    gaps = []
    for name in ("ann", "bob"):
        (membership,) = execution.clients[name].lives[0].memberships
        changes = [at for at, item in membership.items if isinstance(item, View)][-6:]
        times = [at for at, item in membership.items if isinstance(item, str) and at < changes[-1]]
        gaps += [later - earlier for earlier, later in pairwise(times)]
    return max(gaps)


@pytest.mark.parametrize("stack", ["ABCAST SAFE", "SKEEN SAFE", "RELIABLE ATOMIC SAFE"])
def test_messages_go_on_while_members_come_and_go(stack: str) -> None:
    assert longest_gap(executed(stack, at=1)) < USUAL


def test_they_wait_where_the_stack_gives_no_such_sequence() -> None:
    assert longest_gap(executed("ABCAST", at=1)) > USUAL + LATENCY


def test_they_wait_where_messages_are_to_go_to_other_servers() -> None:
    assert longest_gap(executed("ABCAST SAFE", at=2)) > USUAL + LATENCY


def test_a_group_that_a_process_has_joined_and_left_in_one_change_is_as_before() -> None:
    """Taken for another one, it had members told of a view before its mark was delivered."""
    group = GroupEntry("A", 1, "abcast safe", None, True, None, 1, (Member("ann", 1, 1),))
    before = Configuration(1, (Server(1, "s1", "s1:1"),), (group,), 2, 2)
    following = NextConfiguration(before)
    assert following.apply(1, JoinGroup("A", "eve", 2), None) is None
    assert following.apply(1, RemoveClient(2), None) is None
    assert following.finish().group_named["A"] is group
