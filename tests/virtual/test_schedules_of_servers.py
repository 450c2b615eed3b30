"""Whole servers and clients under schedules of load, changes and faults, each fixed by a seed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.membership import flush, machine
from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Load, draw_schedule, parse_schedule

TOTAL_ORDERS = ["RELIABLE ATOMIC", "SKEEN", "FIFO DCC", "DF"]
STACKS = [*TOTAL_ORDERS, "CAUSAL-RST", "RELIABLE CAUSAL", "RELIABLE FIFO"]
CHANGES = Load(messages=150, seconds=0.5, changes=12)
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
    return "\n".join([*found[:10], str(schedule)]) if found else ""


@pytest.mark.parametrize("stack", STACKS)
def test_orders_hold_over_changes_where_groups_overlap(stack: str) -> None:
    for seed in range(12):
        assert report(seed, stack, CHANGES) == ""


@pytest.mark.parametrize("stack", STACKS)
def test_servers_come_back_from_crashes_stops_cuts_and_outages(stack: str) -> None:
    for seed in range(12):
        assert report(seed, stack, FAULTS) == ""


def test_a_flush_that_puts_what_nobody_delivered_last_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it was: a server outside of its destinations may have delivered something later."""

    def in_order_of_reports(precedence: flush.Precedence) -> list[flush.Unstable]:
        return [message for message in precedence.messages if message is not None]

    monkeypatch.setattr(flush.Precedence, "linear_extension", in_order_of_reports)
    assert any(
        "order is violated" in report(seed, "RELIABLE ATOMIC", CHANGES) for seed in range(20)
    )


def test_servers_that_end_when_they_hear_too_few_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it was: an outage of all links for long enough ended every server."""
    monkeypatch.setattr(
        machine.Membership, "_stand_still", lambda self: self._exclude("too few are heard")
    )
    assert any("in vain" in report(seed, "SKEEN", FAULTS) for seed in range(12))


def test_an_execution_is_the_same_whenever_it_is_repeated() -> None:
    """Also in another process, whose sets are in another order."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
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
    ],
)
def test_a_line_that_is_wrong_is_named(line: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_schedule(f"stack SKEEN\n{line}\n")


def test_a_schedule_has_a_stack() -> None:
    with pytest.raises(UsageError, match="names no stack"):
        parse_schedule("servers 3\n")
