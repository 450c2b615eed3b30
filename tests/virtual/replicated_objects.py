"""Schedules of replicas in virtual time, whose servers fail in the midst of calls.

The object is a list, to which calls append; each returns where it has put what it was given. So the
list tells the order of all calls, and what each has returned whether it was there in time: a call
that began when another had returned comes after it, and each call is there once, or was reported
to be of unknown outcome.

If all replicas lose their servers at once, or are cut off, the first one that comes back goes on
with what it has; of what the others may have had besides, nothing is said then.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

from flexgroup import FlexGroupError, Replica, errors, ordered
from flexgroup.replica.membership import member_of

from .kept_cluster import KeptCluster

GROUP = "journal"


class Journal(Replica):
    """Remembers everything that was ever written, and who came and went between."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.comings: list[str] = []

    @ordered
    def write(self, line: str) -> int:
        self.lines.append(line)
        return len(self.lines) - 1

    def joined(self, member: str) -> None:
        self.comings.append(f"{len(self.lines)} +{member}")

    def left(self, member: str) -> None:
        self.comings.append(f"{len(self.lines)} -{member}")


@dataclass
class Written:
    line: str
    begun: float
    ended: float | None = None
    place: int | None = None
    is_unknown: bool = False


@dataclass
class Writer:
    """A process with a replica: joins, writes again and again, and stays."""

    name: str
    addresses: list[str]
    journal: Journal = field(default_factory=Journal)
    calls: list[Written] = field(default_factory=list)
    ended_by: FlexGroupError | None = None

    async def work(self, cluster: KeptCluster, random: Random, until: float) -> None:
        now = cluster.execution.now
        await asyncio.sleep(random.uniform(0, 1))
        try:
            await self.journal.join(GROUP, self.addresses, name=self.name, timeout=60)
            while now() < until:
                at_once = random.randint(1, 3)
                await asyncio.gather(*(self.write(now) for _ in range(at_once)))
                await asyncio.sleep(random.expovariate(20))
        except FlexGroupError as error:
            self.ended_by = error

    async def write(self, now: object) -> None:
        assert callable(now)
        call = Written(f"{self.name} {len(self.calls)}", now())
        self.calls.append(call)
        try:
            call.place = await self.journal.write(call.line)
        except errors.OutcomeUnknown:
            call.is_unknown = True
        call.ended = now()


def run(seed: int, seconds: float = 6.0) -> list[str]:
    """Run a schedule, and return what is wrong with it."""
    random = Random(seed)
    cluster = KeptCluster(servers=3, seed=seed)
    addresses = cluster.execution.addresses
    begun = cluster.execution.now()
    writers = []
    for number in range(random.randint(2, 4)):
        order = [addresses[(number + i) % 3] for i in range(3)]
        writer = Writer(f"w{number}", order)
        process = cluster.execution.process(f"m{number % 3}", writer.name)
        process.create_task(
            writer.work(cluster, Random(f"{seed} {number}"), begun + seconds),
        )
        writers.append(writer)
    at = 0.0
    while (at := at + random.uniform(0.3, 1.5)) < seconds:
        cluster.pass_time(begun + at - cluster.execution.now())
        server = random.choice(cluster.servers)
        others = [other for other in cluster.servers if other is not server]
        if not all(other.is_running for other in cluster.servers):
            for other in cluster.servers:
                if not other.is_running:
                    cluster.execution._restart(other)
        elif random.random() < 0.7:
            assert server.loop is not None
            cluster.execution._kill(server, server.loop)
        else:
            for other in others:
                cluster.execution.network.cut(server.machine, other.machine)
                cluster.execution.network.cut(other.machine, server.machine)
            cluster.pass_time(random.uniform(0.2, 2.5))
            cluster.execution.network.heal()
    for server in cluster.servers:
        if not server.is_running:
            cluster.execution._restart(server)
    cluster.pass_time(max(0.0, begun + seconds - cluster.execution.now()) + 20)
    problems = problems_of(writers)
    for process in cluster.execution.processes:
        process.end()
        problems += [f"{process.machine}: nobody caught {error}" for error in process.errors]
    return problems


def problems_of(writers: list[Writer]) -> list[str]:
    problems = [f"{w.name} ended: {w.ended_by!r}" for w in writers if w.ended_by is not None]
    first = writers[0].journal
    for writer in writers:
        if writer.journal.lines != first.lines or writer.journal.comings != first.comings:
            problems.append(f"{writer.name} has another journal than {writers[0].name}")
    calls = [call for writer in writers for call in writer.calls]
    unanswered = [f"{call.line} never returned" for call in calls if call.ended is None]
    problems += unanswered
    if sum(member_of(writer.journal).machine.times_begun for writer in writers) > 1:
        return problems  # they had all lost their servers at some time
    times = {line: first.lines.count(line) for line in first.lines}
    problems += [f"{line} is there {n} times" for line, n in times.items() if n > 1]
    for call in calls:
        if call.place is not None and first.lines[call.place : call.place + 1] != [call.line]:
            problems.append(f"{call.line} returned {call.place}, where there is another line")
    placed = sorted((c for c in calls if c.place is not None), key=lambda c: c.place or 0)
    latest = 0.0
    for call in placed:
        assert call.ended is not None
        if call.ended < latest:
            problems.append(f"{call.line} returned before a call began that comes before it")
        latest = max(latest, call.begun)
    return problems
