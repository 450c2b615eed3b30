"""Whole servers that keep data: however many are killed, the cluster is not lost."""

from __future__ import annotations

import pytest

from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Load, Schedule, draw_schedule, parse_schedule

from .kept_cluster import KeptCluster

KILLS = Load(servers=(2, 3, 4), messages=60, faults=5, kinds=("kill",), data=True)
ANYTHING = Load(
    servers=(2, 3, 4),
    messages=60,
    faults=5,
    kinds=("kill", "kill", "stop", "cut", "part", "outage", "slow", "forgetful"),
    data=True,
)

ALL_KILLED = """
seed 3
stack RELIABLE ATOMIC
servers 3
latency 0.0002 0.001 0.0
patience 1.0
data yes
client c0 0 A
client c1 1 A
client c2 2 A
0.1 send c0 A
0.5 kill 0
0.5 kill 1
0.5 kill 2
3.0 restart 2
3.1 restart 1
3.2 restart 0
"""

STARTED_AGAIN_AT_ONCE = """
seed 20126
stack RELIABLE
servers 2
latency 0.0005 0.005 0.0
patience 1.0
partitionable yes
3.579968 kill 0
3.580000 restart 0
"""

GIVES_UP = """
# waited 60 s in vain for all servers to be in one configuration again
# waited 60 s in vain for all clients to be back in their groups
seed 200096
stack reliable causal
servers 3
latency 0.0005 0.005 0.0
patience 0.5
pack 1
client c0 0 A B C
client c2 2 B
client c3 0 A B
client c4 1 A B C
client c5 2 B
0.068184 send c3 B
0.089231 send c4 A B C
0.092443 send c5 B
0.147986 join c5 own-c5
0.234743 send c2 B
0.235228 send c4 C
0.292227 send c0 A C
0.306836 leave c2 B
0.314170 send c5 B
0.497070 send c3 A B
0.538309 send c3 A B
0.556532 send c3 A
0.574025 send c0 A
0.609602 leave c5 own-c5
0.617357 send c3 A B
0.874318 cut 0 2
0.874318 cut 2 0
0.879253 send c3 A B
1.045629 heal
1.077100 send c0 A
1.144324 join c2 B
1.578235 send c4 A B
1.742892 send c0 A
1.774435 send c5 B
2.128962 send c3 A B
2.155232 join c5 own-c5
2.158537 cut 0 2
2.237547 send c0 C
2.244079 send c5 B
2.728860 send c2 B
3.238090 heal
3.418179 kill 1
"""
"""Server 1 is killed while it admits server 2, which gives up; but server 0 goes on with it."""


def report(schedule: Schedule) -> str:
    """Everything that is wrong, and the schedule that shows it; empty if nothing is."""
    execution = Execution(schedule)
    execution.run()
    found = problems(execution)
    return "\n".join([*map(str, found[:10]), str(schedule)]) if found else ""


def test_a_cluster_of_which_all_were_killed_comes_back() -> None:
    assert report(parse_schedule(ALL_KILLED)) == ""


def test_a_schedule_with_data_is_read_again_as_it_was_printed() -> None:
    schedule = draw_schedule(1, "RELIABLE ATOMIC", ANYTHING)
    assert parse_schedule(str(schedule)) == schedule


@pytest.mark.parametrize("stack", ["RELIABLE ATOMIC", "CAUSAL-RST", "RELIABLE FIFO"])
def test_kills_of_any_number_of_servers(stack: str) -> None:
    for seed in range(6):
        assert report(draw_schedule(seed, stack, KILLS)) == ""


def test_kills_with_cuts_stops_and_disks_that_cannot_be_written() -> None:
    for seed in range(12):
        assert report(draw_schedule(seed, "RELIABLE ATOMIC", ANYTHING)) == ""


def test_two_of_three_come_back_that_have_just_come_together() -> None:
    """One of them was admitted last, and nothing has changed since."""
    cluster = KeptCluster()
    cluster.kill(0, 1, 2)
    cluster.restart(1, 2)
    cluster.wait_for_servers(1, 2)
    cluster.end()


def test_the_younger_of_two_goes_on_when_the_older_leaves_it_in_good_order() -> None:
    """It would have to wait for the older one to come back, had it not got what that said last."""
    for seed in range(5):
        cluster = KeptCluster(servers=2, seed=seed)
        cluster.stop(0)
        cluster.wait_for_servers(1)
        cluster.end()


def test_the_younger_of_two_goes_on_though_the_older_is_started_again_at_once() -> None:
    """Its machine never refuses a connection; but who answers there does not know its number."""
    execution = Execution(parse_schedule(STARTED_AGAIN_AT_ONCE))
    execution.run()
    for one in execution.servers:
        assert one.server is not None
        configuration = one.server.membership.machine.configuration
        assert configuration is not None
        assert [server.number for server in configuration.servers] == [2, 3]


def test_who_has_given_up_joining_is_not_waited_for() -> None:
    """The oldest was left with a dead server and a newcomer that never began, for ever."""
    assert report(parse_schedule(GIVES_UP)) == ""


def test_a_server_that_joined_as_another_one_still_counts_its_lives() -> None:
    """Clients of a life are not to be taken for those of an earlier one."""
    cluster = KeptCluster()
    for lives in (1, 2):
        cluster.kill(2)
        cluster.wait_for_servers(0, 1)
        cluster.restart(2)
        cluster.wait_for_servers(0, 1, 2)
        server = cluster.servers[2].server
        assert server is not None
        assert server.membership.machine.life == lives
    cluster.end()


def test_who_comes_back_has_not_ended_its_domains_with_the_others() -> None:
    """In what is recorded, it is one that failed: it delivered something that nobody else did."""
    load = Load(servers=(3,), messages=100, seconds=1.0, changes=10, faults=3, data=True)
    assert report(draw_schedule(9064, "RELIABLE ATOMIC", load)) == ""
