"""Whole servers and clients under schedules of load, changes and faults, each fixed by a seed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Load, draw_schedule, parse_schedule

FAULTS = Load(messages=100, faults=2)

DIGEST = """
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Load, draw_schedule
execution = Execution(draw_schedule(11, "RELIABLE ATOMIC", Load(faults=2)))
execution.run()
print(execution.digest())
"""


def report(seed: int, stack: str, load: Load) -> str:
    """Everything that is wrong, and the schedule that shows it; empty if nothing is."""
    schedule = draw_schedule(seed, stack, load)
    execution = Execution(schedule)
    execution.run()
    found = problems(execution)
    return "\n".join([*map(str, found[:10]), str(schedule)]) if found else ""


def test_a_client_behind_a_cut_of_its_server_is_waited_for() -> None:
    """It has moved to a server of another machine, and that one is slow to send again what the
    second cut has swallowed."""
    execution = Execution(
        parse_schedule(
            """
            seed 20
            stack RELIABLE FIFO
            servers 3
            latency 0.0002 0.001 0.02
            patience 2.0
            client c2 2 B
            client c5 1 B
            0.609808 cut 1 2
            4.174395 heal
            7.293035 cut 0 2
            7.293035 cut 2 1
            7.293035 cut 1 2
            7.326773 send c5 B
            7.438474 send c2 B
            10.967267 heal
            """
        )
    )
    execution.run()
    assert problems(execution) == []


def test_what_an_excluded_server_sent_follows_what_it_had_delivered() -> None:
    """Server 2 has delivered what bob sent when it multicasts the last message, and is excluded.
    Server 0 lacks both; and server 1 has delivered between the two what server 0 has sent."""
    execution = Execution(
        parse_schedule(
            """
            seed 17
            stack causal-rst
            servers 3
            latency 0.0002 0.001 0.0
            patience 1.0
            pack 256
            client ann 0 A B
            client bob 1 A B
            client eve 2 A B
            0.300000 cut 2 0
            1.507568 send eve B
            1.543402 send bob A
            1.576324 send eve A B
            """
        )
    )
    execution.run()
    assert problems(execution) == []


def test_what_is_sent_to_a_lost_cluster_need_not_be_given() -> None:
    """Two of three servers are killed, which the third does not see, and remember nothing when
    they start again: it may not go on without them, and they do not know of it."""
    execution = Execution(
        parse_schedule(
            """
            seed 1
            stack ALL2ALL-ATOMIC
            servers 3
            latency 0.0002 0.002
            patience 0.5
            client ann 1 B
            client bob 1 B
            0.100000 send bob B
            0.200000 cut 0 1
            0.200000 cut 2 1
            0.300000 kill 0
            0.300000 kill 2
            0.400000 restart 0
            0.400000 restart 2
            0.600000 send ann B
            0.700000 heal
            """
        )
    )
    execution.run()
    assert execution.is_lost
    assert execution.clients["ann"].lives[0].given() == {"bob.0:0"}
    assert not problems(execution)


def test_an_execution_is_the_same_whenever_it_is_repeated() -> None:
    """Also in another process, whose sets are in another order, and in the pure form."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env=os.environ | {"PYTHONHASHSEED": seed} | form,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, form in (("0", {}), ("1", {}), ("2", {"FLEXGROUP_PURE": "1"}))
    }
    assert len(digests) == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_schedule_is_read_as_it_was_printed(seed: int) -> None:
    schedule = draw_schedule(seed, "RELIABLE ATOMIC", FAULTS)
    assert parse_schedule(f"# a comment\n\n{schedule}") == schedule


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1.5 explode 3", "line 2 of the schedule is '1.5 explode 3'"),
        ("soon kill 3", "line 2"),
        ("servers many", "line 2"),
        ("servers 0", "at least one server"),
        ("1.5 slow 0 0", "slow takes SERVER SERVER SECONDS"),
        ("1.5 slow 0 0 x", "x is no number of seconds"),
        ("1.5 kill", "kill takes SERVER"),
        ("1.5 kill 1", "servers are numbered from 0 to 0"),
        ("1.5 confirm b A", "there is no client b"),
        ("1.5 disk 0 melts", "a disk sticks or fails"),
        ("nan heal", "nan is no number of seconds"),
        ("inf heal", "inf is no number of seconds"),
        ("-5 heal", "-5 is no number of seconds"),
        ("latency nan 0.1", "a latency of nan"),
        ("latency 0.1 -1", "a latency of 0.1 -1"),
        ("client a 0 A\nclient a 0 B", "there is another client a"),
        ("keep 10", "cannot be kept"),
        ("stack skeen causal", "does not keep what"),
        ("stack skeen safe\npartitionable yes", "cannot be partitionable"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_schedule(f"stack SKEEN\n{line}\n")


def test_a_schedule_has_a_stack() -> None:
    with pytest.raises(UsageError, match="names no stack"):
        parse_schedule("servers 3\n")
