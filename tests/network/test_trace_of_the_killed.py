"""The trace of a cluster whose servers are all killed at once: what it tells holds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flexgroup import connect
from flexgroup.core.errors import FlexGroupError
from flexgroup.properties.catalogue import check
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.run import Run
from flexgroup.trace.validate.report import validate

from .agreement import agree, servers_are
from .servers import LAST_RESORT, Cluster
from .test_coming_back import NAMES, KeptCluster
from .test_replicas_of_real_servers import STACK, Member, came_back


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


def is_whole(traces: Path) -> bool:
    """Whether the run is listed by those who ended it: whoever was killed may have listed it, too,
    as what it was then."""
    with contextlib.suppress(FlexGroupError, OSError):
        return [run.complete for run in read_runs(traces)] == [True]
    return False


def test_replicas_that_are_killed_go_on_with_their_trace(tmp_path: Path) -> None:
    """All of them, in the middle of the traffic: nothing is missing, nothing is there twice, and no
    packet comes from nowhere."""
    traces = tmp_path / "traces"
    cluster = KeptCluster(tmp_path, "--trace", str(traces))

    async def send_until_killed(member: Member) -> None:
        with contextlib.suppress(FlexGroupError):
            while True:
                await member.send(b"")

    async def begin() -> None:
        async with await connect(cluster.servers["s1"].address) as link:
            await link.create_replicated(STACK, {"a": NAMES})
        members = [Member(cluster, name) for name in NAMES]
        for member in members:
            await member.join()
        sending = [asyncio.create_task(send_until_killed(member)) for member in members]
        await members[0].has_seen(100)
        for server in cluster.servers.values():
            server.process.kill()
        await asyncio.gather(*sending)

    async def go_on() -> None:
        everybody = list(cluster.servers.values())
        await agree(everybody, servers_are(*NAMES), "all three are back")
        member = Member(cluster, "s3")
        await member.join()
        await member.send(b"last")
        number = member.seen[-1][0]
        for name in NAMES:
            await came_back(cluster, name, number)
        await member.group.destroy()
        await member.link.close()

    try:
        asyncio.run(begin())
        cluster.kill_all()
        for name in NAMES:
            cluster.start(name)
        asyncio.run(go_on())
        end = time.monotonic() + LAST_RESORT
        while time.monotonic() < end and not is_whole(traces):
            time.sleep(0.05)
        (run,) = read_runs(traces)
    finally:
        cluster.end()
    history = load_history(traces, run)
    assert run.complete
    assert set(history.crashes.process) == set(history.recoveries.process) == {0, 1, 2}
    delivered = [int((history.deliveries.process == process).sum()) for process in range(3)]
    assert len(set(delivered)) == 1
    assert {verdict.outcome.value for verdict in check(history, run.promised)} == {"holds"}
    verified = subprocess.run(
        [sys.executable, "-m", "flexgroup.cli.main", "verify", str(traces)],
        capture_output=True, text=True, timeout=LAST_RESORT, check=False,
    )  # fmt: skip
    assert verified.returncode == 0, verified.stdout + verified.stderr
    findings = validate(traces)
    assert (findings.errors, findings.warnings) == (0, 0), list(map(str, findings.problems))
