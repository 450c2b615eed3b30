"""Groups that end while somebody joins."""

from __future__ import annotations

import asyncio

import pytest

from flexgroup.client.connecting import connect
from flexgroup.client.errors import NoSuchGroup
from flexgroup.client.group import Group, Link
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.internet import Process
from flexgroup.virtual.network import Latency
from flexgroup.virtual.schedule import Schedule


class Servers(Execution):
    """Three servers, and processes that are connected to them."""

    def __init__(self, seed: int, stack: str) -> None:
        super().__init__(Schedule(seed, stack, 3, (), (), Latency(0.002, 0.002), 1.0))
        self._begin()

    def person(self, name: str, server: int) -> Process:
        return self.process(f"m{server}", name)

    async def link(self, name: str, server: int) -> Link:
        return await connect(self.servers[server].address, name=name, timeout=20.0)

    def pass_time(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def end(self) -> None:
        for process in self.processes:
            process.end()


class Destroying(Servers):
    """Somebody joins a group that another destroys, so many seconds after a change has begun."""

    def __init__(self, stack: str, joined: float, destroyed: float) -> None:
        super().__init__(1, stack)
        self._stack = stack
        self._begins = self.now() + 1.0
        self.answer = "none"
        self.person("a", 1).create_task(self._own(destroyed))
        self.person("c", 0).create_task(self._join(joined))
        self.person("d", 0).create_task(self._change())
        self.pass_time(15.0)
        self.end()

    async def _rest(self, seconds: float) -> None:
        await asyncio.sleep(self._begins + seconds - self.now())

    async def _own(self, at: float) -> None:
        group = await (await self.link("a", 1)).join("G", self._stack)
        await self._rest(at)
        await group.destroy()

    async def _join(self, at: float) -> None:
        link = await self.link("c", 0)
        await self._rest(at)
        try:
            await Group(link, "G").join()
            self.answer = "joined"
        except NoSuchGroup:
            self.answer = "no such group"

    async def _change(self) -> None:
        link = await self.link("d", 0)
        await self._rest(0.0)
        await link.join("other", self._stack)


@pytest.mark.parametrize("stack", ["ABCAST", "ABCAST SAFE", "RELIABLE"])
def test_a_join_is_answered_although_the_group_ends_with_the_same_change(stack: str) -> None:
    answers = [
        Destroying(stack, joined / 1000, destroyed / 1000).answer
        for joined in (1, 4, 7)
        for destroyed in (1, 5, 9)
    ]
    assert "no such group" in answers
    assert "none" not in answers
