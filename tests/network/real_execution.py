"""The execution of a schedule by real servers, each in a network namespace of its own.

The schedules, the clients and what is held against them are those of virtual time. The clients run
here, on the network of the servers; the machines of these are the numbers of the hosts less one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from time import monotonic
from typing import Any

from flexgroup import connect
from flexgroup.core.errors import FlexGroupError
from flexgroup.virtual.checks import problems_of_clients
from flexgroup.virtual.clients import Problem, ScheduledClient, has_all_come
from flexgroup.virtual.schedule import Action, Schedule

from .agreement import belief_of
from .namespaces import Hosts
from .servers import ServerProcess

PORT = 7400
LONGEST_WAIT = 90.0
"""How many seconds servers and clients may take for what they have to come to."""

KINDS = ("kill", "stop", "cut", "part", "outage")
"""What can go wrong here, of all that schedules know."""


class RealServer:
    """A process that is started again if it ends without having been asked to."""

    def __init__(self, number: int, cluster: RealCluster) -> None:
        self.number = number
        self.name = f"s{number}"
        self.address = f"{cluster.hosts.address(number + 1)}:{PORT}"
        self._cluster = cluster
        self._process: ServerProcess | None = None
        self._is_wanted = False
        self._is_stopped = False

    def start(self, join: tuple[str, ...]) -> None:
        if self._is_wanted:
            return
        self._is_wanted = True
        self._start(join)
        self._cluster.spawn(self._watch())

    async def wait_ready(self) -> None:
        assert self._process is not None
        await asyncio.to_thread(self._process.wait_ready)

    def _start(self, join: tuple[str, ...]) -> None:
        cluster = self._cluster
        named = [option for address in join for option in ("--join", address)]
        # Nothing else may happen meanwhile: whoever kills this server has to know the process.
        self._process = ServerProcess(
            self.name, cluster.folder, *named, *cluster.options,
            "--data", str(cluster.folder / f"data{self.number}"),
            wait=False, listen=self.address, inside=cluster.hosts.inside(self.number + 1),
        )  # fmt: skip

    async def _watch(self) -> None:
        process = self._process
        while self._is_wanted and process is not None and process is self._process:
            if process.process.poll() is not None:
                process.end()
                self._start(self._cluster.others_than(self))
                process = self._process
            await asyncio.sleep(0.2)

    def kill(self) -> None:
        self._is_wanted = self._is_stopped = False
        if self._process is not None:
            self._process.end()

    def stop(self) -> None:
        if self._is_wanted and self._process is not None and self._process.process.poll() is None:
            self._is_stopped = True
            self._process.suspend()

    def resume(self) -> None:
        if self._is_stopped and self._process is not None:
            self._is_stopped = False
            self._process.resume()


class RealCluster:
    """Servers on hosts of their own, and what goes wrong with them."""

    def __init__(self, hosts: Hosts, folder: Path, size: int, *options: str) -> None:
        self.hosts = hosts
        self.folder = folder
        self.options = options
        """What all servers are started with."""
        self.problems: list[Problem] = []
        self.servers = [RealServer(number, self) for number in range(size)]
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    def others_than(self, server: RealServer) -> tuple[str, ...]:
        return tuple(other.address for other in self.servers if other is not server)

    def now(self) -> float:
        return monotonic()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._is_over)
        return task

    def _is_over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            text = f"{task.get_coro()}: {task.exception()!r}"
            self.problems.append(Problem("an error that nobody caught", text))

    async def begin(self) -> None:
        first, *others = self.servers
        first.start(())
        await first.wait_ready()
        for server in others:
            server.start((first.address,))
        await self.wait("all servers to join", self.all_servers_are_in)

    async def fail(self, action: Action) -> None:
        """Have go wrong, or mend, what the action says."""
        numbers = [int(number) for number in action.who]
        match action.what:
            case "cut":
                source, target = numbers
                await asyncio.to_thread(self.hosts.cut_way, source + 1, target + 1)
            case "heal":
                await asyncio.to_thread(self.hosts.heal_all)
            case "restart":
                server = self.servers[numbers[0]]
                server.start(self.others_than(server))
            case "kill" | "stop" | "resume":
                getattr(self.servers[numbers[0]], action.what)()
            case what:
                raise ValueError(f"{what} is nothing that can be done to real servers")

    async def mend(self) -> None:
        """All servers run, and reach each other."""
        await asyncio.to_thread(self.hosts.heal_all)
        for server in self.servers:
            server.resume()
            server.start(self.others_than(server))

    async def wait(self, what: str, is_done: Callable[[], Awaitable[bool]]) -> None:
        until = self.now() + LONGEST_WAIT
        while not await is_done():
            if self.now() >= until:
                kind = f"in vain for {what}"
                self.problems.append(Problem(kind, f"waited {LONGEST_WAIT:g} s {kind}"))
                await self._write_what_servers_tell()
                return
            await asyncio.sleep(0.05)

    async def _write_what_servers_tell(self) -> None:
        """For whoever wants to know why that has not come to pass."""
        told = []
        for server in self.servers:
            try:
                async with connect(server.address, name="observer", timeout=5) as link:
                    told.append(json.dumps(await link.inspect()))
            except (FlexGroupError, OSError) as error:
                told.append(f"{server.name} does not tell: {error}")
        (self.folder / "inspected.log").write_text("\n".join(told))

    async def all_servers_are_in(self) -> bool:
        names = {server.name for server in self.servers}
        configurations = set()
        for server in self.servers:
            try:
                configuration, servers, _ = await belief_of(server.address)
            except (FlexGroupError, OSError):
                return False
            if set(servers) != names:
                return False
            configurations.add(configuration)
        return len(configurations) == 1

    def read_logs(self) -> None:
        """See whether servers met errors that they did not catch."""
        for log in sorted(self.folder.glob("*.log")):
            if "Traceback" in (text := log.read_text()):
                told = text[text.index("Traceback") :][:2000]
                self.problems.append(Problem("an error that nobody caught", told))

    async def end(self) -> None:
        for server in self.servers:
            server.kill()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.hosts.heal_all)


class RealExecution(RealCluster):
    """Done when `run` has come to its end; then `found` tells what is wrong."""

    def __init__(self, schedule: Schedule, hosts: Hosts, folder: Path) -> None:
        options = ("--patience", str(schedule.patience), "--pack", str(schedule.pack))
        super().__init__(hosts, folder, schedule.servers, *options)
        self.schedule = schedule
        self.clients: dict[str, ScheduledClient] = {}

    async def run(self) -> None:
        try:
            await self._begin()
            if not self.problems:
                await self._follow()
                await self._end()
            self.read_logs()
        finally:
            await self.end()

    def found(self) -> list[Problem]:
        """Everything that is wrong."""
        schedule = self.schedule
        seen = problems_of_clients(schedule.stack, self.clients.values(), schedule.partitionable)
        return [*self.problems, *seen]

    async def _begin(self) -> None:
        await self.begin()
        for number, plan in enumerate(self.schedule.clients):
            self.clients[plan.name] = ScheduledClient(
                plan, self, self.spawn, reads_by_link=number % 2 == 1
            )
        await self.wait("all clients to join", self._all_clients_are_in)

    async def _follow(self) -> None:
        start = self.now()
        for action in self.schedule.actions:
            if (until := start + action.at - self.now()) > 0:
                await asyncio.sleep(until)
            if action.who and action.who[0] in self.clients:
                self.clients[action.who[0]].act(action.what, action.who[1:])
            else:
                await self.fail(action)

    async def _end(self) -> None:
        """Everything is mended; then the cluster has to work again."""
        await self.mend()
        if self.schedule.partitionable:
            # Who was not heard before may still be left out, and what is sent then is not for all.
            await asyncio.sleep(3 * self.schedule.patience)
        await self.wait("all servers to be in one configuration again", self.all_servers_are_in)
        await self.wait("all clients to be back in their groups", self._all_clients_are_in)
        if self.problems:
            return
        for client in self.clients.values():
            for group in client.plan.groups:
                client.send((group,))
        await asyncio.sleep(0.5)
        await self.wait("all that was sent to be given to all that stay", self._has_all_come)
        await asyncio.sleep(0.5)

    async def _all_clients_are_in(self) -> bool:
        return all(client.is_settled for client in self.clients.values())

    async def _has_all_come(self) -> bool:
        return has_all_come(self.clients.values())


async def execute_all(
    schedules: list[Schedule],
    folder: Path,
    parallel: int,
    when_done: Callable[[Schedule, RealExecution], None],
) -> None:
    """Execute the schedules, so many at a time, each on hosts that one before had.

    What they do is to wait, for the most part.
    """
    waiting = iter(enumerate(schedules))

    async def work() -> None:
        # Nothing may come between: who is cancelled has to know what is made.
        with Hosts(max(schedule.servers for schedule in schedules)) as hosts:
            for number, schedule in waiting:
                place = folder / f"{number}"
                place.mkdir(parents=True)
                execution = RealExecution(schedule, hosts, place)
                await execution.run()
                when_done(schedule, execution)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(schedules))):
            group.create_task(work())
