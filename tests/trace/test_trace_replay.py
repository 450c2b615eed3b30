"""Replaying a recorded run through the same code agrees, unless the recording was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantee
from flexgroup.protocols.catalogue import PROTOCOLS, parse_stack
from flexgroup.trace.reader import read_run
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario

from .recorded import SCENARIO, event_file, record, replay_again, rows, tamper

Rows = list[dict[str, Any]]


def events(directory: Path, run: str) -> int:
    return sum(len(rows(path)) for path in (directory / "events").glob(f"*/{run}.parquet"))


ALONE = [name for name in PROTOCOLS if Guarantee.LEADER not in PROTOCOLS[name].layer.NEEDS]


@pytest.mark.parametrize("stack", [*ALONE, "dcc/rv", "fifo dcc", "fifo skeen", "leader paxos"])
def test_replay_agrees(tmp_path: Path, stack: str) -> None:
    scenario = replace(SCENARIO, stack=stack)
    if parse_stack(stack).needs_replicas:
        scenario = replace(scenario, workload="random:1", groups="2x2")
    run = record(tmp_path, scenario)
    result = replay_again(tmp_path, read_run(tmp_path, run))
    assert result.divergence is None
    assert result.events == events(tmp_path, run) > 50


@pytest.mark.parametrize("crash", range(50_000, 53_000, 150))
def test_replay_agrees_on_what_a_crash_left_in_stable_storage(tmp_path: Path, crash: int) -> None:
    """Wherever it falls: between what was stored and what was sent, or while it was stored."""
    faults = Faults(crashes=(f"0@{crash}us",), recoveries=("0@60ms",), detection="2ms")
    network = "lan:sync=400us,stored=100ns"
    scenario = Scenario(
        "leader paxos", 3, 3, "random:1", network, 0.07, rate=500.0, faults=faults, groups="1x3"
    )
    run = record(tmp_path, scenario)
    assert replay_again(tmp_path, read_run(tmp_path, run)).divergence is None


@pytest.mark.parametrize(
    "scenario",
    [
        replace(SCENARIO, network="lan:fifo=no"),
        replace(SCENARIO, stack="best-effort", network="lan:loss=0.2,duplication=0.2", rate=5000.0),
        replace(SCENARIO, drain=0.0),
        replace(
            SCENARIO,
            stack="best-effort",
            network="neko",
            duration=0.02,
            rate=2000.0,
            faults=Faults(
                crashes=("0@5ms", "1@7.05ms"),
                recoveries=("1@10ms",),
                partitions=("0,1|2,3@1ms-3ms",),
                suspicions=("2:3@4ms-5ms",),
                detection="1ms",
            ),
        ),
        replace(
            SCENARIO,
            stack="virtual-synchrony",
            duration=0.02,
            rate=2000.0,
            faults=Faults(crashes=("3@5ms",), views=("0,1,2@6ms", "0,1@9ms")),
        ),
    ],
    ids=["reordering", "unreliable", "cut short", "faults", "views"],
)
def test_replay_agrees_whatever_went_wrong(tmp_path: Path, scenario: Scenario) -> None:
    run = record(tmp_path, scenario)
    result = replay_again(tmp_path, read_run(tmp_path, run))
    assert result.divergence is None
    assert result.events == events(tmp_path, run) > 50


def swap_two_deliveries(of_kind: Rows) -> None:
    """The first two of process 0 change places."""
    first, second = [row for row in of_kind if row["process"] == 0][:2]
    for column in ("origin", "seq"):
        first[column], second[column] = second[column], first[column]


def move_a_delivery(of_kind: Rows) -> None:
    of_kind[0]["process"] = 99


def send_to_somebody_else(of_kind: Rows) -> None:
    row = next(row for row in of_kind if row["process"] < 4)
    row["peer"] = (row["peer"] + 1) % 4


def send_another_packet(of_kind: Rows) -> None:
    next(row for row in of_kind if row["process"] < 4)["packet"] = "Start"


def send_more_bytes(of_kind: Rows) -> None:
    next(row for row in of_kind if row["process"] < 4)["header_bytes"] += 1


def receive_what_nobody_sent(of_kind: Rows) -> None:
    of_kind[0]["sent"] = 10_000


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("deliver", swap_two_deliveries, ["process 0 step", "recorded deliver about", "delivers"]),
        ("send", send_to_somebody_else, ["recorded send LocalTs about", "replay sends LocalTs to"]),
        ("send", send_another_packet, ["recorded send Start about", "replay sends LocalTs to"]),
        ("send", send_more_bytes, ["recorded send LocalTs about", "replay sends LocalTs to"]),
        ("receive", receive_what_nobody_sent, ["received a packet that process", "never sent"]),
    ],
)
def test_a_tampered_trace_diverges(
    tmp_path: Path, kind: str, change: Callable[[Rows], None], told: list[str]
) -> None:
    run = record(tmp_path)
    tamper(event_file(tmp_path, kind, run), change)
    result = replay_again(tmp_path, read_run(tmp_path, run))
    assert result.divergence is not None
    for words in told:
        assert words in result.divergence


def last_step_of_all(directory: Path, run: str, process: int) -> int:
    return max(
        int(row["step"])
        for path in (directory / "events").glob(f"*/{run}.parquet")
        for row in rows(path)
        if row["process"] == process
    )


def test_a_delivery_that_was_cut_off_at_the_end_diverges(tmp_path: Path) -> None:
    """The replayed process asks for one thing more than its recorded history holds."""
    run = record(tmp_path)
    delivered = rows(event_file(tmp_path, "deliver", run))
    row = next(
        row for row in delivered if row["step"] == last_step_of_all(tmp_path, run, row["process"])
    )
    tamper(event_file(tmp_path, "deliver", run), lambda of_kind: of_kind.remove(row))
    result = replay_again(tmp_path, read_run(tmp_path, run))
    assert result.divergence is not None
    assert f"process {row['process']}" in result.divergence


def test_a_history_with_a_gap_cannot_be_replayed(tmp_path: Path) -> None:
    run = record(tmp_path)
    tamper(event_file(tmp_path, "deliver", run), lambda of_kind: of_kind.pop(0))
    with pytest.raises(UsageError, match=r"is not whole at step \d+; replay needs every event"):
        replay_again(tmp_path, read_run(tmp_path, run))


def test_the_code_must_be_the_same(tmp_path: Path) -> None:
    """A run of Skeen's algorithm, replayed with D&F, diverges at the first packet."""
    run = read_run(tmp_path, record(tmp_path))
    result = replay_again(tmp_path, replace(run, stack="df"))
    assert result.divergence is not None
    assert "recorded send Start" in result.divergence
    assert "replay sends Forward" in result.divergence
