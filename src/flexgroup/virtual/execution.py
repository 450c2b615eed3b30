"""The execution of a schedule: servers and clients in virtual time, and what clients saw."""

from __future__ import annotations

import asyncio
import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random

from flexgroup.core.errors import FlexGroupError
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.decision import carried_out
from flexgroup.membership.suspicion import may_continue
from flexgroup.membership.timings import Timings
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Limits, Settings
from flexgroup.virtual.clients import Problem, ScheduledClient, has_all_come
from flexgroup.virtual.internet import Internet, Process
from flexgroup.virtual.network import Network
from flexgroup.virtual.recording import Disk, Recordings
from flexgroup.virtual.schedule import OF_CLIENTS, Action, Schedule
from flexgroup.virtual.storage import VirtualStorage
from flexgroup.virtual.world import World

PORT = 7400
LONGEST_WAIT = 60.0
"""How many seconds servers and clients may take for what they have to come to."""


class VirtualServer:
    def __init__(self, number: int, execution: Execution) -> None:
        self.number = number
        self.machine = f"m{number}"
        self.lives = 0
        self.loop: Process | None = None
        self.server: GroupServer | None = None
        self.disk: Disk | None = None
        self.storage = VirtualStorage() if execution.schedule.data else None
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
        self.loop = execution.process(self.machine, f"s{self.number} {self.lives}")
        settings = Settings(
            name=f"s{self.number}",
            host=self.machine,
            port=PORT,
            join=join,
            storage=None if self.storage is None else self._storage,
            timings=Timings.of(schedule.patience),
            limits=Limits(pack=schedule.pack),
            random=Random(f"{schedule.seed} {self.number} {self.lives}"),
            handoff=self._disk,
            clock=execution.world.nanoseconds,
        )
        self.loop.create_task(self._run(settings))

    def _storage(self) -> VirtualStorage:
        assert self.storage is not None
        return self.storage

    def _disk(self, server: str) -> Disk:
        self.disk = Disk(self._execution.recordings, server)
        return self.disk

    def finish_trace(self) -> None:
        """The world ends: what this server is recording has no end of its own."""
        server = self.server
        if self.is_running and server is not None and server.trace is not None:
            present = server.deployment.configuration.servers
            server.trace.finish(None, {s.number for s in present})
            server.trace.finish_replicas({s.name for s in present})

    async def _run(self, settings: Settings) -> None:
        """Whoever runs a server starts it again if it ends without having been asked to."""
        while True:
            self.server = GroupServer(settings)
            with suppress(FlexGroupError):
                await self.server.run()
            await asyncio.sleep(0.2)


class Execution:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.world = World(schedule.seed)
        self.network = Network(self.world, schedule.latency)
        self._internet = Internet(self.world, self.network)
        self.processes: list[Process] = []
        self.recordings = Recordings()
        """What the servers have recorded."""
        self.servers = [VirtualServer(number, self) for number in range(schedule.servers)]
        self.clients: dict[str, ScheduledClient] = {}
        self.problems: list[Problem] = []
        """Where something did not come to pass that has to."""
        self._killed: set[int] = set()
        """The numbers that servers had whose process was killed."""
        self._may_be_lost = False
        """So many servers were killed that the rest need not go on; see `docs/membership.md`."""
        self.is_lost = False
        """The rest did not go on, although everything was mended."""

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    def now(self) -> float:
        return self.world.now

    def process(self, machine: str, name: str) -> Process:
        process = Process(self.world, self._internet, machine, name)
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
        for server in self.servers:
            server.finish_trace()
        for process in self.processes:
            process.end()
            self.problems += [
                Problem("an error that nobody caught", f"{process.machine}: {error}")
                for error in process.errors
            ]

    def digest(self) -> str:
        """A digest of everything that clients saw and servers recorded, and when."""
        seen = hashlib.sha256()
        for client in self.clients.values():
            for life in client.lives:
                seen.update(f"{life.process} {life.server} {life.ended_at!r}\n".encode())
                for membership in life.memberships:
                    seen.update(f"{membership.group} {membership.items!r}\n".encode())
        for run in self.recordings.runs:
            for server, part in run.parts.items():
                seen.update(f"{run.began.run.run} {server} {part.mark} {part.labels!r}\n".encode())
                seen.update(b"".join(part.columns()))
        return seen.hexdigest()

    def _begin(self) -> None:
        first, *others = self.servers
        first.start(())
        self._wait("the first server to found a cluster", lambda: self.size_of(first) == 1)
        for server in others:
            server.start((first.address,))
        if others:
            self._wait("all servers to join", self._all_servers_are_in)
        for number, plan in enumerate(self.schedule.clients):
            process = self.process(f"m{plan.server}", plan.name)
            self.clients[plan.name] = ScheduledClient(
                plan, self, process.create_task, reads_by_link=number % 2 == 1
            )
        self._wait("all clients to join", self._all_clients_are_in)

    def _end(self) -> None:
        """Everything is mended; then the cluster has to work again."""
        self._heal()
        for server in self.servers:
            if server.loop is not None and server.loop.is_stopped:
                server.loop.resume()
            if not server.is_running:
                self._restart(server)
        if self.schedule.partitionable:
            # Who was not heard before may still be left out, and what is sent then is not for all.
            self.world.run(self.world.now + 3 * self.schedule.patience)
        if self._may_be_lost and not self._comes_to_pass(self._all_servers_are_in):
            self.is_lost = True
            return
        self._wait("all servers to be in one configuration again", self._all_servers_are_in)
        self._wait("all clients to be back in their groups", self._all_clients_are_in)
        if self.problems:
            return
        for client in self.clients.values():
            for group in client.plan.groups:
                client.send((group,))
        self.world.run(self.world.now + 1)
        # A connection that was cut for long is slow to send again what was lost.
        self._wait(
            "all that was sent to be given to all that stay",
            lambda: has_all_come(self.clients.values()),
        )
        self.world.run(self.world.now + 1)

    def _wait(self, what: str, is_done: Callable[[], bool]) -> None:
        if not self._comes_to_pass(is_done):
            kind = f"in vain for {what}"
            self.problems.append(Problem(kind, f"waited {LONGEST_WAIT:g} s {kind}"))

    def _comes_to_pass(self, is_done: Callable[[], bool]) -> bool:
        until = self.world.now + LONGEST_WAIT
        while not is_done():
            if self.world.now >= until:
                return False
            self.world.run(self.world.now + 0.05)
        return True

    def size_of(self, server: VirtualServer) -> int:
        """How many servers there are in the configuration of this one."""
        if not server.is_running or server.server is None:
            return 0
        machine = server.server.membership.machine
        if machine.configuration is None or machine.ended:
            return 0
        return len(machine.configuration.servers)

    def _all_servers_are_in(self) -> bool:
        are_in = all(self.size_of(server) == len(self.servers) for server in self.servers)
        return are_in and not (self.schedule.partitionable and self._is_parted())

    def _is_parted(self) -> bool:
        """Whether partitionable groups have other views at some servers than at others."""
        running = [server.server for server in self.servers if server.server is not None]
        return (
            len({server.deployment.number for server in running}) > 1
            or any(server.deployment.is_of_side for server in running)
            or any(server.membership.machine.stands_still for server in running)
        )

    def _all_clients_are_in(self) -> bool:
        return all(client.is_settled for client in self.clients.values())

    def _restart(self, server: VirtualServer) -> None:
        addresses = tuple(other.address for other in self.servers if other is not server)
        server.start(addresses)

    def _act(self, action: Action) -> None:
        who = action.who
        match action.what:
            case what if what in OF_CLIENTS:
                self.clients[who[0]].act(what, who[1:])
            case "cut":
                self.network.cut(f"m{who[0]}", f"m{who[1]}")
            case "slow":
                self.network.slow(f"m{who[0]}", f"m{who[1]}", float(who[2]))
            case "uneven":
                self.network.make_uneven(f"m{who[0]}", f"m{who[1]}", float(who[2]))
            case "disk":
                self._break(self.servers[int(who[0])].disk, who[1])
            case "forgetful":
                storage = self.servers[int(who[0])].storage
                if storage is not None:
                    storage.fail()
            case "heal":
                self._heal()
            case _:
                self._act_on(self.servers[int(who[0])], action.what)

    def _break(self, disk: Disk | None, how: str) -> None:
        if disk is not None:
            {"sticks": disk.stick, "fails": disk.fail}[how]()

    def _heal(self) -> None:
        self.network.heal()
        for server in self.servers:
            if server.disk is not None:
                server.disk.go_on()
            if server.storage is not None:
                server.storage.go_on()

    def _kill(self, server: VirtualServer, loop: Process) -> None:
        """Kill its process. Without data it never comes back as the server that it was. Then too
        few may be left of a configuration, or of one that may be decided already, or nobody who
        knows of it."""
        if server.server is not None and server.server.membership.number is not None:
            self._killed.add(server.server.membership.number)
        if not self.schedule.data:
            self._may_be_lost |= any(
                self._killed.issuperset(knowing)
                or not may_continue([n for n in numbers if n not in self._killed], numbers, ())
                for numbers, knowing in self._last_configurations()
            )
        loop.kill()

    def _last_configurations(self) -> list[tuple[list[int], list[int]]]:
        """The servers of the last one, and of those that some server has accepted after it; each
        with those who have installed or accepted one of that number."""
        last = 0
        known: list[tuple[int, Configuration]] = []
        for server in self.servers:
            if self.size_of(server) and server.server is not None:
                snapshot = server.server.membership.machine.snapshot()
                last = max(last, snapshot.configuration.number)
                known.append((snapshot.number, snapshot.configuration))
                if snapshot.accepted is not None:
                    following, _ = carried_out(snapshot.configuration, snapshot.accepted[1])
                    known.append((snapshot.number, following))
        return [
            (
                [server.number for server in configuration.servers],
                [number for number, other in known if other.number == configuration.number],
            )
            for _, configuration in known
            if configuration.number >= last
        ]

    def _act_on(self, server: VirtualServer, what: str) -> None:
        loop = server.loop
        if what == "restart":
            if not server.is_running:
                self._restart(server)
        elif loop is not None and not loop.is_dead:
            if what == "kill":
                self._kill(server, loop)
            else:
                {"stop": loop.stop, "resume": loop.resume}[what]()


@contextmanager
def uncollected() -> Iterator[None]:
    """Do not look for garbage: as long as an execution is needed, hardly any of it is."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()
