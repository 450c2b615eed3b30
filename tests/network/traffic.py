"""Five processes in three groups that overlap, and what each of them received."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from flexgroup import connect
from flexgroup.client.group import Group

from .servers import LAST_RESORT

GROUPS = {
    "left": ("ann", "bob", "cid"),
    "right": ("cid", "dan", "eve"),
    "outer": ("ann", "eve"),
}
SERVER_OF = {"ann": 0, "bob": 0, "cid": 1, "dan": 1, "eve": 2}


@dataclass
class Received:
    """What the members got, in order: (group, sender, number)."""

    by: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)
    sent: set[tuple[str, str, int]] = field(default_factory=set)

    def expected_of(self, process: str) -> set[tuple[str, str, int]]:
        mine = {group for group, members in GROUPS.items() if process in members}
        return {message for message in self.sent if message[0] in mine}


async def exchange(addresses: Sequence[str], stack: str, messages: int) -> Received:
    """Every member sends its share to each of its groups, and all receive everything."""
    received = Received()
    seats = [(process, group) for group, members in GROUPS.items() for process in members]
    share = messages // len(seats)
    everything = {group: share * len(members) for group, members in GROUPS.items()}

    async def send(group: Group[bytes], process: str) -> None:
        for number in range(share):
            await group.send(b"%d" % number)
            received.sent.add((group.name, process, number))
            if number % 50 == 0:
                await asyncio.sleep(0)

    async def receive(group: Group[bytes], process: str) -> None:
        for _ in range(everything[group.name]):
            message = await group.receive()
            received.by.setdefault(process, []).append(
                (group.name, message.sender, int(message.body))
            )

    async with asyncio.timeout(LAST_RESORT):
        links = {
            process: await connect(addresses[server % len(addresses)], name=process)
            for process, server in SERVER_OF.items()
        }
        groups = {
            (process, name): await links[process].join(name, stack) for process, name in seats
        }
        work = [send(group, process) for (process, _), group in groups.items()]
        work += [receive(group, process) for (process, _), group in groups.items()]
        await asyncio.gather(*work)
        for link in links.values():
            await link.close()
    return received


async def coming_and_going(
    addresses: Sequence[str], stack: str, times: int
) -> tuple[list[bytes], list[list[bytes]]]:
    """Two members send all the while, and a third comes, sends, and goes again so many times; what
    was sent, and what each of the two received."""
    sent: list[bytes] = []

    async with asyncio.timeout(LAST_RESORT):
        a, b, c = [
            await connect(address, name=name)
            for address, name in zip(addresses, ("ann", "bob", "cid"), strict=True)
        ]
        groups = [await a.join("g", stack), await b.join("g", stack)]
        is_over = asyncio.Event()

        async def send(group: Group[bytes]) -> None:
            number = 0
            while not is_over.is_set():
                await send_one(group, b"%s %d" % (group.process.encode(), number))
                number += 1
                await asyncio.sleep(0.001)

        async def send_one(group: Group[bytes], body: bytes) -> None:
            await group.send(body)
            sent.append(body)

        async def receive(group: Group[bytes]) -> list[bytes]:
            bodies: list[bytes] = []
            while not is_over.is_set() or len(bodies) < len(sent):
                bodies += [message.body for message in await group.receive_all()]
            return bodies

        async def come_and_go() -> None:
            for number in range(times):
                visit = await c.join("g", stack)
                await send_one(visit, b"hello %d" % number)
                await visit.receive()
                await send_one(visit, b"goodbye %d" % number)
                await visit.leave()
            is_over.set()
            await send_one(groups[0], b"the last")

        work = [*(receive(group) for group in groups), *(send(group) for group in groups)]
        results = await asyncio.gather(*work, come_and_go())
        for link in (a, b, c):
            await link.close()
    return sent, [bodies for bodies in results[:2] if bodies is not None]
