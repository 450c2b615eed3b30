"""Replicas stop where they are when somebody destroys their groups: how the trace tells what was
under way then from what is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flexgroup.core.journal import Transmission
from flexgroup.core.message import Message, message_id
from flexgroup.properties.catalogue import check
from flexgroup.protocols.best_effort import Data
from flexgroup.server.recording.handoff import RunBegan, RunEnded
from flexgroup.server.recording.trace_writer import LATE_SECONDS, ServerTraceWriter
from flexgroup.trace.reader import load_history
from flexgroup.trace.recorder import Recorder
from flexgroup.trace.run import Run

from .test_trace_writer import DESCRIPTION, EVERYBODY, RUN, Rows, listed, traces

__all__ = ["traces"]

ALL = (0, 1, 2)
REPLICAS = replace(DESCRIPTION, groups="[[0,1,2]]", promises=("validity",))
ORDINARY = replace(REPLICAS, groups='{"chat":[0,1,2]}')


def part(process: int, receiving: tuple[int, ...], delivering: tuple[int, ...]) -> Rows:
    """What a process records, of which the first sends a message to all."""
    rows = Rows()
    recorder = Recorder(rows)
    m = Message(message_id(0, 0), ALL, b"")
    packet = Transmission(Data(m))
    step = 0
    if process == 0:
        recorder.multicast(0, 0, 0, m)
        for target in ALL:
            recorder.send(0, 1 + target, 0, target, packet)
        step = 4
    if process in receiving:
        recorder.receive(process, step, 0, 0, packet, 1 + process, 0)
        step += 1
    if process in delivering:
        recorder.deliver(process, step, 0, m, 1)
    recorder.flush()
    return rows


def ended(
    traces: Path,
    receiving: tuple[int, ...],
    delivering: tuple[int, ...],
    described: Run = REPLICAS,
    servers: tuple[str, ...] = EVERYBODY,
) -> Run:
    """The row of the run, which ends while all servers are there. These write into this folder."""
    for server in servers:
        writer = ServerTraceWriter(traces, server)
        writer.take(RunBegan(described, EVERYBODY), now=0)
        for handed in part(EVERYBODY.index(server), receiving, delivering).handed:
            writer.take(handed, now=0)
        writer.take(RunEnded(RUN, ()), now=0)
        writer.write_what_is_due(LATE_SECONDS if server == servers[-1] else 0)
    run = listed(traces)
    assert run is not None
    return run


def validity(traces: Path, run: Run) -> str:
    (verdict,) = check(load_history(traces, run), run.promised)
    return verdict.outcome.value


@pytest.mark.parametrize(
    ("receiving", "delivering"), [((0, 1), (0, 1)), ((0,), ()), ((), ()), ((1, 2), (1,))]
)
def test_a_run_that_was_destroyed_with_a_message_under_way_is_cut(
    receiving: tuple[int, ...], delivering: tuple[int, ...], traces: Path
) -> None:
    """That somebody lacks the message breaks nothing: it might still have come."""
    run = ended(traces, receiving, delivering)
    assert (run.outcome, run.lost) == ("cut", None)
    assert validity(traces, run) == "unknown"


def test_a_run_that_was_destroyed_at_rest_is_complete(traces: Path) -> None:
    run = ended(traces, ALL, ALL)
    assert run.outcome == "complete"
    assert validity(traces, run) == "holds"


def test_a_message_that_everybody_has_is_not_under_way(traces: Path) -> None:
    """Whatever packets there are, such as those that only confirm."""
    assert ended(traces, (0,), ALL).outcome == "complete"


def test_a_message_that_is_lost_is_not_under_way(traces: Path) -> None:
    """All packets have come, and still somebody did not deliver it."""
    run = ended(traces, ALL, (0, 1))
    assert run.outcome == "complete"
    assert validity(traces, run) == "violated"


def test_of_servers_with_folders_of_their_own_nobody_knows_what_others_lack(traces: Path) -> None:
    assert ended(traces, ALL, ALL, servers=("s1",)).outcome == "complete"


def test_at_a_change_what_is_under_way_comes_to_its_end(traces: Path) -> None:
    """So what an ordinary domain lacks is lost."""
    assert ended(traces, (0, 1), (0, 1), ORDINARY).outcome == "complete"
