"""The execution of a schedule: servers and clients in virtual time, and what clients saw."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from flexgroup.client.connecting import connect
from flexgroup.client.group import Group, Link
from flexgroup.client.message import View
from flexgroup.core.errors import FlexGroupError
from flexgroup.membership.suspicion import Timings
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Settings
from flexgroup.virtual.network import Network
from flexgroup.virtual.schedule import Action, ClientPlan, Schedule
from flexgroup.virtual.tcp import Internet, Process
from flexgroup.virtual.world import World

PORT = 7400
LONGEST_WAIT = 60.0
"""How many seconds servers and clients may take for what they have to come to."""


@dataclass
class Sent:
    """A message of a client; it names itself in its body."""

    name: str
    groups: tuple[str, ...]
    at: float
    has_failed: bool = False
    """The client was told that it may not have been sent."""


@dataclass
class Membership:
    """What one client saw of one group, from joining it to leaving it."""

    process: str
    group: str
    joined_at: float
    items: list[tuple[float, str | View]] = field(default_factory=list)
    """Names of messages and views, in the order in which the client was given them, and when."""
    ended_at: float | None = None


@dataclass
class Life:
    """One connection of a client: a process, as far as groups are concerned."""

    process: str
    server: int
    sent: list[Sent] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    ended_at: float | None = None
    """When the connection was lost, if it was."""

    def given(self) -> set[str]:
        """The messages that the client was given, in whichever group."""
        return {i for m in self.memberships for _, i in m.items if isinstance(i, str)}


class VirtualServer:
    def __init__(self, number: int, execution: Execution) -> None:
        self.number = number
        self.machine = f"m{number}"
        self.lives = 0
        self.loop: Process | None = None
        self.server: GroupServer | None = None
        self._execution = execution

    @property
    def address(self) -> str:
        return f"{self.machine}:{PORT}"

    @property
    def is_running(self) -> bool:
        return self.loop is not None and not self.loop.is_dead

    def start(self, join: tuple[str, ...]) -> None:
        self.lives += 1
        execution = self._execution
        schedule = execution.schedule
        self.loop = execution.process(self.machine)
        settings = Settings(
            name=f"s{self.number}",
            host=self.machine,
            port=PORT,
            join=join,
            timings=Timings(beat=schedule.patience / 10, patience=schedule.patience),
            random=Random(f"{schedule.seed} {self.number} {self.lives}"),
        )
        self.loop.create_task(self._run(settings))

    async def _run(self, settings: Settings) -> None:
        """Whoever runs a server starts it again if it ends without having been asked to."""
        while True:
            self.server = GroupServer(settings)
            with suppress(FlexGroupError):
                await self.server.run()
            await asyncio.sleep(0.2)


class VirtualClient:
    """Stays connected and in its groups, whatever happens, and writes down what it sees."""

    def __init__(self, plan: ClientPlan, execution: Execution) -> None:
        self.plan = plan
        self.lives: list[Life] = []
        self._execution = execution
        self._groups: dict[str, Group[bytes]] = {}
        self._wanted = dict.fromkeys(plan.groups)
        self._link: Link | None = None
        self._loop = execution.process(f"m{plan.server}")
        self._loop.create_task(self._live())

    @property
    def is_settled(self) -> bool:
        """Whether it is connected, and in all groups it wants to be in."""
        return self._link is not None and all(name in self._groups for name in self._wanted)

    async def _live(self) -> None:
        servers = len(self._execution.servers)
        attempt = 0
        while True:
            server = (self.plan.server + attempt) % servers
            attempt += 1
            process = f"{self.plan.name}.{len(self.lives)}"
            try:
                link = await connect(f"m{server}:{PORT}", name=process, timeout=10.0)
            except (FlexGroupError, OSError):
                await asyncio.sleep(0.05)
                continue
            life = Life(process, server)
            self.lives.append(life)
            self._link = link
            for name in list(self._wanted):
                self._loop.create_task(self._enter(link, life, name))
            await asyncio.shield(link.connection.closed)
            life.ended_at = self._execution.world.now
            self._link = None
            self._groups.clear()

    async def _enter(self, link: Link, life: Life, name: str) -> None:
        while link is self._link and name in self._wanted and name not in self._groups:
            try:
                group = await link.join(name, self._execution.schedule.stack)
            except FlexGroupError:
                await asyncio.sleep(0.01)
                continue
            if link is not self._link:
                return
            self._groups[name] = group
            membership = Membership(life.process, name, self._execution.world.now)
            life.memberships.append(membership)
            self._loop.create_task(self._read(group, membership))

    async def _read(self, group: Group[bytes], membership: Membership) -> None:
        try:
            async for item in group.events():
                seen = item if isinstance(item, View) else item.body.decode()
                membership.items.append((self._execution.world.now, seen))
        except FlexGroupError:
            pass
        membership.ended_at = self._execution.world.now

    # What the schedule makes it do.

    def send(self, groups: tuple[str, ...]) -> None:
        self._do(self._send(groups))

    def join(self, group: str) -> None:
        self._wanted[group] = None
        if self._link is not None:
            self._do(self._enter(self._link, self.lives[-1], group))

    def leave(self, group: str) -> None:
        self._wanted.pop(group, None)
        self._do(self._leave(group))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        self._loop.create_task(work)

    async def _send(self, names: tuple[str, ...]) -> None:
        link = self._link
        groups = [self._groups[name] for name in names if name in self._groups]
        if link is None or not groups:
            return
        life = self.lives[-1]
        name = f"{life.process}:{len(life.sent)}"
        sent = Sent(name, tuple(group.name for group in groups), self._execution.world.now)
        life.sent.append(sent)
        try:
            if len(groups) == 1:
                await groups[0].send(name.encode())
            else:
                await link.multicast(groups, name.encode())
        except FlexGroupError:
            sent.has_failed = True

    async def _leave(self, name: str) -> None:
        group = self._groups.pop(name, None)
        if group is not None:
            with suppress(FlexGroupError):
                await group.leave()


class Execution:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.world = World(schedule.seed)
        self.network = Network(self.world, schedule.latency)
        self._internet = Internet(self.world, self.network)
        self.processes: list[Process] = []
        self.servers = [VirtualServer(number, self) for number in range(schedule.servers)]
        self.clients: dict[str, VirtualClient] = {}
        self.problems: list[str] = []
        """Where something did not come to pass that has to."""

    def process(self, machine: str) -> Process:
        # Servers and clients ask less of a loop than asyncio's interface has.
        process = Process(self.world, self._internet, machine)  # type: ignore[abstract]
        self.processes.append(process)
        return process

    def run(self) -> None:
        self._begin()
        if not self.problems:
            start = self.world.now
            for action in self.schedule.actions:
                self.world.at(start + action.at, self._act, action)
            self.world.run(start + self.schedule.seconds)
            self._end()
        for process in self.processes:
            process.end()
            self.problems += [f"{process.machine}: {error}" for error in process.errors]

    def digest(self) -> str:
        """A digest of everything that clients saw, and when."""
        seen = hashlib.sha256()
        for client in self.clients.values():
            for life in client.lives:
                seen.update(f"{life.process} {life.server} {life.ended_at!r}\n".encode())
                for membership in life.memberships:
                    seen.update(f"{membership.group} {membership.items!r}\n".encode())
        return seen.hexdigest()

    def _begin(self) -> None:
        first, *others = self.servers
        first.start(())
        self._wait("the first server to found a cluster", lambda: self.size_of(first) == 1)
        for server in others:
            server.start((first.address,))
        if others:
            self._wait("all servers to join", self._all_servers_are_in)
        for plan in self.schedule.clients:
            self.clients[plan.name] = VirtualClient(plan, self)
        self._wait("all clients to join", self._all_clients_are_in)

    def _end(self) -> None:
        """Everything is mended; then the cluster has to work again."""
        self.network.heal()
        for server in self.servers:
            if server.loop is not None and server.loop.is_stopped:
                server.loop.resume()
            if not server.is_running:
                self._restart(server)
        self._wait("all servers to be in one configuration again", self._all_servers_are_in)
        self._wait("all clients to be back in their groups", self._all_clients_are_in)
        if self.problems:
            return
        for client in self.clients.values():
            for group in client.plan.groups:
                client.send((group,))
        # A connection that was cut for long is slow to send again what was lost.
        self.world.run(self.world.now + 1)
        lives = [client.lives[-1] for client in self.clients.values()]
        last = [life.sent[-1].name for life in lives if life.sent]
        self._wait("the last messages to be delivered", lambda: self._have_come(last))
        self.world.run(self.world.now + 1)

    def _have_come(self, messages: list[str]) -> bool:
        given = {item for c in self.clients.values() for item in c.lives[-1].given()}
        return all(message in given for message in messages)

    def _wait(self, what: str, is_done: Any) -> None:
        until = self.world.now + LONGEST_WAIT
        while not is_done():
            if self.world.now >= until:
                self.problems.append(f"waited {LONGEST_WAIT:g} s in vain for {what}")
                return
            self.world.run(self.world.now + 0.05)

    def size_of(self, server: VirtualServer) -> int:
        """How many servers there are in the configuration of this one."""
        if not server.is_running or server.server is None:
            return 0
        machine = server.server.membership.machine
        if machine.configuration is None or machine.ended:
            return 0
        return len(machine.configuration.servers)

    def _all_servers_are_in(self) -> bool:
        return all(self.size_of(server) == len(self.servers) for server in self.servers)

    def _all_clients_are_in(self) -> bool:
        return all(client.is_settled for client in self.clients.values())

    def _restart(self, server: VirtualServer) -> None:
        addresses = tuple(other.address for other in self.servers if other is not server)
        server.start(addresses)

    def _act(self, action: Action) -> None:
        who = action.who
        match action.what:
            case "send":
                self.clients[who[0]].send(who[1:])
            case "join":
                self.clients[who[0]].join(who[1])
            case "leave":
                self.clients[who[0]].leave(who[1])
            case "cut":
                self.network.cut(f"m{who[0]}", f"m{who[1]}")
            case "slow":
                self.network.slow(f"m{who[0]}", f"m{who[1]}", float(who[2]))
            case "heal":
                self.network.heal()
            case _:
                self._act_on(self.servers[int(who[0])], action.what)

    def _act_on(self, server: VirtualServer, what: str) -> None:
        loop = server.loop
        if what == "restart":
            if not server.is_running:
                self._restart(server)
        elif loop is not None and not loop.is_dead:
            {"kill": loop.kill, "stop": loop.stop, "resume": loop.resume}[what]()
