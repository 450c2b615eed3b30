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
