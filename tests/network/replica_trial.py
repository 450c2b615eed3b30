"""The trial of replicated groups on real servers: three groups of three, each server a process in a
network namespace of its own, with a folder for data and a trace.

Run as a script, as root, it takes the number of schedules and the first seed:

    python -m tests.network.replica_trial --schedules 200 --parallel 2 --out bad

A schedule is drawn from its seed: servers are killed, all of them at once at times, stopped, cut
off from each other and started again from their disks. Meanwhile closed loops send to one, two or
three groups of each stack. Then everything is mended, and has to come to rest with everything
delivered. A cluster serves one schedule after another, each with groups of its own. What fails is
written with its schedule; `--first SEED --schedules 1` has it again.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from flexgroup import connect
from flexgroup.client.errors import GroupExists
from flexgroup.core.errors import FlexGroupError
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.history import Faults
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.trace.run import Run
from flexgroup.virtual.clients import Problem
from flexgroup.virtual.schedule import PATIENCES, Action, Load, Schedule, draw_schedule

from .namespaces import Hosts, run_until_terminated
from .real_execution import KINDS, RealCluster
from .replica_clients import Client, Listener, Sender, problems

SIZE = 3
SERVERS = SIZE * SIZE
PATIENCE = min(PATIENCES)
STACKS = (
    "LEADER PAXOS",
    "LEADER PAXOS SKEEN-CFT",
    "LEADER WHITE-BOX",
    "LEADER PRIMCAST",
)
ORDERED_WITHIN_GROUPS = ("LEADER PAXOS",)
"""What takes messages to one group only."""

LOAD = Load(
    servers=(SERVERS,), clients=0, messages=0, changes=0, seconds=0.0, faults=5, kinds=KINDS,
    longest=3.0, longest_stop=3.0,
)  # fmt: skip
"""A schedule has only what goes wrong; clients send all the time."""
PAUSE = 0.05
"""Seconds that a client waits between its messages."""
SHARE_OF_OUTAGES = 0.15
"""So many schedules kill all servers at once."""


def draw(seed: int, load: Load = LOAD) -> Schedule:
    """What goes wrong; clients of all stacks see the same."""
    schedule = draw_schedule(seed, STACKS[0], load)
    chance = Random(f"outage {seed}")
    if chance.random() >= SHARE_OF_OUTAGES:
        return schedule
    begin = round(chance.uniform(0, schedule.seconds), 6)
    end = round(begin + chance.uniform(0.1, load.longest) * schedule.patience, 6)
    numbers = [str(number) for number in range(SERVERS)]
    killed = [Action(begin, "kill", (number,)) for number in numbers]
    started = [Action(end, "restart", (number,)) for number in chance.sample(numbers, SERVERS)]
    actions = sorted([*schedule.actions, *killed, *started], key=lambda action: action.at)
    return replace(schedule, actions=tuple(actions))


def drawn(first: int, load: Load = LOAD) -> Iterator[Schedule]:
    """Schedules from this seed on, for servers with the least patience."""
    seed = first
    while True:
        schedule = draw(seed, load)
        if schedule.patience == PATIENCE:
            yield schedule
        seed += 1


class ReplicaCluster:
    """Servers that record, which serve one schedule after the other."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.traces = folder / "traces"
        self.real = RealCluster(
            hosts, folder, SERVERS,
            "--patience", str(PATIENCE), "--trace", str(self.traces),
        )  # fmt: skip

    async def execute(self, schedule: Schedule, stacks: Sequence[str]) -> list[Problem]:
        """Everything that is wrong."""
        real = self.real
        real.problems = []
        trials = [StackTrial(stack, schedule.seed, self) for stack in stacks]
        try:
            for trial in trials:
                await trial.begin()
            if not real.problems:
                await self._follow(schedule)
                await real.mend()
                what = "all servers to be in one configuration again"
                await real.wait(what, real.all_servers_are_in)
            for trial in trials:
                await trial.come_to_rest()
        finally:
            if real.problems:
                clients = [str(client) for trial in trials for client in trial.clients]
                (real.folder / "clients.log").write_text("\n".join(clients))
            for trial in trials:
                await trial.end()
        if not real.problems:
            for trial in trials:
                trial.compare()
                await trial.judge()
        real.read_logs()
        return real.problems

    async def _follow(self, schedule: Schedule) -> None:
        start = self.real.now()
        for action in schedule.actions:
            if (until := start + action.at - self.real.now()) > 0:
                await asyncio.sleep(until)
            await self.real.fail(action)


class StackTrial:
    """Three groups of one stack on a cluster, with the clients of all servers."""

    def __init__(self, stack: str, seed: int, cluster: ReplicaCluster) -> None:
        self._stack = stack
        self._cluster = cluster
        self._real = real = cluster.real
        self._domain = 0
        self._farewells = 0
        self._tasks: list[asyncio.Task[None]] = []
        tag = f"{seed}-{stack.lower().replace(' ', '-')}"
        self.groups = {
            f"{name}-{tag}": real.servers[place * SIZE : (place + 1) * SIZE]
            for place, name in enumerate("abc")
        }
        self.listeners: list[Listener] = []
        self.senders: list[Sender] = []
        for name, servers in self.groups.items():
            others = [other for other in self.groups if other != name]
            within = stack in ORDERED_WITHIN_GROUPS
            choices = [[name]] if within else [[name], [name, others[0]], [name, *others]]
            for server in servers:
                who = f"{server.name}-{tag}"
                self.listeners.append(Listener(f"listener-{who}", server.address, name))
                self.senders.append(Sender(f"sender-{who}", server.address, choices, PAUSE))

    @property
    def clients(self) -> list[Client]:
        return [*self.listeners, *self.senders]

    def _problem(self, kind: str, text: str) -> None:
        self._real.problems.append(Problem(kind, text))

    async def begin(self) -> None:
        await self._real.wait(f"the groups of {self._stack} to be created", self._create)
        self._tasks = [self._real.spawn(client.run()) for client in self.clients]
        await self._real.wait(f"the first messages of {self._stack}", self._has_begun)

    async def _create(self) -> bool:
        """On a busy machine, servers may miss each other for a moment without any fault."""
        servers = {name: [s.name for s in servers] for name, servers in self.groups.items()}
        try:
            async with connect(self._real.addresses[0], name="creator", timeout=30) as link:
                await link.create_replicated(self._stack, servers)
        except GroupExists:
            return True
        except FlexGroupError:
            return False
        return True

    async def come_to_rest(self) -> None:
        for sender in self.senders:
            sender.is_over = True
        wait, stack = self._real.wait, self._stack
        if not self._real.problems:
            await wait(f"all members of {stack} to be back", self._is_everybody_back)
            await wait(f"a last message to groups of {stack} to be confirmed", self._say_farewell)
            await wait(f"all replicas of {stack} to come to rest", self._is_at_rest)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self.clients:
            await client.close()

    def compare(self) -> None:
        """Hold what clients saw against each other."""
        for text in problems(self.listeners, self.senders):
            self._problem("members were not given the same", text)

    async def _has_begun(self) -> bool:
        return all(any(listener.lives) for listener in self.listeners)

    async def _is_everybody_back(self) -> bool:
        return all(listener.is_in for listener in self.listeners)

    async def _say_farewell(self) -> bool:
        """Send what all members are there to be given: by its number they know what they missed."""
        try:
            for name, servers in self.groups.items():
                async with connect(servers[0].address, name="farewell", timeout=5) as link:
                    group = await link.attach(name)
                    self._farewells += 1
                    await group.send(b"farewell %d" % self._farewells)
                    await group.confirm()
        except FlexGroupError:
            return False
        return True

    async def _replicas(self) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        """The number of the domain, and what the replicas of each group tell of themselves."""
        told: dict[str, list[dict[str, Any]]] = {name: [] for name in self.groups}
        number = 0
        for name, servers in self.groups.items():
            for server in servers:
                async with connect(server.address, name="observer", timeout=5) as link:
                    for domain in (await link.inspect())["replicas"]:
                        if any(group["name"] == name for group in domain["groups"]):
                            number = domain["domain"]
                            told[name] += [domain["here"]] if domain["here"] else []
        return number, told

    async def _is_at_rest(self) -> bool:
        """Everything that was multicast is delivered, everywhere, and members have it."""
        try:
            number, replicas = await self._replicas()
        except (FlexGroupError, OSError):
            return False
        self._domain = number
        for name, here in replicas.items():
            numbers = {replica["delivered"] for replica in here}
            if len(numbers) != 1 or len(here) < SIZE or any(r["under_way"] for r in here):
                return False
            last = numbers.pop()
            if any(x.last != last for x in self.listeners if x.group == name):
                await self._say_farewell()  # who has just joined again was given nothing yet
                return False
        return True

    # What is recorded.

    async def judge(self) -> None:
        """Groups are destroyed, so the run is over; hold what servers recorded against what the
        stack promises."""
        await self._real.wait("the groups to be destroyed", self._destroy)
        run: Run | None = None
        began = self._real.now()
        while run is None and self._real.now() < began + 30:
            await asyncio.sleep(0.2)
            run = await asyncio.to_thread(self._listed)
        if run is None:
            self._problem("no trace", "the run was not listed within 30 s")
            return
        for text in await asyncio.to_thread(violations, self._cluster.traces, run):
            self._problem("a trace that breaks a promise", text)
        if not run.complete:
            self._problem("a trace that is not whole", f"{run.run} lost {run.lost}")

    async def _destroy(self) -> bool:
        with suppress(FlexGroupError):
            async with connect(self._real.addresses[0], name="destroyer", timeout=30) as link:
                for name in self.groups:
                    await (await link.attach(name)).destroy()
            return True
        return False

    def _listed(self) -> Run | None:
        wanted = f"-{self._domain:06}-"
        if not list((self._cluster.traces / "runs").glob("[!_]*.parquet")):
            return None
        return next((r for r in read_runs(self._cluster.traces) if wanted in r.run), None)


def violations(traces: Path, run: Run) -> Iterator[str]:
    """What does not hold of a run, as it was recorded; and then, since nobody may stay behind, with
    all processes held to everything, also those that crashed and started again."""
    history = load_history(traces, run)
    strict = replace(history, crashes=Faults())
    for held in (history, strict):
        for verdict in check(held, run.promised):
            if verdict.outcome is Outcome.VIOLATED:
                yield f"run {run.run}: {verdict.property} is violated: {verdict.explanation}"


async def execute_all(
    schedules: Sequence[Schedule],
    stacks: Sequence[str],
    folder: Path,
    parallel: int,
    when_done: Callable[[Schedule, list[Problem], Path], None],
) -> None:
    """Execute the schedules on so many clusters at a time; one on which something was wrong is
    given up for another."""
    waiting = iter(enumerate(schedules))

    async def work() -> None:
        # Nothing may come between: who is cancelled has to know what is made.
        with Hosts(SERVERS) as hosts:
            is_over = False
            while not is_over:
                is_over = await serve(hosts)

    async def serve(hosts: Hosts) -> bool:
        cluster: ReplicaCluster | None = None
        try:
            for number, schedule in waiting:
                if cluster is None:
                    place = folder / f"{number}"
                    place.mkdir(parents=True)
                    cluster = ReplicaCluster(hosts, place)
                    await cluster.real.begin()
                found = await cluster.execute(schedule, stacks)
                when_done(schedule, found, cluster.real.folder)
                if found:
                    return False
            return True
        finally:
            if cluster is not None:
                await cluster.real.end()

    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(schedules))):
            group.create_task(work())


def report(schedule: Schedule, found: Sequence[Problem], folder: Path) -> str:
    """Everything that is wrong, the schedule that shows it, and what the servers said of it; empty
    if nothing is."""
    logs = [f"== {log.name}\n{log.read_text()}" for log in sorted(folder.glob("*.log"))]
    return "\n".join([*map(str, found[:10]), "", str(schedule), *logs]) if found else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--parallel", type=int, default=1, help="how many clusters at a time")
    parser.add_argument("--stacks", default=",".join(STACKS))
    parser.add_argument("--out", type=Path, help="a folder for the reports of bad schedules")
    options = parser.parse_args()
    bad = done = 0
    began = time.monotonic()

    def when_done(schedule: Schedule, found: list[Problem], folder: Path) -> None:
        nonlocal bad, done
        done += 1
        bad += bool(found)
        told = report(schedule, found, folder)
        if told:
            print(schedule)
            if options.out is not None:
                options.out.mkdir(parents=True, exist_ok=True)
                (options.out / f"{schedule.seed}.txt").write_text(told)
        first = told.partition("\n")[0][:200] or "good"
        seconds = time.monotonic() - began
        print(f"{seconds:6.1f} s  {done} seed {schedule.seed}: {first}", flush=True)

    schedules = list(islice(drawn(options.first), options.schedules))
    stacks = options.stacks.split(",")
    with tempfile.TemporaryDirectory() as folder:
        trial = execute_all(schedules, stacks, Path(folder), options.parallel, when_done)
        run_until_terminated(trial)
    print(f"{done} schedules: {bad or 'none'} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
