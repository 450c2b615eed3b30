"""The trace of a cluster whose servers are all killed at once: what it tells holds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from pathlib import Path

import pytest

from flexgroup import connect
from flexgroup.core.errors import FlexGroupError
from flexgroup.properties.catalogue import check
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.run import Run

from .servers import LAST_RESORT, Cluster


async def send_until_killed(cluster: Cluster, traces: Path, stack: str, names: str) -> None:
    links = [
        await connect(address, name=name)
        for address, name in zip(cluster.addresses, names, strict=False)
    ]
    groups = [await link.join("g", stack) for link in links]

    async def send(sender: int) -> None:
        with contextlib.suppress(FlexGroupError):
            while True:
                await groups[sender].send(b"")
                await groups[sender].receive()

    sending = [asyncio.create_task(send(sender)) for sender in range(len(groups))]
    async with asyncio.timeout(LAST_RESORT):
        while not list((traces / "events").glob("event=deliver/*")):
            await asyncio.sleep(0.05)
        for server in cluster.servers:
            server.process.kill()
        await asyncio.gather(*sending)
    for link in links:
        with contextlib.suppress(FlexGroupError):
            await link.close()


def the_last_run(traces: Path, members: str) -> Run:
    """When it is listed: the processes that write are still at it for a moment."""
    end = time.monotonic() + LAST_RESORT
    while time.monotonic() < end:
        listed = read_runs(traces) if list((traces / "runs").glob("[!_]*.parquet")) else []
        for run in listed:
            if json.loads(run.lost or "[]") == list(range(len(members))):
                return run
        time.sleep(0.05)
    raise AssertionError("the run was never listed")


@pytest.mark.parametrize(
    ("stack", "members", "order"),
    [("RELIABLE ATOMIC", "abc", "acyclic order"), ("FIFO", "ab", "fifo order")],
)
def test_all_servers_are_killed_and_what_they_had_written_is_judged(
    stack: str, members: str, order: str, tmp_path: Path
) -> None:
    """Only those have a part in it that have members."""
    traces = tmp_path / "traces"
    with Cluster(tmp_path, 3, "--trace", str(traces)) as cluster:
        asyncio.run(send_until_killed(cluster, traces, stack, members))
    run = the_last_run(traces, members)
    history = load_history(traces, run)
    assert len(history.deliveries.process) > 0
    promised = run.promised
    outcome_of = {verdict.property: verdict.outcome.value for verdict in check(history, promised)}
    assert set(outcome_of.values()) <= {"holds", "unknown"}
    assert outcome_of[order] == "holds"
