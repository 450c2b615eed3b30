"""How long groups stand still when a server fails, and when others join, with default settings.

    python -m benchmarks.availability [--stacks 'RELIABLE ATOMIC,ABCAST'] [--rounds 3] [--only kill]
        [--before 40] [--json]
    python -m benchmarks.availability --replicated 'LEADER PAXOS,LEADER WHITE-BOX' [--rounds 3]
        [--before 1.5] [--json | --csv FILE]

Needs root and iproute2. Each server is a process in a network namespace of its own, with one member
of a group; every member sends a message every 5 ms. The gap is the longest time for which a member
that survives was given nothing, from a second before the fault until all go on. `nothing` is what
the same load shows without any fault: gaps of that size are the machine's own. The servers are
numbered by age; the oldest, 0, leads changes. After half a minute without a pause servers have less
patience with each other, so `--before` says how long the load runs before the fault.

The last lines tell of joins: how long a group waits while a client joins and leaves another one of
the same stack, and what a join costs among few groups and among many.

With `--replicated` there is a group of five replicas, of which servers are killed: the leader, one
that follows, both at once. The gap is counted from the kill on, as the detection is, and members
send every millisecond, so that waiting for somebody to send is no part of it. Beside each gap
stands how long it took the replica that leads next to suspect who was killed, as its trace tells,
and a round trip: of a request to a server, under the same load. More than the first and ten times
the second would be the stack's own doing, or ours. Every round has one of each, and one in which
nothing fails. With `--csv`, the table that the experiment `tolerance` shows if it lies beside its
page (`runs/tolerance/elsewhere.csv`).
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from time import monotonic, time_ns

import pyarrow.parquet as pq
from tests.network.namespaces import Hosts, can_make_namespaces, run_until_terminated
from tests.network.servers import ServerProcess

from flexgroup import Group, Link, Listener, Message, connect
from flexgroup.core.errors import FlexGroupError
from flexgroup.core.journal import SUSPECTED

SERVERS = 4
PAUSE = 0.005
"""Seconds between two messages of a member."""
PAUSE_OF_REPLICAS = 0.001
PATIENCE = 2.0
"""The default of servers."""


class Arrivals(Listener[bytes]):
    """When messages came."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def delivered(self, messages: list[Message[bytes]]) -> None:
        self.times.append(monotonic())

    def longest_gap(self, since: float, until: float) -> float:
        times = [since, *(t for t in self.times if since <= t <= until), until]
        return max(after - before for before, after in pairwise(times))


class Member:
    """Sends all the time, and notes when something comes."""

    def __init__(self, link: Link, group: Group[bytes], pause: float) -> None:
        self.link = link
        self._pause = pause
        self.arrivals = Arrivals()
        self._group = group
        group.listen(self.arrivals)
        self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        with suppress(FlexGroupError):  # when its server is no more
            while True:
                await self._group.send(b"x" * 64)
                await asyncio.sleep(self._pause)

    async def end(self) -> None:
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)
        with suppress(FlexGroupError, TimeoutError):
            async with asyncio.timeout(1):
                await self.link.close()


class Cluster:
    """Servers with default settings, on hosts of their own."""

    def __init__(self, stack: ExitStack, servers: int = SERVERS, records: bool = False) -> None:
        self.hosts = stack.enter_context(Hosts(servers))
        # Who writes the trace of a server outlives it for a moment.
        made = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(made))
        self.traces = folder / "traces"
        options = ("--trace", str(self.traces)) if records else ()
        self.servers: list[ServerProcess] = []
        for number in range(servers):
            join = ("--join", self.servers[0].address) if self.servers else ()
            server = ServerProcess(
                f"s{number}", folder, *join, *options,
                listen=f"{self.hosts.address(number + 1)}:7400",
                inside=self.hosts.inside(number + 1),
            )  # fmt: skip
            stack.callback(server.end)
            self.servers.append(server)

    async def members(
        self, stack: str | None, group: str, places: Iterable[int], pause: float = PAUSE
    ) -> dict[int, Member]:
        found = {}
        for place in places:
            link = await connect(self.servers[place].address, name=f"{group}{place}")
            found[place] = Member(link, await link.join(group, stack), pause)
        return found

    def cut_off(self, server: int) -> None:
        for other in range(len(self.servers)):
            if other != server:
                self.hosts.cut(server + 1, other + 1)


Fault = Callable[[Cluster, int], None]

FAULTS: dict[str, tuple[Fault, float]] = {
    "nothing": (lambda cluster, server: None, 0.0),
    "kill": (lambda cluster, server: cluster.servers[server].kill(), 0.3),
    "stop": (lambda cluster, server: cluster.servers[server].suspend(), PATIENCE + 0.3),
    "cut": (lambda cluster, server: cluster.cut_off(server), PATIENCE + 0.3),
}
"""What goes wrong with a server, and how long the others should stand still at most."""


async def gap_at_fault(stack: str, what: str, server: int, before: float) -> float:
    """The longest that a member elsewhere was given nothing."""
    with ExitStack() as resources:
        cluster = await asyncio.to_thread(Cluster, resources)
        members = await cluster.members(stack, "g", range(SERVERS))
        await asyncio.sleep(before)
        since = monotonic() - 1
        await asyncio.to_thread(FAULTS[what][0], cluster, server)
        await asyncio.sleep(PATIENCE + 2.5)
        until = monotonic()
        gaps = [m.arrivals.longest_gap(since, until) for p, m in members.items() if p != server]
        for member in members.values():
            await member.end()
    return max(gaps)


async def gap_without_members(stack: str) -> float:
    """The longest that members were given nothing while a server without members was stopped."""
    with ExitStack() as resources:
        cluster = await asyncio.to_thread(Cluster, resources)
        members = await cluster.members(stack, "g", range(SERVERS - 1))
        await asyncio.sleep(1.5)
        since = monotonic() - 1
        cluster.servers[-1].suspend()
        await asyncio.sleep(PATIENCE + 2.5)
        until = monotonic()
        gaps = [member.arrivals.longest_gap(since, until) for member in members.values()]
        for member in members.values():
            await member.end()
    return max(gaps)


async def gap_at_joins(stack: str) -> float:
    """The longest that members were given nothing while clients joined and left another group."""
    with ExitStack() as resources:
        cluster = await asyncio.to_thread(Cluster, resources)
        members = await cluster.members(stack, "g", range(SERVERS))
        link = await connect(cluster.servers[-1].address, name="newcomer")
        beside = await connect(cluster.servers[0].address, name="resident")
        await beside.join("h", stack)
        await asyncio.sleep(1.0)
        since = monotonic()
        for _ in range(50):
            group = await link.join("h", stack)
            await asyncio.sleep(0.01)
            await group.leave()
            await asyncio.sleep(0.01)
        until = monotonic()
        gaps = [member.arrivals.longest_gap(since, until) for member in members.values()]
        for one in (link, beside):
            await one.close()
        for member in members.values():
            await member.end()
    return max(gaps)


async def join_seconds(stack: str, groups: tuple[int, ...], server: int) -> list[float]:
    """The median time of a join at a server, with so many groups there, which all have members at
    the first servers; each the better of two."""
    with ExitStack() as resources:
        cluster = await asyncio.to_thread(Cluster, resources, SERVERS + 1)
        residents = [await connect(s.address, name=s.name) for s in cluster.servers[:SERVERS]]
        newcomer = await connect(cluster.servers[server].address, name="newcomer")
        made = 0
        medians = []
        for number in groups:
            while made < number:
                await residents[made % SERVERS].join(f"g{made}", stack)
                made += 1
            medians.append(min([await _median_of_joins(newcomer, stack) for _ in range(2)]))
        for link in (*residents, newcomer):
            await link.close()
    return medians


async def _median_of_joins(link: Link, stack: str) -> float:
    seconds = []
    for _ in range(100):
        began = monotonic()
        group = await link.join("g0", stack)
        seconds.append(monotonic() - began)
        await group.leave()
    return statistics.median(seconds)


# Groups of replicas.

REPLICAS = 5
NOTHING = "nothing"
KILLED: dict[str, tuple[int, ...]] = {
    NOTHING: (),
    "kill of the leader": (0,),
    "kill of a follower": (REPLICAS - 1,),
    "kill of both": (0, REPLICAS - 1),
}


@dataclass(frozen=True)
class Gap:
    """How long members elsewhere were given nothing, in seconds, and what that is held against."""

    stack: str
    what: str
    load: float
    """How many processes wanted a processor, in the minute before."""
    gap: float
    detection: float
    """How long it took the next leader to suspect who was killed."""
    round_trip: float

    @property
    def most(self) -> float:
        return self.detection + 10 * self.round_trip


async def gap_of_replicas(stack: str, what: str, before: float) -> Gap:
    load, killed = os.getloadavg()[0], KILLED[what]
    with ExitStack() as resources:
        cluster = await asyncio.to_thread(Cluster, resources, REPLICAS, records=True)
        servers = [server.name for server in cluster.servers]
        link = await connect(cluster.servers[1].address, name="creator")
        await link.create_replicated(stack, {"g": servers})
        members = await cluster.members(None, "g", range(REPLICAS), PAUSE_OF_REPLICAS)
        await asyncio.sleep(before)
        round_trip = await _round_trip(await link.attach("g"))
        since, at = monotonic(), time_ns()
        for server in killed:
            cluster.servers[server].process.kill()
        await asyncio.sleep(PATIENCE + 1.0)
        until = monotonic()
        gaps = [m.arrivals.longest_gap(since, until) for p, m in members.items() if p not in killed]
        for member in members.values():
            await member.end()
        await link.close()
        detection = await asyncio.to_thread(_detection, cluster.traces, killed, at)
    return Gap(stack, what, load, max(gaps), detection, round_trip)


async def _round_trip(group: Group[bytes]) -> float:
    seconds = []
    for _ in range(50):
        began = monotonic()
        await group.info()
        seconds.append(monotonic() - began)
    return statistics.median(seconds)


def _detection(traces: Path, killed: tuple[int, ...], at: int) -> float:
    """How many seconds after this time the next leader suspected all of these."""
    leader = min(process for process in range(REPLICAS) if process not in killed)
    found: dict[int, int] = {}
    for path in (traces / "events" / "event=suspect").glob("[!_]*.parquet"):
        for row in pq.read_table(path, partitioning=None).to_pylist():
            is_it = row["process"] == leader and row["peer"] in killed
            if is_it and row["detail"] == SUSPECTED and row["time"] >= at:
                found[row["peer"]] = min(row["time"], found.get(row["peer"], row["time"]))
    if len(found) < len(killed):
        raise AssertionError(f"process {leader} has not suspected all of {killed}: {found}")
    return max([0.0, *((time - at) / 1e9 for time in found.values())])


async def measure_replicas(
    stacks: list[str], rounds: int, before: float, is_shown: bool
) -> list[Gap]:
    """Every round has each fault, and none, of each stack: what the machine does besides changes
    while this runs, and concerns them alike."""
    measured: list[Gap] = []
    for _ in range(rounds):
        for stack in stacks:
            for what in KILLED:
                one = await gap_of_replicas(stack, what, before)
                measured.append(one)
                if is_shown:
                    show_gap(one)
    return measured


def show_gap(one: Gap) -> None:
    word = "" if one.what == NOTHING else ": kept" if one.gap <= one.most else ": NOT kept"
    print(
        f"{one.stack:22} {one.what:20} gap {1000 * one.gap:7.1f} ms, detection "
        f"{1000 * one.detection:7.1f}, round trip {1000 * one.round_trip:6.2f}, "
        f"at most {1000 * one.most:7.1f}{word} (load {one.load:.1f})",
        flush=True,
    )


HEAD = (
    "stack",
    "`kill -9` of",
    "gap (ms)",
    "the same without a fault (ms)",
    "detection (ms)",
    "round trip (ms)",
    "detection and ten round trips (ms)",
    "rounds with no longer gap",
    "load of the machine",
)


def table(gaps: list[Gap]) -> list[tuple[str, ...]]:
    """Medians of all rounds, with the least and the most; each fault beside what the same rounds
    were like without one."""
    rows: list[tuple[str, ...]] = [HEAD]
    for stack in dict.fromkeys(one.stack for one in gaps):
        of_stack = [one for one in gaps if one.stack == stack]
        control = [one.gap for one in of_stack if one.what == NOTHING]
        for what in KILLED:
            some = [one for one in of_stack if one.what == what]
            if some and what != NOTHING:
                rows.append(
                    (
                        stack,
                        what.removeprefix("kill of "),
                        median([one.gap for one in some]),
                        median(control),
                        median([one.detection for one in some]),
                        median([one.round_trip for one in some]),
                        median([one.most for one in some]),
                        f"{sum(one.gap <= one.most for one in some)} of {len(some)}",
                        f"{min(one.load for one in some):.1f} to "
                        f"{max(one.load for one in some):.1f}, {os.cpu_count()} processors",
                    )
                )
    return rows


def median(seconds: list[float]) -> str:
    """In milliseconds, with the least and the most."""
    low, middle, high = (1000 * f(seconds) for f in (min, statistics.median, max))
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def write_table(path: Path, gaps: list[Gap]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table(gaps))


def show(stack: str, what: str, gaps: list[float], most: float | None) -> None:
    told = " ".join(f"{1000 * gap:7.1f}" for gap in gaps)
    limit = f"  (at most {1000 * most:.0f})" if most else ""
    print(f"{stack:22} {what:32} {told} ms{limit}", flush=True)


async def measure(stack: str, rounds: int, only: list[str], before: float) -> None:
    for what, (_, most) in FAULTS.items():
        for server in (0, 1, SERVERS - 1) if most else (0,):
            if what in only:
                gaps = [await gap_at_fault(stack, what, server, before) for _ in range(rounds)]
                show(stack, f"{what} of server {server}" if most else what, gaps, most)
    if "empty" in only:
        gaps = [await gap_without_members(stack) for _ in range(rounds)]
        show(stack, "stop of a server without members", gaps, None)
    if "joins" in only:
        gaps = [await gap_at_joins(stack) for _ in range(rounds)]
        show(stack, "joins of another group", gaps, None)
    if "cost" in only:
        few_and_many = await join_seconds(stack, (10, 1000), 1)
        show(stack, "a join, 10 and 1,000 groups", few_and_many, None)
        few_and_many = await join_seconds(stack, (10, 1000), SERVERS)
        show(stack, "the first join at a server", few_and_many, None)


ALL = [*FAULTS, "empty", "joins", "cost"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stacks", default="RELIABLE ATOMIC")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(ALL), help=f"some of {', '.join(ALL)}")
    parser.add_argument("--before", type=float, default=1.5, metavar="SECONDS")
    parser.add_argument("--replicated", metavar="STACKS", help="groups of replicas instead")
    parser.add_argument("--json", action="store_true", help="with --replicated")
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="with --replicated: write the table there"
    )
    options = parser.parse_args()
    if not can_make_namespaces():
        print("needs root and iproute2, to make network namespaces", file=sys.stderr)
        return 2
    if options.replicated:
        stacks = options.replicated.split(",")
        gaps = run_until_terminated(
            measure_replicas(stacks, options.rounds, options.before, not options.json)
        )
        if options.json:
            print(json.dumps([asdict(one) for one in gaps], indent=2))
        if options.csv:
            write_table(options.csv, gaps)
        return 0
    for stack in options.stacks.split(","):
        run_until_terminated(
            measure(stack, options.rounds, options.only.split(","), options.before)
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
