"""A server whose trace cannot be written as fast as messages come does not grow: it slows down."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from flexgroup import Group, connect
from flexgroup.server.recording.handoff import Pipe
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Limits
from flexgroup.trace.reader import read_events, read_runs

from ..client.loops import on_a_loop
from .in_process import servers

UNWRITTEN = 1 << 16
LAST = b"the last"
LIMITS = Limits(unwritten_bytes=UNWRITTEN, under_way=50, pack=1, sends=100)


@on_a_loop
async def test_senders_wait_while_the_process_that_writes_stands_still(tmp_path: Path) -> None:
    async with (
        servers(2, LIMITS, trace=tmp_path) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
    ):
        group = await a.join("g", "reliable atomic", own=False)
        member = await b.join("g")
        assert second.trace is not None
        handoff = second.trace.handoff
        assert isinstance(handoff, Pipe)
        os.kill(handoff.writer.pid, signal.SIGSTOP)
        try:
            sending = asyncio.create_task(send_for_ever(group))
            receiving = asyncio.create_task(receive(member))
            await one_holds_the_other_up(second, first)
            behind = handoff.waiting_bytes
            sending.cancel()
        finally:
            os.kill(handoff.writer.pid, signal.SIGCONT)
        await group.send(LAST)
        received = await receiving
    assert UNWRITTEN < behind < 10 * UNWRITTEN
    assert deliveries_at(1, tmp_path) == received


async def send_for_ever(group: Group[bytes]) -> None:
    while True:
        await group.send(b"some")


async def receive(group: Group[bytes]) -> int:
    """How many, up to the last."""
    received = 0
    async for message in group:
        received += 1
        if message.body == LAST:
            break
    return received


async def one_holds_the_other_up(one: GroupServer, other: GroupServer) -> None:
    groups = list(one.deployment.domain_of)
    while not (one.backpressure.held_up(groups) and other.intake.is_holding):
        await asyncio.sleep(0.01)


def deliveries_at(process: int, traces: Path) -> int:
    return sum(
        read_events(traces, run.run, "deliver")["process"].to_pylist().count(process)
        for run in read_runs(traces)
    )
