"""Servers in virtual time with clients that do what a test tells them, one thing after another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from flexgroup.client.connecting import connect
from flexgroup.client.group import Group, Link
from flexgroup.client.message import Message
from flexgroup.virtual.execution import Execution, VirtualServer
from flexgroup.virtual.schedule import parse_schedule

T = TypeVar("T")

STACK = "ABCAST SAFE"
LONGEST = 30.0

SCHEDULE = """
seed {seed}
stack ABCAST SAFE
servers {servers}
latency 0.0002 0.001
patience 1.0
data yes
"""


class KeptCluster:
    """Servers that keep data, or most of them."""

    def __init__(self, servers: int = 3, seed: int = 1, without_data: tuple[int, ...] = ()) -> None:
        self.execution = Execution(parse_schedule(SCHEDULE.format(seed=seed, servers=servers)))
        for number in without_data:
            self.servers[number].storage = None
        self.execution._begin()
        assert self.execution.problems == []
        self._clients = 0

    @property
    def servers(self) -> list[VirtualServer]:
        return self.execution.servers

    def pass_time(self, seconds: float) -> None:
        self.execution.world.run(self.execution.now() + seconds)

    def wait_until(self, is_done: Callable[[], bool]) -> None:
        until = self.execution.now() + LONGEST
        while not is_done():
            assert self.execution.now() < until, "this never comes to pass"
            self.pass_time(0.01)

    def wait_for_servers(self, *numbers: int) -> None:
        """Wait until these servers, and no others, are in one configuration."""
        self.wait_until(
            lambda: all(
                self.execution.size_of(self.servers[number]) == len(numbers) for number in numbers
            )
        )

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            loop = self.servers[number].loop
            assert loop is not None
            loop.kill()

    def stop(self, number: int) -> None:
        """Have it leave the others in good order."""
        one = self.servers[number]
        assert one.loop is not None
        assert one.server is not None
        one.loop.call_soon(one.server.stop)

    def restart(self, *numbers: int) -> None:
        for number in numbers:
            self.execution._restart(self.servers[number])

    def begin(self, server: int, work: Callable[[Link], Coroutine[Any, Any, T]]) -> Client[T]:
        """Have a client of a server begin something."""
        self._clients += 1
        name = f"c{self._clients}"
        return Client(self.execution, name, server, work)

    def have(self, server: int, work: Callable[[Link], Coroutine[Any, Any, T]]) -> T:
        """Have a client of a server do something, and wait until it has."""
        client = self.begin(server, work)
        self.wait_until(client.is_done)
        return client.result()

    def end(self) -> None:
        for process in self.execution.processes:
            process.end()
            assert process.errors == []


class Client(Generic[T]):
    def __init__(
        self,
        execution: Execution,
        name: str,
        server: int,
        work: Callable[[Link], Awaitable[T]],
    ) -> None:
        self._process = execution.process(f"m{server}", name)
        self._address = execution.servers[server].address
        self._name = name
        self._work = work
        self._task = self._process.create_task(self._run())

    async def _run(self) -> T:
        link = await connect(self._address, name=self._name)
        result = await self._work(link)
        await link.close()
        return result

    def is_done(self) -> bool:
        return self._task.done()

    def result(self) -> T:
        result: T = self._task.result()
        return result


async def send_confirmed(link: Link, group: str, bodies: list[bytes]) -> None:
    """Send each to the group, and wait until it is confirmed."""
    joined = await link.join(group, STACK, keep=1000)
    for body in bodies:
        await joined.send(body)
        await joined.confirm()


async def received(group: Group[bytes], count: int) -> list[Message[bytes]]:
    return [await group.receive(LONGEST) for _ in range(count)]


async def all_kept(link: Link, group: str, count: int) -> list[tuple[int, bytes]]:
    """So many messages of those that are kept, from the first on, with their numbers."""
    joined = await link.join(group, since=0)
    return [(message.number, message.body) for message in await received(joined, count)]
