"""Setups in which real servers once failed, in short; `real_setups.py` runs them for long."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flexgroup.virtual.schedule import Schedule, parse_schedule

from .namespaces import needs_namespaces
from .real_execution import RealExecution, execute_all
from .real_setups import lost_clients, outage, overlap, rejoin
from .real_trial import report

pytestmark = [needs_namespaces, pytest.mark.slow]


def executed(schedules: list[Schedule], folder: Path) -> list[RealExecution]:
    """Executions of the schedules, of which none is bad."""
    done: list[RealExecution] = []
    bad: list[str] = []

    def when_done(schedule: Schedule, execution: RealExecution) -> None:
        done.append(execution)
        if told := report(schedule, execution):
            bad.append(told)

    asyncio.run(execute_all(schedules, folder, 2, when_done))
    assert not bad, "\n\n".join(bad)[:20_000]
    return done


def test_orders_hold_in_groups_that_overlap_while_others_join_and_leave(tmp_path: Path) -> None:
    executed([overlap(stack, 4.0) for stack in ("reliable atomic", "fifo dcc")], tmp_path)


def test_no_client_notices_more_of_an_outage_than_that_it_takes_time(tmp_path: Path) -> None:
    """What was confirmed as safe before and after is there."""
    schedules = [outage("reliable atomic safe", seconds, patience=1.0) for seconds in (0.7, 3.0)]
    for execution in executed(schedules, tmp_path):
        assert lost_clients(execution) == []


def test_a_cluster_of_which_one_server_was_left_comes_back_after_that_was_killed(
    tmp_path: Path,
) -> None:
    """What it had gone on to is on its disk only."""
    executed(
        [
            parse_schedule(
                """
                seed 1
                stack RELIABLE ATOMIC
                servers 2
                patience 0.5
                client c0 0 A
                client c1 1 A
                0.100000 cut 0 1
                0.100000 cut 1 0
                2.000000 kill 0
                2.500000 heal
                3.000000 restart 0
                """
            )
        ],
        tmp_path,
    )


def test_servers_that_were_cut_off_exchange_messages_when_they_are_back(tmp_path: Path) -> None:
    assert len(asyncio.run(rejoin(2, tmp_path, cut_seconds=3.0))) == 2
