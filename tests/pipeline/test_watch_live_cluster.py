"""Watching the trace set of a live cluster: real servers, one of which is killed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup import connect
from flexgroup.cli.watch import follow
from flexgroup.client.group import Group
from flexgroup.core.errors import FlexGroupError
from flexgroup.pipeline.reading.trace_set import open_trace_set
from flexgroup.pipeline.verify.verify import verify
from flexgroup.pipeline.watch.stream import TraceSetWatch
from flexgroup.pipeline.watch.watched_run import BatchReport
from flexgroup.properties.catalogue import check
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.run import Run

from ..network.agreement import agree, servers_are
from ..network.servers import LAST_RESORT, Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]

STACK = "RELIABLE FIFO"
"""Orders the messages of each sender, and nothing else."""

PROPERTIES = ("integrity", "fifo order", "acyclic order")

Outcomes = dict[tuple[str, str], tuple[str, int]]
"""Of each run and property, the outcome and how many violations."""


class Chatter:
    """Members at all servers that talk at the same time, in a thread of their own.

    First with three servers, until told to go on; then one of them is killed in the middle of it,
    and the others talk on for a while in the next configuration.
    """

    def __init__(self, folder: Path) -> None:
        self.traces = folder / "traces"
        self.traces.mkdir()
        self.goes_on = threading.Event()
        self.is_over = threading.Event()
        self.cluster = Cluster(folder, 3, "--patience", "1", "--trace", str(self.traces))
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Chatter:
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.goes_on.set()
        self._thread.join()
        self.cluster.end()

    def _run(self) -> None:
        try:
            asyncio.run(self._play())
            self.cluster.stop()
        finally:
            self.is_over.set()

    async def _play(self) -> None:
        cluster = self.cluster
        links = [
            await connect(address, name=name)
            for address, name in zip(cluster.addresses, ("ann", "bob", "cid"), strict=True)
        ]
        groups = [await link.join("g", STACK) for link in links]
        talk = [
            asyncio.ensure_future(doing(group)) for group in groups for doing in (_speak, _listen)
        ]
        while not self.goes_on.is_set():
            await asyncio.sleep(0.05)
        before = self._runs_with_deliveries()
        cluster.servers[2].kill()
        await agree(cluster.servers[:2], servers_are("s1", "s2"), "s3 is out")
        async with asyncio.timeout(LAST_RESORT):
            while self._runs_with_deliveries() == before:
                await asyncio.sleep(0.05)
        for task in talk:
            task.cancel()
        for link in links:
            with contextlib.suppress(FlexGroupError):
                await link.close()

    def _runs_with_deliveries(self) -> set[str]:
        """Those of which the first server has written anything."""
        parts = (self.traces / "events/event=deliver").glob("*@s1-*")
        return {part.name.partition("@")[0] for part in parts}


async def _speak(group: Group[bytes]) -> None:
    with contextlib.suppress(FlexGroupError):
        while True:
            await asyncio.gather(*(group.send(b"hello") for _ in range(3)))
            await asyncio.sleep(0.02)


async def _listen(group: Group[bytes]) -> None:
    with contextlib.suppress(FlexGroupError):
        while True:
            await group.receive(LAST_RESORT)


@dataclass
class Seen:
    """What was told about a cluster, and when."""

    while_it_ran: list[str]
    over: Outcomes
    traces: Path
    runs: list[Run]


@pytest.fixture(scope="module")
def seen(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("live")
    while_it_ran: list[str] = []
    over: Outcomes = {}
    with Chatter(folder) as chatter:

        def tell(run: str, notes: BatchReport) -> None:
            assert not notes.refused
            names = [str(row["property"]) for row in notes.violations]
            if not chatter.goes_on.is_set():
                while_it_ran.extend(names)
            if "acyclic order" in names:
                chatter.goes_on.set()
            for row in notes.final:
                told = str(row["outcome"]), int(str(row["violations"]))
                over[run, str(row["property"])] = told

        watch = TraceSetWatch(spark, str(chatter.traces), str(folder / "watched"), tell, PROPERTIES)
        deadline = time.monotonic() + 3 * LAST_RESORT

        def is_enough() -> bool:
            assert time.monotonic() < deadline, (while_it_ran, over, chatter.cluster.logs()[-3000:])
            return chatter.is_over.is_set() and watch.unfinished == 0

        with watch.plain_errors():
            follow(watch, once=False, until_finished=False, stopping=is_enough)
    return Seen(while_it_ran, over, chatter.traces, read_runs(chatter.traces))


def test_violations_are_told_while_the_cluster_runs(seen: Seen) -> None:
    assert "acyclic order" in seen.while_it_ran


def test_the_run_of_a_killed_server_is_cut_and_tells_whose_events_are_lost(seen: Seen) -> None:
    first, second = seen.runs[-2:]
    assert (first.processes, first.outcome, first.lost) == (3, "cut", "[2]")
    assert (second.processes, second.lost) == (2, None)


def test_watching_and_checking_afterwards_agree(seen: Seen, spark: SparkSession) -> None:
    by_spark: Outcomes = {
        (row.run, row.property): (row.outcome, row.violations)
        for row in verify(open_trace_set(spark, str(seen.traces)), PROPERTIES).collect()
    }
    plainly: Outcomes = {
        (run.run, verdict.property): (verdict.outcome.value, verdict.violations)
        for run in seen.runs
        for verdict in check(load_history(seen.traces, run), PROPERTIES)
    }
    assert seen.over == by_spark == plainly


def test_messages_whose_multicast_was_lost_with_the_server_violate_nothing(seen: Seen) -> None:
    outcomes = {
        run: outcome for (run, name), (outcome, _) in seen.over.items() if name == "integrity"
    }
    first, second = seen.runs[-2:]
    assert outcomes[first.run] in ("holds", "unknown")
    assert outcomes[second.run] == "holds"
