"""Clients in closed loops that multicast to subsets of the servers, as a workload says.

Every server has one group with one member, at this process, which has a link to each server. A
message goes to the groups of its destinations, through the server of the first of them: there the
message is multicast, as the prototypes that papers measure have it. A client multicasts again when
the last destination has delivered its message, or when all have.

`python -m flexgroup.load.subsets` is the process of these clients. It is told the addresses of the
servers, in the order of the processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from random import Random
from struct import Struct
from typing import final

from flexgroup.client.connecting import connect
from flexgroup.client.group import Group, Link
from flexgroup.client.message import Listener, Message
from flexgroup.core.errors import FlexGroupError
from flexgroup.load.measurement import Load
from flexgroup.load.processes import wait_for_times
from flexgroup.wire import event_loop
from flexgroup.workloads.catalogue import parse_workload
from flexgroup.workloads.workload import Workload

HEAD = Struct("=Ii")
"""The number of the client, and how many messages it had multicast before."""

LAST, ALL = "last", "all"
ANSWERS = (LAST, ALL)
"""Who answers a client: the last destination of a message, or all of them."""

DRAIN_SECONDS = 20.0
"""How long messages may be under way when the clients have stopped."""

Multicast = tuple[tuple[int, ...], bytes]
"""Where a message goes, and its body."""


@final
class _UnderWay:
    """The message of a client that is not answered yet."""

    __slots__ = ("destinations", "lacking", "number", "since")

    def __init__(
        self, number: int, destinations: tuple[int, ...], lacking: int, since: int
    ) -> None:
        self.number = number
        self.destinations = destinations
        self.lacking = lacking
        self.since = since


class SubsetClients:
    """The clients: they are told of every delivery, and say what is multicast next."""

    def __init__(self, workload: Workload, clients: int, answers: str, seed: int) -> None:
        self.load = Load()
        self.sent = 0
        """How many messages were multicast, in all."""
        self.frames = 0
        """How often something came from a server or went to one."""
        self.undelivered = 0
        """How many deliveries of messages that were multicast are still to come."""
        self._workload = workload
        self._filling = bytes(max(0, workload.payload_bytes - HEAD.size))
        self._last_answers = answers == LAST
        self._random = Random(seed)
        self._sent = [0] * clients
        self._under_way: list[_UnderWay | None] = [None] * clients
        self._begin = self._end = 0

    def begin(self, begin: float, end: float) -> list[Multicast]:
        """Return the first message of each client; what is answered between two monotonic times
        counts, and after the second nothing is multicast."""
        self._begin, self._end = int(begin * 1e9), int(end * 1e9)
        self.load.seconds = end - begin
        now = time.monotonic_ns()
        return [self._next(client, now) for client in range(len(self._sent))]

    def delivered(self, process: int, bodies: list[bytes]) -> list[Multicast]:
        """Take what the member at a process was given, and return what is multicast next."""
        now = time.monotonic_ns()
        counts = self._begin <= now < self._end
        self.undelivered -= len(bodies)
        if counts:
            self.load.delivered += len(bodies)
        following: list[Multicast] = []
        for body in bodies:
            client, number = HEAD.unpack_from(body)
            message = self._under_way[client]
            if message is None or message.number != number:
                continue  # answered already, by the last destination
            if self._last_answers and process != message.destinations[-1]:
                continue
            message.lacking -= 1
            if message.lacking:
                continue
            self._under_way[client] = None
            if counts:
                self.load.completed += 1
                self.load.latencies[(now - message.since) // 1_000] += 1
            if now < self._end:
                following.append(self._next(client, now))
        self.frames += 1 + len({destinations[0] for destinations, _ in following})
        return following

    def _next(self, client: int, now: int) -> Multicast:
        destinations = self._workload.next(client, self._random)
        number = self._sent[client]
        self._sent[client] = number + 1
        self.sent += 1
        lacking = 1 if self._last_answers else len(destinations)
        self._under_way[client] = _UnderWay(number, destinations, lacking, now)
        self.undelivered += len(destinations)
        return destinations, HEAD.pack(client, number) + self._filling


def group_of(prefix: str, process: int) -> str:
    """Return the name of the group whose only member is at this process."""
    return f"{prefix}-{process}"


class SubsetSender:
    """Multicasts for the clients over the links, and tells them what the members are given."""

    def __init__(self, clients: SubsetClients, groups: list[list[Group[bytes]]]) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when no client can go on, with the reason."""
        self._clients = clients
        self._groups = groups
        """The groups of all processes, over the link to each server."""
        self._unsent: list[Multicast] = []
        self._sending: asyncio.Task[None] | None = None

    def begin(self, first: list[Multicast]) -> None:
        for process, groups in enumerate(self._groups):
            groups[process].listen(_Member(self, process))
        self.send(first)

    def end(self) -> None:
        for process, groups in enumerate(self._groups):
            groups[process].listen(None)

    def taken(self, process: int, bodies: list[bytes]) -> None:
        following = self._clients.delivered(process, bodies)
        if following:
            self.send(following)

    def send(self, multicasts: list[Multicast]) -> None:
        self._unsent += multicasts
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_unsent())

    async def _send_unsent(self) -> None:
        try:
            while self._unsent:
                multicasts, self._unsent = self._unsent, []
                for destinations, body in multicasts:
                    groups = self._groups[destinations[0]]
                    link = groups[destinations[0]].link
                    await link.multicast([groups[process] for process in destinations], body)
        except FlexGroupError as error:
            self.fail(error)
        else:
            self._sending = None

    def fail(self, error: FlexGroupError) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


class _Member(Listener[bytes]):
    """The member at one process."""

    def __init__(self, sender: SubsetSender, process: int) -> None:
        self._sender = sender
        self._process = process

    def delivered(self, messages: list[Message[bytes]]) -> None:
        self._sender.taken(self._process, [message.body for message in messages])

    def refused(self, error: FlexGroupError) -> None:
        self._sender.fail(error)

    def ended(self, error: FlexGroupError) -> None:
        self._sender.fail(error)


async def run(options: argparse.Namespace) -> None:
    size = len(options.servers)
    workload = parse_workload(options.workload, size)
    clients = SubsetClients(workload, options.clients, options.answers, options.seed)
    async with AsyncExitStack() as stack:
        links: list[Link] = [
            await stack.enter_async_context(
                connect(address, name=f"{options.groups}-clients-{process}")
            )
            for process, address in enumerate(options.servers)
        ]
        groups = await groups_over(links, options.groups, options.stack)
        begin, end = wait_for_times()
        sender = SubsetSender(clients, groups)
        sender.begin(clients.begin(begin, end))
        await _until(sender, end)
        await _drained(sender, clients)
        print(json.dumps(vars(clients.load)), flush=True)
        sys.stdin.readline()  # whoever measures looks at the servers before the groups end
        sender.end()
        await asyncio.gather(*(groups[process][process].destroy() for process in range(size)))
    print(json.dumps({"sent": clients.sent, "frames": clients.frames}), flush=True)


async def groups_over(links: list[Link], prefix: str, stack: str) -> list[list[Group[bytes]]]:
    """Create a group for each server with one member there, and return all over each link."""
    names = [group_of(prefix, process) for process in range(len(links))]
    groups = [[Group[bytes](link, name) for name in names] for link in links]
    own = [row[process] for process, row in enumerate(groups)]
    await asyncio.gather(*(group.create(stack, open=True, domain=prefix) for group in own))
    await asyncio.gather(*(group.join() for group in own))
    for process, row in enumerate(groups):
        await asyncio.gather(*(group.attach() for group in row if group is not own[process]))
    return groups


async def _until(sender: SubsetSender, end: float) -> None:
    await asyncio.wait([sender.failed], timeout=max(0.0, end - time.monotonic()))
    if sender.failed.done():
        sender.failed.result()


async def _drained(sender: SubsetSender, clients: SubsetClients) -> None:
    """Wait until everything that was multicast is delivered everywhere."""
    until = time.monotonic() + DRAIN_SECONDS
    while clients.undelivered:
        if time.monotonic() > until:
            raise FlexGroupError(
                f"{clients.undelivered} deliveries are lacking {DRAIN_SECONDS:g} s after the "
                "clients have stopped; are all servers running?"
            )
        await _until(sender, time.monotonic() + 0.01)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers", nargs="+", metavar="HOST:PORT")
    parser.add_argument("--groups", required=True, help="what the names of groups begin with")
    parser.add_argument("--stack", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--answers", choices=ANSWERS, required=True)
    parser.add_argument("--seed", type=int, required=True)
    try:
        event_loop.run(run(parser.parse_args()))
    except FlexGroupError as error:
        print(f"flexgroup: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
